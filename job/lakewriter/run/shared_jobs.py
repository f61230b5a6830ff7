"""Gather small tables into Spark jobs: those that wait while jobs run go into the next one together."""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Final

from lakewriter.run.prepare import SparkFactory
from lakewriter.source.feed import Feed, Shareable
from lakewriter.spec.specification import MIB
from lakewriter.staging.shared_job import Attempted, SharedTable, stage_together
from lakewriter.staging.task import TaskPlan

SMALL_BYTES: Final = 16 * MIB
"""Of input: a table of fewer bytes may share a job. Spark's start of a job takes longer than a task that reads them."""
_MOST_TABLES: Final = 100
"""Of one job: what it returns and what is done again where it fails stay small."""
_JOBS: Final = 2
"""At a time: one is planned and its receipts are read while the tasks of the other run."""


@dataclass(frozen=True)
class _Request:
    table: SharedTable
    attempted: Future[Attempted]


class SharedJobs:
    """The shared jobs of one load. The threads of its tables call it; each waits for its own table."""

    def __init__(self) -> None:
        self._waiting: deque[_Request] = deque()
        self._places = BoundedSemaphore(_JOBS)

    def stage(self, spark: SparkFactory, feed: Feed, plan: TaskPlan) -> Attempted | None:
        """Stage a table in a job with others; None for one that needs a job of its own."""
        if not isinstance(feed, Shareable) or not feed.partitions or feed.input_bytes > SMALL_BYTES:
            return None
        request = _Request(SharedTable(plan, tuple(feed.list_readers()), feed.input_bytes), Future())
        self._waiting.append(request)
        # Whoever finds a place runs what waits by then, and each that waits comes to a place itself: none is left over.
        with self._places:
            if requests := self._take_waiting():
                _run(spark, requests)
        return request.attempted.result()

    def _take_waiting(self) -> list[_Request]:
        requests = list[_Request]()
        with suppress(IndexError):
            while len(requests) < _MOST_TABLES:
                requests.append(self._waiting.popleft())
        return requests


def _run(spark: SparkFactory, requests: Sequence[_Request]) -> None:
    """Run one job; whatever it ends with, every thread that waits for it goes on."""
    try:
        attempted = stage_together(spark(), [request.table for request in requests])
    except BaseException as error:
        for request in requests:
            request.attempted.set_exception(error)
        raise
    for request, result in zip(requests, attempted, strict=True):
        request.attempted.set_result(result)
