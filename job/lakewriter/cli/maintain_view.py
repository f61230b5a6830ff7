"""The work of ``lakewriter maintain``."""

from collections.abc import Iterator
from pathlib import Path

from lakewriter.cli.compact_view import describe_compaction
from lakewriter.cli.printed import ExpiredPart, MaintainedTable, MaintainReport
from lakewriter.cli.repairs import find_table
from lakewriter.cli.shared import ERR, OUT, open_context, print_json
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import LakeError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.upkeep import TableMaintenance
from lakewriter.report import ErrorReport, format_count, format_size, join_first
from lakewriter.spec.table_spec import TableSpec

MOST_NAMED = 10
"""The most loads that a line names."""


def maintain_tables(
    lake: Path, stage: str | None, name: str | None, budget: int, *, plan_only: bool, as_json: bool
) -> int:
    """Keep the file's tables up, or the one of a name, and print what was done or would be. A table that fails keeps no
    other from its upkeep; the exit code is that of the first error."""
    context = open_context(lake, stage)
    tables = context.spec.tables if name is None else (find_table(context, name)[0],)
    pipeline = Pipeline.open(context.spec, context.clients)
    maintenance = TableMaintenance(pipeline, budget)
    done, errors = list[MaintainedTable](), list[LakeError]()
    for table in tables:
        try:
            outcome = _keep_up(pipeline, maintenance, table, plan_only=plan_only)
        except LakeError as error:
            errors.append(error)
            outcome = MaintainedTable(table=table.id, status="failed", code=error.code, message=error.message)
        done.append(outcome)
        if not as_json:
            for line in _describe(outcome):
                (ERR if outcome.status == "failed" else OUT).print(line, markup=False, soft_wrap=True)
    if as_json:
        print_json(MaintainReport(tables=tuple(done)), ErrorReport.of(errors[0]) if errors else None)
    elif plan_only and any(outcome.status == "planned" for outcome in done):
        OUT.print("Nothing was changed: without --plan it is done.")
    return errors[0].exit_code if errors else EXIT_OK


def _keep_up(
    pipeline: Pipeline, maintenance: TableMaintenance, table: TableSpec, *, plan_only: bool
) -> MaintainedTable:
    if not plan_only:
        return MaintainedTable.of(table.id, maintenance.run(table))
    pending = pipeline.controls[table.id].state.read().pending
    return MaintainedTable.plan(table.id, maintenance.plan(table), pending)


def _describe(outcome: MaintainedTable) -> Iterator[str]:
    if outcome.status == "failed":
        yield f"{outcome.table}: {outcome.code}: {outcome.message}"
        return
    if outcome.status == "nothing":
        yield f"{outcome.table}: nothing to do"
    if outcome.compaction is not None and outcome.compaction.status != "nothing":
        yield from describe_compaction(outcome.compaction)
    if outcome.expiry is not None and (outcome.expiry.snapshots or outcome.expiry.refs):
        yield from _describe_expiry(outcome, outcome.expiry)
    if outcome.orphans is not None and outcome.orphans.files:
        verb = "would be deleted" if outcome.status == "planned" else "deleted"
        size = format_size(outcome.orphans.bytes)
        yield f"{outcome.table}: {format_count(outcome.orphans.files, 'orphan file')} ({size}) {verb}"
    if outcome.orphans is not None and outcome.orphans.others:
        yield f"  {format_count(outcome.orphans.others, 'file')} left, in folders of others within the table's"
    if outcome.pending and outcome.compaction is None:
        yield f"  {outcome.pending} is pending: it is finished first"


def _describe_expiry(outcome: MaintainedTable, expiry: ExpiredPart) -> Iterator[str]:
    refs = f" and {format_count(expiry.refs, 'ref')}" if expiry.refs else ""
    what = f"{format_count(expiry.snapshots, 'snapshot')}{refs}"
    files = f"{format_count(expiry.files, 'file')} ({format_size(expiry.bytes)})"
    if outcome.status == "planned":
        yield f"{outcome.table}: {what} would expire, and {files} be deleted that only they have"
    else:
        yield f"{outcome.table}: {what} expired, {files} deleted"
    if expiry.undos:
        yield f"  no undo any more of {join_first(expiry.undos, MOST_NAMED)}"
