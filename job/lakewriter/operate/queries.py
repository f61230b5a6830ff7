"""Write SQL that reads a pipeline's tables, for each engine that can; pure text."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from lakewriter.operate import duckdb_sql, redshift_sql, snowflake, spark_sql, trino_sql
from lakewriter.operate.as_of import AsOf
from lakewriter.operate.sql_text import (
    HISTORY,
    Engine,
    Query,
    name_history_views,
    name_views,
    quote_name,
    quote_text,
    write_files,
    write_history,
    write_time_travel,
    write_version,
)
from lakewriter.spec.catalogs import HIGHEST_OF_ATHENA, IcebergCatalog
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec, Tracking
from lakewriter.spec.table_spec import TableSpec

ALL: Final = "all"
"""The table of a statement that is for all tables."""
QUERY: Final = "Query a table"
"""The title of the statement that every engine has for every table."""
VIEW_ENGINES: Final = (Engine.DUCKDB, Engine.SPARK)
"""Those for which ``write_views`` writes; the others read the tables under their names in a catalog."""
_LATEST: Final = "latest-job-id"
_MISSING: Final = "Nothing to read yet"


@dataclass(frozen=True)
class LastLoads:
    """The last job id and the time of the last commit (UTC) by table, from the tables' states."""

    jobs: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, datetime] = field(default_factory=dict)
    unloaded: Collection[str] = frozenset()
    """The ids of tables without a committed load: a catalog may not have them."""
    without_files: Collection[str] = frozenset()
    """The ids of tables that have no file in the bucket, which readers of files refuse."""

    def describe_missing(self, table: TableSpec, *, reads_files: bool) -> str:
        """Return a comment in place of the queries of a table that an engine cannot read yet; blank otherwise."""
        if reads_files and table.id in self.without_files:
            return f"-- {table.id} has no files yet. Print its queries again after a load with rows of it."
        if not reads_files and table.id in self.unloaded:
            return f"-- no load of {table.id} is committed yet. Print its queries again after one."
        return ""


def write_as_of(
    spec: Spec,
    engines: Sequence[Engine],
    moments: Mapping[str, AsOf],
    deployment: Deployment | None = None,
    stage: str | None = None,
    without_files: Collection[str] = (),
) -> tuple[Query, ...]:
    """Write the statements to run once, and for each table in ``moments`` the one that reads it as it was then.

    ``without_files`` is as in ``LastLoads``.
    """
    about, queries = deployment or Deployment(), list[Query]()
    for engine in engines:
        if engine is Engine.SNOWFLAKE:
            continue
        queries += [Query(ALL, title, sql, engine) for title, sql in _write_setup(engine, spec, about, stage)]
        for table, source, view in _list_tables(engine, spec):
            as_of = moments.get(table.id)
            if as_of is not None:
                title = f"The table as of load {as_of.job_id}"
                if view[1] and table.id in without_files:
                    sql = f"-- {table.id} has no files: as of load {as_of.job_id} it had no rows."
                else:
                    sql = _write_as_of(engine, spec, table, source, as_of, view[1])
                queries.append(Query(table.id, title, sql, engine))
    return tuple(queries)


def _write_as_of(engine: Engine, spec: Spec, table: TableSpec, source: str, as_of: AsOf, view: str) -> str:
    if as_of.snapshot_id is not None:
        refused = redshift_sql.refuse_version(as_of.job_id, as_of.snapshot_id)
        return refused if engine is Engine.REDSHIFT else write_version(engine, source, as_of.snapshot_id)
    if not as_of.keys:
        return "\n".join(filter(None, (view, f"SELECT *\nFROM {source}\nWHERE false;")))
    if unread := _describe_unread(engine, spec, table):
        return unread
    if engine is Engine.DUCKDB:
        return f"SELECT *\nFROM {duckdb_sql.write_files_source(spec, table, as_of.keys)};"
    if view:
        return f"{spark_sql.write_files_view(spec, table, source, as_of.keys)}\nSELECT *\nFROM {source};"
    if as_of.is_elsewhere:
        return (
            f"-- {engine.value} reads the table's folder in Glue, which is that of a later full refresh: the files of "
            f"load {as_of.job_id}\n-- are still there, and DuckDB reads them by their names."
        )
    return write_files(engine, source, spec.access.bucket, as_of.keys)


