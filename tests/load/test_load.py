"""Whole loads: what lies in the bucket and the catalog after them, and what a report says."""

import hashlib

import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.run.load import run
from tests.load.lakes import BUCKET, arrow, table

pytestmark = pytest.mark.spark

SCHEMA = "supaflow_nyc_public"
CITIES = "id,Full Name,naïve,naive\n1,Ann,a,b\n2,Ben,c,d\n"


def test_first_load(lake):
    lake.write(table("Cities", lake.csv("cities.csv", CITIES), primary_key=["id"]))
    report = lake.load("abc123")
    (result,) = report.tables
    key = f"{SCHEMA}/cities/abc123/part-abc123-00000.gzip.parquet"
    assert (result.status, result.rows, result.files, result.feed) == ("done", 2, 1, "splits")
    assert result.keys == (f"data/production/{key}",)
    assert list(lake.data()) == [key]
    assert not lake.aws.uploads(BUCKET)
    names = ["id", "Full_Name", "naive", "naive_1"]
    assert lake.rows(f"SELECT {', '.join(names)} FROM t ORDER BY id", f"{SCHEMA}/cities") == [
        (1, "Ann", "a", "b"),
        (2, "Ben", "c", "d"),
    ]


def test_tracking_columns(lake):
    lake.write(table("cities", lake.csv("cities.csv", CITIES), primary_key=["id"], deleted="id = 2"))
    lake.load("abc123")
    query = "SELECT _supa_index, _supa_deleted, _supa_id, _supa_job_id FROM t ORDER BY _supa_index"
    digests = [hashlib.sha256(text).hexdigest() for text in (b"1", b"2")]
    assert lake.rows(query, f"{SCHEMA}/cities") == [
        (1, False, digests[0], "abc123"),
        (2, True, digests[1], "abc123"),
    ]


def test_catalog(lake):
    lake.write(table("cities", lake.csv("cities.csv", CITIES)))
    lake.load("abc123")
    glue = lake.aws.client("glue")
    location = f"s3://{BUCKET}/data/production/{SCHEMA}"
    assert glue.get_database(Name=SCHEMA)["Database"]["LocationUri"] == location
    found = glue.get_table(DatabaseName=SCHEMA, Name="cities")["Table"]
    assert [(c["Name"], c["Type"]) for c in found["StorageDescriptor"]["Columns"]] == [
        ("id", "int"),
        ("full_name", "string"),
        ("naive", "string"),
        ("naive_1", "string"),
        ("_supa_synced", "timestamp"),
        ("_supa_deleted", "boolean"),
        ("_supa_index", "bigint"),
        ("_supa_id", "string"),
        ("_supa_job_id", "string"),
    ]
    assert [(c["Name"], c["Type"]) for c in found["PartitionKeys"]] == [("_supa_partition", "string")]
    assert found["StorageDescriptor"]["Location"] == f"{location}/cities"
    (partition,) = glue.get_partitions(DatabaseName=SCHEMA, TableName="cities")["Partitions"]
    assert (partition["Values"], partition["StorageDescriptor"]["Location"]) == (
        ["abc123"],
        f"{location}/cities/abc123",
    )


def test_same_job_id_again_changes_nothing(lake):
    lake.write(table("cities", lake.csv("cities.csv", CITIES)))
    lake.load("a")
    before = {key: body for key, body in lake.aws.objects(BUCKET).items() if "/loads/" not in key}
    report = lake.load("a")
    assert report.tables[0].status == "already_done"
    assert {key: body for key, body in lake.aws.objects(BUCKET).items() if "/loads/" not in key} == before


def test_same_job_id_again_starts_no_spark(lake):
    lake.write(table("cities", lake.csv("cities.csv", CITIES)), table("towns", lake.csv("towns.csv", CITIES)))
    lake.load("a")
    report = run(lake.spec, job_id="a", clients=Clients(lake.spec.access), spark=lambda: pytest.fail("Spark starts"))
    assert [result.status for result in report.tables] == ["already_done"] * 2


