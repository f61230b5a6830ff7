"""Find the format of a file by its first bytes, if it differs from its source's, in the same words for ``init``,
``check``, ``plan`` and ``run``.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

import pyarrow as pa

from lakewriter.cast.json_text import DocumentError, parse_document
from lakewriter.errors import SourceFailedError
from lakewriter.report import format_count, join_first
from lakewriter.source.files.blocks import EXPORT, MAGIC, UNKNOWN, Head
from lakewriter.source.files.csv_headers import SEPARATORS
from lakewriter.source.files.file_reader import Hint
from lakewriter.source.files.json_splitter import split_documents
from lakewriter.source.text_types import propose_type
from lakewriter.spec.source_formats import Format

_SHOWN: Final = 24
_MOST_LINES: Final = 50
_MOST_PARTS: Final = 100
_MOST_BYTES: Final = 128 * 1024 * 1024

_MOST_NAMES: Final = 4
_LONGEST_NAME: Final = 40
"""The length of the longest text that counts as a column's name."""
_WESTERN: Final = re.compile(
    "(?<=[A-Za-z])[\\w]{1,3}|[\\w]{1,3}(?=[A-Za-z])|[\u20ac\u00a3\u00a7\u00b0\u2018\u2019\u201c\u201d\u2013\u2014]"
)
"""A few letters beside plain ones, or a sign by itself: more of other characters in a row are hardly Western text."""
_HIGH: Final = re.compile(r"[^\x00-\x7f]+")
_ESCAPED: Final = re.compile(r"\\x([89a-f][0-9a-f])")


def guess_format(data: bytes) -> str:
    """Return the format that first bytes look like; blank for one that is not read."""
    for start, name, _ in MAGIC:
        if data.startswith(start) and not _is_text(data):
            return name
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith((b"{", b"[")):
        return "json"
    return "xml" if text.startswith(b"<") else "csv" if text and _is_text(data) else ""


def find_other_format(data: bytes, path: str, form: Format, table: str) -> SourceFailedError | None:
    """Return the error for a file that begins with ``data`` and is not of its binary format; None if it may be."""
    if data.startswith(form.magic):
        return None
    guess = guess_format(data)
    what = next((what for start, _, what in MAGIC if data.startswith(start)), "")
    return SourceFailedError(
        f"table {table!r}: {path!r} is not {form.file_title}: "
        f"{f'it is {what}' if what else f'it begins with {show_start(data)}'}.",
        remedy=f"Set format: {guess}, or name the file that is meant." if guess else EXPORT if what else UNKNOWN,
    )


def make_empty_error(paths: Sequence[str], table: str) -> SourceFailedError:
    """Return the error for files without a byte."""
    what = f"{paths[0]!r} is" if len(paths) == 1 else f"all {format_count(len(paths), 'file')} are"
    return SourceFailedError(
        f"table {table!r}: {what} empty, without any byte.",
        remedy="Check what writes it; a file without rows can be read if its columns are declared under read.columns.",
    )


def _is_text(data: bytes) -> bool:
    return b"\0" not in data and _is_utf8(data)


