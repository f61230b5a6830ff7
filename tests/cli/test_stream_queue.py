"""Where the loads of a stream end, and which records the running one may have."""

import itertools
from typing import cast

import pytest

from lakewriter.cli.airbyte import stream_queue
from lakewriter.cli.airbyte.stream_queue import StreamQueue
from lakewriter.source.messages import backlog
from lakewriter.source.messages.arriving import ArrivingFeed
from lakewriter.source.messages.backlog import Backlog
from lakewriter.source.messages.chunks import Records
from lakewriter.source.messages.splits import END
from lakewriter.spec.table_spec import TableSpec
from tests.cli.feeds import Feed

SIZE = 66
"""Bytes of each of these records."""


class Stream(StreamQueue):
    """A queue whose files hold one record each; a step has five of them."""

    def __init__(self, folder):
        self._folder = folder
        folder.mkdir(exist_ok=True)
        super().__init__(("public", "users"), cast(TableSpec, None), Backlog(folder, itertools.count()))

    def say(self, *messages):
        """Numbers are places of records; ``s`` before one is a STATE, ``z`` a silent one."""
        for message in messages:
            if isinstance(message, int):
                self.add(Records(self.key, [message], [b"{}"], [None], [None]), now=0.0)
            elif self.take_state(int(message[1:]), 5 * SIZE, is_silent=message[0] == "z"):
                self.cut(0.0)
            self.advance()

    def again(self, said):
        """Return another queue with what was said."""
        other = Stream(self._folder / "again")
        other.say(*said)
        return other

    def load(self):
        feed = Feed()
        self.begin(cast(ArrivingFeed, feed))
        return feed


@pytest.fixture
def stream(tmp_path, monkeypatch):
    monkeypatch.setattr(backlog, "PIECE_BYTES", 1)
    return Stream(tmp_path)


# (what is said, the places that a load has had, whether it is to end)
SAID = [
    ((1, 2, 3), [1, 2, 3], False),
    # Once a STATE has come, what follows it waits: the load can end there.
    ((1, 2, "s3", 4, 5), [1, 2], False),
    ((1, 2, "s3", 4, "s5", 6), [1, 2, 4], False),
    # Enough for a step, at a STATE only.
    ((1, 2, 3, 4, 5, 6), [1, 2, 3, 4, 5, 6], False),
    ((1, 2, 3, 4, 5, "s6", 7), [1, 2, 3, 4, 5], True),
    ((1, "s2", 3, 4, 5, 6, "s7", 8, "s9"), [1, 3, 4, 5, 6], True),
]


@pytest.mark.parametrize(("said", "places", "ended"), SAID)
@pytest.mark.parametrize("late", [False, True], ids=["load runs before", "load runs after"])
def test_what_a_load_has(stream, said, places, ended, late):
    if late:
        stream.say(*said)
        feed = stream.load()
    else:
        stream.say(said[0])
        feed = stream.load()
        stream.say(*said[1:])
    assert (feed.places, feed.ended) == (places, ended)


def test_the_next_load_has_what_waited(stream):
    stream.say(1, "s2", 3, 4)
    feed = stream.load()
    stream.cut(0.0)
    stream.advance()
    assert (feed.places, feed.ended) == ([1], True)
    stream.close(committed=True)
    assert (stream.start, stream.wants_load) == (3, True)
    assert stream.load().places == [3, 4]


def test_no_load_follows_one_that_failed(stream):
    """The records of the load that failed would be left out, and the STATE behind them go back."""
    stream.say(1, 2, 3, 4, 5, "s6")
    stream.load()
    stream.say(7, 8, 9, 10, 11, "s12")
    stream.close(committed=False)
    stream.say("s13")
    stream.finish(is_whole=True, takes_rest=True, now=0.0)
    assert (stream.start, stream.wants_load) == (0, False)


def test_a_state_without_records_before_it_needs_no_load(stream):
    stream.say("s0")
    assert (stream.start, stream.wants_load) == (1, False)
    stream.say(1, 2, 3, 4, 5, "s6", "s7")
    stream.load()
    stream.say("s8")
    stream.close(committed=True)
    assert (stream.start, stream.wants_load) == (9, False)


