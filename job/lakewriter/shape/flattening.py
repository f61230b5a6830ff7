"""A collection's documents as columns by path: the plan, and the shaping of JSON text or structs by it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.column_types import is_list_like, is_void, to_stored_type
from lakewriter.documents.inference import Seen
from lakewriter.documents.nesting import NULL, Levels, Path, cut, write_json_pointer
from lakewriter.documents.parsing import NULLED
from lakewriter.documents.types import ARROW
from lakewriter.documents.values import COLLECTION, Decoded, decode_nested_texts, decode_texts, decode_values
from lakewriter.documents.values_to_text import COMPACT, render_json
from lakewriter.errors import SchemaIncompatibleError, SourceFailedError, SpecInvalidError, ValueUnrepresentableError
from lakewriter.receipt import Cursor, Findings, InferredColumn
from lakewriter.shape.conversion import plan_conversion
from lakewriter.shape.cursor import choose_higher, find_highest
from lakewriter.shape.inferred_columns import (
    Known,
    add_columns,
    add_paths,
    apply_contract,
    find_pinned_name,
    list_locations,
)
from lakewriter.shape.locations import find_location, read_values, unwrap
from lakewriter.shape.selection import Field, Pins, choose
from lakewriter.shape.table import ColumnPlan
from lakewriter.spec.collection import Kind, Location
from lakewriter.spec.specification import Partition, TableSpec

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
"""What else of a source is written into columns of a kind."""


@dataclass(frozen=True)
class FlattenPlan:
    """What is done to every batch. ``documents`` is the position of the column that holds them as JSON text.

    ``cursor`` is the position of the cursor column in the source. ``inferred`` is what the table's columns are after
    the load, where no schema tells them, and ``discarded`` what its contract leaves out of them.
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


def plan_flatten(source: pa.Schema, table: TableSpec, seen: Seen | None = None, known: Known = ()) -> FlattenPlan:
    """The plan for rows of ``source``.

    ``seen`` is what JSON documents without a schema have, ``known`` the columns that earlier ones gave the table.
    """
    collection = table.collection
    if collection is None:
        raise SpecInvalidError(f"table {table.id!r} is no collection.")
    _refuse_twins(source, table)
    documents = None if collection.column is None else _find_documents(source, collection.column, table)
    if documents is not None and collection.locations is None:
        return _plan_inferred(source, table, documents, seen or {}, known)
    declared = collection.locations
    locations = list(list_source_locations(source)) if declared is None else list(declared)
    chosen = choose(table.id, locations, collection, seen=declared is None and _has_guessed_columns(table))
    fields = chosen.fields
    if documents is None:
        fields = tuple(_choose_type(source, field, declared is not None) for field in fields)
    return _make_plan(source, table, documents, fields, chosen.left_out)


def _plan_inferred(source: pa.Schema, table: TableSpec, documents: int, seen: Seen, known: Known) -> FlattenPlan:
    assert table.collection is not None
    known = add_paths(known, seen, table.collection.selection.separator)
    pins = Pins(frozenset(column.name for column in known), partial(find_pinned_name, known))
    chosen = choose(table.id, list_locations(table.id, seen, known), table.collection, seen=True, pins=pins)
    fields, discarded = apply_contract(table, chosen, known)
    after = add_columns(known, fields, chosen.named)
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
    """Every location of rows that are documents; what has no type is none."""
    yield from _list_nested_locations(schema, ())


def _list_nested_locations(fields: Sequence[pa.Field], path: tuple[str, ...]) -> Iterator[Location]:
    for field in fields:
        if is_void(field.type):
            continue
        place, kind = (*path, field.name), find_kind(field.type)
        yield Location(place, kind)
        if kind is Kind.OBJECT:
            yield from _list_nested_locations(list(unwrap(field.type)), place)


