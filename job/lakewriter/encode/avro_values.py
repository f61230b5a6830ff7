"""Arrow columns in Avro's binary encoding: each column becomes one binary per row, and Arrow joins them."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.avro.container import write_long
from lakewriter.documents.types import UNION
from lakewriter.encode.avro_schema import read_kind
from lakewriter.nested_arrays import compute_flat_offsets

_NULL, _VALUE, _END = b"\x00", b"\x02", b"\x00"
_BYTES: Final = pa.array([bytes([value]) for value in range(256)], pa.binary())
_EMPTY: Final = pa.scalar(b"", pa.binary())


def encode_varints(values: pa.Array) -> pa.Array:
    """Encode 64-bit integers without nulls, one binary each."""
    signs = pc.if_else(pc.less(values, 0), pa.scalar(-1, pa.int64()), pa.scalar(0, pa.int64()))
    rest = pc.bit_wise_xor(pc.shift_left(values, 1), signs).view(pa.uint64())
    highest = pc.max(rest).as_py() or 0
    pieces = []
    for group in range(max(1, -(-highest.bit_length() // 7))):
        low = pc.bit_wise_and(pc.shift_right(rest, _cast_to_u64(7 * group)), _cast_to_u64(127))
        if group < 9:
            more = pc.greater_equal(rest, _cast_to_u64(1 << (7 * group + 7)))
            low = pc.add(low, pc.if_else(more, _cast_to_u64(128), _cast_to_u64(0)))
        encoded = _BYTES.take(low)
        pieces.append(
            pc.if_else(pc.greater_equal(rest, _cast_to_u64(1 << 7 * group)), encoded, _EMPTY) if group else encoded
        )
    return _join(*pieces)


def encode_rows(batch: pa.RecordBatch) -> pa.Array:
    """Encode one binary per row: its fields, one right behind the other."""
    return _join(*(encode_column(column, field) for column, field in zip(batch.columns, batch.schema, strict=True)))


def encode_column(array: pa.Array, field: pa.Field) -> pa.Array:
    """Encode a field's values, each behind its branch if the field may be null."""
    if read_kind(field) == UNION:
        return _encode_union(array, field)
    values = _encode_values(array, field.type)
    if not field.nullable:
        return pc.fill_null(values, b"")
    if not array.null_count:
        return _join(_VALUE, values)
    return pc.if_else(array.is_valid(), _join(_VALUE, pc.fill_null(values, b"")), pa.scalar(_NULL, pa.binary()))


def _encode_values(array: pa.Array, t: pa.DataType) -> pa.Array:
    """Encode values alone; the bytes of a null do not matter."""
    if pt.is_string(t) or pt.is_binary(t):
        return _encode_texts(array)
    if pt.is_struct(t):
        return _join(*(encode_column(child, field) for child, field in zip(array.flatten(), t, strict=True)))
    if pt.is_map(t):
        return _encode_maps(array, t)
    if pt.is_list(t):
        return _encode_lists(encode_column(array.flatten(), t.value_field), array)
    return _encode_fixed(array, t)


def _encode_fixed(array: pa.Array, t: pa.DataType) -> pa.Array:
    if pt.is_boolean(t):
        return _BYTES.take(pc.fill_null(array, False).cast(pa.uint8()))
    if pt.is_floating(t):
        return _cut(pc.fill_null(array, 0.0), t.bit_width // 8)
    if pt.is_decimal(t):
        wide = pc.fill_null(array.cast(pa.decimal128(38, t.scale)), 0)
        return _join(write_long(16), pc.binary_reverse(_cut(wide, 16)))
    ints = array.cast(pa.int32()) if pt.is_date(t) else array
    return encode_varints(_encode_longs(ints))


def _encode_longs(array: pa.Array) -> pa.Array:
    return pc.fill_null(array.cast(pa.int64()), 0)


def _encode_texts(array: pa.Array) -> pa.Array:
    plain = pc.fill_null(array.cast(pa.binary()), b"")
    return _join(encode_varints(_encode_longs(pc.binary_length(plain))), plain)


def _encode_maps(array: pa.MapArray, t: pa.DataType) -> pa.Array:
    start, end = (array.offsets[0].as_py(), array.offsets[-1].as_py()) if len(array) else (0, 0)
    keys, items = array.keys.slice(start, end - start), array.items.slice(start, end - start)
    entries = _join(encode_column(keys, t.key_field), encode_column(items, t.item_field))
    shifted = pc.subtract(array.offsets, start).cast(pa.int32())
    return _encode_blocks(entries, shifted)


def _encode_lists(items: pa.Array, array: pa.ListArray) -> pa.Array:
    return _encode_blocks(items, compute_flat_offsets(array))


def _encode_blocks(items: pa.Array, offsets: pa.Array) -> pa.Array:
    """Encode each list as one block, none for an empty one, and the end."""
    lists = pa.ListArray.from_arrays(offsets, items)
    bodies = pc.binary_join(lists, b"")
    counts = _encode_longs(pc.list_value_length(lists))
    heads = pc.if_else(pc.greater(counts, 0), encode_varints(counts), _EMPTY)
    return _join(heads, bodies, _END)


def _encode_union(array: pa.StructArray, field: pa.Field) -> pa.Array:
    rows: pa.Array = pa.repeat(pa.scalar(_NULL, pa.binary()), len(array))
    branches = zip(array.flatten()[1:], list(field.type)[1:], strict=True)
    for number, (values, branch) in enumerate(branches, 1):
        body = pc.fill_null(_encode_values(values, branch.type), b"")
        rows = pc.if_else(values.is_valid(), _join(write_long(number), body), rows)
    return rows


def _join(*pieces: Any) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, b"") if len(pieces) > 1 else pieces[0]


def _cut(array: pa.Array, width: int) -> pa.Array:
    """Return the bytes of values of one width, without nulls."""
    offsets = pc.multiply(pa.arange(0, len(array) + 1), width).cast(pa.int32())
    data = array.buffers()[1].slice(array.offset * width)
    return pa.Array.from_buffers(pa.binary(), len(array), [None, offsets.buffers()[1], data])


def _cast_to_u64(value: int) -> pa.Scalar:
    return pa.scalar(value, pa.uint64())
