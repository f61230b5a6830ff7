"""Rows of a source as documents: structs, maps and text that hold objects, and types that a schema lays over them."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError, ValueUnrepresentableError
from lakewriter.shape.flatten_plan import plan_flatten
from lakewriter.shape.flattening import Flattener
from lakewriter.spec.table_spec import Read
from tests.shape.collections import collection_table

STAMP = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
PAIR = pa.struct([("new", pa.int32()), ("old", pa.int32())])
ROWS = pa.schema(
    [
        ("id", pa.string()),
        ("length", PAIR),
        ("tags", pa.list_(pa.string())),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us")),
        ("ratio", pa.float32()),
        ("void", pa.null()),
        ("labels", pa.map_(pa.string(), pa.int32())),
    ]
)
ROW = {
    "id": "a",
    "length": {"new": 1, "old": None},
    "tags": ["x", None],
    "price": Decimal("1.50"),
    "at": datetime(2024, 1, 15),
    "ratio": 0.5,
    "void": None,
    "labels": [("k", 1)],
}


def rows_of(plan, *rows):
    return Flattener(plan).shape(pa.RecordBatch.from_pylist(list(rows), schema=ROWS)).rows.to_pylist()


def test_rows_are_documents_too():
    plan = plan_flatten(ROWS, collection_table(keys=("id",)))
    types = {"length/new": pa.int64(), "price": pa.decimal128(10, 2), "ratio": pa.float64(), "at": pa.timestamp("us")}
    assert {name: plan.schema.field(name).type for name in types} == types
    assert plan.notes == ("left out: tags (array)", "left out: labels (map)")
    assert plan.left_out == ("void",)
    assert rows_of(plan, ROW, ROW | {"length": None})[1]["length/new"] is None


def test_rows_included_as_json():
    plan = plan_flatten(ROWS, collection_table(keys=("id",), include=("length", "tags", "labels"), depth=0))
    (row,) = rows_of(plan, ROW)
    assert row == {"id": "a", "length": '{"new":1}', "tags": '["x",null]', "labels": '{"k":1}'}


def test_rows_as_text():
    names = ("length", "price", "ratio", "at", "id")
    plan = plan_flatten(ROWS, collection_table(keys=("id",), include=names, as_text=names, depth=0))
    (row,) = rows_of(plan, ROW)
    assert row == {
        "id": "a", "length": '{"new":1}', "price": "1.50", "ratio": "0.5", "at": "2024-01-15T00:00:00.000000",
    }  # fmt: skip


COLUMNS = [
    # what is read; whether its columns may be others tomorrow
    (Read(format="json", path="a.json"), True),
    (Read(format="json", path="a.json", columns="id STRING"), False),
    (Read(format="parquet", path="a"), False),
]


@pytest.mark.parametrize(("read", "guessed"), COLUMNS)
def test_rows_may_lack_fields_where_spark_guesses_the_columns(read, guessed):
    table = collection_table(keys=("id",), include=("size",), depth=0).model_copy(update={"read": read})
    if guessed:
        assert plan_flatten(ROWS, table).notes[0] == "left out: size (in no document of this load)"
    else:
        with pytest.raises(SpecInvalidError, match=r"fields\.include names 'size'"):
            plan_flatten(ROWS, table)


def test_rows_with_a_schema_take_its_types():
    source = pa.schema([("id", pa.int32()), ("at", pa.string())])
    schema = {"properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}, "x": {}}}
    more = {"late": {"type": "string"}}
    table = collection_table(keys=("id",), schema={"properties": schema["properties"] | more})
    batch = pa.RecordBatch.from_pylist([{"id": 1, "at": "2024-01-15T10:30:00Z"}], schema=source)
    shaped = Flattener(plan_flatten(source, table)).shape(batch).rows
    assert shaped.to_pylist() == [{"id": 1, "at": STAMP, "late": None}]
    assert shaped.schema.types == [pa.int64(), pa.timestamp("us", "UTC"), pa.string()]


def test_rows_that_contradict_the_schema():
    table = collection_table(keys=("id",), schema={"properties": {"id": {"type": "boolean"}}})
    with pytest.raises(SchemaIncompatibleError, match="'id' is 'int64' in the source, and boolean"):
        plan_flatten(pa.schema([("id", pa.int64())]), table)


HELD = {"type": "object", "properties": {"new": {"type": "integer"}, "at": {"type": "string", "format": "date"}}}
TEXT_MAP, TEXT = pa.map_(pa.string(), pa.string()), pa.string()
HOLDERS = [
    # the source's type, its values, the values of length/new
    (pa.map_(pa.string(), pa.int64()), [[("new", 120)], [("old", 1)], None], [120, None, None]),
    (pa.struct([("new", TEXT)]), [{"new": "120"}, None], [120, None]),
    (TEXT, ['{"new":120}', " {} ", "null", None], [120, None, None, None]),
    (pa.dictionary(pa.int8(), TEXT), ['{"new":120}', None], [120, None]),
    (pa.null(), [None], [None]),
    (pa.struct([("old", pa.int64())]), [{"old": 1}], [None]),
]


def held(t, values, schema=HELD, **selection):
    """The rows of a source whose column ``length`` is an object in the schema."""
    source = pa.schema([("id", pa.int64()), ("length", t)])
    table = collection_table(
        keys=("id",), schema={"properties": {"id": {"type": "integer"}, "length": schema}}, **selection
    )
    batch = pa.record_batch([pa.array(range(len(values))), pa.array(values, t)], schema=source)
    return Flattener(plan_flatten(source, table)).shape(batch).rows.to_pylist()


@pytest.mark.parametrize(("t", "values", "found"), HOLDERS)
def test_objects_of_the_schema_are_found_in_maps_and_text(t, values, found):
    properties = {"new": {"type": "integer"}}
    rows = held(t, values, {"type": "object", "properties": properties})
    assert [row["length/new"] for row in rows] == found
    sliced = held(t, [values[0], *values], {"type": "object", "properties": properties})[1:]
    assert [row["length/new"] for row in sliced] == found


def test_text_inside_a_map_inside_a_struct():
    t = pa.struct([("m", pa.map_(TEXT, TEXT))])
    inner = {"type": "object", "properties": {"k": HELD}}
    rows = held(t, [{"m": [("k", '{"at":"2024-01-15","new":1}')]}], {"properties": {"m": inner}})
    assert rows == [{"id": 0, "length/m/k/new": 1, "length/m/k/at": date(2024, 1, 15)}]


INCLUDED = [
    # the schema's type, the source's, its value, the JSON text
    (HELD, TEXT, ' {"new": 1.10} ', '{"new":1.10}'),
    (HELD, pa.map_(TEXT, pa.int64()), [("new", 1)], '{"new":1}'),
    ({"type": "array"}, TEXT, "[1, 2]", "[1,2]"),
    ({"type": "object"}, TEXT, '{"a": null}', '{"a":null}'),
    ({"type": "array"}, pa.list_(pa.int64()), [1], "[1]"),
    ({"type": ["object", "string"]}, TEXT, "{}", '"{}"'),
    ({}, pa.int64(), 1, "1"),
]


@pytest.mark.parametrize(("schema", "t", "value", "text"), INCLUDED)
def test_included_objects_are_json_once(schema, t, value, text):
    assert held(t, [value, None], schema, include=("length",)) == [{"id": 0, "length": text}, {"id": 1, "length": None}]


TEXTS_THAT_HOLD_NOTHING = [
    ("[1]", {}, "row 0: 'length' holds \\[1\\], expected an object"),
    ("", {}, "row 0: 'length' holds , expected an object"),
    ("[1]", {"include": ("length",)}, "field 'length', row 0: value \\[1\\] cannot be written as object"),
    ("x", {"include": ("length",)}, "it is not JSON text of one"),
]


@pytest.mark.parametrize(("text", "selection", "message"), TEXTS_THAT_HOLD_NOTHING)
def test_text_that_is_no_object(text, selection, message):
    with pytest.raises(ValueUnrepresentableError, match=message):
        held(TEXT, [text], **selection)


@pytest.mark.parametrize("t", [pa.int64(), pa.list_(pa.int64()), pa.binary(), pa.map_(pa.int64(), pa.int64())])
def test_sources_that_hold_no_object(t):
    with pytest.raises(
        SchemaIncompatibleError, match=f"'length' is '{re.escape(str(t))}' in the source, and an object"
    ):
        held(t, [])


@pytest.mark.parametrize("t", [pa.int64(), pa.list_(pa.int64()), pa.binary()])
def test_sources_that_are_no_included_object(t):
    with pytest.raises(SchemaIncompatibleError, match=f"'{re.escape(str(t))}' in the source, and object"):
        held(t, [], include=("length",))


SCALARS_IN_TEXT = [
    ({"type": "integer"}, "12", 12),
    ({"type": "number"}, "1e3", 1000.0),
    ({"type": "boolean"}, "true", True),
]


@pytest.mark.parametrize(("schema", "text", "value"), SCALARS_IN_TEXT)
def test_text_is_read_as_the_type_of_the_schema(schema, text, value):
    assert held(TEXT, [text], schema) == [{"id": 0, "length": value}]
    with pytest.raises(ValueUnrepresentableError, match="field 'length', row 0: value x"):
        held(TEXT, ["x"], schema)