def list_engines(spec: Spec) -> tuple[Engine, ...]:
    """Return the engines that can read the tables in their present location."""
    if spec.catalog.lists_tables:
        snowflake_too = (Engine.SNOWFLAKE,) if spec.service and spec.service.is_read_by_snowflake else ()
        # Athena and Redshift have no connection to another REST catalog than AWS's own.
        is_in_aws = spec.in_glue or spec.table_bucket is not None
        is_new = isinstance(spec.catalog, IcebergCatalog) and spec.catalog.format_version > HIGHEST_OF_ATHENA
        athena_too = (Engine.ATHENA,) if is_in_aws and not is_new else ()
        if not spec.catalog.has_entries:
            return (*athena_too, Engine.DUCKDB)
        redshift_too = (Engine.REDSHIFT,) if is_in_aws else ()
        return (*snowflake_too, *athena_too, Engine.DUCKDB, *redshift_too, Engine.SPARK, Engine.TRINO)
    is_refreshed = any(table.latest is not None for table in spec.tables)
    athena = () if spec.catalog.is_read_by_files or is_refreshed else (Engine.ATHENA,)
    return (*athena, Engine.DUCKDB, Engine.SPARK)


def write_queries(
    spec: Spec,
    engines: Sequence[Engine],
    last: LastLoads | None = None,
    deployment: Deployment | None = None,
    stage: str | None = None,
) -> tuple[Query, ...]:
    """Write the statements of each engine: what to run once, how to read each table, the queries of the guides.

    Without a table's last load, placeholders are written.
    """
    last_loads, about = last or LastLoads(), deployment or Deployment()
    return tuple(query for engine in engines for query in _write_for_engine(engine, spec, last_loads, about, stage))


def _write_for_engine(
    engine: Engine, spec: Spec, last: LastLoads, deployment: Deployment, stage: str | None
) -> Iterator[Query]:
    if engine is Engine.SNOWFLAKE:
        if isinstance(spec.rest_service, snowflake.Readable):
            yield from snowflake.write_statements(spec, deployment, spec.rest_service, stage)
        return
    for title, sql in _write_setup(engine, spec, deployment, stage):
        yield Query(ALL, title, sql, engine)
    for table, source, (title, sql) in _list_tables(engine, spec):
        if missing := _describe_unread(engine, spec, table) or last.describe_missing(table, reads_files=bool(sql)):
            yield Query(table.id, _MISSING, missing, engine)
            continue
        if sql:
            yield Query(table.id, title, sql, engine)
        yield from _write_table_queries(engine, spec, table, source, last)


def write_views(
    spec: Spec, engine: Engine, last: LastLoads, deployment: Deployment | None = None, stage: str | None = None
) -> tuple[Query, ...]:
    """Write the statements that make a view of each table and what they need; ``name_views`` has the names."""
    views = [
        Query(ALL, title, sql, engine) for title, sql in _write_setup(engine, spec, deployment or Deployment(), stage)
    ]
    for (table, source, (title, sql)), name, after in zip(
        _list_tables(engine, spec), name_views(spec), name_history_views(spec), strict=True
    ):
        if missing := _describe_unread(engine, spec, table) or last.describe_missing(table, reads_files=bool(sql)):
            views.append(Query(table.id, _MISSING, missing, engine))
            continue
        if not sql:
            title, sql = "Make a view of the table", _write_view(engine, name, f"SELECT *\nFROM {source};")
        views.append(Query(table.id, title, sql, engine))
        if history := write_history(engine, spec, table, source):
            views.append(Query(table.id, "Make a view of its history", _write_view(engine, after, history), engine))
    return tuple(views)


def _write_view(engine: Engine, name: str, query: str) -> str:
    temporary = "TEMPORARY " if engine is Engine.SPARK else ""
    return f"CREATE OR REPLACE {temporary}VIEW {quote_name(engine, name)} AS\n{query}"


def _describe_unread(engine: Engine, spec: Spec, table: TableSpec) -> str:
    reason = duckdb_sql.describe_unread(spec, table) if engine is Engine.DUCKDB else ""
    return reason and f"-- {reason}."


def _list_tables(engine: Engine, spec: Spec) -> Iterator[tuple[TableSpec, str, tuple[str, str]]]:
    """Yield each table, the source in its FROM clause, and title and statement of the view that it needs."""
    views = [("", "")] * len(spec.tables)
    if engine is Engine.SPARK:
        views = spark_sql.write_views(spec)
    elif engine is Engine.DUCKDB:
        views = duckdb_sql.write_views(spec)
    return zip(spec.tables, _list_sources(engine, spec), views, strict=True)


