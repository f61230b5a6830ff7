"""Decode the plain documents of a batch with Arrow's parser, many times as fast as one level after the other.

What Arrow refuses, or may read in another way, is left to the exact decoder, row by row.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.documents.arrow_lines import Offsets, Refusal, TextLines, parse_json, parse_ranges
from lakewriter.documents.types import DocumentType, Items, Leaf, Record
from lakewriter.spec.collection import Kind

Mask = npt.NDArray[np.bool_]

_NONE: Final = np.zeros(0, np.int64)
_PARSED: Final = {
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    **dict.fromkeys(
        (Kind.STRING, Kind.DATE, Kind.TIMESTAMP, Kind.LOCAL_TIMESTAMP, Kind.TIME, Kind.LOCAL_TIME), pa.string()
    ),
}
"""The types as which Arrow parses kinds; it has none for values of any type."""
_ESCAPED_NULL: Final = re.compile(rb'\\.[^"\\]*"\s*:\s*null')
"""The end of a member that is null and whose name has an escape."""
_SMALL: Final = re.compile(rb"[0-9.][eE]-[0-9]|0{300}")
"""A part of a number that is too close to zero for a double."""
_SMALL_PARTS: Final = (b"e-", b"E-", b"0" * 300)
_BEYOND: Final = 2.0**63
"""The first double beyond the integers of 64 bits."""
_ROWS: Final = 512
"""The lines that are parsed at a time: of more of them too many are parsed twice where one is refused."""


def find_parsed_type(t: DocumentType) -> pa.DataType | None:
    """Return the type as which Arrow parses documents, None if a value in them may be of several types."""
    if isinstance(t, Leaf):
        return _PARSED.get(t.kind)
    if isinstance(t, Items):
        item = find_parsed_type(t.item)
        return None if item is None else pa.list_(item)
    if not isinstance(t, Record) or t.additional is not None or t.declares_all or not t.fields:
        return None
    fields = [(name, find_parsed_type(member)) for name, member in t.fields]
    return None if any(kind is None for _, kind in fields) else pa.struct(fields)


@dataclass(frozen=True)
class Parsed:
    """Rows that Arrow has read without a doubt: their numbers, and their documents."""

    numbers: Offsets
    documents: pa.StructArray


def join_texts(texts: pa.Array) -> TextLines:
    """Return the documents of a batch as lines; white space between their parts may be another."""
    if texts.null_count or not len(texts):
        return TextLines(b"", *(np.zeros(0, np.int64),) * 2)
    whole = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts.cast(pa.binary())), b"\n")
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths + 1) - 1
    data: bytes = whole[0].as_py()
    if data.count(b"\n") >= len(texts):
        # No JSON text has a line break in it.
        data = data.replace(b"\n", b" ")
        codes = np.frombuffer(bytearray(data), np.uint8)
        codes[ends[:-1]] = ord("\n")
        data = codes.tobytes()
    return TextLines(data, ends - lengths, ends)


def parse_plain(lines: TextLines, kind: pa.StructType) -> list[Parsed]:
    """Parse the documents that Arrow reads as the exact decoder does; those with the same members are together."""
    schema, wide = pa.schema(list(kind)), pa.schema(list(_widen(kind)))

    def parse(data: bytes, count: int) -> pa.Table | Refusal:
        table = parse_json(data, count, schema)
        if not isinstance(table, Refusal) or table.number is None:
            return table
        # Of the numbers that are no integers Arrow names the first one alone.
        doubles = parse_json(data, count, wide)
        if isinstance(doubles, Refusal):
            return doubles
        rows = np.flatnonzero(_mask_values(_make_documents([doubles]), kind, _is_no_integer))
        return Refusal(rows.tolist()) if len(rows) else table

    groups: dict[str, list[tuple[Offsets, pa.Table]]] = {}
    for numbers, table in parse_ranges(lines, _find_plain(lines), parse, _ROWS):
        groups.setdefault(str(table.schema), []).append((numbers, table))
    parts = []
    for group in groups.values():
        numbers, documents = np.concatenate([one for one, _ in group]), _make_documents([table for _, table in group])
        doubtful = _find_doubts(documents, kind, lines, numbers)
        if doubtful.any():
            documents, numbers = documents.filter(pa.array(~doubtful)), numbers[~doubtful]
        parts.append(Parsed(numbers, documents))
    return parts


def _make_documents(tables: list[pa.Table]) -> pa.StructArray:
    columns = [column.combine_chunks() for column in pa.concat_tables(tables).columns]
    return pa.StructArray.from_arrays(columns, fields=list(tables[0].schema))


def _widen(kind: pa.DataType) -> pa.DataType:
    """Return a type with doubles for integers."""
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_widen(field.type)) for field in kind])
    if pt.is_list(kind):
        return pa.list_(_widen(kind.value_type))
    return pa.float64() if pt.is_integer(kind) else kind


def _find_plain(lines: TextLines) -> Offsets:
    filled = np.flatnonzero(lines.starts < lines.ends)
    if len(filled) < len(lines):
        lines = TextLines(lines.data, lines.starts[filled], lines.ends[filled])
    return filled[lines.is_plain]


def _find_doubts(documents: pa.StructArray, kind: pa.DataType, lines: TextLines, numbers: Offsets) -> Mask:
    """Return a mask of rows that may be read wrongly.

    They have an undeclared member that may be null, which Arrow does not tell from a missing one, a zero that may be
    another number, or a number of many digits that Arrow makes an infinity of.
    """
    names = {name.encode() for name in _list_nullable(documents, kind)}
    patterns = [re.compile(b'"' + re.escape(name) + rb'"\s*:\s*null') for name in names]
    patterns += [_ESCAPED_NULL] if names else []
    doubts = np.isin(numbers, np.concatenate([_NONE, *(lines.find_lines(pattern) for pattern in patterns)]))
    doubts |= _mask_values(documents, kind, _is_odd)
    zeros = np.flatnonzero(_mask_values(documents, kind, _is_zero))
    data = lines.join(numbers[zeros])
    if any(part in data for part in _SMALL_PARTS):
        doubts[[row for row in zeros.tolist() if _SMALL.search(lines.get(numbers[row]))]] = True
    return doubts


def _mask_values(array: pa.Array, kind: pa.DataType, test: Callable[[pa.Array, pa.DataType], Mask]) -> Mask:
    """Return a mask of values that are a double which passes a test, or hold one."""
    if pt.is_struct(kind):
        inside = [_mask_values(child, wanted, test) for child, _, wanted in _list_children(array, kind) if wanted]
        mask: Mask = np.any(inside, axis=0)
        return mask
    if pt.is_list(kind):
        counts = np.concatenate([[0], np.cumsum(_mask_values(array.values, kind.value_type, test))])
        offsets = array.offsets.to_numpy()
        held: Mask = counts[offsets[1:]] > counts[offsets[:-1]]
        return held
    if not pt.is_floating(array.type):
        return np.zeros(len(array), np.bool_)
    return test(array, kind)


def _is_no_integer(array: pa.Array, kind: pa.DataType) -> Mask:
    if not pt.is_integer(kind):
        return np.zeros(len(array), np.bool_)
    values: npt.NDArray[np.float64] = array.fill_null(0.0).to_numpy()
    mask: Mask = (np.trunc(values) != values) | (np.abs(values) >= _BEYOND)
    return mask


def _is_odd(array: pa.Array, _kind: pa.DataType) -> Mask:
    """Return a mask of zeros with a sign, which the integer -0 has not, and of numbers that are no double."""
    values: npt.NDArray[np.float64] = array.fill_null(1.0).to_numpy()
    mask: Mask = (np.signbit(values) & (values == 0.0)) | ~np.isfinite(values)
    return mask


def _is_zero(array: pa.Array, _kind: pa.DataType) -> Mask:
    mask: Mask = array.fill_null(1.0).to_numpy() == 0.0
    return mask


def _list_nullable(array: pa.Array, kind: pa.DataType) -> Iterator[str]:
    """Yield the names of undeclared members that some objects do not have, or have as null."""
    for child, field, wanted in _list_children(array, kind):
        if wanted is None:
            if child.null_count:
                yield field
        else:
            yield from _list_nullable(child, wanted)


def _list_children(array: pa.Array, kind: pa.DataType) -> list[tuple[pa.Array, str, pa.DataType | None]]:
    """Return the arrays inside one, with the names of members and the declared types, None for what is undeclared."""
    if pt.is_list(kind):
        return [(array.values, "", kind.value_type)]
    if not pt.is_struct(kind):
        return []
    wanted = {field.name: field.type for field in kind}
    return [(array.field(index), field.name, wanted.get(field.name)) for index, field in enumerate(array.type)]
