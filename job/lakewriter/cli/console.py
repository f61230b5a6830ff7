"""Show people a command's result: tables and lines of text."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from lakewriter.operate.health import Health, describe
from lakewriter.records.state import LOADED_AGAIN, TableState
from lakewriter.report import format_count

if TYPE_CHECKING:
    # Runs show their results, and import nothing that checks need.
    from lakewriter.doctor import Finding
    from lakewriter.operate.sql_text import Query
    from lakewriter.operate.verification import Verified

SHOWN_UNDONE: Final = 3
"""The most undone loads of a table that are shown, the last ones."""


def show_status(out: Console, states: Mapping[str, TableState]) -> None:
    """Print one row per table, and under them what is pending or running."""
    grid = Table("table", make_right_column("loads"), "last commit (UTC)", "last load", "cursor", box=None)
    for table_id, state in states.items():
        grid.add_row(
            escape(table_id),
            str(state.committed),
            f"{state.last_commit:%Y-%m-%d %H:%M:%S}" if state.last_commit else "never",
            state.last_job or "",
            escape(state.cursor.text) if state.cursor else "",
        )
    out.print(grid)
    for table_id, state in states.items():
        if state.pending:
            what = f"load {state.pending.job_id} is pending ({state.pending.phase})"
            since = f"since {state.pending.since:%Y-%m-%d %H:%M}"
            out.print(f"[yellow]{escape(table_id)}: {escape(what)} {since}[/]", soft_wrap=True)
        if state.deletes:
            mend = f"lakewriter compact LAKE {table_id}"
            out.print(f"{escape(table_id)}: {state.deletes.describe()}: {escape(mend)}", soft_wrap=True)
        for undone in state.undone[-SHOWN_UNDONE:]:
            when, again = f"{undone.at:%Y-%m-%d %H:%M}", "" if undone.reason == LOADED_AGAIN else f": {undone.reason}"
            what = f"load {undone.job_id} undone at {when}{again}"
            out.print(f"{escape(table_id)}: {escape(what)}", soft_wrap=True)
        for job, entry in state.running.items():
            began = f"began at {entry.since:%Y-%m-%d %H:%M} and has not ended"
            out.print(f"{escape(table_id)}: load {job} {began}", soft_wrap=True)


def show_health(out: Console, health: Health, continuous: Mapping[str, Any] | None, now: datetime) -> None:
    """Show how a continuous run fares, which loads wait, and which tables have no state to show."""
    for table_id, error in health.unreadable.items():
        out.print(f"[red]{escape(f'{table_id}: {error}')}[/]", soft_wrap=True)
    for line in health.waiting:
        out.print(f"[red]{escape(line)}[/]", soft_wrap=True)
    if continuous is not None:
        run = f"continuous run {continuous.get('run')}: {describe(health, now)}"
        out.print(escape(run), soft_wrap=True)
        for table_id, why in (health.failed_tables or {}).items():
            out.print(f"[red]{escape(f'{table_id} failed: {why}')}[/]", soft_wrap=True)


def show_verified(out: Console, verified: "Verified") -> None:
    """Show what was compared, then each difference."""
    for difference in verified.differences:
        out.print(f"[red]{difference.code}[/]: {escape(difference.message)}", soft_wrap=True)
    for table_id in verified.missing:
        out.print(f"[yellow]{escape(table_id)} has no report of this load[/]")
    for note in verified.notes:
        out.print(f"[yellow]note[/]: {escape(note)}", soft_wrap=True)
    for count in verified.counted:
        ids = (
            f", {format_count(count.repeated_ids, 'row')} with a {count.row_id} of another row"
            if count.repeated_ids is not None
            else ""
        )
        out.print(f"{escape(count.table)}: {format_count(count.rows, 'row')} counted in its files, "
                  f"{count.expected:,} expected{escape(ids)}", soft_wrap=True)  # fmt: skip
    verdict = (
        format_count(len(verified.differences), "difference") if verified.differences else "all as the load left it"
    )
    out.print(
        f"load {verified.job_id}: {format_count(len(verified.tables), 'table')}, "
        f"{format_count(verified.files, 'file')}, {format_count(verified.rows, 'row')} compared "
        f"with S3 and the catalog: {verdict}"
    )


def show_findings(out: Console, findings: "Sequence[Finding]") -> None:
    """Print one line per finding, with its remedy under what is not as it should be."""
    marks = {"ok": "[green]✓[/]", "failed": "[red]✗[/]", "warning": "[yellow]![/]", "skipped": "[dim]-[/]"}
    for finding in findings:
        code = f"{finding.code}: " if finding.code and finding.status == "failed" else ""
        out.print(f"{marks[finding.status]} {finding.probe}: {code}{escape(finding.message)}", soft_wrap=True)
        if finding.status in ("failed", "warning") and finding.remedy:
            out.print(f"    {escape(finding.remedy)}", soft_wrap=True)
    counts = [f"{sum(f.status == kind for f in findings)} {kind}" for kind in marks]
    out.print(", ".join(counts))


def show_queries(out: Console, queries: "Sequence[Query]") -> None:
    """Print SQL with its title as a comment, ready to paste."""
    for query in queries:
        title = f"-- {query.engine.label}, {query.table}: {query.title}"
        # The console would make blanks of a tab in a quoted text.
        out.file.write(f"{title}\n{query.sql}\n\n")


def make_right_column(name: str) -> Column:
    """Return a column of numbers."""
    return Column(name, justify="right")
