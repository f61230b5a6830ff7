"""What a review says, before it is HTML or Markdown."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Code:
    """Text as a machine has it: a name, an ARN, a key."""

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


def codes(*texts: str) -> Cell:
    """Each text on a line of its own."""
    return tuple(Code(text) for text in texts)


def lines(cell: Cell) -> tuple[Line, ...]:
    """A cell's lines, however many it has."""
    return cell if isinstance(cell, tuple) else (cell,)
