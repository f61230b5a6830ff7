"""What of a sync is committed, and which STATEs go back, wherever its source dies: nothing is left out, nothing twice.

Three streams of every mode, each kind of STATE, and a death at each message. The next sync is given the STATEs that
came back, as the platform gives them, and its source sends what follows.
"""

import itertools
import json
import random
from typing import Any, cast

import pytest

from lakewriter.cli.airbyte.commit_rule import CommitRule
from lakewriter.cli.airbyte.stream_queue import StreamQueue
from lakewriter.run.stream_completion import Input
from lakewriter.source.messages import backlog
from lakewriter.source.messages.arriving import ArrivingFeed
from lakewriter.source.messages.backlog import Backlog
from lakewriter.source.messages.chunks import Records
from lakewriter.source.messages.contents import Event
from lakewriter.spec.stream import Stream, StreamKey
from lakewriter.spec.table_spec import Mode, TableSpec
from tests.cli.feeds import Feed
from tests.cli.scripted_source import KINDS, MODES, NAMES, Source, take_last

MANY = 100
"""Bytes of a step are a few records: loads end amid the sync."""


def make_table(name, mode):
    own = dict(MODES[mode])
    table_mode = Mode(own.pop("destination_sync_mode"))
    stream = Stream.model_construct(name=name, namespace="public", **{"generation_id": None} | own)
    fields: dict[str, Any] = {"stream": stream, "mode": table_mode}
    return TableSpec.model_construct(**fields)


class Destination:
    """The tables of three streams, and syncs into them by the rule; loads end in any order."""

    def __init__(self, folder, modes, rng):
        self.tables = {name: make_table(name, mode) for name, mode in zip(NAMES, modes, strict=True)}
        self.rows: dict[str, list[int]] = {name: [] for name in NAMES}
        self._folder, self._rng = folder, rng

    def sync(self, messages, *, fails=None):
        """Take messages; no load of the stream ``fails`` succeeds. Return the STATEs that go back, and whether all
        streams are complete."""
        numbers = itertools.count(self._rng.getrandbits(48))
        self._queues: dict[StreamKey, StreamQueue] = {
            ("public", name): StreamQueue(("public", name), table, Backlog(self._folder, numbers))
            for name, table in self.tables.items()
        }
        self._rule, self._fails = CommitRule(self._queues), fails
        self._back, self._begun, self._values = list[Event](), set[str](), dict[int, int]()
        events, last, step = list[Event](), {}, self._rng.choice([1, MANY])
        for place, (kind, key, content) in enumerate(messages):
            if kind == "record":
                self._values[place], last[key] = content, place
                self._queues[key].add(Records(key, [place], [b"{}" * 10], [None], [None]), 0.0)
            else:
                events.append(event := Event(place, kind, key, content))
                if kind == "state":
                    self._rule.take_state(event, 0.0, lambda _: step)
            if self._rng.random() < 0.5:
                self._work()
        seen = Input(events, last_records=last)
        ended = [key for key in self._queues if not seen.error(key)]
        self._rule.finish(ended, 0.0)
        for _ in range(100):
            self._work()
        assert not any(queue.feed for queue in self._queues.values() if not queue.is_staged)
        self._back += [said.event for said in self._rule.take_answered()]
        back = sorted(self._back, key=lambda event: event.position)
        return [json.loads(event.text) for event in back], len(ended) == len(self._queues)

    def _work(self):
        for queue in self._queues.values():
            if queue.is_due(self._rng.choice([0.0, 1000.0]), 900.0):
                self._rule.cut(queue, 0.0)
            queue.advance()
            if queue.wants_load and self._rng.random() < 0.7:
                queue.begin(cast(ArrivingFeed, Feed()))
            self._stage(queue)
        bound = self._rule.list_bindable()
        self._rng.shuffle(bound)
        for queue in bound:
            self._commit(queue)
            self._rule.close(queue, committed=True)
            self._back += [said.event for said in self._rule.take_answered()]

    def _stage(self, queue):
        feed = cast(Feed, queue.feed)
        if feed is None:
            return
        if feed.ended and queue.key[1] == self._fails:
            self._rule.fail()
        if feed.given_up or (feed.ended and queue.key[1] == self._fails):
            self._rule.close(queue, committed=False)
        elif feed.ended and self._rng.random() < 0.7:
            queue.is_staged = True

    def _commit(self, queue):
        name, begun = queue.key[1], self._begun
        if self.tables[name].mode is Mode.OVERWRITE and name not in begun and queue.table.stream.generation_id is None:
            self.rows[name] = []
        begun.add(name)
        self.rows[name] += [self._values[place] for place in cast(Feed, queue.feed).places]


@pytest.fixture(autouse=True)
def files_of_one_record(monkeypatch):
    monkeypatch.setattr(backlog, "PIECE_BYTES", 1)


ALL = {name: [1, 2, 3] for name in NAMES}
CASES = list(itertools.product(itertools.product(MODES, repeat=3), KINDS))


def play(folder, modes, kind, death, *, fails=None):
    """One sync that ends at the message ``death``, or in which the loads of one stream fail; then a whole one."""
    rng, seed = random.Random(f"{modes} {kind} {death}"), f"{modes} {kind}"
    destination = Destination(folder, modes, rng)
    messages = list(Source(modes, kind, random.Random(seed)).say([]))
    back, _ = destination.sync(messages[:death], fails=fails)
    if fails or death < len(messages):
        given = take_last([], back, kind)
        _, is_whole = destination.sync(list(Source(modes, kind, rng).say(given)))
        assert is_whole
    return {name: sorted(rows) for name, rows in destination.rows.items()}


def count_messages(modes, kind):
    return len(list(Source(modes, kind, random.Random(f"{modes} {kind}")).say([])))


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("modes", "kind"), CASES)
def test_each_row_is_there_once_wherever_the_source_dies(tmp_path, modes, kind):
    for death in range(count_messages(modes, kind) + 1):
        assert play(tmp_path, modes, kind, death) == ALL, death


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("modes", "kind"), CASES)
def test_each_row_is_there_once_whichever_load_fails(tmp_path, modes, kind):
    for fails, death in itertools.product(NAMES, (count_messages(modes, kind), 12)):
        assert play(tmp_path, modes, kind, death, fails=fails) == ALL, (fails, death)
