"""Open the source, plan its columns, compare them with the catalog: all that can fail before a byte is written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.column_types import (
    ELEMENT,
    VALUE,
    enter,
    is_list_like,
    is_void,
    make_list,
    note_type,
    read_noted_type,
    reconcile,
    to_glue_type,
    to_stored_type,
)
from lakewriter.commit.catalog import CatalogTable, NoTable
from lakewriter.documents.inference import Seen, collect_paths, merge_paths
from lakewriter.documents.schema import find_property_names, make_record_type
from lakewriter.documents.types import Record
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.naming import AS_IN_SOURCE, AS_TEXT, NORMALISED, NameRule
from lakewriter.receipt import Cursor, GivenName, InferredType, Origin
from lakewriter.records.state import TableState
from lakewriter.report import join_first
from lakewriter.run.renames import Renames
from lakewriter.run.resumption import keeps_rows
from lakewriter.run.sync import TableSync
from lakewriter.shape.contract import find_columns_to_discard, require_types
from lakewriter.shape.conversion import normalise_names
from lakewriter.shape.cursor import find_highest, write_spark_literal
from lakewriter.shape.envelope import EnvelopePlan, choose_name_rule, plan_documents, plan_rows
from lakewriter.shape.flatten_plan import plan_flatten
from lakewriter.shape.kept_names import ColumnNames, EarlierNames
from lakewriter.shape.partitions import make_grouping
from lakewriter.shape.records import RecordsPlan, plan_records
from lakewriter.shape.shapers import AnyPlan
from lakewriter.shape.table import ShapePlan, plan_shape
from lakewriter.shape.text_rows import plan_text_rows
from lakewriter.shape.text_shapes import find_shapes
from lakewriter.source.column_names import quote_column
from lakewriter.source.databases.cursors import CursorCondition, RangeCondition
from lakewriter.source.feed import FeedOpener, open_feed
from lakewriter.source.files.csv_headers import list_nameless, require_separated
from lakewriter.source.files.known_types import fill_void
from lakewriter.source.kafka_topics import AnyEdge
from lakewriter.source.messages.splits import Unread
from lakewriter.source.request import Feed, RowsRequest, SparkFactory
from lakewriter.source.spark_rows import RowsFeed
from lakewriter.source.text_order import require_sorted_orders, require_sorted_texts
from lakewriter.spec.encodings import AvroEncoding, TextEncoding
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import Envelope
from lakewriter.spec.table_spec import KnownTypes, Mode, TableSpec

_MOST_NAMES: Final = 4


@dataclass(frozen=True)
class Prepared:
    """A table ready to be staged; ``changes`` is what the load would do to ``table``, in words. ``given`` are the names
    of the load's columns that the table keeps, and ``types`` those that their values have given them, None where it
    keeps none. ``renames`` are written names that lake.yaml says have changed: those before, and those after."""

    feed: Feed
    shape: AnyPlan
    table: CatalogTable
    changes: tuple[str, ...]
    condition: str | None
    given: tuple[GivenName, ...] | None
    types: tuple[InferredType, ...] | None = None
    renames: Mapping[str, str] = field(default_factory=dict)


def prepare(
    spec: Spec,
    table: TableSpec,
    state: TableState,
    in_place: CatalogTable,
    spark: SparkFactory,
    sync: TableSync | None = None,
    opener: FeedOpener | None = None,
) -> Prepared:
    """Open a table's feed, which the caller closes, and plan its shape; the feed is closed here if something after it
    fails."""
    condition = RangeCondition(table.between) if table.between else write_cursor_condition(table, state.cursor)
    renames = Renames.plan(table, state, _choose_rule(spec))
    renamed, in_place = renames.apply(state.names), in_place.rename(renames.written)
    table = _add_known(add_nameless(table, renamed), spec, state, renamed, in_place)
    feed = _open_feed(table, condition, spark, sync, opener)
    try:
        renames.require_source(feed.schema.names)
        if not state.is_loaded:
            require_separated(table, feed.schema.names)
        basis = _choose_basis(feed, spec, table, in_place)
        in_place = basis.table
        names = _name_columns(spec, table, state, renamed, in_place)
        shape = _plan_shape(feed, basis, spec, table, sync, state, names)
        idle = [f"names: the source has no column {source!r}" for source in names.list_idle_pins()]
        shape = replace(shape, notes=(*shape.notes, *feed.notes, *idle, *basis.notes))
        changes = tuple(in_place.describe_changes(shape.schema, shape.partition))
        if table.latest is not None:
            changes = (*changes, f"name the new files, instead of those before, in {table.latest}")
        if table.stream is not None and table.stream.at_once and not keeps_rows(table, state.sync, continues=False):
            changes = (*changes, "replace all rows that it has, once the stream is complete")
        if isinstance(shape, ShapePlan):
            shape = _order_rows(feed, shape)
        given, types = _choose_given(names, shape), _choose_types(spec, feed, shape)
    except BaseException:
        feed.close()
        raise
    return Prepared(feed, shape, in_place, changes, condition, given, types, renames.written)


@dataclass(frozen=True)
class _Basis:
    """What a shape is planned by: the columns of the source, the table in the catalog, and notes on both."""

    source: pa.Schema
    table: CatalogTable
    notes: tuple[str, ...] = ()


def _choose_basis(feed: Feed, spec: Spec, table: TableSpec, in_place: CatalogTable) -> _Basis:
    """Return what the shape is planned by.

    Without a row, columns whose types follow from values have none, and a table that is not there yet is not made: its
    catalog would keep a type that no value has. Their files, of which there are none, are planned as text.
    """
    untyped = [field.name for field in feed.schema if is_void(field.type)]
    if not (feed.is_untyped and untyped):
        return _Basis(feed.schema, in_place)
    is_replaced = _forgets_types(table, in_place)
    if in_place.read_columns() is not None and not is_replaced:
        return _Basis(feed.schema, in_place)
    filled = pa.schema([field.with_type(fill_void(field.type)) for field in feed.schema])
    if is_replaced or isinstance(spec.encoding, TextEncoding):
        return _Basis(filled, in_place)
    names = join_first([repr(name) for name in untyped], _MOST_NAMES)
    return _Basis(filled, NoTable(), (f"no row gives {names} a type: the first load with rows makes the table",))


def _open_feed(
    table: TableSpec, condition: str | None, spark: SparkFactory, sync: TableSync | None, opener: FeedOpener | None
) -> Feed:
    # Only a single task knows every path that came before.
    has_files = table.stream is not None and table.stream.file_path is not None
    single = table.layout.single_file or has_files
    if sync is not None and sync.feed is not None:
        return sync.feed.merge() if single else sync.feed
    if table.stream is not None and opener is None:
        return Unread()
    twice = has_inferred_columns(table) or bool(table.unique_checks)
    return (opener or open_feed)(RowsRequest(spark, table, condition, twice=twice, single=single))


def add_nameless(table: TableSpec, given: tuple[GivenName, ...] | None) -> TableSpec:
    """Return the table with the names that its source's columns without one have had, by the names that it has
    ``given``."""
    nameless = list_nameless([name.source for name in given or () if not name.within])
    return table.model_copy(update={"read": table.read.model_copy(update={"nameless": nameless})})


def _add_known(
    table: TableSpec, spec: Spec, state: TableState, renamed: tuple[GivenName, ...] | None, in_place: CatalogTable
) -> TableSpec:
    """Return the table with the types that the values of earlier loads have given its columns. Types of a catalog stand
    for those of which no record has any. Files of text have no types, and a load that replaces all files begins anew.
    """
    if isinstance(spec.encoding, TextEncoding) or _forgets_types(table, in_place):
        return table
    noted, written = state.types or (), in_place.read_columns() or {}
    if table.envelope is not None:
        # The columns of events are not the table's, whose own say what a row is where no event has one.
        noted, written = (), {name: kind for name, kind in written.items() if name not in spec.reserved_columns}
    names = {column.name.lower() for column in noted}
    in_catalog = name_as_in_source(written, renamed or ())
    columns = (*noted, *(column for column in in_catalog if column.name.lower() not in names))
    learnt = KnownTypes(columns=columns, grows_decimals=in_place.grows_decimals)
    return table.model_copy(update={"read": table.read.model_copy(update={"learnt": learnt})})


def _forgets_types(table: TableSpec, in_place: CatalogTable) -> bool:
    """Return True if a load replaces all files, and no catalog keeps the types of those before."""
    return _begins_anew(table) and not in_place.grows_decimals


def _begins_anew(table: TableSpec) -> bool:
    return table.mode in {Mode.REFRESH, Mode.OVERWRITE}


def name_as_in_source(columns: Mapping[str, pa.DataType], names: Sequence[GivenName]) -> tuple[InferredType, ...]:
    """Return the types of written columns, by name, under the names that they have in their source."""
    sources = {(given.within, given.name.lower()): given.source for given in names}

    def rename(name: str, t: pa.DataType, within: tuple[str, ...]) -> pa.Field:
        source = sources.get((within, name.lower()), name)
        return pa.field(source, enter_type(t, (*within, source)))

    def enter_type(t: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
        if pt.is_struct(t):
            return pa.struct([rename(field.name, field.type, path) for field in t])
        if pt.is_map(t):
            return pa.map_(t.key_type, enter_type(t.item_type, (*path, VALUE)))
        return make_list(enter_type(t.value_type, (*path, ELEMENT))) if is_list_like(t) else t

    def is_written(t: pa.DataType) -> bool:
        # Another writer's table may have a type that no load writes.
        try:
            return bool(to_glue_type(t))
        except SchemaIncompatibleError:
            return False

    fields = (rename(name, t, ()) for name, t in columns.items())
    noted = (note_type(field.name, field.type) for field in fields if is_written(field.type))
    return tuple(column for column in noted if column is not None)


def _choose_types(spec: Spec, feed: Feed, shape: AnyPlan) -> tuple[InferredType, ...] | None:
    """Return the types that the table keeps; None where no value gives a column its type."""
    has_types = not isinstance(spec.encoding, TextEncoding)
    discarded = {column.source for column in shape.discarded} if isinstance(shape, ShapePlan) else set()
    return tuple(column for column in feed.inferred if has_types and column.name not in discarded) or None


def _name_columns(
    spec: Spec, table: TableSpec, state: TableState, renamed: tuple[GivenName, ...] | None, in_place: CatalogTable
) -> ColumnNames:
    """Name the columns of the load as the table's earlier loads did. If no record has these names, a load that replaces
    all rows begins anew."""
    begins = renamed is None and _begins_anew(table)
    # A load that failed, or one without rows whose state is lost, leaves a table without rows: its names do not count.
    is_empty = not state.is_loaded and in_place.explain_occupied() is None
    earlier = EarlierNames(
        table.id,
        renamed,
        None if begins or is_empty else in_place.read_columns(),
        table.names,
        is_loaded=state.is_loaded and not begins,
        pin=_write_pin(spec, table),
    )
    if table.collection is not None:
        return ColumnNames(earlier, AS_TEXT)
    if spec.envelope is not None:
        return ColumnNames(earlier, choose_name_rule(spec.envelope), spec.reserved_columns)
    return ColumnNames(earlier, _choose_rule(spec), spec.reserved_columns)


def _choose_rule(spec: Spec) -> NameRule:
    return AS_IN_SOURCE if spec.column_names == "kept" else NORMALISED


def _write_pin(spec: Spec, table: TableSpec) -> str | None:
    """Write the line of lake.yaml that pins names of a table's columns, with ``#`` for the names; None where no line
    can."""
    if table.collection is not None or (table.stream is not None and spec.source is None):
        return None
    return "names: #" if table.stream is None else f"source: {{names: {{{json.dumps(table.id)}: #}}}}"


def _choose_given(names: ColumnNames, shape: AnyPlan) -> tuple[GivenName, ...] | None:
    """Return the names that the table keeps; None where the load names no column."""
    discarded = [column.name for column in shape.discarded] if isinstance(shape, ShapePlan) else ()
    return names.list_given(discarded) or None


def _plan_shape(
    feed: Feed,
    basis: _Basis,
    spec: Spec,
    table: TableSpec,
    sync: TableSync | None,
    state: TableState,
    rename: ColumnNames,
) -> AnyPlan:
    source, in_place = basis.source, basis.table
    if spec.envelope is not None:
        _require_known(source, table, state)
        return _plan_envelope(source, spec, table, spec.envelope, sync, rename)
    if table.collection is not None:
        seen = _look_at_documents(feed, table)
        return plan_flatten(source, table, seen, state.inferred or (), rename.name_fields)
    records = plan_records(table) if table.stream is not None else None
    source = source if records is None else records.schema
    shape = plan_shape(source, spec, table, rename=rename)
    there = in_place.read_columns()
    discard = find_columns_to_discard(table, shape, there)
    fitting = {**in_place.fit_types({field.name.lower(): field.type for field in shape.schema})}
    if there is None:
        fitting |= _list_known(table, state, shape, rename)
    if fitting or discard:
        shape = plan_shape(source, spec, table, fitting, rename=rename, discard=discard)
    require_types(table, shape, there)
    if records is not None:
        return RecordsPlan.of(shape, records)
    return plan_text_rows(shape) if isinstance(spec.encoding, TextEncoding) else shape


def _read_types(table: TableSpec, state: TableState) -> dict[str, pa.DataType]:
    """Return the types that the values of earlier loads have given columns, by their names in the source; none for a
    load that begins anew."""
    return {c.name: read_noted_type(c) for c in state.types or ()} if table.read.learnt.columns else {}


def _list_known(table: TableSpec, state: TableState, shape: ShapePlan, rename: ColumnNames) -> dict[str, pa.DataType]:
    """Return the types that the table's files have for columns of the load, by the names that they are written under:
    those of them that differ."""
    types = _read_types(table, state)
    written = {
        column.name.lower(): normalise_names(types[column.source], enter(rename, column.source))
        for column in (*shape.columns, *shape.discarded)
        if column.source in types
    }
    return {c.name.lower(): t for c in shape.columns if (t := written.get(c.name.lower(), c.type)) != c.type}


def _require_known(source: pa.Schema, table: TableSpec, state: TableState) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` if a column has another type than the values of earlier loads have given it."""
    types = _read_types(table, state)
    for column in source:
        if column.name in types and not is_void(column.type):
            reconcile(column.name, to_stored_type(column.name, column.type), types[column.name])


