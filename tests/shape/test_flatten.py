"""Documents and the columns they become; what the vendor's document says of objects and arrays, then of types."""

import json
from datetime import UTC, date, datetime, time

import pyarrow as pa
import pytest

from lakewriter.documents.inference import collect_paths, merge_paths
from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError, ValueUnrepresentableError
from lakewriter.shape import flattening
from lakewriter.shape.flatten_plan import plan_flatten
from lakewriter.shape.flattening import Flattener
from tests.shape.collections import CHANGE, collection_table, flattened, planned

PUBLISHED = "C232AB00-9414-11EC-B3C8-9F6BDECED846"
"""RFC 9562's example of a UUID of version 1, A.1."""
STAMP = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
FLAT = {
    "id": 7,
    "bot": False,
    "length/new": 120,
    "length/old": 118,
    "log_params": '{"a":[1,2]}',
    "meta/id": "m-1",
    "meta/dt": STAMP,
    "revision/new": 9,
    "revision/old": 8,
    "title": 'Main "Page"',
}


def test_objects_are_flattened_and_arrays_left_out():
    plan = planned()
    assert flattened(plan, CHANGE) == [FLAT]
    assert plan.notes == ("left out: tags (array)",)


def test_documented_include_makes_json_strings():
    plan = planned(include=("length", "revision"))
    (row,) = flattened(plan, CHANGE)
    assert (row["length"], row["revision"]) == ('{"new":120,"old":118}', '{"new":9,"old":8}')
    assert not {name for name in row if name.startswith(("length/", "revision/"))}
    assert plan.notes == ("left out: tags (array)",)


SELECTIONS = [
    # the binding's fields, the columns
    ({"depth": 0}, ["meta/id"]),
    ({"depth": 0, "include": ("tags",)}, ["meta/id", "tags"]),
    ({"depth": 0, "include": ("length", "length/new")}, ["length", "length/new", "meta/id"]),
    ({"exclude": ("length", "title", "log_params", "revision")}, ["id", "bot", "meta/id", "meta/dt"]),
    (
        {"depth": 0, "include": ("size",), "projections": (("size", "/length/new"),)},
        ["size", "meta/id"],
    ),
    ({"depth": 1}, ["id", "bot", "log_params", "meta/id", "title"]),
    ({"separator": "_", "depth": 0, "include": ("length/old",)}, ["length_old", "meta_id"]),
]


@pytest.mark.parametrize(("selection", "columns"), SELECTIONS)
def test_selection(selection, columns):
    assert planned(**selection).schema.names == columns


def test_clashing_names_get_a_suffix():
    schema = {"properties": {"a_b": {"type": "integer"}, "a": {"properties": {"b": {"type": "integer"}}}}}
    assert planned(schema, keys=("a_b",), separator="_").schema.names == ["a_b", "a_b_1"]


def told(*documents, keys=("/id",), **selection):
    """The plan of documents without a schema, and their rows."""
    batches = [pa.record_batch([pa.array(documents, pa.string())], names=["value"])]
    table = collection_table(keys=keys, column="value", **selection)
    plan = plan_flatten(batches[0].schema, table, merge_paths("t", collect_paths(0, batches, 0)))
    return plan, Flattener(plan).shape(batches[0]).rows.to_pylist()


UNSEEN = [
    # what a batch without a schema may hold, the binding's fields, its rows
    (['{"id":1,"type":"log"}'], {"include": ("length",)}, [{"id": "1", "type": '"log"'}]),
    (['{"id":1,"length":null}'], {"include": ("length",)}, [{"id": "1"}]),
    (['{"id":1,"type":"log"}'], {"exclude": ("length",)}, [{"id": "1", "type": '"log"'}]),
    (['{"id":1}'], {"include": ("size",), "projections": (("size", "/length/new"),)}, [{"id": "1"}]),
    ([], {"include": ("length",), "exclude": ("type",)}, []),
]


