"""Measure how far the staging of a table is, for a progress view: Spark's tasks report as they end."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Final, Protocol, runtime_checkable

from pyspark.sql import SparkSession

from lakewriter.source.request import Feed
from lakewriter.spec.table_spec import TableSpec
from lakewriter.staging.stage import open_tally
from lakewriter.staging.tally import Staged, Tally, Teller

LOG: Final = logging.getLogger(__name__)
_PERIOD: Final = 0.5
"""Seconds between two looks at what the tasks have reported."""
_LEAST_SECONDS: Final = 2.0
_LEAST_SHARE: Final = 0.02
"""Before so much is done, the time left would be a guess."""


@dataclass(frozen=True)
class Staging:
    """Progress of a table: what its ended tasks have staged, of ``tasks`` and, where they are counted, of all rows."""

    done: Staged
    tasks: int
    all_rows: int | None
    seconds: float

    @property
    def share(self) -> float:
        """The share of all rows where these are counted, else the share of the tasks."""
        done, total = (self.done.rows, self.all_rows) if self.all_rows else (self.done.tasks, self.tasks)
        return min(1.0, done / total) if total else 1.0

    @property
    def rows_a_second(self) -> float:
        """The rows a second since staging began."""
        return self.done.rows / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The time left at the pace so far; None while that would be a guess."""
        if self.seconds < _LEAST_SECONDS or self.share < _LEAST_SHARE:
            return None
        return self.seconds * (1 - self.share) / self.share


@runtime_checkable
class Measured(Protocol):
    """A progress view that takes numbers of how far the staging is."""

    def measure(self, table: TableSpec, staging: Staging) -> None:
        """Take the table's numbers; called every half second while they change."""


@contextmanager
def measure_staging(
    progress: object, table: TableSpec, feed: Feed, spark: Callable[[], SparkSession]
) -> Iterator[Teller | None]:
    """Yield the tally of the tasks, while ``progress`` is called with the counts; None if nobody wants to know."""
    tally = _open_tally(spark()) if isinstance(progress, Measured) else None
    if tally is None or not isinstance(progress, Measured):
        yield None
        return
    over, began, total = Event(), time.monotonic(), None if feed.counts is None else sum(feed.counts)

    def watch() -> None:
        last = Staged()
        try:
            while not over.wait(_PERIOD):
                if (now := tally.read()) != last:
                    last = now
                    progress.measure(table, Staging(now, feed.partitions, total, time.monotonic() - began))
        except Exception:
            # The view is in trouble, not the load.
            LOG.exception("The progress of table %s is not shown any more.", table.id)

    watching = Thread(target=watch, name=f"progress of {table.id}", daemon=True)
    watching.start()
    try:
        yield tally.teller
    finally:
        over.set()
        watching.join()
        tally.close()


def _open_tally(spark: SparkSession) -> Tally | None:
    try:
        return open_tally(spark)
    except OSError:
        LOG.warning("Progress cannot be shown: no port to hear the tasks on.", exc_info=True)
        return None
