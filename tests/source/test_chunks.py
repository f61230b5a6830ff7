"""Messages from a pipe: whole lines as they come, and the same messages as line by line."""

import pytest

from lakewriter.source.messages.chunks import Records, parse_chunk, read_chunks
from lakewriter.source.messages.contents import Contents

SOUND = b'{"type":"RECORD","record":{"stream":"a","data":{"x":1}}}'
STATE = b'{"type":"STATE","state":{"type":"LEGACY","data":{}}}'
DEEP = b'{"type":"RECORD","record":{"stream":"a","data":{"x":' + b"[" * 994 + b"]" * 994 + b"}}}"

# (what is read each time, the chunks with their places)
READS = [
    ([], []),
    ([b"a\n"], [(0, b"a\n")]),
    ([b"a\nb"], [(0, b"a\n"), (2, b"b")]),
    ([b"a", b"b", b"\nc\nd", b"\n"], [(0, b"ab\nc\n"), (5, b"d\n")]),
    ([b"\n", b"\n"], [(0, b"\n"), (1, b"\n")]),
]


@pytest.mark.parametrize(("blocks", "chunks"), READS)
def test_whole_lines_as_they_come(blocks, chunks):
    left = [*blocks, b""]
    assert list(read_chunks(lambda _: left.pop(0))) == chunks


LINES = [
    [SOUND, STATE, SOUND],
    [SOUND, b"", SOUND],
    [SOUND, b"starting up", SOUND],
    [SOUND, b'{"type":"RECORD","record":{"stream":"a","data":[1]}}'],
    [SOUND, b'{"type":"RECORD","record":{"stream":"a","data":{"x":NaN}}}'],
    [SOUND, b'{"type":"RECORD","record":{"stream":"a","data":{"x":"\xff"}}}', STATE],
    [SOUND, b'{"type":"RECORD"}'],
    [SOUND + SOUND, SOUND],
    [b'{"type":', b'"LOG"}'],
    [SOUND, DEEP],
    [SOUND, SOUND[:-1]],
]


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("end", [b"\n", b""])
def test_messages_are_those_of_the_lines(lines, end):
    together, apart = Contents(), Contents()
    found = [each for part in parse_chunk(7, b"\n".join(lines) + end, together) for each in told(part)]
    place, expected = 7, list[object]()
    for line in lines:
        message = apart.parse(place, line)
        record = message.record if message else None
        expected.append((record.key, bytes(record.data)) if record else message and message.type)
        place += len(line) + 1
    assert found[: len(lines)] == expected
    assert not any(found[len(lines) :])
    assert (together.malformed, together.samples, together.mended) == (apart.malformed, apart.samples, apart.mended)
    assert together.is_cut is apart.is_cut
    assert [event.position for event in together.events] == [event.position for event in apart.events]


def told(part):
    if isinstance(part, Records):
        return [(part.key, data) for data in part.data]
    return [part.message and part.message.type]


def list_places(part):
    return part.positions if isinstance(part, Records) else [part.position]


def test_records_are_together_up_to_the_next_stream_or_message():
    texts = [b'{"type":"RECORD","record":{"stream":"%s","data":{"x":%d},"emitted_at":%d,"meta":{"changes":[]}}}' % each
             for each in ((b"a", 1, 10), (b"a", 2, 20), (b"b", 3, 30), (b"a", 4, 40))]  # fmt: skip
    parts = list(parse_chunk(0, b"\n".join([*texts[:3], STATE, texts[3]]), Contents()))
    assert [list_places(part) for part in parts] == [[0, 1], [2], [3], [4]]
    assert isinstance(parts[0], Records)
    assert (parts[0].key, parts[0].emitted_at, parts[0].changes) == ((None, "a"), [10, 20], [b"[]", b"[]"])


def test_places_grow_from_chunk_to_chunk():
    contents, places = Contents(), []
    for place, chunk in ((0, SOUND + b"\n" + STATE + b"\n"), (len(SOUND) + len(STATE) + 2, b"odd\n" + SOUND)):
        places += [at for part in parse_chunk(place, chunk, contents) for at in list_places(part)]
    assert places == sorted(set(places))
    assert contents.last_line == places[-1]
