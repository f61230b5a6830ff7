"""Numbers of syncs: no two loads have one, and all attempts at a load have the same."""

import random
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lakewriter.commit.control import Control
from lakewriter.commit.retention import sweep
from lakewriter.naming import ControlKeys
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SourceState, SyncState
from lakewriter.run.stream_judging import make_partial_job_id
from lakewriter.run.sync import TableNumbers, claim_number, find_known_number
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
    assert [claim_number(control_of(world), job, lambda: 3) for job in ("a", "b", "a", "c")] == [4, 5, 4, 6]


def test_attempts_that_count_at_once_go_by_the_number_written_first():
    """The second one has read states with another load's number in them meanwhile."""
    world, calls = World(), list[int]()

    def meanwhile() -> None:
        calls.append(1)
        if len(calls) == 2:
            assert claim_number(control_of(world), "a", lambda: 3) == 4

    assert claim_number(control_of(world, meanwhile), "a", lambda: 8) == 4


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


def put_number(world: World, table_id: str, number: int) -> None:
    """Write the state of a table with a number, as a load does that is committed."""
    content = TableState(write=number, sync=SyncState(sync_id=number)).model_dump_json().encode()
    world.objects[ControlKeys("", "p").state(table_id)] = (content, f"e{number}")


def open_table(world: World) -> TableNumbers:
    """Begin a load: it reads the state of its table."""
    control = control_of(world)
    control.state.read()
    return TableNumbers.of({"s.t": control})


def claim(job_id: str, numbers: TableNumbers) -> int:
    return claim_number(numbers.control, job_id, numbers.find_highest)


@pytest.mark.parametrize(("others", "own", "number"), STATES)
def test_numbers_are_the_pipelines(others: dict[str, int], own: int, number: int):
    """The claims of numbers that a table has had are cleared away, and a load need not touch that table."""
    world = World()
    for table_id, had in {**others, **({"s.t": own} if own else {})}.items():
        put_number(world, table_id, had)
    assert claim("b", open_table(world)) == number


def test_a_table_of_a_later_release_keeps_no_other_from_counting():
    world = World()
    world.objects[ControlKeys("", "p").state("s.other")] = (b'{"version": 9, "write": 1, "committed": 1}', "e")
    assert claim("a", open_table(world)) == 1


@pytest.mark.parametrize("table_id", ["s.t", "s.other"])
@pytest.mark.parametrize("calls", range(4))
def test_a_number_whose_claim_was_cleared_away_is_not_claimed_again(table_id: str, calls: int):
    """A load that ran for longer than claims are kept is committed, and clears its claim away, while another counts."""
    world, made = World(), list[int]()
    assert claim("a", open_table(world)) == 1

    def meanwhile() -> None:
        made.append(1)
        if len(made) == calls + 1:
            put_number(world, table_id, 1)
            assert sweep(control_of(world), world.clock + timedelta(days=31), timedelta(days=30)) > 0
            assert not [key for key in world.objects if "/syncs/" in key]

    numbers = open_table(world)
    assert claim("b", TableNumbers(control_of(world, meanwhile), numbers.read)) == 2
    assert len(made) > calls


class Reading(Memory):
    """A store that notes the tables whose states are read."""

    tables: tuple[str, ...] = ()

    def get(self, key: str) -> tuple[bytes, str] | None:
        self.tables = (*self.tables, key.split("/")[-2])
        return super().get(key)


def test_states_that_are_as_they_were_are_not_read_again():
    world = World()
    put_number(world, "s.t", 4)
    put_number(world, "s.other", 6)
    store = Reading(world, lambda: None, random.Random(0), 0)
    numbers = TableNumbers(Control(store, ControlKeys("", "p"), "s.t"), open_table(world).read)
    assert [numbers.find_highest() for _ in range(2)] == [6, 6]
    put_number(world, "s.t", 7)
    assert numbers.find_highest() == 7
    assert store.tables == ("s.other", "s.t")
