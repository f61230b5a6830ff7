"""Columns with a type that Parquet has and Arrow has not, and the time at which a document was published."""

import struct
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakewriter.documents.inference import collect_paths, merge_paths
from lakewriter.documents.types import LOGICAL_TYPE
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.shape.flatten_plan import plan_flatten
from lakewriter.shape.flattening import Flattener
from tests.shape.collections import collection_table, flattened, planned

LOGICAL_TYPES = [
    # what a property is declared as, its JSON, the column's Parquet type, its value; the connector's writer:
    # https://github.com/estuary/connectors/blob/main/go/writer/parquet_schema.go
    ({"type": "array"}, "[1]", b"json", "[1]"),
    ({"type": "object"}, '{"a": 1}', b"json", '{"a":1}'),
    ({"type": ["string", "integer"]}, '"a"', b"json", '"a"'),
    ({}, "true", b"json", "true"),
    ({"type": "string"}, '"a"', None, "a"),
    ({"type": "string", "format": "duration"}, '"P1Y2M3W4DT5H6M7.891S"', b"interval", (14, 25, 18_367_891)),
    ({"type": "string", "format": "duration"}, '"P2W"', b"interval", (0, 14, 0)),
    ({"type": "string", "format": "duration"}, '"PT0.1239S"', b"interval", (0, 0, 123)),
    ({"type": "string", "format": "duration"}, "null", b"interval", None),
]


@pytest.mark.parametrize(("schema", "text", "logical_type", "value"), LOGICAL_TYPES)
def test_logical_types(schema, text, logical_type, value):
    asked = {"include": ("v",), "logical_types": frozenset({"json", "interval"})}
    plan = planned({"properties": {"id": {"type": "integer"}, "v": schema}}, keys=("id",), **asked)
    assert (plan.schema.field("v").metadata or {}).get(LOGICAL_TYPE) == logical_type
    if isinstance(value, tuple):
        value = struct.pack("<III", *value)
    assert flattened(plan, f'{{"id": 1, "v": {text}}}') == [{"id": 1, "v": value}]


@pytest.mark.parametrize("schema", [{"type": "array"}, {"type": "string", "format": "duration"}])
def test_strings_where_no_logical_type_is_asked_for(schema):
    plan = planned({"properties": {"id": {"type": "integer"}, "v": schema}}, keys=("id",), include=("v",))
    assert (plan.schema.field("v").type, plan.schema.field("v").metadata) == (pa.string(), None)


NO_DURATIONS = ["P", "PT", "P1DT", "1D", "P-1D", "-P1D", "P1H", "P1.5D", "PT1S1M", "P4294967296M", "PT4294967296S"]


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_no_duration(text):
    schema = {"properties": {"id": {"type": "integer"}, "v": {"type": "string", "format": "duration"}}}
    plan = planned(schema, keys=("id",), logical_types=frozenset({"interval"}))
    with pytest.raises(ValueUnrepresentableError, match=r"field 'v', row 0: value .* cannot be written as duration"):
        flattened(plan, {"id": 1, "v": text})


# The first is RFC 9562's own example of a UUID of version 1, A.1: Tuesday, February 22, 2022 2:22:22.00 PM GMT-05:00.
PUBLISHED = [
    ("C232AB00-9414-11EC-B3C8-9F6BDECED846", "2022-02-22T19:22:22.000000"),
    ("c232ab07-9414-11ec-b3c8-9f6bdeced846", "2022-02-22T19:22:22.000000"),
    ("c232ab0a-9414-11ec-b3c8-9f6bdeced846", "2022-02-22T19:22:22.000001"),
]


@pytest.mark.parametrize(("uuid", "published"), PUBLISHED)
@pytest.mark.parametrize(
    ("schema", "selection", "names"),
    [
        # The schema need not name the UUID, which the platform adds; where it does, that has its own column.
        ({}, {"include": ("flow_published_at",)}, ["id", "flow_published_at"]),
        ({}, {"projections": (("flow_published_at", "/_meta/uuid"),)}, ["id", "flow_published_at"]),
        (
            {"_meta": {"properties": {"uuid": {"type": "string"}}}},
            {"include": ("flow_published_at",)},
            ["id", "_meta/uuid", "flow_published_at"],
        ),
    ],
)
def test_when_a_document_was_published(uuid, published, schema, selection, names):
    plan = planned({"properties": {"id": {"type": "integer"}} | schema}, keys=("id",), **selection)
    assert plan.schema.names == names
    assert plan.schema.field("flow_published_at").type == pa.timestamp("us", tz="UTC")
    rows = flattened(plan, {"id": 1, "_meta": {"uuid": uuid}}, {"id": 2})
    at = datetime.fromisoformat(published).replace(tzinfo=UTC)
    assert [row["flow_published_at"] for row in rows] == [at, None]


def test_published_in_rows():
    schema = pa.schema([("id", pa.int64()), ("_meta", pa.struct([("uuid", pa.string())]))])
    plan = plan_flatten(schema, collection_table(keys=("id",), include=("flow_published_at",)))
    rows = pa.RecordBatch.from_pylist([{"id": 1, "_meta": {"uuid": PUBLISHED[0][0]}}], schema=schema)
    (row,) = Flattener(plan).shape(rows).rows.to_pylist()
    assert row["flow_published_at"] == datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)


def test_published_without_a_schema():
    table = collection_table(keys=("id",), column="value", include=("flow_published_at",))
    documents = [f'{{"id": 1, "_meta": {{"uuid": "{PUBLISHED[0][0]}"}}}}']
    batch = pa.record_batch([pa.array(documents)], names=["value"])
    seen = merge_paths("t", collect_paths(0, [batch], 0))
    plan = plan_flatten(batch.schema, table, seen)
    assert plan.schema.names == ["id", "_meta/uuid", "flow_published_at"]
    again = plan_flatten(batch.schema, table, seen, plan.inferred or ())
    assert (again.schema, again.inferred) == (plan.schema, plan.inferred)
    at = datetime(2022, 2, 22, 19, 22, 22, tzinfo=UTC)
    assert flattened(again, *documents) == [{"id": "1", "_meta/uuid": f'"{PUBLISHED[0][0]}"', "flow_published_at": at}]


@pytest.mark.parametrize("uuid", ["x", "", "9f3b4c1e-8e52-4c5e-a1a0-3b1c0c7f6a11"])
def test_no_published(uuid):
    plan = planned({"properties": {"id": {"type": "integer"}}}, keys=("id",), include=("flow_published_at",))
    with pytest.raises(ValueUnrepresentableError, match=r"field '_meta/uuid', row 0: .* it is not a UUID"):
        flattened(plan, {"id": 1, "_meta": {"uuid": uuid}})


def test_published_may_be_excluded_and_a_property_may_have_its_name():
    schema = {"properties": {"id": {"type": "integer"}, "flow_published_at": {"type": "string"}}}
    plan = planned(schema, keys=("id",), include=("flow_published_at",))
    assert flattened(plan, {"id": 1, "flow_published_at": "a"}) == [{"id": 1, "flow_published_at": "a"}]
    plan = planned({"properties": {"id": {"type": "integer"}}}, keys=("id",), exclude=("flow_published_at",))
    assert plan.schema.names == ["id"]
