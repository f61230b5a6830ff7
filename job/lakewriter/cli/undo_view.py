"""The work of ``lakewriter undo``."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from lakewriter.cli.printed import UndoneTable, UndoReport
from lakewriter.cli.shared import OUT, is_local, open_context, print_json
from lakewriter.commit.pipeline import Pipeline
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.report import format_count
from lakewriter.spec.load_ids import make_next_job_id

_SEEN: Final = {
    "snapshot": "readers see it go at once, with one snapshot; time travel still finds it",
    "switch": "readers see what the table had before it at once",
    "partition": "readers see it go at once, with its partition",
    "files": "readers see its files go one by one, within moments",
    "nothing": "it has no files: nothing that readers see changes",
}

_WITHOUT_PLAN: Final = {
    "already_undone": "is undone already",
    "finished": "is undone: its undo, which was pending, is finished",
    "pending": "has no plan yet, since a change is pending",
}


@dataclass(frozen=True)
class WantedUndo:
    """An undo as the user asks for it."""

    job_id: str
    tables: tuple[str, ...]
    through: bool
    keep_cursor: bool
    rewrite: bool
    plan_only: bool
    reason: str


def undo_load(lake: Path, stage: str | None, wanted: WantedUndo, *, as_json: bool) -> int:
    """Undo the load, or say what that would do, and print it."""
    context = open_context(lake, stage)
    choices = Choices(wanted.reason, wanted.keep_cursor, wanted.rewrite)
    pipeline = Pipeline.open(context.spec, context.clients)
    for name in wanted.tables:
        context.require_table(name)
    undo = Undo(pipeline, wanted.job_id, choices, tables=wanted.tables, through=wanted.through)
    undoings = undo.plan() if wanted.plan_only else undo.run()
    report = UndoReport(
        job_id=wanted.job_id,
        planned=wanted.plan_only,
        next=make_next_job_id(wanted.job_id),
        tables=tuple(UndoneTable.of(undoing, planned=wanted.plan_only) for undoing in undoings),
    )
    if as_json:
        print_json(report)
    else:
        show_undo(OUT, report, lake, () if stage is None else ("--stage", stage))
    return EXIT_OK


def show_undo(out: Console, report: UndoReport, lake: Path, stage: Sequence[str] = ()) -> None:
    """Show a paragraph for each table, and how the rows come back."""
    for table in report.tables:
        out.print("\n".join(_describe(table)), markup=False, soft_wrap=True)
    changed = [table for table in report.tables if table.status != "already_undone"]
    if report.planned:
        out.print("Nothing was changed: without --plan it is done.")
    elif changed:
        again = ["lakewriter", "run", str(lake), *stage, "--job-id", report.next, *(["--local"] if is_local() else [])]
        out.print(
            f"Load its rows again: {shlex.join(again)}\nA start for the same scheduled time takes this id by itself.",
            markup=False,
            soft_wrap=True,
        )


def _describe(table: UndoneTable) -> Iterator[str]:
    load = f"{table.table}: load {table.job_id}"
    if table.status in _WITHOUT_PLAN:
        yield f"{load} {_WITHOUT_PLAN[table.status]}"
        yield from (f"  {note}" for note in table.notes)
        return
    what = f"{format_count(table.rows, 'row')} in {format_count(table.files, 'file')}"
    yield f"{load} {'would be' if table.status == 'planned' else 'is'} undone: {what}"
    if table.status == "planned":
        yield f"  {_SEEN[table.view]}"
    if table.kept_minutes:
        minutes = format_count(table.kept_minutes, "minute")
        yield f"  its files stay {minutes} for queries that began before; then the table's next load deletes them"
    if table.cursor_before != table.cursor_after:
        yield f"  cursor: {table.cursor_before or 'none'} back to {table.cursor_after or 'none'}"
    yield from (f"  {note}" for note in table.notes)
    if table.status == "planned":
        yield f"  about {format_count(table.requests, 'request')}"
