"""Compare how a file begins with the format that it is read as."""

import codecs
import json
from typing import Final

from lakewriter.errors import LakeError, SourceFailedError, ValueUnrepresentableError
from lakewriter.source.byte_checks import TEXTS
from lakewriter.source.file_look import Head, read_plain_options
from lakewriter.source.raw_text import find_in_text
from lakewriter.spec.specification import Read

_SHOWN: Final = 24
_BINARY: Final = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}
_MAGIC: Final[tuple[tuple[bytes, str, str], ...]] = (
    # first bytes, Spark's format, what it is
    (b"PAR1", "parquet", "a Parquet file"),
    (b"ORC", "orc", "an ORC file"),
    (b"Obj\x01", "avro", "an Avro file"),
    (b"PK\x03\x04", "", "a ZIP archive, as Excel workbooks are"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", "an Excel or Word file of the old kind"),
    (b"SQLite format 3\x00", "", "an SQLite database"),
    (b"%PDF-", "", "a PDF"),
)
_COMPRESSED: Final = ((b"\x1f\x8b", "gzip", ".gz"), (b"BZh", "bzip2", ".bz2"), (b"\x28\xb5\x2f\xfd", "zstd", ".zst"))
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_EXPORT: Final = "Save its sheet or table as CSV or Parquet, and name that file."


def require_content(head: Head, read: Read, table: str) -> None:
    """Raise what a load would fail with where a file is not what ``format`` says."""
    kind = str(read.format).lower()
    if kind in _BINARY:
        _require_binary(head, kind, table)
    elif kind in TEXTS:
        _require_plain(head, kind, read, table)
        _require_lines(head, kind, read, table)
        if kind == "json":
            _require_json(head, read, table)


def guess_format(data: bytes) -> str:
    """The format of Spark that first bytes look like; blank for one that Spark does not have."""
    magic = next((name for start, name, _ in _MAGIC if data.startswith(start)), None)
    if magic is not None:
        return magic
    text = data.removeprefix(codecs.BOM_UTF8).lstrip()
    if text.startswith((b"{", b"[")):
        return "json"
    return "xml" if text.startswith(b"<") else "csv" if text and find_in_text(0, data) is None else ""


def _require_binary(head: Head, kind: str, table: str) -> None:
    if head.data.startswith(next(start for start, name, _ in _MAGIC if name == kind)):
        return
    guess = guess_format(head.data)
    what = next((said for start, _, said in _MAGIC if head.data.startswith(start)), "")
    raise SourceFailedError(
        f"table {table!r}: {head.path!r} is not {_with_article(_BINARY[kind])} file: "
        f"{f'it is {what}' if what else f'it begins with {_show(head.data)}'}.",
        remedy=f"Set format: {guess}, or name the file that is meant." if guess else _EXPORT,
    )


def _require_plain(head: Head, kind: str, read: Read, table: str) -> None:
    encoding = _find_encoding(read)
    error: type[LakeError] = SourceFailedError
    if kind in ("csv", "text"):
        # A load looks at their bytes before Spark reads them; what is text by its bytes can be read, whatever it is.
        if _is_decodable(head, encoding):
            return
        error = ValueUnrepresentableError
    if (reason := _explain_other_content(head, kind, encoding)) is not None:
        raise error(f"table {table!r}: {head.path!r} is {reason[0]}.", remedy=reason[1])
    if not _is_decodable(head, encoding):
        finding = find_in_text(0, head.data) if encoding == "utf-8" else None
        what = f"offset {finding.offset}: {finding.what}" if finding else f"it is not {encoding} text"
        raise ValueUnrepresentableError(
            f"table {table!r}: {head.path!r}, {what}; Spark would read another value.",
            remedy="Correct the file, or give its encoding: options: {encoding: ISO-8859-1}.",
        )


def _require_lines(head: Head, kind: str, read: Read, table: str) -> None:
    """Spark looks for the bytes of UTF-8's line ends, unless it reads a file as a whole."""
    options = read_plain_options(read)
    encoding = _find_encoding(read)
    is_strict = options.get("mode", "FAILFAST").upper() == "FAILFAST" and "linesep" not in options
    if kind == "csv" and encoding.startswith(("utf-16", "utf-32")) and options.get("multiline") != "true" and is_strict:
        raise SourceFailedError(
            f"table {table!r}: {head.path!r} is read as {encoding}, in which Spark does not find the ends of lines.",
            remedy="Set multiLine: true among its options as well, or convert the file to UTF-8.",
        )


def _explain_other_content(head: Head, kind: str, encoding: str) -> tuple[str, str] | None:
    """What a file is that is no plain text, and what to do about it."""
    for start, name, said in _MAGIC:
        if head.data.startswith(start):
            return f"{said}, read as {kind}", f"Set format: {name}." if name else _EXPORT
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
