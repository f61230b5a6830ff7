"""Parquet and ORC folders whose files differ: every column of every file is read, in the tasks and through Spark."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from tests.source.tables import rows, table

pytestmark = pytest.mark.spark

FEEDS = [("parquet", "splits"), ("parquet", "rows"), ("orc", "splits"), ("orc", "rows")]


def write(folder, form, *tables):
    for number, one in enumerate(tables):
        (pq.write_table if form == "parquet" else po.write_table)(one, folder / f"{number}.{form}")


def opened(spark, path, form, prefer="auto", **fields):
    return open_feed(RowsRequest(lambda: spark, table(format=form, path=str(path), **fields)), prefer=prefer)


def one(kind, value, name="c"):
    return pa.table({name: pa.array([value], kind)})


def struct(**fields):
    return pa.struct([pa.field(name, kind) for name, kind in fields.items()])


I8, I32, I64, F32, F64, TEXT = (
    pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(),
)  # fmt: skip
LIST = pa.list_(pa.field("element", struct(a=I64, b=TEXT)))
MERGED = [
    # a file, the next, the columns of both, their rows, what is noted: SEMANTICS' rules for types that widen
    (one(I64, 1), pa.table({"c": [2], "d": ["x"]}), {"c": I64, "d": TEXT}, [[1, None], [2, "x"]],
     ["column 'd' is not in 1 of 2 files, such as '{0}': null in their rows"]),
    (one(I64, 1, "a"), one(TEXT, "x", "b"), {"a": I64, "b": TEXT}, [[1, None], [None, "x"]],
     ["column 'a' is not in 1 of 2 files, such as '{1}'", "column 'b' is not in 1 of 2 files, such as '{0}'"]),
    (pa.table({"a": [1], "b": ["x"]}), pa.table({"b": ["y"], "a": [2]}), {"a": I64, "b": TEXT}, [[1, "x"], [2, "y"]],
     []),
    (one(I32, -7), one(I64, 2**40), {"c": I64}, [[-7], [2**40]],
     ["column 'c' is int in '{0}', bigint in '{1}': read as bigint"]),
    (one(I64, 2**40), one(I8, -7), {"c": I64}, [[2**40], [-7]],
     ["column 'c' is bigint in '{0}', tinyint in '{1}': read as bigint"]),
    (one(F32, 1.5), one(F64, 0.1), {"c": F64}, [[1.5], [0.1]], ["read as double"]),
    (one(I32, 7), one(F64, 0.1), {"c": F64}, [[7.0], [0.1]], ["read as double"]),
    (one(I32, 7), one(pa.decimal128(12, 2), Decimal("0.10")), {"c": pa.decimal128(12, 2)},
     [["7.00"], ["0.10"]], ["read as decimal(12,2)"]),
    (one(pa.decimal128(8, 2), Decimal("0.10")), one(pa.decimal128(12, 4), Decimal("0.1234")),
     {"c": pa.decimal128(12, 4)}, [["0.1000"], ["0.1234"]], ["read as decimal(12,4)"]),
    (one(struct(a=I32), {"a": 1}), one(struct(b=TEXT), {"b": "x"}), {"c": struct(a=I32, b=TEXT)},
     [[{"a": 1, "b": None}], [{"a": None, "b": "x"}]],
     ["column 'c.a' is not in 1 of 2 files", "column 'c.b' is not in 1 of 2 files"]),
    (one(pa.list_(struct(a=I32)), [{"a": 1}]), one(pa.list_(struct(a=I64, b=TEXT)), [None, {"a": 2, "b": "x"}]),
     {"c": LIST}, [[[{"a": 1, "b": None}]], [[None, {"a": 2, "b": "x"}]]],
     ["column 'c.element.a' is int", "column 'c.element.b' is not in 1 of 2 files"]),
    (one(pa.map_(TEXT, I32), [("k", 1)]), one(pa.map_(TEXT, I64), [("k", 2**40)]), {"c": pa.map_(TEXT, I64)},
     [[[["k", 1]]], [[["k", 2**40]]]], ["column 'c.value' is int"]),
    (one(I64, 1, "Name"), one(I64, 2, "name"), {"Name": I64}, [[1], [2]], []),
    (pa.table({"c": pa.array([], I32)}), one(I64, 2**40), {"c": I64}, [[2**40]], ["read as bigint"]),
    (one(I64, 1), pa.table({"c": pa.array([], I64), "d": pa.array([], TEXT)}), {"c": I64, "d": TEXT}, [[1, None]],
     ["column 'd' is not in 1 of 2 files"]),
]  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("form", "feed"), FEEDS)
@pytest.mark.parametrize(("first", "second", "columns", "expected", "notes"), MERGED)
def test_columns_of_all_files_are_read(spark, tmp_path, form, feed, first, second, columns, expected, notes):
    write(tmp_path, form, first, second)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "_old.parquet").write_text("no data file")
    (tmp_path / f"empty.{form}").touch()
    opening = opened(spark, tmp_path, form, feed)
    assert opening.schema == pa.schema(columns.items())
    places = [f"{tmp_path}/{number}.{form}" for number in range(2)]
    empty = f"'{tmp_path}/empty.{form}' is empty, without any byte: no row is read of it"
    assert len(opening.notes) == len(notes) + 1
    for note, part in zip(opening.notes, [*notes, empty], strict=True):
        assert part.format(*places) in note
    assert sorted(rows(opening), key=str) == sorted(expected, key=str)


def test_names_inside_structs_in_other_cases_are_one(spark, tmp_path):
    write(tmp_path, "parquet", one(struct(a=I32), {"a": 1}), one(struct(A=I32), {"A": 2}))
    feed = opened(spark, tmp_path, "parquet")
    assert (feed.kind, rows(feed)) == ("splits", [[{"a": 1}], [{"a": 2}]])


EXACT = [
    # the columns of a file, those of the next, the names of both, their rows
    ({"Id": [1], "id": [2]}, {"id": [3]}, ["Id", "id"], [[1, 2], [None, 3]]),
    ({"id": [3]}, {"Id": [1], "id": [2]}, ["id", "Id"], [[3, None], [2, 1]]),
    ({"Id": [1], "id": [2]}, {"ID": [3]}, ["Id", "id", "ID"], [[1, 2, None], [None, None, 3]]),
    ({"s": [{"a": 1, "A": 2}]}, {"s": [{"A": 3}]}, ["s"], [[{"a": 1, "A": 2}], [{"a": None, "A": 3}]]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("feed", ["splits", "rows"])
@pytest.mark.parametrize(("first", "second", "names", "expected"), EXACT)
def test_names_that_differ_by_case_in_one_file_are_told_apart(spark, tmp_path, feed, first, second, names, expected):
    write(tmp_path, "parquet", pa.table(first), pa.table(second))
    opening = opened(spark, tmp_path, "parquet", feed)
    assert (opening.schema.names, rows(opening)) == (names, expected)


APART = [
    # what the files hold, what is said of it
    ((one(I64, 1), one(TEXT, "x")), "column 'c' is bigint in '.*0.parquet' and string in '.*1.parquet', and no type"),
    ((one(pa.timestamp("us"), dt.datetime(2020, 1, 1)), one(pa.timestamp("us", "UTC"), dt.datetime(2020, 1, 1))),
     "column 'c' is timestamp_ntz in .* and timestamp in "),
    ((one(struct(a=I32), {"a": 1}), one(I64, 1)), "column 'c' is struct<a:int> in .* and bigint in "),
    ((one(struct(a=I32), {"a": 1}), one(struct(a=TEXT), {"a": "x"})), r"column 'c\.a' is int in .* and string in "),
    ((one(pa.decimal128(38, 2), Decimal(1)), one(pa.decimal128(38, 4), Decimal(1))),
     r"column 'c' is decimal\(38,2\) in .* and decimal\(38,4\) in "),
]  # fmt: skip


@pytest.mark.parametrize("feed", ["splits", "rows"])
@pytest.mark.parametrize(("files", "message"), APART)
def test_types_with_none_in_common_name_both_files(spark, tmp_path, feed, files, message):
    write(tmp_path, "parquet", *files)
    with pytest.raises(SchemaIncompatibleError, match=message):
        opened(spark, tmp_path, "parquet", feed)


def test_three_types_meet_in_any_order(spark, tmp_path):
    # The third file's type holds those of the others.
    write(tmp_path, "parquet", one(I32, 2**31 - 1), one(F32, 1.5), one(F64, 0.1))
    assert sorted(rows(opened(spark, tmp_path, "parquet"))) == [[0.1], [1.5], [2**31 - 1.0]]


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_partition_folders_whose_files_differ(spark, tmp_path, form):
    for day, content in {"1": one(I32, 1), "2": pa.table({"c": [2**40], "d": ["x"]})}.items():
        (tmp_path / f"day={day}").mkdir()
        write(tmp_path / f"day={day}", form, content)
    feed = opened(spark, tmp_path, form)
    assert feed.schema.names == ["c", "d", "day"]
    assert sorted(rows(feed), key=str) == [[1, None, "1"], [2**40, "x", "2"]]


def test_view_of_a_query_has_the_columns_of_all_files(spark, tmp_path):
    write(tmp_path, "parquet", one(I32, 1), pa.table({"c": [2**40], "d": ["x"]}))
    read: dict[str, Any] = {"sql": "select d, c from v", "views": {"v": {"format": "parquet", "path": str(tmp_path)}}}
    feed = open_feed(RowsRequest(lambda: spark, table(**read)))
    assert [note.split(" ")[:4] for note in feed.notes] == [
        ["view", "'v':", "column", "'c'"],
        ["view", "'v':", "column", "'d'"],
    ]
    assert sorted(rows(feed), key=str) == [["x", 2**40], [None, 1]]


def test_files_of_s3(spark, bucket, tmp_path):
    write(tmp_path, "parquet", one(I32, 1), pa.table({"c": [2**40], "d": ["x"]}))
    for file in tmp_path.iterdir():
        boto3.client("s3").upload_file(str(file), bucket, f"in/{file.name}")
    assert sorted(rows(opened(spark, f"s3://{bucket}/in/", "parquet")), key=str) == [[1, None], [2**40, "x"]]


def test_asked_for_columns_decide(spark, tmp_path):
    write(tmp_path, "parquet", one(I32, 1), pa.table({"c": [2], "d": ["x"]}))
    read: dict[str, Any] = {
        "sql": "select * from v",
        "views": {"v": {"format": "parquet", "path": str(tmp_path), "columns": "c BIGINT"}},
    }
    assert open_feed(RowsRequest(lambda: spark, table(**read))).schema.names == ["c"]


TABLES = [
    # a file beside the data, the folder given, the format to use
    ("_delta_log/00000000000000000000.json", "", "delta"),
    ("metadata/00001-a.metadata.json", "", "iceberg"),
    ("metadata/v1.metadata.json", "data", "iceberg"),
    (".hoodie/hoodie.properties", "", "hudi"),
]


@pytest.mark.parametrize(("beside", "given", "kind"), TABLES)
@pytest.mark.parametrize("remote", [False, True])
def test_folder_of_a_table_format_is_refused(spark, bucket, tmp_path, beside, given, kind, remote):
    for name in (beside, "data/1.parquet", "1.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(one(I32, 1), tmp_path / name)
        boto3.client("s3").upload_file(str(tmp_path / name), bucket, f"in/{name}")
    root = f"s3://{bucket}/in" if remote else str(tmp_path)
    with pytest.raises(SpecInvalidError, match=f"is the folder of a table in the {kind} format.*format: {kind}"):
        opened(spark, f"{root}/{given}".rstrip("/"), "parquet")


def test_folder_named_metadata_is_no_table(spark, tmp_path):
    Path(tmp_path, "metadata").mkdir()
    Path(tmp_path, "metadata", "readme.txt").touch()
    write(tmp_path, "parquet", one(I64, 1))
    assert rows(opened(spark, tmp_path / "0.parquet", "parquet")) == [[1]]
