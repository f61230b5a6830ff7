"""Compute the capacity of a load's workers, in the sizes that EMR Serverless offers.

https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/app-behavior.html#worker-configs
"""

from dataclasses import dataclass
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.spec.deployment import CANARY, Spark, Worker
from lakewriter.spec.specification import Limits

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

TASK: Final = 0.5
"""The gigabytes of a task's Python process, outside Java's heap, with row groups of the default size.

docs/benchmarks.md, "Memory of a worker": 492 MiB at most, however long its partition is.
"""
_GROWTH: Final = 1.25
"""Each further byte of a row group adds so many: 462 MiB with 80 a row group became 637 with 240, and 696 with 480."""
_GIB: Final = 1024**3


@dataclass(frozen=True)
class Capacity:
    """The capacity of all workers together; memory and disk in gigabytes."""

    cores: int
    memory: int
    disk: int


def compute_capacity(spark: Spark, limits: Limits) -> Capacity:
    """Compute the application's maximum capacity: what a load takes at most, and beside a stream its canary."""
    runs = [(spark.driver, spark.executor, spark.max_executors, limits)]
    if spark.mode == "STREAMING":
        runs.append((CANARY, CANARY, 1, Limits()))
    memory = disk = 0
    for driver, executor, count, of_run in runs:
        beside = compute_tasks_memory(executor, of_run)
        memory += find_memory(driver, "driver") + count * find_memory(executor, "executor", beside)
        disk += find_disk(driver, "driver") + count * find_disk(executor, "executor")
    return Capacity(cores=spark.vcpus, memory=memory, disk=disk)


def compute_tasks_memory(worker: Worker, limits: Limits) -> float:
    """Compute the gigabytes of all tasks that an executor runs at a time, one on each core."""
    further = max(0, limits.row_group_bytes - Limits().row_group_bytes)
    return worker.cores * (TASK + _GROWTH * further / _GIB)


def find_memory(worker: Worker, name: str, tasks: float = 0) -> int:
    """Find the worker's memory, rounded up to a size on offer: Spark's heap, Java's overhead of a tenth, and what the
    ``tasks`` take beside both."""
    asked = int(worker.memory.removesuffix("G"))
    sizes = GIGABYTES[worker.cores]
    fitting = next((size for size in sizes if size >= _add_overhead(asked) + tasks), None)
    if fitting is None:
        fits = [heap for heap in range(1, sizes[-1]) if _add_overhead(heap) + tasks <= sizes[-1]]
        beside = f", and {tasks:.1f} GB for {worker.cores} tasks beside it," if tasks else ""
        most = f"expected at most '{fits[-1]}G'" if fits else "expected smaller row groups"
        raise SpecInvalidError(
            f"deployment.spark.{name}.memory: {worker.memory!r} with Spark's overhead of a tenth{beside} do not fit a "
            f"worker of {worker.cores} cores, which has at most {sizes[-1]} GB; {most}.",
            remedy="Lower it, lower limits.row_group_mb, or give the worker more cores."
            if tasks
            else "Lower it, or give the worker more cores.",
        )
    return fitting


def find_overhead(worker: Worker, name: str, tasks: float = 0) -> int:
    """Find Spark's ``memoryOverhead`` in MiB: all of the worker's memory beside the heap."""
    return (find_memory(worker, name, tasks) - int(worker.memory.removesuffix("G"))) * 1024


def _add_overhead(heap: int) -> float:
    return heap + max(heap * _OVERHEAD, _LEAST_OVERHEAD)


def find_disk(worker: Worker, name: str) -> int:
    """Find the worker's disk in gigabytes."""
    size = int(worker.disk.removesuffix("G"))
    if size not in DISK:
        raise SpecInvalidError(
            f"deployment.spark.{name}.disk: expected '{DISK[0]}G' to '{DISK[-1]}G', as EMR Serverless offers, got "
            f"{worker.disk!r}."
        )
    return size
