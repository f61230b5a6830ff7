"""The work of ``lakewriter abandon``, ``reset`` and ``rebuild``."""

from collections.abc import Mapping
from pathlib import Path

from lakewriter.cli.printed import MendedTable, MendReport
from lakewriter.cli.shared import OUT, open_context, print_json
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import reuse_clients
from lakewriter.commit.recover import recover
from lakewriter.commit.resets import begin_backfill
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate import repair
from lakewriter.operate.context import Context
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.rebuild import ask_catalog
from lakewriter.operate.rebuild import rebuild as rebuild_state
from lakewriter.receipt import Cursor
from lakewriter.records.state import TableState
from lakewriter.run.chosen_files import list_all_files
from lakewriter.shape.cursor import parse_cursor
from lakewriter.spec.table_spec import TableSpec


def abandon(lake: Path, stage: str | None, job_id: str, reason: str, *, intent_lost: bool) -> MendReport:
    """Give up a pending load, with its intent or without."""
    context = open_context(lake, stage)
    if intent_lost:
        done = abandon_without_intent(context.controls(), job_id, reason)
    else:
        done = repair.abandon(context.controls(), job_id, reason, context.clients)
    return MendReport(tables=tuple(MendedTable(table=table_id, done=(what,)) for table_id, what in done.items()))


def change_loads(lake: Path, stage: str | None, name: str, way: str, reason: str) -> MendReport:
    """Begin a backfill, or with ``go-on`` change between single loads and a continuous run."""
    tables = _open_tables(open_context(lake, stage), name)
    table = tables[0][0]
    if way == "backfill" and table.backfill is not None:
        raise SpecInvalidError(
            f"table {table.id} has backfill: {table.backfill} in the file, which begins its backfills.",
            remedy="Raise the number there: the next load reads everything again.",
        )
    if way == "backfill":
        return _report({control.table_id: begin_backfill(control, reason) for _, control in tables})
    # A history without a load begins with whatever load is the next.
    loaded = [control for one, control in tables if one is table or control.state.read().is_loaded]
    return _report({control.table_id: repair.change_over(control, reason) for control in loaded})


def reset_files(lake: Path, stage: str | None, name: str, way: str, reason: str) -> MendReport:
    """Say which files of its source count as read by a table's loads."""
    context = open_context(lake, stage)
    tables = _open_tables(context, name)
    listed = list_all_files(tables[0][0], context.spark) if way == "files-read" else ()
    files = None if way == "files-noted" else listed
    return _report({control.table_id: repair.reset_files(control, files, reason) for _, control in tables})


def move_cursor(
    lake: Path, stage: str | None, name: str, cursor: str | None, kind: str | None, reason: str
) -> MendReport:
    """Move a table's cursor; None lets the next load read everything."""
    tables = _open_tables(open_context(lake, stage), name)
    table, control = tables[0]
    if table.cursor is None and cursor is not None:
        raise SpecInvalidError(f"table {table.id} has no cursor column.", remedy="Give the table a 'cursor'.")
    new = None if cursor is None else _parse_cursor(control, cursor, kind)
    return _report({control.table_id: repair.reset_cursor(control, new, reason) for _, control in tables})


def rebuild(
    lake: Path, stage: str | None, name: str, cursor: tuple[str, str] | None, reason: str, *, from_start: bool
) -> MendReport:
    """Create a table's missing state; ``cursor`` is the type and the value of the one that is known."""
    context = open_context(lake, stage)
    table, control = find_table(context, name)
    parsed_cursor = None if cursor is None else parse_cursor(*cursor)
    catalog = ask_catalog(context.spec, table, context.clients)
    rebuilt = rebuild_state(control, table, catalog, reason, parsed_cursor, from_start=from_start)
    done = MendedTable(table=control.table_id, done=tuple(rebuilt.concluded), unknown=tuple(rebuilt.unknown))
    return MendReport(tables=(done,))


def show(report: MendReport, *, as_json: bool) -> int:
    """Print what was done to each table."""
    if as_json:
        print_json(report)
        return EXIT_OK
    for table in report.tables:
        if not table.unknown:
            _print(f"{table.table}: {' '.join(table.done)}")
            continue
        _print(f"{table.table}: the state was created:")
        for line in table.done:
            _print(f"  {line}")
        _print("Not known, so look at it before the next load:")
        for line in table.unknown:
            _print(f"  {line}")
    return EXIT_OK


def _report(states: Mapping[str, TableState]) -> MendReport:
    """Report the last reset in the state of each table, by id."""
    done = (MendedTable(table=table_id, done=(state.resets[-1].what,)) for table_id, state in states.items())
    return MendReport(tables=tuple(done))


def _parse_cursor(control: Control, text: str, kind: str | None) -> Cursor:
    current = control.state.read().cursor
    if current is None and kind is None:
        raise SpecInvalidError(f"table {control.table_id} has no cursor yet.", remedy="Give its type by --type.")
    return parse_cursor(kind or str(current and current.type), text)


def find_table(context: Context, name: str) -> tuple[TableSpec, Control]:
    """Return the table of a name, as status shows it or as its source calls it; ``SPEC_INVALID`` for any other."""
    controls = context.controls()
    tables = {}
    for table in context.spec.tables:
        names = (table.id, table.name, *([table.source_table] if table.history_of is None else []))
        if name in names:
            tables[table.id] = table
    if len(tables) != 1:
        raise SpecInvalidError(f"{name!r} names {len(tables)} tables, expected one of: {', '.join(controls)}.")
    (table,) = tables.values()
    return table, controls[table.id]


def _open_tables(context: Context, name: str) -> list[tuple[TableSpec, Control]]:
    """Return the table of a name, and behind it its history, once what is pending in them is finished: a change by hand
    is one after it."""
    table, control = find_table(context, name)
    tables, controls = [(table, control)], context.controls()
    tables += [(one, controls[one.id]) for one in context.spec.tables if one.history_of == table.id]
    for _, of_table in tables:
        recover(of_table, reuse_clients(context.clients))
    return tables


def _print(line: str) -> None:
    OUT.print(line, markup=False, soft_wrap=True)
