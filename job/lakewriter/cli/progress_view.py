"""Show a load while it runs: a line per table that changes on a terminal, JSON lines elsewhere."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Column, Table
from rich.text import Text

from lakewriter.cli.fitting import shorten
from lakewriter.report import format_count, format_size
from lakewriter.run.staging_progress import Staging
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

LOG_SECONDS: Final = 30.0
"""Seconds between two lines of the log on a table's progress."""

Made = TypeVar("Made")

_FINAL = {"done": "[green]✓[/]", "already done": "[green]✓[/]", "failed": "[red]✗[/]", "stopped": "[yellow]-[/]"}
_BESIDE: Final = 20
"""The width of mark, step and gaps."""
_LINES_BESIDE: Final = 4
"""Lines of the load's id, of the sum, of what is waited for, and of the cursor."""


class Display(Protocol):
    """Shows each step of each table, and what else takes time."""

    def __call__(self, table: TableSpec, step: str, detail: str, /) -> None:
        """Show a table's step."""

    def waiting(self, reason: str) -> AbstractContextManager[None]:
        """Say why nothing else happens."""


@contextmanager
def show_progress(spec: Spec, errors: Console, *, job_id: str | None = None, quiet: bool = False) -> Iterator[Display]:
    """Yield what is called at each step of each table. The load's id comes first, so that the load can be continued
    whatever happens."""
    if quiet:
        yield _Silence()
    elif not errors.is_terminal:
        yield _Log(spec, errors, job_id)
    else:
        if job_id is not None:
            errors.print(f"load {job_id} of pipeline {spec.pipeline}", markup=False, soft_wrap=True)
        lines = Lines(spec, errors)
        with Live(get_renderable=lines.draw, console=errors, refresh_per_second=10):
            yield lines


def show_waiting(display: Display, reason: str, make: Callable[[], Made]) -> Callable[[], Made]:
    """Return ``make`` so that a call shows the reason until it returns."""

    def made() -> Made:
        with display.waiting(reason):
            return make()

    return made


class _Silence:
    """Shows nothing."""

    def __call__(self, table: TableSpec, step: str, detail: str, /) -> None:
        pass

    def waiting(self, reason: str) -> AbstractContextManager[None]:
        return nullcontext()


class _Log:
    """Steps as JSON lines, and how far each table is from time to time."""

    def __init__(self, spec: Spec, errors: Console, job_id: str | None) -> None:
        self._spec, self._errors, self._job_id = spec, errors, job_id
        self._fields = {} if job_id is None else {"job_id": job_id}
        self._logged: dict[str, float] = {}

    def __call__(self, table: TableSpec, step: str, detail: str, /) -> None:
        self._announce()
        self._logged[table.id] = time.monotonic()
        _log(self._errors, self._spec, table.id, step, detail, self._fields)

    def waiting(self, reason: str) -> AbstractContextManager[None]:
        self._announce()
        return nullcontext()

    def _announce(self) -> None:
        """Say the job id once, when the load has begun: a failure before that is said as its first line is."""
        if self._job_id is not None:
            _log(self._errors, self._spec, "", "load", f"job id {self._job_id}", self._fields)
            self._job_id = None

    def measure(self, table: TableSpec, staging: Staging) -> None:
        now = time.monotonic()
        if now - self._logged.get(table.id, now) < LOG_SECONDS:
            return
        self._logged[table.id] = now
        left = staging.seconds_left
        numbers = {
            "rows": staging.done.rows,
            "files": staging.done.files,
            "bytes": staging.done.bytes,
            "tasks_done": staging.done.tasks,
            "tasks": staging.tasks,
            "rows_per_second": round(staging.rows_a_second, 1),
            "share": round(staging.share, 4),
            "seconds_left": None if left is None else round(left, 1),
        }
        _log(self._errors, self._spec, table.id, "writing", describe_staging(staging), self._fields | numbers)


