"""Both feeds read the same files; Spark's own reading is the expectation."""

import datetime as dt
from decimal import Decimal

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.source.feed import open_feed
from lakewriter.source.parquet_splits import SplitsFeed
from tests.source.tables import DELETED, partitions, rows, table

pytestmark = pytest.mark.spark

SCAN_SETTINGS = (
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.openCostInBytes",
    "spark.sql.files.minPartitionNum",
)


def opened(spark, path, prefer="auto", **fields):
    fields.setdefault("format", "parquet")
    return open_feed(lambda: spark, table(path=path, **fields), deleted_column=DELETED, prefer=prefer)


@pytest.fixture
def scan(spark):
    """Sets partition size, cost of opening and least number of partitions for one test."""

    def change(*values):
        for name, value in zip(SCAN_SETTINGS, values, strict=True):
            spark.conf.set(name, str(value))

    yield change
    for name in SCAN_SETTINGS:
        spark.conf.unset(name)


def write(folder, sizes, **options):
    """Files of so many rows, numbered on; names are given so that no order of names is the order of sizes."""
    first = 0
    for number, size in enumerate(sizes):
        values = pa.table(
            {
                "n": pa.array(range(first, first + size), pa.int64()),
                "text": pa.array([f"{i * 7919:040d}" for i in range(size)], pa.string()),
            }
        )
        pq.write_table(values, folder / f"{(number * 5) % 7}-{number}.parquet", compression="none", **options)
        first += size


PACKINGS = [
    # rows of each file, rows of a row group, settings
    ([10], 1000, ("128m", "4m", 1)),
    ([3000, 10, 500, 10, 2000, 10], 100, ("20000b", "1000b", 1)),
    ([500, 500, 500, 500], 100, ("64k", "1k", 3)),
    ([5000], 700, ("10000b", "1b", 8)),
    ([100, 0, 40, 100, 7, 100], 30, ("9000b", "500b", 2)),
    ([2000, 1500], 2000, ("30000b", "4096b", 4)),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("sizes", "group", "settings"), PACKINGS)
def test_partitions_are_those_of_spark(spark, scan, tmp_path, sizes, group, settings):
    write(tmp_path, sizes, row_group_size=group)
    scan(*settings)
    splits = opened(spark, str(tmp_path), "splits")
    by_rows = opened(spark, str(tmp_path), "rows")
    assert (splits.partitions, splits.schema) == (by_rows.partitions, by_rows.schema)
    found = partitions(splits)
    assert found == partitions(by_rows)
    assert splits.counts == tuple(len(found.get(number, [])) for number in range(splits.partitions))


def test_files_given_one_by_one(spark, scan, tmp_path):
    write(tmp_path, [20, 20, 20])
    scan("3000b", "100b", 1)
    paths = sorted(map(str, tmp_path.iterdir()), reverse=True)
    assert partitions(opened(spark, paths, "splits")) == partitions(
        opened(spark, [f"file://{p}" for p in paths], "rows")
    )


NESTED = pa.struct([("t", pa.timestamp("us", "UTC")), ("l", pa.list_(pa.int8()))])
MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 6000)
TYPES = [
    # Arrow type written, options of the writer, value
    (pa.bool_(), {}, True),
    (pa.int8(), {}, -7),
    (pa.int16(), {}, -7),
    (pa.int32(), {}, -7),
    (pa.int64(), {}, -7),
    (pa.float32(), {}, 1.5),
    (pa.float64(), {}, 1.5),
    (pa.decimal128(5, 2), {}, Decimal("1.50")),
    (pa.decimal128(38, 9), {}, Decimal("1.500000000")),
    (pa.string(), {}, "é"),
    (pa.large_string(), {}, "é"),
    (pa.binary(), {}, b"\0a"),
    (pa.date32(), {}, dt.date(1500, 1, 1)),
    (pa.timestamp("us"), {}, MOMENT),
    (pa.timestamp("ms"), {}, MOMENT),
    (pa.timestamp("ms", "UTC"), {}, MOMENT),
    (pa.timestamp("us", "Europe/Paris"), {}, MOMENT),
    (pa.timestamp("us"), {"use_deprecated_int96_timestamps": True}, MOMENT),
    (pa.list_(pa.int32()), {}, [1, None]),
    (pa.large_list(pa.int32()), {}, [1, None]),
    (pa.map_(pa.string(), pa.int32()), {}, [("a", 1), ("b", None)]),
    (NESTED, {}, {"t": MOMENT, "l": [1]}),
    (NESTED, {"use_deprecated_int96_timestamps": True}, {"t": MOMENT, "l": [1]}),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("kind", "options", "value"), TYPES)
def test_types_are_those_of_spark(spark, tmp_path, kind, options, value):
    file = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"c": pa.array([value, None], kind)}), file, **options)
    splits, by_rows = opened(spark, file, "splits"), opened(spark, file, "rows")
    assert splits.schema == by_rows.schema
    assert rows(splits) == rows(by_rows)


