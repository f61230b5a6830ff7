"""Cut large CSV files at the starts of rows, which a first pass over the quotes of all parts finds."""

import re
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from lakewriter.source.files.csv_rows import CR, LF, Flags, Grammar, Offsets
from lakewriter.source.files.file_reader import Piece, Spread
from lakewriter.source.files.stored_files import StoredFile

_STRIDE: Final = 4 * 1024 * 1024
_COMMENT_BYTES: Final = 64 * 1024
"""The bytes behind a part that are searched for the end of a comment which begins in it."""


@dataclass(frozen=True)
class _Part:
    file: StoredFile
    start: int
    end: int
    grammar: Grammar
    is_first: bool

    @property
    def size(self) -> int:
        """The number of bytes that are read."""
        return self.end - self.start


@dataclass(frozen=True)
class _Start:
    """The start of a part's first row, and the number of line ends before it in the part."""

    offset: int
    lines: int


@dataclass(frozen=True)
class _Scan:
    """The scan of a part of a file, for a part that begins outside quotes, and for one that begins inside.

    It has the start of the first row, None without one, and True if a quote is misplaced. ``is_odd`` means that the
    part has an odd number of quotes: it ends in the other state. ``lines`` counts its line ends.
    """

    first_row: tuple[_Start | None, _Start | None]
    is_doubtful: tuple[bool, bool]
    is_odd: bool
    lines: int


def cut_file(whole: Piece, grammar: Grammar, size: int, spread: Spread) -> list[Piece]:
    """Return the pieces of a file, each of about ``size`` bytes and with whole rows.

    A file stays in one piece if a quote is misplaced or part of a comment. It also stays in one piece if it has a quote
    and the quote's neighbours do not show whether it opens or closes. In these cases the starts of rows depend on all
    bytes before them.
    """
    file, mark = whole.file, whole.layout.charset.mark
    starts = [mark, *range(size, file.size, size)]
    ends = [*starts[1:], file.size]
    parts = [_Part(file, *span, grammar, span[0] == mark) for span in zip(starts, ends, strict=True)]
    pieces, is_inside, lines = [whole], 0, 1
    for scan in spread(_scan, parts):
        if scan.is_doubtful[is_inside]:
            return [whole]
        row = scan.first_row[is_inside]
        if row is not None and row.offset < file.size:
            pieces[-1] = replace(pieces[-1], end=row.offset)
            pieces.append(replace(whole, start=row.offset, first_line=lines + row.lines))
        is_inside ^= scan.is_odd
        lines += scan.lines
    return [whole] if is_inside else [replace(piece, is_whole=False) for piece in pieces]


def _scan(part: _Part) -> _Scan:
    """Check each quote of a part with its neighbours, for both states in which the part may begin."""
    first = part.start if part.is_first else part.start - 1
    data = b"".join(part.file.stream(first, part.end + (_COMMENT_BYTES if part.grammar.comment else 1)))
    array = np.frombuffer(data, np.uint8)
    if _may_mislead(data, part.grammar):
        return _Scan((None, None), (True, True), False, 0)
    rows: list[_Start | None] = [None, None]
    is_doubtful, count, lines = [False, False], 0, 0
    for start in range(part.start, part.end, _STRIDE):
        low, high = start - first, min(start + _STRIDE, part.end) - first
        quotes = _find(array, low, high, part.grammar.quote)
        line_ends = _find(array, low, high, bytes([part.grammar.line_end]))
        may_open, may_close = _find_neighbours(array, quotes, part.grammar)
        is_even = (count + np.arange(len(quotes))) & 1 == 0
        before = count + np.searchsorted(quotes, line_ends)
        for is_inside in (0, 1):
            is_placed = np.where(is_even ^ bool(is_inside), may_open, may_close)
            is_doubtful[is_inside] |= not is_placed.all()
            numbers = np.flatnonzero((before + is_inside) & 1 == 0)
            # The first part begins with a row.
            if rows[is_inside] is None and not part.is_first and len(numbers):
                number = int(numbers[0])
                rows[is_inside] = _Start(first + int(line_ends[number]) + 1, lines + number + 1)
        count += len(quotes)
        lines += len(line_ends)
    return _Scan((rows[0], rows[1]), (is_doubtful[0], is_doubtful[1]), bool(count & 1), lines)


def _may_mislead(data: bytes, grammar: Grammar) -> bool:
    """Return True if the data has a quote whose neighbours do not show whether it opens or closes a field."""
    if not grammar.quote:
        return False
    if grammar.needs_more_than_neighbours and grammar.quote in data:
        return True
    if not grammar.comment:
        return False
    # Inside quotes such a line is not a comment. Without a quote in it, both states read it alike.
    pattern = rb"(?:\A|[\r\n])%b[^\r\n]*(?:%b|\Z)" % (re.escape(grammar.comment), re.escape(grammar.quote))
    return re.search(pattern, data) is not None


def _find(array: npt.NDArray[np.uint8], low: int, high: int, byte: bytes) -> Offsets:
    return np.flatnonzero(array[low:high] == byte[0]) + low if byte else np.zeros(0, np.int64)


def _find_neighbours(array: npt.NDArray[np.uint8], quotes: Offsets, grammar: Grammar) -> tuple[Flags, Flags]:
    """Return masks of the quotes that may open a field and of those that may close one, by the bytes beside them."""
    if not len(quotes):
        return quotes == 0, quotes == 0
    quote, sep = grammar.quote[0], grammar.sep[0]
    before, behind = array[np.maximum(quotes - 1, 0)], array[np.minimum(quotes + 1, len(array) - 1)]
    may_open = np.isin(before, (sep, grammar.line_end, quote)) | (quotes == 0)
    may_close = np.isin(behind, (sep, CR, LF, quote)) | (quotes == len(array) - 1)
    return may_open, may_close
