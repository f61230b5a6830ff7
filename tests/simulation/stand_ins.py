"""What the product meets in place of clocks, ids, threads, AWS and Spark, put into its modules.

Names are found by what they hold, so that the product may move them.
"""

import contextlib
import datetime as datetime_module
import gc
import importlib
import os
import pkgutil
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, tzinfo
from functools import lru_cache
from threading import BoundedSemaphore
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pyiceberg.catalog.glue
import pyiceberg.table.metadata
import pyiceberg.table.snapshots
import pyiceberg.table.update
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.utils.concurrent import ExecutorFactory
from pyiceberg.utils.config import Config
from pyspark import TaskContext

import lakewriter
from lakewriter.aws import get_shared_clients
from lakewriter.errors import LakeError
from lakewriter.receipts import parts as receipt_parts
from lakewriter.run import loader, prepare, shared_jobs
from lakewriter.shape import digest
from lakewriter.source import feed as source_feed
from lakewriter.source import file_listing, quarantined, spark_jobs, spark_rows
from lakewriter.source.request import Feed as AnyFeed
from lakewriter.source.spark_failures import Origin
from lakewriter.staging import shared_job
from lakewriter.staging import stage as staging
from lakewriter.staging.returned import Returned
from lakewriter.staging.task import TaskPlan
from tests.simulation import folders, shared_tasks
from tests.simulation.connectors import SimulatedProcess
from tests.simulation.kept_rows import open_frame, read_quarantined
from tests.simulation.scheduler import Fiber, Killed, Process
from tests.simulation.simulated import TRIES, Here, SimulatedTaskContext, Simulation, share_clients
from tests.simulation.source import open_feed

_SLEEP: Final = time.sleep
_SIDE_BY_SIDE: Final = ("at_once", "load", "loader", "table_lanes")
"""Modules whose threads are fibers; those of the others run one after the other, at once."""


class _Moment(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, datetime)


class SimulatedDatetime(datetime, metaclass=_Moment):
    """``now`` is the process's own clock."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """See ``datetime``."""
        simulation = Here.mine()
        if simulation is None:
            return datetime.now(tz)
        moment = simulation.scheduler.now + simulation.process.skew
        return moment.astimezone(tz) if tz is not None else moment.astimezone().replace(tzinfo=None)


class _DatetimeModule:
    datetime = SimulatedDatetime

    def __getattr__(self, name: str) -> Any:
        return getattr(datetime_module, name)


def _sleep(seconds: float) -> None:
    simulation = Here.mine()
    if simulation is None:
        _SLEEP(seconds)
    else:
        simulation.scheduler.sleep(seconds)


def _clock(real: Callable[[], float]) -> Callable[[], float]:
    def clock() -> float:
        simulation = Here.mine()
        return real() if simulation is None else simulation.scheduler.now.timestamp()

    return clock


def _urandom(size: int, real: Callable[[int], bytes] = os.urandom) -> bytes:
    simulation = Here.mine()
    return real(size) if simulation is None else simulation.ids.randbytes(size)


def _uniform(low: float, high: float, real: Callable[[float, float], float] = random.uniform) -> float:
    simulation = Here.mine()
    return real(low, high) if simulation is None else simulation.ids.uniform(low, high)


_BOUND: Final[dict[int, Callable[..., Any]]] = {
    id(time.sleep): _sleep,
    id(time.monotonic): _clock(time.monotonic),
    id(time.time): _clock(time.time),
    id(random.uniform): _uniform,
}
"""By what functions may have been given as a default: what it is in a simulation."""


class Inline:
    """An executor that does it at once."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __enter__(self) -> "Inline":
        return self

    def __exit__(self, *_: object) -> None: ...

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Done when this returns."""
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 - the future's
            future.set_exception(error)
        return future

    def map(self, work: Callable[..., Any], *items: Iterable[Any]) -> Iterator[Any]:
        """One after the other."""
        return iter([work(*each) for each in zip(*items, strict=False)])

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing is open."""