def _write_setup(engine: Engine, spec: Spec, deployment: Deployment, stage: str | None) -> list[tuple[str, str]]:
    if engine is Engine.REDSHIFT:
        return redshift_sql.write_setup(spec, deployment, stage)
    if engine is Engine.DUCKDB:
        return duckdb_sql.write_setup(spec, find_account(spec, deployment))
    if engine is Engine.SPARK:
        return spark_sql.write_setup(spec)
    return trino_sql.write_setup(spec) if engine is Engine.TRINO else trino_sql.write_registration(spec)


def find_account(spec: Spec, deployment: Deployment) -> str:
    """Return the account of the Glue Data Catalog, or a placeholder for it."""
    if spec.access.catalog_account:
        return spec.access.catalog_account
    of_role = (spec.access.role_arn or "").split(":")[4:5]
    return deployment.account or "".join(of_role) or "<the AWS account's 12 digits>"


def _list_sources(engine: Engine, spec: Spec) -> list[str]:
    if engine is Engine.SPARK:
        return spark_sql.list_sources(spec)
    if engine is Engine.DUCKDB:
        return [duckdb_sql.write_source(spec, table) for table in spec.tables]
    if engine is Engine.REDSHIFT:
        return [redshift_sql.write_source(table) for table in spec.tables]
    return [trino_sql.write_source(engine, spec, table) for table in spec.tables]


def _write_table_queries(engine: Engine, spec: Spec, table: TableSpec, source: str, last: LastLoads) -> Iterator[Query]:
    statements = [(QUERY, f"SELECT *\nFROM {source}\nLIMIT 100;")]
    statements += _write_tracking_queries(engine, spec, source, last.jobs.get(table.id, _LATEST))
    if spec.iceberg and engine is not Engine.REDSHIFT:
        at = write_time_travel(engine, source, last.times.get(table.id))
        statements.append(("Time travel: the table as of a moment (UTC)", at))
    if history := write_history(engine, spec, table, source):
        statements.append((HISTORY, history))
    for title, sql in statements:
        yield Query(table.id, title, sql, engine)


def _write_tracking_queries(engine: Engine, spec: Spec, source: str, job_id: str) -> list[tuple[str, str]]:
    """Return titles and statements over ``source``; a query is left out where the pipeline lacks its tracking
    columns."""
    names = {column.holds: quote_name(engine, column.name) for column in spec.tracking}
    statements = (
        ("Read the rows of the last load", _write_latest_sync(engine, names, source, job_id)),
        ("Count the rows of all loads", _write_syncs(names, source)),
        ("Read the latest version of each row", _write_current_rows(engine, names, source)),
    )
    return [(title, sql) for title, sql in statements if sql]


def _write_latest_sync(engine: Engine, names: dict[Tracking, str], source: str, job_id: str) -> str:
    if Tracking.JOB_ID not in names:
        return ""
    return f"SELECT *\nFROM {source}\nWHERE {names[Tracking.JOB_ID]} = {quote_text(engine, job_id)}\nLIMIT 100;"


def _write_syncs(names: dict[Tracking, str], source: str) -> str:
    if not {Tracking.JOB_ID, Tracking.SYNCED} <= names.keys():
        return ""
    job, synced = names[Tracking.JOB_ID], names[Tracking.SYNCED]
    # The words of the columns.
    time = "sync_time" if "sync" in synced else "load_time"
    return (
        f"SELECT {job}, COUNT(*) as record_count, MIN({synced}) as {time}\n"
        f"FROM {source}\nGROUP BY {job}\nORDER BY {time} DESC;"
    )


def _write_current_rows(engine: Engine, names: dict[Tracking, str], source: str) -> str:
    """Write a query for the last version of each record: the sync time decides, and the row's index within a load."""
    if not {Tracking.ID, Tracking.SYNCED, Tracking.INDEX} <= names.keys():
        return ""
    order = f"{names[Tracking.SYNCED]} DESC, {names[Tracking.INDEX]} DESC"
    # The other engines take a query behind FROM without a name, as the vendor's page has it.
    name = " AS versions" if engine is Engine.REDSHIFT else ""
    there = f" AND {names[Tracking.DELETED]} = false" if Tracking.DELETED in names else ""
    return (
        "SELECT * FROM (\n"
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {names[Tracking.ID]} ORDER BY {order}) as rn\n"
        f"FROM {source}\n"
        f"){name} WHERE rn = 1{there};"
    )
