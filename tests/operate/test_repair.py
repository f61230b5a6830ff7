"""When a person changed a table's state: by the clock of the store, with whose times it is compared."""

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from lakewriter.commit.control import Control
from lakewriter.commit.resets import begin_backfill
from lakewriter.naming import ControlKeys
from lakewriter.operate.repair import adopt_files, change_over, reset_cursor, reset_files
from lakewriter.receipt import Cursor
from lakewriter.records.state import Numbers, Running
from tests.commit.edits import Edit
from tests.commit.memory import Memory, World

STORE_TIME = datetime(2024, 1, 15, 12, tzinfo=UTC)


class Telling(Memory):
    """A store whose answers have its time; this machine's clock is years ahead."""

    def read_time(self) -> datetime:
        """Noon."""
        return STORE_TIME


def test_change_by_hand_has_the_time_of_the_store():
    """``verify`` tells a cursor that was set after the last load from one that is damaged."""
    control = Control(Telling(World(), lambda: None, random.Random(0), 0), ControlKeys("", "p"), "s.t")
    state = reset_cursor(control, Cursor("int64", "5"), "a drill")
    assert [(each.at, each.what) for each in state.resets] == [(STORE_TIME, "cursor set to 5, was none")]


BY_HAND: dict[str, Callable[[Control], object]] = {
    "reset --cursor": lambda control: reset_cursor(control, Cursor("int64", "5"), "a drill"),
    "reset --go-on": lambda control: change_over(control, "a drill"),
    "reset --backfill": lambda control: begin_backfill(control, "a drill"),
    "reset --no-files": lambda control: reset_files(control, (), "a drill"),
    "adopt": lambda control: adopt_files(control, "3 files", Numbers(0, 3), None, "a drill"),
}


@pytest.mark.parametrize("command", BY_HAND)
def test_no_running_attempt_commits_after_it(command: str):
    """It has read what the state said before."""
    control = Control(Memory(World(), lambda: None, random.Random(0), 0), ControlKeys("", "p"), "s.t")
    running = {"b": Running(attempt="B", since=STORE_TIME)}
    control.state.move(Edit(committed=1, running=running))
    BY_HAND[command](control)
    assert dict(control.state.read().running) == {}
