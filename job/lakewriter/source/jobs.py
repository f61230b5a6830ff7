"""End Spark's jobs, and wait for the tasks that ran in them."""

import time
from contextlib import suppress
from typing import Any, Final

from pyspark import SparkContext

from lakewriter.source.failures import SPARK_ERRORS

_POLL_SECONDS: Final = 0.1


def cancel_jobs() -> None:
    """Cancel all jobs, if Spark was started; where its JVM is gone, none runs."""
    context = _get_running_context()
    if context is not None:
        with suppress(*SPARK_ERRORS, OSError):
            context.cancelAllJobs()


def wait_for_tasks(seconds: float) -> None:
    """Wait until no task runs, at most so long: tasks of a job that was cancelled end after it, and go on uploading."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and _count_running_tasks():
        time.sleep(_POLL_SECONDS)


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
    # Not getOrCreate, which would start Spark.
    return SparkContext._active_spark_context
