"""Tasks that stage several tables one after the other: killed in the middle, tried again, or run twice at once."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import pyarrow as pa

from lakewriter.staging.shared_job import Attempted, SharedTable, share_out, stage_share
from lakewriter.staging.stage import run_task
from lakewriter.staging.task import TaskPlan
from tests.simulation.scheduler import Fiber, Process
from tests.simulation.simulated import TRIES, Here, Simulation


class Places:
    """A semaphore of the simulation's own: a thread that waits lets the others go on."""

    def __init__(self, places: int) -> None:
        self._free = places

    def __enter__(self) -> None:
        simulation = Here.mine()
        assert simulation is not None
        # A thread may be late, so that what waits by then is more than one table.
        simulation.scheduler.sleep(simulation.rng.choice(simulation.lateness))
        _wait(lambda: self._free > 0)
        self._free -= 1

    def __exit__(self, *_: object) -> None:
        self._free += 1


class Awaited(Future[Any]):
    """A future whose thread lets the others go on while it waits."""

    def result(self, timeout: float | None = None) -> Any:
        """What was set, or raised."""
        _wait(self.done)
        return super().result(timeout)


def _wait(until: Callable[[], bool]) -> None:
    simulation = Here.mine()
    assert simulation is not None
    simulation.scheduler.wait(until)


def stage_together(_spark: object, tables: Sequence[SharedTable]) -> list[Attempted]:
    """Stands in for the product's: its own task body, in executors that may die without their driver."""
    simulation = Here.mine()
    assert simulation is not None
    attempted = [Attempted()] * len(tables)
    tasks = [_Task(simulation, share) for share in share_out(tables, simulation.rng.choice(simulation.slots))]
    fibers = tuple(simulation.scheduler.spawn(simulation.process, task.run) for task in tasks)
    simulation.scheduler.join(fibers)
    # One task without an end is the end of the whole job, whatever the others have staged.
    if all(task.outputs is not None for task in tasks):
        for number, texts, is_whole in (output for task in tasks for output in task.outputs or ()):
            attempted[number] = Attempted(tuple(texts), is_whole)
    return attempted


class _Task:
    """One task, as often as Spark tries it; now and then a copy of it runs at once, and the first to end counts."""

    def __init__(self, simulation: Simulation, share: Sequence[tuple[int, SharedTable]]) -> None:
        self._simulation, self._share, self._driver = simulation, share, simulation.process
        self.outputs: list[Any] | None = None

    def run(self) -> None:
        for attempt in range(self._simulation.task_tries):
            copies = 2 if self._simulation.is_speculative and self._simulation.rng.random() < 0.5 else 1
            tries = [_Try(self._simulation, self._driver, self._share, attempt) for _ in range(copies)]
            _wait(partial(_has_ended, tries))
            # Spark kills the copy that is late, and the job ends when it is gone.
            for each in tries:
                each.executor.killed = not each.fiber.finished or each.executor.killed
            self._simulation.scheduler.join(tuple(each.fiber for each in tries))
            self.outputs = next((each.outputs for each in tries if each.is_whole), None)
            if self.outputs is not None:
                return


def _has_ended(tries: "Sequence[_Try]") -> bool:
    return any(each.is_whole for each in tries) or all(each.fiber.finished for each in tries)


class _Try:
    """One executor's run of a task."""

    def __init__(
        self, simulation: Simulation, driver: Process, share: Sequence[tuple[int, SharedTable]], attempt: int
    ) -> None:
        simulation.serial += 1
        self.executor = Process(f"{driver.name}/s{simulation.serial}", parent=driver)
        self.outputs: list[Any] = []
        self._simulation, self._share, self._attempt = simulation, share, attempt
        self.fiber: Fiber = simulation.scheduler.spawn(self.executor, self._run)

    @property
    def is_whole(self) -> bool:
        """Whether it has come to its end."""
        return self.fiber.finished and self.fiber.error is None

    def _run(self) -> None:
        TRIES.attempt = self._attempt
        self.outputs += map(json.loads, stage_share(self._share, _stage))


def _stage(plan: TaskPlan, _teller: object, partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
    return run_task(plan, None, partition, batches)