def _is_utf8(data: bytes) -> bool:
    """Return True for UTF-8, even if the end of ``data`` cuts a character."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(data) - 3 and error.reason.startswith("unexpected end")
    return True


def require_documents(head: Head, path: str, table: str) -> None:
    """Raise ``SOURCE_FAILED`` for a file that is read as a document a line, and plainly is not."""
    text = head.charset.to_utf8(head.text) if head.charset.is_plain else head.text
    lines = text.splitlines()
    filled = [line for line in (lines if head.is_whole else lines[:-1])[:_MOST_LINES] if line.strip()]
    # A line with null alone is the value of a message that has none.
    filled = [line for line in filled if line.strip() != b"null"]
    if not filled or _is_document(filled[0]):
        return
    is_begun = filled[0].lstrip().startswith((b"{", b"["))
    if is_begun and len(lines) > 1 and _has_documents(text, is_whole=head.is_whole):
        raise SourceFailedError(
            f"table {table!r}: {path!r} has JSON documents over several lines, expected a document a line.",
            remedy="Set options: {multiLine: true}.",
        )
    if not is_begun and not any(map(_is_document, filled)):
        guess = guess_format(text)
        raise SourceFailedError(
            f"table {table!r}: {path!r} is not JSON: it begins with {show_start(text)}.",
            remedy=f"Set format: {guess}, or name the file that is meant." if guess else "Name the file that is meant.",
        )


_PAGE: Final = re.compile(rb"\s*(<!doctype html|<html[\s>]|(<\?xml\s))", re.IGNORECASE)


def require_no_page(text: bytes, path: str, table: str) -> None:
    """Raise ``SOURCE_FAILED`` for a file that is read as CSV and begins as a page of HTML or a document of XML."""
    if (match := _PAGE.match(text)) is None:
        return
    is_xml = match[2] is not None
    raise SourceFailedError(
        f"table {table!r}: {path!r} is {'an XML document' if is_xml else 'an HTML page'}, expected CSV: it begins with "
        f"{show_start(text)}.",
        remedy="Set format: xml, or name the file that is meant." if is_xml else
        "Fetch the file again: a server may have answered with a page, such as one to sign in.",
    )  # fmt: skip


def _has_documents(text: bytes, *, is_whole: bool) -> bool:
    """Return True if a text consists of documents and arrays of them. Its end may cut the last one."""
    parts = list(islice(split_documents(iter([text]), most=_MOST_BYTES), _MOST_PARTS))
    whole = parts if is_whole or len(parts) == _MOST_PARTS else parts[:-1]
    is_cut = bool(parts) and not whole and not any(map(_is_document, text.splitlines()[1:_MOST_LINES]))
    return is_cut or (bool(whole) and all(part.fault is None and _is_document(part.raw) for part in whole))


def _is_document(line: bytes) -> bool:
    try:
        return isinstance(parse_document(line), dict | list)
    except DocumentError:
        return False


def show_start(data: bytes) -> str:
    """Return the beginning of a file, for a message."""
    try:
        first = data[: _SHOWN * 4].decode().splitlines()[0]
    except (UnicodeDecodeError, IndexError):
        return repr(data[:_SHOWN])[1:]
    return repr(first if len(first) <= _SHOWN else first[:_SHOWN] + "...")


def suggest_charset(shown: str) -> str:
    """Return the remedy for a row whose bytes are not UTF-8, which ``shown`` has as escapes; blank if no charset is
    likely.

    Only windows-1252 is ever likely: every other charset of one byte has the same bytes for other letters.
    """
    if not _ESCAPED.search(shown) or not shown.isascii():
        # UTF-8 text beside it means that bytes of the file are damaged.
        return ""
    data = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), shown)
    try:
        text = data.encode("latin-1").decode("cp1252")
    except UnicodeDecodeError:
        return ""
    runs = list(_HIGH.finditer(text))
    if not all((match := _WESTERN.match(text, run.start())) and match.end() >= run.end() for run in runs):
        return ""
    shown = next(word for word in text.split() if not word.isascii())
    return f"If {shown!r} is right in it, set options: {{encoding: windows-1252}}. "


def list_csv_hints(
    path: str, rows: Sequence[Sequence[str]], separator: str, *, has_header: bool, is_declared: bool
) -> tuple[Hint, ...]:
    """Return notes on likely mistakes that the first rows of a CSV file show."""
    if not rows:
        return ()
    if rows[0][0].lstrip().startswith(("{", '[{"')):
        return (Hint(f"{path!r} begins like JSON, and is read as csv.", "If it is JSON, set format: json."),)
    hint = _find_delimiter(path, rows, separator)
    if hint is None and not has_header and not is_declared:
        hint = _find_names(path, rows)
    if hint is not None:
        return (hint,)
    if not has_header:
        return ()
    return tuple(filter(None, (_find_data(path, rows[0]), _find_odd_names(path, rows[0]))))


def _find_delimiter(path: str, rows: Sequence[Sequence[str]], separator: str) -> Hint | None:
    """Return a note on a single column in which every row has the same number of another delimiter."""
    if len(rows) < 2 or any(len(row) != 1 for row in rows):
        return None
    for delimiter in SEPARATORS:
        counts = {row[0].count(delimiter) for row in rows}
        if len(counts) == 1 and counts != {0}:
            name = {"\t": "tabs"}.get(delimiter, repr(delimiter))
            return Hint(
                f"{path!r} has one column by the delimiter {separator!r}, and {name} in every row.",
                f"Set options: {{sep: {json.dumps(delimiter)}}}.",
            )
    return None


def _find_names(path: str, rows: Sequence[Sequence[str]]) -> Hint | None:
    """Return a note on a first row that looks like names, but is read as data."""
    first, rest = rows[0], rows[1:]
    if not rest or not _are_names(first):
        return None
    texts = [
        pa.array([row[index] for row in rest if index < len(row) and row[index]], pa.string())
        for index in range(len(first))
    ]
    is_typed = any(propose_type(text).type for text in texts)
    are_words = all(name.replace("_", "").isalnum() and name.isascii() for name in first)
    if not is_typed and not (are_words and not any(set(row) & set(first) for row in rest)):
        return None
    return Hint(
        f"the first row of {path!r} is read as data and looks like names: {join_first(first, _MOST_NAMES)}.",
        "Set options: {header: true}.",
    )


def _are_names(row: Sequence[str]) -> bool:
    names = [name.strip() for name in row]
    if not all(names) or len(set(names)) < len(names) or max(map(len, names)) > _LONGEST_NAME:
        return False
    return not any(_is_value(name) for name in names)


def _is_value(text: str) -> bool:
    return propose_type(pa.array([text])).type is not None


def _find_data(path: str, names: Sequence[str]) -> Hint | None:
    """Return a note on a first row that is read as names, but has numbers or dates."""
    typed = [value for value in names if value.strip() and _is_value(value)]
    if not typed:
        return None
    return Hint(
        f"the first row of {path!r} is read as the columns' names, and has {join_first(typed, _MOST_NAMES)}.",
        'If it is data, set options: {header: false}, and declare the names: read.columns: "id BIGINT, name STRING".',
    )


def _find_odd_names(path: str, names: Sequence[str]) -> Hint | None:
    blank = [str(index + 1) for index, name in enumerate(names) if not name.strip()]
    twice = [name for name, count in Counter(name.strip().lower() for name in names).items() if count > 1 and name]
    faults = [f"no name for column {join_first(blank, _MOST_NAMES)}"] if blank else []
    faults += [f"the name {join_first(twice, _MOST_NAMES)} more than once"] if twice else []
    if not faults:
        return None
    return Hint(
        f"the header of {path!r} has {' and '.join(faults)}.",
        "The columns get names by their positions. Name them where the file is written, or with an sql: read.",
    )
