"""Conditions that Arrow evaluates: they are what Spark makes of them, for every combination of values and nulls."""

import datetime as dt
import itertools
import pickle
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from lakewriter.source.arrow_conditions import translate
from lakewriter.source.session import isolate

pytestmark = pytest.mark.spark

UTC = dt.UTC
SCHEMA = pa.schema(
    [
        ("op", pa.string()),
        ("n", pa.int64()),
        ("s", pa.int16()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("m", pa.decimal128(10, 2)),
        ("x", pa.float64()),
        ("Other Name", pa.string()),
    ]
)
VALUES: list[list[Any]] = [
    [None, "D", "d", "", "é", "z", "\U0001f600", "\uffff"],
    [None, -1, 0, 3, 2**63 - 1],
    [None, 3, -4],
    [None, True, False],
    [None, dt.date(2024, 2, 29), dt.date(1500, 1, 1)],
    [None, dt.datetime(2024, 1, 1, 12, tzinfo=UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
    [None, dt.datetime(2024, 1, 1, 12)],
    [None, Decimal("1.50"), Decimal("-0.01")],
    [None, float("nan"), 1.0],
    [None, "a"],
]
ALIKE = [
    "op = 'D'", "op <> 'D'", "op IN ('D', 'd')", "op NOT IN ('D', NULL)", "NOT (op = 'D')", "op > 'z'", "op <= 'é'",
    "op > '\uffff'", "'D' = op", "op <=> NULL", "op <=> 'D'", "op = `Other Name`", "OP = 'D'",
    "n > 0", "n = 3", "n BETWEEN -1 AND 3", "n >= 9223372036854775807", "n > 2L - 1", "s = 3", "s IN (3, 4)",
    "flag", "NOT flag", "flag = true", "flag IS NULL OR op = 'D'", "flag AND n > 0", "flag OR n > 0",
    "op IS NOT NULL AND (n IS NULL OR NOT flag)", "true", "op IS NULL",
    "day = DATE '2024-02-29'", "day < '2024-01-01'", "at > TIMESTAMP '2024-01-01 11:59:59.999999Z'",
    "at >= TIMESTAMP '2024-01-02 12:00:00Z' - INTERVAL 1 day", "local = TIMESTAMP_NTZ '2024-01-01 12:00:00'",
    "m = CAST('1.50' AS DECIMAL(10,2))", "n = (SELECT 3)",
    "m < CAST('1.50' AS DECIMAL(10,2))", "x IS NULL",
]  # fmt: skip
NOT_ALIKE = [
    # NaN, functions, casts of columns, another collation, what is no condition, or wrong
    "x = 1.0D", "x > 1.0D", "upper(op) = 'D'", "op LIKE 'D%'", "CAST(op AS INT) = 1", "n + 1 = 4", "at > local",
    "op COLLATE UNICODE_CI = 'd'", "n", "op", "nope = 1", "op = ", "rand() > 0.5", "n = 'x'",
    "CASE WHEN flag THEN true ELSE false END AND n / 0 = 1", "op = 'D' AND length(op) = 1",
]  # fmt: skip


def make_rows() -> pa.RecordBatch:
    """Rows in which every pair of values of two columns beside each other occurs."""
    longest = max(map(len, VALUES))
    rows = [
        [values[(one + step * place) % len(values)] for place, values in enumerate(VALUES)]
        for one, step in itertools.product(range(longest), range(longest))
    ]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def test_arrow_gives_what_spark_gives(spark):
    session, batch = isolate(spark), make_rows()
    found = {sql: translate(session, sql, SCHEMA) for sql in ALIKE}
    assert [sql for sql, expression in found.items() if expression is None] == []
    rows = [list(row.values()) for row in batch.to_pylist()]
    frame = session.createDataFrame(rows, from_arrow_schema(SCHEMA, prefer_timestamp_ntz=True)).coalesce(1)
    names = [f"c{place}" for place in range(len(ALIKE))]
    expected = frame.selectExpr(*(f"({sql}) AS {name}" for sql, name in zip(ALIKE, names, strict=True))).toArrow()
    for sql, name in zip(ALIKE, names, strict=True):
        expression = pickle.loads(pickle.dumps(found[sql]))
        truth = [value is True for value in expected.column(name).to_pylist()]
        assert (sql, expression.find_true(batch).to_pylist()) == (sql, truth)


def test_what_arrow_means_otherwise_is_left_to_spark(spark):
    session = isolate(spark)
    assert [sql for sql in NOT_ALIKE if translate(session, sql, SCHEMA) is not None] == []