def test_a_state_is_due_by_time_and_by_what_waits_behind_it(stream, monkeypatch):
    stream.say(1)
    assert not stream.is_due(1000.0, 900.0)
    stream.say("s2")
    assert [stream.is_due(now, 900.0) for now in (899.0, 900.0)] == [False, True]
    monkeypatch.setattr(stream_queue, "HELD_BYTES", 3 * SIZE)
    stream.say(3, 4)
    assert not stream.is_due(0.0, 900.0)
    stream.say(5)
    assert stream.is_due(0.0, 900.0)


# (what is said, whether the stream is complete, what each load has, whether it completes the stream)
ENDS = [
    ((1, 2), True, [([1, 2], False), ([], True)]),
    ((1, "s2", 3), True, [([1, 3], False), ([], True)]),
    ((1, 2, 3, 4, 5, "s6", 7), True, [([1, 2, 3, 4, 5], False), ([7], True)]),
    ((1, "s2", 3), False, [([1], False)]),
    ((1, 2, 3, 4, 5, "s6", 7), False, [([1, 2, 3, 4, 5], False)]),
]


@pytest.mark.parametrize(("said", "whole", "loads"), ENDS)
def test_the_end_of_the_input(stream, said, whole, loads):
    stream.say(said[0])
    feeds = [stream.load()]
    completes = [False]
    stream.say(*said[1:])
    stream.finish(is_whole=whole, takes_rest=whole, now=0.0)
    stream.advance()
    while feeds[-1].ended:
        stream.close(committed=True)
        if not stream.wants_load:
            break
        feeds.append(feed := Feed())
        completes.append(stream.begin(feed))
    assert [(feed.places, own) for feed, own in zip(feeds, completes, strict=True)] == loads


def test_records_that_no_state_covers_are_given_up(stream):
    stream.say(1)
    feed = stream.load()
    stream.say(2)
    stream.finish(is_whole=False, takes_rest=False, now=0.0)
    stream.advance()
    assert (feed.given_up, feed.ended) == (True, False)
    stream.close(committed=False)
    assert not stream.wants_load


# (what is said, whether the stream is complete and the sync whole, the end of each load and the STATE it waits for)
SILENT = [
    ((1, "z2", 3), True, [(END - 1, 2, True), (END, -1, False)]),
    ((1, "z2"), True, [(END - 1, 2, False), (END, -1, False)]),
    ((1, "z2", 3), False, [(3, 2, False)]),
    ((1, "s2", 3, "z4", 5), False, [(3, 2, False), (5, 4, False)]),
    ((1, "s2", 3, "z4"), True, [(3, 2, False), (END, 4, False)]),
]


@pytest.mark.parametrize(("said", "whole", "ends"), SILENT)
def test_a_load_ends_at_a_silent_state_only_with_the_input(stream, said, whole, ends):
    stream.say(said[0])
    feed = stream.load()
    stream.say(*said[1:])
    stream.say(6, 7, 8, 9, 10)
    assert not feed.ended
    stream = stream.again(said)
    stream.load()
    stream.finish(is_whole=whole, takes_rest=whole, now=0.0)
    found = []
    while stream.wants_load or stream.feed is not None:
        if stream.feed is None:
            stream.load()
        stream.advance()
        found.append((stream.end.position, stream.end.state, stream.end.is_rest))
        stream.close(committed=True)
    assert found == ends


def test_a_load_goes_beyond_a_silent_state_where_too_much_waits(stream, monkeypatch):
    monkeypatch.setattr(stream_queue, "HELD_BYTES", 3 * SIZE)
    stream.say(1, "z2", 3, 4)
    feed = stream.load()
    stream.pass_silent_state()
    stream.advance()
    assert feed.places == [1]
    stream.say(5)
    stream.pass_silent_state()
    stream.advance()
    assert (feed.places, feed.ended) == ([1, 3, 4, 5], False)


@pytest.mark.parametrize("whole", [True, False])
def test_a_state_is_never_due_behind_the_end(stream, whole):
    stream.say(1, "s2", 3)
    stream.finish(is_whole=whole, takes_rest=whole, now=0.0)
    assert not stream.is_due(1000.0, 0.1)
    stream.cut(1000.0)
    feeds = []
    while stream.wants_load:
        feeds.append(stream.load())
        stream.close(committed=True)
    assert [feed.places for feed in feeds] == ([[1, 3]] if whole else [[1]])
