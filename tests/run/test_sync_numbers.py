"""Numbers of syncs: no two loads have one, and all attempts at a load have the same."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from lakewriter.commit.control import Control
from lakewriter.commit.state import TableState
from lakewriter.commit.sync_records import SourceState, SyncState
from lakewriter.naming import ControlKeys
from lakewriter.run.stream_judging import make_partial_job_id
from lakewriter.run.sync import claim_next_number, claim_number, find_known_number
from tests.commit.memory import Memory, World

KNOWN = [
    # numbers in the reports of earlier attempts, one per table; the number that the load was given; the number
    ((None, 7), None, 7),
    ((7, 7), 9, 9),
    ((None, None), None, None),
]


SPEC: Any = SimpleNamespace(tables=())


def control_of(world: World, act: Any = lambda: None) -> Control:
    return Control(Memory(world, act, random.Random(0), 0), ControlKeys("", "p"), "s.t")


@pytest.mark.parametrize(("had", "given", "number"), KNOWN)
def test_number_that_is_known(had: tuple[int | None, ...], given: int | None, number: int | None):
    """A table that is done already has it in its report: the rest of the load has no other."""
    assert find_known_number(SPEC, had, given) == number


def test_two_loads_that_count_the_same():
    world = World()
    assert [claim_number(control_of(world), job, 4) for job in ("a", "b", "a", "c")] == [4, 5, 4, 6]


def test_attempts_that_count_at_once_go_by_the_number_written_first():
    """The second one has read states with another load's number in them meanwhile."""
    world, calls = World(), list[int]()

    def meanwhile() -> None:
        calls.append(1)
        if len(calls) == 2:
            assert claim_number(control_of(world), "a", 4) == 4

    assert claim_number(control_of(world, meanwhile), "a", 9) == 4


def test_state_that_a_source_repeats_after_new_records_ends_another_load():
    source = SourceState(kind="stream", text="{}", digest="d", job_id="a")
    first, second = (make_partial_job_id("a", source, committed) for committed in (1, 2))
    assert first != second
    assert first == make_partial_job_id("a", source, 1)


STATES = [
    # the numbers that the pipeline's other tables have, the number that the load's own has; the load's number
    ({}, 0, 1),
    ({"s.other": 6}, 4, 7),
    ({"s.other": 2}, 4, 5),
]


@pytest.mark.parametrize(("others", "own", "number"), STATES)
def test_numbers_are_the_pipelines(others: dict[str, int], own: int, number: int):
    """The claims of numbers that a table has had are cleared away, and a load need not touch that table."""
    world = World()
    keys = ControlKeys("", "p")
    for table_id, had in others.items():
        content = TableState(sync=SyncState(sync_id=had)).model_dump_json().encode()
        world.objects[keys.state(table_id)] = (content, "e")
    states = {"s.t": TableState(sync=SyncState(sync_id=own))}
    assert claim_next_number(control_of(world), "a", states) == number


def test_a_table_of_a_later_release_keeps_no_other_from_counting():
    world = World()
    world.objects[ControlKeys("", "p").state("s.other")] = (b'{"version": 9, "write": 1, "committed": 1}', "e")
    assert claim_next_number(control_of(world), "a", {"s.t": TableState()}) == 1
