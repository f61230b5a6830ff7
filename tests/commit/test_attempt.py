"""What an attempt clears up."""

import random
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pytest

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import reuse_clients
from lakewriter.commit.store import Store
from lakewriter.errors import ConcurrentLoadError
from lakewriter.naming import ControlKeys
from lakewriter.receipt import Batch, Cursor, Part, Receipt
from lakewriter.records.changes import KINDS
from lakewriter.records.facets import UndoneLoad
from lakewriter.records.fold.closing import Close
from lakewriter.records.fold.steps import fold
from lakewriter.records.state import ADOPTED, Pending, Running, TableState
from lakewriter.records.sync_records import SourceState, SyncState
from lakewriter.run.results import read_result
from lakewriter.spec.access import Access
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout, ObjectNames
from tests.commit.edits import Edit
from tests.commit.intents import intent
from tests.commit.memory import Memory, World
from tests.support.sdk import sdk

NOON = datetime(2024, 1, 15, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def test_an_earlier_attempts_uploads_go_whatever_the_clocks_say(aws, bucket):
    """versitygw gives uploads the time, and keeps its Date header for a second: they seem to begin after they did."""
    clients = Clients(Access(bucket=bucket, region="us-east-1"))
    control = Control(S3Store(clients), ControlKeys("", "p"), "s.t")
    layout = Layout("s/t", Template.parse("part-{job_id}-{seq}.parquet"))
    for number in (1, 2):
        own = Attempt("p", "a", f"A{number}", NOON, timedelta(days=30))
        names = layout.bind(job_id=own.job_id, attempt=own.id, start=own.started)
        control.write_once(control.keys.begin(own.job_id, own.id), attempts.make_begin_record(own, {"s.t": names}))
        aws.clock = lambda: NOON
        assert attempts.register(control, own, reuse_clients(clients)) is not None
        if number == 1:
            aws.clock = lambda: NOON + SECOND
            staged = sdk("s3").create_multipart_upload(Bucket=bucket, Key="s/t/part-a-00000.parquet")
            assert aws.uploads(bucket) == [("s/t/part-a-00000.parquet", staged["UploadId"])]
    assert aws.uploads(bucket) == []


def test_uploads_of_an_attempt_that_registers_meanwhile_go():
    """It stages between the other's look at the state and its registration."""
    place, layout = InMemory(), Layout("s/t", Template.parse("{job_id}/{uuid}.parquet"))
    first, second = (Attempt("p", "a", name, NOON, timedelta(days=30)) for name in ("first", "second"))

    def register(own, note_begin):
        control = Control(place.store(), ControlKeys("", "p"), "s.t", pause=lambda _: None)
        names = layout.bind(job_id="a", attempt=own.id, start=own.started)
        control.write_once(control.keys.begin("a", own.id), attempts.make_begin_record(own, {"s.t": names}))
        assert attempts.register(control, own, place.open_clients, note_begin) is not None
        return names

    def overtake():
        if not place.staged and not done:
            done.append(True)
            place.stage(register(first, lambda: None).object_key(0), first.load)

    done: list[bool] = []
    register(second, overtake)
    assert (done, place.staged) == ([True], [])


CLEARS_UP = {
    "an earlier attempt of its own": lambda control, own, names: attempts.register(control, own, Clients),
    "repeated tasks": lambda control, own, names: attempts.abort_strays(control, names, (), own),
    "all it staged": lambda control, own, names: attempts.give_up(control, own, names, ()),
    "elsewhere": lambda control, own, names: attempts.abort_in_catalog_location(control, names, own),
}
# (names of files, whether the other pipeline has a load of the same job id, whose uploads of the two stay)
NAMESAKES = [
    ("part-{job_id}-{seq}", True, {"p", "q"}),
    ("part-{job_id}-{seq}", False, set()),
    ("part-{uuid}", True, {"q"}),
]


@pytest.mark.parametrize(("file", "has_namesake", "expected"), NAMESAKES)
@pytest.mark.parametrize("what", CLEARS_UP)
def test_two_pipelines_that_load_one_table_under_one_job_id(what, file, has_namesake, expected):
    """A key that has no attempt's id in it may be either's; S3 tells nothing else of an upload."""
    world, layout = World(), Layout("s/t", Template.parse(f"{file}.parquet"))

    def begun(pipeline: str, attempt: str) -> tuple[Control, Attempt, ObjectNames]:
        store = Memory(world, lambda: None, random.Random(0), 0)
        control = Control(store, ControlKeys("data", pipeline), "s.t", pause=lambda _: None)
        own = Attempt(pipeline, "a", attempt, NOON, timedelta(days=30))
        names = layout.bind(job_id="a", attempt=own.id, start=NOON)
        control.write_once(control.keys.begin("a", own.id), attempts.make_begin_record(own, {"s.t": names}))
        return control, own, names

    if has_namesake:
        _, _, theirs = begun("q", "A0")
        world.stage(theirs.object_key(0), "q")
    control, own, names = begun("p", "A1")
    attempts.register(control, own, Clients)
    world.stage(names.object_key(0), "p")
    if what in ("an earlier attempt of its own", "elsewhere"):
        control, own, names = begun("p", "A2")
    if what == "elsewhere":
        control.state.move(Edit(running={"a": Running(attempt="A2", since=NOON)}))
    CLEARS_UP[what](control, own, names)
    assert {load for _, load in world.staged.values()} == expected


class Place(Protocol):
    """Where rivals meet."""

    def store(self) -> Store:
        """One process's view of it."""

    def stage(self, key: str, load: str) -> Receipt:
        """A file whose upload is not completed."""

    def open_clients(self, access: Access) -> Clients:
        """See ``Reach``."""

    @property
    def staged(self) -> list[str]:
        """Keys of what is staged still."""

    @property
    def data(self) -> list[str]:
        """Keys of the objects that are no control objects."""


class InMemory:
    """A place without a server."""

    open_clients = Clients

    def __init__(self) -> None:
        self.world = World()

    def store(self) -> Memory:
        return Memory(self.world, lambda: None, random.Random(0), 0)

    def stage(self, key: str, load: str) -> Receipt:
        return a_receipt(key, self.world.stage(key, load), "etag")

    @property
    def staged(self) -> list[str]:
        return [key for key, _ in self.world.staged.values()]

    @property
    def data(self) -> list[str]:
        return list(self.world.data)


def a_receipt(key: str, upload: str, etag: str) -> Receipt:
    """Of a file of one byte in one part."""
    return Receipt(
        bucket="b", key=key, upload_id=upload, parts=(Part(1, etag),), checksum_algorithm=None, size=1,
        rows=1, partition=0, seq=0, first_index=1, engine="none", row_groups=1, requests={},
    )  # fmt: skip


class Rivals:
    """Two attempts at one table of one load; the second has taken over. Each has staged one file."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.control: dict[str, Control] = {}
        self.names: dict[str, ObjectNames] = {}
        self.began: dict[str, TableState] = {}
        self.receipts: dict[str, Receipt] = {}
        self.attempts = {name: Attempt("p", "a", name, NOON, timedelta(days=30)) for name in ("first", "second")}
        layout = Layout("s/t", Template.parse("{job_id}/{uuid}.parquet"))
        for name, own in self.attempts.items():
            control = self.control[name] = Control(place.store(), ControlKeys("", "p"), "s.t", pause=lambda _: None)
            names = self.names[name] = layout.bind(job_id="a", attempt=own.id, start=own.started)
            began = attempts.register(control, own, place.open_clients)
            assert began is not None
            self.began[name] = began
            self.receipts[name] = place.stage(names.object_key(0), own.load)

    def bind(self, name: str) -> None:
        own = self.attempts[name]
        bound = intent(own, (self.receipts[name],))
        attempts.bind(self.control[name], own, bound, self.began[name], self.place.open_clients)

    def settle(self, name: str) -> None:
        attempts.settle(self.control[name], self.attempts[name], self.place.open_clients)

    def give_up(self, name: str) -> None:
        attempts.give_up(self.control[name], self.attempts[name], self.names[name], [self.receipts[name]])

    def status(self, name: str) -> str:
        return read_result(self.control[name], self.attempts[name]).status

    @property
    def staged(self) -> list[str]:
        """Keys of what is staged still."""
        return self.place.staged


@pytest.fixture
def rivals() -> Rivals:
    return Rivals(InMemory())


@pytest.mark.parametrize("ends", ["binds", "fails"])
def test_an_attempt_whose_job_another_has_finished_leaves_nothing_staged(rivals, ends):
    rivals.bind("second")
    rivals.settle("second")
    assert rivals.staged == [rivals.receipts["first"].key]
    if ends == "binds":
        rivals.bind("first")
        rivals.settle("first")
    else:
        rivals.give_up("first")
    assert rivals.staged == []
    assert rivals.place.data == [rivals.receipts["second"].key]
    assert (rivals.status("first"), rivals.status("second")) == ("already_done", "done")


def test_an_overtaken_attempt_leaves_what_the_other_has_staged_alone(rivals):
    with pytest.raises(ConcurrentLoadError):
        rivals.bind("first")
    rivals.give_up("first")
    assert rivals.staged == [rivals.receipts["second"].key]
    rivals.bind("second")
    rivals.settle("second")
    assert rivals.place.data == [rivals.receipts["second"].key]


BEGAN = TableState(committed=1, batch=Batch(ADOPTED, 1), running={"a": Running(attempt="first", since=NOON)})
OTHER = Attempt("p", "compact.s_t.2", "other", NOON, timedelta(days=30))
COMPACTED = dict(fold(BEGAN, Close(intent(OTHER, kind="compact"), NOON, None)))
MEANWHILE: dict[str, tuple[dict[str, Any], set[str]]] = {
    # what another change has set by then, and the kinds of change that may not be bound any more
    "nothing": ({}, set()),
    "a load": ({"committed": 2}, {"refresh", "replace_partitions", "merge", "undo"}),
    "a compaction": (COMPACTED, {"undo"}),
    "a cursor": ({"cursor": Cursor("int64", "5")}, {"refresh", "replace_partitions", "merge", "undo"}),
    "a batch": ({"batch": Batch("q1", 3)}, {"load", "refresh", "replace_partitions", "merge", "undo"}),
    "a state of the source": (
        {"sync": SyncState(source=SourceState(kind="stream", text="{}", digest="d", job_id="x"))},
        {"load", "refresh", "replace_partitions", "merge", "undo"},
    ),
    "another attempt": ({"running": {"a": Running(attempt="second", since=NOON)}}, set(KINDS)),
}


@pytest.mark.parametrize("case", MEANWHILE)
@pytest.mark.parametrize("kind", KINDS)
def test_what_may_change_before_a_change_is_bound(case, kind):
    """A compaction compares the files that it has read when it is committed, and nothing of the state."""
    meanwhile, refused = MEANWHILE[case]
    place = InMemory()
    control = Control(place.store(), ControlKeys("", "p"), "s.t", pause=lambda _: None)
    own = Attempt("p", "a", "first", NOON, timedelta(days=30))
    began = control.state.move(Edit(lambda _: dict(BEGAN)))
    control.state.move(Edit(**meanwhile))
    fields: dict[str, Any] = {"undoes": UndoneLoad(job_id="b", attempt="B", files=0, rows=0, reason="", next="b.r2")}
    bound = intent(own, kind=kind, **fields if kind == "undo" else {})
    with pytest.raises(ConcurrentLoadError) if kind in refused else nullcontext():
        attempts.bind(control, own, bound, began, place.open_clients)


@pytest.mark.parametrize("recovered", [False, True])
def test_an_attempt_that_is_bound_gives_nothing_up(rivals, recovered):
    """It learns of a lost answer, or of its binding, only after it has failed; somebody may have finished it."""
    rivals.bind("second")
    if recovered:
        attempts.register(
            rivals.control["first"], Attempt("p", "b", "third", NOON, timedelta(days=30)), rivals.place.open_clients
        )
    rivals.give_up("second")
    pending = rivals.control["second"].state.read().pending
    same = Pending(job_id="a", attempt="second", phase="intended", since=NOON)
    assert pending == (None if recovered else same)
    assert (rivals.receipts["second"].key in rivals.staged) is not recovered
    assert rivals.place.data == ([rivals.receipts["second"].key] if recovered else [])


def test_a_process_that_outlives_its_report(rivals):
    """As after a machine that was asleep for longer than control objects are kept."""
    control = next(iter(rivals.control.values()))
    found = read_result(control, next(iter(rivals.attempts.values())))
    assert (found.schema_name, found.table, found.status) == ("s", "t", "already_done")
