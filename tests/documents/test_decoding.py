"""Documents as typed columns: literal cases, and random schemas with random records through Avro and Parquet."""

import datetime as dt
import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakewriter.documents.schema import make_record_type
from lakewriter.documents.types import DocumentType, Items, Leaf, Record, Union
from lakewriter.encode.avro_schema import make_avro_schema
from lakewriter.naming import name_avro_fields
from lakewriter.spec.collection import Kind
from lakewriter.spec.encodings import AvroEncoding, ParquetEncoding
from tests.documents.documents_strategies import SCHEMAS, WIDE_SCHEMAS, conforming
from tests.shape.enveloped import plan, shaped, written
from tests.support.sample import fifth_of

TOO_LARGE, NO_FIT = "DESTINATION_FIELD_SIZE_LIMITATION", "DESTINATION_SERIALIZATION_ERROR"
WITH_OPEN = {"oneOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "object"}]}
VALUES = [
    # schema of a property, JSON text, the value in Parquet, the reason of its change
    ({"type": "string"}, '"a"', "a", None),
    ({"type": "string"}, "1.50", "1.50", None),
    ({"type": "string"}, '{"b": [1]}', '{"b":[1]}', None),
    ({"type": "integer"}, "9223372036854775807", 2**63 - 1, None),
    ({"type": "integer"}, "9223372036854775808", None, TOO_LARGE),
    ({"type": "integer"}, "1" + "0" * 60, None, TOO_LARGE),
    ({"type": "integer"}, "1e3", 1000, None),
    ({"type": "integer"}, "2.0", 2, None),
    ({"type": "integer"}, "2.5", None, NO_FIT),
    # coerceInt and coerceNumber of the vendor's AirbyteValueCoercer take a string's digits
    ({"type": "integer"}, '"2"', 2, None),
    ({"type": "integer"}, '"-9223372036854775808"', -(2**63), None),
    ({"type": "integer"}, '"9223372036854775808"', None, TOO_LARGE),
    ({"type": "integer"}, '"2.0"', None, NO_FIT),
    ({"type": "integer"}, '" 2"', None, NO_FIT),
    ({"type": "integer"}, '""', None, NO_FIT),
    ({"type": "number"}, '"-1.50e2"', -150.0, None),
    ({"type": "number"}, '"NaN"', None, NO_FIT),
    ({"type": "number"}, '"-Infinity"', None, NO_FIT),
    ({"type": "number"}, '"1,5"', None, NO_FIT),
    ({"type": ["integer", "string"]}, '"5"', {"type": "string", "integer": None, "string": "5"}, None),
    ({"type": ["integer", "boolean"]}, '"5"', {"type": "integer", "integer": 5, "boolean": None}, None),
    ({"type": ["object", "integer"]}, '"5"', {"type": "integer", "object": None, "integer": 5}, None),
    ({"type": "integer"}, "true", None, NO_FIT),
    ({"type": "number"}, "1", 1.0, None),
    ({"type": "number"}, "1e400", None, TOO_LARGE),
    # a file has a bad row for it
    ({"type": "number"}, "-1e-400", None, TOO_LARGE),
    ({"type": "number"}, '"1e-400"', None, TOO_LARGE),
    ({"type": "number"}, "0.0e-400", 0.0, None),
    ({"type": "number"}, '"1"', 1.0, None),
    ({"type": "boolean"}, "false", False, None),
    ({"type": "boolean"}, "0", None, NO_FIT),
    ({"type": "string", "format": "date"}, '"2021-1-2"', dt.date(2021, 1, 2), None),
    ({"type": "string", "format": "date"}, '"soon"', None, NO_FIT),
    ({"type": "string", "format": "date"}, "5", None, NO_FIT),
    ({"type": "string", "format": "time"}, '"01:02:03+01"', dt.time(0, 2, 3), None),
    ({"type": "string", "format": "date-time"}, '"2021-01-02T03:04:05+01:00"',
     dt.datetime(2021, 1, 2, 2, 4, 5, tzinfo=dt.UTC), None),
    ({"type": "string", "format": "date-time", "airbyte_type": "timestamp_without_timezone"},
     '"2021-01-02T03:04:05+01:00"', dt.datetime(2021, 1, 2, 3, 4, 5, tzinfo=dt.UTC), None),
    ({"type": "string", "format": "date-time"}, '"1970-01-01T00:00:00.0000019Z"',
     dt.datetime(1970, 1, 1, 0, 0, 0, 1, dt.UTC), None),
    ({"type": "object"}, '{"n": 1.10, "b": 123456789012345678901}', '{"n":1.10,"b":123456789012345678901}', None),
    ({}, '"x"', '"x"', None),
    ({"type": "array", "items": {"type": "integer"}}, "[1, null, 3]", [1, None, 3], None),
    ({"type": "array", "items": {"type": "integer"}}, '{"a": 1}', None, NO_FIT),
    ({"properties": {"a": {"type": "string"}}}, "[1]", None, NO_FIT),
    ({"type": ["integer", "string"]}, "5", {"type": "integer", "integer": 5, "string": None}, None),
    ({"type": ["integer", "string"]}, "true", {"type": "string", "integer": None, "string": "true"}, None),
    ({"type": ["integer", "boolean"]}, '"x"', None, NO_FIT),
    ({"type": ["integer", "number"]}, "5.5", {"type": "number", "integer": None, "number": 5.5}, None),
    ({"oneOf": [{"type": "string", "format": "date"}, {"type": "integer"}]}, '"2021-01-02"',
     {"type": "date", "date": dt.date(2021, 1, 2), "integer": None}, None),
    ({"oneOf": [{"properties": {"a": {"type": "integer"}}}, {"type": "integer"}]}, '{"a": 1}',
     {"type": "object", "object": {"a": 1}, "integer": None}, None),
    # every branch's data is kept
    (WITH_OPEN, '{"a": 1}', {"type": "object", "object": {"a": 1}, "unknown": None}, None),
    (WITH_OPEN, '{"a": 1, "b": [2.50]}', {"type": "unknown", "object": None, "unknown": '{"a":1,"b":[2.50]}'}, None),
    (WITH_OPEN, '{"a": "x"}', {"type": "unknown", "object": None, "unknown": '{"a":"x"}'}, None),
    ({"oneOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "array"}]}, '[1, "x"]',
     {"type": "unknown", "array": None, "unknown": '[1,"x"]'}, None),
    ({"type": ["string", "integer", "object"]}, '{"b": 1}',
     {"type": "object", "string": None, "integer": None, "object": '{"b":1}'}, None),
    ({"type": ["string", "integer", "object"]}, '"{}"',
     {"type": "string", "string": "{}", "integer": None, "object": None}, None),
    ({"type": ["string", "integer", "object"]}, "[1]",
     {"type": "string", "string": "[1]", "integer": None, "object": None}, None),
    ({"type": ["string", "object"]}, '{"b": 1}', '{"b":1}', None),
    ({"oneOf": [{"type": "string"}, {"properties": {"a": {}}}, {"type": "object"}]}, '{"b": 1}',
     {"type": "unknown", "string": None, "object": None, "unknown": '{"b":1}'}, None),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "text", "expected", "reason"), VALUES)
@pytest.mark.parametrize("beside", ["null", "{}"])
def test_value(schema, text, expected, reason, beside):
    """Beside a null, and beside a value for which the whole column has to be read one by one."""
    batch, _ = shaped(plan({"properties": {"p": schema}}), f'{{"p": {text}}}', f'{{"p": {beside}}}')
    row = batch.to_pylist()[0]
    assert row["p"] == expected
    assert [(change["field"], change["reason"]) for change in row["_meta"]["changes"]] == (
        [("p", reason)] if reason else []
    )


def test_change_names_the_place():
    schema = {"properties": {"a": {"type": "array", "items": {"properties": {"b": {"type": "integer"}}}}}}
    batch, shaper = shaped(plan(schema), '{"a": [{"b": 1}, {"b": "x"}]}', '{"a": [{"b": "y"}], "z": 1}')
    changes = [[change["field"] for change in row["_meta"]["changes"]] for row in batch.to_pylist()]
    assert changes == [["a.[1].b"], ["a.[0].b"]]
    assert dict(shaper.take_findings().undeclared) == {"z": 1}


def test_names_are_made_safe_and_clashes_suffixed():
    names = ["a-b", "a_b", "1st", "crème", "_meta", "日本"]
    own = plan({"properties": {name: {"type": "integer"} for name in names}})
    assert own.schema.names[4:] == ["a_b", "a_b_1", "_1st", "creme", "_meta_1", "__"]
    batch, _ = shaped(own, json.dumps({name: number for number, name in enumerate(names)}))
    assert list(batch.to_pylist()[0].values())[4:] == list(range(6))


@settings(max_examples=fifth_of(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.booleans())
def test_every_value_is_read_back_or_named(data: st.DataObject, one_text: bool):
    schema = data.draw(SCHEMAS)
    records = [data.draw(conforming(schema)) for _ in range(data.draw(st.integers(1, 3)))]
    texts = [json.dumps(each if isinstance(each, dict) else {}) for each in records]
    own = plan(schema, one_text=one_text)
    batch, shaper = shaped(own, *texts)
    undeclared = shaper.take_findings().undeclared
    parquet = pq.read_table(io.BytesIO(written(batch, ParquetEncoding(codec="snappy")))).to_pylist()
    avro: list[Any] = [None] * len(texts)
    if one_text:
        avro = list(fastavro.reader(io.BytesIO(written(batch, AvroEncoding(codec="deflate", level=1)))))
    record = make_record_type(schema, one_text=one_text)
    assert own.record == record
    for text, row, plain in zip(texts, parquet, avro, strict=True):
        changed = {change["field"] for change in row["_meta"]["changes"]}
        fields = list(row.values())[4:]
        assert not one_text or [_opened(t, value) for (_, t), value in zip(record.fields, fields, strict=True)] == [
            _plain(t, value) for (_, t), value in zip(record.fields, list(plain.values())[4:], strict=True)
        ]
        for (name, t), value in zip(record.fields, fields, strict=True):
            problems = list(_differences(t, json.loads(text).get(name), value, name, changed, undeclared))
            assert not problems, (schema, text, row)


@settings(max_examples=fifth_of(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(WIDE_SCHEMAS)
def test_every_avro_schema_defines_each_of_its_names_once(schema: dict[str, Any]):
    fastavro.parse_schema(make_avro_schema(plan(schema, one_text=True).schema))


def _differences(
    t: DocumentType, source: Any, found: Any, path: str, changed: set[str], undeclared: Any
) -> Iterator[str]:
    """Places where a value is neither equal nor named."""
    if path in changed or (source is None and found is None):
        return
    if isinstance(t, Union) and isinstance(found, dict):
        own = dict(t.branches)[found["type"]]
        yield from _differences(own, source, found[found["type"]], path, changed, undeclared)
    elif isinstance(t, Record) and isinstance(source, dict) and isinstance(found, dict):
        for (name, own), value in zip(t.fields, found.values(), strict=True):
            yield from _differences(own, source.get(name), value, f"{path}.{name}", changed, undeclared)
    elif isinstance(t, Items) and isinstance(source, list) and isinstance(found, list) and len(source) == len(found):
        for number, (before, after) in enumerate(zip(source, found, strict=True)):
            yield from _differences(t.item, before, after, f"{path}.[{number}]", changed, undeclared)
    elif not isinstance(t, Leaf) or not _same(t.kind, source, found):
        yield path


def _same(kind: Kind, source: Any, found: Any) -> bool:
    if kind is Kind.JSON or (kind is Kind.STRING and not isinstance(source, str)):
        return bool(json.loads(found) == source)
    if kind in (Kind.STRING, Kind.BOOLEAN):
        return bool(found == source)
    if kind in (Kind.INTEGER, Kind.NUMBER):
        return isinstance(source, int | float | str) and float(found) == float(source)
    return isinstance(source, str) and found is not None


def _opened(t: DocumentType, value: Any) -> Any:
    """A value of Parquet as Avro has it: a union is its branch."""
    if value is None:
        return None
    if isinstance(t, Union):
        return _opened(dict(t.branches)[value["type"]], value[value["type"]])
    if isinstance(t, Record):
        return [_opened(own, each) for (_, own), each in zip(t.fields, value.values(), strict=True)]
    return [_opened(t.item, each) for each in value] if isinstance(t, Items) else value


def _plain(t: DocumentType, value: Any) -> Any:
    """A value of Avro without the names of records, which ``_opened`` leaves out too."""
    if isinstance(value, dict):
        own = t if isinstance(t, Record) else next(b for _, b in t.branches if isinstance(b, Record))  # type: ignore[union-attr]
        return [_plain(each, inner) for (_, each), inner in zip(own.fields, value.values(), strict=True)]
    if isinstance(value, list):
        items = t if isinstance(t, Items) else next(b for _, b in t.branches if isinstance(b, Items))  # type: ignore[union-attr]
        return [_plain(items.item, each) for each in value]
    return value


def test_avro_names_of_nothing():
    assert name_avro_fields(["", "-", "1"]) == ["_", "__1", "_1"]


NAMES = [
    # a property, its column: NFKD, \\p{M} dropped, \\s+ and then each [^\\p{Alnum}_] to "_", as the connector's public
    # Transformations.kt has it
    ("first  name", "first_name"),
    (" first \t\r\n name ", "_first_name_"),
    ("a\x0b\x0c b", "a_b"),
    ("a\u00a0\u2003 b", "a_b"),
    ("a - b", "a___b"),
    ("a__b", "a__b"),
    ("a \x85 b", "a___b"),
    ("a\u2028 b", "a__b"),
    ("1  st", "_1_st"),
    ("  ", "_"),
    ("price \u20ac", "price__"),
    ("love \u2764\ufe0f", "love__"),
    ("\u0e19\u0e49\u0e33", "__"),
    ("\u0926\u0947\u0935", "__"),
    ("cre\u0300me bru\u0302le\u0301e", "creme_brulee"),
]


@pytest.mark.parametrize(("source", "column"), NAMES)
def test_avro_name(source, column):
    assert name_avro_fields([source]) == [column]
