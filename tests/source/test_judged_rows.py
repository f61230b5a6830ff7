"""Tables of which the tasks choose rows above a cursor and tell deleted ones: the same rows as Spark gives."""

import json
from typing import Any

import pytest

from lakewriter.naming import DELETED
from lakewriter.source import file_splits
from lakewriter.source.feed import open_feed
from lakewriter.source.request import Feed, RowsRequest
from lakewriter.spec.row_rules import BadRows
from tests.source.tables import show, table

pytestmark = pytest.mark.spark

TEXT = "id,op,at,note\n1,I,2024-01-01,\n2,D,2024-01-02,a\n3,,2024-01-03,b\n4,D,x,c\n5,I\n6,d,,e\n"
TYPES = {"id": "int", "at": "date"}
QUARANTINE = BadRows(action="quarantine")
AFTER = "`at` > DATE '2024-01-01'"
TABLES: list[tuple[dict[str, Any], str | None, str]] = [
    # what the table says, the condition of its cursor, the feed
    ({"deleted": "op = 'D'"}, None, "splits"),
    ({"deleted": "op IN ('D', 'd') OR note IS NULL"}, None, "splits"),
    ({"cursor": "at"}, AFTER, "splits"),
    ({"cursor": "at", "deleted": "ID > 2"}, AFTER, "splits"),
    ({"cursor": "at"}, "`at` > DATE '2024-01-03' - INTERVAL 1 days", "splits"),
    ({"cursor": "at", "deleted": "op = 'D'", "on_bad_row": QUARANTINE}, AFTER, "splits"),
    ({"deleted": "lower(op) = 'd'"}, None, "rows"),
    ({"cursor": "at", "partition_by": ()}, AFTER, "splits"),
]


def read(feed: Feed) -> tuple[list[str], list[list[Any]]]:
    names = feed.schema.names
    rows = [row for text in feed.run(show) for row in json.loads(text)[1]]
    feed.close()
    return names, sorted(rows, key=json.dumps)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("fields", "condition", "kind"), TABLES)
def test_tasks_judge_rows_as_spark_does(spark, tmp_path, monkeypatch, fields, condition, kind):
    (tmp_path / "a.csv").write_text(TEXT, "utf-8")
    given = {"columns": TYPES, "on_bad_row": BadRows(action="quarantine"), **fields}
    asked = table(format="csv", path=str(tmp_path / "a.csv"), options={"header": "true"}, **given)
    monkeypatch.setattr(file_splits, "_ONE_TASK_BYTES", 0)
    feed = open_feed(RowsRequest(lambda: spark, asked, condition=condition))
    assert feed.kind == kind
    by_spark = open_feed(RowsRequest(lambda: spark, asked, condition=condition), prefer="rows")
    found = read(feed)
    assert found == read(by_spark)
    assert found[0][-1] == (DELETED if asked.deleted else "note")


def test_rows_above_a_cursor_are_counted(spark, tmp_path, monkeypatch):
    """Their numbers go on from one partition to the next without a gap."""
    monkeypatch.setattr(file_splits, "_ONE_TASK_BYTES", 0)
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text(f"{number},a\n1,b\n2,c\n", "utf-8")
    packed = spark.newSession()
    packed.conf.set("spark.sql.files.openCostInBytes", "128m")
    asked = table(format="csv", path=str(tmp_path), columns={"_c0": "int"}, cursor="_c0")
    feed = open_feed(RowsRequest(lambda: packed, asked, condition="_c0 > 1L"))
    assert feed.kind == "splits"
    assert feed.counts == (1, 1, 2)
