"""Files by the splits feed and through Spark: the same reader, the same rows."""

import datetime as dt
from decimal import Decimal
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SourceFailedError, SpecInvalidError, ValueUnrepresentableError
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from tests.source.tables import rows, table

pytestmark = pytest.mark.spark

FEEDS = ["splits", "rows"]


def opened(spark, path, prefer="auto", **fields):
    fields.setdefault("format", "parquet")
    return open_feed(RowsRequest(lambda: spark, table(path=path, **fields)), prefer=prefer)


def write(folder, sizes, **options):
    """Files of so many rows, numbered on."""
    first = 0
    for number, size in enumerate(sizes):
        values = pa.table({"n": pa.array(range(first, first + size), pa.int64())})
        pq.write_table(values, folder / f"{number}.parquet", **options)
        first += size


def test_rows_are_counted_and_keep_their_order(spark, tmp_path):
    write(tmp_path, [3000, 10, 0, 500], row_group_size=100)
    for prefer in FEEDS:
        feed = opened(spark, str(tmp_path), prefer)
        assert [row[0] for row in rows(feed)] == list(range(3510))
        assert sum(feed.counts or ()) in (0, 3510)
    assert opened(spark, str(tmp_path)).counts == (3510,)


MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 6000)
NESTED = pa.struct([("t", pa.timestamp("us", "UTC")), ("l", pa.list_(pa.uint8()))])
TYPES = {
    "b": (pa.bool_(), True), "i": (pa.int8(), -7), "u": (pa.uint64(), 2**64 - 1), "f": (pa.float16(), 1.5),
    "d": (pa.decimal128(38, 9), Decimal("1.500000000")), "s": (pa.large_string(), "é"), "x": (pa.binary(2), b"\0a"),
    "y": (pa.date32(), dt.date(1500, 1, 1)), "t": (pa.timestamp("ns"), MOMENT),
    "z": (pa.timestamp("us", "Asia/Tokyo"), MOMENT),
    "c": (pa.time64("ns"), dt.time(1, 2, 3)), "l": (pa.large_list(pa.int32()), [1, None]),
    "m": (pa.map_(pa.string(), pa.int32()), [("a", 1), ("b", None)]), "n": (NESTED, {"t": MOMENT, "l": [1]}),
    "o": (pa.null(), None),
}  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"use_deprecated_int96_timestamps": True}])
def test_types_are_the_same_by_both_ways(spark, tmp_path, options):
    columns = {name: pa.array([value, None], kind) for name, (kind, value) in TYPES.items()}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", **options)
    splits, by_rows = (opened(spark, str(tmp_path), prefer) for prefer in FEEDS)
    assert splits.schema == by_rows.schema
    assert rows(splits) == rows(by_rows)


LEGACY = "spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite"
DAYS = "0001-01-01", "0100-03-01", "1000-01-01", "1500-02-28", "1582-10-04", "1582-10-15", "1900-01-01", "9999-12-31"


@pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "TIMESTAMP_MILLIS", "INT96"])
@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
def test_dates_and_times_that_spark_wrote(spark, tmp_path, kind, mode):
    settings = {"spark.sql.parquet.outputTimestampType": kind, **dict.fromkeys(LEGACY, mode)}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        values = ", ".join(f"(date'{day}', timestamp'{day} 01:02:03')" for day in DAYS)
        spark.sql(f"SELECT * FROM VALUES {values} AS t(d, t)").coalesce(1).write.parquet(str(tmp_path / "p"))
    finally:
        for name in settings:
            spark.conf.unset(name)
    assert rows(opened(spark, str(tmp_path / "p"))) == [[day, f"{day} 01:02:03+00:00"] for day in DAYS]


WHOLE = {"a.parquet": 1}
CHOICES = [
    # files by name with the value of their column, fields of the table, kind, part of the reason, rows
    (WHOLE, {}, "splits", "1 file, read by the tasks themselves", [[1]]),
    ({"a.parquet": 1, "b": 2, "_c": "x", ".d": "y"}, {}, "splits", "2 files", [[1], [2]]),
    ({"k=1/a.parquet": 1, "k=02/a.parquet": 1}, {}, "splits", "2 files", [[1, "02"], [1, "1"]]),
    ({"k=a%2Fb/a.parquet": 1, "k=a%252Fb/a.parquet": 2}, {}, "splits", "2 files", [[2, "a%2Fb"], [1, "a/b"]]),
    (WHOLE, {"options": {"mergeSchema": "true"}}, "splits", "1 file", [[1]]),
    (WHOLE, {"columns": {"c": "string"}}, "splits", "1 file", [["1"]]),
    (WHOLE, {"deleted": "c = 1"}, "splits", "1 file", [[1, True]]),
    (WHOLE, {"path": "*.parquet"}, "splits", "1 file", [[1]]),
    (WHOLE, {"engine": "spark"}, "rows", "its engine is spark", [[1]]),
]


@pytest.mark.parametrize(("files", "fields", "kind", "reason", "expected"), CHOICES)
def test_choice(spark, tmp_path, files, fields, kind, reason, expected):
    for name, value in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"c": [value]}), tmp_path / name)
    place = str(tmp_path / fields.get("path", ""))
    feed = opened(spark, place, **{name: value for name, value in fields.items() if name != "path"})
    assert (feed.kind, rows(feed)) == (kind, expected)
    assert reason in feed.reason


