"""Columns of a file's types as JSON text, level by level: Arrow joins what it can, and no number passes a double.

Dates and times are ISO text, binary is base64; NaN and infinities have no JSON and become null.
"""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.documents.json_text import base64, joined, objects, quoted
from lakewriter.documents.texts import as_list, texts


def fragments(array: pa.Array) -> pa.Array:
    """The JSON text of each value; null for null."""
    t = array.type
    if pt.is_struct(t):
        fields = [(field.name, fragments(child)) for field, child in zip(t, array.flatten(), strict=True)]
        return _where(array, objects(fields, len(array)))
    if pt.is_map(t):
        return _maps(array)
    if pt.is_list(t):
        return _bracketed(array, fragments(array.flatten()), "[]")
    if pt.is_binary(t):
        return base64(array)
    if pt.is_floating(t):
        finite = pc.is_finite(array)
        return pc.if_else(pc.fill_null(finite, False), texts(array), pa.scalar(None, pa.string()))
    if pt.is_integer(t) or pt.is_boolean(t) or pt.is_decimal(t):
        return texts(array)
    return quoted(texts(array))


def not_finite(array: pa.Array) -> Sequence[int]:
    """Positions at whose top level or below is a float without JSON."""
    t = array.type
    if pt.is_floating(t):
        odd = pc.and_(array.is_valid(), pc.invert(pc.fill_null(pc.is_finite(array), True)))
        return [int(place) for place in pc.indices_nonzero(odd).to_pylist()]
    if pt.is_struct(t):
        return sorted({place for child in array.flatten() for place in not_finite(child)})
    if pt.is_map(t):
        return not_finite(as_list(array))
    if pt.is_list(t):
        inner = not_finite(array.flatten())
        owners = pc.list_parent_indices(array).to_pylist() if inner else []
        return sorted({int(owners[place]) for place in inner})
    return []


def _maps(array: pa.MapArray) -> pa.Array:
    """Objects; a key that is no string goes by its text."""
    entries = as_list(array)
    keys, items = entries.flatten().flatten()
    names = quoted(texts(keys))
    return _bracketed(entries, joined([names, ":", pc.fill_null(fragments(items), "null")]), "{}")


def _bracketed(lists: pa.Array, members: pa.Array, ends: str) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(lists), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    inner = pc.binary_join(pa.ListArray.from_arrays(offsets, pc.fill_null(members, "null")), ",")
    return _where(lists, joined([ends[0], inner, ends[1]]))


def _where(array: pa.Array, found: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), found, pa.scalar(None, pa.string())) if array.null_count else found
