"""Control objects of a later release: their fields are kept through every step, and what they need is respected."""

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.recover import read_failure, recover
from lakewriter.commit.resets import begin_backfill
from lakewriter.commit.retention import sweep
from lakewriter.control_object import ControlObject
from lakewriter.errors import LakeError, PendingUnrecoverableError
from lakewriter.naming import ControlKeys
from lakewriter.operate.repair import abandon, reset_cursor
from lakewriter.operate.verification import verify
from lakewriter.receipt import Batch, Cursor
from lakewriter.records.sync_records import Live, SourceState, SyncIntent, SyncState
from lakewriter.run.continuous_status import StatusObject
from lakewriter.spec.access import Access
from tests.commit.intents import intent
from tests.commit.later import LATER, grow_body, kept
from tests.commit.memory import Memory, World
from tests.commit.test_histories import open_clients, receipt

CLIENTS = Clients(Access(bucket="b", region="us-east-1"))
AT = datetime(2024, 1, 15, tzinfo=UTC)
KEYS = ControlKeys("", "p")
STATE, BEGIN = KEYS.state("s.t"), KEYS.begin("b", "b1")
INTENT, REPORT, FAILED = KEYS.intent("b", "b1", "s.t"), KEYS.report("b", "s.t"), KEYS.failure("b", "b1", "s.t")


class Place:
    """A table with one load committed and another one pending; every object may be changed before a step."""

    def __init__(self) -> None:
        self.world = World()
        self.control = self.fresh()
        self.before: dict[str, tuple[bytes, str]] = {}
        self._load("a", source="one")
        reset_cursor(self.control, Cursor("int64", "7"), "late rows")
        self._load("b", source="two", settles=False)

    def fresh(self) -> Control:
        """What another process sees."""
        return Control(Memory(self.world, lambda: None, random.Random(0), 0), KEYS, "s.t", pause=lambda _: None)

    def attempt(self, job_id: str, number: int = 1) -> Attempt:
        return Attempt("p", job_id, f"{job_id}{number}", AT + timedelta(seconds=number), timedelta(days=30))

    def _load(self, job_id: str, *, source: str, settles: bool = True) -> None:
        own = self.attempt(job_id)
        record = {"location": "t", "pattern": rf"t/{job_id}-.*", "shared": False}
        begun = {"version": 1, "attempt": own.id, "started": own.started.isoformat(), "tables": {"s.t": record}}
        self.control.write_once(KEYS.begin(job_id, own.id), begun)
        began = attempts.register(self.control, own, open_clients)
        assert began is not None
        key = f"t/{job_id}-0"
        staged = receipt(key, self.world.stage(key, own.load), [1], 0)
        said = SourceState(kind="stream", text="{}", digest=source, job_id=job_id)
        sync = SyncIntent(sync_id=began.sync.sync_id + 1, generation_id=1, source=said)
        more: dict[str, Any] = {"sync": sync, "batch": Batch("q", began.committed), "counter_after": began.counter + 1}
        bound = intent(own, (staged,), began.cursor, Cursor("int64", "9"), **more)
        attempts.bind(self.control, own, bound, began, open_clients)
        if settles:
            attempts.settle(self.control, own, open_clients)

    @property
    def state(self) -> dict[str, Any]:
        return dict(json.loads(self.world.objects[STATE][0]))

    def change(self, key: str, body: bytes) -> None:
        self.world.objects[key] = (body, f"changed {key}")


def grown() -> Place:
    """Everything as a later release would have written it."""
    place = Place()
    for key, (body, _) in list(place.world.objects.items()):
        place.change(key, grow_body(body))
    place.control = place.fresh()
    return place


def recovered(place):
    recover(place.control, open_clients)


def loaded(place):
    own = place.attempt("c")
    assert attempts.register(place.control, own, open_clients) is not None


def registered_again(place):
    place.world.staged.clear()
    abandon({"s.t": place.control}, "b", "a test", CLIENTS)
    place.control = place.fresh()
    assert attempts.register(place.control, place.attempt("b", 2), open_clients) is not None


def abandoned(place):
    abandon({"s.t": place.control}, "b", "a test", CLIENTS)


def reset(place):
    recovered(place)
    reset_cursor(place.control, None, "a test")


def backfilled(place):
    recovered(place)
    begin_backfill(place.control, "a test")


def swept(place):
    recovered(place)
    sweep(place.control, AT + timedelta(days=9), timedelta(days=30))


CLOSED = [".", ".cursor", ".batch", ".resets.0", ".sync", ".sync.live.0", ".sync.source"]
STEPS = [
    # A step of ours on the table, the places in the state at which fields of a later release are then. What comes with
    # the intent comes with its fields; what is taken away takes them along.
    (recovered, CLOSED),
    (loaded, CLOSED),
    (registered_again, [".", ".cursor", ".batch", ".resets.0", ".sync", ".sync.live.0", ".sync.source"]),
    (abandoned, CLOSED),
    (reset, [".", ".batch", ".resets.0", ".sync", ".sync.live.0"]),
    (backfilled, [".", ".resets.0", ".sync", ".sync.live.0"]),
    (swept, CLOSED),
]


@pytest.mark.parametrize(("step", "places"), STEPS)
def test_fields_of_a_later_release_are_kept(step, places):
    place = grown()
    step(place)
    assert sorted(kept(place.state)) == sorted(places)


def test_the_phase_of_what_is_pending_changes_alone():
    """A process that dies between two steps leaves the fields of what is pending."""
    place = grown()
    place.world.staged.clear()
    with pytest.raises(KeyboardInterrupt):
        dying(place, "aborting")
    state = place.state
    assert state["pending"]["phase"] == "aborting"
    assert {".pending", ".running.b"} <= set(kept(state))


