"""Whole Iceberg loads: one snapshot a load, read by others."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import from_bytes

from lakewriter.errors import StateLostError
from tests.iceberg.tables import SCHEMA
from tests.load.lakes import BUCKET, table

pytestmark = pytest.mark.spark

CITIES = "id,Full Name,pop\n1,Ann,1.5\n2,Ben,\n"


def test_first_load(lake):
    lake.write(table("Cities", lake.csv("cities.csv", CITIES), primary_key=["id"]))
    (result,) = lake.load("abc").tables
    assert (result.code, result.message, result.rows) == (None, None, 2)
    key = f"data/production/{SCHEMA}/cities/data/part-abc-00000.parquet"
    assert result.keys == (key,)
    found = lake.table("cities")
    assert found.location() == f"s3://{BUCKET}/data/production/{SCHEMA}/cities"
    assert found.properties["lakewriter.flights"] == "1"
    assert lake.scan("cities").select(["id", "Full_Name", "pop", "_supa_index"]).to_pylist() == [
        {"id": 1, "Full_Name": "Ann", "pop": 1.5, "_supa_index": 1},
        {"id": 2, "Full_Name": "Ben", "pop": None, "_supa_index": 2},
    ]


TYPES = """
SELECT 1Y AS b, 2S AS s, 3 AS i, 4L AS l, 1.5F AS f, 2.5D AS d, 1.50BD AS n, 'x' AS t, X'AB' AS y, true AS o,
    DATE '2024-01-15' AS dt, TIMESTAMP '2024-01-15 10:30:00Z' AS ts, TIMESTAMP_NTZ '2024-01-15 10:30:00' AS ntz,
    array(1, 2) AS a, map('k', 1Y) AS m, named_struct('first name', 1S, 'first-name', 2) AS st,
    INTERVAL '1' DAY AS iv, NULL AS v FROM x
