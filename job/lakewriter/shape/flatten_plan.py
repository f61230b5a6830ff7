"""Plan which columns a collection's documents become, by path; pure, no values are touched here."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.kind_values import ARROW
from lakewriter.column_types import is_list_like, is_void, to_stored_type
from lakewriter.documents.inference import Seen
from lakewriter.documents.nesting import Path
from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError
from lakewriter.receipt import InferredColumn
from lakewriter.shape.conversion import plan_conversion
from lakewriter.shape.inferred_columns import (
    InferredColumns,
    add_columns,
    add_paths,
    apply_contract,
    find_pinned_name,
    list_locations,
)
from lakewriter.shape.locations import find_location, unwrap
from lakewriter.shape.selection import Field, NameFields, Pins, choose
from lakewriter.shape.table import ColumnPlan
from lakewriter.spec.collection import Kind, Location
from lakewriter.spec.table_spec import Partition, TableSpec

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
    Kind.TEXT: set(Kind),
}
"""Columns of a kind also take values of these other kinds."""


@dataclass(frozen=True)
class FlattenPlan:
    """The plan by which every batch is flattened; ``documents`` is the position of their column, which is JSON text.

    ``cursor`` is the position of the cursor column in the source. ``inferred`` is what the table's columns are after
    the load, where no schema has them, and ``discarded`` what its contract leaves out of them. ``declared`` has the
    properties that a schema names, by the path of their object; None where there is none, or no JSON text.
    """

    source_schema: pa.Schema
    schema: pa.Schema
    fields: tuple[Field, ...]
    documents: int | None
    cursor: int | None
    left_out: tuple[str, ...]
    notes: tuple[str, ...]
    inferred: tuple[InferredColumn, ...] | None = None
    discarded: tuple[Field, ...] = ()
    declared: Mapping[Path, frozenset[str]] | None = None

    @property
    def columns(self) -> tuple[ColumnPlan, ...]:
        """The columns as a plan shows them."""
        columns = []
        for field in self.fields:
            source = self._find_source_type(field)
            columns.append(
                ColumnPlan(
                    0, "/".join(field.path), field.name, source, field.type, plan_conversion(source, source), False
                )
            )
        return tuple(columns)

    @property
    def partition(self) -> Partition:
        """None: only Iceberg tables have partitions, and documents are flattened into files."""
        return ()

    def _find_source_type(self, field: Field) -> pa.DataType:
        if self.documents is not None:
            return field.type
        t = find_location(self.source_schema, field.path).type
        return field.type if t is None else t


def plan_flatten(
    source: pa.Schema,
    table: TableSpec,
    seen: Seen | None = None,
    inferred: InferredColumns = (),
    name_fields: NameFields | None = None,
) -> FlattenPlan:
    """Plan rows of ``source``.

    ``seen`` is what JSON documents without a schema have, ``inferred`` the columns that earlier ones gave the table.
    ``name_fields`` names the columns of all others.
    """
    collection = table.collection
    if collection is None:
        raise SpecInvalidError(f"table {table.id!r} is no collection.")
    _refuse_twins(source, table)
    documents = None if collection.column is None else _find_documents(source, collection.column, table)
    if documents is not None and collection.locations is None:
        return _plan_inferred(source, table, documents, seen or {}, inferred)
    declared = collection.locations
    locations = list(list_source_locations(source)) if declared is None else list(declared)
    is_seen = declared is None and _has_guessed_columns(table)
    chosen = choose(table.id, locations, collection, seen=is_seen, name_fields=name_fields)
    fields = chosen.fields
    if documents is None:
        fields = tuple(_choose_type(source, field, declared is not None) for field in fields)
        return _make_plan(source, table, documents, fields, chosen.left_out)
    return replace(_make_plan(source, table, documents, fields, chosen.left_out), declared=_group_properties(locations))


def _group_properties(locations: Iterable[Location]) -> Mapping[Path, frozenset[str]]:
    """Return the names of properties by the path of their object, with those that the vendor's platform adds to
    documents. Only the platform decides what these hold, unless the schema declares it.
    """
    names: dict[Path, set[str]] = {(): {"_meta"}}
    for location in locations:
        names.setdefault(location.path[:-1], set()).add(location.path[-1])
    if ("_meta",) in names:
        names["_meta",].add("uuid")
    return {path: frozenset(properties) for path, properties in names.items()}


def _plan_inferred(
    source: pa.Schema, table: TableSpec, documents: int, seen: Seen, inferred: InferredColumns
) -> FlattenPlan:
    assert table.collection is not None
    inferred = add_paths(inferred, seen, table.collection.selection.separator)
    pins = Pins(frozenset(column.name for column in inferred), partial(find_pinned_name, inferred))
    chosen = choose(table.id, list_locations(table.id, seen, inferred), table.collection, seen=True, pins=pins)
    fields, discarded = apply_contract(table, chosen, inferred)
    after = add_columns(inferred, fields, chosen.named)
    left_out = (*chosen.left_out, *(f"{field.name} (contract.columns: discard)" for field in discarded))
    plan = _make_plan(source, table, documents, fields, left_out)
    return replace(plan, inferred=after, discarded=discarded)


def _make_plan(
    source: pa.Schema, table: TableSpec, documents: int | None, fields: tuple[Field, ...], left_out: tuple[str, ...]
) -> FlattenPlan:
    if not fields:
        raise SchemaIncompatibleError(f"the documents of {table.id!r} have no field to write.")
    return FlattenPlan(
        source_schema=source,
        schema=pa.schema([field.to_arrow() for field in fields]),
        fields=fields,
        documents=documents,
        cursor=_find_cursor(source, table),
        left_out=tuple(field.name for field in source if is_void(field.type)),
        notes=tuple(f"left out: {what}" for what in left_out),
    )


def list_source_locations(schema: pa.Schema) -> Iterator[Location]:
    """Return every location of rows that are documents; a column without a type is none."""
    yield from _list_nested_locations(schema, ())


def _list_nested_locations(fields: Sequence[pa.Field], path: tuple[str, ...]) -> Iterator[Location]:
    for field in fields:
        if is_void(field.type):
            continue
        nested, kind = (*path, field.name), find_kind(field.type)
        yield Location(nested, kind)
        if kind is Kind.OBJECT:
            yield from _list_nested_locations(list(unwrap(field.type)), nested)


def find_kind(t: pa.DataType) -> Kind:
    """Return the kind that values of a source's type have as documents."""
    plain = unwrap(t)
    if pt.is_struct(plain):
        return Kind.OBJECT
    if pt.is_map(plain):
        return Kind.MAP
    if is_list_like(plain):
        return Kind.ARRAY
    return next((kind for check, kind in _KINDS if check(plain)), Kind.STRING)


