"""Fit text into the columns of a terminal: names are shortened in their middle, numbers never."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ELLIPSIS: Final = "…"
GAP: Final = "  "
_LEAST_NAME: Final = 20
"""Columns that a shortened name keeps."""


@dataclass(frozen=True)
class Column:
    """A column of text. If columns do not fit, the highest ``weight`` is left out first; a column of weight 0 stays."""

    title: str
    cells: tuple[str, ...]
    weight: int = 0
    right: bool = False

    @property
    def width(self) -> int:
        """The width of its longest text."""
        return max(map(len, (self.title, *self.cells)))


def shorten(text: str, width: int) -> str:
    """Shorten ``text`` to so many columns: its middle is left out, since names differ at their ends."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return text[:head] + ELLIPSIS + text[len(text) - (width - 1 - head) :]


def fit_columns(names: Column, others: Sequence[Column], width: int | None) -> tuple[list[Column], list[str]]:
    """Return the columns that fit beside ``names``, and the names as they then fit; a ``width`` of None sets no
    limit."""
    columns = list(others)
    most = names.width
    if width is not None:
        least = min(most, _LEAST_NAME)
        while columns and _measure(columns) + least > width and (last := max(columns, key=lambda c: c.weight)).weight:
            columns.remove(last)
        most = max(least, min(most, width - _measure(columns)))
    return columns, [shorten(name, most).ljust(most) for name in (names.title, *names.cells)]


def lay_out(column: Column) -> list[str]:
    """Return the title and the cells, each as wide as the column."""
    return [text.rjust(column.width) if column.right else text.ljust(column.width) for text in _texts(column)]


def _texts(column: Column) -> tuple[str, ...]:
    return column.title, *column.cells


def _measure(columns: Sequence[Column]) -> int:
    return sum(len(GAP) + column.width for column in columns)