@pytest.mark.parametrize(("documents", "selection", "rows"), UNSEEN)
def test_batches_may_lack_what_fields_name(documents, selection, rows):
    plan, found = told(*documents, **selection)
    assert found == rows
    assert [note.split(" (")[0] for note in plan.notes] == [f"left out: {n}" for n in selection.get("include", ())]


def test_a_note_names_what_a_misspelt_field_may_mean():
    plan, _ = told('{"id":1,"length":{"new":1}}', include=("lenght",))
    assert plan.notes == ("left out: lenght (in no document of this load; did you mean 'length'?)",)


UNSEEN_KEYS = [
    (['{"type":"log"}'], "field 'id', row 0: value null cannot be written as value: a key has a value always"),
    (['{"id":1}', '{"id":[1]}'], "field 'id', row 1: value null"),
    (['{"id":{"a":1}}'], "field 'id', row 0: value null"),
]


@pytest.mark.parametrize(("documents", "message"), UNSEEN_KEYS)
def test_documents_without_a_key(documents, message):
    with pytest.raises(ValueUnrepresentableError, match=message):
        told(*documents)


BAD_SELECTIONS = [
    ({"include": ("lenght",)}, "fields.include names 'lenght', which documents do not have; did you mean 'length'"),
    ({"exclude": ("meta/id",)}, "fields.exclude names 'meta/id', which is a key"),
    ({"keys": ("/meta/uuid",)}, "documents have no key '/meta/uuid'"),
    ({"keys": ("/length",)}, "key '/length' holds object"),
    ({"schema": {"properties": {"id": {"type": ["integer", "string"], "format": "integer"}}}, "keys": ("/id",)},
     "key '/id' holds mixed_integer"),
]  # fmt: skip


@pytest.mark.parametrize(("selection", "message"), BAD_SELECTIONS)
def test_bad_selection(selection, message):
    with pytest.raises(SpecInvalidError, match=message):
        planned(**selection)


VALUES = [
    # a property's schema, its JSON, its Arrow type and value
    ({"type": "integer"}, "12", pa.int64(), 12),
    ({"type": "integer"}, "1e3", pa.int64(), 1000),
    ({"type": "number"}, "12", pa.float64(), 12.0),
    ({"type": "boolean"}, "true", pa.bool_(), True),
    ({"type": "string"}, '"caf\\u00e9"', pa.string(), "café"),
    ({"type": "string", "format": "date"}, '"2024-02-29"', pa.date32(), date(2024, 2, 29)),
    ({"type": "string", "format": "date-time"}, '"2024-01-15T12:30:00+02:00"', pa.timestamp("us", "UTC"), STAMP),
    ({"type": "string", "format": "date-time"}, '"2024-01-15t10:30:00z"', pa.timestamp("us", "UTC"), STAMP),
    ({"type": "string", "format": "time"}, '"10:30:00.5Z"', pa.time64("us"), time(10, 30, 0, 500_000)),
    ({"type": "string", "format": "time"}, '"01:30:00+02:00"', pa.time64("us"), time(23, 30)),
    ({"type": "string", "format": "uuid"}, '"x"', pa.string(), "x"),
    ({"type": "string", "contentEncoding": "base64"}, '"AQI="', pa.binary(), b"\x01\x02"),
    ({"type": "string", "format": "integer"}, '"-12"', pa.int64(), -12),
    ({"type": "string", "format": "integer"}, '"-1.0"', pa.int64(), -1),
    ({"type": ["string", "integer"], "format": "integer"}, '"+2.00"', pa.int64(), 2),
    ({"type": "string", "format": "number"}, '"1.5"', pa.float64(), 1.5),
    ({"type": "string", "format": "number"}, '"-Infinity"', pa.float64(), float("-inf")),
    ({"type": "string", "format": "number"}, '".5e1"', pa.float64(), 5.0),
    ({"type": ["string", "integer"], "format": "integer"}, '"12"', pa.int64(), 12),
    ({"type": ["string", "integer"], "format": "integer"}, "12", pa.int64(), 12),
    ({"type": ["string", "number", "null"], "format": "number"}, '"1.5"', pa.float64(), 1.5),
    ({"type": ["string", "number", "null"], "format": "number"}, "2", pa.float64(), 2.0),
    ({"type": ["string", "integer"]}, '"a"', pa.string(), '"a"'),
    ({"type": ["string", "integer"]}, "1.10", pa.string(), "1.10"),
    ({"type": ["object", "string"], "properties": {"b": {}}}, '{ "b" : 1e400 }', pa.string(), '{"b":1e400}'),
    ({"type": "integer"}, "null", pa.int64(), None),
    ({"type": ["string", "integer"]}, "null", pa.string(), None),
]


