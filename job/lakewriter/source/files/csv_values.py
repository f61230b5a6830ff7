"""Convert the fields of CSV rows to columns of text: with Arrow for valid rows, else row by row."""

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
from lakewriter.source.files.csv_rows import CR, LF, Flags, Grammar, Offsets, Rows, step
from lakewriter.source.files.declared_types import LOWER, MINUS, may_write_small_numbers
from lakewriter.source.files.file_reader import Fault

_BLANKS: Final = b" \t"
_SPARE: Final = 64

Fields = Sequence[str | None]


@dataclass(frozen=True)
class Block:
    """A block of plain text, its rows, and the number of ``fields`` of each.

    ``numbers`` has the types of the fields that are read as numbers, by index, and ``null`` is a text that is a null.
    Both only let Arrow parse numbers without a detour over text.
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
    """The values of a block's rows: their ``starts`` in the block, and ``columns``, null if a field is empty.

    ``faults`` names the faults of bad rows by their numbers; their columns are null. Columns are text; either all of
    the block's ``numbers`` are of their types, or none is.
    """

    starts: Offsets
    columns: list[pa.Array]
    faults: dict[int, Fault]


def select_rows(data: bytes, rows: Rows, grammar: Grammar, fields: int) -> tuple[Flags, int]:
    """Return a mask of the rows that count, and the number of blank lines.

    Comments do not count. Blank lines do not count if rows have several fields.
    """
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
    """Return False if Arrow may read a field as a number that is none as text: in hexadecimal, or with blanks around
    it.
    """
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
    # Comparing every byte takes a quarter of the time of a search for two bytes in a row.
    letters = np.flatnonzero((array | LOWER) == ord("x"))
    zeros = letters[array[np.maximum(letters - 1, 0)] == ord("0")] - 1
    edges[MINUS] = True
    return not ((zeros == 0) | edges[array[np.maximum(zeros - 1, 0)]]).any()


def _is_beside(array: npt.NDArray[np.uint8], offsets: Offsets, edges: Flags) -> bool:
    """Return True if a byte at ``offsets`` is the first or last one, or has one of ``edges`` beside it."""
    if not len(offsets):
        return False
    inner = offsets[0] > 0 and offsets[-1] < len(array) - 1
    return not inner or bool(edges[array[offsets - 1]].any() or edges[array[offsets + 1]].any())


def _find_bad_text(block: Block, is_row: Flags) -> dict[int, str]:
    """Return the faults of rows with bytes that are not text."""
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
) -> tuple[Offsets, list[pa.Array], list[int]]:
    """Return the numbers and the columns of good rows, and the numbers of rows with another number of fields.

    The columns have their ``types`` if all values are of these types.
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
    if table is None or not all(_is_exact(table.column(index), text) for index in types):
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
    """Return the fields of all rows, as text unless they have other ``types``; None if Arrow refuses a value."""
    names = [f"c{index}" for index in range(block.fields)]
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
                column_types={name: types.get(index, pa.string()) for index, name in enumerate(names)},
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""] if block.null is None or not types else ["", block.null],
            ),
        )
    except pa.ArrowInvalid:
        return None


def _is_exact(column: pa.ChunkedArray, text: bytes) -> bool:
    """Return False if numbers may differ from those in ``text``: beyond a double's range they are infinite or zero."""
    if not pt.is_floating(column.type):
        return True
    if pc.all(pc.is_finite(column)).as_py() is False:
        return False
    return pc.any(pc.equal(column, 0)).as_py() is not True or not may_write_small_numbers(text)


def _join_rows(block: Block, numbers: Offsets) -> bytes:
    """Return the rows with these numbers, joined."""
    rows = block.rows
    if len(numbers) == len(rows.starts):
        text = block.data[int(rows.starts[0]) : rows.rest]
        # Without a line end behind it, Arrow reads an empty last field as an empty text.
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
        reason = (taken.fault if taken else None) or "it is not a row of CSV"
    if reason is None:
        values = split_row(row, grammar)
        if len(values) == block.fields:
            return [value if value is None else value.decode(block.charset.text_name) for value in values]
        reason = f"it has {len(values)} field{'s'[: len(values) != 1]}, expected {block.fields}"
    return Fault(reason, show_text(row, block.charset))


def list_first_rows(text: bytes, grammar: Grammar, charset: Charset, most: int, *, is_whole: bool) -> list[list[str]]:
    """Return the fields of the first rows without a fault, blank for empty ones. Skip comments and blank lines.

    ``is_whole`` means that no bytes follow the text; otherwise a last row that is not whole is left out.
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
    """Return the fields of a row that has no fault, None for empty ones."""
    values: list[bytes | None] = []
    position = 0
    while True:
        match = grammar.field.match(row, position)
        assert match is not None
        quoted, bare = match.groups()
        if quoted is not None:
            values.append(_unescape(quoted, grammar))
        else:
            text = bare.rstrip(_BLANKS) if grammar.trims else bare
            values.append(text or None)
        position = match.end()
        if position >= len(row):
            return values
        position += len(grammar.sep)


def _unescape(text: bytes, grammar: Grammar) -> bytes:
    if grammar.escape and grammar.escape in text:
        mark, quote = re.escape(grammar.escape), re.escape(grammar.quote)
        return re.sub(rb"%b(%b|%b)|%b(%b)" % (mark, mark, quote, quote, quote), rb"\1\2", text)
    return text.replace(grammar.quote * 2, grammar.quote)


def _merge(block: Block, numbers: Offsets, columns: Sequence[pa.Array], parsed: Mapping[int, Fields | Fault]) -> Values:
    """Merge the rows that Arrow has parsed and the single ones in their order."""
    merged = np.concatenate((numbers, np.array(list(parsed), np.int64)))
    order = np.argsort(merged, kind="stable")
    taken = pa.array(order)
    nothing: Fields = [None] * block.fields
    values = [nothing if isinstance(row, Fault) else row for row in parsed.values()]
    whole = [
        pa.concat_arrays([column, pa.array([row[index] for row in values], column.type)]).take(taken)
        for index, column in enumerate(columns)
    ]
    positions = {number: index for index, number in enumerate(merged[order].tolist())}
    faults = {positions[number]: row for number, row in parsed.items() if isinstance(row, Fault)}
    return Values(block.rows.starts[merged[order]], whole, faults)