def _plan_envelope(
    source: pa.Schema, spec: Spec, table: TableSpec, envelope: Envelope, sync: TableSync | None, rename: ColumnNames
) -> EnvelopePlan:
    if table.stream is None:
        shape = plan_rows(source, spec, table, envelope, rename)
    else:
        schema = table.stream.json_schema
        properties = () if envelope.typed else find_property_names(schema)
        one_text = isinstance(spec.encoding, AvroEncoding)
        record = Record(())
        if envelope.typed:
            record = make_record_type(schema, one_text=one_text, additional=envelope.additional, lifted=envelope.lifted)
        shape = replace(
            plan_documents(source, table, envelope, record, properties, rename),
            watched=_type_watched(table, envelope),
        )
    if sync is None:
        return shape
    return replace(shape, sync_id=sync.intent.sync_id, generation_id=sync.intent.generation_id)


def _type_watched(table: TableSpec, envelope: Envelope) -> Record | None:
    """Return the types of the properties that expectations name, of documents that become text."""
    if envelope.typed or not table.expected_columns or table.stream is None:
        return None
    return make_record_type(table.stream.json_schema)


def has_inferred_columns(table: TableSpec) -> bool:
    """Return True if the table's columns follow from the documents themselves."""
    collection = table.collection
    return collection is not None and collection.column is not None and collection.locations is None


