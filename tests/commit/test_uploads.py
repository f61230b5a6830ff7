"""Keys at which another's object lies when an upload is completed: whether a retry helps, and what to do."""

import itertools
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.store import Completion, StoredObject
from lakewriter.commit.uploads import complete_all, withdraw
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Part, Receipt
from lakewriter.spec.access import KeyNames
from tests.commit.intents import intent
from tests.commit.memory import Memory, World

OWN = Attempt("p", "a", "A1", datetime(2024, 1, 15, tzinfo=UTC), timedelta(days=30))
KEY = "data/1.parquet"

TAKEN = [
    # whose object lies there (its load), whether the table counts its files; the code, what the message and remedy say
    ("p/a/A1", False, None, "", ""),
    ("p/a/A0", False, "KEY_EXISTS", "exists already, written by load 'p/a/A0'", "another job id"),
    (
        "",
        False,
        "KEY_EXISTS",
        "exists already, written by another writer",
        "Choose another job id, or move the object away.",
    ),
    ("p/b/B1", False, "CONCURRENT_LOAD", "written by load 'p/b/B1' of this pipeline", "Run the same job id again"),
    ("q/b/B1", False, "CONCURRENT_LOAD", "written by load 'q/b/B1' of another pipeline", "numbered after that load's"),
    ("q/b/B1", True, "KEY_EXISTS", "exists already, written by load 'q/b/B1'", "Give each pipeline a path of its own"),
]


FILE_NAMES = [
    # the key of the user's file that names files, the remedy
    ("file_name_pattern", "Choose a file_name_pattern with a unique token, another job id, or move the object away."),
    (None, "Choose another job id, or move the object away."),
]


def staged(world: World) -> Receipt:
    return Receipt(
        bucket="b", key=KEY, upload_id=world.stage(KEY, OWN.load), parts=(Part(1, "e"),), checksum_algorithm=None,
        size=3, rows=1, row_groups=1, partition=0, seq=0, first_index=0, engine="arro3", requests={},
    )  # fmt: skip


@pytest.mark.parametrize(("load", "counts", "code", "message", "remedy"), TAKEN)
def test_key_that_is_taken(load, counts, code, message, remedy):
    world = World()
    store = Memory(world, lambda: None, random.Random(0), 0)
    receipt = staged(world)
    world.data[KEY] = StoredObject(3, load, "etag")
    failure = complete_all(store, intent(OWN, (receipt,), counter_after=1 if counts else None), lambda _: None)
    assert (failure and failure.code) == code
    if failure is not None:
        assert message in failure.message
        assert remedy in failure.remedy


@pytest.mark.parametrize(("key", "remedy"), FILE_NAMES)
def test_remedy_names_the_key_of_the_dialect_at_hand(key, remedy):
    """``airbyte-s3`` and Supaflow's Parquet name files, ``estuary-s3-parquet`` and ``lakewriter-s3`` do not."""
    world = World()
    store = Memory(world, lambda: None, random.Random(0), 0)
    receipt = staged(world)
    world.data[KEY] = StoredObject(3, "", "etag")
    load = intent(OWN, (receipt,))
    control = Control(store, ControlKeys("", "p"), load.table_id, key_names=KeyNames(file_name=key))
    control.write_once(control.keys.intent(OWN.job_id, OWN.id, load.table_id), load.model_dump_json())
    failure = complete_all(store, control.read_intent(OWN.job_id, OWN.id), lambda _: None)
    assert failure is not None
    assert failure.remedy == remedy


CLAIMED = [
    # whose object of 3 bytes lies at the key when the store says that it has completed the upload; the code
    ("p/a/A1", None),
    ("", "KEY_EXISTS"),
    ("p/b/B1", "CONCURRENT_LOAD"),
    (None, "STAGED_LOST"),
]


class Claiming(Memory):
    """versitygw 1.8.0 answers 200 to the completion of an upload that is gone where any object has the key."""

    def complete(self, receipt: Receipt) -> Completion:
        """Nothing is completed."""
        return Completion.CLAIMED


@pytest.mark.parametrize(("load", "code"), CLAIMED)
def test_completion_that_a_store_claims(load: str | None, code: str | None):
    world = World()
    if load is not None:
        world.data[KEY] = StoredObject(3, load, "etag")
    store = Claiming(world, lambda: None, random.Random(0), 0)
    failure = complete_all(store, intent(OWN, (staged(world),)), lambda _: None)
    assert (failure and failure.code) == code


def meanwhile(world: World, call: int, act: Callable[[], object]) -> Memory:
    """A store before whose call of this number, from 0, another process acts."""
    calls = itertools.count()

    def trouble() -> None:
        if next(calls) == call:
            act()

    return Memory(world, trouble, random.Random(0), 0)


@pytest.mark.parametrize("call", range(4))
def test_withdrawing_what_another_recoverer_completes(call):
    world = World()
    receipt = staged(world)
    other = Memory(world, lambda: None, random.Random(0), 0)
    withdraw(meanwhile(world, call, lambda: other.complete(receipt)), intent(OWN, (receipt,)))
    assert (list(world.data), list(world.staged)) == ([], [])


@pytest.mark.parametrize("call", range(4))
def test_withdrawing_what_another_has_withdrawn_and_loaded_again(call):
    """Between the look at an object and its deletion the key may become a later attempt's."""
    world = World()
    receipt = staged(world)
    world.data[KEY] = StoredObject(3, OWN.load, "etag")
    later = StoredObject(3, "p/a/A2", "etag2")
    withdraw(meanwhile(world, call, lambda: world.data.update({KEY: later})), intent(OWN, (receipt,)))
    assert world.data == ({KEY: later} if call < 3 else {})