@pytest.mark.parametrize(("schema", "text", "kind", "value"), VALUES)
def test_value(schema, text, kind, value):
    plan = planned({"properties": {"id": {"type": "integer"}, "v": schema}}, keys=("id",))
    assert plan.schema.field("v").type == kind
    rows = flattened(plan, f'{{"id": 1, "v": {text}}}', '{"id": 2}')
    assert rows == [{"id": 1, "v": value}, {"id": 2, "v": None}]


AS_TEXT = [
    # what a property is declared as, its JSON, its text
    ({"type": "integer"}, "12", "12"),
    ({"type": "number"}, "1.10", "1.10"),
    ({"type": "boolean"}, "true", "true"),
    ({"type": "string"}, '"caf\\u00e9"', "café"),
    ({"type": "string", "format": "date-time"}, '"0000-01-01T00:00:00Z"', "0000-01-01T00:00:00Z"),
    ({"type": ["string", "integer"]}, '"a"', "a"),
    ({"type": ["string", "integer"]}, "1e2", "1e2"),
    ({"type": "array"}, '[1, "a"]', '[1,"a"]'),
    ({"properties": {"b": {}}}, '{ "b" : 1e400 }', '{"b":1e400}'),
    ({"type": "integer"}, "null", None),
]


@pytest.mark.parametrize(("schema", "text", "value"), AS_TEXT)
def test_as_text(schema, text, value):
    """``castToString``: a string as it is, anything else as JSON text."""
    plan = planned(
        {"properties": {"id": {"type": "integer"}, "v": schema}}, keys=("id",), include=("v",), as_text=("v",)
    )
    assert plan.schema.field("v").type == pa.string()
    assert flattened(plan, f'{{"id": 1, "v": {text}}}', '{"id": 2}') == [{"id": 1, "v": value}, {"id": 2, "v": None}]


def test_key_as_text():
    plan = planned({"properties": {"id": {"type": "integer"}}}, keys=("id",), include=("id",), as_text=("id",))
    assert flattened(plan, '{"id": 1}') == [{"id": "1"}]


def test_as_text_without_a_schema():
    table = collection_table(keys=("id",), column="value", include=("v", "w"), as_text=("v",))
    documents = ['{"id": 1, "v": "a", "w": "b"}', '{"id": 2, "v": 1.0, "w": [1, 2]}']
    batch = pa.record_batch([pa.array(documents)], names=["value"])
    plan = plan_flatten(batch.schema, table, merge_paths("t", collect_paths(0, [batch], 0)))
    assert flattened(plan, *documents) == [{"id": "1", "v": "a", "w": '"b"'}, {"id": "2", "v": "1.0", "w": "[1,2]"}]


