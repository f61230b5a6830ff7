"""The commit code itself through thousands of random histories of crashes, stalls, lost answers and vanished uploads.

A stall is another whole attempt, or somebody's ``abandon``, that runs in the middle of a call of the first, which then
goes on where it was. After each history every job id is run again until it is done; then each row is there exactly
once.
"""

import random
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakewriter.aws import Clients
from lakewriter.commit import at_once
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.errors import LakeError
from lakewriter.naming import ControlKeys
from lakewriter.operate.repair import abandon
from lakewriter.receipt import Cursor, Part, Receipt
from lakewriter.spec.access import Access
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from tests.commit.intents import intent
from tests.commit.memory import Crash, Memory, World
from tests.support.narrow import need

LAYOUTS = [
    Layout("s/t", Template.parse("part-{job_id}-{seq}.parquet")),
    Layout("s/t", Template.parse("{job_id}/{uuid}.parquet")),
    Layout("s/t", Template.parse("v{backfill}/{counter}.parquet")),
]
ROWS = 4
ACCESS = Access(bucket="b", region="us-east-1")


class History:
    """One world, one table, some job ids; ``trouble`` is the chance of a crash or a stall at each call."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = World()
        self.layout = self.rng.choice(LAYOUTS)
        self.incremental = self.rng.random() < 0.5
        self.jobs = [f"J{number}" for number in range(self.rng.randint(1, 3))]
        self.unclear = self.rng.choice([0, 0.05, 0.2])
        self.trouble = self.rng.choice([0.01, 0.03, 0.08])
        self.vanishing = self.rng.random() < 0.3
        self.depth = 0
        self.begun = 0
        self.source = ROWS

    def disturb(self) -> None:
        if self.rng.random() < self.trouble:
            raise Crash
        if self.depth < 3 and self.rng.random() < self.trouble:
            self.attempt(self.rng.choice(self.jobs))
        if self.depth < 3 and self.rng.random() < self.trouble / 2:
            self.abandon(self.rng.choice(self.jobs))
        if self.vanishing and self.world.staged and self.rng.random() < self.trouble:
            del self.world.staged[self.rng.choice(list(self.world.staged))]
            self.vanishing = False

    def attempt(self, job: str) -> None:
        """One process from its beginning to its end, whatever that is."""
        self.depth += 1
        self.begun += 1
        self.source += self.rng.random() < 0.3
        store = Memory(self.world, self.disturb, self.rng, self.unclear)
        control = Control(store, ControlKeys("", "p"), "s.t", pause=lambda _: None)
        own = Attempt("p", job, f"A{self.begun}", self.world.tick(), timedelta(days=30))
        try:
            self.load(control, own)
        except (Crash, LakeError):
            pass
        finally:
            self.depth -= 1

    def abandon(self, job: str) -> None:
        """A person gives the load up, if it is pending, while its processes go on."""
        self.depth += 1
        store = Memory(self.world, self.disturb, self.rng, self.unclear)
        control = Control(store, ControlKeys("", "p"), "s.t", pause=lambda _: None)
        try:
            abandon({"s.t": control}, job, "a test", cast(Clients, SimpleNamespace(access=ACCESS)))
        except (Crash, LakeError):
            pass
        finally:
            self.depth -= 1

    def load(self, control: Control, own: Attempt) -> None:
        names = self.layout.bind(job_id=own.job_id, attempt=own.id, start=own.started)
        control.write_once(control.keys.begin(own.job_id, own.id), attempts.make_begin_record(own, {"s.t": names}))
        began = attempts.register(control, own, open_clients)
        if began is None:
            return
        receipts: list[Receipt] = []
        names = names.number(began.backfill, began.counter)
        try:
            first = int(began.cursor.text) if began.cursor else 0
            rows = list(range(first, self.source)) if self.incremental else list(range(ROWS))
            for seq, part in enumerate((rows[:1], rows[1:])):
                self.disturb()
                key = names.object_key(seq)
                receipts.append(receipt(key, self.world.stage(key, own.load), part, seq))
            after = Cursor("int64", str(first + len(rows))) if self.incremental else None
            bound = intent(own, tuple(receipts), began.cursor, after)
            bound = bound.model_copy(update={"counter_after": names.first + 2 if names.counts else None})
            attempts.bind(control, own, bound, began, open_clients)
        except LakeError:
            attempts.give_up(control, own, names, receipts)
            raise
        attempts.settle(control, own, open_clients)

    def play(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            self.attempt(self.rng.choice(self.jobs))
        self.trouble = self.unclear = 0
        for job in self.jobs * 3:
            self.attempt(job)

    def check(self) -> None:
        control = Control(Memory(self.world, lambda: None, self.rng, 0), ControlKeys("", "p"), "s.t")
        state = control.state.read()
        assert state.pending is None
        intents: dict[str, Any] = {
            job: control.read_intent(job, need(control.read_report(job)).attempt) for job in self.jobs
        }
        files = [receipt.key for each in intents.values() for receipt in each.files.at_hand]
        assert sorted(files) == sorted(self.world.data)
        assert state.committed == len(self.jobs)
        if self.layout.template.variables == {"backfill", "counter"}:
            assert state.counter == len(files)
            assert sorted(files) == [f"s/t/v{0:010d}/{number:020d}.parquet" for number in range(len(files))]
        assert dict(state.running) == {}
        if self.incremental:
            spans = sorted((int(i.cursor_before.text) if i.cursor_before else 0, int(need(i.cursor_after).text))
                           for i in intents.values())  # fmt: skip
            assert [low for low, _ in spans] == [0, *(high for _, high in spans[:-1])]
            assert need(state.cursor).text == str(spans[-1][1])
        for job, each in intents.items():
            assert {self.world.data[r.key].load for r in each.files.at_hand} == {each.load}, job


def open_clients(access: Access) -> Clients:
    """No catalog is asked."""
    return cast(Clients, None)


def receipt(key: str, upload_id: str, rows: list[int], seq: int) -> Receipt:
    return Receipt(
        bucket="b",
        key=key,
        upload_id=upload_id,
        parts=(Part(1, "etag"),),
        checksum_algorithm=None,
        size=100 + len(rows),
        rows=len(rows),
        partition=seq,
        seq=seq,
        first_index=1,
        engine="none",
        row_groups=1,
        requests={},
    )


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Completions one after the other, so that a seed is one history."""

    class Inline:
        def __init__(self, _workers: int, **_: object) -> None: ...

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None: ...

        map = staticmethod(map)

    monkeypatch.setattr(at_once, "ThreadPoolExecutor", Inline)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(0, 4000, 500))
def test_histories(first):
    for seed in range(first, first + 500):
        history = History(seed)
        history.play()
        try:
            history.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}") from error


def test_a_load_that_gives_up_leaves_the_uploads_of_another_alone():
    """Both name their files by the table's counter, so that the keys do not tell whose they are."""
    world, rng = World(), random.Random(0)
    control = Control(Memory(world, lambda: None, rng, 0), ControlKeys("", "p"), "s.t")
    layout = Layout("s/t", Template.parse("v{backfill}/{counter}.parquet"))
    named = {}
    for job in ("J0", "J1"):
        own = Attempt("p", job, f"A{job}", world.tick(), timedelta(days=30))
        names = layout.bind(job_id=job, attempt=own.id, start=own.started)
        assert attempts.register(control, own, open_clients) is not None
        named[job] = own, names, world.stage(names.object_key(0), own.load)
    attempts.give_up(control, *named["J1"][:2], ())
    assert list(world.staged) == [named["J0"][2], named["J1"][2]]
    attempts.give_up(control, *named["J0"][:2], ())
    assert list(world.staged) == []