def dying(place, phase):
    """A recovery that ends when the state says so."""
    replace = place.control.store.replace

    def replaced(key, body, etag):
        answer = replace(key, body, etag)
        pending = json.loads(body)["pending"]
        if pending and pending["phase"] == phase:
            raise KeyboardInterrupt
        return answer

    place.control.store.replace = replaced
    recover(place.control, open_clients)


def test_a_running_entry_keeps_its_fields():
    place = Place()
    abandon({"s.t": place.control}, "b", "a test", CLIENTS)
    attempts.register(place.control, place.attempt("c"), open_clients)
    place.change(STATE, grow_body(place.world.objects[STATE][0]))
    place.control = place.fresh()
    attempts.register(place.control, place.attempt("d"), open_clients)
    attempts.register(place.control, place.attempt("c", 2), open_clients)
    running = place.state["running"]
    assert (running["c"]["attempt"], running["c"]["later"], "later" in running["d"]) == ("c2", LATER, False)


def needs(body):
    return json.dumps(json.loads(body) | {"needs": ["two-writers"]}).encode()


def newer(body):
    return json.dumps(json.loads(body) | {"version": 2}).encode()


def receipt_needs(body):
    content = json.loads(body)
    content["receipts"][0]["needs"] = ["two-writers"]
    return json.dumps(content).encode()


NEEDS = "two-writers', which this release does not know"
DAMAGES = [
    (needs, NEEDS),
    (newer, "it is of version 2, expected 1"),
    (lambda body: json.dumps(json.loads(body) | {"needs": "x"}).encode(), "expected a list of names"),
    (lambda body: body[:-9], KEYS.root),
    (lambda _: b"[]", KEYS.root),
    (lambda _: b"[" * 100_000, KEYS.root),
]


def register_b(place):
    attempts.register(place.control, place.attempt("b", 2), open_clients)


def begin_b(place):
    """Load b, registered and not bound, is run again."""
    state = place.state | {"pending": None}
    place.change(STATE, json.dumps(state).encode())
    place.control = place.fresh()
    place.before = dict(place.world.objects)
    register_b(place)


def finish_b(place):
    """Load b is run again when its report is there."""
    begin_b(place)


def why_it_failed(place):
    read_failure(place.control, "b", "b1")


REFUSED = [
    # An object, and what is not done where ours must not act on it.
    *((STATE, step) for step in (recovered, loaded, abandoned, register_b)),
    *((STATE, lambda place: reset_cursor(place.control, None, "a test")),),
    *((STATE, lambda place: begin_backfill(place.control, "a test")),),
    (STATE, lambda place: sweep(place.control, AT, timedelta(0))),
    *((INTENT, step) for step in (recovered, loaded, abandoned, register_b)),
    (BEGIN, begin_b),
    (REPORT, finish_b),
    (FAILED, why_it_failed),
    (KEYS.continuous, lambda place: StatusObject(place.control.store, KEYS.continuous).require_understood()),
]


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
@pytest.mark.parametrize(("key", "step"), REFUSED)
def test_what_is_not_understood_is_refused_and_nothing_changes(key, step, damage, why):
    place = Place()
    other = {
        REPORT: intent(place.attempt("b")).make_report().model_dump_json().encode(),
        FAILED: b'{"code": "TIMEOUT"}',
    }
    body = place.world.objects[key][0] if key in place.world.objects else other.get(key, b'{"version": 1}')
    place.change(key, damage(body))
    place.control = place.fresh()
    place.before = dict(place.world.objects)
    data, staged = dict(place.world.data), dict(place.world.staged)
    # Bytes that are no object at all are an error with a code as well.
    kind = LakeError if why == KEYS.root else PendingUnrecoverableError
    with pytest.raises(kind, match=why) as raised:
        step(place)
    assert key in str(raised.value)
    assert (place.world.objects, place.world.data, place.world.staged) == (place.before, data, staged)


@pytest.mark.parametrize(("damage", "why"), DAMAGES)
def test_what_is_not_understood_is_told_by_verify(damage, why):
    place = Place()
    place.change(REPORT, damage(intent(place.attempt("b")).make_report().model_dump_json().encode()))
    found = verify({"s.t": place.fresh()}, "b", CLIENTS).differences
    told = [each for each in found if each.key == REPORT]
    assert [(each.kind, each.code, why in each.message) for each in told] == [
        ("record_damaged", "PENDING_UNRECOVERABLE", True)
    ]


@pytest.mark.parametrize("step", [recovered, loaded, abandoned])
def test_a_receipt_that_needs_something_is_refused(step):
    place = Place()
    place.change(INTENT, receipt_needs(place.world.objects[INTENT][0]))
    place.control = place.fresh()
    before = dict(place.world.objects)
    with pytest.raises(PendingUnrecoverableError, match=NEEDS):
        step(place)
    assert place.world.objects == before


def test_a_code_of_a_later_release():
    place = Place()
    place.change(FAILED, b'{"code": "DISK_ON_FIRE", "message": "Smoke.", "remedy": "Leave."}')
    error = read_failure(place.control, "b", "b1")
    assert str(error) == "PENDING_UNRECOVERABLE: DISK_ON_FIRE: Smoke. Leave."


def test_ours_have_neither_needs_nor_unknown_fields():
    place = Place()
    recovered(place)
    texts = [body.decode() for body, _ in place.world.objects.values()]
    assert not [text for text in texts if json.loads(text).get("needs")]


def test_what_states_are_made_of_keeps_unknown_fields():
    """A part that refused them would make the whole object one that cannot be read."""
    parts = [SyncState, Live, SourceState, SyncIntent, Cursor, Batch]
    assert all(issubclass(part, ControlObject) and part.model_config["extra"] == "allow" for part in parts)
