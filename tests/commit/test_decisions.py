"""Whether the tables of a sync are bound, and whether their files are complete, is decided once, by who comes first."""

import random
from datetime import UTC, datetime

from lakewriter.commit.control import Control
from lakewriter.commit.decisions import (
    Decision,
    Group,
    conclude_completion,
    decide,
    find_completion,
    find_decision,
    is_bound,
)
from lakewriter.naming import ControlKeys
from lakewriter.records.state import Failure, Pending
from tests.commit.memory import Memory, World

PENDING = Pending(job_id="j", attempt="a", phase="prepared", since=datetime(2024, 3, 1, tzinfo=UTC))
A, B = Group("j", "a"), Group("j", "b")
FAILURE = Failure(code="STAGED_LOST", message="m", remedy="r")


def open_control(world: World) -> Control:
    return Control(Memory(world, lambda: None, random.Random(0), 0), ControlKeys("", "p"), "s.t")


def test_who_decides_first_decides():
    world = World()
    assert decide(open_control(world), A, Decision(bound=False)).bound is False
    assert decide(open_control(world), A, Decision(bound=True)).bound is False
    assert decide(open_control(world), B, Decision(bound=True)).bound is True


def test_a_sync_that_is_met_undecided_is_never_bound():
    world = World()
    assert is_bound(open_control(world), PENDING) is False
    assert decide(open_control(world), A, Decision(bound=True)).bound is False


def test_a_sync_that_is_decided_stays_bound():
    world = World()
    decide(open_control(world), A, Decision(bound=True, tables=("s.t", "s.u")))
    assert is_bound(open_control(world), PENDING) is True
    assert find_decision(open_control(world), A) == Decision(bound=True, tables=("s.t", "s.u"))


def test_who_concludes_first_says_whether_the_files_are_complete():
    world = World()
    assert find_completion(open_control(world), A) is None
    assert conclude_completion(open_control(world), A, FAILURE) == FAILURE
    assert conclude_completion(open_control(world), A, None) == FAILURE
    assert conclude_completion(open_control(world), B, None) is None
    assert conclude_completion(open_control(world), B, FAILURE) is None
