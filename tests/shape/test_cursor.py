"""Cursors; SQL texts follow Spark's literal syntax, https://spark.apache.org/docs/latest/sql-ref-literals.html."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewriter.column_types import UTC_MICROS
from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError, ValueUnrepresentableError
from lakewriter.receipt import Cursor
from lakewriter.shape.cursor import choose_higher, describe_future, find_highest, parse_cursor, write_spark_literal

MOMENT = datetime(2024, 1, 15, 10, 30)
ZONED = MOMENT.replace(tzinfo=UTC)

# (type, a lower value, the highest, cursor, SQL)
CURSORS = [
    (pa.int32(), -7, 5, Cursor("int32", "5"), "5L"),
    (pa.int64(), -(2**63), -9, Cursor("int64", "-9"), "-9L"),
    (
        pa.decimal128(10, 2),
        Decimal("9.99"),
        Decimal("10.50"),
        Cursor("decimal128(10, 2)", "10.50"),
        "CAST('10.50' AS DECIMAL(10,2))",
    ),
    (pa.float64(), 1.25, 1e16, Cursor("double", "1e+16"), "CAST('1e+16' AS DOUBLE)"),
    (pa.float32(), -1.0, 0.1, Cursor("float", "0.1"), "CAST('0.1' AS FLOAT)"),
    (
        pa.date32(),
        date(2023, 12, 31),
        date(2024, 1, 15),
        Cursor("date32[day]", "2024-01-15"),
        "DATE '2024-01-15'",
    ),
    (
        UTC_MICROS,
        datetime(2024, 1, 15, 10, 29, 59, 999999, tzinfo=UTC),
        ZONED,
        Cursor("timestamp[us, tz=UTC]", "2024-01-15T10:30:00.000000Z"),
        "TIMESTAMP '2024-01-15 10:30:00.000000+00:00'",
    ),
    (
        pa.timestamp("us"),
        datetime(999, 1, 1),
        MOMENT,
        Cursor("timestamp[us]", "2024-01-15T10:30:00.000000"),
        "TIMESTAMP_NTZ '2024-01-15 10:30:00.000000'",
    ),
    (pa.string(), "Z", "a'b\\c${d}", Cursor("string", "a'b\\c${d}"), "'a\\'b\\\\c\\u0024{d}'"),
]


@pytest.mark.parametrize(("t", "low", "high", "cursor", "sql"), CURSORS)
def test_cursor_maximum_comparison_and_sql(t: pa.DataType, low: object, high: object, cursor: Cursor, sql: str) -> None:
    highest, lower = (find_highest(pa.array(values, t), "c", 1) for values in ([low, None, high, low], [low]))
    assert highest is not None
    assert highest.without_shapes() == cursor
    lower = lower and lower.without_shapes()
    assert choose_higher(lower, cursor) == choose_higher(cursor, lower) == cursor
    assert write_spark_literal(cursor) == sql


def test_highest_in_only_nulls_is_none() -> None:
    assert find_highest(pa.array([None], pa.int64()), "c", 1) is None


def test_highest_in_nan_names_column_and_row() -> None:
    with pytest.raises(ValueUnrepresentableError, match="'c' is NaN in row 12"):
        find_highest(pa.array([1.0, None, float("nan")]), "c", 10)


@pytest.mark.parametrize(("a", "b"), [(None, None), (None, Cursor("int8", "1")), (Cursor("int8", "1"), None)])
def test_highest_with_none(a: Cursor | None, b: Cursor | None) -> None:
    assert choose_higher(a, b) == (a or b)


def test_highest_compares_numbers_of_different_types() -> None:
    assert choose_higher(Cursor("int32", "10"), Cursor("decimal128(5, 1)", "9.5")) == Cursor("int32", "10")


def test_highest_refuses_types_without_common_order() -> None:
    with pytest.raises(SchemaIncompatibleError, match="cursor '1' of type 'int64'"):
        choose_higher(Cursor("int64", "1"), Cursor("string", "1"))


@pytest.mark.parametrize("cursor", [Cursor("bool", "true"), Cursor("date32[day]", "soon")])
def test_spark_literal_refuses_what_it_does_not_know(cursor: Cursor) -> None:
    with pytest.raises(SchemaIncompatibleError, match=cursor.text):
        write_spark_literal(cursor)


@given(st.lists(st.datetimes(), min_size=1, max_size=5))
def test_highest_folds_batches_like_one_maximum(moments: list[datetime]) -> None:
    folded = None
    for moment in moments:
        folded = choose_higher(folded, find_highest(pa.array([moment], pa.timestamp("us")), "c", 1))
    assert folded == find_highest(pa.array(moments, pa.timestamp("us")), "c", 1)


@pytest.mark.parametrize("cursor", [cursor for _, _, _, cursor, _ in CURSORS])
def test_parsed_cursor_takes_the_texts_of_cursors(cursor: Cursor) -> None:
    assert parse_cursor(cursor.type, cursor.text) == cursor


# type, a text that is none of it
MISTYPED = [
    ("int64", "4.2"),
    ("int64", "1_000"),
    ("int64", "1 OR true"),
    ("decimal128(5, 2)", "NaN"),
    ("double", "nan"),
    ("date32[day]", "2024-13-01"),
    ("date32[day]", "2024-01-15T10:30:00.000000Z"),
    ("timestamp[us]", "2024-01-15T10:30:00.000000Z"),
    ("timestamp[us, tz=UTC]", "2024-01-15"),
    ("list<item: int8>", "[]"),
]


@pytest.mark.parametrize(("kind", "text"), MISTYPED)
def test_parsed_cursor_refuses_other_texts(kind: str, text: str) -> None:
    with pytest.raises(SpecInvalidError, match="is not of type"):
        parse_cursor(kind, text)


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
FUTURE = [
    # a cursor, whether it is still to come at noon of 31 January 2026
    (Cursor("date32[day]", "2026-02-01"), False),
    (Cursor("date32[day]", "2026-02-02"), True),
    (Cursor("date32[day]", "9999-12-31"), True),
    (Cursor("timestamp[us, tz=UTC]", "2026-02-01T11:59:59.000000Z"), False),
    (Cursor("timestamp[us, tz=UTC]", "2026-02-01T12:00:01.000000Z"), True),
    (Cursor("timestamp[us]", "9999-12-31T00:00:00.000000"), True),
    (Cursor("string", "2026-02-01"), False),
    (Cursor("string", "9999-12-31 00:00"), True),
    (Cursor("string", "9999-12-31999"), False),
    (Cursor("string", "zzz"), False),
    (Cursor("int64", "99991231"), False),
    (None, False),
]


@pytest.mark.parametrize(("cursor", "is_future"), FUTURE)
def test_a_cursor_in_the_future(cursor: Cursor | None, is_future: bool) -> None:
    said = describe_future(cursor, "changed", NOON)
    assert (said is not None) == is_future
    if said is not None and cursor is not None:
        assert said.startswith(f"cursor 'changed' is at {cursor.text}, in the future")
