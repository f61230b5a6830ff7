"""Find the rows of CSV: numpy counts the quotes, and single steps follow where a quote is misplaced."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from lakewriter.source.files.blocks import MOST_ROW_BYTES

Offsets = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

LF: Final = 10
CR: Final = 13
_MOST_DOUBTS: Final = 256
"""The limit for rows of a block that are stepped one by one; beyond it all following rows are."""
OPEN_QUOTE: Final = "a quote is opened and not closed"
BEHIND_QUOTE: Final = "text follows a closing quote"
LINE_END: Final = "a line end outside quotes differs from the file's"


@dataclass(frozen=True)
class Grammar:
    """The syntax of one file's rows: ASCII bytes, except for a ``sep`` of any length.

    ``quote``, ``escape`` and ``comment`` are empty if there is none; an ``escape`` differs from the quote. Rows end
    with ``end``: CR, LF or CRLF; if it is blank, with LF or CRLF. With ``trims`` blanks around fields do not count.
    """

    sep: bytes = b","
    quote: bytes = b'"'
    escape: bytes = b""
    comment: bytes = b""
    end: bytes = b""
    trims: bool = False

    @property
    def by_cr(self) -> bool:
        """True if rows end with CR alone."""
        return self.end == b"\r"

    @property
    def line_end(self) -> int:
        """The last byte of a row's end."""
        return CR if self.by_cr else LF

    @property
    def is_simple(self) -> bool:
        """True if one byte separates a field from its neighbours."""
        return len(self.sep) == 1

    @property
    def needs_more_than_neighbours(self) -> bool:
        """True if a quote's neighbours do not show whether it opens or closes."""
        return not self.is_simple or self.trims or bool(self.escape)

    @cached_property
    def row(self) -> re.Pattern[bytes]:
        """A pattern of a row without faults and its end, which is the group."""
        end = rb"\r" if self.by_cr else rb"\r?\n"
        return re.compile(rb"%b(?:%b%b)*+(%b|\Z)" % (self._field, re.escape(self.sep), self._field, end), re.DOTALL)

    @cached_property
    def field(self) -> re.Pattern[bytes]:
        """A pattern of a field: the first group is text in quotes, the second is text without quotes."""
        return re.compile(self._make_field(b"(", b")"), re.DOTALL)

    @property
    def _field(self) -> bytes:
        return self._make_field(b"(?:", b")")

    def _make_field(self, opens: bytes, closes: bytes) -> bytes:
        blank = rb"[ \t]*+" if self.trims else b""
        sep = re.escape(self.sep)
        bare = rb"(?:(?!%b)[^\r\n])*+" % sep if len(self.sep) > 1 else rb"[^\r\n%b]*+" % _escape_in_class(self.sep)
        if not self.quote:
            return rb"(?:(?!)%b%b|%b%b%b)" % (opens, closes, opens, bare, closes)
        quote = re.escape(self.quote)
        quoted = rb"%b%b%b(?:%b)*+%b%b%b" % (blank, quote, opens, self._within, closes, quote, blank)
        return rb"(?:%b|%b(?!%b)%b%b%b)" % (quoted, blank, quote, opens, bare, closes)

    @cached_property
    def closing(self) -> re.Pattern[bytes]:
        """A pattern of the text in quotes, from behind the opening quote to behind the closing one."""
        return re.compile(rb"(?:%b)*+%b" % (self._within, re.escape(self.quote)), re.DOTALL)

    @property
    def _within(self) -> bytes:
        """A pattern of a part of the text in quotes."""
        quote, mark = re.escape(self.quote), re.escape(self.escape)
        if self.escape:
            return rb"[^%b%b]++|%b[%b%b]|%b%b|%b" % (quote, mark, mark, quote, mark, quote, quote, mark)
        return rb"[^%b]++|%b%b" % (quote, quote, quote)


def _escape_in_class(byte: bytes) -> bytes:
    return b"\\" + byte if byte in b"\\]^-" else byte


@dataclass(frozen=True)
class Rows:
    """The rows of a block: the ``starts`` and ``ends`` without line ends, and ``rest``, the start of the first row that
    is not whole.

    ``doubtful`` rows have to be parsed one by one; ``faults`` names the faults of some of them.
    """

    starts: Offsets
    ends: Offsets
    doubtful: Flags
    rest: int
    faults: dict[int, str]


class _RowList:
    """A list of rows that grows."""

    def __init__(self) -> None:
        self.starts: list[Offsets] = []
        self.ends: list[Offsets] = []
        self.doubts: list[int] = []
        self.faults: dict[int, str] = {}
        self.count = 0

    def add(self, start: int, line_ends: Offsets) -> None:
        if len(line_ends):
            self.starts.append(np.concatenate(([start], line_ends[:-1] + 1)))
            self.ends.append(line_ends)
            self.count += len(line_ends)

    def add_one(self, start: int, row: "Row") -> None:
        self.starts.append(np.array([start]))
        self.ends.append(np.array([row.end]))
        self.doubts.append(self.count)
        if row.fault is not None:
            self.faults[self.count] = row.fault
        self.count += 1

    def make(self, rest: int) -> Rows:
        none = np.zeros(0, np.int64)
        starts = np.concatenate([none, *self.starts]).astype(np.int64)
        ends = np.concatenate([none, *self.ends]).astype(np.int64)
        doubtful = np.zeros(self.count, np.bool_)
        doubtful[self.doubts] = True
        return Rows(starts, ends, doubtful, rest, self.faults)


