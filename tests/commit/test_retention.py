"""What is cleared away of old loads: nothing that any state of the pipeline names."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.commit.batches import RECENT_BATCHES, clear_batches
from lakewriter.commit.control import Control
from lakewriter.commit.named_loads import find_named_loads
from lakewriter.commit.retention import sweep
from lakewriter.errors import LakeError, StateLostError
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Batch, DeletedKeys
from lakewriter.records.state import DroppedPartition, Generation, Pending, Retiring, Running, TableState
from lakewriter.records.sync_records import Live, SourceState, SyncState
from tests.commit.edits import Edit
from tests.commit.memory import Memory, World

KEEP, LATER = timedelta(days=30), timedelta(days=40)

NEVER = datetime.max.replace(tzinfo=UTC)


def control_of(world: World, table_id: str, store: type[Memory] = Memory) -> Control:
    return Control(store(world, lambda: None, random.Random(0), 0), ControlKeys("", "p"), table_id)


def left(world: World) -> list[str]:
    """The loads of which something is kept."""
    return sorted({key.split("/")[3] for key in world.objects if key.startswith("_lakewriter/p/loads/")})


def old_loads(world: World, *jobs: str, table_id: str = "s.t") -> Control:
    """A table with an intent of each load."""
    control = control_of(world, table_id)
    control.state.move(Edit(committed=1))
    for job in jobs:
        control.write_once(control.keys.intent(job, "A", table_id), {"job": job})
    return control


def named(world: World, table_id: str, state: TableState) -> None:
    """A table's state, whoever's run it is."""
    control_of(world, table_id).state.move(Edit(lambda _: dict(state)))


PENDING = Pending(job_id="b", attempt="A", phase="uploaded", since=World().clock)
STATES = [
    # the state of a table that the run's file has no more
    TableState(pending=PENDING),
    TableState(running={"b": Running(attempt="A", since=World().clock)}),
    TableState(sync=SyncState(live=(Live(job_id="b", generation_id=1),))),
    TableState(sync=SyncState(source=SourceState(kind="global", text="", digest="d", job_id="x", record="b/A"))),
    TableState(deleted_keys=DeletedKeys(job_id="b", key="k", until=NEVER)),
    TableState(generations=(Generation(number=1, job_id="b", attempt="A", started=World().clock),)),
    TableState(retiring=(Retiring(job_id="b", attempt="A", not_before=NEVER),)),
    TableState(
        partitions=(
            DroppedPartition(partition="1", location="s3://b/1", job_id="b", attempt="A", is_due=False, until=NEVER),
        )
    ),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: "-".join(state.model_dump(exclude_defaults=True)))
def test_what_another_tables_state_names_stays(state):
    world = World()
    control = old_loads(world, "a", "b", "c")
    named(world, "s.gone", state)
    assert sweep(control, world.clock + LATER, KEEP) == 2
    assert left(world) == ["b"]


def test_a_load_that_is_closed_while_the_sweep_lists_keeps_its_records():
    """It was bound for as long as loads are kept, and its report came after the listing."""
    world = World()
    old_loads(world, "a", "b")
    named(world, "s.other", TableState(pending=PENDING))

    class Closing(Memory):
        def list_entries(self, prefix, limit=None):
            entries = super().list_entries(prefix, limit)
            if prefix == "_lakewriter/p/loads/":
                named(world, "s.other", TableState(committed=1, last_job="b"))
            return entries

    sweep(control_of(world, "s.t", Closing), world.clock + LATER, KEEP)
    assert left(world) == ["b"]


def test_a_load_that_is_started_again_while_the_sweep_lists_keeps_its_records():
    """Its old objects are listed before it writes a new one, and no state named it until then."""
    world = World()
    old_loads(world, "a", "b")

    class Beginning(Memory):
        def list_entries(self, prefix, limit=None):
            entries = super().list_entries(prefix, limit)
            if prefix == "_lakewriter/p/loads/":
                named(world, "s.other", TableState(running={"b": Running(attempt="A", since=world.clock)}))
            return entries

    sweep(control_of(world, "s.t", Beginning), world.clock + LATER, KEEP)
    assert left(world) == ["b"]


@pytest.mark.parametrize("body", [b"", b"{}", b"oops", b'{"version": 7, "write": 1, "committed": 1}'])
def test_a_state_that_cannot_be_read_stops_the_sweep(body):
    world = World()
    control = old_loads(world, "a", "b")
    world.objects["_lakewriter/p/tables/s.other/state.json"] = (body, "etag")
    with pytest.raises(LakeError, match=r"s\.other/state\.json"):
        sweep(control, world.clock + LATER, KEEP)
    assert left(world) == ["a", "b"]


def test_what_a_lost_state_can_be_concluded_from_stays():
    world = World()
    control = old_loads(world, "a", "b")
    old_loads(world, "b", "c", table_id="s.lost")
    del world.objects["_lakewriter/p/tables/s.lost/state.json"]
    assert sweep(control, world.clock + LATER, KEEP) == 1
    assert left(world) == ["b", "c"]


def test_a_record_of_no_table_keeps_nothing():
    world = World()
    control = old_loads(world, "a")
    for name in ("A/begin.json", "A/outcome.json", "A/later.json", "A/messages.jsonl", "sync.json"):
        control.write_once(f"{control.keys.load('a')}/{name}", {})
    assert sweep(control, world.clock + LATER, KEEP) == 6
    assert left(world) == []


def test_a_batch_that_another_table_names_stays():
    """A checkpoint that was copied has the same query: its batches have the same job ids."""
    world = World()
    control = old_loads(world, *(Batch("q", number).job_id for number in range(3)))
    pending = PENDING.model_copy(update={"job_id": Batch("q", 1).job_id})
    named(world, "s.other", TableState(pending=pending))
    clear_batches(control, Batch("q", 3 + RECENT_BATCHES))
    assert left(world) == [Batch("q", 1).job_id]
    world.objects["_lakewriter/p/tables/s.other/state.json"] = (b"", "etag")
    with pytest.raises(StateLostError):
        clear_batches(control, Batch("q", 3 + RECENT_BATCHES))
    assert left(world) == [Batch("q", 1).job_id]


def test_claimed_numbers_up_to_the_highest_committed_go():
    world = World()
    control = control_of(world, "s.t")
    control.state.move(Edit(committed=1, sync=SyncState(sync_id=2)))
    for number in (1, 2, 3):
        control.write_once(control.keys.sync_number(number), {"version": 1, "job_id": f"job{number}"})
    assert sweep(control, world.clock, KEEP) == 0
    assert sweep(control, world.clock + LATER, KEEP) == 2
    assert [key for key in world.objects if "/syncs/" in key] == ["_lakewriter/p/syncs/0000000003.json"]


FOLDS = [
    # the levels of the objects with deleted keys, the newest first; rows of the next merge; what it folds, its level
    ([], 1, (0, 0)),
    ([0, 0], 3, (0, 0)),
    ([0, 0, 0], 1, (3, 1)),
    ([0, 0, 0, 1, 1], 1, (3, 1)),
    ([0, 0, 0, 1, 1, 1, 2], 1, (6, 2)),
    ([9], 200, (0, 3)),
    ([0, 0, 1, 3, 9], 200, (3, 3)),
    ([3, 3, 3, 9], 200, (3, 4)),
    ([3, 3, 9], 10**7, (3, 11)),
]


@pytest.mark.parametrize(("levels", "rows", "expected"), FOLDS)
def test_objects_with_deleted_keys_are_folded(levels: list[int], rows: int, expected: tuple[int, int]) -> None:
    objects = [DeletedKeys(job_id="b", key=f"k{number}", until=NEVER, level=n) for number, n in enumerate(levels)]
    assert DeletedKeys.plan_fold(objects, rows) == expected


def test_all_objects_with_deleted_keys_are_kept() -> None:
    keys = [DeletedKeys(job_id=job, key=job, until=NEVER) for job in "abc"]
    assert find_named_loads({"t": TableState(deleted_keys=DeletedKeys.join(keys))}) == {"a", "b", "c"}
