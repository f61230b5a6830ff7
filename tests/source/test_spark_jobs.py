"""Tasks that go on when their job is over: whoever looks for their uploads then waits for them first."""

import gc
import importlib
import sys
import zipfile
from typing import Any, cast
from zipimport import zipimporter

import pytest
from py4j.protocol import Py4JError
from pyspark import SparkContext

from lakewriter.source import spark_jobs
from lakewriter.source.spark_jobs import run_in_group, settle_worker


class Spark:
    """A session whose job leaves tasks that end by ``looks`` looks at them, and what is told of its threads' groups."""

    def __init__(self, speculation: str, looks: int, group: str | None = None) -> None:
        self.conf, self.sparkContext = {"spark.speculation": speculation}, self
        self.looks = looks
        self.groups: list[str | None] = [group]

    def getLocalProperty(self, _: str) -> str | None:  # noqa: N802
        return self.groups[-1]

    def setLocalProperty(self, _: str, group: str | None) -> None:  # noqa: N802
        self.groups.append(group)

    def statusTracker(self) -> "Spark":  # noqa: N802
        return self

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802
        assert group == self.groups[1]
        return [7]

    def getJobInfo(self, job: int) -> Any:  # noqa: N802
        assert job == 7
        self.stageIds = [3]
        return self

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802
        assert stage == 3
        self.looks -= 1
        self.numActiveTasks = max(self.looks, 0)
        return self


@pytest.mark.parametrize(
    ("speculation", "error", "left"),
    [
        ("false", None, 3),
        ("true", None, 0),
        ("false", Py4JError("failed"), 0),
        ("true", Py4JError("failed"), 0),
    ],
)
def test_tasks_that_are_waited_for(monkeypatch, speculation, error, left):
    monkeypatch.setattr(spark_jobs, "_POLL_SECONDS", 0)
    spark = Spark(speculation, 3)

    def run() -> int:
        if error:
            raise error
        return 5

    if error:
        with pytest.raises(Py4JError):
            run_in_group(cast(Any, spark), run)
    else:
        assert run_in_group(cast(Any, spark), run) == 5
    assert (spark.looks, spark.groups[-1]) == (left, None)


def test_group_of_the_caller_stays():
    """By it a notebook cancels what a cell runs."""
    spark = Spark("true", 2, "cell")
    assert run_in_group(cast(Any, spark), lambda: spark.groups[-1]) == "cell"
    assert (spark.looks, set(spark.groups)) == (0, {"cell"})


def test_archive_on_the_path_is_not_read_again_after_a_task(tmp_path, monkeypatch):
    """PySpark calls ``importlib.invalidate_caches`` before each task, and ``gc.collect`` after it."""
    archive = tmp_path / "modules.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("first_of_archive.py", "VALUE = 1")
        content.writestr("second_of_archive.py", "VALUE = 2")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("first_of_archive").VALUE == 1
    assert isinstance(sys.path_importer_cache[str(archive)], zipimporter)
    settle_worker()
    assert not any(isinstance(finder, zipimporter) for finder in sys.path_importer_cache.values())
    importlib.invalidate_caches()
    assert importlib.import_module("second_of_archive").VALUE == 2


def test_what_is_loaded_is_left_out_of_collections_once(monkeypatch):
    calls: list[str] = []
    monkeypatch.setattr(gc, "collect", lambda: calls.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    spark_jobs._leave_out_of_collections.cache_clear()
    settle_worker()
    # What a later task has loaded is left to the collector.
    settle_worker()
    assert calls == ["collect", "freeze"]


def test_a_context_that_is_being_made_has_no_jobs(monkeypatch):
    """PySpark names the context before it has made its side in Java."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", object.__new__(SparkContext))
    spark_jobs.cancel_jobs()
    spark_jobs.wait_for_tasks()
