"""The ``changes`` of a record as Airbyte's S3 destination writes them: reasons, paths, and which parts are required.

The expectations are those of the vendor's own tests, of which each row names one: AirbyteValueDeepCoercingMapperTest
and NullOutOfRangeIntegersTest in airbyte-cdk/bulk, and AirbyteTypeToAirbyteTypeWithMeta for what is required.
"""

import io
import json
from typing import Any

import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest

from lakewriter.spec.encodings import AvroEncoding, ParquetEncoding
from tests.shape.enveloped import ENVELOPE, plan, shaped, written

NO_FIT, TOO_LARGE = "DESTINATION_SERIALIZATION_ERROR", "DESTINATION_FIELD_SIZE_LIMITATION"
INTEGER = {"type": "integer"}
MOMENT = {"type": "string", "format": "date-time"}
CHANGES = [
    # schema of the record's properties, the record, its changes: field and reason, all of them NULLED
    # testCoerceNestedValueRecursing
    ({"sub_object": {"type": "object", "properties": {"timestamptz": MOMENT}},
      "sub_array": {"type": "array", "items": INTEGER}},
     {"sub_object": {"undeclared": 42, "timestamptz": "invalid"}, "sub_array": ["invalid"]},
     [("sub_object.timestamptz", NO_FIT), ("sub_array.[0]", NO_FIT)]),
    # the same rule of paths in arrays of arrays and of objects
    ({"a": {"type": "array", "items": {"type": "array", "items": INTEGER}}}, {"a": [[1], [2, "x"]]},
     [("a.[1].[1]", NO_FIT)]),
    ({"a": {"type": "array", "items": {"type": "object", "properties": {"b": MOMENT}}}}, {"a": [{}, {"b": "x"}]},
     [("a.[1].b", NO_FIT)]),
    # NullOutOfRangeIntegersTest.testDefaultBehavior
    ({"integer": INTEGER, "big_integer": INTEGER}, {"integer": 150, "big_integer": 123456789012345678901234567890},
     [("big_integer", TOO_LARGE)]),
    # testCoerceWrongTypeReturnsNull, testCoerceInvalidStringReturnsNull
    ({"at": MOMENT}, {"at": 12345}, [("at", NO_FIT)]),
    ({"at": MOMENT}, {"at": "not-a-timestamp"}, [("at", NO_FIT)]),
    # coerceBoolean, coerceArray and coerceObject take values of their own type alone
    ({"yes": {"type": "boolean"}, "list": {"type": "array", "items": INTEGER},
      "object": {"type": "object", "properties": {"a": INTEGER}}},
     {"yes": "true", "list": {}, "object": []}, [("yes", NO_FIT), ("list", NO_FIT), ("object", NO_FIT)]),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "record", "expected"), CHANGES)
def test_changes_are_those_of_the_vendor(properties, record, expected):
    batch, _ = shaped(plan({"properties": properties}), json.dumps(record))
    changes = batch.to_pylist()[0]["_meta"]["changes"]
    assert changes == [{"field": path, "change": "NULLED", "reason": reason} for path, reason in expected]


TWICE = [
    # schema of the record's properties, the record as it is written, its values, the fields of the changes
    ({"a": INTEGER}, '{"a":1,"a":2}', {"a": 2}, ["a"]),
    ({"a": INTEGER}, '{"a":1,"\\u0061":2}', {"a": 2}, ["a"]),
    ({"a": INTEGER, "b": INTEGER}, '{ "a" : 1, "b" : 3, "a":2 }', {"a": 2, "b": 3}, ["a"]),
    ({"a": INTEGER}, '{"a":1,"a":2,"a":3}', {"a": 3}, ["a"]),
    ({"é": INTEGER}, '{"é":1,"é":2}', {"e": 2}, ["é"]),
    ({"é": INTEGER}, '{"é":1}', {"e": 1}, []),
    ({"a": INTEGER}, '{"a":12345678901234567890123e999999}', {"a": None}, []),
    ({"o": {"properties": {"a": INTEGER}}}, '{"o":{"a":1,"a":2}}', {"o": {"a": 2}}, ["o.a"]),
    ({"l": {"type": "array", "items": {"properties": {"a": INTEGER}}}}, '{"l":[{"a":1},{"a":1,"a":2}]}',
     {"l": [{"a": 1}, {"a": 2}]}, ["l.[1].a"]),
    # What stays JSON text has both.
    ({"o": {"type": "object"}}, '{"o":{"a":1,"a":2}}', {"o": '{"a":1,"a":2}'}, []),
    ({}, '{"x":1,"x":2}', {}, ["x"]),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "text", "values", "fields"), TWICE)
