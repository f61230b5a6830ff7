"""Records in their envelope: what is undeclared, what the source changed, Hero Pixel's columns, names in the source."""

import io
import json
import re
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.dialects.airbyte.settings import HeroPixelS3
from lakewriter.dialects.airbyte.translate import make_encoding, make_envelope
from lakewriter.shape.envelope import EnvelopeShaper, plan_rows
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.encodings import AvroEncoding, ParquetEncoding
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import Envelope
from tests.dialects.airbyte_lakes import BASE
from tests.shape.enveloped import ENVELOPE, START, TABLE, plan, shaped, written

SCHEMA = {
    "properties": {
        "name": {"properties": {"first": {"type": "string"}}},
        "tags": {"type": "array", "items": {"properties": {"k": {"type": "string"}}}},
    }
}
ODD = '{"name": {"first": "J", "middle": "Q"}, "tags": [{"k": "a", "v": 1}, {"v": 2}], "x": 1}'


def hero_pixel(**form: object) -> HeroPixelS3:
    return HeroPixelS3.model_validate({"type": "heropixel-s3"} | BASE | {"format": form})


@pytest.mark.parametrize("kind", ["Avro", "Parquet"])
def test_hero_pixel_keeps_what_is_undeclared_in_every_object(kind):
    batch, shaper = shaped(plan(SCHEMA, make_envelope(hero_pixel(format_type=kind))), ODD)
    row, more = batch.to_pylist()[0], "_airbyte_additional_properties"
    assert row[more] == [("x", "1")]
    assert row["name"] == {"first": "J", more: [("middle", "Q")]}
    assert row["tags"] == [{"k": "a", more: [("v", "1")]}, {"k": None, more: [("v", "2")]}]
    assert dict(shaper.take_findings().undeclared) == {}


def test_all_that_is_undeclared_is_counted_without_a_column_for_it():
    _, shaper = shaped(plan(SCHEMA), ODD)
    assert dict(shaper.take_findings().undeclared) == {"name.middle": 1, "tags[].v": 2, "x": 1}


def test_changes_are_counted_by_field_and_reason():
    """An element's number is no part of the field, and keys of the records' own cannot make the list grow for ever."""
    row = {f"p{number}": "x" for number in range(250)} | {"tags": ["x", 1, "y"], "at": "2021-01-01T00:00:00.1234567Z"}
    kinds = {name: {"type": "integer"} for name in row}
    schema = {"properties": kinds | {"tags": {"items": {"type": "integer"}}, "at": {"format": "date-time",
                                                                                    "type": "string"}}}  # fmt: skip
    _, shaper = shaped(plan(schema, ENVELOPE), json.dumps(row))
    changed = shaper.take_findings().changed
    nulled = ("NULLED", "DESTINATION_SERIALIZATION_ERROR")
    assert changed["at", "TRUNCATED", "to the microsecond"] == 1
    assert changed["p0", *nulled] == 1
    assert (sum(changed.values()), len(changed)) == (253, 201)
    assert changed["other fields", *nulled] == 253 - 200


JOHN = '{"user_id": 123, "name": {"first": "John", "last": "Doe"}}'
USERS = {"properties": {"user_id": {"type": "integer"}, "name": {"type": "object"}}}
PLAIN = {"compression_type": "No Compression"}
TEXTS = [
    # format and flattening, the file: the documents' example, with RFC 4180's quotes and numbers as numbers
    ("JSONL", "No flattening",
     '{"_airbyte_ab_id":"ID","_airbyte_emitted_at":0,"_airbyte_data":' + JOHN.replace(" ", "") + "}\n"),
    ("JSONL", "Root level flattening",
     '{"_airbyte_ab_id":"ID","_airbyte_emitted_at":0,"user_id":123,"name":{"first":"John","last":"Doe"}}\n'),
    ("CSV", "Root level flattening",
     '"_airbyte_ab_id","_airbyte_emitted_at","user_id","name"\r\n'
     '"ID",0,123,"{""first"":""John"",""last"":""Doe""}"\r\n'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "flattening", "expected"), TEXTS)
