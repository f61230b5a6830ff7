"""Stage a table's files from the driver: run the same task on any feed, and collect its receipts."""

import json
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark import SparkContext, TaskContext

from lakewriter.aws import get_shared_clients
from lakewriter.receipt import Receipt, SetAside
from lakewriter.source.feed import Feed
from lakewriter.staging.set_aside import BadRowWriter, make_object_writer
from lakewriter.staging.task import TaskPlan, write_partition


def stage(feed: Feed, plan: TaskPlan) -> tuple[tuple[Receipt, ...], SetAside | None]:
    """Stage every file of the table; return receipts in the order of the files' numbers, and what was set aside."""
    outputs = [json.loads(text) for text in feed.run(partial(run_task, plan))]
    files = [output for output in outputs if "receipt" in output]
    aside = [SetAside.model_validate(output["set_aside"]) for output in outputs if "set_aside" in output]
    before = {stage_id: _count_earlier_runs(stage_id) for stage_id in {output["stage"] for output in files}}
    receipts = (
        _add_stage_attempts(Receipt.model_validate(output["receipt"]), before[output["stage"]]) for output in files
    )
    return tuple(sorted(receipts, key=lambda receipt: receipt.seq)), SetAside.of(aside)


def run_task(plan: TaskPlan, partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
    """Run one task; yield what it wrote as JSON text, which Spark carries to the driver."""
    context = TaskContext.get()
    attempt, number = (context.attemptNumber(), context.stageId()) if context else (0, None)
    # The destination's own credentials: a catalog's are for the table's folder only.
    bad = (
        BadRowWriter(plan.aside, partition, make_object_writer(get_shared_clients(plan.access))) if plan.aside else None
    )
    for receipt in write_partition(plan, partition, batches, bad=bad):
        counted = receipt.model_copy(update={"task_attempt": attempt})
        yield json.dumps({"stage": number, "receipt": counted.model_dump(mode="json")})
    if bad is not None and (aside := bad.close()) is not None:
        yield json.dumps({"set_aside": aside.model_dump(mode="json")})


def _add_stage_attempts(receipt: Receipt, times: int) -> Receipt:
    return receipt.model_copy(update={"task_attempt": receipt.task_attempt + times})


def _count_earlier_runs(stage_id: int | None) -> int:
    """Count how often the stage ran before: after the loss of shuffle files its tasks start again at attempt 0."""
    if stage_id is None:
        return 0
    stage_info = SparkContext.getOrCreate().statusTracker().getStageInfo(stage_id)
    # Spark drops old stages from its status store: assume that an unknown stage was retried.
    return 1 if stage_info is None else stage_info.currentAttemptId


def choose_first_indexes(feed: Feed) -> tuple[int, ...]:
    """Choose the tracking index of each partition's first row: contiguous where rows are counted, else 2**33 apart."""
    if feed.counts is None:
        return tuple(1 + (number << 33) for number in range(feed.partitions))
    starts = [1]
    for count in feed.counts:
        starts.append(starts[-1] + count)
    return tuple(starts[:-1])
