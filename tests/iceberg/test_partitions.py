"""Partitioned Iceberg tables: each file in one partition, read back by PyIceberg with filters that prune."""

import re
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, IsNull

from lakewriter.aws import Clients
from lakewriter.operate.planning import plan
from tests.iceberg.commits import strays
from tests.iceberg.tables import SCHEMA
from tests.iceberg.test_readers import by_duckdb
from tests.load.lakes import BUCKET, completes, table, uploads_part
from tests.load.test_readers import differences

pytestmark = pytest.mark.spark

EVENTS = """id,kind,at
1,a,1969-12-31T23:59:59.999999Z
2,b/ä c,1969-12-31T23:59:59.999999Z
3,a,2024-01-15T10:00:00Z
4,,2024-01-15T11:00:00Z
5,a,
6,a,1969-12-31T00:00:00Z
7,a,2024-01-15T23:59:59Z
"""
DATA = f"data/production/{SCHEMA}/events/data"


def events(lake, text=EVENTS, **fields):
    """An entry for the events, by day and kind."""
    return table("events", lake.csv("events.csv", text), partition_by=["day(at)", "Kind"], **fields)


def bare(keys):
    """Keys without the UUIDs of the files' names."""
    return [re.sub(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet$", ".parquet", key) for key in keys]


def files(found):
    """Rows of each file by partition, and what a manifest says of the partition."""
    return {
        tuple(task.file.partition[place] for place in range(len(found.spec().fields))): task.file.record_count
        for task in found.scan().plan_files()
    }


def planned(lake, spark):
    spec, name = lake.spec, f"{SCHEMA}.events"
    controls = {name: lake.control(name)}
    (found,) = plan(spec, job_id="a", clients=Clients(spec.access), spark=lambda: spark, controls=controls)
    return found


@pytest.mark.exhaustive
def test_plan_then_load(lake, spark):
    lake.write(events(lake))
    found = planned(lake, spark)
    assert found.catalog == (
        f"create Iceberg table {SCHEMA}.events at s3://{BUCKET}/data/production/{SCHEMA}/events with 8 columns, "
        "partitioned by day(at), kind",
    )
    assert bare([found.key]) == [f"s3://{BUCKET}/{DATA}/at_day=*/kind=*/part-a-00000.parquet"]
    (result,) = lake.load("a").tables
    assert (result.message, result.rows) == (None, 7)
    assert bare(result.keys) == [
        f"{DATA}/at_day=1969-12-31/kind=a/part-a-00000.parquet",
        f"{DATA}/at_day=1969-12-31/kind=b%2F%C3%A4+c/part-a-00001.parquet",
        f"{DATA}/at_day=2024-01-15/kind=a/part-a-00002.parquet",
        f"{DATA}/at_day=2024-01-15/kind=null/part-a-00003.parquet",
        f"{DATA}/at_day=null/kind=a/part-a-00004.parquet",
    ]
    assert str(lake.table("events").spec()) == "[\n  1000: at_day: day(3)\n  1001: kind: identity(2)\n]"
    # Days since 1970.
    assert files(lake.table("events")) == {
        (-1, "a"): 2,
        (-1, "b/ä c"): 1,
        (19737, "a"): 2,
        (19737, None): 1,
        (None, "a"): 1,
    }
    assert sorted(lake.scan("events")["id"].to_pylist()) == [1, 2, 3, 4, 5, 6, 7]
    assert sorted(lake.scan("events")["_supa_index"].to_pylist()) == [1, 2, 3, 4, 5, 6, 7]
    assert differences(lake.scan("events"), by_duckdb(lake, "events")) == 0


FILTERS = [
    # filter, ids of the rows, files read
    (EqualTo(term="kind", value="b/ä c"), [2], 1),
    (IsNull(term="kind"), [4], 1),
    (IsNull(term="at"), [5], 1),
    (GreaterThanOrEqual(term="at", value="2024-01-15T11:00:00+00:00"), [4, 7], 2),
    (EqualTo(term="at", value="1969-12-31T23:59:59.999999+00:00"), [1, 2], 2),
]


SQL = {
    # filter of DuckDB, ids of the rows
    "kind = 'b/ä c'": [2],
    "kind IS NULL": [4],
    "\"at\" >= TIMESTAMPTZ '2024-01-15 11:00:00+00'": [4, 7],
    "\"at\" < TIMESTAMPTZ '1970-01-01 00:00:00+00'": [1, 2, 6],
}


def test_filters_prune(lake):
    lake.write(events(lake))
    lake.load("a")
    found = lake.table("events")
    for expression, ids, count in FILTERS:
        scan = found.scan(row_filter=expression)
        assert (len(list(scan.plan_files())), sorted(scan.to_arrow()["id"].to_pylist())) == (count, ids)
    for where, ids in SQL.items():
        assert sorted(by_duckdb(lake, "events", where=where)["id"].to_pylist()) == ids


TRANSFORMS = [
    # partition_by, rows by partition; buckets by mmh3.hash(id.to_bytes(8, "little"))
    (["year(at)", "truncate(5, id)"], {(-1, 0): 2, (-1, 5): 1, (54, 0): 2, (54, 5): 1, (None, 5): 1}),
    (["hour(at)"], {(-1,): 2, (-24,): 1, (473698,): 1, (473699,): 1, (473711,): 1, (None,): 1}),
    (["bucket(2, id)", "truncate(1, kind)"], {(0, "a"): 1, (0, "b"): 1, (0, None): 1, (1, "a"): 4}),
    (["_supa_job_id"], {("a",): 7}),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("partition_by", "expected"), TRANSFORMS)
def test_transforms(lake, partition_by, expected):
    lake.write(events(lake) | {"partition_by": partition_by})
    (result,) = lake.load("a").tables
    assert (result.message, files(lake.table("events"))) == (None, expected)
    assert sorted(lake.scan("events")["id"].to_pylist()) == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("query", [False, True], ids=["counted", "kept and counted"])
def test_many_tasks_write_a_file_for_each_partition(lake, spark, query):
    frame = spark.range(3000).selectExpr("id", "id % 3 AS kind", "timestamp_micros(id * 3600000000 - 7200000000) AS at")
    frame.repartition(4).write.parquet(str(lake.folder / "events"))
    read: dict[str, Any] = {"format": "parquet", "path": "events"}
    if query:
        read = {"sql": "SELECT * FROM events", "views": {"events": read}}
    lake.write({"table": "events", "schema": "public", "read": read, "partition_by": ["month(at)", "kind"]})
    (result,) = lake.load("a").tables
    rows = lake.scan("events")
    # Two hours of December 1969, of kinds 0 and 1; and five months of three kinds.
    assert (result.message, result.files, len(files(lake.table("events")))) == (None, 17, 17)
    assert sorted(rows["_supa_index"].to_pylist()) == list(range(1, 3001))
    source = pa.Table.from_pandas(frame.toPandas().sort_values("id"), preserve_index=False)
    assert rows.sort_by("id").select(["id", "kind"]).equals(source.select(["id", "kind"]))
    numbers = [int(key[-13:-8]) for key in bare(result.keys)]
    assert len(set(numbers)) == 17


POINTS = [
    # where a load is cut off, how many matching calls pass before
    ("while staging", uploads_part, 2),
    ("while completing", completes, 2),
    ("after the commit", lambda call: call.method == "PUT" and call.key.endswith(".report.json"), 0),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("match", "after"), [point[1:] for point in POINTS], ids=[point[0] for point in POINTS])
def test_cut_off_then_the_same_job_again(lake, match, after):
    lake.write(events(lake))
    lake.cut_off("a", match, after=after)
    assert lake.load("a").status == "done"
    found = lake.table("events")
    assert (len(found.snapshots()), len(files(found))) == (1, 5)
    assert sorted(found.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 5, 6, 7]
    assert (strays(lake.aws, found), lake.aws.uploads(BUCKET)) == (set(), [])


OTHER = [
    # partition_by of the first load, of the second
    ([], ["day(at)"]),
    (["bucket(4, id)"], ["bucket(8, id)"]),
    (["kind", "day(at)"], ["day(at)", "kind"]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("first", "second"), OTHER)
def test_table_partitioned_in_another_way(lake, first, second):
    lake.write(events(lake) | {"partition_by": first})
    lake.load("a")
    before = lake.files_of("events")
    lake.write(events(lake) | {"partition_by": second})
    (result,) = lake.load("b").tables
    assert (result.code, "is partitioned by" in result.message) == ("SCHEMA_INCOMPATIBLE", True)
    assert (lake.files_of("events"), lake.aws.uploads(BUCKET)) == (before, [])


def test_source_column_widened_between_loads(lake):
    lake.write(events(lake) | {"partition_by": ["id"]})
    lake.load("a")
    lake.write(events(lake, EVENTS + "3000000000,a,\n") | {"partition_by": ["id"]})
    assert lake.load("b").tables[0].message is None
    assert files(lake.table("events")).keys() == {(number,) for number in (1, 2, 3, 4, 5, 6, 7, 3_000_000_000)}
    scan = lake.table("events").scan(row_filter=EqualTo(term="id", value=3_000_000_000))
    assert (len(list(scan.plan_files())), scan.to_arrow().num_rows) == (1, 1)


REFUSED = [
    # partition_by, what the message says
    (["day(when)"], "the source has no column 'when'"),
    (["day(at)", "at", "hour(AT)"], "hour(at) repeats day(at)"),
    (["bucket(4, id)", "bucket(8, id)"], "bucket(8, id) repeats bucket(4, id)"),
    (["hour(kind)"], "column 'kind' is written as 'string'"),
    (["_supa_index"], "the source has no column '_supa_index'"),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("partition_by", "message"), REFUSED)
def test_refused_before_a_byte_is_written(lake, partition_by, message):
    lake.write(events(lake) | {"partition_by": partition_by})
    (result,) = lake.load("a").tables
    assert (result.code, message in result.message) == ("SPEC_INVALID", True), result.message
    assert lake.data() == {}


def test_column_with_the_name_of_a_field(lake):
    lake.write(events(lake, "id,kind,at,at_day\n1,a,2024-01-15T10:00:00Z,x\n"))
    (result,) = lake.load("a").tables
    assert (result.code, "named 'at_day', and so is a column" in result.message) == ("SPEC_INVALID", True)


def test_year_beyond_partitions_is_named_with_its_value(lake):
    x = {"format": "csv", "path": lake.csv("x.csv", "id\n1\n"), "options": {"header": "true"}}
    read = {"sql": "SELECT id, timestamp_micros(300000000000000000) AS at FROM x", "views": {"x": x}}
    lake.write({"table": "events", "schema": "public", "read": read, "partition_by": ["day(at)"]})
    (result,) = lake.load("a").tables
    assert (result.code, "11476-08-15" in result.message) == ("VALUE_UNREPRESENTABLE", True), result.message
