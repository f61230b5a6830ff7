"""How deep JSON nests, by itself and in every place that decodes documents."""

import json
import sys

import msgspec
import pyarrow as pa
import pytest

from lakewriter.cast.json_text import LEVELS, cut_below, is_too_deep
from lakewriter.cast.strict_cast import explain_misfit
from lakewriter.documents.decoding import Documents
from lakewriter.documents.types import Items, Leaf, Record
from lakewriter.documents.values import COLLECTION, decode_nested_texts
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.shape.flattening import Flattener
from lakewriter.source.files.json_blocks import BlockReader, split_lines
from lakewriter.source.files.json_columns import Columns
from lakewriter.source.messages.contents import Contents
from lakewriter.source.messages.lines import parse_line
from lakewriter.spec.collection import Kind
from tests.shape.collections import flattened, planned


def objects(levels: int) -> str:
    return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)


def arrays(levels: int) -> str:
    return "[" * levels + "]" * levels


TEXTS = [
    # text, its levels
    ("1", 0), ('"[[["', 0), (r'"\"[["', 0), ("{}", 1), ("[[],[[]],{}]", 3), ('{"[":{"]":[]}}', 3), ("[{}]", 2),
    ('[{"a":[1,{"b":[]}]},[]]', 5), ("[" * 7 + "]" * 7, 7),
]  # fmt: skip


@pytest.mark.parametrize(("text", "levels"), TEXTS)
def test_levels(text, levels):
    """By themselves and below others: of a text with few brackets it is not asked."""
    for above in (0, 100):
        whole = "[" * above + text + "]" * above
        assert not is_too_deep(whole, above + levels)
        assert above + levels == 0 or is_too_deep(whole.encode(), above + levels - 1)


def test_many_brackets_are_not_deep():
    assert not is_too_deep("[" + ",".join(["[[]]"] * LEVELS * 3) + "]")
    assert not is_too_deep(json.dumps({"a": "[" * LEVELS * 3 + '"'}))
    assert is_too_deep("[" * 1_000_000)


OUTLINES = [
    ('{"a":{"b":[1,{"c":2}]},"d":"}"}', 1, '{"a":null,"d":"}"}'),
    ('{"a":{"b":[1,{"c":2}]},"d":[3]}', 2, '{"a":{"b":null},"d":[3]}'),
    ("[1]", 1, "[1]"),
]


@pytest.mark.parametrize(("text", "levels", "shown"), OUTLINES)
def test_outline(text, levels, shown):
    assert cut_below(text.encode(), levels) == shown.encode()


DOCUMENTS = [
    # a document with a value of so many levels at a place: what the schema names, and what it does not
    lambda value: f'{{"id":1,"tags":{value}}}',
    lambda value: f'{{"id":1,"unknown":{value}}}',
    lambda value: f'{{"id":1,"length":{{"unknown":{value}}}}}',
]


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("nested", [objects, arrays])
def test_deep_documents(document, nested):
    plan = planned({"properties": {"id": {"type": "integer"}, "tags": {}, "length": {"properties": {"new": {}}}}},
                   keys=("id",), include=("tags",))  # fmt: skip
    above = document("").count("{")
    text = document(nested(LEVELS - above))
    assert flattened(plan, text)[0]["id"] == 1
    # From deep inside other calls as well.
    assert _after_calls(800, lambda: flattened(plan, text))[0]["id"] == 1
    for levels in (LEVELS - above + 1, 5000, 20_000):
        with pytest.raises(ValueUnrepresentableError, match=r"row 1: .* nests more than 994 levels") as raised:
            flattened(plan, '{"id":0}', document(nested(levels)))
        assert not raised.value.transient


def test_deep_json_text_of_rows():
    """Rows whose column holds JSON text, opened as the schema has it or kept."""
    plan = planned({"properties": {"id": {"type": "integer"}}}, keys=("id",))
    with pytest.raises(ValueUnrepresentableError, match="nests more than"):
        Flattener(plan).shape(pa.record_batch([pa.array([objects(LEVELS + 1)])], names=["value"]))
    for kind, text in ((Kind.OBJECT, objects), (Kind.ARRAY, arrays)):
        assert decode_nested_texts(kind, pa.array([text(LEVELS)]), COLLECTION).array.to_pylist() == [text(LEVELS)]
        (fault,) = decode_nested_texts(kind, pa.array([text(LEVELS + 1)]), COLLECTION).faults
        assert "nests more than" in fault.message