"""
WRITTEN = {
    # column: Iceberg's type (there is no integer below 32 bits), value, lower bound
    "b": ("int", 1, 1),
    "s": ("int", 2, 2),
    "i": ("int", 3, 3),
    "l": ("long", 4, 4),
    "f": ("float", 1.5, 1.5),
    "d": ("double", 2.5, 2.5),
    "n": ("decimal(3, 2)", Decimal("1.50"), Decimal("1.50")),
    "t": ("string", "x", "x"),
    "y": ("binary", b"\xab", b"\xab"),
    "o": ("boolean", True, True),
    "dt": ("date", date(2024, 1, 15), 19737),
    "ts": ("timestamptz", datetime(2024, 1, 15, 10, 30, tzinfo=UTC), 1705314600000000),
    "ntz": ("timestamp", datetime(2024, 1, 15, 10, 30), 1705314600000000),
    "a": ("list<int>", [1, 2], None),
    "m": ("map<string, int>", [("k", 1)], None),
    "st": ("struct<26: first_name: optional int, 27: first_name_1: optional int>", None, None),
    "iv": ("string", "\"INTERVAL '1' DAY\"", "\"INTERVAL '1' DAY\""),
}


@pytest.mark.one_in(2)
def test_every_type(lake):
    read = {"sql": TYPES, "views": {"x": {"format": "csv", "path": lake.csv("x.csv", "a\n1\n")}}}
    lake.write({"table": "t", "schema": "public", "read": read})
    assert lake.load("a").tables[0].message is None
    found = lake.table("t")
    ids = {field.name: field.field_id for field in found.schema().fields if not field.name.startswith("_supa")}
    assert list(ids.values()) == list(range(1, len(WRITTEN) + 1))
    assert {name: str(found.schema().find_type(name)) for name in ids} == {n: w[0] for n, w in WRITTEN.items()}
    row = lake.scan("t").to_pylist()[0]
    assert row["st"] == {"first_name": 1, "first_name_1": 2}
    assert {name: row[name] for name in ids if name != "st"} == {n: w[1] for n, w in WRITTEN.items() if n != "st"}
    (file,) = [task.file for task in found.scan().plan_files()]
    lower = {name: file.lower_bounds.get(number) for name, number in ids.items()}
    bounds = {name: bound and from_bytes(found.schema().find_type(name), bound) for name, bound in lower.items()}
    assert bounds == {name: written[2] for name, written in WRITTEN.items()}
    (body,) = [body for key, body in lake.data().items() if key.endswith(".parquet")]
    schema = pq.read_schema(pa.BufferReader(body))
    assert {name: int(schema.field(name).metadata[b"PARQUET:field_id"]) for name in ids} == ids


def test_second_load_is_a_second_snapshot(lake):
    lake.write(table("cities", lake.csv("cities.csv", CITIES)))
    lake.load("a")
    first = lake.table("cities").current_snapshot().snapshot_id
    report = lake.load("b")
    assert [snapshot.summary["lakewriter.load"].split("/")[1] for snapshot in lake.table("cities").snapshots()] == [
        "a",
        "b",
    ]
    assert lake.scan("cities", snapshot_id=first)["_supa_job_id"].to_pylist() == ["a", "a"]
    assert sorted(lake.scan("cities")["_supa_job_id"].to_pylist()) == ["a", "a", "b", "b"]
    health = report.tables[0].health
    assert (health.snapshots, health.files, health.small_files) == (2, 2, 2)


EVOLUTIONS = [
    # the second file, the columns after it, or the code it fails with
    ("ID,more\n3000000000,1.5\n", "id long,name string,more double"),
    ("id,name\nx,c\n", "SCHEMA_INCOMPATIBLE"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("second", "expected"), EVOLUTIONS)
def test_evolution(lake, second, expected):
    lake.write(table("t", lake.csv("t.csv", "id,name\n1,a\n")))
    lake.load("a")
    ids = {field.name: field.field_id for field in lake.table("t").schema().fields}
    lake.csv("t.csv", second)
    (result,) = lake.load("b").tables
    after = [field for field in lake.table("t").schema().fields if not field.name.startswith("_supa_")]
    assert expected == (result.code or ",".join(f"{field.name} {field.field_type}" for field in after))
    assert {field.name: field.field_id for field in after}.items() >= {
        name: ids[name] for name in ("id", "name")
    }.items()
    assert len(lake.table("t").snapshots()) == (1 if result.code else 2)
    assert 1 in lake.scan("t")["id"].to_pylist()


def test_table_without_rows(lake):
    lake.write(table("cities", lake.csv("cities.csv", "id,name\n"), columns={"id": "int", "name": "string"}))
    assert [(t.status, t.rows, t.files) for t in lake.load("a").tables] == [("done", 0, 0)]
    assert (len(lake.table("cities").schema().fields), lake.table("cities").current_snapshot()) == (7, None)


def test_first_run_check(lake):
    lake.write(table("t", lake.csv("t.csv", CITIES)), destination_table_handling="FAIL")
    stray = f"data/production/{SCHEMA}/t/data/old.parquet"
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=stray, Body=b"old")
    assert lake.load("a").tables[0].code == "TABLE_NOT_EMPTY"
    lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=stray)
    assert [lake.load("a").status, lake.load("b").status] == ["done", "done"]


def test_first_run_check_finds_a_table_of_others(lake):
    lake.write(table("t", lake.csv("t.csv", CITIES)))
    lake.load("a")
    text = lake.file.read_text("utf-8").replace("pipeline: flights", "pipeline: other")
    lake.file.write_text(text.replace("destination:\n", "destination:\n  destination_table_handling: FAIL\n"), "utf-8")
    (result,) = lake.load("a").tables
    assert result.code == "TABLE_NOT_EMPTY"


def test_lost_control_objects_are_noticed(lake):
    lake.write(table("t", lake.csv("t.csv", CITIES)))
    lake.load("a")
    for key in lake.aws.objects(BUCKET):
        if "/_lakewriter/" in key:
            lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(StateLostError, match=r"data/part-a-00000\.parquet is of a table that was loaded"):
        lake.load("b")


def test_glue_table_that_is_not_iceberg(lake):
    lake.write(table("t", lake.csv("t.csv", CITIES)))
    glue = lake.aws.client("glue")
    glue.create_database(DatabaseInput={"Name": SCHEMA})
    glue.create_table(DatabaseName=SCHEMA, TableInput={"Name": "t", "Parameters": {"classification": "parquet"}})
    assert lake.load("a").tables[0].code == "SCHEMA_INCOMPATIBLE"
