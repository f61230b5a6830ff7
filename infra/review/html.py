"""Render a page as one self-contained HTML file that prints well."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from infra.review.page import Cell, Code, Line, Page, Section, Table, list_lines


def render(page: Page) -> str:
    """Render the whole document."""
    style = Path(__file__).with_name("style.css").read_text("utf-8")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(page.title)}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            f"<h1>{escape(page.title)}</h1>",
            *_render_summary(page),
            *(f'<p class="note">{escape(note)}</p>' for note in page.notes),
            *(line for section in page.sections for line in _render_section(section)),
            "</body>",
            "</html>",
            "",
        ]
    )


def _render_summary(page: Page) -> Iterator[str]:
    yield '<dl class="summary">'
    for term, value in page.summary:
        yield f"<div><dt>{escape(term)}</dt><dd>{escape(value)}</dd></div>"
    yield "</dl>"


def _render_section(section: Section) -> Iterator[str]:
    yield "<section>"
    yield f"<h2>{escape(section.title)}</h2>"
    if section.text:
        yield f"<p>{_escape_with_breaks(section.text)}</p>"
    for table in section.tables:
        yield from _render_table(table)
    yield "</section>"


def _render_table(table: Table) -> Iterator[str]:
    kind = "fixed" if table.widths else "rows" if table.columns else "facts"
    yield f'<table class="{kind}">'
    if table.caption:
        yield f"<caption>{_escape_with_breaks(table.caption)}</caption>"
    if table.widths:
        yield f"<colgroup>{''.join(map(_render_width, table.widths))}</colgroup>"
    if table.columns:
        yield f"<thead><tr>{''.join(f'<th>{escape(column)}</th>' for column in table.columns)}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        yield f"<tr>{''.join(_render_cells(table, row))}</tr>"
    yield "</tbody>"
    yield "</table>"


def _render_cells(table: Table, row: tuple[Cell, ...]) -> Iterator[str]:
    """Render a row; each cell says its column, which a narrow screen shows in place of the table's head."""
    if not table.columns:
        first, *others = row
        yield f'<th scope="row">{_render_cell(first)}</th>'
        yield from (f"<td>{_render_cell(cell)}</td>" for cell in others)
        return
    for column, cell in zip(table.columns, row, strict=True):
        named = f' data-column="{escape(column)}"' if column else ""
        yield f"<td{named}>{_render_cell(cell)}</td>"


def _render_width(per_cent: int) -> str:
    return f'<col style="width: {per_cent}%">'


def _render_cell(cell: Cell) -> str:
    return "<br>".join(_render_line(line) for line in list_lines(cell))


def _render_line(line: Line) -> str:
    if isinstance(line, str):
        return escape(line)
    return (
        f"<code>{_escape_with_breaks(line.text).replace('.', '.<wbr>')}</code>"
        if isinstance(line, Code)
        else f"<strong>{escape(line.text)}</strong>"
    )


def _escape_with_breaks(text: str) -> str:
    """Escape ``text`` and allow line breaks after slashes."""
    return escape(text).replace("/", "/<wbr>")
