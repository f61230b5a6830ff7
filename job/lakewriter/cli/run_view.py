"""Show a load's result: a row for each table, where its next load begins, and a line for the whole."""

from collections.abc import Mapping
from typing import Final

from rich.console import Console
from rich.text import Text

from lakewriter.cli.fitting import GAP, Column, fit_columns, lay_out
from lakewriter.operate.load_ending import find_own_seconds
from lakewriter.pages.load_page import SPARK_STARTS
from lakewriter.report import RunReport, Sums, describe_repeated, format_count, format_size

_SLOW_START: Final = 1.0
"""Spark's start is mentioned if it takes so many seconds."""
_STYLES: Final = {"done": "green", "already done": "green", "failed": "red", "not run": "yellow"}


Phases = Mapping[str, Mapping[str, float]]


def show_run(out: Console, report: RunReport, phases: Phases) -> None:
    """Show the tables, then the summary; a pipe gets every column in full.

    ``phases`` are the seconds of each table's steps: those in which it waited for Spark to start are shown once, of the
    whole load.
    """
    width = out.width if out.is_terminal else None
    names = Column("table", tuple(result.id for result in report.tables))
    columns, shown = fit_columns(names, _make_columns(report, phases), width)
    rows = zip(shown, *map(lay_out, columns), strict=True)
    for row in rows:
        line = Text(GAP.join(row).rstrip())
        for status, style in _STYLES.items():
            line.highlight_regex(rf"(?<=  ){status}\b", style)
        out.print(line, soft_wrap=True)
    if all(column.title != "cursor" for column in columns):
        for result in report.tables:
            if result.cursor_after is not None:
                out.print(f"cursor of {result.id}: {result.cursor_after.text}", markup=False, soft_wrap=True)
    show_summary(out, report, phases)


def show_summary(out: Console, report: RunReport, phases: Phases) -> None:
    """Print one line on the load; on a narrow terminal two, so that neither job id nor numbers are broken."""
    sums = Sums.of(report.tables)
    calls = ", ".join(f"{count} {method}" for method, count in sorted(report.requests.items()))
    status = "stopped" if report.stopped else report.status
    first = f"load {report.job_id} {status}:"
    tables, ended = len(report.tables), sum(r.status in ("done", "already_done") for r in report.tables)
    of_all = format_count(tables, "table") if ended == tables else f"{ended:,} of {format_count(tables, 'table')}"
    second = (
        f"{of_all}, {format_count(sums.rows, 'row')}, {format_count(sums.files, 'file')}, {format_size(sums.bytes)} "
        f"in {report.seconds:.1f} s"
    )
    started = max((steps.get(SPARK_STARTS, 0.0) for steps in phases.values()), default=0.0)
    width = out.width if out.is_terminal else None
    again = describe_repeated(result.repeated for result in report.tables)
    start = [f"({started:.1f} s until Spark had started)"] if started >= _SLOW_START else []
    parts = [first, second, *start, f"({calls})", *([f"! {again}"] if again else [])]
    for line in _break_lines(parts, width):
        out.print(line, markup=False, soft_wrap=True)


def _break_lines(parts: list[str], width: int | None) -> list[str]:
    lines = parts[:1]
    for part in parts[1:]:
        if width is None or len(lines[-1]) + 1 + len(part) <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"  {part}")
    return lines


def _make_columns(report: RunReport, phases: Phases) -> list[Column]:
    tables = report.tables
    columns = [
        Column("status", tuple(result.status.replace("_", " ") for result in tables)),
        Column("rows", tuple(f"{result.rows:,}" for result in tables), right=True),
        Column("files", tuple(f"{result.files:,}" for result in tables), weight=1, right=True),
        Column("size", tuple(format_size(r.bytes) if r.files else "" for r in tables), weight=2, right=True),
        Column("seconds", tuple(f"{find_own_seconds(result, phases):.1f}" for result in tables), weight=3, right=True),
        Column("cursor", tuple(r.cursor_after.text if r.cursor_after else "" for r in tables), weight=4),
    ]
    return [column for column in columns if any(column.cells)]
