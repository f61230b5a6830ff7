"""The key and the cursor that rows suggest, and why."""

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from lakewriter.init.proposals import (
    Proposal,
    describe_columns,
    find_repeated_key,
    propose_checks,
    propose_cursor,
    propose_key,
)

PAIR = "2 distinct values in 2 rows, none null"
BY_CHANCE = "distinct in 2 rows, but not named as keys are"

KEYS = [
    # table, rows, key, evidence, whether it is certain
    ("orders", {"order_id": ["1", "2"], "day": ["a", "a"]}, ("order_id",), PAIR, True),
    ("orders", {"id": [1, 2], "customer_id": [7, 8]}, ("id",), PAIR, True),
    # Of two that are unique, the table's own.
    ("orders", {"customer_id": [7, 8], "order_id": [1, 2]}, ("order_id",), PAIR, True),
    # The first column is a key by its name alone, and so is a number.
    ("airlines", {"carrier": ["AA", "UA"], "name": ["A", "U"]}, ("carrier",), BY_CHANCE, False),
    ("people", {"first_name": ["Ada", "Bo"]}, ("first_name",), BY_CHANCE, False),
    ("people", {"phone_number": [1, 2]}, ("phone_number",), BY_CHANCE, False),
    ("orders", {"order_number": [1, 2]}, ("order_number",), PAIR, True),
    ("countries", {"name": ["A", "B"], "country_code": ["a", "b"]}, ("country_code",), PAIR, True),
    ("orders", {"orderId": [1, 2]}, ("orderId",), PAIR, True),
    ("orders", {"a": ["x", "x"], "name": ["p", "q"]}, ("name",), BY_CHANCE, False),
    ("stock", {"sku": ["a", "a", "b"], "day": ["1", "2", "1"]}, ("sku", "day"),
     "together distinct in 3 rows; no column is by itself", False),
    ("orders", {"id": [1, 1], "a": ["x", "x"]}, (), "id has 1 distinct value in 2 rows", True),
    ("orders", {"id": [1, None], "a": ["x", "x"]}, (), "id is null in 1 row", True),
    ("orders", {"a": ["x", "x"]}, (), "no column, and no few together, tell all rows apart", True),
    ("orders", {"id": [1]}, (), "1 row cannot show which columns tell rows apart", False),
    # A measure is no key, however distinct its values are.
    ("orders", {"price": [1.5, 2.5]}, (), "no column, and no few together, tell all rows apart", True),
]  # fmt: skip


@pytest.mark.parametrize(("table", "rows", "key", "evidence", "is_certain"), KEYS)
def test_keys(table, rows, key, evidence, is_certain):
    data = pa.table(rows)
    found = propose_key(table, data, describe_columns(data), is_whole=True)
    assert (found.columns, found.evidence, found.is_certain) == (key, evidence, is_certain)


def test_a_part_of_the_rows_makes_no_key():
    data = pa.table({"id": [1, 2]})
    found = propose_key("orders", data, describe_columns(data), is_whole=False)
    assert (found.evidence, found.is_certain) == (
        "2 distinct values in the first 2 rows, none null; the rest was not looked at",
        False,
    )


EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ENDS = "from 2026-01-01 00:00:00+00:00 to 2026-01-02 03:04:05+00:00"