def find_rows(data: bytes, grammar: Grammar, *, at_end: bool) -> Rows:
    """Return the rows of a block that begins with a row; ``at_end`` means that no bytes follow the block."""
    rows_so_far = _RowList()
    rest, is_done = 0, False
    if not _needs_single_steps(data, grammar):
        rest, is_done = _add_by_quotes(data, grammar, at_end, rows_so_far)
    while not is_done and rest < len(data):
        row = step(data, grammar, rest, at_end=at_end)
        if row is None:
            break
        rows_so_far.add_one(rest, row)
        rest = row.next
    rows = _trim_line_ends(data, grammar, rows_so_far.make(rest))
    if grammar.escape and grammar.escape in data and grammar.quote in data:
        _doubt(rows, np.flatnonzero(np.frombuffer(data, np.uint8) == grammar.escape[0]))
    return rows


def _doubt(rows: Rows, offsets: Offsets) -> None:
    """Mark the rows that contain these bytes as doubtful."""
    numbers = np.searchsorted(rows.starts, offsets, side="right") - 1
    rows.doubtful[numbers[(numbers >= 0) & (offsets < rows.rest)]] = True


def _needs_single_steps(data: bytes, grammar: Grammar) -> bool:
    """Return True if the quotes alone do not determine the block's rows."""
    if not grammar.is_simple or (grammar.trims and grammar.quote and grammar.quote in data):
        return True
    if not grammar.comment or not grammar.quote:
        return False
    pattern = rb"(?:\A|[\r\n])%b[^\r\n]*%b" % (re.escape(grammar.comment), re.escape(grammar.quote))
    return re.search(pattern, data) is not None


def _add_by_quotes(data: bytes, grammar: Grammar, at_end: bool, rows: _RowList) -> tuple[int, bool]:
    """Add the rows up to the first that is not whole, or to the point from which single steps are quicker.

    Return the offset behind them, and True if no row is left.
    """
    array = np.frombuffer(data, np.uint8)
    line_ends = np.flatnonzero(array == grammar.line_end)
    quotes = _find_quotes(data, array, grammar)
    doubts = _find_doubts(array, quotes, grammar)
    position = first = 0
    while len(rows.doubts) < _MOST_DOUBTS:
        # Up to the first misplaced quote, opening and closing quotes alternate.
        ahead = doubts[first & 1]
        next_doubt = np.searchsorted(ahead, first)
        stop = int(ahead[next_doubt]) if next_doubt < len(ahead) else len(quotes)
        limit = int(quotes[stop]) if stop < len(quotes) else len(data)
        span = line_ends[np.searchsorted(line_ends, position) : np.searchsorted(line_ends, limit)]
        span = span[(np.searchsorted(quotes, span) - first) & 1 == 0]
        rows.add(position, span)
        position = int(span[-1]) + 1 if len(span) else position
        if stop == len(quotes):
            is_open = (len(quotes) - first) & 1
            if position == len(data) or not (at_end or len(data) - position > MOST_ROW_BYTES):
                return position, True
            if not is_open and at_end:
                rows.add(position, np.array([len(data)]))
                return len(data), True
        row = step(data, grammar, position, at_end=at_end)
        if row is None:
            return position, True
        rows.add_one(position, row)
        position, first = row.next, int(np.searchsorted(quotes, row.next))
    return position, False


def _find_quotes(data: bytes, array: npt.NDArray[np.uint8], grammar: Grammar) -> Offsets:
    """Return the offsets of quotes that are not escaped."""
    if not grammar.quote or grammar.quote not in data:
        return np.zeros(0, np.int64)
    quotes = np.flatnonzero(array == grammar.quote[0])
    if not grammar.escape or grammar.escape not in data:
        return quotes
    mark = grammar.escape[0]
    is_escaped = np.zeros(len(quotes), np.bool_)
    running, distance = np.arange(len(quotes)), 1
    while len(running):
        before = quotes[running] - distance
        running = running[(before >= 0) & (array[before] == mark)]
        is_escaped[running] = ~is_escaped[running]
        distance += 1
    return quotes[~is_escaped]


def _find_doubts(array: npt.NDArray[np.uint8], quotes: Offsets, grammar: Grammar) -> tuple[Offsets, Offsets]:
    """Return the numbers of misplaced quotes: if the even ones open, and if the odd ones do."""
    if not len(quotes):
        return quotes, quotes
    before, behind = array[np.maximum(quotes - 1, 0)], array[np.minimum(quotes + 1, len(array) - 1)]
    is_adjacent = np.diff(quotes) == 1
    sep, end = grammar.sep[0], grammar.line_end
    may_open = (before == sep) | (before == end) | (quotes == 0)
    may_open[1:] |= is_adjacent
    may_close = (behind == sep) | (behind == CR) | (behind == LF) | (quotes == len(array) - 1)
    may_close[:-1] |= is_adjacent
    even = np.arange(len(quotes)) & 1 == 0
    return np.flatnonzero(np.where(even, ~may_open, ~may_close)), np.flatnonzero(np.where(even, ~may_close, ~may_open))


