"""Text files whose bytes Spark would replace: the load fails before it reads, with file, offset and what was found."""

import bz2
import gzip
import re
from typing import Any

import pytest

from lakewriter.errors import ValueUnrepresentableError
from lakewriter.source.feed import open_feed
from tests.source.tables import DELETED, rows, table

pytestmark = pytest.mark.spark


def opened(spark, path, form, **fields):
    """A source as it is read; of JSON by Spark's own reader, as ``engine: spark`` asks for."""
    engine = "spark" if form == "json" else None
    read = table(format=form, path=str(path), engine=engine, **fields)
    return open_feed(lambda: spark, read, deleted_column=DELETED)


CSV, JSON = b"a,b\n1,caf\xe9\n", b'{"a": "x"}\n{"a": "\\ud800"}\n'
NO_TEXT = "line 2, offset 4: byte 0xe9 is not UTF-8: "
REPLACED = [
    # format, options, file, its bytes, what is said
    ("csv", {"header": "true"}, "a.csv", CSV, NO_TEXT),
    ("csv", {"header": "true"}, "a.csv.gz", gzip.compress(CSV, mtime=0), NO_TEXT),
    ("csv", {"header": "true", "encoding": "US-ASCII"}, "a.csv", CSV, "line 2, offset 4: byte 0xe9 is not ascii"),
    ("text", {}, "a.txt.bz2", bz2.compress(CSV), NO_TEXT),
    ("json", {}, "a.json", JSON, r"offset 11: /a has \ud800, half of a surrogate pair"),
    ("json", {"multiLine": "true"}, "a.json", b'[\n{"a": "\\ud800"}\n]', r"offset 2: \ud800 is half"),
    ("json", {}, "a.json", b'{"a": 1%s}' % (b"0" * 399), "offset 0: /a: 1000"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "options", "name", "content", "message"), REPLACED)
def test_value_that_would_be_replaced_fails_the_load(spark, tmp_path, form, options, name, content, message):
    (tmp_path / name).write_bytes(content)
    feed = opened(spark, tmp_path, form, options=options)
    with pytest.raises(ValueUnrepresentableError, match=re.escape(f"table 's.t': '{tmp_path / name}', {message}")):
        rows(feed)


READ = [
    ("csv", {"header": "true", "encoding": "ISO-8859-1"}, CSV, [["1", "café"]]),
    ("csv", {"header": "true"}, "a,b\n1,café 😀\n".encode(), [["1", "café 😀"]]),
    ("json", {}, b'{"a": "\\ud83d\\ude00"}', [["😀"]]),
    ("json", {}, b'{"a": "%s"}' % (b"9" * 400), [["9" * 400]]),
]


@pytest.mark.parametrize(("form", "options", "content", "expected"), READ)
def test_value_that_is_read_as_it_is(spark, tmp_path, form, options, content, expected):
    (tmp_path / "a").write_bytes(content)
    assert rows(opened(spark, tmp_path, form, options=options)) == expected


def test_large_number_in_a_column_of_text(spark, tmp_path):
    (tmp_path / "a.json").write_bytes(b'{"a": %s}' % (b"9" * 400))
    view = {"format": "json", "engine": "spark", "path": str(tmp_path), "columns": "a STRING"}
    read: dict[str, Any] = {"sql": "select * from v", "views": {"v": view}}
    assert rows(open_feed(lambda: spark, table(**read), deleted_column=DELETED)) == [["9" * 400]]


def test_bytes_of_json_whose_columns_are_given(spark, tmp_path):
    # Where Spark has to find the columns itself, it fails.
    (tmp_path / "a.json").write_bytes(b'{"a": "\xe9"}')
    view = {"format": "json", "engine": "spark", "path": str(tmp_path), "columns": "a STRING"}
    read: dict[str, Any] = {"sql": "select * from v", "views": {"v": view}}
    with pytest.raises(ValueUnrepresentableError, match="offset 7: byte 0xe9 is not UTF-8"):
        rows(open_feed(lambda: spark, table(**read), deleted_column=DELETED))


def test_file_in_pieces(spark, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a\n" + b"1234567\n" * 1000 + b"\xff\n")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1000b")
    spark.conf.set("spark.sql.files.openCostInBytes", "10b")
    try:
        with pytest.raises(ValueUnrepresentableError, match="offset 8002: byte 0xff"):
            rows(opened(spark, tmp_path, "csv"))
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")


def test_view_of_a_query_is_looked_at(spark, tmp_path):
    (tmp_path / "a.csv").write_bytes(CSV)
    read: dict[str, Any] = {"sql": "select * from v", "views": {"v": {"format": "csv", "path": str(tmp_path)}}}
    with pytest.raises(ValueUnrepresentableError, match="offset 4: byte 0xe9"):
        rows(open_feed(lambda: spark, table(**read), deleted_column=DELETED))