def test_a_key_twice_is_a_change_and_the_last_value_counts(properties, text, values, fields):
    batch, shaper = shaped(plan({"properties": properties}), text)
    (row,) = batch.to_pylist()
    twice = [change for change in row["_meta"]["changes"] if change["reason"] == "SOURCE_SERIALIZATION_ERROR"]
    assert twice == [{"field": name, "change": "TRUNCATED", "reason": "SOURCE_SERIALIZATION_ERROR"} for name in fields]
    assert {name: row[name] for name in values} == values
    found = shaper.take_findings()
    assert sum(count for (_, change, _), count in found.changed.items() if change == "TRUNCATED") == len(fields)
    assert all(any(name in sample for sample in found.samples) for name in fields)


def test_date_of_a_timestamp_has_no_change():
    """coerceDate keeps the date of the local time, without an entry; the report counts what was cut off."""
    properties = {"day": {"type": "string", "format": "date"}}
    records = [json.dumps({"day": text}) for text in ("2024-01-15T09:30:00Z", "2024-01-15T00:00:00Z", "2024-02-30")]
    batch, shaper = shaped(plan({"properties": properties}), *records)
    days = [(str(row["day"]), [change["field"] for change in row["_meta"]["changes"]]) for row in batch.to_pylist()]
    assert days == [("2024-01-15", []), ("2024-01-15", []), ("None", ["day"])]
    assert shaper.take_findings().changed == {("day", "TRUNCATED", "to the day"): 1, ("day", "NULLED", NO_FIT): 1}


A = {"type": "object", "properties": {"a": INTEGER}}
LOOSE = {"oneOf": [A, {"type": "object"}]}
LOST = [
    # schema of the property p, its value, the fields that are lost in Avro: of objects that the schema allows to hold
    # anything, and whose column has the properties of another alternative only, as in the vendor's merge of unions
    (LOOSE, {"a": 1, "b": 2, "c": None}, ["p.b"]),
    ({"type": "array", "items": LOOSE}, [{"a": 1}, {"b": 2}], ["p.[1].b"]),
    ({"oneOf": [{"type": "array", "items": A}, {"type": "array"}]}, [{"a": 1, "b": {"c": 2}}], ["p.[0].b"]),
    ({"oneOf": [{"properties": {"x": A, "y": {"type": "array", "items": A}}}, {"type": "object"}]},
     {"x": {"a": 1, "b": 2}, "y": [{"b": 3}], "z": 4}, ["p.z", "p.x.b", "p.y.[0].b"]),
    ({"properties": {"x": LOOSE}}, {"x": {"b": 2}, "undeclared": 3}, ["p.x.b"]),
    ({"oneOf": [A, {}, {"type": "string"}]}, {"b": 2}, ["p.b"]),
    ({"anyOf": [{"type": ["null", "object"]}, A, {"type": "integer"}]}, {"b": 2}, ["p.b"]),
    # nothing is lost of an object whose alternatives all have properties, or that text beside it takes whole
    ({"oneOf": [A, {"properties": {"b": INTEGER}}]}, {"a": 1, "b": 2}, []),
    ({"oneOf": [A, {}]}, {"a": 1, "b": 2}, []),
    # and what no alternative declares is dropped as the vendor drops it
    ({"oneOf": [A, {"type": "string"}]}, {"a": 1, "b": 2}, []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "lost"), LOST)
