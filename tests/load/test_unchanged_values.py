"""Values that PostgreSQL leaves out of an update, since they are unchanged, are those that the table's rows have."""

import base64
from typing import Any, Final

import pytest

from lakewriter.operate.repair import abandon
from tests.load.test_change_events import Topic, change

pytestmark = pytest.mark.spark

LEFT_OUT: Final = "__debezium_unavailable_value"
AS_BYTES: Final = base64.b64encode(LEFT_OUT.encode()).decode()
BIG: Final = "x" * 3000
COLUMNS: Final = {"photo": {"type": "binary", "from": "base64"}, "Life Story": "string", "n": "int"}


def row(key: int, **values: Any) -> dict[str, Any]:
    return {"id": key, "n": 0, "Life Story": BIG, "photo": "AAEC", "tags": [1, 2]} | values


def lacking(key: int, **values: Any) -> dict[str, Any]:
    """As the connector writes it: the placeholder's bytes where the column has a list of numbers."""
    return row(key, **{"Life Story": LEFT_OUT, "photo": AS_BYTES, "tags": list(LEFT_OUT.encode())} | values)


@pytest.mark.parametrize("format_version", [2, 3])
def test_a_table_follows_updates_that_leave_values_out(tmp_path, aws, bucket, spark, format_version):
    topic = Topic(tmp_path, aws, spark, columns=COLUMNS)
    topic.users.rules |= {"format_version": format_version}
    topic.users.write()
    topic.load("a", *(change("r", 50, row(key)) for key in range(6)), change("u", 51, lacking(5, n=5)))
    # An update, one that gives the value, a delete, and a change of the key.
    topic.load(
        "b",
        change("u", 60, lacking(0, n=1)),
        change("u", 61, lacking(1, **{"Life Story": "new"})),
        change("u", 62, lacking(1, n=2)),
        change("d", 63, before={"id": 2}),
        change("d", 64, before={"id": 3}),
        change("c", 64, lacking(30, n=3)),
    )
    names = ("id", "n", "Life Story", "photo", "tags")
    written = ["id", "n", "Life_Story", "photo", "tags"]
    assert topic.rows(*written) == [
        (0, 1, BIG, b"\0\1\2", [1, 2]),
        (1, 2, "new", b"\0\1\2", [1, 2]),
        (4, 0, BIG, b"\0\1\2", [1, 2]),
        (5, 5, BIG, b"\0\1\2", [1, 2]),
        (30, 3, BIG, b"\0\1\2", [1, 2]),
    ], names
    assert "__lakewriter_unchanged" not in topic.users.iceberg().schema().column_names
    assert topic.users.differences() == []
    topic.users.undo("b").run()
    assert [found[:2] for found in topic.rows(*written)] == [(key, 5 if key == 5 else 0) for key in range(6)]
    topic.users.undo("a").run()
    assert topic.rows("id") == []


def test_a_row_that_nothing_has(tmp_path, aws, bucket, spark):
    """What is not known of a row keeps the load back, until it is given up."""
    topic = Topic(tmp_path, aws, spark, columns=COLUMNS)
    topic.load("a", change("r", 50, row(1)), change("r", 50, row(2)))
    table = topic.load("c", change("u", 70, lacking(3)), change("u", 70, lacking(2, n=2)))
    assert table.code == "PENDING_UNRECOVERABLE"
    assert "1 row without a value in column 'Life_Story', such as that with the key 3" in table.message
    assert topic.rows("id", "n") == [(1, 0), (2, 0)]
    # The connector reads the row again: an incremental snapshot lies below what was streamed.
    abandon(topic.users.pipeline.controls, "c", "a drill", topic.users.pipeline.clients)
    topic.load("d", change("r", 80, row(3, n=3)))
    assert topic.rows("id", "n", "Life_Story") == [(1, 0, BIG), (2, 2, BIG), (3, 0, BIG)]