def test_hero_pixel_in_text(kind, flattening, expected):
    form = hero_pixel(format_type=kind, flattening=flattening, compression=PLAIN)
    batch, _ = shaped(plan(USERS, make_envelope(form)), JOHN)
    text = written(batch, make_encoding(form)).decode()
    assert re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text) == expected


SUPPLIED = [
    # what the source says it changed, what is written of it
    ('[{"field": "z", "change": "NULLED", "reason": "R"}]', [("z", "NULLED", "R")]),
    ('[{"field": "z", "change": "NULLED"}]', [("z", "NULLED", "")]),
    ('[{"field": null, "change": 1.50, "reason": {"a": 1e400}}]', [("", "1.50", '{"a": 1e400}')]),
    ('["x", {"field": "z"}, null, 7]', [("", "", "x"), ("z", "", ""), ("", "", ""), ("", "", "7")]),
    ("[]", []),
    ("null", []),
    ('{"field": "z"}', []),
    (None, []),
]


@pytest.mark.parametrize(("text", "expected"), SUPPLIED)
def test_changes_of_the_source_come_first(text, expected):
    schema = {"properties": {"a": {"type": "integer"}}}
    batch, _ = shaped(plan(schema), '{"a": "x"}', "{}", changes=[text, "[]"])
    found = [tuple(change.values()) for change in batch.to_pylist()[0]["_meta"]["changes"]]
    assert found == [*expected, ("a", "NULLED", "DESTINATION_SERIALIZATION_ERROR")]


def test_changes_of_the_source_in_text():
    own = plan(SCHEMA, ENVELOPE.model_copy(update={"typed": False}))
    batch, _ = shaped(own, "{}", changes=['[{"field": "z", "change": "NULLED"}]'])
    meta = json.loads(batch.to_pylist()[0]["_meta"])
    assert meta == {"sync_id": 0, "changes": [{"field": "z", "change": "NULLED", "reason": ""}]}


INNER = pa.struct([("a-b", pa.int64()), ("a_b", pa.int64()), ("void", pa.null())])
ROWS = pa.schema([("1st", INNER), ("list", pa.list_(INNER)), ("map", pa.map_(pa.string(), INNER)), ("n", pa.int64())])
VALUE = {"a-b": 1, "a_b": 2, "void": None}


def test_names_of_nested_columns_in_the_source():
    """A struct's fields have ``doc`` as columns have, wherever the struct is."""
    access = Access(bucket="b", region="us-east-1")
    spec = Spec(pipeline="p", dialect="d", access=access, catalog=NoCatalog(), tracking=(), tables=())
    own = plan_rows(ROWS, spec, TABLE, Envelope(raw_id="_id", extracted_at="_at"))
    columns = [[VALUE], [[VALUE]], [[("k", VALUE)]], [7]]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, t) for column, t in zip(columns, ROWS.types, strict=True)], schema=ROWS
    )
    found = EnvelopeShaper(own, job_id="j", start=START, first_index=0).shape(batch).rows
    data = written(found, AvroEncoding(codec="null"))
    reader = fastavro.reader(io.BytesIO(data))
    docs = re.findall(r'"doc": "_airbyte_original_name:([^"]+)"', json.dumps(reader.writer_schema))
    assert sorted(docs) == ["1st", *["a-b"] * 3, *["a_b"] * 3]
    nested = {"a_b": 1, "a_b_1": 2}
    expected = {"_1st": nested, "list": [nested], "map": {"k": nested}, "n": 7}
    rows: list[Any] = list(reader)
    assert [dict(list(row.items())[2:]) for row in rows] == [expected]
    parquet = pq.read_table(io.BytesIO(written(found, ParquetEncoding(codec="snappy"))))
    assert parquet.select(["_1st", "list", "n"]).to_pylist() == [{"_1st": nested, "list": [nested], "n": 7}]