def message(data: str) -> bytes:
    return f'{{"type":"RECORD","record":{{"stream":"u","namespace":"n","data":{data},"emitted_at":1}}}}'.encode()


def test_deep_records():
    data = f'{{"a":{arrays(LEVELS - 1)}}}'
    record = parse_line(message(data))
    assert record is not None
    typed = Record((("a", Items(Leaf(Kind.JSON))),))
    schema = pa.list_(pa.field("element", pa.string()))
    (column,) = Documents(pa.array([data])).build_columns(typed, [pa.field("a", schema)])
    assert column.to_pylist() == [[arrays(LEVELS - 2)]]
    for levels in (LEVELS, 20_000):
        found = Contents()
        assert found.parse(7, message(f'{{"a":{arrays(levels)}}}')) is None
        (event,) = found.events
        assert (event.kind, event.stream, event.position) == ("bad record", ("n", "u"), 7)
        assert "its data is refused: it nests more than 994 levels deep" in event.text


def test_deep_values_beside_what_has_to_be_mended():
    """What Python writes and JSON has not is found at every level."""
    data = '{"a":' * (LEVELS - 1) + "{}" + ',"b":NaN}' * (LEVELS - 1)
    found = Contents()
    taken = found.parse(0, message(data))
    assert taken is not None
    assert (found.mended, found.events) == (1, [])


@pytest.mark.parametrize("levels", [100, 20_000])
def test_deep_messages_of_other_kinds(levels):
    """A state is its stream's fault; what means nothing is counted."""
    found = Contents()
    descriptor = '"stream":{"stream_descriptor":{"name":"u"}}'
    found.take(0, f'{{"type":"STATE","state":{{"type":"STREAM",{descriptor},"x":{arrays(levels)}}}}}'.encode())
    found.take(1, f'{{"type":"LOG","log":{arrays(levels)}}}'.encode())
    found.take(2, arrays(levels).encode())
    kind = "state" if levels < LEVELS else "unreadable"
    assert [(event.kind, event.stream) for event in found.events] == [(kind, (None, "u"))]


def test_room_is_made_for_decoders():
    assert sys.getrecursionlimit() >= LEVELS * 4
    msgspec.json.decode(objects(LEVELS).encode())


def _after_calls(number, function):
    return function() if number == 0 else _after_calls(number - 1, function)


def read_line(text: str) -> str | None:
    """The fault of a line of a file with a declared column."""
    rows = BlockReader(Columns(pa.schema([("a", pa.string())]), frozenset("a"))).read(split_lines(text.encode()))
    return rows.faults[0].reason if rows.faults else None


def read_undeclared(text: str) -> str | None:
    """The fault of a line whose only key is no column."""
    rows = BlockReader(Columns(pa.schema([("b", pa.string())]), frozenset("b"))).read(split_lines(text.encode()))
    return rows.faults[0].reason if rows.faults else None


def read_declared_text(text: str) -> str | None:
    """The misfit of a text in a column that is declared as a map."""
    reason = explain_misfit(text, pa.map_(pa.string(), pa.string()))
    return reason if "levels" in reason else None


def read_document(text: str) -> str | None:
    """The error for a document of a collection."""
    try:
        flattened(planned({"properties": {"id": {"type": "integer"}, "a": {}}}, keys=("id",)), text[:-1] + ',"id":1}')
    except ValueUnrepresentableError as error:
        return str(error) if "levels" in str(error) else None
    return None


def read_record(text: str) -> str | None:
    """The event for a record in a message."""
    found = Contents()
    found.parse(0, message(text))
    return found.events[0].text if found.events else None


WAYS = [read_line, read_undeclared, read_declared_text, read_document, read_record]


@pytest.mark.parametrize("read", WAYS, ids=lambda read: read.__name__)
@pytest.mark.parametrize("nested", [objects, arrays])
def test_one_limit_for_all_ways(read, nested):
    assert read(f'{{"a":{nested(LEVELS - 1)}}}') is None
    for levels in (LEVELS, 5000, 100_000):
        reason = read(f'{{"a":{nested(levels)}}}')
        assert reason is not None
        assert "it nests more than 994 levels deep" in reason