def _look_at_documents(feed: Feed, table: TableSpec) -> Seen | None:
    if not has_inferred_columns(table) or table.collection is None or table.collection.column not in feed.schema.names:
        return None
    column = feed.schema.names.index(table.collection.column)
    return merge_paths(table.id, feed.run(partial(collect_paths, column=column)))


def _order_rows(feed: Feed, shape: ShapePlan) -> ShapePlan:
    """Have the feed bring rows in the order that the shape needs; return the shape, which knows whether they are
    numbered."""
    is_numbered = shape.ordinal is not None or (feed.is_in_order and shape.loses_order)
    shape = replace(shape, has_ordinals=shape.merged_by is not None and is_numbered)
    if shape.partition:
        _cluster_rows(feed, shape)
    return shape


def _cluster_rows(feed: Feed, shape: ShapePlan) -> None:
    """Sort the rows by Iceberg partition: a new file starts wherever the partition changes."""
    assert isinstance(feed, RowsFeed)
    if groups := make_grouping(shape):
        feed.cluster(groups.positions, groups.write_keys, numbers=shape.has_ordinals)
    feed.number()


def find_origin(table: TableSpec) -> Origin:
    """Return the source table that a load of ``table`` reads."""
    return Origin(source_schema=table.source_schema, source_table=table.source_table)


