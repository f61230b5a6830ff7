"""A page as HTML that stands alone and prints well."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from infra.review.page import Cell, Code, Line, Page, Section, Table, lines


def render(page: Page) -> str:
    """The whole document."""
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
            *_summary(page),
            *(f'<p class="note">{escape(note)}</p>' for note in page.notes),
            *(line for section in page.sections for line in _section(section)),
            "</body>",
            "</html>",
            "",
        ]
    )


def _summary(page: Page) -> Iterator[str]:
    yield '<dl class="summary">'
    for term, value in page.summary:
        yield f"<div><dt>{escape(term)}</dt><dd>{escape(value)}</dd></div>"
    yield "</dl>"


def _section(section: Section) -> Iterator[str]:
    yield "<section>"
    yield f"<h2>{escape(section.title)}</h2>"
    if section.text:
        yield f"<p>{_soft(section.text)}</p>"
    for table in section.tables:
        yield from _table(table)
    yield "</section>"


def _table(table: Table) -> Iterator[str]:
    kind = "fixed" if table.widths else "rows" if table.columns else "facts"
    yield f'<table class="{kind}">'
    if table.caption:
        yield f"<caption>{_soft(table.caption)}</caption>"
    if table.widths:
        yield f"<colgroup>{''.join(map(_width, table.widths))}</colgroup>"
    if table.columns:
        yield f"<thead><tr>{''.join(f'<th>{escape(column)}</th>' for column in table.columns)}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        first, *others = row
        head = f"<td>{_cell(first)}</td>" if table.columns else f'<th scope="row">{_cell(first)}</th>'
        yield f"<tr>{head}{''.join(f'<td>{_cell(cell)}</td>' for cell in others)}</tr>"
    yield "</tbody>"
    yield "</table>"


def _width(per_cent: int) -> str:
    return f'<col style="width: {per_cent}%">'


def _cell(cell: Cell) -> str:
    return "<br>".join(_line(line) for line in lines(cell))


def _line(line: Line) -> str:
    if isinstance(line, str):
        return escape(line)
    return (
        f"<code>{_soft(line.text).replace('.', '.<wbr>')}</code>"
        if isinstance(line, Code)
        else f"<strong>{escape(line.text)}</strong>"
    )


def _soft(text: str) -> str:
    """``text``, which may break behind a slash."""
    return escape(text).replace("/", "/<wbr>")
