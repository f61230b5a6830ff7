"""The page of a pipeline's tables: columns, loads, freshness, sizes, and SQL to paste."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from lakewriter.pages.load_record import LoadRecord
from lakewriter.pages.render import render
from lakewriter.report import format_count


@dataclass(frozen=True)
class CatalogueColumn:
    """A column; ``type`` is blank where its files have none, ``origin`` says where its values come from."""

    name: str
    type: str
    origin: str


@dataclass(frozen=True)
class Statement:
    """SQL that reads a table, or that is run once before."""

    title: str
    engine: str
    sql: str


@dataclass(frozen=True)
class CatalogueTable:
    """One table.

    why      why its columns or its sizes are not known; blank where they are
    files    its files now, None where they were not counted; ``more`` is true if there are more than were listed
    """

    id: str
    location: str
    source: str
    committed: int = 0
    last_commit: datetime | None = None
    last_job: str = ""
    cursor: str = ""
    pending: str = ""
    columns: tuple[CatalogueColumn, ...] = ()
    why: str = ""
    files: int | None = None
    bytes: int = 0
    more: bool = False
    statements: tuple[Statement, ...] = field(default=())


def render_catalogue(
    pipeline: str,
    tables: Sequence[CatalogueTable],
    setup: Sequence[Statement],
    loads: Sequence[LoadRecord],
    now: datetime,
) -> str:
    """Render the page of all tables; ``loads`` are the last ones, the newest first."""
    ages = {t.id: describe_age(now - t.last_commit) if t.last_commit else "never loaded" for t in tables}
    return render(
        "catalogue.html",
        script="search.js",
        pipeline=pipeline,
        tables=sorted(tables, key=lambda table: table.id),
        ages=ages,
        setup=setup,
        loads=loads,
        now=now,
        bytes=sum(table.bytes for table in tables),
    )


def describe_age(age: timedelta) -> str:
    """How long ago, in the greatest whole unit."""
    seconds = max(0, int(age.total_seconds()))
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            return f"{format_count(seconds // size, unit)} ago"
    return "less than a minute ago"
