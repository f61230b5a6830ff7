"""All that can fail before a byte is written: the source opened, its columns shaped, the catalog asked."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from job.aws import Clients
from job.commit.catalog import CatalogTable, NoTable, catalog_table
from job.commit.intent import CatalogAction, FilesAction, GlueAction, IcebergAction
from job.commit.state import TableState
from job.commit.store import Store
from job.document import Record
from job.errors import SpecInvalidError, TableNotEmptyError
from job.key_layout import KeyLayout, KeyNames, Names
from job.layout import ObjectNames
from job.naming import join_key
from job.receipt import Cursor
from job.shape.cursor import spark_literal
from job.shape.envelope import plan_documents, plan_rows
from job.shape.grouping import grouping
from job.shape.plan import DELETED, ShapePlan, plan_shape
from job.shape.shapers import AnyPlan
from job.source.airbyte_messages import Unread
from job.source.feed import Feed, open_feed
from job.source.json_schema import declared_properties, record_type
from job.source.spark_rows import RowsFeed
from job.spec import Access, GlueCatalog, GlueService, IcebergCatalog, Spec, TableSpec
from job.stream import Envelope
from job.sync import TableSync

SparkFactory = Callable[[], SparkSession]

S3_SCHEMES: Final = frozenset({"s3", "s3a", "s3n"})


@dataclass(frozen=True)
class Prepared:
    """A table ready to be staged; ``changes`` is what the load would do to ``table``, in words."""

    feed: Feed
    shape: AnyPlan
    table: CatalogTable
    changes: tuple[str, ...]
    condition: str | None


def prepare(
    spec: Spec,
    table: TableSpec,
    state: TableState,
    found: CatalogTable,
    spark: SparkFactory,
    sync: TableSync | None = None,
) -> Prepared:
    """The feed is the caller's to close; it is closed here when something after it fails."""
    cursor = state.cursor if table.cursor else None
    if spec.envelope is not None:
        return _enveloped(spec, table, spec.envelope, cursor, spark, sync)
    _check_unwritten(found, table, state)
    condition = cursor_condition(table, cursor)
    feed = open_feed(spark, table, condition=condition, deleted_column=DELETED)
    try:
        shape = plan_shape(feed.schema, spec, table)
        fitting = found.types({field.name.lower(): field.type for field in shape.schema})
        if fitting:
            shape = plan_shape(feed.schema, spec, table, fitting)
        changes = tuple(found.changes(shape.schema, shape.partition))
        if shape.partition:
            _bring_together(feed, shape)
    except BaseException:
        feed.close()
        raise
    return Prepared(feed, shape, found, changes, condition)


def _bring_together(feed: Feed, shape: ShapePlan) -> None:
    """The rows of each Iceberg partition made neighbours: a file begins wherever the partition changes."""
    assert isinstance(feed, RowsFeed)
    if groups := grouping(shape):
        feed.cluster(groups.positions, groups.keys)
    feed.number()


def make_ready(
    prepared: Prepared, access: Access, names: Names, state: TableState
) -> tuple[CatalogAction, AnyPlan, Names]:
    """The catalog's table made ready for files: what to commit, how to shape, and where the files go."""
    action, schema = prepared.table.ready(prepared.shape.schema, state, prepared.shape.partition)
    if isinstance(action, IcebergAction) and isinstance(names, ObjectNames):
        names = replace(names, directory=data_directory(action.location, access))
    return action, replace(prepared.shape, schema=schema), names


def numbered(store: Store, names: Names) -> Names:
    """Names that go on from the part numbers that are there, where other loads write to the same place."""
    if not isinstance(names, KeyNames) or names.varies:
        return names
    return names.numbered(entry.key for entry in store.entries(names.prefix))


def data_directory(location: str, access: Access) -> str:
    """Where in the destination's bucket an Iceberg table's data files go."""
    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in S3_SCHEMES or bucket != access.bucket:
        raise SpecInvalidError(
            f"the catalog keeps the table at {location!r}, which is not in bucket {access.bucket!r}.",
            remedy="Name the bucket of the catalog's storage, s3_bucket_name, or use another catalog.",
        )
    return join_key(key, "data")


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
    return Prepared(feed, shape, NoTable(), (), condition)


def in_catalog(spec: Spec, table: TableSpec, names: Names, load: str, clients: Clients) -> CatalogTable:
    """The table as the catalog has it; ``load`` is the value of the objects' load metadata."""
    return catalog_table(catalog_action(spec, table, names), clients, load)


def catalog_action(spec: Spec, table: TableSpec, names: Names) -> CatalogAction:
    """What the catalog is to hold, but for the columns."""
    location = spec.table_location(table)
    if isinstance(spec.catalog, IcebergCatalog):
        own = isinstance(spec.catalog.service, GlueService)
        return IcebergAction(
            service=spec.catalog.service,
            namespace=table.schema_name,
            table=table.name,
            location=location if own else "",
        )
    if not isinstance(spec.catalog, GlueCatalog) or not isinstance(names, ObjectNames):
        return FilesAction()
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
    """The first-run check: ``TABLE_NOT_EMPTY`` when anything lies under the path of a table never loaded.

    An attempt that was killed may have left metadata of an Iceberg table, which alone is no data.
    """
    if not table.must_be_empty or state.committed:
        return
    metadata = f"{table.path}/metadata/"
    found = next((entry for entry in store.entries(table.path + "/") if not entry.key.startswith(metadata)), None)
    if found is not None:
        raise _not_empty(table, f"{found.key!r} lies under its path {table.path + '/'!r}")


def _check_unwritten(found: CatalogTable, table: TableSpec, state: TableState) -> None:
    if table.must_be_empty and not state.committed and (what := found.occupied()):
        raise _not_empty(table, what)


def _not_empty(table: TableSpec, what: str) -> TableNotEmptyError:
    return TableNotEmptyError(
        f"table {table.id} was never loaded, and {what}.",
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
    if not isinstance(action, GlueAction):
        return action
    return action.model_copy(update={"partition": None, "partition_location": None})
