"""Decode the plain documents of a batch with Arrow's parser, many times as fast as one level after the other.

What Arrow refuses, or may read in another way, is left to the exact decoder, row by row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lakewriter.documents.arrow_lines import (
    Mask,
    Offsets,
    TextLines,
    mask_floats,
    parse_json,
    parse_ranges,
)
from lakewriter.documents.types import DocumentType, Items, Leaf, Record
from lakewriter.spec.collection import Kind

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


def parse_plain(lines: TextLines, kind: pa.StructType) -> list[Parsed]:
    """Parse the documents that Arrow reads as the exact decoder does; those with the same members are together."""
    parse, groups = partial(parse_json, schema=pa.schema(list(kind))), dict[str, list[tuple[Offsets, pa.Table]]]()
    for numbers, table in parse_ranges(lines, _find_plain(lines), parse):
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
    doubts |= mask_floats(documents, kind, _is_odd)
    zeros = np.flatnonzero(mask_floats(documents, kind, _is_zero))
    data = lines.join(numbers[zeros])
    if any(part in data for part in _SMALL_PARTS):
        doubts[[row for row in zeros.tolist() if _SMALL.search(lines.get(numbers[row]))]] = True
    return doubts


def _is_odd(array: pa.Array, _kind: pa.DataType) -> Mask:
    """Return a mask of zeros with a sign, which the integer -0 has not, and of numbers that are not doubles."""
    values: npt.NDArray[np.float64] = array.fill_null(1.0).to_numpy()
    mask: Mask = (np.signbit(values) & (values == 0.0)) | ~np.isfinite(values)
    return mask


def _is_zero(array: pa.Array, _kind: pa.DataType) -> Mask:
    mask: Mask = array.fill_null(1.0).to_numpy() == 0.0
    return mask


def _list_nullable(array: pa.Array, kind: pa.DataType) -> Iterator[str]:
    """Yield the names of undeclared members that some objects do not have, or have as null."""
    if pt.is_list(kind):
        yield from _list_nullable(array.values, kind.value_type)
    elif pt.is_struct(kind):
        declared = {field.name: field.type for field in kind}
        for index, field in enumerate(array.type):
            if field.name in declared:
                yield from _list_nullable(array.field(index), declared[field.name])
            elif array.field(index).null_count:
                yield field.name
