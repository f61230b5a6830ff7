"""Loads of columns whose types and spellings are declared."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

pytestmark = pytest.mark.spark


def test_spellings_are_read_and_what_is_cut_is_counted(lake):
    text = "id,seen,booked,at\n1,1704448800123,05.01.2024,2024-01-05 10:00:00.123456789\n2,,,2024-01-05 10:00:00.100\n"
    lake.csv("a.csv", text)
    columns = {
        "id": "int", "seen": {"type": "timestamp", "from": "epoch_ms"},
        "booked": {"type": "date", "format": "dd.MM.yyyy"}, "at": "timestamp",
    }  # fmt: skip
    read = {"format": "csv", "path": "a.csv", "options": {"header": "true"}}
    entry = {"table": "a", "schema": "public", "read": read, "columns": columns}
    lake.write(entry)
    [failed] = lake.load("a").tables
    assert (failed.status, failed.code) == ("failed", "VALUE_UNREPRESENTABLE")
    assert "does not convert to timestamp: it is finer than microseconds; nanoseconds: truncate" in failed.message
    lake.write(entry | {"nanoseconds": "truncate"})
    [result] = lake.load("b").tables
    assert (result.status, result.rows, result.changes) == ("done", 2, 1), result.message
    assert [(each.field, each.change, each.reason, each.values) for each in result.changed] == [
        ("at", "TRUNCATED", "to the microsecond", 1)
    ]
    utc = ZoneInfo("UTC")
    assert lake.rows('SELECT id, seen, booked, "at" FROM t ORDER BY id', "supaflow_nyc_public/a") == [
        (1, datetime(2024, 1, 5, 10, 0, 0, 123000, utc), date(2024, 1, 5), datetime(2024, 1, 5, 10, 0, 0, 123456, utc)),
        (2, None, None, datetime(2024, 1, 5, 10, 0, 0, 100000, utc)),
    ]
