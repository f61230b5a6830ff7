"""A state that is missing or says nothing, beside what only a table with a state can have."""

import random

import pytest

from lakewriter.commit.control import Control, Shared
from lakewriter.commit.store import Entry, StoredObject
from lakewriter.errors import CODES, PendingUnrecoverableError, StateLostError
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Batch
from lakewriter.records.state import TableState
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from tests.commit.edits import Edit
from tests.commit.memory import Memory, World

STATE = "_lakewriter/p/tables/s.t/state.json"
LOAD = "_lakewriter/p/loads/a"
LAYOUT = Layout("s/t", Template.parse("part-{job_id}-{seq}.parquet"))

TRACES = [
    # an object that is there, whether it shows that table s.t has had a state
    (f"{LOAD}/s.t.report.json", True),
    (f"{LOAD}/A/tables/s.t.json", True),
    (f"{LOAD}/A/s.t.json", False),
    (f"{LOAD}/A/failed/s.t.json", True),
    (f"{LOAD}/s.t2.report.json", False),
    (f"{LOAD}/A/tables/s.t2.json", False),
    (f"{LOAD}/A/begin.json", False),
    (f"{LOAD}/A/begin/s.t.json", False),
    (f"{LOAD}/A/outcome.json", False),
    (f"{LOAD}/A/messages.jsonl", False),
    (f"{LOAD}/sync.json", False),
    ("_lakewriter/p/continuous.json", False),
    ("_lakewriter/other/loads/a/s.t.report.json", False),
]


def control_of(world: World, layout: Layout | None = None, store: Memory | None = None) -> Control:
    return Control(store or Objects(world), ControlKeys("", "p"), "s.t", layout=layout)


class Objects(Memory):
    """A store that lists data objects, too, and may be changed before it does."""

    def __init__(self, world: World) -> None:
        super().__init__(world, lambda: None, random.Random(0), 0)
        self.before_listing = lambda: None

    def list_entries(self, prefix, limit=None):
        self.before_listing()
        keys = sorted(key for key in {**self.world.objects, **self.world.data} if key.startswith(prefix))
        return iter([Entry(key, self.world.clock) for key in keys[:limit]])

    def head(self, key):
        return self.find(key)


@pytest.mark.parametrize(("key", "lost"), TRACES)
def test_traces(key, lost):
    world = World()
    world.objects[key] = (b"{}", "etag")
    control = control_of(world)
    if not lost:
        assert control.state.read() == TableState()
        return
    said = rf"^STATE_LOST: {STATE} is not there, and {key} is of a table that was loaded\..*rebuild LAKE TABLE"
    for look in (control.state.read, control.state.recall, lambda: control.state.move(Edit())):
        with pytest.raises(StateLostError, match=said):
            look()
    assert STATE not in world.objects


OBJECTS = [
    # the load that an object's metadata names, the table, whether it shows that table s.t has had a state
    ("p/a/A", "", True),
    ("p/a/A", "s.t", True),
    ("p/a/A", "s.u", False),
    ("other/a/A", "", False),
    ("", "", False),
    ("p/b/B", "", False),
]


@pytest.mark.parametrize(("load", "table", "lost"), OBJECTS)
def test_data(load, table, lost):
    """Control objects may have been cleared away; of load b those remain that say which tables it had."""
    world = World()
    world.objects["_lakewriter/p/loads/b/B/begin.json"] = (b'{"version": 1, "tables": {"s.u": {}}}', "etag")
    world.data["s/t/part-a-00000.parquet"] = StoredObject(1, load, "etag", table)
    world.data["s/t2/part-a-00000.parquet"] = StoredObject(1, "p/a/A", "etag")
    if not lost:
        assert control_of(world, LAYOUT).state.read() == TableState()
        return
    with pytest.raises(StateLostError, match=r"s/t/part-a-00000\.parquet is of a table that was loaded"):
        control_of(world, LAYOUT).state.read()


def test_a_state_that_another_load_creates_meanwhile():
    """It was not there when it was looked for, and was there before the report was."""
    world = World()
    store = Objects(world)
    control = control_of(world, store=store)

    def commit() -> None:
        other = control_of(world)
        other.state.move(Edit(committed=1))
        other.write_once(other.keys.report("a", "s.t"), {})
        store.before_listing = lambda: None

    store.before_listing = commit
    assert control.state.read().committed == 1


def test_a_state_that_vanishes():
    world = World()
    control = control_of(world)
    control.state.move(Edit(committed=1))
    control.write_once(control.keys.report("a", "s.t"), {})
    del world.objects[STATE]
    with pytest.raises(StateLostError):
        control.state.move(Edit(lambda state: {"committed": state.committed + 1}))
    assert STATE not in world.objects


def test_the_look_is_one_list():
    world = World()
    store = Objects(world)
    control = control_of(world, store=store)
    prefixes: list[str] = []
    store.before_listing = lambda: prefixes.append("")
    control.state.read()
    control.state.move(Edit(committed=1))
    control.state.read()
    assert len(prefixes) == 1


BLANK = [b"", b"{}", b"oops", b"[]", b"null", b'"state"', b'{"version": 1}', b'{"version": 1, "write": 3}', b"\xff\xfe"]


@pytest.mark.parametrize("body", BLANK)
def test_a_state_that_says_nothing(body):
    world = World()
    world.objects[STATE] = (body, "etag")
    control = control_of(world)
    for look in (control.state.read, lambda: control.state.move(Edit())):
        with pytest.raises(StateLostError, match=rf"^STATE_LOST: {STATE} holds no state: .*rebuild LAKE TABLE"):
            look()
    assert world.objects == {STATE: (body, "etag")}


def test_a_state_of_a_later_version():
    """It says something, though not to this release."""
    world = World()
    world.objects[STATE] = (b'{"version": 2, "write": 1, "committed": 1}', "etag")
    with pytest.raises(PendingUnrecoverableError, match="it is of version 2, expected 1"):
        control_of(world).state.read()


@pytest.mark.parametrize("body", [b"", b"oops", b"[1]"])
def test_a_report_that_is_garbage(body):
    world = World()
    control = control_of(world)
    control.state.move(Edit(committed=1))
    world.objects[control.keys.report("a", "s.t")] = (body, "etag")
    with pytest.raises(PendingUnrecoverableError, match="is not a JSON object"):
        control.read_report("a")


def test_the_code():
    assert (CODES["STATE_LOST"].exit_code, CODES["STATE_LOST"].transient) == (1, False)


def test_batches_are_traces():
    world = World()
    world.objects[f"_lakewriter/p/loads/{Batch('q', 7).job_id}/s.t.report.json"] = (b"{}", "etag")
    with pytest.raises(StateLostError):
        control_of(world).state.read()


def test_tables_without_a_state_share_one_look(monkeypatch):
    """At the first load of thousands of tables each would list what the others have written since."""
    world, seconds = World(), [0.0]
    monkeypatch.setattr("lakewriter.commit.history.time.monotonic", lambda: seconds[0])
    store, keys = Objects(world), ControlKeys("", "p")
    prefixes: list[str] = []
    store.before_listing = lambda: prefixes.append("")
    shared = Shared.open(store, keys)
    for name in ("s.t", "s.u", "s.v"):
        assert Control(store, keys, name, shared=shared).state.read() == TableState()
    assert len(prefixes) == 1
    world.objects[f"{LOAD}/s.w.report.json"] = (b"{}", "etag")
    seconds[0] = 61.0
    with pytest.raises(StateLostError, match=r"s\.w\.report\.json is of a table that was loaded"):
        Control(store, keys, "s.w", shared=shared).state.read()
    assert len(prefixes) == 2
