"""Sizes of workers; the table is that of EMR Serverless's user guide, "Worker configurations"."""

import pytest

from infra.pipeline.capacity import Capacity, compute_capacity, find_disk, find_memory
from infra.pipeline.schedule import compute_longest_age
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.deployment import Schedule, Spark, Worker

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
    assert compute_capacity(spark) == Capacity(cores=18, memory=8 + 2 * 24, disk=20 + 2 * 50)


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
