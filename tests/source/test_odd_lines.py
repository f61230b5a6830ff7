"""Lines that are no messages as they stand: mended, at fault, or none."""

import json

import pytest

from lakewriter.source.messages.contents import Contents, Event
from lakewriter.source.messages.lines import Record, parse_line
from lakewriter.source.messages.mended_lines import Odd, parse_odd_line
from tests.support.narrow import need

CUT = {"change": "TRUNCATED", "reason": "DESTINATION_SERIALIZATION_ERROR"}
NO_NUMBER = {"change": "NULLED", "reason": "DESTINATION_SERIALIZATION_ERROR"}


def line(data: str, **more: str) -> bytes:
    rest = "".join(f',"{name}":{text}' for name, text in more.items())
    return f'{{"type":"RECORD","record":{{"stream":"u","data":{data}{rest}}}}}'.encode()


def recorded(found: Odd) -> Record:
    """The record of a mended line."""
    return need(need(found.message).record)


MENDED = [
    # data as Python's json.dumps writes it, what is written, the changes
    (r'{"a": "x\ud83d", "n": 1.10}', r'{"a": "x\ufffd", "n": 1.10}', [{"field": "a"} | CUT]),
    (r'{"a": "\uDE00 \ud83d\ude00"}', r'{"a": "\ufffd \ud83d\ude00"}', [{"field": "a"} | CUT]),
    (r'{"a": "\\ud83d", "b": ["\ud83d"]}', r'{"a": "\\ud83d", "b": ["\ufffd"]}', [{"field": "b.[0]"} | CUT]),
    (r'{"a": {"\ud83d": 1}}', r'{"a": {"\ufffd": 1}}', [{"field": "a.\ufffd"} | CUT]),
    ('{"a": NaN, "b": [-Infinity, 1e400, "NaN"]}', '{"a": null, "b": [null, 1e400, "NaN"]}',
     [{"field": "a"} | NO_NUMBER, {"field": "b.[0]"} | NO_NUMBER]),
]  # fmt: skip


@pytest.mark.parametrize(("data", "written", "changes"), MENDED)
def test_values(data, written, changes):
    assert parse_line(line(data)) is None
    found = parse_odd_line(line(data))
    record = recorded(found)
    assert (bytes(record.data), json.loads(bytes(need(record.meta).changes))) == (written.encode(), changes)
    assert found.mended == tuple(change["field"] for change in changes)


def test_changes_of_the_source_come_first():
    own = {"field": "z", "change": "NULLED", "reason": "SOURCE_RETRIEVAL_ERROR"}
    found = parse_odd_line(line('{"a":NaN}', meta=json.dumps({"changes": [own]})))
    assert json.loads(bytes(need(recorded(found).meta).changes)) == [own, {"field": "a"} | NO_NUMBER]


TIMES = [
    # what the source says, the time, what is told of it
    ('"1622135805000"', 1622135805000, ()),
    ('"2021-05-27"', None, ("emitted_at",)),
    ("1e400", None, ("emitted_at",)),
    ("NaN", None, ()),
]


@pytest.mark.parametrize(("text", "expected", "mended"), TIMES)
def test_emitted_at(text, expected, mended):
    found = parse_odd_line(line('{"a":1}', emitted_at=text))
    record = recorded(found)
    assert (bytes(record.data), record.emitted_at) == (b'{"a":1}', expected)
    assert found.mended == mended


def test_meta_that_is_no_object():
    assert recorded(parse_odd_line(line("{}", meta='"x"'))).meta is None


def test_error_with_half_an_emoji_is_an_error():
    found = Contents()
    found.take(7, rb'{"type":"TRACE","trace":{"type":"ERROR","error":{"message":"x\ud83d"}}}')
    assert found.events == [Event(7, "error", None, "x\ufffd")]


STATE = '{"type":"STATE","state":{"type":"STREAM","stream":{"stream_descriptor":{"name":"u"},"stream_state":%s}}}'
FAULTS = [
    # a line, its stream: None where it does not tell
    (line("[1]"), (None, "u")),
    (b'{"record": {"stream":', None),
    (line('{"a":"\xff"}').replace(b"\xc3\xbf", b"\xff"), (None, "u")),
    (line('{"a":1}', namespace='"public"').replace(b'{"a":1}', b'"x"'), ("public", "u")),
    (line('{"a":1}')[:-10], None),
    (b'{"record":{"stream":"u","data":{"a":1}, "type', None),
    (line('{"a":' + "[" * 3000 + "]" * 3000 + "}"), (None, "u")),
]
STATES = [
    ((STATE % '{"cursor":NaN}').encode(), (None, "u")),
    ((STATE % r'{"cursor":"\ud83d"}').encode(), (None, "u")),
    (b'{"type":"STATE","state":{"type":"GLOBAL","global":{"shared_state":NaN}}}', None),
    (b'{"type":"STATE", "sta', None),
    (b'{"state": {"type', None),
]


@pytest.mark.parametrize(
    ("text", "stream", "kind"),
    [*((*each, "bad record") for each in FAULTS), *((*each, "unreadable") for each in STATES)],
)
def test_faults(text, stream, kind):
    found = Contents()
    assert found.parse(7, text) is None
    (event,) = found.events
    assert (event.kind, event.stream, found.malformed) == (kind, stream, 1)
    assert text[:40].decode() in event.text


NONE = [
    b"starting up",
    b'{"log": 1}',
    b'{"type":"LOG","log":{"mess',
    b'{"type":"RECORD","record":{"data":{}}}',
    b'{"type":"RECORD"}',
    b"{",
]


@pytest.mark.parametrize("text", NONE)
def test_lines_that_are_no_message(text):
    found = Contents()
    assert found.parse(7, text) is None
    assert (found.events, found.malformed, dict(found.records)) == ([], 1, {})


def test_contents_cross_from_the_tasks():
    found = Contents()
    for place, text in enumerate([line('{"a":NaN}'), line("[1]"), line("{}"), b"hello"]):
        found.take(place, text)
    again = Contents.from_json(json.loads(json.dumps(found.to_json())))
    assert again == found
    assert (again.mended, again.replaced, again.records[None, "u"]) == (1, ["u: a"], 2)


def test_a_state_keeps_what_no_float_holds():
    found = Contents()
    for cursor in ("1e400", "12345678901234567.89", "12345678901234567.88"):
        found.take(0, (STATE % f'{{"cursor":{cursor}}}').encode())
    assert len({event.digest for event in found.events}) == 3
    assert '"cursor":1e400' in found.events[0].text


def test_namespace_that_is_empty_is_none():
    found = Contents()
    found.take(0, line("{}", namespace='""'))
    found.take(1, (STATE % "1").replace('"name":"u"', '"name":"u","namespace":""').encode())
    assert (dict(found.records), found.events[0].stream) == ({(None, "u"): 1}, (None, "u"))
