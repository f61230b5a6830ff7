"""Tables that one Spark job stages: how they are shared among its tasks, and what one that fails does to the others."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lakewriter.errors import SourceFailedError
from lakewriter.staging import shared_job
from lakewriter.staging.shared_job import Attempted, SharedTable, share_out, stage_share

MIB = 1024 * 1024


def make_table(name: str, size: int = 0, partitions: int = 1) -> SharedTable:
    """A table whose plan is little more than its name, and whose readers give the number of the partition."""
    plan: Any = SimpleNamespace(load=name)
    readers: Any = tuple(lambda number=number: number for number in range(partitions))
    return SharedTable(plan, readers, size)


SHARES = [
    ("no more tasks than tables", [0, 0], 8, [[0], [1]]),
    ("one task", [0, 0, 0], 1, [[0, 1, 2]]),
    ("of one size, in turns", [0, 0, 0, 0], 2, [[0, 2], [1, 3]]),
    # The largest first: 9 + 1 MiB in the first task, then 4, 4 and 1 with 1 MiB each in the second until it is fuller.
    ("a large one beside several", [1 * MIB, 4 * MIB, 9 * MIB, 4 * MIB], 2, [[2, 0], [1, 3]]),
]


@pytest.mark.parametrize(("sizes", "tasks", "numbers"), [case[1:] for case in SHARES], ids=[case[0] for case in SHARES])
def test_share_out(sizes, tasks, numbers):
    shares = share_out([make_table(str(number), size) for number, size in enumerate(sizes)], tasks)
    assert [[number for number, _ in share] for share in shares] == numbers


def test_table_that_fails_does_not_end_the_task():
    def run(plan: Any, teller: object, partition: int, batches: Any) -> Iterator[str]:
        yield f"{plan.load}{partition}"
        if plan.load == "b" and partition == 1:
            raise SourceFailedError("the file is gone")

    share = [(0, make_table("a")), (1, make_table("b", partitions=3)), (2, make_table("c", partitions=2))]
    told = [json.loads(text) for text in stage_share(share, run)]
    assert told == [[0, ["a0"], True], [1, ["b0", "b1"], False], [2, ["c0", "c1"], True]]


def test_a_job_has_ended_with_all_of_its_tasks_when_it_returns(monkeypatch: pytest.MonkeyPatch):
    """A task that ran on would stage files behind the one that replaces it."""
    ran: list[object] = []

    def run_in_group(spark: object, run: Any) -> Any:
        ran.append(spark)
        return run()

    monkeypatch.setattr(shared_job, "run_in_group", run_in_group)
    monkeypatch.setattr(shared_job, "count_slots", lambda _: 1)
    items: Any = SimpleNamespace(mapPartitions=lambda _: SimpleNamespace(collect=lambda: ['[0, ["a0"], true]']))
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(parallelize=lambda *_: items))
    assert shared_job.stage_together(spark, [make_table("a")]) == [Attempted(("a0",), True)]
    assert ran == [spark]


def test_what_ends_the_process_ends_the_task():
    def run(plan: Any, teller: object, partition: int, batches: Any) -> Iterator[str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(stage_share([(0, make_table("a"))], run))