def test_values_that_an_alternative_without_a_schema_allows_are_in_changes(schema, value, lost):
    for one_text, expected in ((True, lost), (False, [])):
        # Parquet keeps such an object whole, in the branch "unknown".
        batch, _ = shaped(plan({"properties": {"p": schema}}, one_text=one_text), json.dumps({"p": value}))
        changes = batch.to_pylist()[0]["_meta"]["changes"]
        assert changes == [{"field": path, "change": "NULLED", "reason": NO_FIT} for path in expected]


@pytest.mark.parametrize("one_text", [True, False])
def test_properties_of_a_record_that_may_have_any(one_text):
    batch, shaper = shaped(plan(LOOSE, one_text=one_text), '{"a": 1, "b": 2}')
    assert batch.to_pylist()[0]["_meta"]["changes"] == [{"field": "b", "change": "NULLED", "reason": NO_FIT}]
    taken = shaper.take_findings()
    assert (taken.changes, dict(taken.undeclared)) == (1, {})


def test_meta_is_required_as_the_vendor_has_it():
    """AirbyteTypeToAirbyteTypeWithMeta: every part of meta is ``nullable = false``."""
    batch, _ = shaped(plan({"properties": {"a": INTEGER}}), '{"a": "x"}', "{}")
    avro = written(batch, AvroEncoding(codec="null"))
    reader: Any = fastavro.reader(io.BytesIO(avro))
    meta = next(field["type"] for field in reader.writer_schema["fields"] if field["name"] == "_meta")
    sync_id, changes = meta["fields"]
    assert (sync_id["name"], sync_id["type"], changes["name"]) == ("sync_id", "long", "changes")
    assert [(field["name"], field["type"]) for field in changes["type"]["items"]["fields"]] == [
        ("field", "string"), ("change", "string"), ("reason", "string"),
    ]  # fmt: skip
    expected = [[{"field": "a", "change": "NULLED", "reason": NO_FIT}], []]
    assert [row["_meta"]["changes"] for row in reader] == expected
    parquet = pq.ParquetFile(io.BytesIO(written(batch, ParquetEncoding(codec="snappy"))))
    leaves = [parquet.schema.column(n) for n in range(len(parquet.schema))]
    levels = {leaf.path: leaf.max_definition_level for leaf in leaves if leaf.path.startswith("_meta")}
    assert levels == {  # one level for the list, which may be empty; none of the others may be null
        "_meta.sync_id": 0,
        "_meta.changes.list.element.field": 1,
        "_meta.changes.list.element.change": 1,
        "_meta.changes.list.element.reason": 1,
    }
    assert [row["_meta"]["changes"] for row in parquet.read().to_pylist()] == expected


def test_a_quality_query_for_the_vendors_tables_gives_the_same_answer(tmp_path):
    """Values lost by column and reason, as one asks for them where the vendor's connector wrote the files."""
    schema = {"properties": {"id": INTEGER, "tags": {"type": "array", "items": INTEGER}, "at": MOMENT}}
    records = [{"id": 1, "tags": [1, "x"]}, {"id": "x", "at": "soon"}, {"id": 2**64, "tags": ["y", "z"]}]
    batch, _ = shaped(plan(schema, ENVELOPE), *map(json.dumps, records))
    path = tmp_path / "0.parquet"
    path.write_bytes(written(batch, ParquetEncoding(codec="snappy")))
    found = duckdb.sql(
        r"select regexp_replace(c.field, '\.\[\d+\]', '') as name, c.reason, count(*) "
        f"from (select unnest(_meta.changes) as c from '{path}') where c.change = 'NULLED' "
        "group by all order by all"
    ).fetchall()
    assert found == [("at", NO_FIT, 1), ("id", TOO_LARGE, 1), ("id", NO_FIT, 1), ("tags", NO_FIT, 3)]