def choose_origin(table: TableSpec) -> Origin | None:
    """Return the source table that the state keeps; None where no table's path depends on others."""
    return None if table.alike is None else find_origin(table)


def require_sorted_cursor(
    table: TableSpec, cursor: Cursor | None, before: Cursor | None = None, edge: AnyEdge | None = None
) -> None:
    """Raise ``SPEC_INVALID`` if the cursor is a text that sorts otherwise than what it spells. Texts of values that a
    database orders, as its ``edge`` says, are not compared."""
    if cursor is not None and not (edge is not None and edge.is_text_of_value):
        require_sorted_texts(table, cursor, before)


def require_sorted_sample(
    table: TableSpec, prepared: Prepared, rows: pa.Table, state: TableState | None = None
) -> None:
    """Raise ``SPEC_INVALID`` as a load does for texts that sort otherwise than what they spell, by the first ``rows``
    of the source. ``state`` is the table's."""
    names = {name.lower() for name in table.order_by}
    texts = {n: rows.column(n) for n in rows.column_names if n.lower() in names and pt.is_string(rows.column(n).type)}
    orders = {name: find_shapes(values.combine_chunks()) for name, values in texts.items()}
    require_sorted_orders(table, orders, is_loaded=state is not None and state.is_loaded)
    before = state.cursor if state is not None else None
    columns = [name for name in rows.column_names if table.cursor and name.lower() == table.cursor.lower()]
    if len(columns) != 1:
        return
    values = rows.column(columns[0])
    highest = find_highest(values.combine_chunks(), columns[0], 0) if pt.is_string(values.type) else None
    require_sorted_cursor(table, highest or before, before, prepared.feed.edge)


def write_cursor_condition(table: TableSpec, cursor: Cursor | None) -> CursorCondition | None:
    """Write SQL that is true for rows above the cursor minus its lag; None for a table that is read whole."""
    if table.cursor is None or cursor is None:
        return None
    column = quote_column(table.cursor)
    literal = write_spark_literal(cursor)
    if table.cursor_lag is None:
        return CursorCondition(f"{column} > {literal}", cursor)
    lag = table.cursor_lag if " " not in table.cursor_lag else f"INTERVAL {table.cursor_lag}"
    return CursorCondition(f"{column} > {literal} - {lag}", cursor)