def _has_guessed_columns(table: TableSpec) -> bool:
    """Return whether Spark takes the columns from the values, so that another load may have others."""
    return table.read.kind.name == "json" and table.read.columns is None


def _choose_type(source: pa.Schema, field: Field, declared: bool) -> Field:
    """Return the field with the type of its column: the schema's, or the source's, numbers in their widest form."""
    location = find_location(source, field.path)
    if location.type is None or location.nothing or location.inside:
        return field
    is_known = declared or field.kind is Kind.PUBLISHED
    if is_known:
        _require_fit(field, location.type)
    if is_known or not field.kind.scalar:
        return field
    t = location.type
    name = "/".join(field.path)
    return replace(field, type=next((wide for check, wide in _WIDE if check(t)), _to_stored(name, t)))


def _to_stored(name: str, t: pa.DataType) -> pa.DataType:
    return ARROW[Kind.TIME] if pt.is_time(t) else to_stored_type(name, t)


def _require_fit(field: Field, t: pa.DataType) -> None:
    """Raise an error if a column of the source does not fit its declared one: numbers, text and times fit columns of
    their own sort; text is read as any.
    """
    kind = find_kind(t)
    if not (kind in (field.kind, Kind.STRING) or kind in _FITTING.get(field.kind, ())):
        raise SchemaIncompatibleError(
            f"{'/'.join(field.path)!r} is {str(t)!r} in the source, and {field.kind.value} in the collection's schema.",
            remedy="Declare its type under read.columns, or leave the schema out.",
        )


def _find_documents(source: pa.Schema, column: str, table: TableSpec) -> int:
    position = int(source.get_field_index(column))
    if position < 0:
        raise SpecInvalidError(
            f"tables.{table.id}.documents names {column!r}; the source has {', '.join(map(repr, source.names))}."
        )
    t = unwrap(source.field(position).type)
    if not (pt.is_string(t) or pt.is_large_string(t) or pt.is_binary(t)):
        raise SpecInvalidError(f"tables.{table.id}.documents: column {column!r} is {str(t)!r}, expected JSON text.")
    return position


def _find_cursor(source: pa.Schema, table: TableSpec) -> int | None:
    if table.cursor is None:
        return None
    position = int(source.get_field_index(table.cursor))
    if position < 0 or not find_kind(source.field(position).type).scalar:
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
