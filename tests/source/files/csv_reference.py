"""RFC 4180 as a machine that takes one character after the other: what the reader of CSV is compared with."""

from dataclasses import dataclass, field

OPEN, OTHER = "an open quote", "text behind a quote, or another line end"


@dataclass
class Row:
    """One row: where it begins, its fields, None for nothing between separators, and what is wrong with it."""

    start: int
    fields: list[str | None] = field(default_factory=list)
    fault: str | None = None
    is_blank: bool = False


def read_rows(text: str, line_end: str) -> list[Row]:
    """Return the rows of a text whose rows end with ``line_end``; one whose quote stays open ends with its line."""
    by_cr = line_end == "\r"
    rows: list[Row] = []
    start = 0
    while start < len(text):
        row, end = _read_row(text, start, by_cr)
        ended = text[:end]
        is_strange = ended.endswith("\r\n") != (line_end == "\r\n") if line_end and ended.endswith("\n") else False
        if is_strange and not by_cr:
            row.fault = row.fault or OTHER
        if row.fault == OPEN:
            line = text.find("\r" if by_cr else "\n", start)
            end = len(text) if line < 0 else line + 1
        rows.append(row)
        start = end
    return rows


def _read_row(text: str, start: int, by_cr: bool) -> tuple[Row, int]:
    row, place = Row(start), start
    while True:
        value, place = _read_field(text, place, by_cr, row)
        if row.fault == OPEN:
            return row, place
        row.fields.append(value)
        if place < len(text) and text[place] == ",":
            place += 1
            continue
        row.is_blank = not text[start:place].strip(" \t")
        return row, place + _measure_end(text, place, by_cr)


def _measure_end(text: str, place: int, by_cr: bool) -> int:
    """Return the length of the line end at a place, 0 without one."""
    if by_cr:
        return int(text.startswith("\r", place))
    return 2 if text.startswith("\r\n", place) else int(text.startswith("\n", place))


def _read_field(text: str, place: int, by_cr: bool, row: Row) -> tuple[str | None, int]:
    quoted: str | None = None
    if text.startswith('"', place):
        quoted, place = _read_quoted(text, place + 1)
        if quoted is None:
            row.fault = OPEN
            return None, place
    behind = ""
    while place < len(text) and text[place] != "," and not _measure_end(text, place, by_cr):
        if text[place] in "\r\n":
            row.fault = row.fault or OTHER
        behind += text[place]
        place += 1
    if quoted is not None and behind:
        row.fault = row.fault or OTHER
    return (quoted if quoted is not None else behind or None), place


def _read_quoted(text: str, place: int) -> tuple[str | None, int]:
    """Return what stands in quotes and where it ends; None where the quote is not closed."""
    value = ""
    while place < len(text):
        if text[place] == '"' and not text.startswith('""', place):
            return value, place + 1
        place += text[place] == '"'
        value += text[place]
        place += 1
    return None, place
