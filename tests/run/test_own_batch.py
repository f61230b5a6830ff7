"""A batch whose report is there is the caller's own batch only if it had the same rows."""

import random
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.errors import CheckpointLostError
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Batch
from lakewriter.records.state import Pending
from lakewriter.run.kinds import MicroBatch
from lakewriter.run.load import _require_own_batch
from tests.commit.edits import Edit
from tests.commit.intents import intent
from tests.commit.memory import Memory, World

THEIRS, MINE = Batch("q", 0, "theirs"), Batch("q", 0, "mine")


TABLE: Any = SimpleNamespace(id="s.t")


def closing() -> Control:
    """A table whose first batch has its report, and is still pending in its state."""
    control = Control(Memory(World(), lambda: None, random.Random(0), 0), ControlKeys("", "p"), "s.t")
    control.state.move(Edit(lambda state: dict(state)))
    own = Attempt("p", THEIRS.job_id, "a", datetime.now(UTC), timedelta(days=30))
    of = intent(own, batch=THEIRS)
    control.write_once(control.keys.intent(own.job_id, own.id, "s.t"), of.model_dump_json())
    control.write_once(control.keys.report(own.job_id, "s.t"), of.make_report().model_dump_json())
    pending = Pending(job_id=own.job_id, attempt=own.id, phase="uploaded", since=own.started)
    control.state.move(Edit(pending=pending))
    return control


def load_of(control, batch):
    return SimpleNamespace(
        kind=MicroBatch(batch, None, lambda *_, **__: pytest.fail("no row is read")),
        control=lambda _: control,
        pipeline=SimpleNamespace(open_clients=lambda _: None),
    )


def test_a_batch_with_other_rows_is_not_done():
    """Its number has a report already, before the state says which rows that batch had."""
    with pytest.raises(CheckpointLostError):
        _require_own_batch(load_of(closing(), MINE), TABLE)


def test_a_batch_with_the_same_rows_is_done_and_closed():
    control = closing()
    _require_own_batch(load_of(control, THEIRS), TABLE)
    assert control.state.read().batch == THEIRS
