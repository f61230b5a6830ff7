"""Which records of a stream are loaded, and how a stream ends: by the events of an input."""

import hashlib
import json

import pytest

from lakewriter.run.stream_completion import Input, make_source_state
from lakewriter.source.messages.contents import Contents, Event, parse_event, scan
from lakewriter.source.messages.lines import parse_line
from lakewriter.source.messages.message_input import Messages
from lakewriter.source.messages.splits import Piece
from lakewriter.source.storage import Disk
from lakewriter.source.task_sizes import Chunk
from lakewriter.spec.stream import MessageSource
from tests.support.narrow import need

USERS, ORDERS = ("public", "users"), ("public", "orders")


def state(place: int, stream: tuple[str, str] | None, cursor: int) -> Event:
    """A state of one stream, or of all."""
    own = {"stream_descriptor": {"name": stream[1], "namespace": stream[0]}} if stream else {}
    content = {"type": "STREAM", "stream": own | {"stream_state": cursor}}
    if stream is None:
        content = {"type": "GLOBAL", "global": {"shared_state": cursor, "stream_states": []}}
    message = parse_line(json.dumps({"type": "STATE", "state": content}).encode())
    assert message is not None
    found = parse_event(place, message)
    assert found is not None
    return found


def status(place: int, stream: tuple[str, str], text: str) -> Event:
    return Event(place, "status", stream, text)


def ended_well(*events: Event) -> Input:
    """An input whose connector exited with 0."""
    return Input(events, ended="exit 0")


BOOM = Event(90, "error", None, "boom")
UNREPORTED = "the source did not report it as COMPLETE"
LATE = "the source sent more of its records after its status COMPLETE"
CUT = "the input ends in the middle of a line"
UNTOLD = (
    "the input ended without its status COMPLETE, and carries no status of any stream, as when its source died. Where "
    "the source never reports statuses, say so: statuses: none under source in lake.yaml, or --statuses none"
)
STARTED, COMPLETE, INCOMPLETE = (status(5, USERS, text) for text in ("STARTED", "COMPLETE", "INCOMPLETE"))
UNSEEN, EXIT_0, NONE = "unseen", "exit 0", "no statuses"

ENDS = [
    # what is known of the input's end, its events, where the last record of users stands, why users did not come to
    # its end, where its records end: None for all of them, 0 for none
    (UNSEEN, [], -1, UNTOLD, 0),
    (UNSEEN, [], 1, UNTOLD, 0),
    (UNSEEN, [state(10, USERS, 1)], 1, UNTOLD, 10),
    (UNSEEN, [COMPLETE], 1, "", None),
    (UNSEEN, [COMPLETE, status(6, USERS, "COMPLETE")], 1, "", None),
    (UNSEEN, [COMPLETE], 6, LATE, 0),
    (UNSEEN, [state(4, USERS, 1), COMPLETE], 6, LATE, 4),
    (UNSEEN, [COMPLETE, state(7, USERS, 1)], 6, LATE, 7),
    (UNSEEN, [COMPLETE, status(7, USERS, "COMPLETE")], 6, "", None),
    (UNSEEN, [COMPLETE, status(6, USERS, "STARTED")], 7, UNREPORTED, 0),
    (UNSEEN, [COMPLETE, status(6, USERS, "STARTED"), status(8, USERS, "COMPLETE")], 7, "", None),
    (UNSEEN, [COMPLETE, status(6, USERS, "INCOMPLETE")], 1, UNREPORTED, 0),
    (UNSEEN, [INCOMPLETE, status(6, USERS, "COMPLETE")], 1, UNREPORTED, 0),
    (UNSEEN, [INCOMPLETE, status(6, USERS, "STARTED"), status(8, USERS, "COMPLETE")], 7, "", None),
    (UNSEEN, [status(5, USERS, "complete")], 1, UNREPORTED, 0),
    (UNSEEN, [STARTED, state(10, USERS, 1)], 1, UNREPORTED, 10),
    (UNSEEN, [status(5, ORDERS, "COMPLETE")], 1, UNREPORTED, 0),
    (UNSEEN, [COMPLETE, BOOM], 1, "", None),
    (UNSEEN, [COMPLETE, Event(90, "error", USERS, "boom")], 1, "the source reports: boom", 0),
    (UNSEEN, [Event(3, "error", USERS, "try again"), COMPLETE], 1, "", None),
    (NONE, [], -1, "", None),
    (NONE, [state(10, USERS, 1)], 1, "", None),
    (NONE, [state(10, ORDERS, 1), BOOM], 1, "the source reports: boom", 0),
    (NONE, [state(10, USERS, 1), state(20, USERS, 2), BOOM], 1, "the source reports: boom", 20),
    (NONE, [state(10, None, 1), BOOM], 1, "the source reports: boom", 10),
    (NONE, [Event(90, "error", ORDERS, "boom")], 1, "", None),
    (NONE, [Event(90, "error", USERS, "boom")], 1, "the source reports: boom", 0),
    (NONE, [STARTED], 1, UNREPORTED, 0),
    (NONE, [status(5, ORDERS, "COMPLETE")], 1, UNREPORTED, 0),
    (NONE, [COMPLETE], 6, LATE, 0),
    (EXIT_0, [], -1, "", None),
    (EXIT_0, [state(10, USERS, 1)], 20, "", None),
    (EXIT_0, [STARTED], 6, "", None),
    (EXIT_0, [status(5, ORDERS, "COMPLETE")], 1, "", None),
    (EXIT_0, [INCOMPLETE], 1, UNREPORTED, 0),
    (EXIT_0, [COMPLETE], 6, LATE, 0),
    (EXIT_0, [BOOM], 1, "the source reports: boom", 0),
]  # fmt: skip


