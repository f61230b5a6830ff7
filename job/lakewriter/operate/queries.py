"""Write SQL that reads a pipeline's tables, for Athena and DuckDB; pure text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.specification import Spec, TableSpec, Tracking

_RESERVED: Final = re.compile(
    r"alter|and|as|auto|between|by|case|cast|constraint|create|cross|cube|current_catalog|current_date|"
    r"current_path|current_role|current_schema|current_time|current_timestamp|current_user|deallocate|delete|"
    r"describe|distinct|drop|else|end|escape|except|execute|exists|extract|false|for|from|full|group|grouping|"
    r"having|in|inner|insert|intersect|into|is|join|json_array|json_exists|json_object|json_query|json_table|"
    r"json_value|left|like|listagg|localtime|localtimestamp|natural|normalize|not|null|on|or|order|outer|prepare|"
    r"recursive|right|rollup|select|skip|table|then|trim|true|uescape|union|unnest|using|values|when|where|with"
)
"""Words that Trino accepts as names only in quotes."""
READERS: Final = {"parquet": "read_parquet", "avro": "read_avro", "csv": "read_csv", "jsonl": "read_json"}
"""DuckDB's functions by file format."""


@dataclass(frozen=True)
class Query:
    """One statement for one table."""

    table: str
    title: str
    sql: str


def write_athena_queries(spec: Spec, latest: Mapping[str, str] | None = None) -> tuple[Query, ...]:
    """Write the queries of the guides: latest sync, syncs by job, current rows.

    ``latest`` is the last job id by table; without it a placeholder is written. A query is left out where the pipeline
    lacks its tracking columns. Files without a catalog get a query for DuckDB.
    """
    if reads_files(spec):
        return tuple(
            Query(table.id, "Read the files with DuckDB", _write_files_query(spec, table)) for table in spec.tables
        )
    queries = []
    for table in spec.tables:
        job_id = (latest or {}).get(table.id, "latest-job-id")
        statements = (
            ("Query latest sync", _write_latest_sync_query(spec, table, job_id)),
            ("Find all synced records for a table", _write_syncs_query(spec, table)),
            ("Deduplicate (latest version of each record)", _write_current_rows_query(spec, table)),
        )
        known = [Query(table.id, title, sql) for title, sql in statements if sql]
        queries += known or [Query(table.id, "Query a table", f"SELECT *\nFROM {_quote_table_name(table)}\nLIMIT 100;")]
    return tuple(queries)


def reads_files(spec: Spec) -> bool:
    """Whether the tables are in no catalog, nor files that a vendor's documents tell to register by hand."""
    return isinstance(spec.catalog, NoCatalog) and {column.holds for column in spec.tracking} != set(Tracking)


def _write_files_query(spec: Spec, table: TableSpec) -> str:
    """Write a query by column names: backfills lie side by side, and files of one table may differ in columns."""
    kind = (table.encoding or spec.encoding).kind
    place = f"s3://{spec.access.bucket}/{table.layout.glob}".replace("'", "''")
    by_name = "" if kind == "avro" else ", union_by_name = true"
    return f"SELECT *\nFROM {READERS[kind]}('{place}'{by_name})\nLIMIT 100;"


def write_time_travel_queries(spec: Spec, times: Mapping[str, datetime] | None = None) -> tuple[Query, ...]:
    """Write the queries for Iceberg tables; ``times`` is the last commit (UTC) by table, a placeholder without one."""
    queries = []
    for table in spec.tables:
        at = (times or {}).get(table.id)
        # A second later, so that the table is as that load left it.
        text = f"{at.astimezone(UTC) + timedelta(seconds=1):%Y-%m-%d %H:%M:%S}" if at else "2025-03-15 10:00:00"
        queries += [
            Query(table.id, "Query an Iceberg table", f"SELECT *\nFROM {_quote_table_name(table)}\nLIMIT 100;"),
            Query(
                table.id,
                "Time travel: the table as of a moment (UTC)",
                f"SELECT *\nFROM {_quote_table_name(table)}\nFOR TIMESTAMP AS OF TIMESTAMP '{text} UTC';",
            ),
        ]
    return tuple(queries)


def _write_latest_sync_query(spec: Spec, table: TableSpec, job_id: str) -> str:
    names = _find_tracking_names(spec)
    if Tracking.JOB_ID not in names:
        return ""
    return f"SELECT *\nFROM {_quote_table_name(table)}\nWHERE {names[Tracking.JOB_ID]} = '{job_id}'\nLIMIT 100;"


def _write_syncs_query(spec: Spec, table: TableSpec) -> str:
    names = _find_tracking_names(spec)
    if not {Tracking.JOB_ID, Tracking.SYNCED} <= names.keys():
        return ""
    job, synced = names[Tracking.JOB_ID], names[Tracking.SYNCED]
    return (
        f"SELECT {job}, COUNT(*) as record_count, MIN({synced}) as sync_time\n"
        f"FROM {_quote_table_name(table)}\nGROUP BY {job}\nORDER BY sync_time DESC;"
    )


def _write_current_rows_query(spec: Spec, table: TableSpec) -> str:
    """Write a query for the last version of each record: the sync time decides, and the row's index within a load."""
    names = _find_tracking_names(spec)
    if not {Tracking.ID, Tracking.SYNCED, Tracking.INDEX} <= names.keys():
        return ""
    order = f"{names[Tracking.SYNCED]} DESC, {names[Tracking.INDEX]} DESC"
    there = f" AND {names[Tracking.DELETED]} = false" if Tracking.DELETED in names else ""
    return (
        "SELECT * FROM (\n"
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {names[Tracking.ID]} ORDER BY {order}) as rn\n"
        f"FROM {_quote_table_name(table)}\n"
        f") WHERE rn = 1{there};"
    )


def _find_tracking_names(spec: Spec) -> dict[Tracking, str]:
    return {column.holds: column.name for column in spec.tracking}


def _quote_table_name(table: TableSpec) -> str:
    return ".".join(f'"{part}"' if _RESERVED.fullmatch(part) else part for part in table.id.split("."))
