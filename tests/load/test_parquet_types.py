"""Every physical type of Parquet with every logical one it may have, loaded by the tasks and through Spark.

What lies in the lake is what DuckDB reads of the source, or the source is refused.

See: https://github.com/apache/parquet-format/blob/master/LogicalTypes.md
"""

import os
import struct
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from tests.source.tables import rows, table

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
NOON = 1 << 45
"""Nanoseconds of a day. Numbers of 64 bits are such that Python's bridge to Java takes them for no shorter ones."""
YEARS = (-62135596800, 253402300799)
"""Seconds: the first of year 1, the last of 9999."""
NINES = 10**38 - 1


def signed(number, width=16):
    return number.to_bytes(width, "big", signed=True)


def times(unit):
    return [YEARS[0] * unit, YEARS[1] * unit + unit - 1]


TYPES = [
    # the type in Parquet's own words, two values, the SQL that compares them
    ("boolean", [True, False], "text"),
    ("int32", [-(2**31), 2**31 - 1], "text"),
    ("int32 (INTEGER(8,true))", [-128, 127], "text"),
    ("int32 (INTEGER(16,true))", [-(2**15), 2**15 - 1], "text"),
    ("int32 (INTEGER(32,true))", [-(2**31), 2**31 - 1], "text"),
    ("int32 (INTEGER(8,false))", [0, 255], "text"),
    ("int32 (INTEGER(16,false))", [0, 65535], "text"),
    ("int32 (INTEGER(32,false))", [1, -1], "text"),
    ("int32 (DATE)", [-719162, 2932896], "text"),
    ("int32 (DATE)", [-141428, -141427], "text"),
    ("int32 (DECIMAL(9,2))", [-999999999, 999999999], "text"),
    ("int64", [-(2**63), 2**63 - 1], "text"),
    ("int64 (INTEGER(64,true))", [-(2**63), 2**63 - 1], "text"),
    ("int64 (INTEGER(64,false))", [NOON, -NOON], "text"),
    ("int64 (DECIMAL(18,6))", [-(10**18) + 1, 10**18 - 1], "text"),
    ("int64 (TIMESTAMP(MILLIS,true))", times(1000), "micros"),
    ("int64 (TIMESTAMP(MILLIS,false))", times(1000), "micros"),
    ("int64 (TIMESTAMP(MICROS,true))", times(1_000_000), "micros"),
    ("int64 (TIMESTAMP(MICROS,false))", times(1_000_000), "micros"),
    # Julian days, and nanoseconds of the day.
    ("int96", [(1721426, NOON // 1000 * 1000), (5373484, 86_399_999_999_000)], "micros"),
    ("double", [0.1, float("-inf")], "text"),
    ("binary", [b"\x00\xff", b""], "bytes"),
    ("binary (STRING)", ["é\0".encode(), b""], "bytes"),
    ("binary (JSON)", [b'{"a": 1.10}', b"null"], "bytes"),
    ("binary (ENUM)", [b"A", b"B"], "bytes"),
    ("binary (DECIMAL(38,10))", [signed(-NINES), signed(5, 1)], "text"),
    ("fixed_len_byte_array(3)", [b"abc", b"\x00\x01\xff"], "bytes"),
    ("fixed_len_byte_array(16) (DECIMAL(38,10))", [signed(-NINES), signed(5)], "text"),
    ("int64 (TIMESTAMP(NANOS,true))", [NOON // 1000 * 1000, -NOON // 1000 * 1000], "micros"),
    ("int64 (TIMESTAMP(NANOS,false))", [NOON // 1000 * 1000, -(10**15)], "micros"),
    ("int32 (TIME(MILLIS,true))", [0, 86_399_999], "time"),
    ("int32 (TIME(MILLIS,false))", [45_000_000, 1], "text"),
    ("int64 (TIME(MICROS,true))", [NOON // 1000, 40_000_500_000], "time"),
    ("int64 (TIME(MICROS,false))", [86_399_999_999, NOON // 1000], "text"),
    ("fixed_len_byte_array(16) (UUID)", [bytes(range(16)), b"\xff" * 16], "text"),
    ("fixed_len_byte_array(2) (FLOAT16)", [b"\x00\x3e", b"\x01\x00"], "text"),
]
READ = [
    # types that DuckDB does not read, or not to the nanosecond: a value, what it becomes
    ("int64 (TIME(NANOS,true))", NOON, "09:46:24.372088832"),
    ("int64 (TIME(NANOS,false))", 3_600_000_000_000, "01:00:00"),
]
REFUSED = [
    # the type, a value, the message
    # Java's library says that all of its values are null.
    ("fixed_len_byte_array(12) (INTERVAL)", struct.pack("<III", 1, 2, 3), "column 'c0' is an interval"),
    ("fixed_len_byte_array(21) (DECIMAL(50,10))", signed(5, 21), r"column 'c0' is decimal\(50,10\), beyond 38 digits"),
]
SQL = {"text": "{}::VARCHAR", "time": "replace({}::VARCHAR, '+00', '')", "micros": "epoch_us({})", "bytes": "hex({})"}


def write(spark, path, types, rows):
    """A file by Parquet's own Java library, which writes every type; the last row is null."""
    jvm = spark._jvm
    parquet = jvm.org.apache.parquet
    fields = (f"optional {kind.replace(' (', f' c{n} (', 1) if ' (' in kind else f'{kind} c{n}'};"
              for n, kind in enumerate(types))  # fmt: skip
    schema = parquet.schema.MessageTypeParser.parseMessageType(f"message m {{ {' '.join(fields)} }}")
    to = jvm.org.apache.hadoop.fs.Path(str(path))
    writer = parquet.hadoop.example.ExampleParquetWriter.builder(to).withType(schema).build()
    groups = parquet.example.data.simple.SimpleGroupFactory(schema)
    for row in [*rows, []]:
        group = groups.newGroup()
        for number, value in enumerate(row):
            if isinstance(value, tuple):
                value = parquet.example.data.simple.NanoTime(*value)
            elif isinstance(value, bytes):
                value = parquet.io.api.Binary.fromConstantByteArray(bytearray(value))
            group.add(f"c{number}", value)
        writer.write(group)
    writer.close()


def read(connection, files, types):
    columns = ", ".join(SQL[how].format(f"c{number}") for number, (_, _, how) in enumerate(types))
    source = f"read_parquet({list(map(str, files))!r}, union_by_name = true)"
    return connection.execute(f"SELECT {columns}, f::VARCHAR FROM {source} ORDER BY ALL").fetchall()


@pytest.mark.parametrize("feed", ["splits", "rows"])
def test_values_are_those_of_the_source(lake, spark, feed):
    sources = lake.folder / "sources"
    sources.mkdir()
    values = zip(*(values for _, values, _ in TYPES), strict=True)
    write(spark, sources / "types.parquet", [kind for kind, *_ in TYPES], values)
    # Python's bridge to Java has no float.
    pq.write_table(pa.table({"f": pa.array([1.1, float("nan"), None], pa.float32())}), sources / "floats.parquet")
    files = {"format": "parquet", "path": str(sources)}
    asked = files if feed == "splits" else {"sql": "SELECT * FROM v", "views": {"v": files}}
    lake.write({"table": "types", "read": asked})
    [result] = lake.load("a").tables
    assert (result.status, result.feed) == ("done", feed), result.message
    for number, body in enumerate(lake.data().values()):
        (lake.folder / f"{number}.parquet").write_bytes(body)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found, source = (read(connection, folder.glob("*.parquet"), TYPES) for folder in (lake.folder, sources))
    assert found == source


@pytest.mark.parametrize(("kind", "value", "text"), READ)
def test_other_types_are_read_as_text(spark, tmp_path, kind, value, text):
    write(spark, tmp_path / "a.parquet", [kind], [[value]])
    feed = open_feed(RowsRequest(lambda: spark, table(format="parquet", path=str(tmp_path))))
    assert rows(feed) == [[text], [None]]


@pytest.mark.parametrize(("kind", "value", "message"), REFUSED)
def test_what_cannot_be_written_is_refused(spark, tmp_path, kind, value, message):
    write(spark, tmp_path / "a.parquet", [kind], [[value]])
    with pytest.raises(SchemaIncompatibleError, match=message):
        open_feed(RowsRequest(lambda: spark, table(format="parquet", path=str(tmp_path))))


@pytest.mark.exhaustive
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_values_are_the_same_in_another_zone(zone):
    command = [sys.executable, "-m", "pytest", "-q", f"{__file__}::test_values_are_those_of_the_source"]
    result = subprocess.run(command, cwd=ROOT, env=os.environ | {"TZ": zone}, check=False, capture_output=True)
    assert result.returncode == 0, result.stdout.decode()
    assert b"2 passed" in result.stdout
