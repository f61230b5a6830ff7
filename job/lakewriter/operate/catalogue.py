"""Describe every table of a pipeline as it is now: its columns, its loads, its files, and SQL that reads it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final

from lakewriter.aws import Clients
from lakewriter.commit.control import Control
from lakewriter.commit.table_objects import MOST_LISTED, list_objects
from lakewriter.errors import LakeError
from lakewriter.naming import name_generation
from lakewriter.operate.queries import ALL, QUERY
from lakewriter.operate.sql_text import Query
from lakewriter.operate.written_columns import Written, find_written
from lakewriter.pages.catalogue_page import CatalogueColumn, CatalogueTable, Statement
from lakewriter.records.state import TableState
from lakewriter.run.placement import find_in_catalog
from lakewriter.spec.specification import Spec, Tracking
from lakewriter.spec.table_spec import Mode, TableSpec

READERS: Final = 8
"""Tables that are read in parallel."""
MOST_WITH_ALL: Final = 100
"""Up to this many tables, the page has all statements of each. With more tables it has one per engine, to stay
small."""
_HOLDS: Final = {Tracking.SYNCED: "time of the load"}
"""The content of tracking columns whose own name would mislead."""
_NAME: Final = "catalogue"
"""Stands for the job id in names of objects that are never written."""


def describe_tables(
    spec: Spec,
    controls: Mapping[str, Control],
    states: Mapping[str, TableState | LakeError],
    clients: Clients,
    queries: Sequence[Query],
) -> list[CatalogueTable]:
    """Describe all tables; the description of one that cannot be read says why."""
    statements = list_statements(queries, brief=len(spec.tables) > MOST_WITH_ALL)

    def describe(table: TableSpec) -> CatalogueTable:
        table_statements = statements.get(table.id, ())
        return _describe_table(spec, table, controls[table.id], states[table.id], clients, table_statements)

    with ThreadPoolExecutor(READERS, thread_name_prefix="table") as pool:
        return list(pool.map(describe, spec.tables))


def list_statements(queries: Sequence[Query], *, brief: bool) -> dict[str, tuple[Statement, ...]]:
    """Return the statements by table; if ``brief``, only those by which each engine reads the whole table."""
    statements: dict[str, list[Statement]] = defaultdict(list)
    for query in queries:
        engines = {statement.engine for statement in statements[query.table] if statement.title == QUERY}
        if not brief or query.table == ALL or query.engine.label not in engines:
            statements[query.table].append(Statement(query.title, query.engine.label, query.sql))
    return {table: tuple(written) for table, written in statements.items()}


def _describe_table(
    spec: Spec,
    table: TableSpec,
    control: Control,
    state: TableState | LakeError,
    clients: Clients,
    statements: tuple[Statement, ...],
) -> CatalogueTable:
    source = ".".join(part for part in (table.source_schema, table.source_table) if part)
    fields: dict[str, Any] = {"id": table.id, "location": spec.table_location(table), "source": source}
    fields |= {"statements": statements, "is_replaced": table.mode in (Mode.REFRESH, Mode.OVERWRITE)}
    if isinstance(state, LakeError):
        return CatalogueTable(**fields, why=str(state))
    fields |= _describe_state(state)
    if not state.is_loaded:
        # There is nothing to read yet, and no last load whose id a query could have.
        fields["statements"] = ()
    try:
        fields |= _measure_files(control, state)
        written = _find_columns(spec, table, control, state, clients)
    except LakeError as error:
        return CatalogueTable(**fields, why=str(error))
    if isinstance(written, Written):
        return CatalogueTable(**fields, columns=tuple(_list_columns(spec, table, written, state)))
    return CatalogueTable(**fields, why=written or "")


def _describe_state(state: TableState) -> dict[str, Any]:
    pending = state.pending
    waits = f"load {pending.job_id} ({pending.phase}) since {pending.since:%Y-%m-%d %H:%M} UTC" if pending else ""
    return {
        "committed": state.committed,
        "last_commit": state.last_commit,
        "last_job": state.last_job or "",
        "cursor": state.cursor.text if state.cursor else "",
        "pending": waits,
    }


def _find_columns(
    spec: Spec, table: TableSpec, control: Control, state: TableState, clients: Clients
) -> Written | str | None:
    names = table.layout.bind(job_id=_NAME, attempt=_NAME, start=datetime.now(UTC), sync_id=0, table=table.id)
    entry = find_in_catalog(spec, table, names, f"{spec.pipeline}/{_NAME}/{_NAME}", clients)
    return find_written(spec, table, control, state, entry, clients)


def _measure_files(control: Control, state: TableState) -> dict[str, Any]:
    """Return the number and size of the files that match the layout, or of those that readers see of a refreshed table.
    Of an Iceberg table only the catalog knows the files.
    """
    if control.layout is None:
        return {}
    entries = list_objects(control.store, control.layout)
    if control.layout.has_generations:
        shown = f"/{name_generation(state.shown.number if state.shown is not None else 0)}/"
        entries = [entry for entry in entries if shown in entry.key]
    size = sum(entry.size for entry in entries)
    return {"files": len(entries), "bytes": size, "more": len(entries) >= MOST_LISTED}


def _list_columns(spec: Spec, table: TableSpec, written: Written, state: TableState) -> Iterator[CatalogueColumn]:
    tracking = {
        column.name.lower(): _HOLDS.get(column.holds, column.holds.value.replace("_", " ")) for column in spec.tracking
    }
    source = ".".join(part for part in (table.source_schema, table.source_table) if part)
    envelope = {name.lower() for name in spec.envelope.names} if spec.envelope else set()
    sources = {given.name.lower(): given.source for given in state.names or () if not given.within}
    for name, kind in written.columns.items():
        origin = f"{sources.get(name.lower(), name)} of {source}"
        if name.lower() in tracking:
            origin = f"tracking column: {tracking[name.lower()]}"
        elif name.lower() in envelope:
            origin = "envelope of the source's messages"
        yield CatalogueColumn(name, kind, origin)