def test_incremental(lake):
    lake.write(table("events", lake.csv("events.csv", "id,at\n1,5\n2,7\n3,\n"), cursor="at"))
    assert [lake.load("a").tables[0].rows, lake.load("b").tables[0].rows] == [3, 0]
    lake.csv("events.csv", "id,at\n1,5\n2,7\n3,\n4,9\n5,7\n")
    assert lake.load("c").tables[0].rows == 1
    assert lake.rows("SELECT id, _supa_job_id FROM t ORDER BY id", f"{SCHEMA}/events") == [
        (1, "a"),
        (2, "a"),
        (3, "a"),
        (4, "c"),
    ]
    state = lake.control(f"{SCHEMA}.events").state.read()
    assert (state.committed, state.cursor.type, state.cursor.text) == (3, "int32", "9")


def test_cursor_lag_reads_again(lake):
    events = lake.csv("events.csv", "id,at\n1,2024-01-15T10:00:00Z\n2,2024-01-15T12:00:00Z\n")
    lake.write(table("events", events, cursor="at", cursor_lag="1 hour"))
    assert [lake.load("a").tables[0].rows, lake.load("b").tables[0].rows] == [2, 1]


def test_table_without_rows(lake):
    lake.write(table("cities", lake.csv("cities.csv", "id,name\n"), columns={"id": "int", "name": "string"}))
    assert [(t.status, t.rows, t.files) for t in lake.load("a").tables] == [("done", 0, 0)]
    glue = lake.aws.client("glue")
    assert len(glue.get_table(DatabaseName=SCHEMA, Name="cities")["Table"]["StorageDescriptor"]["Columns"]) == 7
    assert glue.get_partitions(DatabaseName=SCHEMA, TableName="cities")["Partitions"] == []


@pytest.mark.parametrize("rows", [5, 3000])
def test_both_feeds_write_the_same_rows(lake, rows):
    (lake.folder / "p").mkdir()
    for number in range(3):
        values = arrow(id=list(range(rows)), name=[f"{number}-{i}" for i in range(rows)])
        pq.write_table(values, lake.folder / "p" / f"{number}.parquet")
    written = {}
    files = {"format": "parquet", "path": "p"}
    for feed, read in {"splits": files, "rows": {"sql": "SELECT * FROM v", "views": {"v": files}}}.items():
        lake.write({"table": "t", "schema": "public", "read": read})
        assert lake.load(feed).tables[0].feed == feed
        query = "SELECT id, name, _supa_index, _supa_id FROM t ORDER BY _supa_index"
        written[feed] = lake.rows(query, f"{SCHEMA}/t/{feed}")
    assert written["splits"] == written["rows"]
    assert [row[2] for row in written["rows"]] == list(range(1, 3 * rows + 1))


EVOLUTIONS = [
    # the second file, Glue's columns after it, or the code it fails with
    ("id,name\n3,c\n", "id int,name string"),
    ("id,name,more\n3,c,1.5\n", "id int,name string,more double"),
    ("id\n3\n", "id int,name string"),
    ("id,name\n3000000000,c\n", "id bigint,name string"),
    ("id,name\nx,c\n", "SCHEMA_INCOMPATIBLE"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("second", "expected"), EVOLUTIONS)
def test_evolution(lake, second, expected):
    lake.write(table("t", lake.csv("t.csv", "id,name\n1,a\n")))
    lake.load("a")
    lake.csv("t.csv", second)
    (result,) = lake.load("b").tables
    found = lake.aws.client("glue").get_table(DatabaseName=SCHEMA, Name="t")["Table"]["StorageDescriptor"]["Columns"]
    columns = ",".join(f"{c['Name']} {c['Type']}" for c in found if not c["Name"].startswith("_supa_"))
    assert expected == (result.code or columns)
    assert len(lake.data()) == (1 if result.code else 2)


def test_narrower_source_is_cast_to_the_table(lake):
    lake.write(table("t", lake.csv("t.csv", "id\n3000000000\n")))
    lake.load("a")
    lake.csv("t.csv", "id\n1\n")
    lake.load("b")
    assert lake.rows("SELECT id, typeof(id) FROM t", f"{SCHEMA}/t/b") == [(1, "BIGINT")]
