"""Values of Parquet files that both feeds would change or spoil: nanoseconds of INT96, text that is not UTF-8."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import ValueUnrepresentableError
from lakewriter.source.feed import open_feed
from lakewriter.source.int96 import require_microseconds
from tests.source.tables import DELETED, rows, table

NANOS = 1_705_314_600_123_456_789
"""2024-01-15 10:30:00.123456789."""
FIRST, LAST = -(2**63) + 1, 2**63 - 1
"""The years 1677 and 2262: all that pyarrow writes as INT96."""


def int96(values: list[int | None]) -> pa.Array:
    return pa.array(values, pa.timestamp("ns"))


def a_file(columns: dict[str, pa.Array], **options) -> io.BytesIO:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, use_deprecated_int96_timestamps=True, **options)
    return out


VALUES = [
    # columns; the column and the timestamp that are named
    ({"t": int96([NANOS - 789, None, 0])}, None),
    ({"t": int96([NANOS - 789, None, NANOS])}, ("t", "2024-01-15 10:30:00.123456789")),
    ({"t": int96([-1])}, ("t", "1969-12-31 23:59:59.999999999")),
    ({"t": int96([FIRST])}, ("t", "1677-09-21 00:12:43.145224193")),
    ({"t": int96([LAST])}, ("t", "2262-04-11 23:47:16.854775807")),
    ({"n": pa.array([1]), "t": pa.array([[{"u": NANOS}]], pa.list_(pa.struct([("u", pa.timestamp("ns"))])))},
     ("t", "2024-01-15 10:30:00.123456789")),
    ({"n": pa.array([NANOS])}, None),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "found"), VALUES)
def test_nanoseconds_are_found(columns, found):
    source = pa.BufferReader(a_file(columns).getvalue())
    if found is None:
        require_microseconds(source, pq.read_metadata(source), "f.parquet", 0)
        return
    with pytest.raises(ValueUnrepresentableError) as raised:
        require_microseconds(source, pq.read_metadata(source), "f.parquet", 0)
    assert raised.value.message == (
        f"'f.parquet': column {found[0]!r} has the INT96 timestamp {found[1]}, whose nanoseconds would be cut."
    )


def test_files_that_spark_wrote_are_not_looked_at():
    noted = pa.table({"t": int96([NANOS])}).replace_schema_metadata({"org.apache.spark.version": "4.1.1"})
    out = io.BytesIO()
    pq.write_table(noted, out, use_deprecated_int96_timestamps=True)
    source = pa.BufferReader(out.getvalue())
    require_microseconds(source, pq.read_metadata(source), "f.parquet", 0)


def load(spark, folder, prefer, condition=None, **fields):
    asked = table(format="parquet", path=str(folder), cursor="code" if condition else None, **fields)
    return rows(open_feed(lambda: spark, asked, deleted_column=DELETED, prefer=prefer, condition=condition))


@pytest.mark.spark
@pytest.mark.parametrize("prefer", ["splits", "rows"])
def test_nanoseconds_fail_the_load(spark, tmp_path, prefer):
    (tmp_path / "a.parquet").write_bytes(a_file({"t": int96([NANOS])}).getvalue())
    with pytest.raises(ValueUnrepresentableError, match=r"a\.parquet': column 't' has the INT96 timestamp 2024-01-15 "):
        load(spark, tmp_path, prefer)
    with pytest.raises(ValueUnrepresentableError, match="INT96 timestamp"):
        load(spark, tmp_path, "auto", columns={"T": "timestamp"})
    assert load(spark, tmp_path, "auto", truncates_nanoseconds=True) == [["2024-01-15 10:30:00.123456+00:00"]]


@pytest.mark.spark
def test_values_of_folders_are_text_unless_a_type_is_declared(spark, tmp_path):
    """Of 001 Spark would make 1, of 2024-01-05 a date."""
    for code, day in (("001", "2024-01-05"), ("7e1", "2024-01-06")):
        (folder := tmp_path / f"code={code}" / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [1]}), folder / "a.parquet")
    assert sorted(load(spark, tmp_path, "auto")) == [[1, "001", "2024-01-05"], [1, "7e1", "2024-01-06"]]
    assert load(spark, tmp_path, "auto", columns={"code": "double", "day": "date"}, condition="code = 70") == [
        [1, 70.0, "2024-01-06"]
    ]
    with pytest.raises(ValueUnrepresentableError, match="'7e1' in column 'code' does not convert to int"):
        load(spark, tmp_path, "auto", columns={"code": "int"})


@pytest.mark.spark
@pytest.mark.parametrize("prefer", ["splits", "rows"])
def test_text_that_is_not_utf_8_fails_the_load(spark, tmp_path, prefer):
    text = pa.array([b"caf\xe9", b"plain"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"n": [1, 2], "name": text}), tmp_path / "a.parquet")
    with pytest.raises(ValueUnrepresentableError, match="text of column 'name' is not UTF-8"):
        load(spark, tmp_path, prefer)
    query: dict[str, Any] = {"format": None, "path": None, "sql": "SELECT CAST(name AS BINARY) AS name FROM v"}
    views = {"v": {"format": "parquet", "path": str(tmp_path)}}
    feed = open_feed(lambda: spark, table(**query, views=views), deleted_column=DELETED)
    assert rows(feed) == [["b'caf\\xe9'"], ["b'plain'"]]
