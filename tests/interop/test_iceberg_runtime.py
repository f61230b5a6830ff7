"""The Iceberg project's own Java runtime, in a Spark session, on tables that we wrote."""

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.iceberg.commits import Table
from tests.interop.maven import jars

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive]

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


EVENTS = [
    # in the order of their partitions: a microsecond before 1970, values that a directory has escaped, nulls, and the
    # number and decimal of Iceberg's own examples of hashes
    (1, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "a/b ~*ä", Decimal("-0.05"), 34),
    (2, datetime(1969, 12, 31, 0, 0, tzinfo=UTC), "a/b ~*ä", Decimal("-0.10"), 34),
    (3, datetime(2024, 1, 15, 10, 30, tzinfo=UTC), "a", Decimal("14.20"), 34),
    (4, datetime(2024, 1, 15, 10, 30, tzinfo=UTC), None, Decimal("14.20"), -1),
    (5, None, "null", None, None),
]
PARTITION_BY = ("day(at)", "kind", "truncate(10, n)", "bucket(100, key)", "bucket(100, n)")
PARTITIONS: list[dict[str, Any]] = [
    # Hashes of https://iceberg.apache.org/spec/#appendix-b-32-bit-hash-requirements; mmh3 of the others' bytes.
    {"at_day": "1969-12-31", "kind": "a/b ~*ä", "n_trunc": "-0.10", "key_bucket": 79, "n_bucket": 90},
    {"at_day": "1969-12-31", "kind": "a/b ~*ä", "n_trunc": "-0.10", "key_bucket": 79, "n_bucket": 34},
    {"at_day": "2024-01-15", "kind": "a", "n_trunc": "14.20", "key_bucket": 79, "n_bucket": 59},
    {"at_day": "2024-01-15", "kind": None, "n_trunc": "14.20", "key_bucket": 12, "n_bucket": 59},
    {"at_day": None, "kind": "null", "n_trunc": None, "key_bucket": None, "n_bucket": None},
]
PRUNED = {
    # filter: how many files are read, ids of the rows. Spark computes the same hashes, or it would miss rows.
    "at < '1970-01-01'": [2, [1, 2]],
    "at >= '2024-01-15 10:00:00'": [2, [3, 4]],
    "kind = 'a/b ~*ä'": [2, [1, 2]],
    "kind IS NULL": [1, [4]],
    "kind = 'null'": [1, [5]],
    "key = 34": [3, [1, 2, 3]],
    "key = -1": [1, [4]],
    "n = 14.20": [2, [3, 4]],
    "n = -0.05": [1, [1]],
    "at IS NULL": [1, [5]],
}


def events() -> pa.Table:
    ids, at, kinds, numbers, keys = zip(*EVENTS, strict=True)
    return pa.table(
        {
            "id": pa.array(ids, pa.int32()),
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "kind": pa.array(kinds),
            "n": pa.array(numbers, pa.decimal128(9, 2)),
            "key": pa.array(keys, pa.int64()),
        }
    )


def test_spark_reads_by_field_id_and_prunes_by_bounds_and_partitions(aws, bucket):
    classpath = ",".join(map(str, jars(JARS, sha256=JARS)))
    table = Table(aws)
    table.publish(table.intent("a", rows(0)), 1)
    # The first file still says "id": only the field id tells that it is the same column.
    table.renames = {"id": "key"}
    later = rows(10)
    table.publish(table.intent("b", later.rename_columns(["key", *later.column_names[1:]]), committed=1), 2)
    partitioned = Table(aws, name="p")
    partitioned.publish(partitioned.partitioned("a", events(), *PARTITION_BY), 1)
    first = str(table.seen.snapshots()[0].snapshot_id)
    script = Path(__file__).parent / "read_with_spark.py"
    done = subprocess.run(
        [sys.executable, str(script), classpath, aws.url, first, json.dumps(list(PRUNED))],
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
    assert sorted(found["partitions"], key=str) == sorted(({**each, "record_count": 1} for each in PARTITIONS), key=str)
    assert found["pruned"] == PRUNED
