"""CSV files whose headers differ: columns go by their names, which Spark does for the first file only."""

import gzip

import pytest

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.csv_headers import read_headers
from lakewriter.source.feed import open_feed
from lakewriter.spec.row_rules import BadRows
from lakewriter.spec.specification import Read
from tests.source.tables import DELETED, rows, table

HEADED = {"header": "true"}

HEADERS = [
    # options, the files, the headers that are told apart
    (HEADED, ["a,b\n", "a,b\n1,2\n"], []),
    (HEADED, ["a,b\n", '"a", b\r\n', "\ufeffa,b\n", "\n \na,b\n", ""], []),
    (HEADED, ["a,b\n", "b,a\n"], [("a", "b"), ("b", "a")]),
    (HEADED, ["a,b\n", "A,b\n"], [("a", "b"), ("A", "b")]),
    ({"header": "TRUE", "sep": ";", "comment": "#"}, ["#x\na;b\n", "a;b;c\n"], [("a", "b"), ("a", "b", "c")]),
    (HEADED | {"delimiter": "\\t", "quote": "'"}, ["a\tb\n", "'a'\t'b\n c'\n"], [("a", "b"), ("a", "b\n c")]),
    (HEADED | {"sep": "||"}, ["a||b\n", "b||a\n"], [("a||b",), ("b||a",)]),
    # As it is asked for, or without names.
    (HEADED | {"enforceSchema": "true"}, ["a,b\n", "b,a\n"], []),
    ({}, ["a,b\n", "b,a\n"], []),
]  # fmt: skip


@pytest.mark.parametrize(("options", "files", "expected"), HEADERS)
def test_headers_are_told_apart(tmp_path, options, files, expected):
    for number, text in enumerate(files):
        (tmp_path / f"{number}.csv").write_text(text, "utf-8", newline="")
    found = read_headers([f"file://{path}" for path in tmp_path.iterdir()], options)
    assert (list(found.groups), found.notes) == (expected, ())


@pytest.mark.parametrize("before", ["", "# a comment\n" * 10_000])
def test_headers_that_are_long_or_far_from_the_beginning(tmp_path, before):
    """More than 64 KiB: columns n0 to n19999, and in one file another name behind them."""
    names = tuple(f"n{number}" for number in range(20_000))
    (tmp_path / "1.csv").write_text(before + ",".join(names) + "\n1\n", "utf-8")
    (tmp_path / "2.csv").write_text(before + ",".join((*names, "more")), "utf-8")
    found = read_headers([str(path) for path in sorted(tmp_path.iterdir())], HEADED | {"comment": "#"})
    assert list(found.groups) == [names, (*names, "more")]


def test_headers_in_other_encodings_and_codecs(tmp_path):
    (tmp_path / "1.csv").write_bytes("a,ä\n".encode("latin-1"))
    (tmp_path / "2.csv.gz").write_bytes(gzip.compress("ä,a\n".encode("latin-1")))
    found = read_headers([str(path) for path in tmp_path.iterdir()], HEADED | {"encoding": "latin1"})
    assert list(found.groups) == [("a", "ä"), ("ä", "a")]


def test_headers_that_cannot_be_read_are_noted():
    found = read_headers(["hdfs://a/1.csv", "hdfs://a/2.csv"], HEADED)
    [note] = found.notes
    assert note.startswith("the files' headers are not compared, and read by position: 'hdfs://a/1.csv'")


def fed(spark, folder, **fields):
    asked = table(**{"format": "csv", "path": str(folder), "options": HEADED} | fields)
    feed = open_feed(lambda: spark, asked, deleted_column=DELETED)
    return feed.schema.names, sorted(rows(feed), key=str), feed.notes


def written(tmp_path, *texts):
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.csv").write_text(text, "utf-8")
    return tmp_path


@pytest.mark.spark
def test_columns_go_by_name(spark, tmp_path):
    path = written(tmp_path, "id,name\n1,Ann\n", "name,id\nBob,2\n", "ID,age\n3,40\n")
    names, found, notes = fed(spark, path)
    assert names == ["id", "name", "age"]
    assert found == [["1", "Ann", None], ["2", "Bob", None], ["3", None, "40"]]
    assert [note.partition(", such as")[0] for note in notes] == [
        "column 'name' is not in 1 of 3 files", "column 'age' is not in 2 of 3 files",
    ]  # fmt: skip
    # Bad rows, inferred types and a query go the same way.
    aside = fed(spark, path, options=HEADED | {"inferSchema": "true"}, on_bad_row=BadRows(action="set_aside"))
    assert [row[:3] for row in aside[1]] == [[1, "Ann", None], [2, "Bob", None], [3, None, 40]]
    views = {"v": Read(format="csv", path=str(path), options=HEADED)}
    assert fed(spark, path, format=None, path=(), options={}, sql="SELECT * FROM v", views=views)[1] == found


@pytest.mark.spark
def test_declared_columns_go_by_name(spark, tmp_path):
    read = Read(format="csv", path=str(written(tmp_path, "id,n\n1,2\n", "n,id\n3,4\n")), options=HEADED)
    asked = table(format="csv").model_copy(update={"read": read.model_copy(update={"columns": "n INT, id LONG"})})
    assert sorted(rows(open_feed(lambda: spark, asked, deleted_column=DELETED))) == [[2, 1], [3, 4]]
    asked = table(format="csv").model_copy(update={"read": read.model_copy(update={"columns": "x INT, y LONG"})})
    with pytest.raises(SchemaIncompatibleError, match=r"has 'id', which read.columns does not have"):
        open_feed(lambda: spark, asked, deleted_column=DELETED)


REFUSED = [
    (["id,id\n1,2\n", "id\n3\n"], {}, "has names that are blank or occur twice"),
    (["id,\n1,2\n", "id\n3\n"], {}, "has names that are blank or occur twice"),
    (["id,n\n1,2\n", "n,id\nx,4\n"], {"inferSchema": "true"}, "column 'n' is int in .* and string in "),
]


@pytest.mark.spark
@pytest.mark.parametrize(("files", "options", "message"), REFUSED)
def test_columns_that_have_no_name_in_common_are_refused(spark, tmp_path, files, options, message):
    with pytest.raises(SchemaIncompatibleError, match=message):
        fed(spark, written(tmp_path, *files), options=HEADED | options)
