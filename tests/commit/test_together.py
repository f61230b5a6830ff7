"""The tables of a sync that has one state for all streams are bound together, or none is."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.decisions import Decision
from lakewriter.commit.together import PreparedTable, bind_together
from lakewriter.errors import ConcurrentLoadError
from lakewriter.naming import ControlKeys
from lakewriter.records.state import Running
from tests.commit.edits import Edit
from tests.commit.intents import intent
from tests.commit.memory import Memory, World

NOON = datetime(2024, 1, 15, 12, tzinfo=UTC)
OWN = Attempt("p", "a", "first", NOON, timedelta(days=30))


def test_what_was_prepared_is_withdrawn_where_a_table_cannot_be_bound():
    """Another attempt of the job has taken over in the second table."""
    world, members = World(), list[PreparedTable]()
    for table, attempt in (("s.t", "first"), ("s.u", "second")):
        control = Control(Memory(world, lambda: None, random.Random(0), 0), ControlKeys("", "p"), table)
        running = {"a": Running(attempt=attempt, since=NOON)}
        began = control.state.move(Edit(running=running))
        members.append(PreparedTable(control, intent(OWN, table_id=table, together=True), began))
    with pytest.raises(ConcurrentLoadError, match=r"table s\.u: another attempt of load 'a' has taken over"):
        bind_together(OWN, members, Decision(bound=True), Clients)
    assert [member.control.state.read().pending for member in members] == [None, None]
