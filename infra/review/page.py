"""Hold the contents of a review before it is rendered as HTML or Markdown."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Code:
    """Text in a fixed-width font: a name, an ARN, a key."""

    text: str


@dataclass(frozen=True)
class Strong:
    """Text that must not be overlooked."""

    text: str


Line = str | Code | Strong
Cell = Line | tuple[Line, ...]
"""One line, or several under each other."""


@dataclass(frozen=True)
class Table:
    """Rows under ``columns``; a table without columns lists facts: what, and its value."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    widths: tuple[int, ...] = ()
    """Per cent of the page for each column; as the content wants where there are none."""


@dataclass(frozen=True)
class Section:
    """A heading, a sentence or two, and tables."""

    title: str
    text: str
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Page:
    """The whole review; ``notes`` are what a reader must not miss."""

    title: str
    summary: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = field(default=())


def make_codes(*texts: str) -> Cell:
    """Make a cell with one line for each text."""
    return tuple(Code(text) for text in texts)


def list_lines(cell: Cell) -> tuple[Line, ...]:
    """List the lines of a cell."""
    return cell if isinstance(cell, tuple) else (cell,)
