"""CSV and JSON Lines: exact bytes, and values read back by Python's csv and json, DuckDB and Spark."""

import csv
import gzip
import io
import json

import duckdb
import pyarrow as pa
import pytest

from lakewriter.documents.types import JSON, KIND
from lakewriter.encode.csv_and_jsonl import TextEncoder
from lakewriter.spec.encodings import TextEncoding


def json_field(name: str) -> pa.Field:
    return pa.field(name, pa.string(), metadata={KIND: JSON})


def written(table: pa.Table, kind: str, *, packed: bool = False) -> bytes:
    sink = io.BytesIO()
    TextEncoder(TextEncoding(kind=kind, gzip=packed)).write(table.schema, iter(table.to_batches()), sink, 1000)
    return sink.getvalue()


CELLS = [
    # JSON text of a value, the CSV cell, what Python's csv reads
    ("1", "1", "1"),
    ("-12345678901234567890123.50", "-12345678901234567890123.50", "-12345678901234567890123.50"),
    ("1e400", "1e400", "1e400"),
    ('"a"', '"a"', "a"),
    ('""', '""', ""),
    ('"say \\"hi\\", ü\\n\\u65e5"', '"say ""hi"", ü\n日"', 'say "hi", ü\n日'),
    ("true", '"true"', "true"),
    ('{"a": [1, "x"]}', '"{""a"": [1, ""x""]}"', '{"a": [1, "x"]}'),
    ("null", "", ""),
    (None, "", ""),
]


@pytest.mark.parametrize(("fragment", "cell", "value"), CELLS)
def test_csv_cell(fragment, cell, value):
    table = pa.table(
        [["x"], [fragment], [7]], schema=pa.schema([("a", pa.string()), json_field("b"), ("c", pa.int64())])
    )
    data = written(table, "csv").decode()
    assert data == f'"a","b","c"\r\n"x",{cell},7\r\n'
    assert list(csv.reader(io.StringIO(data, newline="")))[1] == ["x", value, "7"]


def test_jsonl_line():
    schema = pa.schema([("a", pa.string()), ("n", pa.int64()), json_field("b"), json_field("c")])
    table = pa.table([['say "hi"\n\\ ü\x01'], [5], ['{"x": 1.10}'], [None]], schema=schema)
    data = written(table, "jsonl").decode()
    assert data == '{"a":"say \\"hi\\"\\n\\\\ ü\\u0001","n":5,"b":{"x": 1.10},"c":null}\n'
    assert json.loads(data)["a"] == 'say "hi"\n\\ ü\x01'


def test_gzip_is_one_stream_and_the_same_every_time():
    table = pa.table({"n": range(100_000)})
    once, again = written(table, "csv", packed=True), written(table, "csv", packed=True)
    assert once == again
    assert gzip.decompress(once) == written(table, "csv")


def test_header_of_a_file_without_rows():
    assert written(pa.table({'a"b': pa.array([], pa.int64())}), "csv") == b'"a""b"\r\n'
    assert written(pa.table({"a": pa.array([], pa.int64())}), "jsonl") == b""


ODD = ["", " ", "\n", "\r\n", '"', '""', ",", "'", "\\", "ü", "日本", "🎉", "NULL", "null", "1", "-", "\t", None]


def test_duckdb_reads_nulls_and_odd_texts(tmp_path):
    table = pa.table({"n": range(len(ODD)), "text": ODD})
    (tmp_path / "a.csv").write_bytes(written(table, "csv"))
    (tmp_path / "a.jsonl").write_bytes(written(table, "jsonl"))
    options = "header=true, quote='\"', escape='\"', allow_quoted_nulls=false, all_varchar=true, new_line='\\r\\n'"
    found = duckdb.sql(f"SELECT text FROM read_csv('{tmp_path}/a.csv', {options})").fetchall()
    assert [row[0] for row in found] == ODD
    found = duckdb.sql(f"SELECT text FROM read_json('{tmp_path}/a.jsonl') ORDER BY n").fetchall()
    assert [row[0] for row in found] == ODD


@pytest.mark.spark
def test_spark_reads_nulls_and_odd_texts(spark, tmp_path):
    table = pa.table({"n": range(len(ODD)), "text": ODD})
    (tmp_path / "a.csv").write_bytes(written(table, "csv"))
    (tmp_path / "a.jsonl").write_bytes(written(table, "jsonl"))
    reader = spark.read.options(header=True, multiLine=True, quote='"', escape='"', emptyValue="(empty)")
    rows = reader.schema("n INT, text STRING").csv(str(tmp_path / "a.csv")).orderBy("n").collect()
    # Its CSV parser turns every line end inside a value into "\n".
    assert [row.text for row in rows] == ["(empty)", " ", "\n", "\n", *ODD[4:]]
    rows = spark.read.json(str(tmp_path / "a.jsonl")).orderBy("n").collect()
    assert [row.text for row in rows] == ODD
