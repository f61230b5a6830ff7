"""Show a load while it runs: a line per table that changes on a terminal, JSON lines elsewhere."""

import json
import threading
import time
from collections.abc import Callable, Iterator
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
from lakewriter.spec.specification import Spec, TableSpec

LOG_SECONDS: Final = 30.0
"""Between two lines of the log on how far a table is."""

Made = TypeVar("Made")

_FINAL = {"done": "[green]✓[/]", "already done": "[green]✓[/]", "failed": "[red]✗[/]", "stopped": "[yellow]-[/]"}
_BESIDE: Final = 20
"""Columns of mark, step and gaps."""


class Display(Protocol):
    """Shows each step of each table, and what else takes time."""

    def __call__(self, table: TableSpec, step: str, detail: str, /) -> None:
        """Show a table's step."""

    def waiting(self, reason: str) -> AbstractContextManager[None]:
        """Say why nothing else happens."""


@contextmanager
def show_progress(spec: Spec, errors: Console, *, job_id: str | None = None, quiet: bool = False) -> Iterator[Display]:
    """What is called at each step of each table. The load's id comes first, so that it can be gone on with whatever
    happens."""
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
    """``make``, which takes its time, with the reason shown meanwhile."""

    def made() -> Made:
        with display.waiting(reason):
            return make()

    return made


class _Silence:
    """Nothing."""

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

    @contextmanager
    def waiting(self, reason: str) -> Iterator[None]:
        self._waiting.append((reason, time.monotonic()))
        try:
            yield
        finally:
            self._waiting.pop()

    def draw(self) -> RenderableType:
        """The tables' lines, and under them what they wait for."""
        lines: list[RenderableType] = [self._draw_tables()]
        for reason, since in self._waiting[:1]:
            lines.append(Text(f"{reason} {_format_seconds(time.monotonic() - since)}", style="dim"))
        return Group(*lines)

    def _draw_tables(self) -> Table:
        names = max(map(len, self._steps))
        width = min(names, max(16, self._errors.width // 3))
        grid = Table.grid(Column(no_wrap=True), Column(no_wrap=True), Column(no_wrap=True), Column(), padding=(0, 2))
        with self._lock:
            for table_id, (step, detail) in self._steps.items():
                mark = Text.from_markup(_FINAL[step]) if step in _FINAL else self._spinners[table_id]
                said = self._describe(table_id, step, detail, self._errors.width - width - _BESIDE)
                grid.add_row(mark, shorten(table_id, width), step, Text(said, overflow="ellipsis", no_wrap=True))
        return grid

    def _describe(self, table_id: str, step: str, detail: str, width: int) -> str:
        staging = self._staging.get(table_id)
        if staging is not None:
            return describe_staging(staging, width)
        if step in _FINAL or step == "waiting":
            return detail
        seconds = time.monotonic() - self._began[table_id]
        return ", ".join(filter(None, (detail, _format_seconds(seconds) if seconds >= 1 else "")))


def describe_staging(staging: Staging, width: int | None = None) -> str:
    """How far it is, in so many columns: what matters least is left out first."""
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
    """A step as a JSON line."""
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
