"""Describe a continuous run: metrics of every batch, and a status object that a monitor can read."""

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, Literal, Protocol

from pydantic import Field

from lakewriter.commit.store import Store, Unclear
from lakewriter.control_object import decode
from lakewriter.errors import LakeError
from lakewriter.report import MergeCounts
from lakewriter.spec.model import Model

STATUS_SECONDS = 15.0
"""The shortest time between two writes of the status object; the longest is ``HEARTBEAT_SECONDS``."""
HEARTBEAT_SECONDS = 45.0
"""Less than the promised minute, which leaves time for a write that has to be repeated."""
POLL_SECONDS: Final = 0.5

RunState = Literal["running", "stopping", "stopped", "failed"]
TableState = Literal["starting", "running", "restarting", "failed", "stopped"]


class BatchMetrics(Model):
    """One batch of one table. ``lag_seconds`` is how long its oldest row may have waited in a source that is caught up;
    ``behind`` is the backlog that the source itself reports."""

    version: Literal[1] = 1
    time: datetime
    pipeline: str
    table: str
    batch: int
    job_id: str
    status: str
    rows: int
    files: int
    small_files: int
    bytes: int
    changes: int
    rows_set_aside: int = 0
    lag_seconds: float
    seconds: float
    behind: Mapping[str, str] = Field(default_factory=dict)
    undeclared: Mapping[str, int] = Field(default_factory=dict)
    merged: MergeCounts | None = None
    """What became of the rows of a merge; None for a batch that only appends."""


class TableStatus(Model):
    """One table; counts are since the run began. ``restarts`` are those in a row, ``failures`` all of them.

    At ``fresh_at`` the table had all that its source had then. ``interval_seconds`` is the interval to the next batch,
    and ``files_a_day`` the rate of the last batches.
    """

    state: TableState = "starting"
    query: str | None = None
    batches: int = 0
    rows: int = 0
    files: int = 0
    small_files: int = 0
    bytes: int = 0
    restarts: int = 0
    failures: int = 0
    fresh_at: datetime | None = None
    interval_seconds: float | None = None
    files_a_day: int | None = None
    last: BatchMetrics | None = None
    code: str | None = None
    message: str | None = None

    def after(self, metrics: BatchMetrics) -> "TableStatus":
        """Return the status with one more batch; a batch that was done before, and that Spark ran again, is not
        counted."""
        new = metrics.status == "done"
        return self.model_copy(
            update={
                "state": "running",
                "batches": self.batches + new,
                "rows": self.rows + metrics.rows * new,
                "files": self.files + metrics.files * new,
                "small_files": self.small_files + metrics.small_files * new,
                "bytes": self.bytes + metrics.bytes * new,
                "last": metrics,
                "code": None,
                "message": None,
            }
        )


class RunStatus(Model):
    """The whole run: what ``continuous.json`` holds. One whose ``at`` is old belongs to a process that is gone."""

    version: Literal[1] = 1
    pipeline: str
    run: str
    state: RunState
    started_at: datetime
    at: datetime
    interval_seconds: int
    tables: Mapping[str, TableStatus]


class Lag:
    """Computes how long a batch's oldest row may have waited, from when batches begin and end (seconds of one clock).

    Rows of a batch came after the one before it began to be read, or, when the source was found empty in between,
    after the trigger before this one.
    """

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._last: tuple[float, float] | None = None

    def extend(self, until: float) -> None:
        """Set the time until which the next trigger waits, for a batch that has ended."""
        if self._last is not None:
            self._last = self._last[0], max(self._last[1], until)

    def of(self, began: float, ended: float) -> float:
        """Return the lag of a batch, which becomes the last one."""
        since = began - self._interval
        if self._last is not None and self._last[1] > since:
            since = self._last[0]
        self._last = began, ended
        return round(max(0.0, ended - since), 3)


class StatusObject:
    """``continuous.json``. A failed write does not end the run."""

    def __init__(self, store: Store, key: str) -> None:
        self._store = store
        self._key = key
        self._etag: str | None = None
        self._written = float("-inf")

    def require_understood(self) -> None:
        """Raise ``PENDING_UNRECOVERABLE`` where a later release has left what this one must not replace."""
        stored = self._store.get(self._key)
        if stored is not None:
            decode(self._key, stored[0])

    def due(self, now: float, *, news: bool) -> bool:
        """Return whether a write is due at ``now``, in seconds of a clock that never goes back."""
        return now - self._written >= (STATUS_SECONDS if news else HEARTBEAT_SECONDS)

    def write(self, status: RunStatus, now: float) -> None:
        """Replace the object by ``status``."""
        self._written = now
        body = status.model_dump_json(indent=1).encode()
        try:
            if self._etag is None:
                stored = self._store.get(self._key)
                self._etag = stored and stored[1]
            if self._etag is None:
                self._etag = self._store.create(self._key, body)
            else:
                self._etag = self._store.replace(self._key, body, self._etag)
        except (Unclear, LakeError):
            self._etag = None


class Over(Protocol):
    """A ``threading.Event``, or what a test puts in its place."""

    def wait(self, seconds: float, /) -> bool:
        """Return whether it is set, after ``seconds`` at most."""


def beat(
    status: StatusObject, describe: Callable[[], RunStatus], over: Over, clock: Callable[[], float] = time.monotonic
) -> None:
    """Write the status whenever it is due, and when the run's state changes, until the run is over. This runs in a
    thread of its own, since a batch in hand or a scan of the source may take long."""
    last_news: tuple[str, int] | None = None
    while True:
        now = describe()
        news = now.state, sum(table.batches for table in now.tables.values())
        if status.due(clock(), news=news != last_news) or (last_news is not None and now.state != last_news[0]):
            status.write(now, clock())
            last_news = news
        if over.wait(POLL_SECONDS):
            return
