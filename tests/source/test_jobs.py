"""Tasks that go on when their job is over: whoever looks for their uploads then waits for them first."""

from typing import Any, cast

import pytest
from py4j.protocol import Py4JError

from lakewriter.source import jobs
from lakewriter.source.jobs import run_in_group


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
    monkeypatch.setattr(jobs, "_POLL_SECONDS", 0)
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
