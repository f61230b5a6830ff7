"""The driver's side of staging: the same task body for whatever feeds it, and the receipts it left."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark import TaskContext

from job.receipt import Receipt
from job.source.feed import Feed
from job.write.task import TaskPlan, write_partition


def stage(feed: Feed, plan: TaskPlan) -> tuple[Receipt, ...]:
    """Every file of the table staged; receipts in the order of the files' numbers."""
    texts = feed.run(partial(task_body, plan))
    receipts = (Receipt.from_json(json.loads(text)) for text in texts)
    return tuple(sorted(receipts, key=lambda receipt: receipt.seq))


def task_body(plan: TaskPlan, partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
    """One task: receipts as JSON text, since Spark carries them to the driver."""
    context = TaskContext.get()
    attempt = context.attemptNumber() if context else 0
    for receipt in write_partition(plan, partition, batches):
        yield json.dumps(replace(receipt, task_attempt=attempt).to_json())


def first_indexes(feed: Feed) -> tuple[int, ...]:
    """The tracking index of each partition's first row: contiguous where the rows are counted, else 2**33 apart."""
    if feed.counts is None:
        return tuple(1 + (number << 33) for number in range(feed.partitions))
    starts = [1]
    for count in feed.counts:
        starts.append(starts[-1] + count)
    return tuple(starts[:-1])