BAD_VALUES = [
    ({"type": "integer"}, '"a"', "field 'v', row 1: value \"a\" cannot be written as integer"),
    ({"type": "integer"}, "9223372036854775808", "not a whole number of 64 bits"),
    ({"type": "integer"}, "1.5", "not a whole number of 64 bits"),
    ({"type": "number"}, "1e400", "cannot be written as number"),
    ({"type": "string"}, "1", "cannot be written as string"),
    ({"type": "string", "format": "date-time"}, '"2024-01-15T10:30:00"', "not an RFC 3339 timestamp with an offset"),
    ({"type": "string", "format": "date"}, '"2024-02-30"', "cannot be written as date"),
    ({"type": "string", "format": "time"}, '"noon"', "not an RFC 3339 time"),
    ({"type": "string", "format": "time"}, '"10:00:00+99:99"', "not an RFC 3339 time"),
    ({"type": "string", "format": "date-time"}, '"2024-01-15T10:30:00+99:99"', "not an RFC 3339 timestamp"),
    ({"type": ["string", "integer"], "format": "integer"}, '"a"', "not a whole number of digits 0 to 9"),
    ({"type": ["string", "integer"], "format": "integer"}, "1.5", "not a whole number of 64 bits"),
    ({"type": "string", "format": "integer"}, '"1.5"', "not a whole number of digits 0 to 9"),
    ({"type": "string", "format": "integer"}, '"1."', "not a whole number of digits 0 to 9"),
    *[
        ({"type": "string", "format": "date-time"}, f'"{text}"', "it is outside the years 1 to 9999")
        for text in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
    ],
    ({"type": "string", "format": "date-time"}, '"0000-01-01T00:00:00Z"', "cannot be written as timestamp"),
    ({"type": "string", "contentEncoding": "base64"}, '"%"', "cannot be written as binary"),
    ({"properties": {"b": {"type": "integer"}}}, "1", "'v' holds 1, expected an object"),
]


@pytest.mark.parametrize(("schema", "text", "message"), BAD_VALUES)
def test_bad_value(schema, text, message):
    plan = planned({"properties": {"id": {"type": "integer"}, "v": schema}}, keys=("id",))
    with pytest.raises(ValueUnrepresentableError, match=message):
        flattened(plan, '{"id": 1}', f'{{"id": 2, "v": {text}}}')


ODD_TEXTS = [
    # a format, what Arrow or Python alone would read; a text that is read in every batch
    ("integer", "0x1F", "1"), ("integer", "1_0", "1"), ("integer", " 1", "+1"), ("integer", "\u0661", "1"),
    ("number", "1e400", "1"), ("number", "inf", "Infinity"), ("number", "1_0.5", "1."), ("number", "0x1p3", ".5"),
    ("date", "2024-1-5", "2024-01-05"), ("date", "20240105", "2024-01-05"),
    ("date-time", "2024-01-15T10:30Z", "2024-01-15t10:30:00z"),
    ("date-time", "2024-01-15 10:30:00+02", "2024-01-15 10:30:00+02:00"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "odd", "text"), ODD_TEXTS)
def test_a_text_is_refused_whatever_its_neighbours_are(name, odd, text):
    schema = {"properties": {"id": {"type": "integer"}, "v": {"type": "string", "format": name}}}
    plan = planned(schema, keys=("id",))
    for neighbours in ((), ({"id": 1, "v": text},)):
        with pytest.raises(ValueUnrepresentableError, match=f"row {len(neighbours)}: value"):
            flattened(plan, *neighbours, {"id": 2, "v": odd})
    assert flattened(plan, {"id": 1, "v": text})


@pytest.mark.parametrize("text", ["[]", "{", "", '{"a":1},{"a":2}', "null"])
def test_what_is_no_document(text):
    with pytest.raises(ValueUnrepresentableError, match=r"row 1: expected a JSON object, got"):
        flattened(planned(), CHANGE, text)


def test_a_key_has_a_value():
    with pytest.raises(ValueUnrepresentableError, match="field 'meta/id', row 1: value null"):
        flattened(planned(), CHANGE, CHANGE | {"meta": {}})


