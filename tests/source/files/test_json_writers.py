"""JSON that others write comes back equal: Python's json, pandas, DuckDB, Spark, and the product's own encoder."""

import io
import json
import math
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakewriter.documents.types import JSON, KIND
from lakewriter.encode.csv_and_jsonl import TextEncoder
from lakewriter.spec.encodings import TextEncoding
from tests.source.files.json_files import read_files

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | TEXT,
            "whole": st.none() | st.integers(-(2**63), 2**63 - 1),
            "number": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "truth": st.none() | st.booleans(),
            "list": st.none() | st.lists(st.integers(0, 9) | st.none(), max_size=3),
            "object": st.none() | st.fixed_dictionaries({"x": st.integers(-9, 9), "é y": TEXT}),
        }
    ),
    min_size=1,
    max_size=8,
)
SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("whole", pa.int64()),
        ("number", pa.float64()),
        ("truth", pa.bool_()),
        ("list", pa.list_(pa.field("element", pa.int64()))),
        ("object", pa.struct([("x", pa.int64()), ("é y", pa.string())])),
    ]
)
Rows = Sequence[dict[str, Any]]


def write_by_python(rows: Rows) -> bytes:
    return "\n".join(json.dumps(row) for row in rows).encode()


def write_by_python_unescaped(rows: Rows) -> bytes:
    return "\r\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows).encode()


def write_by_pandas(rows: Rows) -> bytes:
    frame = pd.DataFrame(list(rows), dtype=object)
    text: str = frame.to_json(orient="records", lines=True, double_precision=15)
    return text.encode()


def write_by_duckdb(rows: Rows) -> bytes:
    written = pa.Table.from_pylist(list(rows), SCHEMA)  # noqa: F841 - the statement names it
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.json"
        duckdb.sql(f"COPY (SELECT * FROM written) TO '{path}' (FORMAT json)")
        return Path(path).read_bytes()


def write_by_product(rows: Rows) -> bytes:
    plain = ("text", "whole")
    texts = [
        {name: value if name in plain or value is None else json.dumps(value) for name, value in row.items()}
        for row in rows
    ]
    fields = [
        SCHEMA.field(name) if name in plain else pa.field(name, pa.string(), metadata={KIND: JSON})
        for name in SCHEMA.names
    ]
    table, sink = pa.Table.from_pylist(texts, pa.schema(fields)), io.BytesIO()
    TextEncoder(TextEncoding(kind="jsonl", gzip=False)).write(table.schema, iter(table.to_batches()), sink, 1000)
    return sink.getvalue()


@pytest.mark.parametrize(
    "write", [write_by_python, write_by_python_unescaped, write_by_duckdb, write_by_product], ids=lambda w: w.__name__
)
@settings(max_examples=30, deadline=None)
@given(rows=ROWS)
def test_rows_come_back(tmp_path_factory, write, rows):
    _, read = read_files(tmp_path_factory.getbasetemp(), write(rows), columns=SCHEMA)
    assert [(row.values, row.reason) for row in read] == [(row, None) for row in rows]
    assert [repr(row.values["number"]) for row in read] == [repr(row["number"]) for row in rows]


@settings(max_examples=30, deadline=None)
@given(rows=ROWS)
def test_rows_of_pandas_come_back(tmp_path_factory, rows):
    """It writes no more than 15 digits, as its documentation says."""
    rows = [{**row, "number": math.fmod(row["number"], 1e15) if row["number"] else row["number"]} for row in rows]
    _, read = read_files(tmp_path_factory.getbasetemp(), write_by_pandas(rows), columns=SCHEMA)
    assert [row.reason for row in read] == [None] * len(rows)
    for row, written in zip(read, rows, strict=True):
        assert {**row.values, "number": None} == {**written, "number": None}
        assert (row.values["number"] is None) == (written["number"] is None)
        assert (row.values["number"] or 0.0) == pytest.approx(written["number"] or 0.0, rel=1e-14, abs=1e-14)


@settings(max_examples=30, deadline=None)
@given(rows=ROWS)
def test_columns_that_are_found_have_the_same_values(tmp_path_factory, rows):
    schema, read = read_files(tmp_path_factory.getbasetemp(), write_by_python(rows))
    assert schema.names == sorted(SCHEMA.names)
    for name in ("text", "whole", "truth"):
        assert [row.values[name] for row in read] == [row[name] for row in rows]


@pytest.mark.spark
def test_rows_of_spark_come_back(tmp_path, spark):
    rows: Rows = [
        {"text": 'a "b" \\ \n é😀\x00', "whole": 2**63 - 1, "number": -0.0, "truth": True, "list": [1, None]},
        {"text": "", "whole": None, "number": 5e-324, "truth": None, "list": []},
        {"text": None, "whole": -(2**63), "number": 1.7976931348623157e308, "truth": False, "list": None},
    ]
    columns = "text string, whole bigint, number double, truth boolean, list array<bigint>"
    frame = spark.createDataFrame([tuple(row.values()) for row in rows], columns)
    frame.coalesce(1).write.json(str(tmp_path / "out"), ignoreNullFields=False)
    content = next((tmp_path / "out").glob("*.json")).read_bytes()
    schema, read = read_files(tmp_path, content, columns=pa.schema([SCHEMA.field(name) for name in rows[0]]))
    assert [row.values for row in read] == rows
    assert [repr(row.values["number"]) for row in read] == ["-0.0", "5e-324", "1.7976931348623157e+308"]
    assert schema.names == list(rows[0])


@pytest.mark.spark
def test_times_of_spark_come_back(tmp_path, spark):
    moment = datetime(2024, 1, 5, 10, 0, 0, 123456, UTC)
    spark.createDataFrame([(moment,)], "t timestamp").coalesce(1).write.json(
        str(tmp_path / "out"), timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
    )
    content = next((tmp_path / "out").glob("*.json")).read_bytes()
    _, read = read_files(tmp_path, content, columns=pa.schema([("t", pa.timestamp("us", "UTC"))]))
    assert read[0].values == {"t": moment}