class Lines:
    """A line per table, drawn again and again."""

    def __init__(self, spec: Spec, errors: Console) -> None:
        self._errors = errors
        self._steps: dict[str, tuple[str, str]] = {table.id: ("waiting", "") for table in spec.tables}
        self._staging: dict[str, Staging] = {}
        self._rows: dict[str, int] = {}
        self._start = time.monotonic()
        self._began: dict[str, float] = {}
        self._spinners = {table.id: Spinner("dots") for table in spec.tables}
        self._waiting: list[tuple[str, float]] = []
        self._lock = threading.Lock()

    def __call__(self, table: TableSpec, step: str, detail: str, /) -> None:
        with self._lock:
            self._steps[table.id] = (step, detail)
            self._staging.pop(table.id, None)
            self._began[table.id] = time.monotonic()

    def measure(self, table: TableSpec, staging: Staging) -> None:
        with self._lock:
            self._staging[table.id] = staging
            self._rows[table.id] = staging.done.rows

    @contextmanager
    def waiting(self, reason: str) -> Iterator[None]:
        self._waiting.append((reason, time.monotonic()))
        try:
            yield
        finally:
            self._waiting.pop()

    def draw(self) -> RenderableType:
        """Return the tables' lines, a line for the whole where there are several, and under them what they wait for."""
        with self._lock:
            steps = dict(self._steps)
            lines: list[RenderableType] = [self._draw_tables(self._choose(steps), steps)]
        if len(steps) > 1:
            lines.append(Text(self._sum_up(steps), no_wrap=True, overflow="ellipsis"))
        for reason, since in self._waiting[:1]:
            lines.append(Text(f"{reason} {_format_seconds(time.monotonic() - since)}", style="dim"))
        return Group(*lines)

    def _choose(self, steps: Mapping[str, tuple[str, str]]) -> list[str]:
        """Choose the tables that have a line: all, or in few lines those that failed and those in work."""
        room = max(self._errors.height - _LINES_BESIDE, 1)
        if len(steps) <= room:
            return list(steps)
        ranks = {"failed": 0, "stopped": 0, "waiting": 3, "done": 2, "already done": 2}
        ranked = sorted(steps, key=lambda table_id: ranks.get(self._find_step(table_id, steps), 1))
        chosen = set([t for t in ranked if ranks.get(self._find_step(t, steps), 1) < 2][:room])
        return [table_id for table_id in steps if table_id in chosen]

    def _find_step(self, table_id: str, steps: Mapping[str, tuple[str, str]]) -> str:
        """Find the table's step: one that has to wait for Spark reads and writes nothing yet."""
        step = steps[table_id][0]
        is_before = step in ("reading", "writing") and table_id not in self._staging
        return "waiting" if is_before and self._waiting else step

    def _sum_up(self, steps: Mapping[str, tuple[str, str]]) -> str:
        counts = Counter(self._find_step(table_id, steps) for table_id in steps)
        done = counts["done"] + counts["already done"]
        others = {word: counts[word] for word in ("failed", "stopped", "waiting") if counts[word]}
        in_work = len(steps) - done - sum(others.values())
        parts = [f"{done:,} of {format_count(len(steps), 'table')} done"]
        parts += [f"{in_work:,} in work"] if in_work else []
        parts += [f"{count:,} {word}" for word, count in others.items()]
        with self._lock:
            rows = sum(self._rows.values())
        parts += [format_count(rows, "row")] if rows else []
        return ", ".join([*parts, _format_seconds(time.monotonic() - self._start)])

    def _draw_tables(self, chosen: Sequence[str], steps: Mapping[str, tuple[str, str]]) -> Table:
        names = max(map(len, chosen), default=0)
        width = min(names, max(16, self._errors.width // 3))
        grid = Table.grid(Column(no_wrap=True), Column(no_wrap=True), Column(no_wrap=True), Column(), padding=(0, 2))
        for table_id in chosen:
            step = self._find_step(table_id, steps)
            mark = Text.from_markup(_FINAL[step]) if step in _FINAL else self._spinners[table_id]
            # What waits for Spark has nothing to say yet; a table of a continuous run shows its last batch.
            detail = steps[table_id][1] if step == steps[table_id][0] else ""
            said = self._describe(table_id, step, detail, self._errors.width - width - _BESIDE)
            grid.add_row(mark, shorten(table_id, width), step, Text(said, overflow="ellipsis", no_wrap=True))
        return grid

    def _describe(self, table_id: str, step: str, detail: str, width: int) -> str:
        staging = self._staging.get(table_id)
        if staging is not None:
            return describe_staging(staging, width)
        if step in _FINAL or step == "waiting":
            return detail
        if step == "reading":
            # What is odd about the source is shown when the load has ended, in full.
            detail = ""
        seconds = time.monotonic() - self._began[table_id]
        return ", ".join(filter(None, (detail, _format_seconds(seconds) if seconds >= 1 else "")))


def describe_staging(staging: Staging, width: int | None = None) -> str:
    """Describe the progress in so many columns: what matters least is left out first."""
    left, done = staging.seconds_left, staging.done
    parts = [
        # rank, text
        (0, f"{staging.share:.0%}"),
        (2, "" if left is None else f"{_format_seconds(left)} left"),
        (1, format_count(done.rows, "row")),
        (4, format_size(done.bytes)),
        (5, format_count(done.files, "file")),
        (3, f"{staging.rows_a_second:,.0f} rows/s"),
        (6, f"{done.tasks:,} of {format_count(staging.tasks, 'task')}"),
    ]
    shown = [part for part in parts if part[1]]
    while width is not None and len(shown) > 1 and len(_join(shown)) > width:
        shown.remove(max(shown))
    return _join(shown)


def _join(parts: list[tuple[int, str]]) -> str:
    return ", ".join(text for _, text in parts)


def _format_seconds(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def log_step(errors: Console, spec: Spec, table: TableSpec, step: str, detail: str) -> None:
    """Write a step as a JSON line."""
    _log(errors, spec, table.id, step, detail, {})


def _log(errors: Console, spec: Spec, table_id: str, step: str, detail: str, more: dict[str, Any]) -> None:
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "pipeline": spec.pipeline,
        "table": table_id,
        "step": step,
        "detail": detail,
    }
    errors.out(json.dumps(line | more), highlight=False)
