"""Render a page as Markdown for a pull request."""

import re
from collections.abc import Iterator
from typing import Final

from infra.review.page import Cell, Line, Page, Section, Strong, Table, list_lines

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~])")
LONG: Final = 12
"""The most rows of a section that are not folded."""


def render(page: Page) -> str:
    """Render the whole document."""
    parts = [f"# {_escape(page.title)}", _render_table(Table((), page.summary))]
    parts += [f"> **Note:** {_escape(note)}" for note in page.notes]
    for section in page.sections:
        parts += _render_section(section)
    return "\n\n".join(parts) + "\n"


def _render_section(section: Section) -> Iterator[str]:
    yield f"## {_escape(section.title)}"
    if section.text:
        yield _escape(section.text)
    folded = sum(len(table.rows) for table in section.tables) > LONG
    if folded:
        yield "<details><summary>Show</summary>"
    for table in section.tables:
        if table.caption:
            yield f"**{_escape(table.caption)}**"
        yield _render_table(table)
    if folded:
        yield "</details>"


def _render_table(table: Table) -> str:
    """Render a table; without columns it gets an empty head, which Markdown requires."""
    width = len(table.columns or table.rows[0])
    head = [_escape(column) for column in table.columns] or [""] * width
    rows = [head, ["---"] * width, *([_render_cell(cell) for cell in row] for row in table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _render_cell(cell: Cell) -> str:
    return "<br>".join(_render_line(line) for line in list_lines(cell))


def _render_line(line: Line) -> str:
    if isinstance(line, str):
        return _escape(line)
    if isinstance(line, Strong):
        return f"**{_escape(line.text)}**"
    # A bar ends a cell even inside of code.
    return f"`{line.text.replace('|', chr(92) + '|')}`" if line.text else ""


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
