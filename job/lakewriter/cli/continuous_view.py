"""Show a continuous run to people and monitors: lines on a terminal, JSON lines with metrics elsewhere."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lakewriter.cli.console import make_right_column
from lakewriter.cli.progress_view import log_step, show_progress
from lakewriter.report import format_count, format_size
from lakewriter.run.continuous_metrics import MinuteMetrics, write_embedded, write_plain
from lakewriter.run.continuous_status import BatchMetrics, RunStatus
from lakewriter.run.continuous_table import Watch, describe_batch
from lakewriter.run.staged_table import Progress
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_PRINTED: Final = ("restarting", "failed", "note", "compacted", "expired")
"""Steps whose detail is shown whole."""


class _Lines:
    """A continuous run as JSON lines: metrics of every batch and of every minute, and steps that are not of a batch."""

    def __init__(self, spec: Spec, errors: Console, stage: str) -> None:
        self._spec, self._errors, self._stage = spec, errors, stage

    def step(self, table: TableSpec, step: str, detail: str) -> None:
        if step in ("running", *_PRINTED):
            log_step(self._errors, self._spec, table, step, detail)

    def batch(self, table: TableSpec, metrics: BatchMetrics) -> None:
        line = {"step": "batch"} | metrics.model_dump(mode="json")
        self._errors.out(json.dumps(line), highlight=False)

    def minute(self, metrics: list[MinuteMetrics]) -> None:
        for metric in metrics:
            # If metrics are sent to CloudWatch too, the log must not count them a second time.
            line = json.dumps(write_plain(metric)) if self._spec.put_metrics else write_embedded(metric, self._stage)
            self._errors.out(line, highlight=False)


class _Live:
    """A continuous run as a changing line per table; failures are shown in full above the lines, and stay."""

    def __init__(self, step: Progress, spec: Spec, errors: Console) -> None:
        self._step, self._spec, self._errors = step, spec, errors
        self._failures: dict[str, int] = {}
        self._last: dict[str, str] = {}

    def step(self, table: TableSpec, step: str, detail: str) -> None:
        if step in _PRINTED:
            others = "other tables go on" if self._spec.on_failure == "continue" else "the run ends"
            end = f" for good; {others}" if step == "failed" else ""
            self._errors.print(f"{table.id} {step}{end}: {detail}", markup=False, soft_wrap=True)
        if step == "note":
            return
        failures = self._failures[table.id] = self._failures.get(table.id, 0) + (step in ("restarting", "failed"))
        counted = f"{format_count(failures, 'failure')}; " if failures else ""
        last = self._last.get(table.id, "")
        self._step(table, step, f"{last}{counted}{detail}" if step != "failed" else counted + detail)

    def batch(self, table: TableSpec, metrics: BatchMetrics) -> None:
        rate = metrics.rows / metrics.seconds if metrics.seconds else 0
        self._last[table.id] = f"lag {metrics.lag_seconds:.1f} s, {rate:,.0f} rows/s; "
        self.step(table, "waiting", describe_batch(metrics))

    def minute(self, metrics: list[MinuteMetrics]) -> None:
        """Do nothing: every batch has been shown."""


@contextmanager
def show_batches(spec: Spec, errors: Console, stage: str) -> Iterator[Watch]:
    """Yield the watch of a run: a line per table that changes on a terminal; JSON lines elsewhere, with metrics of
    ``stage``."""
    if not errors.is_terminal:
        yield _Lines(spec, errors, stage)
        return
    with show_progress(spec, errors) as step:
        yield _Live(step, spec, errors)


def show_continuous(out: Console, status: RunStatus) -> None:
    """Show what a continuous run did."""
    names = ("batches", "rows", "files", "small", "files a day", "size", "failures")
    grid = Table("table", "state", *map(make_right_column, names), box=None)
    for table_id, table in status.tables.items():
        a_day = "" if table.files_a_day is None else f"{table.files_a_day:,}"
        numbers = (f"{table.batches:,}", f"{table.rows:,}", f"{table.files:,}", f"{table.small_files:,}", a_day)
        grid.add_row(escape(table_id), table.state, *numbers, format_size(table.bytes), f"{table.failures:,}")
    out.print(grid)
    out.print(f"run {status.run} {status.state} after {(status.at - status.started_at).total_seconds():.0f} s")
