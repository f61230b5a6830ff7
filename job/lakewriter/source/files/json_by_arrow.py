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
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.exact_text import TextForm
from lakewriter.cast.strict_cast import cast_text
from lakewriter.documents.arrow_lines import ANY, Refusal, parse_json
from lakewriter.source.files.declared_types import may_write_small_numbers
from lakewriter.source.files.json_columns import EXACT_DIGITS, Columns

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
    sure: npt.NDArray[np.bool_]


class _DoubtError(Exception):
    """An inner value that only the exact parser can decide."""


class FastParser:
    """A parser of plain lines into columns. Rows with a value that may be read wrongly are left out."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._schema = pa.schema([pa.field(c.name, _to_parsed_type(c.type)) for c in columns.schema])

    def parse(self, data: bytes, count: int) -> ParsedPart | Refusal:
        """Return the columns of plain lines, or what is refused of them."""
        wanted = self._columns.schema
        if self._columns.is_sampled and LONG_NUMBER in data.translate(DIGITS) and any(map(_has_doubles, wanted.types)):
            # Only numbers beside other columns are compared with their digits.
            return ANY
        table = parse_json(data, count, self._schema)
        if isinstance(table, Refusal):
            return table
        if self._has_undeclared(table.schema):
            return ANY
        sure = np.ones(count, np.bool_)
        may_vanish = cache(partial(may_write_small_numbers, data))
        try:
            columns = [self._convert(table[c.name].combine_chunks(), c, may_vanish, sure) for c in wanted]
        except _DoubtError:
            return ANY
        others = (table[name].combine_chunks() for name in table.column_names[len(wanted) :])
        if not all(is_finite(array) for array in others):
            return ANY
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

    def _convert(
        self, array: pa.Array, column: pa.Field, may_vanish: Callable[[], bool], sure: npt.NDArray[np.bool_]
    ) -> pa.Array:
        """Return a column in its type. Rows that need the exact parser are no longer ``sure``."""
        doubts: list[pa.Array] = []
        converted = _convert_leaves(array, column.type, self._columns.form, may_vanish, doubts)
        if pt.is_nested(column.type) and not is_finite(array):
            # Members that are not read count too.
            raise _DoubtError
        for doubt in doubts:
            if pc.any(doubt).as_py():
                if pt.is_nested(column.type):
                    raise _DoubtError
                sure &= ~doubt.fill_null(False).to_numpy(zero_copy_only=False)
        return converted


def _has_doubles(kind: pa.DataType) -> bool:
    """Return True for an object or a list that has numbers of type double."""
    inner = [kind.field(index).type for index in range(kind.num_fields)]
    return any(pt.is_floating(part) or _has_doubles(part) for part in inner)


def is_finite(array: pa.Array) -> bool:
    """Return False if parsed values include NaN or an infinity, which pyarrow accepts as numbers."""
    if pt.is_struct(array.type):
        return all(is_finite(array.field(index)) for index in range(array.type.num_fields))
    if pt.is_list(array.type):
        return is_finite(array.values)
    return not pt.is_floating(array.type) or pc.all(pc.is_finite(array)).as_py() is not False


def can_parse_fast(columns: Columns) -> bool:
    """Return True if pyarrow parses all types of the columns."""
    return all(_is_parsed(field.type) for field in columns.schema)


def _is_parsed(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return all(_is_parsed(field.type) for field in kind)
    if pt.is_list(kind):
        return _is_parsed(kind.value_type)
    return not (pt.is_map(kind) or pt.is_binary(kind) or pt.is_null(kind) or pt.is_decimal256(kind))


def _to_parsed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type as which pyarrow parses a type: dates and times are texts that are cast."""
    if pt.is_struct(kind):
        return pa.struct([pa.field(field.name, _to_parsed_type(field.type)) for field in kind])
    if pt.is_list(kind):
        return pa.list_(_to_parsed_type(kind.value_type))
    if pt.is_decimal128(kind):
        return pa.decimal256(kind.precision, kind.scale)
    return pa.string() if pt.is_temporal(kind) else kind


def _convert_leaves(
    array: pa.Array, kind: pa.DataType, form: TextForm, may_vanish: Callable[[], bool], doubts: list[pa.Array]
) -> pa.Array:
    """Return parsed values in their types; ``doubts`` collects masks of values that may be read wrongly."""
    if pt.is_struct(kind):
        members = [_convert_leaves(array.field(field.name), field.type, form, may_vanish, doubts) for field in kind]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null())
    if pt.is_list(kind):
        items = _convert_leaves(array.values, kind.value_type, form, may_vanish, doubts)
        return pa.ListArray.from_arrays(array.offsets, items, type=kind, mask=array.is_null())
    if pt.is_floating(kind):
        doubts.append(pc.invert(pc.is_finite(array)))
        zeros = pc.equal(array, 0)
        if pc.any(zeros).as_py() and may_vanish():
            doubts.append(zeros)
        return array
    if pt.is_decimal128(kind):
        return _narrow(array, kind, doubts)
    if pt.is_temporal(kind):
        cast = cast_text(array.cast(pa.string()), kind, form)
        if cast.misfits is not None:
            doubts.append(cast.misfits)
        return cast.values
    return array


def _narrow(array: pa.Array, kind: pa.DataType, doubts: list[pa.Array]) -> pa.Array:
    """Return parsed decimals in their type; those with more digits than it has are doubtful, and null here."""
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:
        wide = pa.decimal256(76, kind.scale)
        limit = pa.scalar(Decimal(10 ** (kind.precision - kind.scale)), wide)
        beyond = pc.greater_equal(pc.abs(array.cast(wide)), limit)
        doubts.append(beyond)
        return pc.if_else(beyond, None, array).cast(kind)


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


def find_changed_rows(data: bytes, table: pa.Table, schema: pa.Schema) -> npt.NDArray[np.bool_]:
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
