"""All that can fail before a byte is written: the source opened, its columns shaped, the catalog asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from job import types
from job.aws import Clients
from job.commit.glue import GlueTables, existing_arrow, merge
from job.commit.intent import CatalogAction, FilesAction, GlueAction
from job.commit.state import TableState
from job.commit.store import Store
from job.document import Record
from job.errors import TableNotEmptyError
from job.key_layout import KeyLayout, KeyNames, Names
from job.receipt import Cursor
from job.shape.cursor import spark_literal
from job.shape.envelope import plan_documents, plan_rows
from job.shape.plan import DELETED, plan_shape
from job.shape.shapers import AnyPlan
from job.source.airbyte_messages import Unread
from job.source.feed import Feed, open_feed
from job.source.json_schema import declared_properties, record_type
from job.spec import GlueCatalog, Spec, TableSpec
from job.stream import Envelope
from job.sync import TableSync

SparkFactory = Callable[[], SparkSession]


@dataclass(frozen=True)
class Prepared:
    """A table ready to be staged. ``existing`` holds the catalog's columns, Glue types by name."""

    feed: Feed
    shape: AnyPlan
    action: CatalogAction
    existing: Mapping[str, str]
    condition: str | None


def prepare(
    spec: Spec,
    table: TableSpec,
    cursor: Cursor | None,
    names: Names,
    clients: Clients,
    spark: SparkFactory,
    sync: TableSync | None = None,
) -> Prepared:
    """The feed is the caller's to close; it is closed here when something after it fails."""
    if spec.envelope is not None:
        return _enveloped(spec, table, spec.envelope, cursor, spark, sync)
    action = catalog_action(spec, table, names)
    existing = GlueTables(clients).existing(action) if isinstance(action, GlueAction) else {}
    condition = cursor_condition(table, cursor)
    feed = open_feed(spark, table, condition=condition, deleted_column=DELETED)
    try:
        shape = plan_shape(feed.schema, spec, table)
        if existing:
            wanted = {field.name.lower(): field.type for field in shape.schema}
            shape = plan_shape(feed.schema, spec, table, existing_arrow(existing, wanted))
        if isinstance(action, GlueAction):
            columns = tuple((field.name.lower(), types.glue_type(field.type)) for field in shape.schema)
            merge(f"{action.database}.{action.table}", list(existing.items()), columns)
            action = action.model_copy(update={"columns": columns})
    except BaseException:
        feed.close()
        raise
    return Prepared(feed, shape, action, existing, condition)


def _enveloped(
    spec: Spec,
    table: TableSpec,
    envelope: Envelope,
    cursor: Cursor | None,
    spark: SparkFactory,
    sync: TableSync | None,
) -> Prepared:
    single = isinstance(table.layout, KeyLayout) and table.layout.single_file
    condition = cursor_condition(table, cursor)
    if sync is not None and sync.feed is not None:
        feed: Feed = sync.feed.merged() if single else sync.feed
    elif table.stream is not None:
        feed = Unread()
    else:
        feed = open_feed(spark, table, condition=condition, deleted_column=DELETED, single=single)
    try:
        if table.stream is None:
            shape = plan_rows(feed.schema, spec, table, envelope)
        else:
            schema = table.stream.json_schema
            properties = () if envelope.typed else declared_properties(schema)
            record = record_type(schema) if envelope.typed else Record(())
            shape = plan_documents(feed.schema, table, envelope, record, properties)
    except BaseException:
        feed.close()
        raise
    if sync is not None:
        shape = replace(shape, sync_id=sync.intent.sync_id, generation_id=sync.intent.generation_id)
    return Prepared(feed, shape, FilesAction(), {}, condition)


def catalog_action(spec: Spec, table: TableSpec, names: Names) -> CatalogAction:
    """What the catalog is to hold, but for the columns."""
    if not isinstance(spec.catalog, GlueCatalog) or isinstance(names, KeyNames):
        return FilesAction()
    location = spec.table_location(table)
    partitioned = spec.catalog.partition_key is not None
    return GlueAction(
        database=table.schema_name,
        database_location=location.rpartition("/")[0],
        table=table.name,
        location=location,
        columns=(),
        partition_key=spec.catalog.partition_key,
        partition=names.partition if partitioned else None,
        partition_location=f"s3://{spec.access.bucket}/{names.location}" if partitioned else None,
    )


def check_empty(store: Store, table: TableSpec, state: TableState) -> None:
    """The first-run check: ``TABLE_NOT_EMPTY`` when anything lies under the path of a table never loaded."""
    if not table.must_be_empty or state.committed:
        return
    found = next(iter(store.entries(table.path + "/", limit=1)), None)
    if found is not None:
        raise TableNotEmptyError(
            f"table {table.id} was never loaded, and {found.key!r} lies under its path {table.path + '/'!r}.",
            remedy="Move what is there away, or set destination_table_handling: APPEND.",
        )


def cursor_condition(table: TableSpec, cursor: Cursor | None) -> str | None:
    """SQL that is true for rows beyond the cursor, less its lag; None for a table that is read whole."""
    if table.cursor is None or cursor is None:
        return None
    column = "`" + table.cursor.replace("`", "``") + "`"
    literal = spark_literal(cursor)
    if table.cursor_lag is None:
        return f"{column} > {literal}"
    lag = table.cursor_lag if " " not in table.cursor_lag else f"INTERVAL {table.cursor_lag}"
    return f"{column} > {literal} - {lag}"


def without_partition(action: CatalogAction) -> CatalogAction:
    """The same for a load without rows: the table is made, no partition is."""
    if isinstance(action, FilesAction):
        return action
    return action.model_copy(update={"partition": None, "partition_location": None})