CURSORS = [
    # rows, column, evidence, whether it is certain; None for no proposal
    ({"updated_at": [EARLY, LATE]}, ("updated_at", f"never null, {ENDS}", True)),
    ({"LastModifiedDate": [EARLY, LATE]}, ("LastModifiedDate", f"never null, {ENDS}", True)),
    ({"created_at": [EARLY, LATE], "updated_at": [EARLY, LATE]}, ("updated_at", f"never null, {ENDS}", True)),
    ({"updated_at": ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]},
     ("updated_at", "never null, from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z", True)),
    # Rows whose cursor is null would never be read again.
    ({"updated_at": [EARLY, None]},
     ("updated_at", "updated_at is null in 1 row, which no later load would read", False)),
    ({"updated_on": [date(2026, 1, 1), date(2026, 1, 2)]},
     ("updated_on", "a date: rows of a day already loaded are read again only with cursor_lag: 1 day", False)),
    ({"created_at": [EARLY, LATE]},
     ("created_at", f"{ENDS}: right only if no row changes after it is written", False)),
    ({"birthday": [EARLY, LATE]}, None),
    ({"updated_by": ["a", "b"]}, None),
    ({"updated_at": ["yesterday", "today"]}, None),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "expected"), CURSORS)
def test_cursors(rows, expected):
    data = pa.table(rows)
    found = propose_cursor(data, describe_columns(data))
    assert (found and (found.columns[0], found.evidence, found.is_certain)) == expected


SEEN = pa.table(
    {
        "id": list(range(40)),
        "status": ["new", "paid", "sent", "paid"] * 10,
        "note": [None, *(f"n{each}" for each in range(39))],
        "updated_at": pa.array([f"2026-03-01T10:{each:02}:00Z" for each in range(40)]),
    }
)
FRESH = {"column": "updated_at", "within": "26 hours"}
CHECKS = [
    # key, cursor, whole; checks that are certain, checks that are not
    (
        Proposal(("id",), "40"), None, True,
        [{"rows": {"at_least": 1}}, {"not_null": ["id"]}],
        [{"unique": "id"}, {"not_null": ["status", "updated_at"]},
         {"accepted_values": {"column": "status", "values": ["new", "paid", "sent"]}}],
    ),
    (
        Proposal(("id", "status"), "40", is_certain=False), Proposal(("updated_at",), "grows"), False,
        [],
        [{"rows": {"at_least": 1}}, {"not_null": ["id", "status"]}, {"unique": ["id", "status"]},
         {"not_null": ["updated_at"]}, {"accepted_values": {"column": "status", "values": ["new", "paid", "sent"]}},
         {"fresh": FRESH}],
    ),
    (
        Proposal((), "none"), Proposal(("id",), "grows", is_certain=False), True,
        [{"rows": {"at_least": 1}}],
        [{"not_null": ["id", "status", "updated_at"]},
         {"accepted_values": {"column": "status", "values": ["new", "paid", "sent"]}}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("key", "cursor", "is_whole", "certain", "others"), CHECKS)
def test_checks(key, cursor, is_whole, certain, others):
    """``note`` has a null, and too many values."""
    reads_new = cursor is not None and cursor.is_certain
    columns = describe_columns(SEEN)
    found = propose_checks(SEEN, columns, key, cursor, is_whole=is_whole, reads_new=reads_new)
    assert [each.check for each in found if each.is_certain] == certain
    assert [each.check for each in found if not each.is_certain] == others


REPEATED = [
    # columns, files, by which key they repeat each other
    ({"order_id": [1, 2, 1, 2]}, 2, "order_id has 2 distinct values in 4 rows of 2 files"),
    # Whole exports of a table that grows.
    ({"order_id": [1, 2, 1, 2, 3]}, 2, "order_id has 3 distinct values in 5 rows of 2 files"),
    # A few rows that changed come again: each file has what is new.
    ({"order_id": [1, 2, 3, 4, 4]}, 2, ""),
    ({"order_id": [1, 1]}, 1, ""),
    ({"order_id": [1, 2, 1, None]}, 2, ""),
    # Another table's key comes again in any file.
    ({"customer_id": [1, 2, 1, 2]}, 2, ""),
    ({"amount": [1.0, 1.0]}, 2, ""),
]


@pytest.mark.parametrize(("columns", "files", "said"), REPEATED)
def test_files_that_repeat_each_other(columns, files, said):
    rows = pa.table(columns)
    assert find_repeated_key("orders", rows, describe_columns(rows), files) == said
