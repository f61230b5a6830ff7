"""Where a sync's records come from: a connector, standard input, folders and compressed files, any Spark source."""

import gzip
import io
import json
import sys

import duckdb
import pytest

from lakewriter.aws import Clients
from lakewriter.operate.planning import plan
from tests.load.syncs import BUCKET, SyncLake, catalog, record, state, stream

pytestmark = pytest.mark.spark

PARQUET = {"format": {"format_type": "Parquet"}}
JSONL = {"format": {"format_type": "JSONL", "compression": {"compression_type": "No Compression"}}}
CONNECTOR = """
import json, pathlib, sys
state = json.loads(pathlib.Path(sys.argv[sys.argv.index("--state") + 1]).read_text()) if "--state" in sys.argv else []
first = state[0]["stream"]["stream_state"]["cursor"] if state else 0
print("starting up")
for number in range(first + 1, first + 4):
    data = {"user_id": number}
    own = {"stream": "users", "namespace": "public", "data": data, "emitted_at": 0}
    print(json.dumps({"type": "RECORD", "record": own}))
own = {"stream_descriptor": {"name": "users", "namespace": "public"}, "stream_state": {"cursor": first + 3}}
print(json.dumps({"type": "STATE", "state": {"type": "STREAM", "stream": own}}))
if first >= 3 and "--fail" in sys.argv:
    sys.stderr.write("no more of this")
    sys.exit(3)
"""


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


def ids(lake):
    return sorted(row["user_id"] for row in lake.rows())


def test_connector_gets_its_state_back(lake):
    (lake.folder / "source.py").write_text(CONNECTOR, "utf-8")
    source = {"command": [sys.executable, "source.py", "--fail"], "catalog": catalog(stream("users"))}
    lake.write(PARQUET, source=source)
    report = lake.load("a")
    assert (report.status, ids(lake)) == ("done", [1, 2, 3])
    assert report.notes == ("1 line of the input were no message, such as 'starting up'.",)
    report = lake.load("b")
    assert "exit code 3: no more of this" in report.tables[0].message
    assert ids(lake) == [1, 2, 3, 4, 5, 6]
    lake.load("b")
    assert ids(lake) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


def test_standard_input(lake, monkeypatch):
    lake.write(PARQUET, source={"messages": "-", "catalog": catalog(stream("users"))})
    lines = json.dumps(record("users", {"user_id": 1})) + "\n" + json.dumps(state("users", 1))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert lake.load("a").status == "done"
    assert ids(lake) == [1]


def test_folder_with_a_compressed_file(lake):
    (lake.folder / "in").mkdir()
    lake.messages(*(record("users", {"user_id": n}) for n in range(5)), name="in/1.jsonl")
    more = "".join(json.dumps(record("users", {"user_id": n})) + "\n" for n in range(5, 9))
    (lake.folder / "in" / "2.jsonl.gz").write_bytes(gzip.compress(more.encode()))
    lake.write(PARQUET, source={"messages": "in", "catalog": catalog(stream("users"))})
    lake.load("a")
    assert ids(lake) == list(range(9))


def test_messages_in_s3(lake):
    text = "".join(json.dumps(record("users", {"user_id": n})) + "\n" for n in range(5))
    lake.aws.client("s3").create_bucket(Bucket="landing")
    lake.aws.client("s3").put_object(Bucket="landing", Key="in/1.jsonl", Body=text.encode())
    lake.write(PARQUET, source={"messages": "s3://landing/in", "catalog": catalog(stream("users"))})
    lake.load("a")
    assert ids(lake) == list(range(5))


@pytest.mark.exhaustive
def test_many_splits_lose_no_line(lake, spark):
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4000")
    lake.messages(*(record("users", {"user_id": n, "name": {"first": "x" * (n % 97)}}) for n in range(500)))
    lake.write(PARQUET | {"s3_path_format": "${STREAM_NAME}/${EPOCH}_"},
               source={"messages": "m.jsonl", "catalog": catalog(stream("users"))})  # fmt: skip
    report = lake.load("a")
    spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    assert report.tables[0].files > 10
    assert ids(lake) == list(range(500))


TYPED = (
    "SELECT 1 AS id, CAST(1.50 AS DECIMAL(10,2)) AS price, CAST('NaN' AS DOUBLE) AS odd, DATE '2024-01-15' AS day,"
    " named_struct('a b', 5L, 'c', array(1, NULL)) AS inner, '' AS empty, CAST(NULL AS STRING) AS nothing"
)


def typed(form, lake):
    read = {"sql": TYPED}
    lake.write({"format": form}, tables=[{"table": "items", "schema": "shop", "read": read, "mode": "overwrite"}])
    report = lake.load("a")
    assert report.status == "done", report
    return report


def test_spark_source_in_text(lake):
    typed(JSONL["format"], lake)
    ((_, body),) = lake.data().items()
    row = json.loads(body)
    assert b'"price":1.50' in body
    assert row["_airbyte_meta"] == {
        "sync_id": 1,
        "changes": [{"field": "odd", "change": "NULLED", "reason": "DESTINATION_SERIALIZATION_ERROR"}],
    }
    assert row["_airbyte_generation_id"] == 1
    assert row["_airbyte_data"] == {
        "id": 1, "price": 1.5, "odd": None, "day": "2024-01-15", "inner": {"a b": 5, "c": [1, None]}, "empty": "",
        "nothing": None,
    }  # fmt: skip


@pytest.mark.parametrize("form", ["Avro", "Parquet"])
def test_spark_source_in_typed_files(lake, form):
    typed({"format_type": form}, lake)
    (row,) = lake.rows()
    assert (str(row["price"]), str(row["day"]), row["inner"]) == ("1.50", "2024-01-15", {"a_b": 5, "c": [1, None]})
    assert (row["empty"], row["nothing"]) == ("", None)


CODECS = ["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("codec", CODECS)
def test_parquet_codecs_and_knobs(lake, spark, codec):
    form = {"format_type": "Parquet", "compression_codec": codec, "page_size_kb": 8, "dictionary_page_size_kb": 4}
    messages = lake.messages(*(record("users", {"user_id": n, "name": {"first": f"n{n}"}}) for n in range(2000)))
    lake.write({"format": form}, source={"messages": messages, "catalog": catalog(stream("users"))})
    lake.load("a")
    ((_, body),) = lake.data().items()
    path = lake.folder / "a.parquet"
    path.write_bytes(body)
    expected = [(n, f"n{n}") for n in range(2000)]
    query = f"SELECT user_id, name.first FROM '{path}' ORDER BY 1"
    assert duckdb.sql(query).fetchall() == expected
    (found,) = duckdb.sql(f"SELECT DISTINCT compression FROM parquet_metadata('{path}')").fetchall()
    assert found[0] == {"LZ4": "LZ4_RAW"}.get(codec, codec)
    if codec != "BROTLI":
        # Spark has no Brotli of its own.
        rows = spark.read.parquet(str(path)).selectExpr("user_id", "name.first").orderBy("user_id").collect()
        assert [tuple(row) for row in rows] == expected


def test_plan_lists_what_an_overwrite_deletes(lake):
    typed({"format_type": "Parquet"}, lake)
    (key,) = lake.data()
    spec = lake.spec
    (planned,) = plan(spec, job_id="b", clients=Clients(spec.access), spark=lambda: lake._spark,
                      controls={"shop.items": lake.control("shop.items")})  # fmt: skip
    assert planned.error is None
    assert planned.deletes == (f"s3://{BUCKET}/{key}",)
    assert planned.deleted_bytes == len(lake.data()[key])