def test_nanoseconds_are_cut_and_counted():
    schema = {"properties": {"at": {"type": "string", "format": "date-time"}, "id": {"type": "integer"}}}
    flattener = Flattener(planned(schema, keys=("id",)))
    texts = ['{"id":1,"at":"2024-01-15T10:30:00.1234567Z"}', '{"id":2,"at":"2024-01-15T10:30:00.1234560Z"}']
    shaped = flattener.shape(pa.record_batch([pa.array(texts)], names=["value"])).rows
    assert shaped.column(0).to_pylist() == [STAMP.replace(microsecond=123456)] * 2
    assert (flattener.take_findings().changes, flattener.take_findings().changes) == (1, 0)


TWICE = [
    # a document as it is written, its title, the keys that come again
    ('{"meta":{"id":"m"},"title":"a","title":"b"}', "b", {"title": 1}),
    ('{ "meta" : {"id": "m"}, "title": "a", "title": "é" }', "é", {"title": 1}),
    ('{"meta":{"id":"m","id":"m"},"title":"a"}', "a", {"meta/id": 1}),
    ('{"meta": {"id": "m"}, "title": "é \\" {", "tags": [{"a": 1, "a": 2}]}', 'é " {', {}),
    # What stays JSON text has both.
    ('{"meta":{"id":"m"},"title":"a","log_params":{"a":1,"a":2}}', "a", {}),
]


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
@pytest.mark.parametrize(("text", "title", "keys"), TWICE)
def test_keys_that_come_again_are_counted(text, title, keys, kind):
    flattener = Flattener(planned())
    texts = pa.array([text.encode()], pa.binary()).cast(kind)
    row = flattener.shape(pa.record_batch([texts], names=["value"])).rows.to_pylist()[0]
    found = flattener.take_findings()
    assert row["title"] == title
    assert found.changed == {(key, "TRUNCATED", "SOURCE_SERIALIZATION_ERROR"): count for key, count in keys.items()}
    assert (found.changes, flattener.take_findings().changed) == (len(keys), {})


def test_inference_of_endless_properties():
    text = "{" + ",".join(f'"k{number}": 1' for number in range(2001)) + "}"
    with pytest.raises(SchemaIncompatibleError, match="more than 2000 properties"):
        merge_paths("t", collect_paths(0, [pa.record_batch([pa.array([text])], names=["value"])], 0))


ID = {"id": {"type": "integer"}}
UNDECLARED = [
    # the schema's properties, the selection, a document besides its id, what is counted
    (ID, {}, {"vip": True, "age": None}, {"vip": 1}),
    (ID, {}, {"_meta": {"uuid": "x", "op": "c"}}, {}),
    # The platform's object is its own, also where a field is read from it; what a schema says of it counts.
    (ID, {"include": ("flow_published_at",)}, {"_meta": {"uuid": PUBLISHED, "op": "c"}}, {}),
    (
        ID | {"_meta": {"properties": {"op": {"type": "string"}}}},
        {},
        {"_meta": {"uuid": "x", "op": "c", "before": 1}},
        {"_meta/before": 1},
    ),
    (ID | {"a": {"properties": {"b": {"type": "integer"}}}}, {}, {"a": {"b": 1, "c": [1]}}, {"a/c": 1}),
]


@pytest.mark.parametrize(("properties", "selection", "document", "counts"), UNDECLARED)
def test_properties_that_the_schema_does_not_name_are_counted(properties, selection, document, counts):
    shaper = Flattener(planned({"properties": properties}, keys=("id",), **selection))
    shaper.shape(pa.record_batch([pa.array([json.dumps({"id": 1} | document)])], names=["value"]))
    assert shaper.take_findings().undeclared == counts


def test_documents_with_ever_new_names_do_not_fill_a_receipt(monkeypatch):
    monkeypatch.setattr(flattening, "MOST_NAMED", 2)
    shaper = Flattener(planned({"properties": ID}, keys=("id",)))
    for number in range(5):
        text = json.dumps({"id": number, f"k{number}": 1, "k0": 1})
        shaper.shape(pa.record_batch([pa.array([text])], names=["value"]))
    assert shaper.take_findings().undeclared == {"k0": 5, "k1": 1, "(others)": 3}
