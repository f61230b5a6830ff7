"""Loads that go by the table as it was, beside others: they say so before they read, and end before they stage."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewriter.records.state import Running
from tests.commit.edits import Edit
from tests.load.lakes import BUCKET, Lake, table

pytestmark = pytest.mark.spark

AT = datetime.now(UTC) - timedelta(days=1)
ID = "supaflow_nyc_public.events"


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return Lake(tmp_path, aws, spark)


def run(lake, job, during=lambda _step: None):
    """The report of a load, and what it said of its progress; ``during`` is called at each step."""
    steps = []

    def progress(_table, step, detail):
        steps.append((step, detail))
        during(step)

    return lake.load(job, progress=progress).tables[0], steps


def register(lake):
    """As a load that was killed is left: it is registered, and nobody runs it."""
    entry = Running(attempt="dead", since=AT)
    lake.control(ID).state.move(Edit(lambda state: {"running": {**state.running, "dead": entry}}))


def test_a_load_with_a_cursor_beside_a_registered_one(lake):
    lake.write(table("events", lake.csv("events.csv", "id,at\n1,5\n2,7\n"), cursor="at"))
    register(lake)
    result, steps = run(lake, "a")
    told = [number for number, (_, detail) in enumerate(steps) if "CONCURRENT_LOAD" in detail]
    assert [steps[number] for number in told] == [
        (
            "beginning",
            f"load 'dead' of this table registered at {AT:%Y-%m-%d %H:%M:%S} UTC and has not ended: if it still runs "
            "and commits first, this load ends with CONCURRENT_LOAD and has to be run again",
        )
    ]
    assert told[0] < [step for step, _ in steps].index("reading")
    assert (result.status, result.rows) == ("done", 2)


def test_a_table_without_a_cursor_says_that_it_is_appended_again(lake):
    lake.write(table("events", lake.csv("events.csv", "id,at\n1,5\n")))
    told = [dict(run(lake, job)[1])["reading"] for job in ("a", "b")]
    assert told == [
        "no cursor: each load after this one appends all rows of the source again",
        "no cursor: all rows of the source are appended again, as by 1 load before; an earlier load has read 1 of its "
        "1 file",
    ]


def test_a_plain_append_beside_a_registered_one(lake):
    lake.write(table("events", lake.csv("events.csv", "id,at\n1,5\n")))
    register(lake)
    result, steps = run(lake, "a")
    assert result.status == "done"
    assert not [detail for _, detail in steps if "CONCURRENT_LOAD" in detail]


def test_another_load_commits_while_this_one_reads(lake):
    """Nothing is staged then: what was would have to be aborted."""
    lake.write(table("events", lake.csv("events.csv", "id,at\n1,5\n2,7\n"), cursor="at"))
    others: list[Any] = []

    def during(step):
        if step == "reading" and not others:
            others.append(lake.load("b"))

    result, steps = run(lake, "a", during)
    assert (others[0].status, result.code) == ("done", "CONCURRENT_LOAD")
    assert "writing" not in [step for step, _ in steps]
    keys = [call.key for call, _ in lake.aws.history if call.method == "POST" and "uploads" in call.query]
    assert len(keys) == 1
    assert lake.aws.uploads(BUCKET) == []
    assert run(lake, "a")[0].status == "done"
