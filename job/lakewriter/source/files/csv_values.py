"""The fields of CSV rows as columns of text: by Arrow where rows are as they should be, else row by row."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as pt

from lakewriter.source.files.charsets import Charset, explain_bad_text, show_text
from lakewriter.source.files.csv_rows import CR, LF, Flags, Grammar, Places, Rows, step
from lakewriter.source.files.file_reader import Fault
from lakewriter.source.files.typed import may_write_small_numbers

_BLANKS: Final = b" \t"
_SPARE: Final = 64
_MINUS: Final = ord("-")
_LOWER: Final = 0x20
"""The bit by which ASCII's small letters differ from its capitals."""

Fields = Sequence[str | None]


@dataclass(frozen=True)
class Block:
    """A block of plain text, its rows, and what they are to be: so many ``fields`` each.

    ``numbers`` has the types of those fields that are to be numbers, by their places, and ``null`` is a text that is a
    null; both only help Arrow to numbers without a detour over text.
    """

    data: bytes
    rows: Rows
    grammar: Grammar
    charset: Charset
    fields: int
    numbers: Mapping[int, pa.DataType] = field(default_factory=dict)
    null: str | None = None

    def get_row(self, number: int) -> bytes:
        """Return one row without its line end."""
        return self.data[self.rows.starts[number] : self.rows.ends[number]]


@dataclass(frozen=True)
class Values:
    """Rows of a block: where each begins in it, its ``columns``, null where nothing stands between separators, and what
    is wrong with bad rows by their numbers, whose columns are null. Columns are text; either all of the block's
    ``numbers`` are of their types, or none is."""

    starts: Places
    columns: list[pa.Array]
    faults: dict[int, Fault]


def select_rows(data: bytes, rows: Rows, grammar: Grammar, fields: int) -> tuple[Flags, int]:
    """Return which rows count, and the number of lines of blanks, which do not where a row has several fields; nor do
    comments."""
    is_row = np.ones(len(rows.starts), np.bool_)
    if not len(is_row):
        return is_row, 0
    is_filled = rows.ends > rows.starts
    first = np.frombuffer(data, np.uint8)[np.minimum(rows.starts, len(data) - 1)]
    if grammar.comment:
        is_row &= ~(is_filled & (first == grammar.comment[0]))
    count = int(is_row.sum())
    if fields > 1:
        is_row &= is_filled
        for number in np.flatnonzero(is_row & ((first == _BLANKS[0]) | (first == _BLANKS[1]))).tolist():
            row = data[rows.starts[number] : rows.ends[number]]
            is_row[number] = bool(row.strip(_BLANKS)) or grammar.sep in row
    return is_row, count - int(is_row.sum())


def parse_rows(block: Block, is_row: Flags) -> Values:
    """Return the values of the rows that count."""
    text_faults = _find_bad_text(block, is_row)
    is_good = is_row & ~block.rows.doubtful
    is_good[list(text_faults)] = False
    doubtful = np.flatnonzero(is_row & ~is_good).tolist()
    parsed = {number: _parse_one(block, number, text_faults.get(number)) for number in doubtful}
    types = block.numbers if all(isinstance(row, Fault) for row in parsed.values()) and has_plain_numbers(block) else {}
    numbers, columns, others = _parse_by_arrow(block, is_good, types)
    parsed |= {number: _parse_one(block, number, None) for number in others}
    if not parsed:
        return Values(block.rows.starts[numbers], columns, {})
    if types and not all(isinstance(row, Fault) for row in parsed.values()):
        return parse_rows(replace(block, numbers={}), is_row)
    return _merge(block, numbers, columns, dict(sorted(parsed.items())))


def has_plain_numbers(block: Block) -> bool:
    """Return False if a field may be taken as a number by Arrow's reader that is none as text: one in hexadecimal, or
    with blanks around it."""
    if not block.numbers or block.grammar.trims:
        return False
    array = np.frombuffer(block.data, np.uint8)
    edges = np.zeros(256, np.bool_)
    edges[[*block.grammar.sep, *block.grammar.quote, LF, CR]] = True
    for blank in _BLANKS:
        if bytes([blank]) not in block.data:
            continue
        if bytes([blank]) == block.grammar.sep:
            if block.grammar.quote and block.grammar.quote in block.data:
                return False
        elif _is_beside(array, np.flatnonzero(array == blank), edges):
            return False
    # Comparing every byte takes a quarter of what looking for two in a row does.
    letters = np.flatnonzero((array | _LOWER) == ord("x"))
    zeros = letters[array[np.maximum(letters - 1, 0)] == ord("0")] - 1
    edges[_MINUS] = True
    return not ((zeros == 0) | edges[array[np.maximum(zeros - 1, 0)]]).any()


