"""Every check's truth table: true, false and not known, by what is known of a load."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.expect.verdicts import Facts, judge
from lakewriter.expect.watching import ValueCheck, Watch, Watched
from lakewriter.receipt import Cursor, Observed, Totals, Violations
from lakewriter.spec.expectations import (
    Acceptance,
    AcceptedValues,
    Condition,
    Expectation,
    Fresh,
    NullShare,
    Range,
    RowCount,
    RowsOfLastLoads,
    Unique,
)

AT = datetime(2027, 1, 15, 6, 0, tzinfo=UTC)
INT, FLOAT, TEXT, DATE = pa.int64(), pa.float64(), pa.string(), pa.date32()
TIME, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")
DECIMAL = pa.decimal128(10, 2)


def seen(rows: int, t: pa.DataType, low: str | None = None, high: str | None = None, **rest: Any) -> Observed:
    lower, upper = (None if text is None else Cursor(str(t), text) for text in (low, high))
    return Observed(**({"rows": rows, "nulls": 0, "lower": lower, "upper": upper} | rest))


def verdict(expectation: Expectation, t: pa.DataType, observed: Observed | None, rows: int, **known: Any) -> Any:
    facts = Facts(
        totals=Totals(rows=rows, observed={"c": observed} if observed else {}),
        watched=Watched({"c": Watch("c", t, bounds=True)}),
        at=AT,
        last_rows=lambda most: known.get("last", ())[:most],
        cursors=known.get("cursors", {}),
    )
    [found] = judge("s.t", [expectation], facts)
    return found.holds, found.found, found.expected


ROWS = [
    # least, most, rows of the load, holds, expected in words
    (1, None, 1, True, "at least 1 row"),
    (1, None, 0, False, "at least 1 row"),
    (None, 10, 10, True, "at most 10 rows"),
    (None, 10, 11, False, "at most 10 rows"),
    (5, 1000, 4, False, "5 to 1,000 rows"),
    (5, 1000, 1000, True, "5 to 1,000 rows"),
    (0, 0, 0, True, "0 to 0 rows"),
]


@pytest.mark.parametrize(("least", "most", "rows", "holds", "expected"), ROWS)
def test_rows(least, most, rows, holds, expected):
    found = verdict(RowCount(name="n", at_least=least, at_most=most), INT, None, rows)
    assert found == (holds, f"{rows:,} row{'s'[: rows != 1]}", expected)


LAST = [
    # rows of the last loads, of this one, holds, expected in words
    ((), 5, None, "50% to 200% of the rows of earlier loads"),
    ((100,), 50, True, "50 to 200 rows, 50% to 200% of the load before"),
    ((100,), 49, False, "50 to 200 rows, 50% to 200% of the load before"),
    ((100, 10, 1000), 200, True, "50 to 200 rows, 50% to 200% of the median of the last 3 loads"),
    ((100, 10, 1000), 201, False, "50 to 200 rows, 50% to 200% of the median of the last 3 loads"),
    ((100, 101), 50, False, "50.25 to 201 rows, 50% to 200% of the median of the last 2 loads"),
    # the fourth is not looked at
    ((1, 1, 1, 1_000_000), 1, True, "0.5 to 2 rows, 50% to 200% of the median of the last 3 loads"),
    ((0,), 0, True, "0 to 0 rows, 50% to 200% of the load before"),
]


@pytest.mark.parametrize(("last", "rows", "holds", "expected"), LAST)
def test_rows_of_last_loads(last, rows, holds, expected):
    rule = RowsOfLastLoads(name="n", loads=3, least=0.5, most=2)
    assert verdict(rule, INT, None, rows, last=last)[0::2] == (holds, expected)


NULLS = [
    # the largest share, rows, nulls, holds, found in words
    (0, 3, 0, True, "0 nulls in 3 rows"),
    (0, 3, 1, False, "1 null in 3 rows (33.33%)"),
    (0, 0, 0, True, "0 nulls in 0 rows"),
    (0, 3, None, None, "a number of nulls that is not known"),
    (0.05, 100, 5, True, "5 nulls in 100 rows (5.00%)"),
    (0.05, 100, 6, False, "6 nulls in 100 rows (6.00%)"),
    (0.333, 1000, 333, True, "333 nulls in 1,000 rows (33.30%)"),
    (1, 3, 3, True, "3 nulls in 3 rows (100.00%)"),
]


@pytest.mark.parametrize(("share", "rows", "nulls", "holds", "found"), NULLS)
def test_nulls(share, rows, nulls, holds, found):
    rule = NullShare(name="n", column="c", at_most=share)
    assert verdict(rule, TEXT, Observed(rows=rows, nulls=nulls), rows)[:2] == (holds, found)


@pytest.mark.parametrize(("share", "words"), [(0, "no nulls"), (0.05, "at most 5% nulls"), (1, "at most 100% nulls")])
def test_nulls_in_words(share, words):
    rule = NullShare(name="n", column="c", at_most=share)
    assert verdict(rule, TEXT, Observed(rows=1, nulls=0), 1)[2] == words


def test_column_that_no_file_tells_of_is_not_known_to_have_no_nulls():
    assert verdict(NullShare(name="n", column="c", at_most=0), TEXT, None, 5)[0] is None


def test_column_without_a_type_has_nothing_but_nulls():
    rule = NullShare(name="n", column="c", at_most=0.5)
    assert verdict(rule, pa.null(), None, 4)[:2] == (False, "4 nulls in 4 rows (100.00%)")
    assert verdict(rule, pa.null(), None, 0)[0] is True


RANGES = [
    # type, least, most, lowest, highest, holds
    (INT, 0, None, "0", "9", True),
    (INT, 0, None, "-1", "9", False),
    (INT, None, 9, "0", "9", True),
    (INT, None, 9, "0", "10", False),
    # by value, not as text
    (INT, 2, 100, "2", "10", True),
    (INT, 0.5, None, "0", "1", False),
    (INT, None, 2**63, "0", str(2**63 - 1), True),
    (DECIMAL, -1.25, 1, "-1.25", "1.00", True),
    (DECIMAL, -1.25, 1, "-1.26", "1.00", False),
    (FLOAT, 0.1, 0.3, "0.1", "0.3", True),
    (FLOAT, 0.1, 0.3, "0.1", "inf", False),
    (FLOAT, 0.1, None, "-inf", "0.3", False),
    (TEXT, "a", "b", "a", "b", True),
    (TEXT, "a", "b", "B", "b", False),
    (DATE, "2027-01-01", None, "2027-01-01", "2027-02-01", True),
    (DATE, "2027-01-01", None, "2026-12-31", "2027-02-01", False),
    (DATE, None, "9999-12-31", "2026-12-31", "10000-01-01", False),
    (TIME, "2027-01-01", "2027-01-01T02:00:00+02:00", "2027-01-01T00:00:00.000000Z", "2027-01-01T00:00:00.000000Z",
     True),
    (TIME, None, "2027-01-01", "2026-01-01T00:00:00.000000Z", "2027-01-01T00:00:00.000001Z", False),
    (LOCAL, "2027-01-01 00:00:01", None, "2027-01-01T00:00:00.999999", "2027-01-02T00:00:00.000000", False),
]  # fmt: skip


@pytest.mark.parametrize(("t", "least", "most", "low", "high", "holds"), RANGES)
def test_range(t, least, most, low, high, holds):
    rule = Range(name="n", column="c", at_least=least, at_most=most)
    assert verdict(rule, t, seen(5, t, low, high), 5)[0] is holds


def test_range_in_words():
    rule = Range(name="n", column="c", at_least=0, at_most=1500)
    assert verdict(rule, INT, seen(5, INT, "-3", "2000"), 5) == (
        False, "-3 as the lowest value and 2000 as the highest value", "0 to 1,500",
    )  # fmt: skip


UNKNOWN = [
    # what was seen of five rows, holds, found
    (seen(5, FLOAT, None, None, nulls=5), True, "no values"),
    (seen(5, FLOAT, None, None, nulls=4), None, "bounds that are not known"),
    (seen(5, FLOAT, None, None, nulls=None), None, "bounds that are not known"),
    (seen(5, FLOAT, "1.0", None), True, "1.0 as the lowest value"),
    (None, None, "bounds that are not known"),
    # NaN is in no range
    (seen(5, FLOAT, "1.0", "2.0", nans=1), False, "NaN in 1 row"),
    (seen(5, FLOAT, nulls=3, nans=2), False, "NaN in 2 rows"),
]


@pytest.mark.parametrize(("observed", "holds", "found"), UNKNOWN)
def test_range_of_bounds_that_are_not_known(observed, holds, found):
    rule = Range(name="n", column="c", at_least=0)
    assert verdict(rule, FLOAT, observed, 5)[:2] == (holds, found)


AGES = [
    # type, the newest value, holds: it may be 26 hours before 2027-01-15 06:00, which is the 14th at 04:00
    (TIME, "2027-01-14T04:00:00.000000Z", True),
    (TIME, "2027-01-14T03:59:59.999999Z", False),
    (LOCAL, "2027-01-14T04:00:00.000000", True),
    (LOCAL, "2027-01-14T03:59:59.999999", False),
    (DATE, "2027-01-15", True),
    (DATE, "2027-01-14", False),
    (TIME, "2030-01-01T00:00:00.000000Z", True),
]
WITHIN = Fresh(name="n", column="c", within="26 hours")


@pytest.mark.parametrize(("t", "newest", "holds"), AGES)
def test_fresh(t, newest, holds):
    found = verdict(WITHIN, t, seen(5, t, newest, newest), 5)
    expected = "a value at most 26 hours before 2027-01-15 06:00:00 UTC"
    assert found == (holds, f"{newest} as the newest value", expected)


def test_fresh_without_values_is_not_known_unless_an_earlier_load_had_some():
    assert verdict(WITHIN, TIME, None, 0)[:2] == (None, "no values")
    assert verdict(WITHIN, TIME, seen(5, TIME, nulls=None), 5)[:2] == (None, "a newest value that is not known")
    before = {"c": Cursor(str(TIME), "2027-01-15T00:00:00.000000Z")}
    assert verdict(WITHIN, TIME, None, 0, cursors=before)[0] is True


VALUES = AcceptedValues(name="n", column="c", values=("a", 1, True))
ORDER = Condition(name="n", sql="a <= b")
PAIR = Unique(name="n", columns=("a", "b"))
ROW_RULES: list[tuple[Expectation, int | None, bool | None, str, str]] = [
    # the rule, rows that break it, holds, found and expected in words
    (VALUES, 0, True, "0 of 9 rows with other values", "'a', 1 or True"),
    (VALUES, 2, False, "2 of 9 rows with other values", "'a', 1 or True"),
    (VALUES, None, None, "a number of rows that is not known", "'a', 1 or True"),
    (ORDER, 0, True, "0 of 9 rows", "none of which a <= b is false"),
    (ORDER, 1, False, "1 of 9 rows", "none of which a <= b is false"),
    (ORDER, None, None, "a number of rows that is not known", "none of which a <= b is false"),
    (PAIR, 0, True, "0 of 9 rows with values of other rows", "each a, b once"),
    (PAIR, 4, False, "4 of 9 rows with values of other rows", "each a, b once"),
    (PAIR, None, None, "a number of rows that is not known", "each a, b once"),
]


@pytest.mark.parametrize(("rule", "broken", "holds", "found", "expected"), ROW_RULES)
def test_rules_for_rows(rule, broken, holds, found, expected):
    violations = {} if broken is None else {"n": Violations(rows=broken, samples=("x",) if broken else ())}
    watched = Watched(values=(ValueCheck("n", "c", pa.array(["a"])),))
    [judged] = judge("s.t", [rule], Facts(Totals(rows=9, violations=violations), watched, AT, lambda _: (), {}))
    assert (judged.holds, judged.found, judged.expected) == (holds, found, expected)
    assert judged.samples == (("x",) if broken else ())


@pytest.mark.parametrize("rule", [VALUES, ORDER, PAIR])
def test_rules_for_rows_hold_of_a_load_without_rows(rule):
    [judged] = judge("s.t", [rule], Facts(Totals(), Watched(), AT, lambda _: (), {}))
    assert judged.holds is True


def test_long_lists_of_values_are_cut():
    rule = AcceptedValues(name="n", column="c", values=tuple(range(12)))
    [judged] = judge("s.t", [rule], Facts(Totals(), Watched(), AT, lambda _: (), {}))
    assert judged.expected == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 or 2 more"


OUTCOMES = [
    # nulls, what is done then, what is accepted, the outcome
    (0, "fail", (), "passed"),
    (1, "fail", (), "failed"),
    (1, "warn", (), "warned"),
    (None, "fail", (), "warned"),
    (None, "fail", ("n",), "warned"),
    (1, "fail", ("n",), "accepted"),
    (1, "fail", ("s.t:n",), "accepted"),
    (1, "fail", ("s.u:n", "m"), "failed"),
    (1, "warn", ("n",), "warned"),
    (0, "fail", ("n",), "passed"),
]


@pytest.mark.parametrize(("nulls", "rule", "accepted", "outcome"), OUTCOMES)
def test_what_follows_from_a_verdict(nulls, rule, accepted, outcome):
    totals = Totals(rows=2, observed={"c": Observed(rows=2, nulls=nulls)})
    facts = Facts(totals, Watched({"c": Watch("c", TEXT)}), AT, lambda _: (), {})
    expectation = NullShare(name="n", on_violation=rule, column="c", at_most=0)
    acceptance = Acceptance(checks=accepted, reason="known", by="ann") if accepted else None
    [found] = judge("s.t", [expectation], facts, acceptance)
    assert found.outcome == outcome
    assert (found.by, found.reason) == (("ann", "known") if outcome == "accepted" else (None, None))
