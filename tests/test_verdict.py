"""Which records of a stream are loaded, and how a stream ends: by the events of an input."""

import json

import pytest

from job.commit.syncing import SourceState
from job.source.messages import Event, event_of, parsed
from job.verdict import Input, Verdict, handed_back, source_state

USERS, ORDERS = ("public", "users"), ("public", "orders")


def state(place: int, stream: tuple[str, str] | None, cursor: int) -> Event:
    """A state of one stream, or of all."""
    own = {"stream_descriptor": {"name": stream[1], "namespace": stream[0]}} if stream else {}
    content = {"type": "STREAM", "stream": own | {"stream_state": cursor}}
    if stream is None:
        content = {"type": "GLOBAL", "global": {"shared_state": cursor, "stream_states": []}}
    message = parsed(json.dumps({"type": "STATE", "state": content}).encode())
    assert message is not None
    found = event_of(place, message)
    assert found is not None
    return found


def status(place: int, stream: tuple[str, str], text: str) -> Event:
    return Event(place, "status", stream, text)


BOOM = Event(90, "error", None, "boom")
ENDS = [
    # events, why users did not come to its end, where its records end: None for all of them, 0 for none
    ([], "", None),
    ([state(10, USERS, 1)], "", None),
    ([status(5, USERS, "COMPLETE")], "", None),
    ([status(5, USERS, "COMPLETE"), BOOM], "", None),
    ([status(5, USERS, "COMPLETE"), status(6, USERS, "INCOMPLETE")], "the source did not report it as COMPLETE", 0),
    ([status(5, USERS, "STARTED"), state(10, USERS, 1)], "the source did not report it as COMPLETE", 10),
    ([status(5, ORDERS, "COMPLETE")], "the source did not report it as COMPLETE", 0),
    ([state(10, ORDERS, 1), BOOM], "the source reports: boom", 0),
    ([state(10, USERS, 1), state(20, USERS, 2), BOOM], "the source reports: boom", 20),
    ([state(10, None, 1), BOOM], "the source reports: boom", 10),
    ([Event(90, "error", ORDERS, "boom")], "", None),
    ([Event(90, "error", USERS, "boom")], "the source reports: boom", 0),
]  # fmt: skip


@pytest.mark.parametrize(("events", "error", "end"), ENDS)
def test_end(events, error, end):
    found = Input(events).verdict(USERS, "j", None)
    assert (found.complete, found.error) == (not error, error)
    assert (found.stretch is None) == (end == 0)
    assert found.stretch is None or end is None or found.stretch.end == end


def test_failed_connector():
    found = Input([state(10, USERS, 1)], "it ended with exit code 1").verdict(USERS, "j", None)
    assert (found.complete, found.error, found.stretch.end) == (False, "it ended with exit code 1", 10)


def test_records_before_a_state_of_the_same_load_are_skipped():
    first, second = state(10, USERS, 1), state(20, USERS, 2)
    before = source_state(first, "j")
    assert Input([first, second]).verdict(USERS, "j", before).stretch.start == 11
    assert Input([first, second]).verdict(USERS, "other", before).stretch.start == 0
    assert Input([second]).verdict(USERS, "j", before).stretch.start == 0
    assert Input([first, BOOM]).verdict(USERS, "j", before) == Verdict(
        None, before, complete=False, error="the source reports: boom"
    )


def test_state_stays_when_the_source_says_nothing_new():
    before = source_state(state(10, USERS, 1), "earlier")
    assert Input([]).verdict(USERS, "j", before).source == before


def kept(kind: str, text: str) -> SourceState:
    return SourceState(kind=kind, text=text, digest="d", job_id="j")


HANDED = [
    # states of the tables with the numbers of their syncs, the file for the source
    ([], None),
    ([(1, kept("stream", '{"a": 1}')), (2, kept("stream", '{"b": 2}'))], [{"a": 1}, {"b": 2}]),
    ([(2, kept("global", '{"g": 2}')), (1, kept("global", '{"g": 1}'))], [{"g": 1}]),
    ([(1, kept("legacy", '{"data": {"users": 5}}'))], {"users": 5}),
]


@pytest.mark.parametrize(("states", "expected"), HANDED)
def test_handed_back(states, expected):
    found = handed_back(states)
    assert found is None if expected is None else json.loads(found) == expected


LINES = [
    # a line, whether it is a message
    ('{"type":"RECORD","record":{"stream":"u","data":{}}}', True),
    ('{"type":"RECORD","record":{"stream":"u","data":[1]}}', False),
    ('{"type":"RECORD","record":{"data":{}}}', False),
    ('{"type":"LOG","log":{"level":"INFO","message":"x"}}', True),
    ('{"type":"NEW","new":{}}', True),
    ('{"log": 1}', False),
    ("", False),
    ('{"type":"RECORD","record":{"stream":"u","data":{"a":NaN}}}', False),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_line(line, expected):
    assert (parsed(line.encode()) is not None) is expected


def test_line_that_is_no_utf8():
    assert parsed(b'{"type":"RECORD","record":{"stream":"u","data":{"a":"\xff"}}}') is None