class Fibers(Inline):
    """An executor whose threads take turns as all others do."""

    def __init__(self, workers: int = 4, **_: Any) -> None:
        super().__init__()
        self._workers = workers

    def map(self, work: Callable[..., Any], *items: Iterable[Any]) -> Iterator[Any]:
        """In as many fibers as there are workers."""
        todo = list(enumerate(zip(*items, strict=False)))
        simulation = Here.mine()
        if simulation is None or len(todo) < 2:
            return iter([work(*each) for _, each in todo])
        results: dict[int, Any] = {}
        failures: dict[int, BaseException] = {}
        waiting = todo[::-1]

        def worker() -> None:
            while waiting:
                number, arguments = waiting.pop()
                try:
                    results[number] = work(*arguments)
                except BaseException as error:  # noqa: BLE001 - raised in turn
                    failures[number] = error

        process = simulation.process
        fibers = tuple(simulation.scheduler.spawn(process, worker) for _ in range(min(self._workers, len(todo))))
        simulation.scheduler.join(fibers)
        return _in_order(len(todo), results, failures)


def _in_order(count: int, results: dict[int, Any], failures: dict[int, BaseException]) -> Iterator[Any]:
    for number in range(count):
        if number in failures:
            raise failures[number]
        yield results[number]


def stage(feed: AnyFeed, plan: TaskPlan, _teller: object = None) -> Returned:
    """Stands in for the product's: the real task body, in an executor that may die without its driver."""
    simulation = Here.mine()
    assert simulation is not None
    held: dict[int, list[pa.RecordBatch]] = {}

    def hold(partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
        held[partition] = list(batches)
        return iter(())

    feed.run(hold)
    # A task's own fiber even where there is one alone: what it is killed by is not what kills its driver.
    outputs = list(Fibers().map(lambda number: run_tries(simulation, plan, number, held[number]), sorted(held)))
    return Returned.parse([text for own in outputs for text in own])


def run_tries(simulation: Simulation, plan: TaskPlan, partition: int, batches: list[pa.RecordBatch]) -> list[str]:
    """What one task yields, as often as Spark tries it, each time in an executor that may die."""
    driver, origin = simulation.process, Origin(plan.load, "simulated rows")
    for attempt in range(simulation.task_tries):
        simulation.serial += 1
        executor = Process(f"{driver.name}/e{simulation.serial}", parent=driver)
        outputs: list[str] = []

        def task(outputs: list[str] = outputs, attempt: int = attempt) -> None:
            TRIES.attempt = attempt
            outputs += staging.run_task(plan, None, partition, iter(batches))

        fiber = simulation.scheduler.spawn(executor, task)
        simulation.scheduler.join((fiber,))
        if fiber.error is None:
            return outputs
        if attempt == simulation.task_tries - 1:
            raise origin.make_error(RuntimeError(_said(fiber))) from None
    raise AssertionError("no try was made")


def _said(fiber: Fiber) -> str:
    """As Spark brings a task's end to the driver."""
    if isinstance(fiber.error, Killed):
        return "ExecutorLostFailure (executor 1 exited unrelated to the running tasks)"
    if isinstance(fiber.error, LakeError):
        return f"pyspark.errors.exceptions.base.PySparkRuntimeError: {type(fiber.error).__name__}: {fiber.error}"
    return f"Traceback (most recent call last):\n  File\n{type(fiber.error).__name__}: {fiber.error}"


def _run(_: Any, run: Callable[[], Any]) -> Any:
    return run()


@lru_cache(maxsize=1)
def _modules() -> tuple[Any, ...]:
    """Every module of the product that a load runs through, imported."""
    left_out = ("doctor", "cli", "policy", "dialects", "__main__", "entry")
    for module in pkgutil.walk_packages(lakewriter.__path__, "lakewriter."):
        if module.name.split(".")[1] not in left_out:
            importlib.import_module(module.name)
    return tuple(module for name, module in sorted(sys.modules.items()) if name.startswith("lakewriter."))


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """The product with the simulation's clock, ids, threads, stage and feed in it; threads of others keep their own."""
    swaps: dict[int, Any] = {
        id(datetime): SimulatedDatetime,
        id(source_feed.open_feed): open_feed,
        id(staging.stage): stage,
        id(shared_job.stage_together): shared_tasks.stage_together,
        id(spark_jobs.run_in_group): _run,
        id(TaskContext): SimulatedTaskContext,
        id(get_shared_clients): share_clients,
        id(quarantined.read_quarantined): read_quarantined,
        id(spark_rows.open_frame): open_frame,
        # The same digests; DataFusion has threads of its own and takes longer over a few rows.
        id(digest.compute_digests): digest.digest_with_hashlib,
    }
    # Of this module alone: those of others wait within a task.
    waits: dict[int, Any] = {id(BoundedSemaphore): shared_tasks.Places, id(Future): shared_tasks.Awaited}
    modules = _modules()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_few_collections())
        for module in modules:
            threads = Fibers if module.__name__.rpartition(".")[2] in _SIDE_BY_SIDE else Inline
            for name, held in list(vars(module).items()):
                if id(held) in swaps and not _is_origin(module, held):
                    stack.enter_context(patch.object(module, name, swaps[id(held)]))
                elif module is shared_jobs and id(held) in waits:
                    stack.enter_context(patch.object(module, name, waits[id(held)]))
                elif held is ThreadPoolExecutor:
                    stack.enter_context(patch.object(module, name, threads))
                elif isinstance(held, type) and held.__module__ == module.__name__:
                    _give_defaults(stack, held)
        stack.enter_context(patch.object(file_listing, "list_inputs", folders.list_inputs))
        stack.enter_context(patch.object(loader, "list_inputs", folders.list_inputs))
        # The simulated sources give rows in the order of their partitions.
        stack.enter_context(patch.object(prepare, "_cluster_rows", lambda _feed, _shape: None))
        stack.enter_context(patch("lakewriter.source.messages.spool.subprocess.Popen", SimulatedProcess))
        stack.enter_context(patch.object(time, "sleep", _sleep))
        for name in ("monotonic", "time"):
            stack.enter_context(patch.object(time, name, _clock(getattr(time, name))))
        stack.enter_context(patch.object(os, "urandom", _urandom))
        stack.enter_context(patch.object(random, "uniform", _uniform))
        stack.enter_context(patch.object(pyiceberg.table.update, "datetime", SimulatedDatetime))
        stack.enter_context(patch.object(pyiceberg.table.metadata, "datetime", _DatetimeModule()))
        # It looks for a file of settings on the disk whenever a schema is converted.
        stack.enter_context(patch.object(Config, "_from_configuration_files", staticmethod(lambda: None)))
        stack.enter_context(patch.object(ExecutorFactory, "get_or_create", staticmethod(Inline)))
        yield


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    """The modules' own objects are never garbage: looking through them again and again is a fifth of all time."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def _is_origin(module: Any, held: Any) -> bool:
    return held is not datetime and getattr(held, "__module__", "") == module.__name__


def _give_defaults(stack: contextlib.ExitStack, kind: type) -> None:
    """Defaults that were bound to the clock or to chance when their module was imported."""
    for function in list(vars(kind).values()):
        if defaults := getattr(function, "__defaults__", None):
            changed = tuple(_BOUND.get(id(value), value) for value in defaults)
            if changed != defaults:
                stack.enter_context(patch.object(function, "__defaults__", changed))
        if keywords := getattr(function, "__kwdefaults__", None):
            changed_too = {name: _BOUND.get(id(value), value) for name, value in keywords.items()}
            if changed_too != keywords:
                stack.enter_context(patch.object(function, "__kwdefaults__", changed_too))


@contextlib.contextmanager
def running(simulation: Simulation) -> Iterator[None]:
    """This simulation is the one that the stand-ins speak of."""
    clear_manifest_cache()
    Here.now = simulation
    try:
        with patch.object(receipt_parts, "BOUNDS", simulation.bounds):
            yield
    finally:
        Here.now = None
