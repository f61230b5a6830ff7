"""Which loads are not undone alone: those from whose state of the source others went on."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import ControlKeys
from lakewriter.operate.undo_plan import Choices, UndoPlan, UndoPlanner
from lakewriter.receipt import Batch
from lakewriter.records.changes import Load
from lakewriter.records.facets import Before
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SourceState, SyncIntent, SyncState
from tests.commit.intents import intent
from tests.commit.memory import Memory, World

AT = datetime(2024, 1, 15, tzinfo=UTC)


def own(job_id: str) -> Attempt:
    return Attempt("p", job_id, "A", AT, timedelta(days=30))


def synced(job_id: str, number: int) -> Load:
    """A sync that brought a state of its source."""
    source = SourceState(kind="stream", text="{}", digest=job_id, job_id=job_id)
    return begun(intent(own(job_id), sync=SyncIntent(sync_id=number, generation_id=0, source=source)))


def begun(of: Load, source: SourceState | None = None) -> Load:
    """The same load, which began with this state of its source."""
    return of.model_copy(update={"before": Before(source=source)})


def plan(of: Load, after: Sequence[Load] = (), *, keep: bool = False) -> UndoPlan:
    """That of a load without files, where nothing but loads ``after`` it was done to the table."""
    control = Control(Memory(World(), lambda: None, random.Random(0), 0), ControlKeys("", "p"), "s.t")
    last = (of, *after)[-1].sync
    state = TableState(committed=1 + len(after), sync=SyncState(source=last.source if last is not None else None))
    pipeline: Any = None
    choices = Choices("a drill", keep_cursor=keep)
    reports = [each.make_report() for each in after]
    return UndoPlanner(control, pipeline, state, (), reports, choices, is_whole=True).plan(of)


def test_a_sync_from_whose_state_another_one_went_on_is_not_undone_alone():
    """Its rows would be lost: the source is given the later state."""
    with pytest.raises(SpecInvalidError, match=r"load b went on from the state of its source\..*--through"):
        plan(synced("a", 1), [synced("b", 2)])
    kept = plan(synced("a", 1), [synced("b", 2)], keep=True)
    assert kept.notes == ("load b went on from the state of its source: its rows are not read again",)
    assert not kept.undone.restores_source


def test_the_last_sync_takes_its_state_along():
    undone = plan(synced("a", 1)).undone
    assert (undone.restores_source, undone.before) == (True, Before())


def test_a_state_of_the_source_that_nobody_has_any_more_is_not_gone_back_to():
    """One of all streams lies in the decision of its sync, which is cleared away with the sync's records."""
    gone = SourceState(kind="global", text="", digest="d", job_id="z", record="z/A")
    of = begun(synced("a", 1), gone)
    with pytest.raises(SpecInvalidError, match=r"the records of the sync before it, .* are gone.*--keep-cursor"):
        plan(of)


PARTS = [
    # the load that is undone, the sync whose state it has, whether it has brought that state
    ("a.s49ee9b962b49fe4d", "a", True),
    ("b" * 60 + ".s49ee9b962b49fe4d", "b" * 80, True),
    ("a.sales", "a", False),
    ("a.s49ee9b962b49fe4d", "b", False),
]


@pytest.mark.parametrize(("job_id", "sync", "expected"), PARTS)
def test_a_part_of_a_sync_takes_the_state_along_that_it_brought(job_id, sync, expected):
    """Its job id is made of the sync's, whose id the state has; another load may only hand a state on."""
    source = SourceState(kind="stream", text="{}", digest="d", job_id=sync)
    part = begun(intent(own(job_id), sync=SyncIntent(sync_id=1, generation_id=0, source=source)))
    assert plan(part).undone.restores_source is expected


def test_a_batch_is_undone_with_a_gap_alone():
    """Its checkpoint has gone on from it."""
    batch = intent(own(Batch("q", 3).job_id), batch=Batch("q", 3))
    with pytest.raises(SpecInvalidError, match=r"a batch of a continuous run.*--keep-cursor"):
        plan(batch)
    notes = plan(batch, keep=True).notes
    assert notes == ("it is a batch of a continuous run, whose checkpoint is beyond it: its rows are not read again",)
