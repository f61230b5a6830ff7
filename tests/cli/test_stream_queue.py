"""Where the loads of a stream end, and which records the running one may have."""

import itertools
from typing import cast

import pytest

from lakewriter.cli.airbyte import stream_queue
from lakewriter.cli.airbyte.stream_queue import StreamQueue
from lakewriter.source.messages import backlog
from lakewriter.source.messages.arriving import ArrivingFeed
from lakewriter.source.messages.backlog import Backlog, read_piece
from lakewriter.source.messages.chunks import Records
from lakewriter.spec.table_spec import TableSpec

SIZE = 66
"""Bytes of each of these records."""


class Feed:
    """What a load is given."""

    def __init__(self):
        self.places, self.ended, self.given_up = [], False, False

    def hand(self, piece):
        self.places += read_piece(piece.path).column("row").to_pylist()

    def end(self):
        self.ended = True

    def give_up(self):
        self.given_up = True


class Stream(StreamQueue):
    """A queue whose files hold one record each; a step has five of them."""

    def __init__(self, folder):
        super().__init__(("public", "users"), cast(TableSpec, None), Backlog(folder, itertools.count()))

    def say(self, *messages):
        """Numbers are places of records; ``s`` before one is a STATE."""
        for message in messages:
            if isinstance(message, int):
                self.add(Records(self.key, [message], [b"{}"], [None], [None]), now=0.0)
            elif self.take_state(int(message[1:]), 5 * SIZE):
                self.cut(0.0)
            self.advance()

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


def test_a_load_that_fails_covers_no_state(stream):
    stream.say(1, 2, 3, 4, 5, "s6")
    stream.load()
    stream.close(committed=False)
    assert stream.start == 0


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
    stream.finish(whole=whole, now=0.0)
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
    stream.finish(whole=False, now=0.0)
    stream.advance()
    assert (feed.given_up, feed.ended) == (True, False)
    stream.close(committed=False)
    assert not stream.wants_load
