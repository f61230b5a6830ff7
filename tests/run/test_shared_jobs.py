"""Tables that wait are the next job's together; what a job raises, each of them raises."""

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from lakewriter.run import shared_jobs
from lakewriter.run.shared_jobs import SMALL_BYTES, SharedJobs
from lakewriter.staging.shared_job import Attempted, SharedTable


class Feed:
    """A feed of so many bytes that tasks read themselves."""

    def __init__(self, size: int = 0, partitions: int = 1) -> None:
        self.input_bytes, self.partitions = size, partitions

    def list_readers(self) -> list[Any]:
        return [None] * self.partitions


class Jobs:
    """Jobs that run until they are let go; ``names`` are the tables of each."""

    def __init__(self) -> None:
        self.names: list[list[str]] = []
        self.go = Event()

    def __call__(self, _: object, tables: Sequence[SharedTable]) -> list[Attempted]:
        names = [cast(str, table.plan) for table in tables]
        self.names.append(names)
        assert self.go.wait(30)
        if "bad" in names:
            raise ZeroDivisionError("a fault")
        return [Attempted((name,), whole=True) for name in names]


@pytest.fixture
def jobs(monkeypatch) -> Jobs:
    jobs = Jobs()
    monkeypatch.setattr(shared_jobs, "stage_together", jobs)
    return jobs


def spark() -> SparkSession:
    return cast(SparkSession, None)


def stage_all(shared: SharedJobs, jobs: Jobs, *names: str) -> "dict[str, Future[Attempted | None]]":
    """Stage a table after the other, each in a thread, the jobs held until all of them wait."""
    with ThreadPoolExecutor(len(names)) as threads:
        staged = {}
        for number, name in enumerate(names):
            staged[name] = threads.submit(shared.stage, spark, cast(Any, Feed()), cast(Any, name))
            expected = number - 1 if number > 1 else 0
            while len(jobs.names) < min(number + 1, 2) or len(shared._waiting) < expected:
                Event().wait(0.001)
        jobs.go.set()
    return staged


def test_tables_that_wait_share_the_next_job(jobs):
    names = ("a", "b", "c", "d", "e")
    staged = stage_all(SharedJobs(), jobs, *names)
    assert jobs.names == [["a"], ["b"], ["c", "d", "e"]]
    assert {name: own.result() for name, own in staged.items()} == {name: Attempted((name,), True) for name in names}


def test_a_job_waits_for_tables_that_are_on_their_way(jobs):
    """Of eight, four at a time, half of which make a job; the last of all wait for nobody."""
    jobs.go.set()
    shared = SharedJobs(8, 4)
    with ThreadPoolExecutor(8) as threads:

        def stage(*names: str) -> list[Attempted | None]:
            staged = [threads.submit(shared.stage, spark, cast(Any, Feed()), cast(Any, name)) for name in names]
            return [own.result(30) for own in staged]

        stage("a", "b")
        stage("c", "d")
        began = time.monotonic()
        stage("e")
        waited = time.monotonic() - began
        stage("f", "g")
        stage("h")
    assert [sorted(names) for names in jobs.names] == [["a", "b"], ["c", "d"], ["e"], ["f", "g"], ["h"]]
    assert waited >= 0.25


def test_tables_that_need_a_job_of_their_own_are_not_waited_for(jobs, monkeypatch):
    """Without the rule it would wait for ever."""
    monkeypatch.setattr(shared_jobs, "_WAIT_SECONDS", 1e9)
    jobs.go.set()
    shared = SharedJobs(3, 32)
    for feed in (object(), Feed(SMALL_BYTES + 1)):
        assert shared.stage(spark, cast(Any, feed), cast(Any, "large")) is None
    assert shared.stage(spark, cast(Any, Feed()), cast(Any, "a")) == Attempted(("a",), True)


def test_fault_of_a_job_is_that_of_its_tables(jobs):
    staged = stage_all(SharedJobs(), jobs, "a", "b", "c", "bad")
    assert {name: type(own.exception()) for name, own in staged.items()} == {
        "a": type(None),
        "b": type(None),
        "c": ZeroDivisionError,
        "bad": ZeroDivisionError,
    }


@pytest.mark.parametrize(
    "feed", [object(), Feed(SMALL_BYTES + 1), Feed(partitions=0)], ids=["rows", "large", "without partitions"]
)
def test_table_that_needs_a_job_of_its_own(feed, jobs):
    assert SharedJobs().stage(spark, feed, cast(Any, "a")) is None
    assert jobs.names == []
