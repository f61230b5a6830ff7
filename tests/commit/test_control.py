"""Control objects: written once, told apart, and found again, whatever tables and loads are called."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.history import History
from lakewriter.commit.store import Unclear
from lakewriter.errors import KeyExistsError
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Part, Receipt
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from tests.commit.intents import intent
from tests.commit.memory import Memory, World
from tests.support.narrow import need

NOON = datetime(2024, 1, 15, 12, tzinfo=UTC)
ODD = ("begin", "outcome", "t", "t.report", "t.failed", "t.begin", "tables", "failed", "sync", "A1", "A1.begin")
"""Ids of tables that other control objects have in their keys, or that have each other's."""


def control(world: World, table_id: str = "t") -> Control:
    store = Memory(world, lambda: None, random.Random(0), 0)
    return Control(store, ControlKeys("", "p"), table_id, pause=lambda _: None)


def receipt(world: World, key: str, load: str) -> Receipt:
    return Receipt(
        bucket="b", key=key, upload_id=world.stage(key, load), parts=(Part(1, "etag"),), checksum_algorithm=None,
        size=1, rows=1, partition=0, seq=0, first_index=1, engine="none", row_groups=1, requests={},
    )  # fmt: skip


def test_no_two_keys_are_equal():
    keys = ControlKeys("data", "p")
    loads = [(job, attempt) for job in ("A1", "tables", "t.report.json") for attempt in ("A1", "A2")]
    made = [keys.continuous, *(keys.run(name) for name in ("A1", "t")), *map(keys.sync_number, (0, 1))]
    made += [keys.own_sync_number(job) for job in {job for job, _ in loads}]
    made += [key for load in loads for key in (keys.begin(*load), keys.outcome(*load))]
    for table in ODD:
        made += [keys.state(table), *(keys.report(job, table) for job in {job for job, _ in loads})]
        for load in loads:
            made += [keys.intent(*load, table), keys.failure(*load, table), keys.table_begin(*load, table)]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("table", ODD)
def test_objects_of_a_load_are_told_apart_by_their_keys(table):
    """Each name that the keys have, read back; what no reader of the past asks for is of the kind ``other``."""
    keys, own = ControlKeys("data", "p"), ("a", "A1", table)
    told = {
        keys.report("a", table): ("report", "", table), keys.intent(*own): ("intent", "A1", table),
        keys.failure(*own): ("failure", "A1", table), keys.table_begin(*own): ("begin", "A1", table),
        keys.begin("a", "A1"): ("begin", "A1", ""), keys.outcome("a", "A1"): ("outcome", "A1", ""),
        keys.record("a", "A1"): ("record", "A1", ""), keys.page("a"): ("page", "", ""),
    }  # fmt: skip
    others = [
        keys.own_sync_number("a"), keys.decision("a", "A1"), keys.completion("a", "A1"), keys.deleted_keys(*own),
        f"{keys.receipts(*own)}0.jsonl.gz",
    ]  # fmt: skip
    world = World()
    world.objects |= dict.fromkeys((*told, *others), (b"", "e"))
    history = History(Memory(world, lambda: None, random.Random(0), 0), keys)
    (load,) = history.list_loads()
    found = {item.entry.key: (item.kind, item.attempt, item.table_id) for item in load.items}
    assert found == told | dict.fromkeys(others, ("other", "", ""))
    assert (load.job_id, list(load.list_tables())) == ("a", [table])


@pytest.mark.parametrize("table", ODD)
def test_a_load_of_a_table_called_like_a_control_object(table):
    world = World()
    layout = Layout("s/t", Template.parse("part-{job_id}-{seq}.parquet"))
    for name in ("A1", "A2"):
        own = Attempt("p", "a", name, NOON, timedelta(days=30))
        process = control(world, table)
        names = layout.bind(job_id=own.job_id, attempt=own.id, start=own.started)
        process.write_once(process.keys.begin("a", name), attempts.make_begin_record(own, {table: names}))
        began = attempts.register(process, own, Clients)
        assert began is not None
        assert world.staged == {}
        staged = receipt(world, names.object_key(0), own.load)
        bound = intent(own, (staged,), table_id=table)
        if name == "A1":
            # It dies with its intent written and not bound.
            process.write_once(process.keys.intent("a", name, table), bound.model_dump_json(indent=1))
            continue
        attempts.bind(process, own, bound, began, Clients)
        attempts.settle(process, own, Clients)
        process.write_once(process.keys.outcome("a", name), {"status": "done"})
    found = control(world, table)
    assert need(found.read_report("a")).attempt == "A2"
    assert found.read_intent("a", "A2") == bound
    assert list(world.data) == [staged.key]
    assert found.state.read().pending is None


WRITTEN = [
    # What is there already, what is written, whether anything that is there may stay; what is there then, None for an
    # error.
    (None, b"mine", False, b"mine"),
    (b"mine", b"mine", False, b"mine"),
    (b"another's", b"mine", False, None),
    (b"another's", b"mine", True, b"another's"),
]


@pytest.mark.parametrize(("there", "written", "keep", "left"), WRITTEN)
def test_what_is_written_once(there, written, keep, left):
    world = World()
    if there is not None:
        world.objects["k"] = (there, "etag")
    if left is None:
        with pytest.raises(KeyExistsError, match="control object k is there already"):
            control(world).write_once("k", written.decode(), keep=keep)
        left = there
    else:
        control(world).write_once("k", written.decode(), keep=keep)
    assert world.objects["k"][0] == left


def test_another_intent_under_the_key_binds_nothing():
    world = World()
    own = Attempt("p", "a", "A1", NOON, timedelta(days=30))
    process = control(world)
    began = attempts.register(process, own, Clients)
    assert began is not None
    process.write_once(process.keys.intent("a", "A1", "t"), "{}")
    with pytest.raises(KeyExistsError):
        attempts.bind(process, own, intent(own, table_id="t"), began, Clients)
    assert process.state.read().pending is None


@pytest.mark.parametrize("applied", [True, False])
def test_an_answer_that_is_lost(applied):
    """Whether the object was written is found out by writing it again."""
    world, lost = World(), [True]

    class Losing(Memory):
        def create(self, key: str, body: bytes) -> str | None:
            if not lost:
                return super().create(key, body)
            lost.clear()
            if applied:
                super().create(key, body)
            raise Unclear("no answer")

    store = Losing(world, lambda: None, random.Random(0), 0)
    Control(store, ControlKeys("", "p"), "t", pause=lambda _: None).write_once("k", "mine")
    assert world.objects["k"][0] == b"mine"
