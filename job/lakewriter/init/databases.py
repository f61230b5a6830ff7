"""Draft the tables of a database from what its driver tells of them."""

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from lakewriter.errors import SourceFailedError
from lakewriter.init.draft import TableDraft
from lakewriter.init.proposals import is_named_for_changes
from lakewriter.report import format_count

USER: Final = "DB_USER"
PASSWORD: Final = "DB_PASSWORD"
_CREDENTIALS: Final = re.compile(r"(?<=[?&;])(user|username|password)=([^&;]*)[&;]?", re.IGNORECASE)
_TIMES: Final = ("timestamp", "datetime", "date", "time")


def draft_database(url: str, schemas: Sequence[str], spark: Callable[[], Any] | None) -> list[TableDraft]:
    """Draft an entry for each table and view; user and password are named by variables of the environment."""
    # Imported here, since only a database needs Spark.
    from lakewriter.source.database_tables import list_database_tables

    assert spark is not None
    bare, options, references = _split_credentials(url)
    tables = list_database_tables(spark(), {"url": bare, **options}, tuple(schemas))
    if not tables:
        where = f" of the schemas {', '.join(schemas)}" if schemas else ""
        raise SourceFailedError(f"the database has no table{where} that this user may see.", remedy="Check --schema.")
    drafts = []
    for table in tables:
        what = "view" if table.is_view else "table"
        key_evidence = "the database's own primary key" if table.primary_key else f"the {what} has no primary key"
        drafts.append(
            TableDraft(
                name=table.name,
                schema=table.schema,
                seen=f"{what} of {format_count(len(table.columns), 'column')}",
                read={"format": "jdbc", "options": {"url": bare, "dbtable": table.dbtable, **references}},
                key=(table.primary_key, key_evidence, bool(table.primary_key)),
                cursor=_propose_cursor(table.columns),
            )
        )
    return drafts


def _propose_cursor(columns: Any) -> tuple[str, str, bool] | None:
    """A time of change; rows whose value is null are never read again, so the column must refuse null."""
    for name, (kind, may_be_null) in columns.items():
        if is_named_for_changes(name) and kind.lower().startswith(_TIMES):
            null = "may be null, and such rows no later load would read" if may_be_null else "never null"
            return name, f"{kind}, {null}", not may_be_null
    return None


def _split_credentials(url: str) -> tuple[str, dict[str, str], dict[str, str]]:
    """The URL without a user or password, the options that have them now, and the references that lake.yaml has."""
    given = {key.lower().removesuffix("name"): value for key, value in _CREDENTIALS.findall(url)}
    bare = _CREDENTIALS.sub("", url).rstrip("?&;")
    user = given.get("user") or os.environ.get(USER)
    password = given.get("password") or os.environ.get(PASSWORD)
    options = {key: value for key, value in {"user": user, "password": password}.items() if value}
    references = {"user": f"${{env:{USER}}}", "password": f"${{env:{PASSWORD}}}"}
    return bare, options, {key: references[key] for key in options}
