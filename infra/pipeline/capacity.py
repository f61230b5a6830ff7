"""Compute the capacity of a load's workers, in the sizes that EMR Serverless offers.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html#worker-configs
"""

from dataclasses import dataclass
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.spec.deployment import Spark, Worker

GIGABYTES: Final = {
    1: range(2, 9),
    2: range(4, 17),
    4: range(8, 31),
    8: range(16, 61, 4),
    16: range(32, 121, 8),
}
"""The gigabytes of memory that a worker can have, by its cores."""

DISK: Final = range(20, 201)

_OVERHEAD: Final = 0.1
_LEAST_OVERHEAD: Final = 384 / 1024


@dataclass(frozen=True)
class Capacity:
    """The capacity of all workers together; memory and disk in gigabytes."""

    cores: int
    memory: int
    disk: int


def compute_capacity(spark: Spark) -> Capacity:
    """Compute the most that a load takes, which is the application's maximum capacity."""
    driver, executor, count = spark.driver, spark.executor, spark.max_executors
    return Capacity(
        cores=spark.vcpus,
        memory=find_memory(driver, "driver") + count * find_memory(executor, "executor"),
        disk=find_disk(driver, "driver") + count * find_disk(executor, "executor"),
    )


def find_memory(worker: Worker, name: str) -> int:
    """Find the worker's memory: Spark's plus its overhead of a tenth, rounded up to a size on offer."""
    asked = int(worker.memory.removesuffix("G"))
    needed = asked + max(asked * _OVERHEAD, _LEAST_OVERHEAD)
    sizes = GIGABYTES[worker.cores]
    fitting = next((size for size in sizes if size >= needed), None)
    if fitting is None:
        most = int(sizes[-1] / (1 + _OVERHEAD))
        raise SpecInvalidError(
            f"deployment.spark.{name}.memory: {worker.memory!r} and Spark's overhead of a tenth do not fit a worker of "
            f"{worker.cores} cores; expected at most '{most}G'.",
            remedy="Lower it, or give the worker more cores.",
        )
    return fitting


def find_disk(worker: Worker, name: str) -> int:
    """Find the worker's disk in gigabytes."""
    size = int(worker.disk.removesuffix("G"))
    if size not in DISK:
        raise SpecInvalidError(
            f"deployment.spark.{name}.disk: expected '{DISK[0]}G' to '{DISK[-1]}G', as EMR Serverless offers, got "
            f"{worker.disk!r}."
        )
    return size
