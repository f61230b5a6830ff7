"""A page as Markdown for a pull request."""

import re
from collections.abc import Iterator
from typing import Final

from infra.review.page import Cell, Line, Page, Section, Strong, Table, lines

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~])")
LONG: Final = 12
"""Rows from which a section's tables are folded."""


def render(page: Page) -> str:
    """The whole document."""
    parts = [f"# {_escaped(page.title)}", _table(Table((), page.summary))]
    parts += [f"> **Note:** {_escaped(note)}" for note in page.notes]
    for section in page.sections:
        parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> Iterator[str]:
    yield f"## {_escaped(section.title)}"
    if section.text:
        yield _escaped(section.text)
    folded = sum(len(table.rows) for table in section.tables) > LONG
    if folded:
        yield "<details><summary>Show</summary>"
    for table in section.tables:
        if table.caption:
            yield f"**{_escaped(table.caption)}**"
        yield _table(table)
    if folded:
        yield "</details>"


def _table(table: Table) -> str:
    """A table without columns still needs a head, since Markdown has no other."""
    width = len(table.columns or table.rows[0])
    head = [_escaped(column) for column in table.columns] or [""] * width
    rows = [head, ["---"] * width, *([_cell(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(cell: Cell) -> str:
    return "<br>".join(_line(line) for line in lines(cell))


def _line(line: Line) -> str:
    if isinstance(line, str):
        return _escaped(line)
    if isinstance(line, Strong):
        return f"**{_escaped(line.text)}**"
    # A bar ends a cell even inside of code.
    return f"`{line.text.replace('|', chr(92) + '|')}`" if line.text else ""


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
