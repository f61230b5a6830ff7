"""The work of ``lakewriter queries``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lakewriter.cli import console
from lakewriter.cli.context import Context
from lakewriter.cli.shared import OUT, is_local, open_context, print_json, warn
from lakewriter.commit.at_once import call_all
from lakewriter.commit.state import TableState
from lakewriter.errors import LakeError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.local_server.server import fill_keys
from lakewriter.naming import UNDO
from lakewriter.operate import queries
from lakewriter.operate.as_of import find_as_of
from lakewriter.operate.live_loads import read_table_loads
from lakewriter.operate.sql_text import Engine, Query
from lakewriter.spec.catalogs import NoCatalog


def print_queries(lake: Path, stage: str | None, engines: Sequence[str], as_of: str | None, *, as_json: bool) -> int:
    """Print the SQL of the file at ``lake`` for ``engines``, or for all that can read its tables."""
    context = open_context(lake, stage)
    # A server of this machine is looked at with what reads it without a cluster.
    engines = engines or ([Engine.DUCKDB] if is_local() else [])
    possible = queries.list_engines(context.spec)
    chosen = [engine for engine in possible if not engines or engine in engines]
    _warn_of_missing(context, [engine for engine in Engine if engine in engines and engine not in possible])
    if isinstance(context.spec.catalog, NoCatalog) and Engine.ATHENA in chosen:
        warn("Athena sees the tables once they are in Glue, which is off here")
    if as_of is None:
        written = _write_queries(context, chosen, stage)
    else:
        tables = read_table_loads(list(context.controls().values()))
        found = find_as_of(context.spec, tables, as_of, context.clients)
        written = queries.write_as_of(context.spec, chosen, found, context.deployment)
    if is_local():
        written = tuple(replace(query, sql=fill_keys(query.sql)) for query in written)
    if as_json:
        print_json({"version": 1, "queries": [vars(query) for query in written]})
    else:
        console.show_queries(OUT, written)
    return EXIT_OK


def _write_queries(context: Context, chosen: Sequence[Engine], stage: str | None) -> tuple[Query, ...]:
    states = _read_states(context) if chosen else {}
    last = queries.LastLoads(
        jobs=_find_last_loads(context, states),
        times={table_id: state.last_commit for table_id, state in states.items() if state.last_commit},
    )
    return queries.write_queries(context.spec, chosen, last, context.deployment, stage)


def _find_last_loads(context: Context, states: Mapping[str, TableState]) -> dict[str, str]:
    """The last load of each table that has one: an undo is none."""
    jobs = {table_id: state.last_job for table_id, state in states.items() if state.last_job}
    undone = [context.controls()[table_id] for table_id, job in jobs.items() if job.startswith(UNDO)]
    for table in read_table_loads(undone) if undone else ():
        del jobs[table.control.table_id]
        if table.loads:
            jobs[table.control.table_id] = table.loads[-1].job_id
    return jobs


def _warn_of_missing(context: Context, engines: Sequence[Engine]) -> None:
    """Say which engines cannot read the tables where they are, and what would change that."""
    names = " and ".join(engine.label for engine in engines)
    if isinstance(context.spec.catalog, NoCatalog) and engines:
        warn(f"no SQL for {names}: files without a catalog are no tables to them; put the tables in AWS Glue")
    elif engines:
        warn(f"no SQL for {names}: they cannot read a catalog of this kind")


def _read_states(context: Context) -> dict[str, TableState]:
    """Each table's state; none where the destination cannot be reached, since the SQL does without."""
    try:
        controls = context.controls()
        states = call_all(lambda control: control.state.read(), controls.values())
        return dict(zip(controls, states, strict=True))
    except LakeError as error:
        warn(f"placeholders stand for the latest loads ({error})")
        return {}
