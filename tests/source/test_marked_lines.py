"""CSV and JSON lines of which some are bad: the others are read, these have file and offset."""

import gzip
import json

import pyarrow.compute as pc
import pytest

from lakewriter.naming import DELETED
from lakewriter.source import file_splits
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from lakewriter.spec.row_rules import BadRows
from lakewriter.staging.source_rows import Rows
from tests.source.tables import rows, show, table

pytestmark = pytest.mark.spark


def opened(spark, path, form, condition=None, **fields):
    asked = table(format=form, path=str(path), on_bad_row=BadRows(action="quarantine"), **fields)
    return open_feed(RowsRequest(lambda: spark, asked, condition=condition))


def good(partition, batches):
    def take(batch):
        rows = Rows.of(batch, 0)
        if rows.marks is None:
            return rows.batch
        return rows.batch.filter(pc.struct_field(rows.marks, "reason").is_null())

    yield from show(partition, map(take, batches))


def bad(partition, batches):
    marks = (Rows.of(batch, 0).marks for batch in batches)
    found = (mark for each in marks if each is not None for mark in each.to_pylist() if mark and mark["reason"])
    yield "\n".join(map(json.dumps, found))


def split(feed):
    """The good rows, and of the bad ones offset, column, value and the beginning of the reason."""
    kept = sorted(row for _, part in map(json.loads, feed.run(good)) for row in part)
    found = [json.loads(line) for text in feed.run(bad) for line in text.splitlines()]
    feed.close()
    aside = [(each.get("offset"), each.get("column"), each["value"], each["reason"][:20]) for each in found]
    return kept, sorted(aside, key=str), {each.get("file") for each in found}


HEADED = {"header": "true", "inferSchema": "true"}
FEW, MANY = "it has 1 field, expec", "it has 3 fields, expe"
LINES = [
    # format, fields of the table, the file, its good rows, its bad ones
    ("csv", {"options": HEADED}, b"id,t\n1,a\n2,b,c\n3\n4,d\n", [[1, "a"], [4, "d"]],
     [(15, None, "3", FEW[:20]), (9, None, "2,b,c", MANY[:20])]),
    ("csv", {"options": {"header": "true"}}, b'id,t\r\n1,a\r\n2,\xe9\r\n\r\n3,c\r\n', [["1", "a"], ["3", "c"]],
     [(11, None, "2,\\xe9", "byte 0xe9 is not UTF-8"[:20])]),
    ("csv", {"options": {"header": "true", "sep": ";", "comment": "#"}}, b"#x\nid;t\n1;a\n#2\n2;b;c\n", [["1", "a"]],
     [(15, None, "2;b;c", MANY[:20])]),
    ("csv", {"options": {"header": "true"}, "columns": {"id": "int"}}, b"id,t\n1,a\nx,b\n", [[1, "a"]],
     [(9, "id", "x", "it does not convert to"[:20])]),
    # Without a line feed: lines of old Macs are lines, as to Spark.
    ("csv", {"options": {"header": "true"}}, b"id,t\r1,a\r2\r", [["1", "a"]], [(9, None, "2", FEW[:20])]),
    # A name that the other differs from by case alone.
    ("csv", {"options": {"header": "true"}}, b"Id,id\n1,a\n2\n", [["1", "a"]], [(10, None, "2", FEW[:20])]),
    ("text", {}, b"a\n\n b\xe9\nc", [[""], ["a"], ["c"]], [(3, None, " b\\xe9", "byte 0xe9 is not UTF-8"[:20])]),
    ("json", {}, b'{"id": 1}\n[{"id": 2}]\n7\nnull\n', [[1], [2]],
     [(22, None, "7", "it is 7, expected an"), (24, None, "null", "it is null, expected")]),
    ("json", {}, b'{"id": 1}\n{"id": \n{"id": 3}\n', [[1], [3]], [(10, None, '{"id":', "it breaks off at cha")]),
    ("json", {}, b'{"id": "a"}\n{"id": "\\ud800"}\n', [["a"]],
     [(12, None, '{"id": "\\ud800"}', "\\ud800 is half of a ")]),
    ("json", {}, b'\xef\xbb\xbf{"id": 1.5}\n\n{"id": 1e400}\n', [[1.5]],
     [(16, "id", "1e400", "it does not fit double: it "[:20])]),
    ("json", {"columns": {"id": "int"}}, b'{"id": 1}\n{"id": "2"}\n{"id": 2.5}\n', [[1], [2]],
     [(22, "id", "2.5", "it does not fit int: it is "[:20])]),
]  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("form", "fields", "content", "expected", "aside"), LINES)
def test_bad_lines_are_marked(spark, tmp_path, form, fields, content, expected, aside):
    (tmp_path / f"a.{form}").write_bytes(content)
    kept, marked, files = split(opened(spark, tmp_path, form, **fields))
    assert (kept, marked) == (expected, aside)
    assert files == {str(tmp_path / f"a.{form}")}


def test_rows_are_counted_with_the_bad_ones(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(file_splits, "_ONE_TASK_BYTES", 0)
    spark.conf.set("spark.sql.files.openCostInBytes", "128m")
    (tmp_path / "a.csv").write_bytes(b"1,a\n2\n3,c\n")
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(b"4,d\n5\n"))
    try:
        feed = opened(spark, tmp_path, "csv")
        assert feed.schema.names == ["_c0", "_c1"]
        # A row that is set aside leaves a gap behind its partition's rows.
        assert sorted(feed.counts) == [2, 3]
    finally:
        spark.conf.unset("spark.sql.files.openCostInBytes")
    feed.close()


def test_cursor_keeps_bad_rows_in_sight(spark, tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,t\n1,a\n2,b,c\n3,d\n")
    feed = opened(spark, tmp_path, "csv", condition="id > 1", options=HEADED, deleted="id = 3")
    assert feed.schema.names == ["id", "t", DELETED]
    assert split(feed)[:2] == ([[3, "d", True]], [(9, None, "2,b,c", MANY[:20])])


def test_good_files_are_read_as_without_marks(spark, tmp_path):
    text = 'id,t,d\n1,"a, b",2020-01-02\n2,,\n3, x ,2020-01-03\n'
    (tmp_path / "a.csv").write_text(text, "utf-8")
    marked = opened(spark, tmp_path, "csv", options=HEADED)
    plain = open_feed(RowsRequest(lambda: spark, table(format="csv", path=str(tmp_path), options=HEADED)))
    assert marked.schema == plain.schema
    assert [row[:3] for row in rows(marked)] == rows(plain)


def test_bad_lines_of_a_pattern_are_marked(spark, tmp_path):
    (tmp_path / "a.csv").write_text("1,2\n3\n")
    assert split(opened(spark, tmp_path / "*.csv", "csv"))[:2] == ([["1", "2"]], [(4, None, "3", FEW[:20])])


def test_marks_of_many_columns_are_one_expression(spark, tmp_path):
    """A mark that is made of the one before it grows fourfold with each column, and with it the code of Spark."""
    names = [f"c{number}" for number in range(12)]
    (tmp_path / "in.csv").write_text(f"{','.join(names)}\n{','.join('1' * 12)}\n{','.join('1' * 11)},x\n", "utf-8")
    asked = {"options": {"header": "true"}, "columns": dict.fromkeys(names, "int")}
    kept, aside, _ = split(opened(spark, tmp_path / "in.csv", "csv", **asked, condition="c0 > 0"))
    assert kept == [[1] * 12]
    assert [each[1:3] for each in aside] == [("c11", "x")]
