"""Stage a table's files from the driver: run the same task on any feed, and collect what it returns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import overload

import pyarrow as pa
from pyspark import Accumulator, SparkContext, TaskContext
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from lakewriter.aws import get_shared_clients
from lakewriter.expect.repeated_keys import KeyCounter
from lakewriter.receipt import Floor
from lakewriter.source.bad_rows import keep_floors
from lakewriter.source.request import Feed
from lakewriter.source.spark_jobs import settle_worker
from lakewriter.spec.quarantine_names import QuarantineNames
from lakewriter.staging.quarantine import QuarantinePlan, QuarantineWriter
from lakewriter.staging.returned import Packer, Returned, dump_floors, dump_keys, dump_set_aside, make_object_writer
from lakewriter.staging.tally import DatagramListener, Staged, Tally, TaskTally, Teller
from lakewriter.staging.task import TaskPlan, write_partition


class _Adding(AccumulatorParam[Staged]):
    def zero(self, value: Staged) -> Staged:
        return Staged()

    def addInPlace(self, value1: Staged, value2: Staged) -> Staged:  # noqa: N802 - Spark's name
        return value1 + value2


class _AddingTally(TaskTally):
    def __init__(self, total: Accumulator[Staged]) -> None:
        super().__init__()
        self._total = total

    def tell(self, *, at_end: bool = False) -> None:
        if at_end:
            self._total.add(self.staged)


@dataclass(frozen=True)
class AccumulatorTally:
    """A tally for clusters: each task adds to one of Spark's accumulators when it ends; a failed task adds nothing."""

    total: Accumulator[Staged]

    @property
    def teller(self) -> "AccumulatorTally":
        """Itself: Spark carries accumulators to its tasks."""
        return self

    def begin(self, partition: int) -> TaskTally:
        """Begin the tally of a task."""
        return _AddingTally(self.total)

    def read(self) -> Staged:
        """Return the sum of the tasks that have ended."""
        return self.total.value

    def close(self) -> None:
        """Do nothing: it holds no resource."""


def open_tally(spark: SparkSession) -> Tally | None:
    """Return what reports to the driver how far its tasks are; None for a session that has no Spark behind it."""
    context = spark.sparkContext
    if not isinstance(context, SparkContext):
        return None
    if (context.master or "").startswith("local"):
        return DatagramListener()
    return AccumulatorTally(context.accumulator(Staged(), _Adding()))


def stage(feed: Feed, plan: TaskPlan, teller: Teller | None = None) -> Returned:
    """Stage every file of the table; return the receipts or their parts, and what was set aside."""
    return Returned.parse(feed.run(partial(run_task, plan, teller)))


def run_task(plan: TaskPlan, teller: Teller | None, partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
    """Run one task; yield what it wrote as JSON text, which Spark carries to the driver."""
    context = TaskContext.get()
    attempt, number = (context.attemptNumber(), context.stageId()) if context else (0, None)
    # The destination's own credentials: a catalog's are for the table's folder only.
    write = make_object_writer(get_shared_clients(plan.access)) if plan.spill else None
    bad = _make_quarantine(plan, partition)
    tally = teller.begin(partition) if teller is not None else None
    packer = Packer(plan.spill, write, attempt=attempt, stage=number, tell=tally.add_file if tally else None)
    keys = KeyCounter(plan.watched.counted, plan.partition_count) if plan.watched.counted else None
    rows = tally.count(batches) if tally else batches
    floors = list[Floor]()
    yield from write_partition(plan, partition, keep_floors(rows, floors), packer.pack, bad=bad, keys=keys)
    if floors:
        yield dump_floors(floors)
    if keys is not None and (seen := keys.finish()) is not None:
        yield dump_keys(seen)
    if bad is not None and (aside := bad.close()) is not None:
        yield dump_set_aside(aside, bad.receipts, attempt=attempt, stage=number)
    if tally is not None:
        tally.end()
    if context is not None:
        settle_worker()


def _make_quarantine(plan: TaskPlan, partition: int) -> QuarantineWriter | None:
    if (names := QuarantineNames.of(plan.names)) is None:
        return None
    quarantine = QuarantinePlan(
        names, plan.access, plan.limits, plan.load, plan.job_id, plan.start, plan.partition_count
    )
    return QuarantineWriter(quarantine, partition, get_shared_clients(plan.access))


def is_any_stage_repeated(returned: Returned) -> bool:
    """Return whether a stage ran again: after the loss of shuffle files its tasks count their tries anew."""
    return any(map(_count_earlier_runs, returned.stages))


def _count_earlier_runs(stage_id: int | None) -> int:
    """Count how often the stage ran before."""
    if stage_id is None:
        return 0
    stage_info = SparkContext.getOrCreate().statusTracker().getStageInfo(stage_id)
    # Spark drops old stages from its status store: assume that an unknown stage was retried.
    return 1 if stage_info is None else stage_info.currentAttemptId


class SparseIndexes(Sequence[int]):
    """Each partition's first tracking index, 2**33 apart, whatever the number of partitions."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions

    def __len__(self) -> int:
        return self._partitions

    @overload
    def __getitem__(self, partition: int) -> int: ...

    @overload
    def __getitem__(self, partition: slice) -> Sequence[int]: ...

    def __getitem__(self, partition: int | slice) -> int | Sequence[int]:
        """Return the index of one partition, or those of several."""
        if isinstance(partition, slice):
            return [self[number] for number in range(*partition.indices(len(self)))]
        if not 0 <= partition < len(self):
            raise IndexError(partition)
        return 1 + (partition << 33)


def choose_first_indexes(feed: Feed) -> Sequence[int]:
    """Choose the tracking index of each partition's first row: contiguous where rows are counted, else 2**33 apart."""
    if feed.counts is None:
        return SparseIndexes(feed.partitions)
    starts = [1]
    for count in feed.counts:
        starts.append(starts[-1] + count)
    return tuple(starts[:-1])
