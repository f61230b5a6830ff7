"""End Spark's jobs, wait for the tasks that ran in them, and keep their workers quick."""

import gc
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeVar
from zipimport import zipimporter

import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakewriter.source.spark_failures import SPARK_ERRORS

Result = TypeVar("Result")

_POLL_SECONDS: Final = 0.1
_GROUP: Final = "spark.jobGroup.id"
TASKS_SECONDS: Final = 15.0
"""The time that tasks get to end after their job failed or was cancelled: they go on uploading until then."""


def get_spark_version() -> str:
    """Return the version of Spark's Python package; EMR has it without what ``importlib.metadata`` reads."""
    return pyspark.__version__


def cancel_jobs() -> None:
    """Cancel all jobs if Spark was started. If its JVM is gone, no job runs."""
    context = _get_running_context()
    if context is not None:
        with suppress(*SPARK_ERRORS, OSError):
            context.cancelAllJobs()


def wait_for_tasks() -> None:
    """Wait until no task runs, at most ``TASKS_SECONDS``: tasks of a cancelled job end after it."""
    until = time.monotonic() + TASKS_SECONDS
    while time.monotonic() < until and _count_running_tasks():
        time.sleep(_POLL_SECONDS)


def is_speculative(spark: SparkSession) -> bool:
    """Return True if Spark runs copies of slow tasks."""
    return spark.conf.get("spark.speculation", "false") == "true"


def run_in_group(spark: SparkSession, run: Callable[[], Result]) -> Result:
    """Run a Spark job. If it fails, or if Spark runs copies of tasks, wait for its other tasks.

    They run and upload for a while after the job's end.
    """
    context = spark.sparkContext
    before = context.getLocalProperty(_GROUP)
    # A caller's own group stays: by it the caller cancels what runs in its thread.
    group = before or f"lakewriter-{uuid.uuid4().hex}"
    context.setLocalProperty(_GROUP, group)
    try:
        result = run()
    except SPARK_ERRORS:
        _wait_for_group(context, group)
        raise
    finally:
        # None removes the property, though PySpark's annotation forbids it.
        context.setLocalProperty(_GROUP, before)  # type: ignore[arg-type]
    if is_speculative(spark):
        _wait_for_group(context, group)
    return result


def _wait_for_group(context: SparkContext, group: str) -> None:
    until, tracker = time.monotonic() + TASKS_SECONDS, context.statusTracker()
    with suppress(*SPARK_ERRORS, OSError):
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [stage for job in jobs if job is not None for stage in job.stageIds]
        while time.monotonic() < until:
            running = [tracker.getStageInfo(stage) for stage in stages]
            if not any(stage is not None and stage.numActiveTasks for stage in running):
                return
            time.sleep(_POLL_SECONDS)


def settle_worker() -> None:
    """Make cheap what PySpark does in a worker between its tasks; call it at the end of a task.

    PySpark collects garbage among all objects, which takes a third of a small task once libraries are loaded: what is
    loaded by then is excluded from now on. PySpark also reads the directory of each archive on the path again, which
    does not change: archives that Python has open are dropped from its cache, and opened again when a module is looked
    up.
    """
    _leave_out_of_collections()
    for path in [path for path, finder in sys.path_importer_cache.items() if isinstance(finder, zipimporter)]:
        del sys.path_importer_cache[path]


@cache
def _leave_out_of_collections() -> None:
    # Once in a process: garbage that is in use now would be kept for ever by a later call.
    gc.collect()
    gc.freeze()


def _count_running_tasks() -> int:
    context = _get_running_context()
    if context is None:
        return 0
    try:
        executors = context._jsc.sc().statusTracker().getExecutorInfos()
        return sum(int(executor.numRunningTasks()) for executor in executors)
    except (*SPARK_ERRORS, OSError):
        return 0


def _get_running_context() -> Any:
    # Not getOrCreate, which would start Spark. A context that is being made has no JVM side yet, and runs no job.
    context = SparkContext._active_spark_context
    return context if getattr(context, "_jsc", None) is not None else None