@pytest.mark.parametrize(("ended", "events", "last", "error", "end"), ENDS)
def test_end(ended, events, last, error, end):
    found = Input(events, "", {USERS: last}, ended).judge(USERS, "j", None)
    assert (found.complete, found.error) == (not error, error)
    assert (found.stretch is None) == (end == 0)
    assert found.stretch is None or end is None or found.stretch.end == end


CUTS = [
    # what is known of the end of an input that ends amid a line, its events, why users did not come to its end
    (NONE, [], CUT),
    (EXIT_0, [STARTED], CUT),
    (UNSEEN, [COMPLETE], ""),
    (UNSEEN, [STARTED], UNREPORTED),
]


@pytest.mark.parametrize(("ended", "events", "error"), CUTS)
def test_end_amid_a_line(ended, events, error):
    assert Input(events, "", {USERS: 1}, ended, is_cut=True).error(USERS) == error


FAILED = "the connector 'source' ended with exit code 1"
CONNECTORS = [
    # what a connector that fails says before, why users did not come to its end
    ([], FAILED),
    ([STARTED], FAILED),
    ([COMPLETE], ""),
    ([status(5, ORDERS, "COMPLETE")], FAILED),
    ([INCOMPLETE], FAILED),
]


@pytest.mark.parametrize(("events", "error"), CONNECTORS)
def test_connector_that_fails(events, error):
    assert Input(events, FAILED).error(USERS) == error


ENDED = [
    # where messages come from, how the connector ended, what is known of the end
    (MessageSource(paths=("-",)), "", UNSEEN),
    (MessageSource(paths=("m.jsonl",), statuses="none"), "", NONE),
    (MessageSource(command=("source",)), "", EXIT_0),
    (MessageSource(command=("source",)), FAILED, UNSEEN),
]


@pytest.mark.parametrize(("source", "failure", "ended"), ENDED)
def test_what_is_known_of_the_end(source, failure, ended):
    messages = Messages(Disk(), {}, failure)
    assert Input.of(messages, source) == Input([], failure, {}, ended)


TAILS = [
    # the last lines of a file, whether the file ends amid one
    ([b'{"type":"LOG","log":{}}'], False),
    ([b'{"type":"LOG","log":{}}', b'{"type":"TR'], True),
    ([b"{"], True),
    ([b"{", b'"pretty": 1', b"}"], False),
    ([b"Traceback (most recent call last):"], False),
    ([b'{"type":"RECORD","record":{"stream":"u","namespace":"n","data":{"a":"\xc3'], True),
    ([], False),
]