def find_kind(t: pa.DataType) -> Kind:
    """What values of a source's type are, as documents."""
    plain = unwrap(t)
    if pt.is_struct(plain):
        return Kind.OBJECT
    if pt.is_map(plain):
        return Kind.MAP
    if is_list_like(plain):
        return Kind.ARRAY
    return next((kind for check, kind in _KINDS if check(plain)), Kind.STRING)


def _has_guessed_columns(table: TableSpec) -> bool:
    """Whether Spark takes the columns from the values, so that another load may have others."""
    return table.read.format == "json" and table.read.columns is None


def _choose_type(source: pa.Schema, field: Field, declared: bool) -> Field:
    """The field with the type its column gets: the schema's, or the source's own, numbers in their widest form."""
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
    """Numbers, text and times of the source fit columns of their own sort; text is read as any."""
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


_EXACT_DIGITS: Final = 15
"""Of a whole number that any double holds."""
_KEPT: Final = (Kind.STRING, Kind.JSON, Kind.UNTYPED, Kind.TEXT)
"""Kinds that take a source's text for a string, whatever is in it."""


class Flattener:
    """Shapes the batches of one task in order; ``changes`` counts timestamps cut to microseconds."""

    def __init__(self, plan: FlattenPlan) -> None:
        self.plan = plan
        self.rows = 0
        self.cursor: Cursor | None = None
        self.cursor_nulls = 0
        self.changes = 0
        self.undeclared = Counter[str]()
        self._texts: list[Any] = []

    def shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """``batch`` with exactly the plan's schema.

        ``VALUE_UNREPRESENTABLE`` for a document that is none, or that holds a value its column cannot.
        """
        expected = self.plan.source_schema
        if batch.schema.names != expected.names:
            raise SourceFailedError(
                f"a batch has the columns {batch.schema.names!r}, expected {expected.names!r}.",
                remedy="The source changed while it was read; run the load again.",
            )
        before = self.changes, self.undeclared.copy()
        try:
            arrays = self._make_arrays(batch)
        except ValueUnrepresentableError:
            # Its rows may come again without the one that is bad.
            self.changes, self.undeclared = before
            raise
        self.rows += batch.num_rows
        return pa.RecordBatch.from_arrays(arrays, schema=self.plan.schema)

    def _make_arrays(self, batch: pa.RecordBatch) -> list[pa.Array]:
        arrays = self._read_json(batch) if self.plan.documents is not None else self._read_columns(batch)
        for field, array in zip(self.plan.fields, arrays, strict=True):
            if field.key and array.null_count:
                raise self._make_error(
                    field, int(pc.index(array.is_null(), True).as_py()), "a key has a value always", "null"
                )
        if self.plan.cursor is not None:
            self._follow(batch.column(self.plan.cursor), self.plan.source_schema.field(self.plan.cursor))
        return arrays

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """The highest cursor and the number of null ones since the last call; both start anew."""
        taken = self.cursor, self.cursor_nulls
        self.cursor, self.cursor_nulls = None, 0
        return taken

    def take_findings(self) -> Findings:
        """Values cut, and values of documents without a schema that have no column, since the last call."""
        taken = Findings(changes=self.changes, undeclared=self.undeclared)
        self.changes, self.undeclared = 0, Counter()
        return taken

    def _follow(self, values: pa.Array, field: pa.Field) -> None:
        stored = values.cast(to_stored_type(field.name, field.type))
        self.cursor = choose_higher(self.cursor, find_highest(stored, field.name, self.rows))
        self.cursor_nulls += values.null_count

    def _read_json(self, batch: pa.RecordBatch) -> list[pa.Array]:
        self._texts = texts = batch.column(self.plan.documents).to_pylist()
        if self.plan.inferred is None:
            levels = Levels(texts, self.rows)
            return [self._decode(field, levels.read_raws(field.path)) for field in self.plan.fields]
        levels = Levels(texts, self.rows, any_value=True)
        for field in self.plan.discarded:
            self._leave_out(field, sum(raw != NULL and raw[:1] != b"{" for raw in levels.read_raws(field.path)))
        return [self._decode_inferred(field, levels.read_raws(field.path)) for field in self.plan.fields]

    def _decode_inferred(self, field: Field, raws: list[bytes]) -> pa.Array:
        """The column of a path at which may be anything: objects have columns of their own, arrays are left out."""
        if not field.kind.scalar:
            return self._decode(field, raws)
        self._leave_out(field, sum(raw[:1] == b"[" for raw in raws))
        leaves = [NULL if raw[:1] in (b"{", b"[") else raw for raw in raws]
        if field.kind is Kind.NUMBER:
            for position, raw in enumerate(leaves):
                if len(raw) > _EXACT_DIGITS and raw.lstrip(b"-").isdigit() and float(raw) != Decimal(raw.decode()):
                    raise self._make_error(field, position, "a double does not hold all of its digits", raw.decode())
        return self._decode(field, leaves)

    def _leave_out(self, field: Field, count: int) -> None:
        if count:
            self.undeclared["/".join(field.path)] += count

    def _read_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        opened: dict[Path, Levels] = {}
        return [self._read_column(batch, field, opened) for field in self.plan.fields]

    def _read_column(self, batch: pa.RecordBatch, field: Field, opened: dict[Path, Levels]) -> pa.Array:
        location = find_location(self.plan.source_schema, field.path)
        if location.nothing:
            return pa.nulls(batch.num_rows, field.type)
        path = field.path[: len(field.path) - len(location.inside)]
        if location.inside:
            if path not in opened:
                opened[path] = Levels(read_values(batch, path).to_pylist(), self.rows, path)
            return self._decode(field, opened[path].read_raws(field.path))
        array = read_values(batch, path)
        if find_kind(array.type) is Kind.STRING and field.kind not in _KEPT:
            texts = array.cast(pa.string())
            if field.kind.scalar:
                return self._require_whole(field, texts, decode_texts(field.kind, texts, COLLECTION.grammar))
            return self._require_whole(field, texts, decode_nested_texts(field.kind, texts, COLLECTION))
        if not field.kind.scalar:
            return self._render(field, array)
        try:
            return array.cast(field.type)
        except pa.ArrowInvalid as error:
            raise ValueUnrepresentableError(
                f"field {'/'.join(field.path)!r}, rows from {self.rows}: {error}",
                remedy="Convert the value in the source, or declare its type.",
                column=write_json_pointer(field.path),
            ) from error

    def _render(self, field: Field, array: pa.Array) -> pa.Array:
        rendered = render_json(array, COMPACT)
        if field.kind is not Kind.TEXT:
            return rendered
        return self._decode(field, [NULL if text is None else text.encode() for text in rendered.to_pylist()])

    def _decode(self, field: Field, raws: list[bytes]) -> pa.Array:
        return self._require_whole(field, raws, decode_values(field.kind, raws, COLLECTION))

    def _require_whole(self, field: Field, values: Sequence[bytes] | pa.Array, decoded: Decoded) -> pa.Array:
        """The column, of which no value is left out."""
        for fault in decoded.faults:
            if fault.change == NULLED:
                value = values[fault.position]
                shown = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
                raise self._make_error(field, fault.position, fault.message, shown)
        self.changes += len(decoded.faults)
        return decoded.array

    def _make_error(self, field: Field, position: int, reason: str, shown: str) -> ValueUnrepresentableError:
        text = self._texts[position] if self._texts else ""
        return ValueUnrepresentableError(
            f"field {'/'.join(field.path)!r}, row {self.rows + position}: value {cut(shown)} cannot be written as"
            f" {field.kind.value}: {reason}.",
            remedy="Correct the document, or the collection's schema.",
            column=write_json_pointer(field.path),
            # As much of it as tells where it is in the source.
            document=cut(text.decode(errors="replace") if isinstance(text, bytes) else text or "", 300),
        )
