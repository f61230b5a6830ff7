"""When a person changed a table's state: by the clock of the store, with whose times it is compared."""

import random
from datetime import UTC, datetime

from lakewriter.commit.control import Control
from lakewriter.naming import ControlKeys
from lakewriter.operate.repair import reset_cursor
from lakewriter.receipt import Cursor
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
