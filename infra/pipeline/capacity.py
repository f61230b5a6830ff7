"""What a load's workers add up to, in the sizes that EMR Serverless has.

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
"""The memory that a worker can have, by its cores."""

DISK: Final = range(20, 201)

_OVERHEAD: Final = 0.1
_LEAST_OVERHEAD: Final = 384 / 1024


@dataclass(frozen=True)
class Capacity:
    """Of all workers together; memory and disk in gigabytes."""

    cores: int
    memory: int
    disk: int


def capacity(spark: Spark) -> Capacity:
    """The most that a load takes: what the application may hold, and no more."""
    driver, executor, count = spark.driver, spark.executor, spark.max_executors
    return Capacity(
        cores=spark.vcpus,
        memory=memory_of(driver, "driver") + count * memory_of(executor, "executor"),
        disk=disk_of(driver, "driver") + count * disk_of(executor, "executor"),
    )


def memory_of(worker: Worker, name: str) -> int:
    """The worker's memory: Spark's and the tenth that Spark adds, rounded up to a size that exists."""
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


def disk_of(worker: Worker, name: str) -> int:
    """The worker's disk."""
    size = int(worker.disk.removesuffix("G"))
    if size not in DISK:
        raise SpecInvalidError(
            f"deployment.spark.{name}.disk: {worker.disk!r} is no size of EMR Serverless; expected '{DISK[0]}G' to "
            f"'{DISK[-1]}G'."
        )
    return size
