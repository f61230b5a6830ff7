"""Find a location of a document in rows of a source: in structs, under a key of a map, inside JSON text."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.column_types import is_void, is_wrapped
from lakewriter.errors import SchemaIncompatibleError

Path = tuple[str, ...]


@dataclass(frozen=True)
class SourceLocation:
    """The source's type at a location, None if it has nothing there.

    ``inside`` are the last names of the path if they lie in JSON text.
    """

    type: pa.DataType | None
    inside: Path = ()

    @property
    def nothing(self) -> bool:
        """Return whether no row has a value there."""
        return self.type is None or is_void(self.type)


def find_location(source: Sequence[pa.Field], path: Path) -> SourceLocation:
    """Return where the path leads in the source's types; ``SCHEMA_INCOMPATIBLE`` if it leads through a type without
    names.
    """
    column = next((field for field in source if field.name == path[0]), None)
    if column is None:
        return SourceLocation(None)
    t, done = unwrap(column.type), 1
    while done < len(path) and not is_void(t):
        if is_text(t):
            return SourceLocation(t, path[done:])
        child = _find_child(t, path[done])
        if child is None and not pt.is_struct(t):
            raise SchemaIncompatibleError(
                f"{'/'.join(path[:done])!r} is {str(t)!r} in the source, and an object in the collection's schema.",
                remedy="Make it a struct, a map by text or JSON text in the source, or correct the schema.",
            )
        if child is None:
            return SourceLocation(None)
        t, done = child, done + 1
    return SourceLocation(t)


def read_values(batch: pa.RecordBatch, path: Path) -> pa.Array:
    """Return the values at a path that ``find_location`` has found in the types."""
    array = batch.column(path[0])
    for name in path[1:]:
        if pt.is_map(array.type):
            array = pc.map_lookup(array, pa.scalar(name, array.type.key_type), "last")
        else:
            array = pc.struct_field(array, [name])
    return array


def unwrap(t: pa.DataType) -> pa.DataType:
    """Return ``t``, or the type of the values of a dictionary or run-end encoding."""
    return unwrap(t.value_type) if is_wrapped(t) else t


def is_text(t: pa.DataType) -> bool:
    """Return whether ``t`` is any of Arrow's layouts of text."""
    return bool(pt.is_string(t) or pt.is_large_string(t) or pt.is_string_view(t))


def _find_child(t: pa.DataType, name: str) -> pa.DataType | None:
    if pt.is_map(t) and is_text(t.key_type):
        return unwrap(t.item_type)
    position = t.get_field_index(name) if pt.is_struct(t) else -1
    return unwrap(t.field(position).type) if position >= 0 else None