@pytest.mark.parametrize(("tail", "cut"), TAILS)
def test_file_that_ends_amid_a_line(tail, cut):
    own = scan((number * 100, line) for number, line in enumerate([b'{"type":"NEW"}', *tail]))
    assert Contents.from_json(json.loads(json.dumps(own.to_json()))) == own
    first, second = (Piece(Chunk(f"{name}.jsonl", 0, 1000), number) for number, name in enumerate("ab"))
    for files in ({first: own, second: Contents()}, {first: Contents(), second: own}):
        assert Messages(Disk(), files, "").is_cut is cut


def test_first_and_last_records():
    lines = [
        b'{"type":"RECORD","record":{"stream":"users","namespace":"public","emitted_at":%d,"data":{}}}' % number
        for number in range(4)
    ]
    digest = hashlib.sha256(b"{}").hexdigest()
    own = scan((number * 100, line) for number, line in enumerate(lines[:3]))
    rest = scan([(900, lines[3]), (950, b"")])
    whole = Contents()
    whole.add(own)
    whole.add(rest)
    assert (own.last_records, whole.last_records) == ({USERS: 200}, {USERS: 900})
    assert (whole.first_records, rest.first_records) == ({USERS: (0, digest)}, {USERS: (900, digest)})
    assert Contents.from_json(json.loads(json.dumps(own.to_json()))) == own
    pieces = {Piece(Chunk("a.jsonl", start, 500), 0): each for start, each in ((0, own), (500, rest))}
    messages = Messages(Disk(), pieces, "")
    assert (messages.first_records, messages.last_records, messages.last_line) == (
        {USERS: (0, digest)}, {USERS: 900}, 900,
    )  # fmt: skip


def test_failed_connector():
    found = Input([state(10, USERS, 1)], "it ended with exit code 1").judge(USERS, "j", None)
    assert (found.complete, found.error, need(found.stretch).end) == (False, "it ended with exit code 1", 10)


FAULT = Event(15, "unreadable", USERS, "cut: '{...'")
FAULTS = [
    # events, where the records of users end: 0 for none
    ([state(10, USERS, 1), FAULT, state(20, USERS, 2)], 10),
    ([FAULT, state(20, USERS, 2), status(30, USERS, "COMPLETE")], 0),
    ([state(10, None, 1), Event(15, "unreadable", None, "cut: '{...'"), state(20, None, 2)], 10),
]  # fmt: skip


@pytest.mark.parametrize(("events", "end"), FAULTS)
def test_nothing_is_loaded_behind_a_message_that_cannot_be_read(events, end):
    found = Input(events).judge(USERS, "j", None)
    assert found.error == "a message at byte 15 of input file 1 cannot be read: cut: '{...'"
    assert not found.complete
    assert (found.stretch.end if found.stretch else 0) == end


SET_ASIDE = [
    # the kind of the line, its stream, whether users is complete without it
    ("bad record", USERS, True),
    ("bad record", None, True),
    ("bad record", ORDERS, True),
    ("unreadable", USERS, False),
    ("unreadable", None, False),
]


@pytest.mark.parametrize(("kind", "stream", "complete"), SET_ASIDE)
def test_streams_do_without_records_that_are_set_aside(kind, stream, complete):
    events = [Event(15, kind, stream, "cut"), state(20, None, 2), status(30, USERS, "COMPLETE")]
    assert Input(events, sets_aside=[USERS]).judge(USERS, "j", None).complete == complete
    # A line that may be of any stream fails those that set nothing aside.
    error = Input([*events, status(30, ORDERS, "COMPLETE")], sets_aside=[USERS]).error(ORDERS)
    assert bool(error) == (stream in (None, ORDERS))


def test_unreadable_message_of_another_stream():
    assert ended_well(Event(15, "unreadable", ORDERS, "cut"), state(20, USERS, 2)).judge(USERS, "j", None).complete


def test_state_stays_when_the_source_says_nothing_new():
    before = make_source_state(state(10, USERS, 1), "earlier")
    assert ended_well().judge(USERS, "j", before).source == before


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
    assert (parse_line(line.encode()) is not None) is expected


def test_line_that_is_no_utf8():
    assert parse_line(b'{"type":"RECORD","record":{"stream":"u","data":{"a":"\xff"}}}') is None
