"""Compare how a file begins with the format that it is read as."""

import codecs
import json
from typing import Final

from lakewriter.errors import SourceFailedError, ValueUnrepresentableError
from lakewriter.source.byte_checks import TEXTS
from lakewriter.source.file_look import Head, read_plain_options
from lakewriter.source.files.blocks import EXPORT, MAGIC
from lakewriter.source.files.source import has_reader
from lakewriter.source.raw_text import find_in_text
from lakewriter.spec.specification import Read

_SHOWN: Final = 24
_BINARY: Final = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}
_COMPRESSED: Final = ((b"\x1f\x8b", "gzip", ".gz"), (b"BZh", "bzip2", ".bz2"), (b"\x28\xb5\x2f\xfd", "zstd", ".zst"))
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def require_content(head: Head, read: Read, table: str) -> None:
    """Raise what a load would fail with where a file is not what ``format`` says.

    What the product's own readers say of a file they say themselves, when it is opened.
    """
    if has_reader(read):
        return
    kind = str(read.format).lower()
    if kind in _BINARY:
        _require_binary(head, kind, table)
    elif kind in TEXTS:
        _require_plain(head, kind, read, table)
        if kind == "json":
            _require_json(head, read, table)


def guess_format(data: bytes) -> str:
    """The format of Spark that first bytes look like; blank for one that Spark does not have."""
    magic = next((name for start, name, _ in MAGIC if data.startswith(start)), None)
    if magic is not None:
        return magic
    text = data.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith((b"{", b"[")):
        return "json"
    return "xml" if text.startswith(b"<") else "csv" if text and find_in_text(0, data) is None else ""


def _require_binary(head: Head, kind: str, table: str) -> None:
    if head.data.startswith(next(start for start, name, _ in MAGIC if name == kind)):
        return
    guess = guess_format(head.data)
    what = next((said for start, _, said in MAGIC if head.data.startswith(start)), "")
    raise SourceFailedError(
        f"table {table!r}: {head.path!r} is not {_with_article(_BINARY[kind])} file: "
        f"{f'it is {what}' if what else f'it begins with {_show(head.data)}'}.",
        remedy=f"Set format: {guess}, or name the file that is meant." if guess else EXPORT,
    )


def _require_plain(head: Head, kind: str, read: Read, table: str) -> None:
    encoding = _find_encoding(read)
    if (reason := _explain_other_content(head, kind, encoding)) is not None:
        raise SourceFailedError(f"table {table!r}: {head.path!r} is {reason[0]}.", remedy=reason[1])
    if not _is_decodable(head, encoding):
        finding = find_in_text(0, head.data) if encoding == "utf-8" else None
        what = f"offset {finding.offset}: {finding.what}" if finding else f"it is not {encoding} text"
        raise ValueUnrepresentableError(
            f"table {table!r}: {head.path!r}, {what}; Spark would read another value.",
            remedy="Correct the file, or give its encoding: options: {encoding: ISO-8859-1}.",
        )


def _explain_other_content(head: Head, kind: str, encoding: str) -> tuple[str, str] | None:
    """What a file is that is no plain text, and what to do about it."""
    for start, name, said in MAGIC:
        if head.data.startswith(start):
            return f"{said}, read as {kind}", f"Set format: {name}." if name else EXPORT
    for start, name, end in _COMPRESSED:
        if head.data.startswith(start):
            return (
                f"{name}-compressed, and its name does not end in {end}",
                f"Rename it: Spark goes by the ending {end}.",
            )
    for start, name in _MARKS:
        if head.data.startswith(start) and encoding == "utf-8":
            return f"{name} text, read as UTF-8", f"Set options: {{encoding: {name}, multiLine: true}}, or convert it."
    return None


def _require_json(head: Head, read: Read, table: str) -> None:
    """Spark reads a document a line, or with ``multiLine`` a document a file."""
    options = read_plain_options(read)
    if options.get("multiline") == "true" or options.get("mode", "FAILFAST").upper() != "FAILFAST":
        return
    text = head.data.decode(_find_encoding(read), errors="ignore").removeprefix("\ufeff")
    lines = text.splitlines()
    complete = lines if head.is_whole else lines[:-1]
    first = next((line for line in complete if line.strip()), None)
    if first is None or _is_json(first):
        return
    if text.lstrip().startswith(("{", "[")) and len(lines) > 1 and (not head.is_whole or _is_json(text)):
        raise SourceFailedError(
            f"table {table!r}: {head.path!r} is one JSON document over several lines, expected a document a line.",
            remedy="Set options: {multiLine: true}.",
        )
    if not text.lstrip().startswith(("{", "[", '"')):
        guess = guess_format(head.data)
        raise SourceFailedError(
            f"table {table!r}: {head.path!r} is not JSON: it begins with {_show(head.data)}.",
            remedy=f"Set format: {guess}, or name the file that is meant.",
        )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _find_encoding(read: Read) -> str:
    """The encoding that the options name; UTF-8 where Python does not know it, as then nobody looks at the bytes."""
    options = read_plain_options(read)
    try:
        return codecs.lookup(options.get("encoding") or options.get("charset") or "utf-8").name
    except LookupError:
        return "latin-1"


def _is_decodable(head: Head, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(head.data, final=head.is_whole)
    except UnicodeDecodeError:
        return False
    return True


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'AO' else 'a'} {noun}"


def _show(data: bytes) -> str:
    try:
        first = data[: _SHOWN * 4].decode().splitlines()[0]
    except (UnicodeDecodeError, IndexError):
        return repr(data[:_SHOWN])[1:]
    return repr(first if len(first) <= _SHOWN else first[:_SHOWN] + "...")
