"""Plain appends of one pipeline to one Iceberg table that overlap: they commit in turn."""

from typing import Any

import pytest

from tests.load.lakes import table

pytestmark = pytest.mark.spark


@pytest.mark.one_in(2)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("handling", ["APPEND", "FAIL"])
def test_a_load_during_another(lake, handling, first):
    """Load b runs while a reads, once it has registered; with ``first`` there was no load before them."""
    own = table("events", lake.csv("events.csv", "id,at\n1,5\n2,7\n"))
    lake.write(own, destination_table_handling=handling)
    if not first:
        assert lake.load("z").status == "done"
    others: list[Any] = []

    def progress(_table, step, _detail):
        if step == "reading" and not others:
            others.append(lake.load("b"))

    report = lake.load("a", progress=progress)
    assert [result.tables[0].code for result in (others[0], report)] == [None, None]
    jobs = lake.scan("events")["_supa_job_id"].to_pylist()
    assert sorted(set(jobs)) == (["a", "b"] if first else ["a", "b", "z"])
    assert len(jobs) == 2 * len(set(jobs))
