"""Text files whose bytes Spark would replace: the load fails before it reads, with file, offset and what was found."""

import bz2
import gzip
import re
from typing import Any

import pytest

from lakewriter.errors import ValueUnrepresentableError
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from tests.source.tables import rows, table

pytestmark = pytest.mark.spark


def opened(spark, path, form, **fields):
    """A source as Spark's own reader reads it."""
    read = table(format=form, path=str(path), engine="spark", **fields)
    return open_feed(RowsRequest(lambda: spark, read))


CSV = b"a,b\n1,caf\xe9\n"
NO_TEXT = "offset 9: byte 0xe9 is not UTF-8 (invalid continuation byte)"
REPLACED = [
    # format, options, file, its bytes, what is said
    ("csv", {"header": "true"}, "a.csv", CSV, NO_TEXT),
    ("csv", {"header": "true"}, "a.csv.gz", gzip.compress(CSV, mtime=0), NO_TEXT),
    ("csv", {"header": "true", "encoding": "US-ASCII"}, "a.csv", CSV, "offset 9: byte 0xe9 is not ascii"),
    ("text", {}, "a.txt.bz2", bz2.compress(CSV), NO_TEXT),
]


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
]


@pytest.mark.parametrize(("form", "options", "content", "expected"), READ)
def test_value_that_is_read_as_it_is(spark, tmp_path, form, options, content, expected):
    (tmp_path / "a").write_bytes(content)
    assert rows(opened(spark, tmp_path, form, options=options)) == expected


GIVEN = [
    # format, options, its bytes, what is said
    ("json", {}, b'{"a": "\xe9"}', "offset 7: byte 0xe9 is not UTF-8"),
    ("xml", {"rowTag": "row"}, b"<rows><row><a>caf\xe9 x</a></row></rows>", "offset 17: byte 0xe9 is not UTF-8"),
]


@pytest.mark.parametrize(("form", "options", "content", "message"), GIVEN)
def test_bytes_of_files_whose_columns_are_given(spark, tmp_path, form, options, content, message):
    # Where Spark has to find the columns itself, it fails.
    (tmp_path / "a").write_bytes(content)
    view = {"format": form, "engine": "spark", "path": str(tmp_path), "columns": "a STRING", "options": options}
    read: dict[str, Any] = {"sql": "select * from v", "views": {"v": view}}
    with pytest.raises(ValueUnrepresentableError, match=message):
        rows(open_feed(RowsRequest(lambda: spark, table(**read))))


def test_view_of_a_query_is_looked_at(spark, tmp_path):
    (tmp_path / "a.csv").write_bytes(CSV)
    view = {"format": "csv", "engine": "spark", "path": str(tmp_path)}
    read: dict[str, Any] = {"sql": "select * from v", "views": {"v": view}}
    with pytest.raises(ValueUnrepresentableError, match="offset 9: byte 0xe9"):
        rows(open_feed(RowsRequest(lambda: spark, table(**read))))
