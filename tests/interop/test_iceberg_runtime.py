"""The Iceberg project's own Java runtime, in a Spark session, on tables that we wrote."""

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tests.iceberg.commits import Table
from tests.interop.maven import jars

pytestmark = pytest.mark.spark

JARS = {
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0": (
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
    ),
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0": "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
}


def rows(first: int) -> pa.Table:
    numbers = [first, first + 1]
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "n": pa.array([Decimal("1.50")] * 2, pa.decimal128(9, 2)),
            "at": pa.array([datetime(2024, 1, 15, 10, 30, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
            "day": pa.array([date(2024, 1, 15)] * 2),
            "tags": pa.array([["a", "b"]] * 2, pa.list_(pa.field("element", pa.string()))),
            "point": pa.array([{"x": 1, "y": 2}] * 2, pa.struct([("x", pa.int32()), ("y", pa.int32())])),
            "m": pa.array([[("k", first)]] * 2, pa.map_(pa.string(), pa.int64())),
        }
    )


def test_spark_reads_by_field_id_and_prunes_by_bounds(aws, bucket):
    classpath = ",".join(map(str, jars(JARS, sha256=JARS)))
    table = Table(aws)
    table.publish(table.intent("a", rows(0)), 1)
    table.publish(table.intent("b", rows(10), committed=1), 2)
    aws.hide_missing = False
    with table.seen.update_schema() as update:
        # The files still say "id": only the field id tells that it is the same column.
        update.rename_column("id", "key")
    first = str(table.seen.snapshots()[0].snapshot_id)
    script = Path(__file__).parent / "read_with_spark.py"
    done = subprocess.run(
        [sys.executable, str(script), classpath, aws.url, first],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("FOUND"))[5:])
    assert found["columns"] == [
        ["key", "bigint"],
        ["n", "decimal(9,2)"],
        ["at", "timestamp"],
        ["day", "date"],
        ["tags", "array<string>"],
        ["point", "struct<x:int,y:int>"],
        ["m", "map<string,bigint>"],
    ]
    assert [row["key"] for row in found["rows"]] == [0, 1, 10, 11]
    assert found["rows"][0] == {
        "key": 0,
        "n": "1.50",
        "at": "2024-01-15 10:30:00",
        "day": "2024-01-15",
        "tags": ["a", "b"],
        "point": {"x": 1, "y": 2},
        "m": {"k": 0},
    }
    assert found["first"] == 2
    assert found["bounds"] == [[0, 1], [10, 11]]
    assert found["filtered"] < found["tasks"]
