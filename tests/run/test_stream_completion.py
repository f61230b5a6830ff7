"""Which records of a stream are loaded, and how a stream ends: by the events of an input."""

import json

import pytest

from lakewriter.run.stream_completion import Input, Verdict, source_state
from lakewriter.source.messages.contents import Event, event_of
from lakewriter.source.messages.lines import parsed

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
    assert Input([first, state(20, USERS, 1)]).verdict(USERS, "j", before).stretch.start == 11
    assert Input([first, BOOM]).verdict(USERS, "j", before) == Verdict(
        None, before, complete=False, error="the source reports: boom"
    )


def test_state_said_again_elsewhere_skips_nothing():
    before = source_state(state(10, USERS, 1), "j")
    found = Input([state(5, USERS, 1), state(20, USERS, 2)]).verdict(USERS, "j", before)
    assert (found.stretch.start, found.complete) == (0, True)


GIVEN = [
    # the state of users, what the connector was given, where its records begin: it says states 1 at 10 and 15, 2 at 20
    (1, 1, 0),
    (1, 0, 11),
    (2, 1, 21),
    (3, 1, 0),
]


@pytest.mark.parametrize(("own", "given", "start"), GIVEN)
def test_connector_begins_behind_what_it_was_given(own, given, start):
    before, handed = (source_state(state(10, None, cursor), "j") for cursor in (own, given))
    said = [state(10, None, 1), state(15, None, 1), state(20, None, 2)]
    assert Input(said).verdict(USERS, "j", before, handed).stretch.start == start


FAULT = Event(15, "unreadable", USERS, "cut: '{...'")
FAULTS = [
    # events, where the records of users end: 0 for none
    ([state(10, USERS, 1), FAULT, state(20, USERS, 2)], 10),
    ([FAULT, state(20, USERS, 2), status(30, USERS, "COMPLETE")], 0),
    ([state(10, None, 1), Event(15, "unreadable", None, "cut: '{...'"), state(20, None, 2)], 10),
]  # fmt: skip


@pytest.mark.parametrize(("events", "end"), FAULTS)
def test_nothing_is_loaded_behind_a_message_that_cannot_be_read(events, end):
    found = Input(events).verdict(USERS, "j", None)
    assert found.error == "a message at byte 15 of input file 1 cannot be read: cut: '{...'"
    assert not found.complete
    assert (found.stretch.end if found.stretch else 0) == end


def test_unreadable_message_of_another_stream():
    assert Input([Event(15, "unreadable", ORDERS, "cut"), state(20, USERS, 2)]).verdict(USERS, "j", None).complete


def test_state_stays_when_the_source_says_nothing_new():
    before = source_state(state(10, USERS, 1), "earlier")
    assert Input([]).verdict(USERS, "j", before).source == before


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
