"""Queries by tracking columns, for each engine: rows of the last load, loads, current rows; pure text."""

from lakewriter.operate.sql_text import Engine, quote_name, quote_text
from lakewriter.spec.specification import Spec, Tracking


def write_tracking_queries(engine: Engine, spec: Spec, source: str, job_id: str) -> list[tuple[str, str]]:
    """Titles and statements over ``source``; a query is left out where the pipeline lacks its tracking columns."""
    names = {column.holds: quote_name(engine, column.name) for column in spec.tracking}
    statements = (
        ("Read the rows of the last load", _write_latest_sync(engine, names, source, job_id)),
        ("Count the rows of all loads", _write_syncs(names, source)),
        ("Read the latest version of each row", _write_current_rows(names, source)),
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


def _write_current_rows(names: dict[Tracking, str], source: str) -> str:
    """Write a query for the last version of each record: the sync time decides, and the row's index within a load."""
    if not {Tracking.ID, Tracking.SYNCED, Tracking.INDEX} <= names.keys():
        return ""
    order = f"{names[Tracking.SYNCED]} DESC, {names[Tracking.INDEX]} DESC"
    there = f" AND {names[Tracking.DELETED]} = false" if Tracking.DELETED in names else ""
    return (
        "SELECT * FROM (\n"
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {names[Tracking.ID]} ORDER BY {order}) as rn\n"
        f"FROM {source}\n"
        f") WHERE rn = 1{there};"
    )