def test_file_without_rows(spark, tmp_path):
    pq.write_table(pa.table({"c": pa.array([], pa.int32())}), tmp_path / "a.parquet")
    feed = opened(spark, str(tmp_path))
    assert (feed.kind, feed.counts, feed.schema.names, rows(feed)) == ("splits", (), ["c"], [])


def test_file_that_goes_missing_is_named(spark, tmp_path):
    write(tmp_path, [10])
    feed = opened(spark, str(tmp_path))
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(SourceFailedError, match=r"'.*0\.parquet' cannot be read"):
        rows(feed)


def test_s3_files_are_read_without_hadoop(spark, bucket, tmp_path):
    write(tmp_path, [10, 20], row_group_size=7)
    for file in tmp_path.iterdir():
        boto3.client("s3").upload_file(str(file), bucket, f"in/{file.name}")
    for prefer in FEEDS:
        feed = opened(spark, f"s3://{bucket}/in/", prefer)
        assert [row[0] for row in rows(feed)] == list(range(30))


NANOS = 1_705_314_600_123_456_789
"""2024-01-15 10:30:00.123456789."""


@pytest.mark.parametrize("prefer", FEEDS)
@pytest.mark.parametrize("options", [{}, {"use_deprecated_int96_timestamps": True}])
def test_nanoseconds_fail_the_load_or_are_cut(spark, tmp_path, prefer, options):
    times = pa.array([0, NANOS], pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"t": times}), tmp_path / "a.parquet", **options)
    with pytest.raises(ValueUnrepresentableError) as raised:
        rows(opened(spark, str(tmp_path), prefer))
    assert raised.value.message.startswith(
        f"table 's.t': '{tmp_path}/a.parquet', row 1, column 't': it is finer than microseconds; nanoseconds: truncate "
        "would cut it: '2024-01-15 10:30:00.123456789'."
    )
    cut = rows(opened(spark, str(tmp_path), prefer, truncates_nanoseconds=True))
    assert cut == [["1970-01-01 00:00:00+00:00"], ["2024-01-15 10:30:00.123456+00:00"]]


@pytest.mark.parametrize("prefer", FEEDS)
def test_text_that_is_not_utf_8_fails_the_load(spark, tmp_path, prefer):
    text = pa.array([b"caf\xe9", b"plain"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"n": [1, 2], "name": text}), tmp_path / "a.parquet")
    with pytest.raises(ValueUnrepresentableError, match=r"row 0, column 'name': byte 0xe9 is not UTF-8: 'caf\\\\xe9'"):
        rows(opened(spark, str(tmp_path), prefer))


def test_values_of_folders_are_text_unless_a_type_is_declared(spark, tmp_path):
    """Of 001 Spark would make 1, of 2024-01-05 a date."""
    for code, day in (("001", "2024-01-05"), ("7e1", "2024-01-06")):
        (folder := tmp_path / f"code={code}" / f"day={day}").mkdir(parents=True)
        pq.write_table(pa.table({"n": [1]}), folder / "a.parquet")
    assert rows(opened(spark, str(tmp_path))) == [[1, "001", "2024-01-05"], [1, "7e1", "2024-01-06"]]
    typed = opened(spark, str(tmp_path), columns={"code": "double", "day": "date"})
    assert rows(typed) == [[1, 1.0, "2024-01-05"], [1, 70.0, "2024-01-06"]]
    with pytest.raises(ValueUnrepresentableError, match=r"column 'code': .*does not convert to int.*: '7e1'"):
        rows(opened(spark, str(tmp_path), columns={"code": "int"}))


DECLARED = [
    # the type in the file, its value, the declared type, the value, or what is said
    (pa.int64(), 7, "string", "7"),
    (pa.int64(), 7, "decimal(10,2)", "7.00"),
    (pa.float64(), 7.5, "decimal(10,2)", "7.50"),
    (pa.string(), "2024-01-05", "date", "2024-01-05"),
    (pa.timestamp("us"), dt.datetime(2024, 1, 5), "date", "2024-01-05"),
    (pa.float64(), 7.5, "int", ValueUnrepresentableError),
    (pa.int64(), 7, "date", SpecInvalidError),
    (pa.list_(pa.int8()), [1], "string", SpecInvalidError),
]


@pytest.mark.parametrize("through_columns", [True, False])
@pytest.mark.parametrize(("kind", "value", "declared", "expected"), DECLARED)
def test_declared_types(spark, tmp_path, kind, value, declared, expected, through_columns):
    pq.write_table(pa.table({"c": pa.array([value, None], kind)}), tmp_path / "a.parquet")
    fields: dict[str, Any] = {"columns": {"c": declared}}
    if not through_columns:
        views = {"v": {"format": "parquet", "path": str(tmp_path), "columns": f"c {declared}"}}
        fields = {"format": None, "sql": "SELECT * FROM v", "views": views}
    if isinstance(expected, str):
        assert rows(opened(spark, None if not through_columns else str(tmp_path), **fields)) == [[expected], [None]]
        return
    with pytest.raises(expected):
        rows(opened(spark, None if not through_columns else str(tmp_path), **fields))
