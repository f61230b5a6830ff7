"""The work of ``lakewriter queries``."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from lakewriter.cli import console
from lakewriter.cli.printed import QueriesReport
from lakewriter.cli.shared import ERR, OUT, is_local, open_context, print_json, warn
from lakewriter.commit.at_once import call_all
from lakewriter.commit.committed_loads import read_table_loads
from lakewriter.errors import LakeError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.local_server.server import fill_keys
from lakewriter.operate import queries
from lakewriter.operate.as_of import find_as_of
from lakewriter.operate.context import Context
from lakewriter.operate.read_tables import find_missing
from lakewriter.operate.sql_text import Engine, Query
from lakewriter.records.state import TableState
from lakewriter.spec.load_ids import is_id_of_load
from lakewriter.spec.specification import Spec

LOOK_SECONDS: Final = 20.0
"""The longest wait for the last loads; after it the SQL has placeholders."""
Answer = TypeVar("Answer")


def print_queries(
    lake: Path,
    stage: str | None,
    engines: Sequence[str],
    as_of: str | None,
    *,
    views: bool | None,
    look: bool,
    as_json: bool,
) -> int:
    """Print the SQL of the file at ``lake`` for ``engines``, or for all that can read its tables.

    With ``look`` each table's last load is asked for; the server of this machine is asked in any case. With ``views``
    only the views are printed; None decides by where the output goes.
    """
    looks = look or is_local()
    context = open_context(lake, stage, asks=looks or as_of is not None)
    # DuckDB reads the server of this machine without a cluster.
    engines = engines or ([Engine.DUCKDB] if is_local() else [])
    possible = _list_engines(context.spec)
    chosen = [engine for engine in possible if not engines or engine in engines]
    _warn_of_missing(context, [engine for engine in Engine if engine in engines and engine not in possible])
    if not context.spec.catalog.lists_tables and Engine.ATHENA in chosen:
        warn("Athena sees the tables once they are in Glue, which is off here")
    if as_of is not None:
        written = _write_as_of(context, stage, chosen, as_of)
    else:
        last = _read_last(context) if chosen and looks else queries.LastLoads()
        written = _write(context, stage, chosen, last, views=_chooses_views(chosen, views, as_json=as_json))
    if is_local():
        written = tuple(replace(query, sql=fill_keys(query.sql)) for query in written)
    if as_json:
        print_json(QueriesReport(queries=written))
    else:
        console.show_queries(OUT, written)
    return EXIT_OK


def _list_engines(spec: Spec) -> list[Engine]:
    # Snowflake reaches no server of this machine.
    return [engine for engine in queries.list_engines(spec) if not (is_local() and engine is Engine.SNOWFLAKE)]


def _chooses_views(chosen: Sequence[Engine], views: bool | None, *, as_json: bool) -> bool:
    """Return whether the views alone are printed; for a program that reads the output, say so."""
    if views is not None:
        return views
    if as_json or sys.stdout.isatty() or len(chosen) != 1 or chosen[0] not in queries.VIEW_ENGINES:
        return False
    ERR.print("views alone, for the program that reads them; --no-views prints all statements", markup=False)
    return True


def _write(
    context: Context, stage: str | None, chosen: Sequence[Engine], last: queries.LastLoads, *, views: bool
) -> tuple[Query, ...]:
    if not views:
        return queries.write_queries(context.spec, chosen, last, context.deployment, stage)
    viewing = [engine for engine in chosen if engine in queries.VIEW_ENGINES]
    written = (queries.write_views(context.spec, engine, last, context.deployment, stage) for engine in viewing)
    return tuple(query for of_engine in written for query in of_engine)


def _write_as_of(context: Context, stage: str | None, chosen: Sequence[Engine], as_of: str) -> tuple[Query, ...]:
    controls = context.controls()
    queried = find_as_of(context.spec, read_table_loads(list(controls.values())), as_of, context.clients)
    missing = find_missing(context.spec, controls, {})
    return queries.write_as_of(context.spec, chosen, queried, context.deployment, stage, missing.without_files)


def _find_last_loads(context: Context, states: Mapping[str, TableState]) -> dict[str, str]:
    """Return the last load of each table that has one: an undo is none, nor is any other change without rows."""
    jobs = {table_id: state.last_job for table_id, state in states.items() if state.last_job}
    others = [context.controls()[table_id] for table_id, job in jobs.items() if not is_id_of_load(job)]
    for table in read_table_loads(others) if others else ():
        del jobs[table.control.table_id]
        if table.loads:
            jobs[table.control.table_id] = table.loads[-1].job_id
    return jobs


def _warn_of_missing(context: Context, engines: Sequence[Engine]) -> None:
    """Say which engines cannot read the tables where they are, and what would change that."""
    names = " and ".join(engine.label for engine in engines)
    if not context.spec.catalog.lists_tables and engines:
        warn(f"no SQL for {names}: files without a catalog are no tables to them; put the tables in AWS Glue")
    elif engines:
        warn(f"no SQL for {names}: none is printed for a catalog of this kind")


def _read_last(context: Context) -> queries.LastLoads:
    """Read each table's last load; return none if the destination does not answer in time, since the SQL does
    without."""

    def read() -> queries.LastLoads:
        controls = context.controls()
        read_states = call_all(lambda control: control.state.read(), controls.values())
        states = dict(zip(controls, read_states, strict=True))
        times = {table_id: state.last_commit for table_id, state in states.items() if state.last_commit}
        missing = find_missing(context.spec, controls, states)
        return replace(missing, jobs=_find_last_loads(context, states), times=times)

    try:
        return _wait_for(read, LOOK_SECONDS)
    except TimeoutError:
        warn(f"placeholders stand for the latest loads: the bucket has not answered for {LOOK_SECONDS:.0f} s")
    except LakeError as error:
        warn(f"placeholders stand for the latest loads ({error})")
    return queries.LastLoads()


def _wait_for(read: Callable[[], Answer], seconds: float) -> Answer:
    """Return the result of ``read``, or raise its error; raise ``TimeoutError`` after so many seconds."""
    answer: Future[Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(read())
        except BaseException as error:  # noqa: BLE001 - the caller that waits raises it
            answer.set_exception(error)

    # No thread of a pool, which Python waits for at its end.
    threading.Thread(target=run, daemon=True).start()
    return answer.result(timeout=seconds)
