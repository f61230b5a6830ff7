"""Parse many plain lines of documents at a time with Arrow into typed columns, and find rows that it may read wrongly.

It takes ``NaN`` and infinities, and an exponent that makes a zero. It compares the digits of a number with a decimal's
precision, and not the value that it makes of them: a number with more digits before the point than the type has is
scaled up all the same, until it wraps. So decimals are parsed in a type of twice the bits, in which no number of up to
38 digits wraps, and are cast to the wanted type then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.exact_text import TextForm
from lakewriter.cast.strict_cast import cast_text
from lakewriter.documents.arrow_lines import (
    ANY,
    Mask,
    Refusal,
    change_leaves,
    list_leaves,
    mask_floats,
    mask_lists,
    parse_json,
)
from lakewriter.source.files.declared_types import may_write_small_numbers
from lakewriter.source.files.json_columns import Columns
from lakewriter.source.text_types import EXACT_DIGITS

DIGITS: Final = bytes.maketrans(b"123456789.", b"0000000000")
LONG_NUMBER: Final = b"0" * (EXACT_DIGITS + 1)
"""A part of any number with more digits than a double keeps, once its digits and its point are zeros."""
WIDE: Final = pa.decimal256(76, 38)
PARSED_WIDE: Final = pa.decimal256(38, 38)
"""Parse numbers of at most 38 digits as this, and cast them to ``WIDE``: more digits could wrap there."""
_WIDE_LIMIT: Final = 1e38


@dataclass(frozen=True)
class ParsedPart:
    """The columns of the ``sure`` rows, and a mask of these among all parsed rows."""

    columns: list[pa.Array]
    sure: Mask


class FastParser:
    """A parser of plain lines into columns. Rows with a value that may be read wrongly are left out."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._schema = pa.schema(list(change_leaves(pa.struct(list(columns.schema)), _choose_parsed_type)))
        nested = [leaf for kind in columns.schema.types if pt.is_nested(kind) for leaf in list_leaves(kind)]
        self._has_inner_doubles = any(map(pt.is_floating, nested))

    def parse(self, data: bytes, count: int) -> ParsedPart | Refusal:
        """Return the columns of plain lines, or what is refused of them."""
        wanted = self._columns.schema
        if self._columns.is_sampled and self._has_inner_doubles and LONG_NUMBER in data.translate(DIGITS):
            # Only numbers beside other columns are compared with their digits.
            return ANY
        table = parse_json(data, count, self._schema)
        if isinstance(table, Refusal):
            return table
        if self._has_undeclared(table.schema):
            return ANY
        may_vanish = cache(partial(may_write_small_numbers, data))
        # Members that are not read count too.
        doubts = np.zeros(count, np.bool_)
        for column in table.columns:
            doubts |= mask_floats(column.combine_chunks(), column.type, _is_infinite)
        columns = []
        for field in wanted:
            array, doubtful = _convert(table[field.name].combine_chunks(), field.type, self._columns.form, may_vanish)
            columns.append(array)
            doubts |= doubtful
        sure = ~doubts
        if self._columns.is_sampled:
            sure &= ~find_changed_rows(data, table, self._schema)
        return ParsedPart(columns if sure.all() else [column.filter(pa.array(sure)) for column in columns], sure)

    def _has_undeclared(self, parsed: pa.Schema) -> bool:
        """Return True if documents have a key that differs from a declared column's by case alone, or an object in a
        declared column one that its type has not."""
        declared, folded = self._columns.declared, {name.lower() for name in self._columns.declared}
        others = parsed.names[len(self._columns.schema) :]
        return any(name.lower() in folded for name in others) or any(
            _has_undeclared_member(parsed.field(column.name).type, column.type)
            for column in self._columns.schema
            if column.name in declared
        )


def _is_infinite(array: pa.Array, _kind: pa.DataType) -> Mask:
    """Return a mask of NaN and infinities, which pyarrow accepts as numbers."""
    mask: Mask = ~np.isfinite(array.fill_null(0).to_numpy())
    return mask


