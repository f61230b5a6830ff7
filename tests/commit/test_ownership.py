"""Whose objects lie in a directory: one that a pipeline refreshes is its own."""

import random
from datetime import UTC, datetime

import pytest

from lakewriter.commit.control import Control
from lakewriter.commit.ownership import Ownership
from lakewriter.errors import NameCollisionError
from lakewriter.naming import ControlKeys
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from tests.commit.memory import Memory, World

SINCE = datetime(2024, 1, 15, tzinfo=UTC)


def ownership(world: World, pipeline: str) -> Ownership:
    store = Memory(world, lambda: None, random.Random(0), 0)
    layout = Layout("data/users", Template.parse("part-{seq}.parquet"))
    return Ownership(Control(store, ControlKeys("data", pipeline), "s.users"), pipeline, layout)


TAKEN = [
    # whether the first pipeline refreshes, first and then; whether the second one does; whether it is refused
    ((False,), False, False),
    ((False,), True, True),
    ((True,), False, True),
    # One that has appended and begins to refresh.
    ((False, True), False, True),
    # One that has refreshed and appends now: its directory stays its own.
    ((True, False), False, True),
]


@pytest.mark.parametrize(("first", "second", "refused"), TAKEN)
def test_second_pipeline_in_a_directory(first: tuple[bool, ...], second: bool, refused: bool):
    world = World()
    for refreshes in first:
        ownership(world, "p").join(SINCE, refreshes=refreshes)
    if not refused:
        ownership(world, "q").join(SINCE, refreshes=second)
        return
    with pytest.raises(NameCollisionError, match="pipeline 'p' writes into 'data/users' too"):
        ownership(world, "q").join(SINCE, refreshes=second)
