"""Types, dates and times as Airbyte's connector takes them, by the vectors of its own tests.

Texts are those of AirbyteValueCoercerTest (airbyte-cdk/bulk). Their values were printed by the connector's
DATE_TIME_FORMATTER under Java 17 with the locale en-US: days since 1970, and microseconds since 1970 in UTC and of the
local part.
"""

import io
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.cast.kind_values import parse_date, parse_timestamp
from lakewriter.cast.spelling_table import LENIENT, MisfitError
from lakewriter.documents.schema import find_property_names, make_record_type
from lakewriter.documents.types import DocumentType, Items, Leaf
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.spec.collection import Kind
from lakewriter.spec.encodings import AvroEncoding, ParquetEncoding
from tests.shape.enveloped import plan, shaped, written

HOUR = 3_600_000_000
SEPTEMBER, JULY, NEW_YEAR = 1_537_012_800_000_000, 1_531_656_000_000_000, 1_609_462_861_000_000
TIMESTAMPS = [
    # text, its local microseconds, hours that its zone is ahead of UTC
    ("2018-09-15 12:00:00", SEPTEMBER, 0), ("2018-09-15 12:00:00.006542", SEPTEMBER + 6542, 0),
    ("2018/09/15 12:00:00", SEPTEMBER, 0), ("2018.09.15 12:00:00", SEPTEMBER, 0), ("2018 Jul 15 12:00:00", JULY, 0),
    ("2021-1-1 01:01:01", NEW_YEAR, 0), ("2021.1.1 01:01:01", NEW_YEAR, 0), ("2021/1/1 01:01:01", NEW_YEAR, 0),
    ("2021-01-01 01:01:01", NEW_YEAR, 0), ("2021-1-1 01:01:01 +01", NEW_YEAR, 1),
    ("2018 Jul 15 12:00:00 GMT+08:00", JULY, 8), ("2021-01-01T01:01:01+01:00", NEW_YEAR, 1),
    ("2021-01-01T01:01:01.546+01:00", NEW_YEAR + 546_000, 1), ("2021-01-01 01:01:01 +0000", NEW_YEAR, 0),
    ("2021/01/01 01:01:01 +0000", NEW_YEAR, 0), ("2021-01-01T01:01:01Z", NEW_YEAR, 0),
    ("2021-01-01T01:01:01-01:00", NEW_YEAR, -1), ("2021-01-01 01:01:01 UTC", NEW_YEAR, 0),
    ("2021-01-01T01:01:01 PST", NEW_YEAR, -8), ("2021-01-01T01:01:01 +0000", NEW_YEAR, 0),
    ("2021-01-01T01:01:01+0000", NEW_YEAR, 0), ("2021-01-01T01:01:01UTC", NEW_YEAR, 0),
    ("2021-01-01T01:01:01+01", NEW_YEAR, 1),
    ("2022-01-23T01:23:45.678-11:30 BC", -125_941_905_374_322_000, -11.5),
    ("2022-01-23T01:23:45.678-11:30", 1_642_901_025_678_000, -11.5),
    # of this one the connector's Java takes GMT for the zone and +07 for the hour, and has 05:00 for the local part too
    ("2018 Jul 15 12:00:00GMT+07", JULY, 7),
    # more of the same forms: abbreviations mean their region, whose clock on that day counts
    ("2021-07-01T01:01:01 PST", 1_625_101_261_000_000, -7), ("2021-07-01T01:01:01 PDT", 1_625_101_261_000_000, -7),
    ("2021-01-01 01:01:01PST", NEW_YEAR, -8), ("2021-01-01T01:01:01 CET", NEW_YEAR, 1),
    ("2021-01-01T01:01:01 NST", NEW_YEAR, -3.5), ("2021-01-01T01:01:01 JST", NEW_YEAR, 9),
    ("2021-01-01T01:01:01 America/New_York", NEW_YEAR, -5),
    ("2021-07-01T01:01:01 Europe/Paris", 1_625_101_261_000_000, 2),
    ("2021-11-07T01:30:00 PST", 1_636_248_600_000_000, -7), ("2021-01-01T01:01:01 Z", NEW_YEAR, 0),
    ("0044-03-15T12:00:00 BC", -63_517_780_800_000_000, 0), ("0044-03-15T12:00:00Z AD", -60_772_248_000_000_000, 0),
    ("2021-01-01 BC 01:01:01", -125_912_271_539_000_000, 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "local", "ahead"), TIMESTAMPS)
def test_timestamp_of_the_vendor(text, local, ahead):
    assert parse_timestamp(text, LENIENT, zoned=False) == (local, False)
    assert parse_timestamp(text, LENIENT, zoned=True) == (local - ahead * HOUR, False)


NO_TIMESTAMPS = [
    "2021-01-01T01:01:01 pst", "2021-01-01T01:01:01 FOO", "2021-01-01T01:01:01 Foo/Bar",
    "2021-01-01T01:01:01 America/Argentina", "0000-01-01T00:00:00 BC", "not-a-timestamp",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_TIMESTAMPS)
@pytest.mark.parametrize("zoned", [True, False])
def test_no_timestamp(text, zoned):
    with pytest.raises(MisfitError):
        parse_timestamp(text, LENIENT, zoned=zoned)


