"""Draft the tables of a database from its driver's metadata."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lakewriter.errors import SourceFailedError
from lakewriter.init.draft import TableDraft
from lakewriter.init.proposals import is_named_for_changes
from lakewriter.report import format_count

if TYPE_CHECKING:
    from lakewriter.source.databases.database_tables import DatabaseTable

USER: Final = "DB_USER"
PASSWORD: Final = "DB_PASSWORD"
_CREDENTIALS: Final = re.compile(r"(?<=[?&;])(user|username|password)=([^&;]*)[&;]?", re.IGNORECASE)
LARGE: Final = 5_000_000
"""Rows of a table that is worth several connections."""
_CONNECTIONS: Final = 8
_LAG: Final = "10 minutes"
_NUMBER: Final = re.compile(
    r"(?:small|medium|big)?(?:int|serial)|integer|int[248]|number|numeric|decimal", re.IGNORECASE
)
_TIMES: Final = ("timestamp", "datetime", "date", "time")


def draft_database(url: str, schemas: Sequence[str], spark: Callable[[], Any] | None) -> list[TableDraft]:
    """Draft an entry for each table and view; user and password are named by variables of the environment."""
    # Imported here, since only a database needs Spark.
    from lakewriter.source.databases.database_tables import list_database_tables

    assert spark is not None
    bare, options, references = _split_credentials(url)
    tables = list_database_tables(spark(), {"url": bare, **options}, tuple(schemas))
    if not tables:
        where = f" of the schemas {', '.join(schemas)}" if schemas else ""
        raise SourceFailedError(f"the database has no table{where} that this user may see.", remedy="Check --schema.")
    # A view repeats rows of tables; of a database that shows views alone they are all there is.
    has_tables = any(not table.is_view for table in tables)
    return [
        _draft_table(table, {"url": bare, "dbtable": table.dbtable, **references}, is_off=has_tables and table.is_view)
        for table in tables
    ]


def _draft_table(table: "DatabaseTable", options: Mapping[str, str], *, is_off: bool) -> TableDraft:
    what = "view" if table.is_view else "table"
    read: dict[str, Any] = {"format": "jdbc", "options": dict(options)}
    seen = f"{what} of {format_count(len(table.columns), 'column')}"
    is_large = table.rows is not None and table.rows >= LARGE
    if table.rows is not None and table.rows > 0:
        seen += f", about {format_count(table.rows, 'row')}"
    if is_large and (column := _choose_range_column(table)) is not None:
        read["partition"] = {"column": column, "count": _CONNECTIONS}
    key_evidence = "the database's own primary key" if table.primary_key else f"the {what} has no primary key"
    cursor = _propose_cursor(table.columns)
    return TableDraft(
        name=table.name,
        schema=table.schema,
        seen=f"{seen}; a view is left out until you take it in" if is_off else seen,
        read=read,
        key=(table.primary_key, key_evidence, bool(table.primary_key)),
        cursor=cursor,
        lag=_propose_lag(table, cursor),
        is_small=not is_large,
        retyped=table.retyped,
        is_off=is_off,
    )


def _choose_range_column(table: "DatabaseTable") -> str | None:
    """Choose the column by whose ranges several tasks read a large table: a key that is one number."""
    if len(table.primary_key) != 1:
        return None
    kind, _ = table.columns[table.primary_key[0]]
    return table.primary_key[0] if _NUMBER.match(kind) else None


def _propose_lag(table: "DatabaseTable", cursor: tuple[str, str, bool] | None) -> str | None:
    """Propose how much is read again: only where a key shows readers which rows are the same."""
    if cursor is None or not table.primary_key:
        return None
    return "1 day" if table.columns[cursor[0]][0].lower() == "date" else _LAG


def _propose_cursor(columns: Any) -> tuple[str, str, bool] | None:
    """Propose a time of change; rows whose value is null are never read again, so the column must refuse null."""
    for name, (kind, may_be_null) in columns.items():
        if is_named_for_changes(name) and kind.lower().startswith(_TIMES):
            null = "may be null, and such rows no later load would read" if may_be_null else "never null"
            return name, f"{kind}, {null}", not may_be_null
    return None


def _split_credentials(url: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the URL without a user or password, the options that have them now, and the references that lake.yaml
    has."""
    given = {key.lower().removesuffix("name"): value for key, value in _CREDENTIALS.findall(url)}
    bare = _CREDENTIALS.sub("", url).rstrip("?&;")
    user = given.get("user") or os.environ.get(USER)
    password = given.get("password") or os.environ.get(PASSWORD)
    options = {key: value for key, value in {"user": user, "password": password}.items() if value}
    references = {"user": f"${{env:{USER}}}", "password": f"${{env:{PASSWORD}}}"}
    return bare, options, {key: references[key] for key in options}