def _is_beside(array: npt.NDArray[np.uint8], places: Places, edges: Flags) -> bool:
    """Return True if one of the bytes at ``places`` is the first or last one or has one of ``edges`` beside it."""
    if not len(places):
        return False
    inner = places[0] > 0 and places[-1] < len(array) - 1
    return not inner or bool(edges[array[places - 1]].any() or edges[array[places + 1]].any())


def _find_bad_text(block: Block, is_row: Flags) -> dict[int, str]:
    """Return what is wrong with rows that have bytes which are no text."""
    try:
        if not block.data.isascii():
            block.data.decode(block.charset.text_name)
        return {}
    except UnicodeDecodeError:
        pass
    high = np.flatnonzero(np.frombuffer(block.data, np.uint8) >= 0x80)
    candidates = np.unique(np.searchsorted(block.rows.starts, high, side="right") - 1)
    faults = {}
    for number in candidates[candidates >= 0].tolist():
        if is_row[number] and (reason := explain_bad_text(block.get_row(number), block.charset)):
            faults[number] = reason
    return faults


def _parse_by_arrow(
    block: Block, is_good: Flags, types: Mapping[int, pa.DataType]
) -> tuple[Places, list[pa.Array], list[int]]:
    """Return the numbers and the columns of good rows, and the numbers of those that have other fields.

    Without values that are none of their ``types`` the columns have these types.
    """
    numbers = np.flatnonzero(is_good)
    nothing = numbers[:0], [pa.nulls(0, pa.string())] * block.fields, numbers.tolist()
    if not len(numbers) or not block.grammar.is_simple:
        return nothing
    text = _join_rows(block, numbers)
    text = block.charset.to_utf8(text) if block.charset.is_plain else text
    others: list[int] = []

    def leave_out(row: pa.csv.InvalidRow) -> str:
        others.append(row.number - 1)
        return "skip"

    table = _call_arrow(text, block, leave_out, types) if types else None
    if table is None or not all(_is_exact(table.column(place), text) for place in types):
        others.clear()
        table = _call_arrow(text, block, leave_out, {})
    if table is None:
        return nothing
    if table.num_rows + len(others) != len(numbers):
        # Arrow sees other rows than the scan: single steps decide.
        return nothing
    columns = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table]
    if block.grammar.trims:
        trimmed = [pc.utf8_trim(column, " \t") for column in columns]
        columns = [pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column) for column in trimmed]
    return np.delete(numbers, others), columns, numbers[others].tolist()


def _call_arrow(
    text: bytes, block: Block, leave_out: Callable[[pa.csv.InvalidRow], str], types: Mapping[int, pa.DataType]
) -> pa.Table | None:
    """Return the fields of all rows, text but for those with other ``types``; None where Arrow refuses one."""
    names = [f"c{place}" for place in range(block.fields)]
    grammar = block.grammar
    try:
        return pa.csv.read_csv(
            pa.BufferReader(text),
            pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=2 * len(text) + _SPARE),
            pa.csv.ParseOptions(
                delimiter=grammar.sep.decode(),
                quote_char=grammar.quote.decode() or False,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=leave_out,
            ),
            pa.csv.ConvertOptions(
                check_utf8=False,
                column_types={name: types.get(place, pa.string()) for place, name in enumerate(names)},
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""] if block.null is None or not types else ["", block.null],
            ),
        )
    except pa.ArrowInvalid:
        return None


def _is_exact(column: pa.ChunkedArray, text: bytes) -> bool:
    """Return False if numbers may be others than those in ``text``: what is beyond a double is infinite or zero."""
    if not pt.is_floating(column.type):
        return True
    if pc.all(pc.is_finite(column)).as_py() is False:
        return False
    return pc.any(pc.equal(column, 0)).as_py() is not True or not may_write_small_numbers(text)


