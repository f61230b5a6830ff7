"""The work of ``lakewriter compact``."""

from collections.abc import Iterator
from pathlib import Path

from lakewriter.cli.printed import CompactReport
from lakewriter.cli.repairs import find_table
from lakewriter.cli.shared import OUT, open_context, print_json
from lakewriter.commit.pipeline import Pipeline
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.compaction import Compaction
from lakewriter.report import format_count, format_size


def compact_table(lake: Path, stage: str | None, name: str, budget: int, *, plan_only: bool, as_json: bool) -> int:
    """Compact the table, or say what that would replace, and print it."""
    context = open_context(lake, stage)
    table, _ = find_table(context, name)
    pipeline = Pipeline.open(context.spec, context.clients)
    compaction = Compaction(pipeline, table, budget)
    if plan_only:
        pending = pipeline.controls[table.id].state.read().pending
        report = CompactReport.plan(table.id, compaction.plan(), pending)
    else:
        report = CompactReport.of(table.id, compaction.run())
    if as_json:
        print_json(report)
    else:
        for line in describe_compaction(report):
            OUT.print(line, markup=False, soft_wrap=True)
        if report.status == "planned":
            OUT.print("Nothing was changed: without --plan it is done.")
    return EXIT_OK


def describe_compaction(report: CompactReport) -> Iterator[str]:
    """Say what was done, or would be, a line for each fact."""
    if report.status == "nothing":
        yield f"{report.table}: no files are worth replacing"
    elif report.status == "planned":
        files = f"{format_count(report.files, 'file')} ({format_size(report.bytes)})"
        deletes = f", with the deletes of {format_count(report.delete_files, 'file')}" if report.delete_files else ""
        yield f"{report.table}: {files} would be replaced, by about {report.groups:,}{deletes}"
        if report.waiting:
            yield f"  {format_count(report.waiting, 'group')} of files more than --most-gib allows: call it again"
    else:
        yield f"{report.table}: {report.done}"
    if report.pending:
        yield f"  {report.pending} is pending: it is finished first, then files are chosen"
    if report.foreign:
        yield f"  {format_count(report.foreign, 'file')} left: of earlier partition fields, or not Parquet"
