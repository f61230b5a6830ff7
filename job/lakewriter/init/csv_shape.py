"""Tell how a CSV file is written: its encoding, separator, quotes and header."""

import csv
import io
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from lakewriter.source.text_types import propose_type

_SEPARATORS: Final = (",", "\t", ";", "|")
_LINES: Final = 50
"""Lines that tell the separator and the header."""
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_WESTERN: Final = "cp1252"


@dataclass(frozen=True)
class CsvShape:
    """What is known of a file; ``names`` are its header's, or those that Spark gives columns without one."""

    names: tuple[str, ...]
    separator: str = ","
    has_header: bool = True
    encoding: str = "utf-8"
    notes: tuple[str, ...] = field(default=())

    @property
    def options(self) -> dict[str, object]:
        """The reader's options for such a file; UTF-16 it knows by its mark."""
        options: dict[str, object] = {"header": self.has_header}
        if self.separator != ",":
            options["sep"] = self.separator
        if self.encoding == _WESTERN:
            options["encoding"] = "windows-1252"
        return options


def find_encoding(data: bytes) -> str:
    """Find the encoding of a file from its first bytes: UTF-8, UTF-16 by its mark, else Windows' Western one."""
    for mark, name in _BOMS:
        if data.startswith(mark):
            return name
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        # The sample may end within a character.
        return "utf-8" if error.start >= len(data) - 3 else _WESTERN
    return "utf-8"


def read_shape(data: bytes) -> CsvShape:
    """Read the shape of a file from its first bytes."""
    encoding = find_encoding(data)
    text = data.decode(encoding, errors="replace").removeprefix("\ufeff")
    separator = _find_separator(text)
    rows = _read_rows(text, separator)
    if not rows:
        return CsvShape(())
    has_header = _has_header(rows)
    names = _name_columns(rows[0]) if has_header else tuple(f"_c{number}" for number in range(len(rows[0])))
    return CsvShape(
        names=names,
        separator=separator,
        has_header=has_header,
        encoding="utf-8" if encoding == "utf-8-sig" else encoding,
        notes=() if has_header else ("the first row holds values, so columns are named by their number",),
    )


def _read_rows(text: str, separator: str) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if row:
                rows.append(row)
            if len(rows) == _LINES:
                break
    except csv.Error:
        return rows
    return rows


def _find_separator(text: str) -> str:
    """The separator that gives most rows the same number of cells, and more than one."""
    best, most = ",", (0, 0)
    for separator in _SEPARATORS:
        widths = Counter(len(row) for row in _read_rows(text, separator))
        width, count = max(widths.items(), key=lambda item: item[1], default=(1, 0))
        if width > 1 and (count, width) > most:
            best, most = separator, (count, width)
    return best


def _has_header(rows: list[list[str]]) -> bool:
    """True unless the first row has a value: a number, a date or a truth value.

    A blank, as pandas writes for its index, is a name; one that occurs twice only if rows below it hold values.
    """
    first = [cell.strip() for cell in rows[0]]
    named = [cell.lower() for cell in first if cell]
    if not named or any(map(_is_value, named)):
        return False
    return len(set(named)) == len(named) or any(_is_value(cell.strip()) for row in rows[1:] for cell in row)


def _name_columns(first: list[str]) -> tuple[str, ...]:
    """The names that Spark takes from a header: blanks go by their number, and so do names that occur twice.

    See ``CSVUtils.makeSafeHeader`` of Spark 4.1.1.
    """
    names = [cell.strip() for cell in first]
    counts = Counter(name.lower() for name in names)
    return tuple(
        f"_c{number}" if not name else f"{name}{number}" if counts[name.lower()] > 1 else name
        for number, name in enumerate(names)
    )


def _is_value(cell: str) -> bool:
    return propose_type(pa.array([cell])).type is not None