def can_parse_fast(columns: Columns) -> bool:
    """Return True if pyarrow parses all types of the columns."""
    leaves = list_leaves(pa.struct(list(columns.schema)))
    return not any(pt.is_map(t) or pt.is_binary(t) or pt.is_null(t) or pt.is_decimal256(t) for t in leaves)


def _choose_parsed_type(leaf: pa.DataType) -> pa.DataType:
    """Return the type as which pyarrow parses a type: dates and times are texts that are cast."""
    if pt.is_decimal128(leaf):
        return pa.decimal256(leaf.precision, leaf.scale)
    return pa.string() if pt.is_temporal(leaf) else leaf


def _convert(
    array: pa.Array, kind: pa.DataType, form: TextForm, may_vanish: Callable[[], bool]
) -> tuple[pa.Array, Mask]:
    """Return parsed values in their type, and a mask of those that may be read wrongly, or hold such a value."""
    doubts = np.zeros(len(array), np.bool_)
    if pt.is_struct(kind):
        members = [_convert(array.field(field.name), field.type, form, may_vanish) for field in kind]
        for _, doubtful in members:
            doubts |= doubtful
        made = [member for member, _ in members]
        return pa.StructArray.from_arrays(made, fields=list(kind), mask=array.is_null()), doubts
    if pt.is_list(kind):
        items, doubtful = _convert(array.values, kind.value_type, form, may_vanish)
        made = pa.ListArray.from_arrays(array.offsets, items, type=kind, mask=array.is_null())
        return made, mask_lists(array, doubtful)
    if pt.is_floating(kind):
        zeros = pc.equal(array, 0)
        return array, _to_mask(zeros) if pc.any(zeros).as_py() and may_vanish() else doubts
    if pt.is_decimal128(kind):
        return _narrow(array, kind)
    if pt.is_temporal(kind):
        cast = cast_text(array.cast(pa.string()), kind, form)
        return cast.values, doubts if cast.misfits is None else _to_mask(cast.misfits)
    return array, doubts


def _to_mask(flags: pa.Array) -> Mask:
    mask: Mask = flags.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _narrow(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Mask]:
    """Return parsed decimals in their type; those with more digits than it has are doubtful, and null here."""
    try:
        return array.cast(kind), np.zeros(len(array), np.bool_)
    except pa.ArrowInvalid:
        wide = pa.decimal256(76, kind.scale)
        limit = pa.scalar(Decimal(10 ** (kind.precision - kind.scale)), wide)
        beyond = pc.greater_equal(pc.abs(array.cast(wide)), limit)
        return pc.if_else(beyond, None, array).cast(kind), _to_mask(beyond)


def _has_undeclared_member(parsed: pa.DataType, wanted: pa.DataType) -> bool:
    """Return True if parsed objects have a key that their declared type has not."""
    if pt.is_list(wanted):
        return _has_undeclared_member(parsed.value_type, wanted.value_type)
    if not pt.is_struct(wanted):
        return False
    names = {field.name for field in wanted}
    return any(field.name not in names for field in parsed) or any(
        _has_undeclared_member(parsed.field(field.name).type, field.type) for field in wanted
    )


def find_changed_rows(data: bytes, table: pa.Table, schema: pa.Schema) -> Mask:
    """Return a mask of rows with a number that has more digits than the double as which it was parsed."""
    changed = np.zeros(table.num_rows, np.bool_)
    names = [field.name for field in schema if pt.is_floating(field.type)]
    if LONG_NUMBER not in data.translate(DIGITS):
        return changed
    digits = pa.schema([pa.field(f.name, PARSED_WIDE if f.name in names else f.type) for f in schema])
    exact = parse_json(data, table.num_rows, digits)
    if isinstance(exact, Refusal):
        return ~changed
    for name in names:
        doubles = table[name].combine_chunks()
        is_far = pc.greater_equal(pc.abs(doubles), _WIDE_LIMIT)
        texts = pc.if_else(is_far, None, doubles).cast(pa.string())
        differs = pc.not_equal(exact[name].combine_chunks().cast(WIDE), texts.cast(WIDE))
        changed |= pc.or_kleene(is_far, differs).fill_null(False).to_numpy(False)
    return changed
