"""What a state says of its loads, where clocks differ and loads outlive one another: no difference is made up."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.naming import ControlKeys
from lakewriter.operate.load_records import TableRecords, _compare_progress
from lakewriter.receipt import Cursor
from lakewriter.records.state import Reset, TableState
from tests.commit.intents import intent
from tests.commit.memory import Memory, World

COMMITTED = datetime(2024, 3, 1, tzinfo=UTC)
KEYS = ControlKeys("data", "p")
OWN = Attempt("p", "a", "a1", COMMITTED, timedelta(days=30))

MOVED = "its cursor is none, and its last load 'a' has left it at 2"


@pytest.mark.parametrize(("committed", "told"), [(1, []), (0, [MOVED])])
def test_a_cursor_taken_away_after_the_last_load_by_the_count_of_loads(committed, told):
    """The load's machine may have had a clock that was days ahead of the store's."""
    reset = Reset(at=COMMITTED - timedelta(days=2), what="cursor taken away, was 2", reason="r", committed=committed)
    state = TableState(committed=1, last_job="a", last_commit=COMMITTED, resets=(reset,))
    assert list(_compare_progress(state, intent(OWN, after=Cursor("int32", "2")), "a")) == told


GONE = "its last load is 'b', and that load has no report, while older loads have theirs"


ENDED = Reset(
    at=COMMITTED, what="load undo.b abandoned without its intent (intended)", reason="r", committed=2, ended="undo.b"
)


@pytest.mark.parametrize(
    ("last", "later", "resets", "told"),
    [
        ("b", timedelta(days=-1), (), [GONE]),
        ("b", timedelta(days=60), (), []),
        ("undo.b", timedelta(days=-1), (), [GONE.replace("'b'", "'undo.b'")]),
        ("undo.b", timedelta(days=-1), (ENDED,), []),
    ],
)
def test_last_load_without_a_report(last, later, resets, told):
    """Retention goes by the youngest object of a load: an older one that somebody came back to is kept for longer. An
    undo that was ended without its intent has no report."""
    world = World()
    world.clock = COMMITTED + later
    world.objects[KEYS.report("a", "s.t")] = (b"{}", "e")
    control = Control(Memory(world, lambda: None, random.Random(0), 0), KEYS, "s.t")
    records = TableRecords(control, control.history.list_reports()["s.t"])
    state = TableState(committed=2, last_job=last, last_commit=COMMITTED, resets=resets)
    assert list(records._compare_loads(state, "a")) == told