@pytest.mark.parametrize("name", ["BST", "IST", "GST", "ACST", "MT"])
def test_zone_of_several_meanings(name):
    """The connector's Java takes BST for Bougainville, IST for Abidjan: the local part is what it reads too."""
    assert parse_timestamp(f"2021-01-01T01:01:01 {name}", LENIENT, zoned=False) == (NEW_YEAR, False)
    with pytest.raises(MisfitError, match=f"'{name}', which means several; expected an offset"):
        parse_timestamp(f"2021-01-01T01:01:01 {name}", LENIENT, zoned=True)


DATES = [
    ("2021-1-1", 18628), ("2021-01-01", 18628), ("2021/01/02", 18629), ("2021.01.03", 18630), ("2021 Jan 04", 18631),
    ("2021-1-1 BC", -1_457_318), ("2021-1-1BC", -1_457_318), ("0001-01-01 BC", -719_528), ("2021-1-1 AD", 18628),
]  # fmt: skip


@pytest.mark.parametrize(("text", "days"), DATES)
def test_date_of_the_vendor(text, days):
    assert parse_date(text, LENIENT) == (days, False)


DAY = {"type": "string", "format": "date"}
MOMENT = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize("kind", ["Avro", "Parquet"])
def test_eras_in_files(kind):
    """Python has no such dates, so the stored numbers are compared."""
    texts = ['{"d": "2021-1-1 BC", "t": "2022-01-23T01:23:45.678-11:30 BC"}', '{"d": "2021-1-1", "t": "1970-01-01"}']
    batch, _ = shaped(plan({"properties": {"d": DAY, "t": MOMENT}}, one_text=kind == "Avro"), *texts)
    expected = [(-1_457_318, -125_941_863_974_322_000), (18628, 0)]
    if kind == "Parquet":
        table = pq.read_table(io.BytesIO(written(batch, ParquetEncoding(codec="snappy"))))
        days, micros = table["d"].cast(pa.int32()).to_pylist(), table["t"].cast(pa.int64()).to_pylist()
        assert list(zip(days, micros, strict=True)) == expected
        return
    schema: Any = fastavro.reader(io.BytesIO(file := written(batch, AvroEncoding(codec="null")))).writer_schema
    for field in schema["fields"]:
        if field["name"] in ("d", "t"):
            assert field["type"][1].pop("logicalType") in ("date", "timestamp-micros")
    rows: Any = fastavro.reader(io.BytesIO(_without_logical_types(file)))
    assert [(row["d"], row["t"]) for row in rows] == expected


def _without_logical_types(file: bytes) -> bytes:
    """The file with its days and microseconds as plain numbers, names of the same length in its header."""
    return file.replace(b"logicalType", b"logicalTyp_")


BARE = [
    # schema of a property, its type: JsonSchemaToAirbyteType, a schema that is text is the name of its type
    ("string", Leaf(Kind.STRING)),
    ("integer", Leaf(Kind.INTEGER)),
    ("number", Leaf(Kind.NUMBER)),
    ("boolean", Leaf(Kind.BOOLEAN)),
    ("object", Leaf(Kind.JSON)),
    ({"type": "array", "items": "integer"}, Items(Leaf(Kind.INTEGER))),
    ({"type": "array", "items": ["null", "string"]}, Items(Leaf(Kind.STRING))),
    ({"oneOf": ["null", "boolean"]}, Leaf(Kind.BOOLEAN)),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), BARE)
def test_schema_that_is_text_names_its_type(schema: Any, expected: DocumentType):
    assert make_record_type({"properties": {"p": schema}}).fields == (("p", expected),)


@pytest.mark.parametrize("schema", ["foo", {"type": "array", "items": "foo"}])
def test_text_that_names_no_type_is_an_unknown_type(schema):
    """It fails typed files, as every unknown type does in the connector (FailOnAllUnknownTypesExceptNull)."""
    own = {"properties": {"p": schema}}
    with pytest.raises(SchemaIncompatibleError, match="has type 'foo'"):
        make_record_type(own)
    assert find_property_names(own) == ("p",)


def test_nanoseconds_are_told_of_once_for_a_field_of_a_file():
    """The connector has no entries for digits that its files cannot hold; the report has one, and their number."""
    schema = {"properties": {"t": MOMENT, "l": {"type": "array", "items": MOMENT}, "n": {"type": "integer"}}}
    long = '"1970-01-01T00:00:00.000001234Z"'
    batch, shaper = shaped(plan(schema), *[f'{{"t": {long}, "l": [{long}, {long}], "n": "x"}}'] * 3)
    rows = batch.to_pylist()
    assert [[change["field"] for change in row["_meta"]["changes"]] for row in rows] == [["n"]] * 3
    assert [row["t"].microsecond for row in rows] == [1] * 3
    found = shaper.take_findings()
    assert found.changes == 3 * 4
    assert [each for each in found.samples if "TRUNCATED" in each] == [
        "row 0 and others of this file, t: TRUNCATED (to the microsecond)",
        "row 0 and others of this file, l[]: TRUNCATED (to the microsecond)",
    ]