def test_file_that_spark_wrote(spark, tmp_path):
    sql = "select 1Y a, timestamp'1600-01-01 00:00:00' b, array(named_struct('x', 1.5bd)) c, map(1, date'2020-01-01') d"
    spark.sql(sql).write.parquet(str(tmp_path / "p"))
    splits, by_rows = opened(spark, str(tmp_path / "p"), "splits"), opened(spark, str(tmp_path / "p"), "rows")
    assert (splits.schema, rows(splits)) == (by_rows.schema, rows(by_rows))


UNLIKE = [
    # a column of Spark's SQL or Arrow that only Spark reads as Spark does
    "select interval '1' year c",
    "select parse_json('1') c",
    pa.array([1], pa.uint32()),
    pa.array([1], pa.time64("us")),
    pa.array([1], pa.timestamp("ns")),
    pa.array(["a"]).dictionary_encode(),
    pa.array([b"ab"], pa.binary(2)),
]


@pytest.mark.parametrize("column", UNLIKE)
def test_types_only_spark_reads(spark, tmp_path, column):
    if isinstance(column, str):
        spark.sql(column).write.parquet(str(tmp_path / "p"))
    else:
        pq.write_table(pa.table({"c": column}), tmp_path / "p")
    with pytest.raises(SpecInvalidError, match="is for Spark to read"):
        opened(spark, str(tmp_path / "p"), "splits")


WHOLE = {"a.parquet": 1}
CHOICES = [
    # files by name with the type of their column, fields of the table, kind, part of the reason
    (WHOLE, {}, "splits", "a bare Parquet scan of 1 file, read by the tasks themselves"),
    ({"a.parquet": 1, "b": 2, "_c": "x", ".d": "y"}, {}, "splits", "of 2 files"),
    ({"k=1/a.parquet": 1, "k=2/a.parquet": 1}, {}, "rows", "is a directory inside the path"),
    (WHOLE, {"options": {"mergeSchema": "true"}}, "rows", "it has reader options"),
    (WHOLE, {"columns": {"c": "string"}}, "rows", "its types are declared"),
    (WHOLE, {"deleted": "c = 1"}, "rows", "it has a deleted expression"),
    (WHOLE, {"path": "*.parquet"}, "rows", "a path is a pattern"),
]


@pytest.mark.parametrize(("files", "fields", "kind", "reason"), CHOICES)
def test_choice(spark, tmp_path, files, fields, kind, reason):
    for name, value in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"c": [value]}), tmp_path / name)
    place = str(tmp_path / fields.get("path", ""))
    feed = opened(spark, place, **{name: value for name, value in fields.items() if name != "path"})
    assert feed.kind == kind
    assert reason in feed.reason


def test_file_without_rows(spark, tmp_path):
    pq.write_table(pa.table({"c": pa.array([], pa.int32())}), tmp_path / "a.parquet")
    feed = opened(spark, str(tmp_path))
    assert (feed.kind, feed.counts, rows(feed)) == ("splits", (0,), [])


@pytest.mark.parametrize("content", [b"PAR1", b"no parquet at all", b"PAR1....PAR1"])
def test_truncated_file_is_named(spark, tmp_path, content):
    (tmp_path / "bad.parquet").write_bytes(content)
    with pytest.raises(SourceFailedError, match=r"table 's\.t': '.*bad\.parquet' cannot be read"):
        opened(spark, str(tmp_path))


def test_file_that_goes_missing_is_named(spark, tmp_path):
    write(tmp_path, [10])
    feed = opened(spark, str(tmp_path))
    (tmp_path / "0-0.parquet").unlink()
    with pytest.raises(SourceFailedError, match=r"'.*0-0\.parquet' cannot be read"):
        feed.run(partial_rows)


def partial_rows(partition, batches):
    yield str(sum(batch.num_rows for batch in batches))


def test_wide_rows_come_in_small_batches(spark, tmp_path):
    pq.write_table(pa.table({"c": ["x" * 4096 + str(i) for i in range(9000)]}), tmp_path / "a", compression="zstd")
    feed = opened(spark, str(tmp_path))
    assert isinstance(feed, SplitsFeed)
    assert max(map(int, feed.run(batch_sizes))) <= 4096


def batch_sizes(partition, batches):
    yield from (str(batch.num_rows) for batch in batches)


def test_s3_files_are_read_without_hadoop(spark, bucket, tmp_path):
    write(tmp_path, [10, 20])
    for file in tmp_path.iterdir():
        boto3.client("s3").upload_file(str(file), bucket, f"in/{file.name}")
    feed = opened(spark, f"s3://{bucket}/in/")
    assert (feed.kind, sorted(row[0] for row in rows(feed))) == ("splits", list(range(30)))


def test_s3_folder_without_files_goes_to_spark(spark, bucket):
    with pytest.raises(SourceFailedError, match="hadoop-aws"):
        opened(spark, f"s3://{bucket}/none/")
