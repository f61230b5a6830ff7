"""Messages are read while others are loaded, and a STATE comes back without the next line."""

import json
import threading
import time
from typing import IO, Any, cast

import msgspec
import pytest

from lakewriter.aws import Clients
from lakewriter.cli.airbyte import writer
from lakewriter.cli.airbyte.writer import Step, Writer
from lakewriter.dialects.airbyte.connector import read_connection
from lakewriter.run.loader import Loader
from tests.cli.platform import USERS, Platform, states, user
from tests.load.syncs import state, stream

pytestmark = pytest.mark.spark
SECONDS = 60


class Pipe:
    """Standard input: lines as they are put, and nothing in between."""

    def __init__(self):
        self._lines, self._changed = list[bytes](), threading.Condition()
        self.read_all = threading.Event()

    def put(self, *messages):
        with self._changed:
            self._lines += [(json.dumps(each) + "\n").encode() for each in messages]
            self._changed.notify_all()

    def end(self):
        with self._changed:
            self._lines.append(b"")
            self._changed.notify_all()

    def __iter__(self):
        return iter(lambda: self.read(1), b"")

    def read(self, _):
        with self._changed:
            if not self._lines:
                self.read_all.set()
            self._changed.wait_for(lambda: self._lines, SECONDS)
            return self._lines.pop(0) if self._lines else b""


class Sync:
    """A sync that runs in a thread of its own."""

    def __init__(self, platform, *streams, step=None, spark=None, **config):
        own = read_connection(*platform.given(*streams, **config))
        folder = platform.folder / "pieces"
        folder.mkdir()
        self.pipe, self.heard, self.error = Pipe(), list[dict[str, Any]](), None
        session = spark or (lambda: platform._spark)
        self.loader = Loader(own, "j", Clients(own.access), session, lambda *_: None)
        hear = lambda message: self.heard.append(json.loads(msgspec.json.encode(message)))  # noqa: E731
        self._writer = Writer(self.loader, session, hear, folder, step=step or Step(), ended="no statuses")
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()
        return self

    def _run(self):
        try:
            self._writer.write(cast(IO[bytes], self.pipe))
        except Exception as error:  # noqa: BLE001 - raised by whoever ends it
            self.error = error

    def wait_for_states(self, count):
        until = time.monotonic() + SECONDS
        while len(states(self.heard)) < count and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.02)
        return states(self.heard)

    def end(self):
        self.pipe.end()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        if self.error:
            raise self.error
        return states(self.heard)


@pytest.fixture
def platform(tmp_path, aws, bucket, spark):
    return Platform(tmp_path, aws, spark)


def test_a_lone_state_does_not_wait_for_the_next_line(platform):
    sync = Sync(platform, USERS, step=Step(seconds=0.1)).start()
    sync.pipe.put(user(1), state("users", 1))
    assert sync.wait_for_states(1) == [(1, 1)]
    assert platform.ids() == [1]
    # What a STATE does not cover is not committed with it, however long it waits.
    sync.pipe.put(user(2), state("users", 2), user(3))
    assert sync.wait_for_states(2) == [(1, 1), (2, 1)]
    assert platform.ids() == [1, 2]
    assert sync.end() == [(1, 1), (2, 1)]
    assert platform.ids() == [1, 2, 3]


def test_a_state_of_no_records_comes_back_at_once(platform):
    sync = Sync(platform, USERS).start()
    sync.pipe.put(state("users", 1))
    assert sync.wait_for_states(1) == [(1, 0)]
    sync.end()


def test_input_is_read_while_spark_starts_and_while_a_load_is_committed(platform, monkeypatch):
    reads = list[bool]()

    def start_spark():
        if not reads:
            reads.append(sync.pipe.read_all.wait(SECONDS))
        return platform._spark

    sync = Sync(platform, USERS, step=Step(1), spark=start_spark)
    run = sync.loader.run

    def commit(*arguments, **options):
        if len(reads) < 2:
            sync.pipe.read_all.clear()
            sync.pipe.put(user(2), user(3))
            reads.append(sync.pipe.read_all.wait(SECONDS))
        return run(*arguments, **options)

    monkeypatch.setattr(sync.loader, "run", commit)
    sync.pipe.put(user(1), state("users", 1))
    sync.start()
    assert sync.wait_for_states(1) == [(1, 1)]
    assert reads[:2] == [True, True]
    sync.end()
    assert platform.ids() == [1, 2, 3]


def test_reading_waits_while_too_much_is_not_loaded(platform, monkeypatch):
    monkeypatch.setattr(writer, "WAITING_BYTES", 1000)
    began, go_on = threading.Event(), threading.Event()
    sync = Sync(platform, USERS, step=Step(1))
    run = sync.loader.run

    def wait(*arguments, **options):
        began.set()
        assert go_on.wait(SECONDS)
        return run(*arguments, **options)

    monkeypatch.setattr(sync.loader, "run", wait)
    sync.start()
    sync.pipe.put(user(1), state("users", 1))
    assert began.wait(SECONDS)
    sync.pipe.put(*(user(number) for number in range(2, 502)))
    time.sleep(0.5)
    left = len(sync.pipe._lines)
    assert 400 < left < 500
    go_on.set()
    sync.end()
    assert platform.ids() == list(range(1, 502))


def test_streams_beyond_the_slots_wait_for_the_end_of_others(platform, monkeypatch):
    """Two loads run side by side. The third stream's begins when one of them is cut at its STATE."""
    monkeypatch.setattr(writer, "ROOM_BYTES", 1)
    monkeypatch.setattr("lakewriter.source.messages.backlog.PIECE_BYTES", 1)
    names = [f"s{number}" for number in range(5)]
    sync = Sync(platform, *(stream(name) for name in names)).start()
    for name in names:
        sync.pipe.put(user(1, name), state(name, name))
    committed = [cursor for cursor, _ in sync.wait_for_states(3)]
    assert len(committed) >= 3
    sync.end()
    assert sorted(cursor for cursor, _ in states(sync.heard)) == names
    assert all(platform.ids(f"data/public/{name}/") == [1] for name in names)
