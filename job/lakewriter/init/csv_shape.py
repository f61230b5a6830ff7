"""Find how a CSV file is written: its charset, separator and header. Its rows are those that a load reads."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from lakewriter.source.files.charsets import UTF_8, Charset, explain_bad_text, find_charset, show_text
from lakewriter.source.files.csv_headers import name_columns
from lakewriter.source.files.csv_rows import Grammar, find_line_end
from lakewriter.source.files.csv_values import list_first_rows
from lakewriter.source.files.format_detection import suggest_charset
from lakewriter.source.text_types import propose_type

_SEPARATORS: Final = (b",", b"\t", b";", b"|")
_LINES: Final = 50
"""Lines from which the separator and the header are found."""
_WESTERN: Final = "windows-1252"


@dataclass(frozen=True)
class CsvShape:
    """The form of a CSV file; ``names`` are those that a load gives its columns."""

    names: tuple[str, ...]
    separator: str = ","
    has_header: bool = True
    encoding: str | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def options(self) -> dict[str, object]:
        """The reader's options for such a file; UTF-16 it knows by its mark."""
        options: dict[str, object] = {"header": self.has_header}
        if self.separator != ",":
            options["sep"] = self.separator
        if self.encoding is not None:
            options["encoding"] = self.encoding
        return options


def read_shape(path: str, data: bytes, *, is_whole: bool) -> CsvShape:
    """Read the shape of a file from its first bytes; ``SOURCE_FAILED`` for text whose charset its bytes do not show."""
    charset = find_charset(path, data[:1024], None)
    text = data[charset.mark :] if charset.is_plain else b"".join(charset.decode(iter([data])))
    is_western = charset.name == UTF_8 and _is_western(text, is_whole=is_whole)
    shown_in = Charset(_WESTERN) if is_western else Charset()
    separator, rows = _find_separator(text, shown_in, is_whole=is_whole)
    if not rows:
        return CsvShape(())
    has_header = _has_header(rows)
    names = name_columns(tuple(rows[0])) if has_header else tuple(f"_c{number}" for number in range(len(rows[0])))
    return CsvShape(
        names=names,
        separator=separator.decode(),
        has_header=has_header,
        encoding=_WESTERN if is_western else None,
        notes=() if has_header else ("the first row holds values, so columns are named by their number",),
    )


def _is_western(text: bytes, *, is_whole: bool) -> bool:
    """Return True where lines that are no UTF-8 are likely to be of Windows' Western charset, all of them."""
    lines = text.splitlines()
    shown = [
        show_text(line, Charset()) for line in (lines if is_whole else lines[:-1]) if explain_bad_text(line, Charset())
    ]
    return bool(shown) and all(map(suggest_charset, shown[:_LINES]))


def _find_separator(text: bytes, charset: Charset, *, is_whole: bool) -> tuple[bytes, list[list[str]]]:
    """Return the separator that gives most rows the same number of cells, and more than one; and the rows."""
    end = find_line_end(text, b'"', is_whole=is_whole)
    counts = {
        separator: list_first_rows(text, Grammar(separator, end=end), charset, _LINES, is_whole=is_whole)
        for separator in _SEPARATORS
    }
    best, most = _SEPARATORS[0], (0, 0)
    for separator, rows in counts.items():
        widths = Counter(map(len, rows))
        width, count = max(widths.items(), key=lambda item: item[1], default=(1, 0))
        if width > 1 and (count, width) > most:
            best, most = separator, (count, width)
    return best, counts[best]


def _has_header(rows: list[list[str]]) -> bool:
    """Return True unless the first row has a value: a number, a date or a truth value.

    A blank, as pandas writes for its index, is a name; one that occurs twice only if rows below it hold values.
    """
    first = [cell.strip() for cell in rows[0]]
    named = [cell.lower() for cell in first if cell]
    if not named or any(map(_is_value, named)):
        return False
    return len(set(named)) == len(named) or any(_is_value(cell.strip()) for row in rows[1:] for cell in row)


def _is_value(cell: str) -> bool:
    return propose_type(pa.array([cell])).type is not None
