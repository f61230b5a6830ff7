"""When objects that a change has taken out are deleted: not before their time, nor under a change that shows them."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.deferred_deletions import retire_due
from lakewriter.commit.store import StoredObject
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Part, Receipt
from lakewriter.records.state import Generation, Pending, Retiring, TableState
from tests.commit.edits import Edit
from tests.commit.intents import intent
from tests.commit.memory import Memory, World

NOW = datetime.now(UTC)
OWN = Attempt("p", "a", "A", NOW, timedelta(days=30))
KEY = "data/1.parquet"
PENDING = Pending(job_id="undo.b", attempt="B", phase="intended", since=NOW)

CASES = [
    # when the time of the replaced refresh is over, what is pending; whether its object stays
    (NOW - timedelta(days=1), None, False),
    (NOW + timedelta(days=1), None, True),
    # An undo that is bound may show it.
    (NOW - timedelta(days=1), PENDING, True),
]


@pytest.mark.parametrize(("until", "pending", "stays"), CASES)
def test_what_a_refresh_has_replaced(until: datetime, pending: Pending | None, stays: bool):
    world = World()
    control = Control(Memory(world, lambda: None, random.Random(0), 0), ControlKeys("", "p"), "s.t")
    receipt = Receipt(
        bucket="b", key=KEY, upload_id="u", parts=(Part(1, "e"),), checksum_algorithm=None,
        size=3, rows=1, row_groups=1, partition=0, seq=0, first_index=0, engine="arro3", requests={},
    )  # fmt: skip
    world.data[KEY] = StoredObject(3, OWN.load, "etag")
    entry = Retiring(job_id="a", attempt="A", not_before=until, generation=1)
    generations = tuple(Generation(number=n, job_id=job, attempt="A", started=NOW) for n, job in ((1, "a"), (2, "b")))
    state = TableState(committed=2, generation=2, generations=generations, retiring=(entry,), pending=pending)
    control.state.move(Edit(lambda _: dict(state)))
    control.write_once(control.keys.intent("a", "A", "s.t"), intent(OWN, (receipt,)).model_dump_json())
    retire_due(control)
    assert (KEY in world.data) is stays
    after = control.state.read()
    assert (after.retiring, after.generations) == (((entry,), generations) if stays else ((), generations[1:]))
