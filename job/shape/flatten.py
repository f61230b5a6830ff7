"""The plan of a collection's documents: columns by path, from JSON text or from the source's own structs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from job.collection import Kind, Location
from job.errors import SchemaIncompatibleError, SpecInvalidError
from job.shape.conversion import conversion
from job.shape.plan import ColumnPlan
from job.shape.reach import bare, reached
from job.shape.selection import Field, choose
from job.shape.typed import ARROW
from job.spec import Partition, TableSpec
from job.types import is_list_like, is_void, storable

_WIDE: Final = ((pt.is_integer, pa.int64()), (pt.is_floating, pa.float64()))
_KINDS: Final = (
    (pt.is_integer, Kind.INTEGER),
    (pt.is_floating, Kind.NUMBER),
    (pt.is_decimal, Kind.NUMBER),
    (pt.is_boolean, Kind.BOOLEAN),
    (pt.is_date, Kind.DATE),
    (pt.is_timestamp, Kind.TIMESTAMP),
    (pt.is_time, Kind.TIME),
    (pt.is_binary, Kind.BINARY),
    (pt.is_large_binary, Kind.BINARY),
    (pt.is_fixed_size_binary, Kind.BINARY),
)
_FITTING: Final[Mapping[Kind, Collection[Kind]]] = {
    Kind.NUMBER: {Kind.INTEGER},
    Kind.MIXED_INTEGER: {Kind.INTEGER},
    Kind.MIXED_NUMBER: {Kind.INTEGER, Kind.NUMBER},
    Kind.OBJECT: {Kind.MAP},
    Kind.MAP: {Kind.OBJECT},
    Kind.JSON: set(Kind),
    Kind.UNTYPED: set(Kind),
}
"""What else of a source is written into columns of a kind."""


@dataclass(frozen=True)
class FlattenPlan:
    """What is done to every batch. ``documents`` is the position of the column that holds them as JSON text.

    ``cursor`` is the position of the cursor column in the source.
    """

    source_schema: pa.Schema
    schema: pa.Schema
    fields: tuple[Field, ...]
    documents: int | None
    cursor: int | None
    left_out: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def columns(self) -> tuple[ColumnPlan, ...]:
        """The columns as a plan shows them."""
        found = []
        for field in self.fields:
            source = self._source_type(field)
            found.append(
                ColumnPlan(0, "/".join(field.path), field.name, source, field.type, conversion(source, source), False)
            )
        return tuple(found)

    @property
    def partition(self) -> Partition:
        """None: only Iceberg tables have partitions, and documents are flattened into files."""
        return ()

    def _source_type(self, field: Field) -> pa.DataType:
        if self.documents is not None:
            return field.type
        t = reached(self.source_schema, field.path).type
        return field.type if t is None else t


def plan_flatten(source: pa.Schema, table: TableSpec, inferred: Sequence[Location] | None = None) -> FlattenPlan:
    """The plan for rows of ``source``; ``inferred`` are the locations of JSON documents without a schema."""
    collection = table.collection
    if collection is None:
        raise SpecInvalidError(f"table {table.id!r} is no collection.")
    _refuse_twins(source, table)
    documents = None if collection.column is None else _documents(source, collection.column, table)
    known = collection.locations if collection.locations is not None else inferred
    locations = list(arrow_locations(source)) if known is None else list(known)
    seen = collection.locations is None and (documents is not None or _guessed(table))
    chosen = choose(table.id, locations, collection, seen=seen)
    fields = chosen.fields
    if documents is None:
        fields = tuple(_native(source, field, known is not None) for field in fields)
    if not fields:
        raise SchemaIncompatibleError(f"the documents of {table.id!r} have no field to write.")
    return FlattenPlan(
        source_schema=source,
        schema=pa.schema([pa.field(f.name, f.type, nullable=not f.key) for f in fields]),
        fields=fields,
        documents=documents,
        cursor=_cursor(source, table),
        left_out=tuple(field.name for field in source if is_void(field.type)),
        notes=tuple(f"left out: {what}" for what in chosen.left_out),
    )


def arrow_locations(schema: pa.Schema) -> Iterator[Location]:
    """Every location of rows that are documents; what has no type is none."""
    yield from _inside(schema, ())


def _inside(fields: Sequence[pa.Field], path: tuple[str, ...]) -> Iterator[Location]:
    for field in fields:
        if is_void(field.type):
            continue
        place, kind = (*path, field.name), kind_of(field.type)
        yield Location(place, kind)
        if kind is Kind.OBJECT:
            yield from _inside(list(bare(field.type)), place)


def kind_of(t: pa.DataType) -> Kind:
    """What values of a source's type are, as documents."""
    plain = bare(t)
    if pt.is_struct(plain):
        return Kind.OBJECT
    if pt.is_map(plain):
        return Kind.MAP
    if is_list_like(plain):
        return Kind.ARRAY
    return next((kind for check, kind in _KINDS if check(plain)), Kind.STRING)


def _guessed(table: TableSpec) -> bool:
    """Whether Spark takes the columns from the values, so that another load may have others."""
    return table.read.format == "json" and table.read.columns is None


def _native(source: pa.Schema, field: Field, declared: bool) -> Field:
    """The field with the type its column gets: the schema's, or the source's own, numbers in their widest form."""
    found = reached(source, field.path)
    if found.type is None or found.nothing or found.inside:
        return field
    if declared:
        _require_fit(field, found.type)
    if declared or not field.kind.scalar:
        return field
    t = found.type
    name = "/".join(field.path)
    return replace(field, type=next((wide for check, wide in _WIDE if check(t)), _stored(name, t)))


def _stored(name: str, t: pa.DataType) -> pa.DataType:
    return ARROW[Kind.TIME] if pt.is_time(t) else storable(name, t)


def _require_fit(field: Field, t: pa.DataType) -> None:
    """Numbers, text and times of the source fit columns of their own sort; text is read as any."""
    kind = kind_of(t)
    if not (kind in (field.kind, Kind.STRING) or kind in _FITTING.get(field.kind, ())):
        raise SchemaIncompatibleError(
            f"{'/'.join(field.path)!r} is {str(t)!r} in the source, and {field.kind.value} in the collection's schema.",
            remedy="Declare its type under read.columns, or leave the schema out.",
        )


def _documents(source: pa.Schema, column: str, table: TableSpec) -> int:
    position = int(source.get_field_index(column))
    if position < 0:
        raise SpecInvalidError(
            f"tables.{table.id}.documents names {column!r}; the source has {', '.join(map(repr, source.names))}."
        )
    t = bare(source.field(position).type)
    if not (pt.is_string(t) or pt.is_large_string(t) or pt.is_binary(t)):
        raise SpecInvalidError(f"tables.{table.id}.documents: column {column!r} is {str(t)!r}, expected JSON text.")
    return position


def _cursor(source: pa.Schema, table: TableSpec) -> int | None:
    if table.cursor is None:
        return None
    position = int(source.get_field_index(table.cursor))
    if position < 0 or not kind_of(source.field(position).type).scalar:
        raise SpecInvalidError(
            f"cursor of {table.id!r}: expected a column of the source with one value, got {table.cursor!r}."
        )
    return position


def _refuse_twins(source: pa.Schema, table: TableSpec) -> None:
    for name in source.names:
        if source.names.count(name) > 1:
            raise SchemaIncompatibleError(
                f"the source of {table.id!r} has two columns {name!r}.", remedy="Rename one of them with an sql: read."
            )
