"""The page of a pipeline's tables: columns, loads, freshness, sizes, and SQL to paste."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lakewriter.pages.load_record import LoadRecord
from lakewriter.pages.render import render


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
    is_replaced  whether each load replaces all rows
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
    is_replaced: bool = False
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
    links: Mapping[str, str] | None = None,
) -> str:
    """Render the page of all tables; ``loads`` are the last ones, the newest first, ``links`` the addresses of their
    pages by job id."""
    return render(
        "catalogue.html",
        script="search.js",
        pipeline=pipeline,
        tables=sort_tables(tables),
        setup=setup,
        loads=loads,
        rows={table.id: describe_rows(table, loads) for table in tables},
        now=now,
        bytes=sum(table.bytes for table in tables),
        links=links or {},
    )


def sort_tables(tables: Sequence[CatalogueTable]) -> dict[str, CatalogueTable]:
    """Return the tables in the order of the page, by the names of their entries on it."""
    ordered = sorted(tables, key=lambda table: table.id)
    return {f"table-{number}": table for number, table in enumerate(ordered, start=1)}


def describe_rows(table: CatalogueTable, loads: Sequence[LoadRecord]) -> str:
    """Say how many rows the table has, by the records of its loads as far as they are kept; blank where none are."""
    records = [(load, loaded) for load in loads for loaded in load.tables if loaded.id == table.id]
    counted = [loaded.rows for load, loaded in records if loaded.status in ("done", "already_done")]
    if not counted:
        return ""
    if table.is_replaced:
        return f"{counted[0]:,}"
    every = sum(loaded.status in ("done", "already_done", "undone") for _, loaded in records)
    rows = f"{sum(counted):,}"
    return rows if every >= table.committed else f"{rows} in the last {every} of {table.committed} loads"