def _join_rows(block: Block, numbers: Places) -> bytes:
    """Return the rows with these numbers, one behind the other."""
    rows = block.rows
    if len(numbers) == len(rows.starts):
        text = block.data[int(rows.starts[0]) : rows.rest]
        # Without a line end behind it Arrow takes a last field without a value for an empty text.
        return text if rows.ends[-1] < rows.rest else text + b"\n"
    # Rows that follow each other are taken at once.
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    firsts = numbers[np.concatenate(([0], breaks + 1))]
    lasts = numbers[np.concatenate((breaks, [len(numbers) - 1]))]
    spans = zip(rows.starts[firsts].tolist(), rows.ends[lasts].tolist(), strict=True)
    return b"\n".join([*(block.data[start:end] for start, end in spans), b""])


def _parse_one(block: Block, number: int, text_fault: str | None) -> Fields | Fault:
    row, grammar = block.get_row(number), block.grammar
    reason = block.rows.faults.get(number) or text_fault
    if reason is None and ((match := grammar.row.match(row)) is None or match.end() != len(row)):
        taken = step(row, grammar, 0, at_end=True)
        reason = (taken.fault if taken else None) or "it is no row of CSV"
    if reason is None:
        values = split_row(row, grammar)
        if len(values) == block.fields:
            return [value if value is None else value.decode(block.charset.text_name) for value in values]
        reason = f"it has {len(values)} field{'s'[: len(values) != 1]}, expected {block.fields}"
    return Fault(reason, show_text(row, block.charset))


def list_first_rows(text: bytes, grammar: Grammar, charset: Charset, most: int, *, is_whole: bool) -> list[list[str]]:
    """Return the fields of the first rows without a fault, blank for nothing; comments and blank lines are none.

    ``is_whole`` says that nothing follows the text, else a last row that is not whole is left out.
    """
    rows: list[list[str]] = []
    start = 0
    while len(rows) < most and start < len(text) and (row := step(text, grammar, start, at_end=is_whole)) is not None:
        line = text[start : row.end].removesuffix(b"\r")
        is_comment = bool(grammar.comment) and line.startswith(grammar.comment)
        if row.fault is None and line.strip() and not is_comment:
            rows.append([show_text(cell or b"", charset) for cell in split_row(line, grammar)])
        start = row.next
    return rows


def split_row(row: bytes, grammar: Grammar) -> list[bytes | None]:
    """Return the fields of a row that has no fault, None where nothing stands between separators."""
    values: list[bytes | None] = []
    position = 0
    while True:
        found = grammar.field.match(row, position)
        assert found is not None
        quoted, bare = found.groups()
        if quoted is not None:
            values.append(_unescape(quoted, grammar))
        else:
            text = bare.rstrip(_BLANKS) if grammar.trims else bare
            values.append(text or None)
        position = found.end()
        if position >= len(row):
            return values
        position += len(grammar.sep)


def _unescape(text: bytes, grammar: Grammar) -> bytes:
    if grammar.escape and grammar.escape in text:
        mark, quote = re.escape(grammar.escape), re.escape(grammar.quote)
        return re.sub(rb"%b(%b|%b)|%b(%b)" % (mark, mark, quote, quote, quote), rb"\1\2", text)
    return text.replace(grammar.quote * 2, grammar.quote)


def _merge(block: Block, numbers: Places, columns: Sequence[pa.Array], parsed: Mapping[int, Fields | Fault]) -> Values:
    """Bring rows that Arrow has parsed and single ones into their order."""
    merged = np.concatenate((numbers, np.array(list(parsed), np.int64)))
    order = np.argsort(merged, kind="stable")
    taken = pa.array(order)
    nothing: Fields = [None] * block.fields
    values = [nothing if isinstance(row, Fault) else row for row in parsed.values()]
    whole = [
        pa.concat_arrays([column, pa.array([row[place] for row in values], column.type)]).take(taken)
        for place, column in enumerate(columns)
    ]
    places = {number: place for place, number in enumerate(merged[order].tolist())}
    faults = {places[number]: row for number, row in parsed.items() if isinstance(row, Fault)}
    return Values(block.rows.starts[merged[order]], whole, faults)
