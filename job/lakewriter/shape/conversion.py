"""Convert an array of the source to one of the file: built once from two types, applied to every batch."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.column_types import (
    ELEMENT,
    KEY,
    VALUE,
    Rename,
    enter,
    is_list_like,
    is_void,
    is_wrapped,
    rebuild_type,
)
from lakewriter.naming import name_columns
from lakewriter.nested_arrays import compute_flat_offsets, list_map_entries


@dataclass(frozen=True)
class Conversion:
    """A target type and, per child, the position of the source's child: None if the source has none."""

    type: pa.DataType
    children: "tuple[tuple[int | None, Conversion], ...]" = ()


def normalise_names(t: pa.DataType, rename: Rename = name_columns) -> pa.DataType:
    """Return ``t`` with the names of every struct made fit by ``rename``; void fields reserve theirs."""
    return rebuild_type(t, rename)


def plan_conversion(source: pa.DataType, target: pa.DataType, rename: Rename = name_columns) -> Conversion:
    """Return the conversion of a source's type to a file's; struct fields match by the source's names as renamed."""
    if is_wrapped(source):
        return plan_conversion(source.value_type, target, rename)
    if is_list_like(source):
        element = plan_conversion(source.value_type, target.value_type, enter(rename, ELEMENT))
        return Conversion(target, ((0, element),))
    if pt.is_map(source):
        key = plan_conversion(source.key_type, target.key_type, enter(rename, KEY))
        item = plan_conversion(source.item_type, target.item_type, enter(rename, VALUE))
        return Conversion(target, ((0, key), (1, item)))
    if not pt.is_struct(source):
        return Conversion(target)
    names = rename([field.name for field in source])
    positions = {name: position for position, name in enumerate(names) if not is_void(source.field(position).type)}
    return Conversion(
        target, tuple(_plan_child(source, positions.get(field.name), field.type, rename) for field in target)
    )


def _plan_child(
    source: pa.DataType, position: int | None, target: pa.DataType, rename: Rename
) -> tuple[int | None, Conversion]:
    if position is None:
        return None, Conversion(target)
    child = source.field(position)
    return position, plan_conversion(child.type, target, enter(rename, child.name))


def convert(array: pa.Array, to: Conversion) -> pa.Array:
    """Convert ``array`` to ``to.type``, sharing its buffers if nothing changes; ``ArrowInvalid`` if a value is lost."""
    if array.type.equals(to.type, check_metadata=True):
        return array
    if pt.is_dictionary(array.type):
        return convert(array.dictionary_decode(), to)
    if pt.is_run_end_encoded(array.type):
        return convert(pc.run_end_decode(array), to)
    if pt.is_struct(array.type):
        return _convert_struct(array, to)
    if pt.is_map(array.type):
        return _convert_map(array, to)
    if is_list_like(array.type):
        return _convert_list(array, to)
    return array.cast(to.type)


def _convert_struct(array: pa.StructArray, to: Conversion) -> pa.Array:
    # Unlike field(), flatten() hides the children's values where the struct is null: they may be anything.
    sources = array.flatten()
    children = [
        pa.nulls(len(array), child.type) if position is None else convert(sources[position], child)
        for position, child in to.children
    ]
    return pa.StructArray.from_arrays(children, fields=list(to.type), mask=_find_nulls(array))


def _convert_list(array: pa.Array, to: Conversion) -> pa.Array:
    values = convert(array.flatten(), to.children[0][1])
    return pa.ListArray.from_arrays(compute_flat_offsets(array), values, type=to.type, mask=_find_nulls(array))


def _convert_map(array: pa.MapArray, to: Conversion) -> pa.Array:
    entries = list_map_entries(array)
    keys, items = entries.flatten().flatten()
    (_, key), (_, item) = to.children
    arrays = (compute_flat_offsets(entries), convert(keys, key), convert(items, item))
    return pa.MapArray.from_arrays(*arrays, type=to.type, mask=_find_nulls(array))


def _find_nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None
