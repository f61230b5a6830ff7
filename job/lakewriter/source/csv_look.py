"""Look at the first rows of a CSV file for what its reader takes without a word: names as data, a wrong delimiter."""

import csv
import io
from collections import Counter
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewriter.report import join_first
from lakewriter.source.file_content import guess_format
from lakewriter.source.file_look import Head, read_plain_options
from lakewriter.source.text_types import propose_type
from lakewriter.spec.specification import Read

_ROWS: Final = 20
_DELIMITERS: Final = {";": ";", "\t": "\\t", "|": "|", ",": ","}
_MOST_NAMES: Final = 4
_WORDS: Final = 40
"""Characters of the longest name of a column that is taken for one."""


@dataclass(frozen=True)
class Hint:
    """What looks wrong in a source that can be read, and what to do if it is."""

    message: str
    remedy: str


def list_csv_hints(head: Head, read: Read) -> tuple[Hint, ...]:
    """What the first rows of a CSV file let suspect."""
    options = read_plain_options(read)
    rows = _read_rows(head, options)
    if not rows:
        return ()
    if guess_format(head.data) == "json":
        return (Hint(f"{head.path!r} begins like JSON, and is read as csv.", "If it is JSON, set format: json."),)
    has_header = options.get("header", "false").lower() == "true"
    hint = _find_delimiter(head, rows, options) or (
        None if has_header or read.columns is not None else _find_names(head, rows)
    )
    if hint is not None or not has_header:
        return () if hint is None else (hint,)
    return tuple(filter(None, (_find_data(head, rows), _find_odd_names(head, rows[0]))))


def _read_rows(head: Head, options: dict[str, str]) -> list[list[str]]:
    """The first rows, without a last one that may be cut off; none where Python cannot read as Spark does."""
    separator = options.get("sep") or options.get("delimiter") or ","
    separator, quote = {"\\t": "\t"}.get(separator, separator), options.get("quote", '"')
    if len(separator) != 1 or len(quote) != 1:
        return []
    text = head.data.decode(errors="ignore")
    comment = options.get("comment", "")
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    lines = [line for line in lines if line.strip() and not (comment and line.startswith(comment))]
    if not head.is_whole:
        lines = lines[:-1]
    reader = csv.reader(io.StringIO("".join(lines)), delimiter=separator, quotechar=quote)
    try:
        return [row for row, _ in zip(reader, range(_ROWS), strict=False)]
    except csv.Error:
        return []


def _find_delimiter(head: Head, rows: list[list[str]], options: dict[str, str]) -> Hint | None:
    """One column in which every row has the same number of another delimiter."""
    if any(len(row) != 1 for row in rows):
        return None
    for delimiter, written in _DELIMITERS.items():
        counts = {row[0].count(delimiter) for row in rows}
        if len(counts) == 1 and counts != {0} and len(rows) > 1:
            name = {"\t": "tabs"}.get(delimiter, repr(delimiter))
            used = options.get("sep") or options.get("delimiter") or ","
            return Hint(
                f"{head.path!r} has one column by the delimiter {used!r}, and {name} in every row.",
                f'Set options: {{sep: "{written}"}}.',
            )
    return None


def _find_names(head: Head, rows: list[list[str]]) -> Hint | None:
    """A first row that looks like names, where the reader takes it as data."""
    first, rest = rows[0], rows[1:]
    if not rest or not _are_names(first):
        return None
    texts = [pa.array([row[place] for row in rest if place < len(row) and row[place]], pa.string())
             for place in range(len(first))]  # fmt: skip
    is_typed = any(propose_type(text).type for text in texts)
    are_words = all(name.replace("_", "").isalnum() and name.isascii() for name in first)
    if not is_typed and not (are_words and not any(set(row) & set(first) for row in rest)):
        return None
    return Hint(
        f"the first row of {head.path!r} is read as data and looks like names: {join_first(first, _MOST_NAMES)}.",
        "Set options: {header: true}.",
    )


def _are_names(row: list[str]) -> bool:
    names = [name.strip() for name in row]
    if not all(names) or len(set(names)) < len(names) or max(map(len, names)) > _WORDS:
        return False
    return not any(propose_type(pa.array([name])).type for name in names)


def _find_data(head: Head, rows: list[list[str]]) -> Hint | None:
    """A first row that is taken as names and has numbers or dates."""
    typed = [value for value in rows[0] if value.strip() and propose_type(pa.array([value])).type]
    if not typed:
        return None
    return Hint(
        f"the first row of {head.path!r} is read as the columns' names, and has {join_first(typed, _MOST_NAMES)}.",
        'If it is data, set options: {header: false}, and declare the names: read.columns: "id BIGINT, name STRING".',
    )


def _find_odd_names(head: Head, names: list[str]) -> Hint | None:
    blank = [str(place + 1) for place, name in enumerate(names) if not name.strip()]
    twice = [name for name, count in Counter(name.strip().lower() for name in names).items() if count > 1 and name]
    said = [f"no name for column {join_first(blank, _MOST_NAMES)}"] if blank else []
    said += [f"the name {join_first(twice, _MOST_NAMES)} more than once"] if twice else []
    if not said:
        return None
    return Hint(
        f"the header of {head.path!r} has {' and '.join(said)}.",
        "The columns get names by their places. Name them where the file is written, or with an sql: read.",
    )
