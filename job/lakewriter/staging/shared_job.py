"""Stage several small tables in one Spark job, where a task takes one table after another, each with receipts of its
own; or a single small one without Spark."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from lakewriter.source.request import Reader
from lakewriter.source.session import count_slots
from lakewriter.source.spark_failures import SPARK_ERRORS
from lakewriter.source.spark_jobs import run_in_group
from lakewriter.staging.stage import run_task
from lakewriter.staging.tally import Teller
from lakewriter.staging.task import TaskPlan

LOG: Final = logging.getLogger(__name__)
_OPEN_BYTES: Final = 1024 * 1024
"""A table counts as so many bytes more, as in Spark's ``openCostInBytes``: requests take longer than its rows."""

RunTask = Callable[[TaskPlan, Teller | None, int, Iterator[pa.RecordBatch]], Iterator[str]]


@dataclass(frozen=True)
class SharedTable:
    """One table of a shared job: its plan, what reads each of its partitions, and the bytes of its input."""

    plan: TaskPlan
    readers: tuple[Reader, ...]
    size: int


@dataclass(frozen=True)
class Attempted:
    """The result of a shared job for one table: ``texts`` are those that a job of its own would return. If it is not
    ``whole``, they are the known uploads that it has left."""

    texts: tuple[str, ...] = ()
    # Rule shared-lost
    whole: bool = False


def stage_together(spark: SparkSession, tables: Sequence[SharedTable]) -> list[Attempted]:
    """Run one Spark job for all tables; return the result of each, in their order. None of its tasks runs any more.

    A job that Spark gives up leaves no table whole.
    """
    shares = share_out(tables, count_slots(spark))
    items = spark.sparkContext.parallelize(shares, len(shares))
    attempted = [Attempted()] * len(tables)
    try:
        # Rule shared-awaited
        for text in run_in_group(spark, lambda: items.mapPartitions(_run_shares).collect()):
            number, texts, is_whole = json.loads(text)
            attempted[number] = Attempted(tuple(texts), is_whole)
    except SPARK_ERRORS:
        LOG.info("A job of %d tables failed; each is staged in a job of its own.", len(tables), exc_info=True)
    return attempted


def stage_here(table: SharedTable) -> Attempted:
    """Stage a table in this process, as a task of a shared job would."""
    (text,) = stage_share([(0, table)])
    _, texts, is_whole = json.loads(text)
    return Attempted(tuple(texts), is_whole)


def share_out(tables: Sequence[SharedTable], tasks: int) -> list[tuple[tuple[int, SharedTable], ...]]:
    """Share the tables among so many tasks at most, the largest first; each has its number."""
    shares: list[list[tuple[int, SharedTable]]] = [[] for _ in range(min(tasks, len(tables)))]
    filled = [0] * len(shares)
    for number, table in sorted(enumerate(tables), key=lambda item: -item[1].size):
        least = filled.index(min(filled))
        shares[least].append((number, table))
        filled[least] += table.size + _OPEN_BYTES
    return [tuple(share) for share in shares]


def _run_shares(shares: Iterable[Sequence[tuple[int, SharedTable]]]) -> Iterator[str]:
    for share in shares:
        yield from stage_share(share)


def stage_share(share: Sequence[tuple[int, SharedTable]], run: RunTask = run_task) -> Iterator[str]:
    """Stage one table after another; yield for each its number, what its tasks returned, and whether it is whole.

    A table that fails does not end the task: the others would be staged again with it.
    """
    for number, table in share:
        texts, is_whole = list[str](), True
        try:
            for partition, read in enumerate(table.readers):
                texts += run(table.plan, None, partition, read())
        except Exception:
            # Its own uploads are aborted by now. It is staged again in a job of its own, where Spark reports an error.
            LOG.info("A table of load %s failed in a shared task.", table.plan.load, exc_info=True)
            # Rule shared-half
            is_whole = False
        # Rule shared-mixed
        yield json.dumps([number, texts, is_whole])
