"""Which rows a check keeps out of its table: true, false and null, for every type that has an answer."""

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.expect.failing_rows import find_failing
from lakewriter.expect.watching import find_watched
from lakewriter.shape.table import plan_shape
from lakewriter.spec.expectations import AcceptedValues, Condition, NullShare, Range
from tests.staging.plans import SPEC, TABLE

BARE = TABLE.model_copy(update={"cursor": None, "expect": ()})
NAN, INF = float("nan"), float("inf")
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)
LOCAL = NOON.replace(tzinfo=None)

RANGES: list[tuple[pa.DataType, Any, Any, list[Any], list[bool]]] = [
    # type, at_least, at_most, values, which fail
    (pa.int8(), 0, 100, [-1, 0, 100, 101, None], [True, False, False, True, False]),
    (pa.int8(), -1000, 1000, [-128, 127], [False, False]),
    (pa.int8(), 1000, None, [-128, 127, None], [True, True, False]),
    (pa.int64(), 0.5, 2.5, [0, 1, 2, 3], [True, False, False, True]),
    (pa.int64(), None, 2**63 - 1, [2**63 - 1], [False]),
    (pa.decimal128(6, 2), "1.005", None, [Decimal("1.00"), Decimal("1.01")], [True, False]),
    (pa.decimal128(6, 2), None, 1.005, [Decimal("1.00"), Decimal("1.01"), None], [False, True, False]),
    (pa.decimal128(6, 2), None, 10**9, [Decimal("9999.99")], [False]),
    (pa.float64(), 0, 1, [-0.0, 1.0, 1.5, NAN, INF, None], [False, False, True, True, True, False]),
    (pa.float64(), None, 1, [-INF], [False]),
    (pa.float32(), 0.1, 0.1, [0.1, 0.2], [False, True]),
    (pa.string(), "b", "d", ["a", "b", "d", "da", "é", None], [True, False, False, True, True, False]),
    (pa.date32(), "2027-01-02", None, [date(2027, 1, 1), date(2027, 1, 2), None], [True, False, False]),
    (pa.timestamp("us", "UTC"), "2027-01-01T12:00:00Z", None, [NOON, datetime(2027, 1, 1, 11, tzinfo=UTC)],
     [False, True]),
    (pa.timestamp("us"), None, "2027-01-01T13:00:00+01:00", [LOCAL, datetime(2027, 1, 1, 12, 30)], [False, True]),
    (pa.null(), 1, None, [None, None], [False, False]),
]  # fmt: skip


def failing(expectation: Any, t: pa.DataType, values: list[Any], checks: pa.Array | None = None) -> list[bool]:
    schema = pa.schema([("id", pa.int32()), ("c", t)])
    table = BARE.model_copy(update={"expect": (expectation,)})
    plan = plan_shape(schema, SPEC, table)
    # Tasks get it by pickle.
    [rule] = pickle.loads(pickle.dumps(find_watched(table, plan, is_parquet=True))).rules
    typed = pa.RecordBatch.from_pydict({"id": pa.array(range(len(values)), pa.int32()), "c": pa.array(values, t)})
    written = typed.select([name for name in typed.schema.names if name in plan.schema.names])
    found = find_failing([rule], written, checks)
    assert len(found) == any(rule.mask_failing(written, checks).to_pylist())
    answer: list[bool] = rule.mask_failing(written, checks).to_pylist()
    return answer


@pytest.mark.parametrize(("t", "low", "high", "values", "expected"), RANGES, ids=lambda each: str(each)[:30])
def test_range(t, low, high, values, expected):
    check = Range(name="r", column="c", at_least=low, at_most=high, on_violation="quarantine")
    assert failing(check, t, values) == expected


NULLS: list[tuple[pa.DataType, list[Any], list[bool]]] = [
    (pa.int64(), [1, None], [False, True]),
    (pa.float64(), [NAN, None], [False, True]),
    (pa.list_(pa.int64()), [[], None, [None]], [False, True, False]),
    (pa.struct([("a", pa.int64())]), [{"a": None}, None], [False, True]),
    # A column without values is not written.
    (pa.null(), [None, None], [True, True]),
]


@pytest.mark.parametrize(("t", "values", "expected"), NULLS, ids=str)
def test_not_null(t, values, expected):
    check = NullShare(name="n", column="c", at_most=0, on_violation="quarantine")
    assert failing(check, t, values) == expected


ACCEPTED: list[tuple[pa.DataType, tuple[Any, ...], list[Any], list[bool]]] = [
    (pa.string(), ("a", "b"), ["a", "c", "", None], [False, True, True, False]),
    (pa.int32(), (1, 2), [1, 3, None], [False, True, False]),
    (pa.bool_(), (True,), [True, False, None], [False, True, False]),
    (pa.float64(), (1.5,), [1.5, NAN, None], [False, True, False]),
    (pa.decimal128(4, 1), ("1.5",), [Decimal("1.5"), Decimal("1.4")], [False, True]),
    (pa.date32(), ("2027-01-01",), [date(2027, 1, 1), date(2027, 1, 2)], [False, True]),
    (pa.null(), ("a",), [None], [False]),
]


@pytest.mark.parametrize(("t", "accepted", "values", "expected"), ACCEPTED, ids=str)
def test_accepted_values(t, accepted, values, expected):
    check = AcceptedValues(name="a", column="c", values=accepted, on_violation="quarantine")
    assert failing(check, t, values) == expected


def test_condition_fails_the_rows_of_which_spark_says_so():
    """Its place is among all conditions of the table, whatever follows from the others."""
    first, second = (Condition(name=name, sql="true") for name in "xy")
    second = second.model_copy(update={"on_violation": "quarantine"})
    table = BARE.model_copy(update={"expect": (first, second)})
    watched = find_watched(table, plan_shape(pa.schema([("id", pa.int32())]), SPEC, table), is_parquet=True)
    checks = pa.StructArray.from_arrays([pa.array([False, True]), pa.array([True, False])], names=["c0", "c1"])
    typed = pa.RecordBatch.from_pydict({"id": pa.array([1, 2], pa.int32())})
    [found] = find_failing(watched.rules, typed, checks)
    assert (found.rule.name, found.mask.to_pylist()) == ("y", [False, True])
    assert found.rule.reason == "y: no row of which true is false"


REFUSED: list[tuple[Any, pa.DataType, str]] = [
    (Range(name="r", column="c", at_least=1, on_violation="quarantine"), pa.binary(), "has type 'binary', expected a"),
    (
        Range(name="r", column="c", at_least="x", on_violation="quarantine"),
        pa.int64(),
        "the limit 'x' does not compare",
    ),
    (AcceptedValues(name="a", column="c", values=("x",), on_violation="quarantine"), pa.int64(), "int64', got 'x'"),
    (NullShare(name="n", column="d", at_most=0, on_violation="quarantine"), pa.int64(), "the source has no column 'd'"),
]


@pytest.mark.parametrize(("check", "t", "said"), REFUSED)
def test_what_a_column_cannot_have_is_refused(check, t, said):
    with pytest.raises(SpecInvalidError, match=said):
        failing(check, t, [])
