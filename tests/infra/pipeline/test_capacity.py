"""Sizes of workers; the table is that of EMR Serverless's user guide, "Worker configurations"."""

import re
from pathlib import Path

import pytest

from infra.pipeline.schedule import compute_longest_age
from lakewriter.deployable.workers import (
    TASK,
    Capacity,
    compute_capacity,
    compute_tasks_memory,
    find_disk,
    find_memory,
    find_overhead,
)
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.deployment import Schedule, Spark, Worker
from lakewriter.spec.specification import MIB, Limits

pytestmark = pytest.mark.synth

MEMORIES = [
    # cores, Spark's memory, the worker's
    (1, "1G", 2),
    (1, "7G", 8),
    (2, "1G", 4),
    (2, "7G", 8),
    (4, "14G", 16),
    (4, "27G", 30),
    (8, "17G", 20),
    (16, "100G", 112),
]


@pytest.mark.parametrize(("cores", "memory", "expected"), MEMORIES)
def test_memory(cores, memory, expected):
    assert find_memory(Worker(cores=cores, memory=memory), "driver") == expected


TOO_MUCH = [(1, "8G", "'7G'"), (2, "15G", "'14G'"), (4, "28G", "'27G'"), (16, "110G", "'109G'")]


@pytest.mark.parametrize(("cores", "memory", "most"), TOO_MUCH)
def test_memory_that_no_worker_has(cores, memory, most):
    with pytest.raises(SpecInvalidError, match=f"deployment.spark.executor.memory.*expected at most {most}"):
        find_memory(Worker(cores=cores, memory=memory), "executor")


@pytest.mark.parametrize("disk", ["19G", "201G"])
def test_disk_that_no_worker_has(disk):
    with pytest.raises(SpecInvalidError, match="expected '20G' to '200G'"):
        find_disk(Worker(disk=disk), "driver")


def test_whole_load():
    spark = Spark(
        driver=Worker(cores=2, memory="7G"), executor=Worker(cores=8, memory="20G", disk="50G"), max_executors=2
    )
    # Eight tasks of half a gigabyte beside 20 and a tenth make 26, and the next size of eight cores is 28.
    assert compute_capacity(spark, Limits()) == Capacity(cores=18, memory=8 + 2 * 28, disk=20 + 2 * 50)


def test_stream_has_room_for_its_canary():
    # A driver and an executor of one core with 4.4 GB for Java, the executor half a gigabyte more: 5 GB.
    # However large the stream's row groups are, the canary has one row.
    limits = Limits(row_group_bytes=512 * MIB)
    batch, stream = (compute_capacity(Spark(mode=mode), limits) for mode in ("BATCH", "STREAMING"))
    assert (stream.cores - batch.cores, stream.memory - batch.memory, stream.disk - batch.disk) == (2, 10, 40)
    assert Spark(mode="STREAMING").vcpus == stream.cores == 16


EXECUTORS = [
    # cores, heap, MiB of a row group; the worker's gigabytes
    # The former default: 14 and a tenth left 0.6 of 16 GB for four tasks of half a gigabyte.
    (4, "14G", 80, 18),
    (4, "12G", 80, 16),
    (1, "4G", 80, 5),
    (8, "24G", 80, 32),
    (16, "100G", 80, 120),
    # Smaller row groups than the measured ones are not counted on.
    (4, "12G", 16, 16),
    # Estuary's default of 512 MiB: 432 more than measured, a quarter more than that for each of four tasks.
    (4, "12G", 512, 18),
]


@pytest.mark.parametrize(("cores", "heap", "row_group", "expected"), EXECUTORS)
def test_executor_holds_its_tasks_beside_the_heap(cores, heap, row_group, expected):
    worker = Worker(cores=cores, memory=heap)
    tasks = compute_tasks_memory(worker, Limits(row_group_bytes=row_group * MIB))
    assert find_memory(worker, "executor", tasks) == expected
    assert find_overhead(worker, "executor", tasks) == (expected - int(heap[:-1])) * 1024


def test_default_executor_holds_what_was_measured():
    """docs/benchmarks.md, the highest peak; four of them and Java's tenth are beside the heap of 12."""
    page = (Path(__file__).parents[3] / "docs" / "benchmarks.md").read_text("utf-8")
    section = page.partition("## Memory of a worker")[2].partition("\n## ")[0]
    peaks = [int(peak) for peak in re.findall(r"\| (\d+) \|$", section, re.M)]
    spark = Spark()
    beside = find_overhead(spark.executor, "executor", compute_tasks_memory(spark.executor, Limits()))
    assert max(peaks) <= TASK * 1024
    assert (beside, 4 * max(peaks) + 0.1 * 12 * 1024 < beside) == (4096, True)


def test_tasks_that_no_worker_holds():
    worker, limits = Worker(cores=4, memory="27G"), Limits(row_group_bytes=80 * MIB)
    expected = r"'27G' with Spark's overhead of a tenth, and 2.0 GB for 4 tasks beside it, do not fit .* at most '25G'"
    with pytest.raises(SpecInvalidError, match=expected):
        find_memory(worker, "executor", compute_tasks_memory(worker, limits))


AGES = [
    # a start is delivered until the next one is due, for an hour at most and for a minute at least
    ({"rate": "5 minutes"}, 300),
    ({"rate": "1 minute"}, 60),
    ({"rate": "1 day"}, 3600),
    ({"cron": "0,20 * * * ? *"}, 1200),
    ({"cron": "0 6 1 1 ? 2030"}, 3600),
]


@pytest.mark.parametrize(("schedule", "seconds"), AGES)
def test_how_late_a_start_may_be(schedule, seconds):
    assert compute_longest_age(Schedule(**schedule)).total_seconds() == seconds