@dataclass(frozen=True)
class Row:
    """One row: the offset of its line end's last byte, the start of the next row, and its fault."""

    end: int
    next: int
    fault: str | None = None


def step(data: bytes, grammar: Grammar, start: int, *, at_end: bool) -> Row | None:
    """Return the row that begins at ``start``; None if it is not whole and the block is not the last."""
    if grammar.comment and data.startswith(grammar.comment, start):
        return _end_line(data, grammar, start, at_end)
    row = grammar.row.match(data, start)
    if row is None:
        return _step_by_fields(data, grammar, start, at_end)
    if row.end() == len(data) and not at_end and not row[1]:
        return None
    return Row(row.end() - 1 if row[1] else row.end(), row.end())


def find_line_end(text: bytes, quote: bytes, *, is_whole: bool) -> bytes:
    """Return the first line end outside quotes of a text, blank if there is none.

    ``is_whole`` means that no bytes follow the text.
    """
    if quote:
        mark = re.escape(quote)
        text = re.sub(rb"%b[^%b]*%b" % (mark, mark, mark), b"", text)
    match = re.search(rb"\r\n|\n|\r" if is_whole else rb"\r\n|\n|\r(?!\Z)", text)
    return b"" if match is None else match[0]


def _end_line(data: bytes, grammar: Grammar, start: int, at_end: bool, fault: str | None = None) -> Row | None:
    end = data.find(b"\r" if grammar.by_cr else b"\n", start)
    if end < 0:
        return Row(len(data), len(data), fault) if at_end else None
    return Row(end, end + 1, fault)


def _step_by_fields(data: bytes, grammar: Grammar, start: int, at_end: bool) -> Row | None:
    """Return a row that has a fault, up to the line end behind its last field."""
    position, fault = start, None
    opens = re.compile(rb"[ \t]*+%b" % re.escape(grammar.quote) if grammar.trims else re.escape(grammar.quote))
    stops = re.compile(rb"%b|\r\n?|\n" % re.escape(grammar.sep))
    while True:
        if grammar.quote and (opening := opens.match(data, position)):
            closing = grammar.closing.match(data, opening.end())
            if closing is None:
                is_last = at_end or len(data) - start > MOST_ROW_BYTES
                return _end_line(data, grammar, start, at_end, OPEN_QUOTE) if is_last else None
            position = closing.end()
            stop = stops.search(data, position)
            behind = data[position : stop.start() if stop else len(data)]
            fault = fault or (BEHIND_QUOTE if (behind.strip(b" \t") if grammar.trims else behind) else None)
        else:
            stop = stops.search(data, position)
        while stop is not None and stop[0] != grammar.sep and not _is_row_end(stop[0], grammar):
            fault = fault or LINE_END
            stop = stops.search(data, stop.end() if stop[0] != b"\r\n" else stop.start() + 1)
        if stop is None or (stop.end() == len(data) and not at_end and stop[0] == b"\r"):
            return Row(len(data), len(data), fault) if at_end else None
        if stop[0] != grammar.sep:
            end = stop.start() if grammar.by_cr else stop.end() - 1
            return Row(end, end + 1, fault or LINE_END)
        position = stop.end()


def _is_row_end(text: bytes, grammar: Grammar) -> bool:
    return text.startswith(b"\r") if grammar.by_cr else text.endswith(b"\n")


def _trim_line_ends(data: bytes, grammar: Grammar, rows: Rows) -> Rows:
    """Remove the CR of CRLF from the rows, and mark rows with a line end of another kind as doubtful."""
    other = b"\n" if grammar.by_cr else b"\r"
    if not len(rows.starts) or (other not in data and grammar.end != b"\r\n"):
        return rows
    array = np.frombuffer(data, np.uint8)
    offsets = np.flatnonzero(array == other[0])
    if not grammar.by_cr:
        before, at = np.maximum(rows.ends - 1, 0), np.minimum(rows.ends, len(data) - 1)
        is_ended = (rows.ends < len(data)) & (array[at] == LF)
        is_crlf = is_ended & (rows.ends > rows.starts) & (array[before] == CR)
        rows.ends[is_crlf] -= 1
        if grammar.end:
            strange = np.flatnonzero(is_crlf if grammar.end == b"\n" else is_ended & ~is_crlf)
            rows.doubtful[strange] = True
            rows.faults.update({number: LINE_END for number in strange.tolist() if number not in rows.faults})
        offsets = offsets[(offsets + 1 == len(data)) | (array[np.minimum(offsets + 1, len(data) - 1)] != LF)]
    _doubt(rows, offsets)
    return rows
