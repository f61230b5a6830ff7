"""Batches of a continuous run: what comes next, and the whole of it through random histories of crashes."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.batches import RECENT_BATCHES, clear_batches, is_next, require_stream
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.recover import recover
from lakewriter.errors import CheckpointLostError, ConcurrentLoadError, LakeError
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Batch
from lakewriter.records.state import ADOPTED, ANEW, TableState
from lakewriter.records.sync_records import Live, SyncIntent, SyncState, advance_sync
from lakewriter.spec.access import Access
from tests.commit import test_histories as histories
from tests.commit.edits import Edit
from tests.commit.intents import intent
from tests.commit.memory import Crash, Memory, World
from tests.support.narrow import need
from tests.support.s3_rules import moto_bucket

one_thread = histories.one_thread

NEXT = [
    # the state's last batch, the one that came, whether it is due
    (None, Batch("q", 0, "a"), True),
    (Batch("q", 0, "a"), Batch("q", 1, "b"), True),
    (Batch("q", 4, "a"), Batch("q", 4, "a"), False),
    (Batch("q", 4), Batch("q", 4, "a"), False),
]

LATER = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(("last", "batch", "due"), NEXT)
def test_is_next(last, batch, due):
    assert is_next(last, batch, "t", last) is due


LOST = [
    # the state's last batch, the one that came, what is said; a checkpoint that Spark has not noted the last batch in
    # calls that one again, with the offsets it was planned with, and none before it
    (None, Batch("q", 3), "has no batch yet, and the checkpoint is at batch 3 of query q"),
    (Batch("q", 4), Batch("q", 6), "last batch is 4 of query q, and the checkpoint is at batch 6, beyond the next one"),
    (Batch("q", 4), Batch("r", 0), "last batch is 4 of query q, and the checkpoint is at batch 0 of query r"),
    (Batch("q", 30), Batch("q", 26), "last batch is 30 of query q, and the checkpoint is an older one, at batch 26"),
    (Batch("q", 4, "a"), Batch("q", 4, "b"), "an older one, which has planned that batch anew"),
]


@pytest.mark.parametrize(("last", "batch", "said"), LOST)
def test_lost_checkpoint(last, batch, said):
    with pytest.raises(CheckpointLostError, match=f"{said}.*reset LAKE t --backfill"):
        is_next(last, batch, "t", last)


STREAMS = [
    # the table's state, what is said of a stream that goes on; blank where it may
    (TableState(), ""),
    (TableState(committed=3, last_job=Batch("q", 2).job_id, batch=Batch("q", 2)), ""),
    (TableState(committed=4, last_job="a", batch=Batch("q", 2)), "load 'a' has committed after its last batch, 2"),
    (TableState(committed=3, last_job="a"), "it has 3 loads and no batch of a continuous run"),
    # A person's word is good for so many loads.
    (TableState(committed=3, last_job="a", batch=Batch(ADOPTED, 3)), ""),
    (TableState(committed=4, last_job="b", batch=Batch(ADOPTED, 3)), "it has 4 loads and no batch"),
    (TableState(committed=4, last_job="b", batch=Batch(ANEW, 4)), ""),
    (TableState(committed=4, compactions=1, last_job="b", batch=Batch(ANEW, 3)), ""),
]


@pytest.mark.parametrize(("state", "said"), STREAMS)
def test_stream_after_other_loads(state: TableState, said: str):
    """It would load again what they have."""
    if not said:
        require_stream(state, "t")
        return
    with pytest.raises(CheckpointLostError, match=said):
        require_stream(state, "t")


@pytest.mark.parametrize("since", [None, Batch("q", 1), Batch("q", 2)])
def test_another_process_has_gone_on(since):
    with pytest.raises(ConcurrentLoadError, match="another process has continued from batch 2 to 4"):
        is_next(Batch("q", 4), Batch("q", 2), "t", since)


def test_receipts_of_live_generations_are_not_cleared_away():
    """A full refresh finds by them what it has to retire."""
    control = Control(Memory(World(), lambda: None, random.Random(0), 0), ControlKeys("", "p"), "s.t")
    live = SyncState(live=(Live(job_id="stream-q-0000000001", generation_id=0),))
    control.state.move(Edit(sync=live))
    for number in range(4):
        own = Attempt("p", Batch("q", number).job_id, "a", datetime(2024, 1, 15, tzinfo=UTC), timedelta(days=30))
        control.write_once(control.keys.report(own.job_id, "s.t"), intent(own).make_report().model_dump_json())
    clear_batches(control, Batch("q", 23))
    found = [number for number in range(4) if control.read_report(Batch("q", number).job_id) is not None]
    assert found == [1, 3]


QUERY = "0d9e2c1c-5a1e-4c0e-9d0a-3b1f6a1c2d3e"

# A compaction or expiry, its hours before the last batch, whether its objects stay.
UPKEEP = [("compact.s_t.7", 25, False), ("expire.s_t.8", 25, False), ("compact.s_t.9", 23, True)]


def test_old_upkeep_is_cleared_away(aws, bucket):
    """As the batches that it was done between; that of another table is kept as its loads are."""
    control = Control(S3Store(Clients(Access(bucket=bucket, region="us-east-1"))), ControlKeys("", "p"), "s.t")
    control.state.move(Edit(committed=1))
    last = datetime(2024, 1, 15, tzinfo=UTC)

    def write(job_id: str, hours: int, table_id: str = "s.t") -> str:
        control.write_once(key := control.keys.report(job_id, table_id), {})
        object.__setattr__(need(moto_bucket(bucket)).keys[key], "last_modified", last - timedelta(hours=hours))
        return key

    upkeep = [(write(job_id, hours), stays) for job_id, hours, stays in UPKEEP]
    upkeep.append((write("compact.s_u.1", 25, "s.u"), True))
    write(Batch(QUERY, 50).job_id, 0)
    clear_batches(control, Batch(QUERY, 50))
    assert [(key, control.read_body(key) is not None) for key, _ in upkeep] == upkeep


def test_a_stream_names_its_last_batches_alone():
    """So that what is before them can be cleared away; other loads, and another stream's batches, stay."""
    others = (Live(job_id="nightly", generation_id=0), Live(job_id="stream-old-0000000003", generation_id=0))
    sync = SyncState(live=others)
    for number in range(25):
        batch = Batch("q", number)
        intent = SyncIntent(sync_id=number, generation_id=0)
        sync = advance_sync(sync, intent, batch.job_id, files=number != 7, batch=batch)
    assert sync.live[:2] == others
    # The one without files is none of them.
    named = [live.job_id for live in sync.live[2:]]
    assert named == [Batch("q", number).job_id for number in (4, 5, 6, *range(8, 25))]


