"""Gather small tables into Spark jobs: a job takes all tables that wait, once they are many or have waited a moment."""

import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock
from typing import Final

from lakewriter.source.request import Feed, Shareable, SparkFactory
from lakewriter.spec.specification import MIB
from lakewriter.staging.shared_job import Attempted, SharedTable, stage_together
from lakewriter.staging.task import TaskPlan

SMALL_BYTES: Final = 16 * MIB
"""A table with fewer bytes of input may share a job: Spark needs longer to start one than a task to read them."""
_MOST_TABLES: Final = 100
"""One job has at most so many tables: what it returns, and what a failure repeats, stay small."""
_JOBS: Final = 2
"""At a time: one is planned and its receipts are read while the tasks of the other run."""
_WAIT_SECONDS: Final = 0.25
"""A table waits so long for others to join: starting a job takes longer than staging a small table."""
_LOOK_SECONDS: Final = 0.01


@dataclass(frozen=True)
class _Request:
    table: SharedTable
    since: float
    attempted: Future[Attempted]


class SharedJobs:
    """The shared jobs of one load. The threads of its tables call it; each waits for its own table.

    At most ``at_once`` of the load's ``tables`` are in progress at a time: a job waits for half of them, while the
    other half is in the job before it. Without ``tables`` no job waits.
    """

    def __init__(self, tables: int = 0, at_once: int = 1) -> None:
        self._to_come, self._enough = tables, at_once // _JOBS
        self._waiting: deque[_Request] = deque()
        self._slots, self._lock = BoundedSemaphore(_JOBS), Lock()

    def stage(self, spark: SparkFactory, feed: Feed, plan: TaskPlan) -> Attempted | None:
        """Stage a table in a job with others; None for one that needs a job of its own."""
        with self._lock:
            self._to_come -= 1
        if not isinstance(feed, Shareable) or not feed.partitions or feed.input_bytes > SMALL_BYTES:
            return None
        table = SharedTable(plan, tuple(feed.list_readers()), feed.input_bytes)
        request = _Request(table, time.monotonic(), Future())
        self._waiting.append(request)
        # A table that gets a turn runs all that wait by then, and each that waits gets a turn: none is left over.
        with self._slots:
            if requests := self._take_waiting():
                _run(spark, requests)
        return request.attempted.result()

    def _take_waiting(self) -> list[_Request]:
        while True:
            # Two threads may look at once: tables that are too few for a job, once one thread has taken its own, wait
            # for others again.
            with self._lock:
                if not self._is_worth_waiting():
                    taken = min(len(self._waiting), _MOST_TABLES)
                    return [self._waiting.popleft() for _ in range(taken)]
            time.sleep(_LOOK_SECONDS)

    def _is_worth_waiting(self) -> bool:
        """Return whether more tables may come soon; False where none waits any more."""
        if not self._waiting or self._to_come <= 0 or len(self._waiting) >= self._enough:
            return False
        return time.monotonic() < self._waiting[0].since + _WAIT_SECONDS


def _run(spark: SparkFactory, requests: Sequence[_Request]) -> None:
    """Run one job; however it ends, every thread that waits for it continues."""
    try:
        attempted = stage_together(spark(), [request.table for request in requests])
    except BaseException as error:
        for request in requests:
            request.attempted.set_exception(error)
        raise
    for request, result in zip(requests, attempted, strict=True):
        request.attempted.set_result(result)