def test_job_ids_sort_by_number():
    ids = [Batch("5a6e58cf-4d3d-4fd3-a1c5-53b4b1a1f7e4", number).job_id for number in (9, 10, 1_000_000)]
    assert ids == sorted(ids)
    assert ids[0] == "stream-5a6e58cf-4d3d-4fd3-a1c5-53b4b1a1f7e4-0000000009"


class Stream(histories.History):
    """A checkpoint, one process after another or two at a time, and batches whose rows are always the same."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.incremental, self.vanishing = False, False
        self.checkpoint = 0
        self.batches = 6

    def attempt(self, job: str) -> None:
        """A process that goes on from the checkpoint, which it moves after each batch that came to its end."""
        self.depth += 1
        try:
            since = self.control().state.read().batch
            for number in range(self.checkpoint, self.batches):
                self.begun += 1
                control = self.control()
                batch = Batch("q", number)
                own = Attempt("p", batch.job_id, f"A{self.begun}", self.world.tick(), timedelta(days=30))
                self.batch(control, own, batch, since)
                self.disturb()
                self.checkpoint = max(self.checkpoint, number + 1)
                clear_batches(control, Batch("q", number + RECENT_BATCHES - 1))
        except CheckpointLostError:
            raise
        except (Crash, LakeError):
            pass
        finally:
            self.depth -= 1

    def control(self) -> Control:
        store = Memory(self.world, self.disturb, self.rng, self.unclear)
        return Control(store, ControlKeys("", "p"), "s.t", pause=lambda _: None)

    def batch(self, control: Control, own: Attempt, batch: Batch, since: Batch | None) -> None:
        names = self.layout.bind(job_id=own.job_id, attempt=own.id, start=own.started)
        control.write_once(control.keys.begin(own.job_id, own.id), attempts.make_begin_record(own, {"s.t": names}))
        began = attempts.register(control, own, histories.open_clients)
        if began is None:
            is_next(control.state.read().batch, batch, "s.t", since)
            return
        names = names.number(began.backfill, began.counter)
        receipts = []
        try:
            if not is_next(began.batch, batch, "s.t", since):
                attempts.give_up(control, own, names, ())
                return
            self.disturb()
            key = names.object_key(0)
            receipts.append(histories.receipt(key, self.world.stage(key, own.load), [batch.number], 0))
            bound = intent(own, tuple(receipts))
            counter = names.first + 1 if names.counts else None
            bound = bound.model_copy(update={"batch": batch, "counter_after": counter})
            attempts.bind(control, own, bound, began, histories.open_clients)
        except LakeError:
            attempts.give_up(control, own, names, receipts)
            raise
        attempts.settle(control, own, histories.open_clients)

    def check(self) -> None:
        control = Control(Memory(self.world, lambda: None, self.rng, 0), ControlKeys("", "p"), "s.t")
        # A batch whose report is written counts as done; the next load of the table is who closes its state.
        state = recover(control, histories.open_clients)
        assert (state.pending, state.batch, state.committed) == (None, Batch("q", 5), 6)
        jobs = sorted(found.load.split("/")[1] for found in self.world.data.values())
        assert jobs == [Batch("q", number).job_id for number in range(6)]
        if self.layout.template.variables == {"backfill", "counter"}:
            ordered = [found.load.split("/")[1] for _, found in sorted(self.world.data.items())]
            assert (ordered, state.counter) == (jobs, 6)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_histories_of_a_stream(first):
    for seed in range(first, first + 500):
        history = Stream(seed)
        history.play()
        try:
            history.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error
