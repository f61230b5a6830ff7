"""Casts of typed values: each value as it is, or none; tables, and numbers there and back."""

from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewriter.cast.exact_text import DEFAULT, TextForm
from lakewriter.cast.sql_types import parse_type
from lakewriter.cast.typed_cast import cast_values, is_castable

D = Decimal
NS = pa.timestamp("ns")
MS = pa.timestamp("ms", "UTC")
US = pa.timestamp("us", "UTC")
PAIRS = pa.struct([("a", pa.int64()), ("b", pa.string())])
ITEMS = pa.list_(pa.float64())
MAPS = pa.map_(pa.int64(), pa.string())


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=ZoneInfo("UTC"))  # type: ignore[arg-type, misc]


MISFIT = "misfit"
CASTS: list[tuple[pa.DataType, list[Any], str, list[Any]]] = [
    # source's type, values, declared type, outcome
    (pa.int32(), [1, None, -(2**31)], "bigint", [1, None, -(2**31)]),
    (pa.int64(), [2**31 - 1, 2**31, -(2**31) - 1, 2**32 + 1], "int", [2**31 - 1, MISFIT, MISFIT, MISFIT]),
    (pa.uint64(), [2**63 - 1, 2**63, 2**64 - 1], "bigint", [2**63 - 1, MISFIT, MISFIT]),
    (pa.int64(), [12, 123], "decimal(3,1)", [D("12.0"), MISFIT]),
    (pa.int64(), [2**53, 2**53 + 1, 2**60, -(2**63), 2**63 - 1], "double",
     [2.0**53, MISFIT, 2.0**60, -(2.0**63), MISFIT]),
    (pa.int32(), [2**24, 2**24 + 1], "float", [2.0**24, MISFIT]),
    (pa.int64(), [0, 1, 2, -1], "boolean", [False, True, MISFIT, MISFIT]),
    (pa.bool_(), [True, False], "int", [1, 0]),
    (pa.bool_(), [True], "decimal(1,0)", [D(1)]), (pa.bool_(), [True], "double", [1.0]),
    (pa.float16(), [1.5, nan], "float", [1.5, nan]), (pa.float16(), [2.0, 0.5], "int", [2, MISFIT]),
    (pa.float32(), [0.1, nan, -inf], "double", [0.10000000149011612, nan, -inf]),
    (pa.float64(), [0.5, 0.1, 1e300, nan, inf, -0.0], "float", [0.5, MISFIT, MISFIT, nan, inf, -0.0]),
    # Their shortest texts are 73365550 and 1152921504606847000.
    (pa.float32(), [73365552.0], "bigint", [73365552]), (pa.float64(), [2.0**60], "decimal(19,0)", [D(2**60)]),
    (pa.decimal128(19, 0), [D(2**60), D(2**60 + 24)], "double", [2.0**60, MISFIT]),
    (pa.float64(), [1.0, 1.5, 1e10, nan, inf, 1e19], "bigint", [1, MISFIT, 10**10, MISFIT, MISFIT, MISFIT]),
    (pa.float64(), [1.1, 1.239, 1e-7, 123456789.0], "decimal(10,2)", [D("1.10"), MISFIT, MISFIT, MISFIT]),
    (pa.decimal128(10, 3), [D("1.230"), D("1.239")], "decimal(10,2)", [D("1.23"), MISFIT]),
    (pa.decimal128(10, 3), [D("1.000"), D("1.500")], "int", [1, MISFIT]),
    (pa.decimal128(38, 0), [D(10**37)], "decimal(38,1)", [MISFIT]),
    (pa.decimal128(38, 18), [D("0.1"), D("0.123456789012345678"), D("1e-18")], "double", [0.1, MISFIT, 1e-18]),
    (pa.date32(), [date(2024, 2, 29), date(1, 1, 1)], "timestamp", [at(2024, 2, 29), at(1, 1, 1)]),
    (US, [at(2024, 1, 5), at(2024, 1, 5, 12), at(1969, 12, 31), at(1969, 12, 31, 23)], "date",
     [date(2024, 1, 5), MISFIT, date(1969, 12, 31), MISFIT]),
    (US, [at(2024, 1, 5, 12)], "timestamp_ntz", [datetime(2024, 1, 5, 12)]),
    (pa.timestamp("us"), [datetime(2024, 1, 5, 12)], "timestamp", [at(2024, 1, 5, 12)]),
    (MS, [at(2024, 1, 5, 12)], "timestamp", [at(2024, 1, 5, 12)]),
    (pa.date64(), [date(2024, 1, 5)], "date", [date(2024, 1, 5)]),
    (pa.string(), ["1.239", "1.23"], "decimal(10,2)", [MISFIT, D("1.23")]),
    (pa.dictionary(pa.int8(), pa.string()), ["1", "x", None, "1"], "int", [1, MISFIT, None, 1]),
    (pa.binary(), [b"\xc3\xa9", b"\xff", None], "string", ["é", MISFIT, None]),
    (pa.binary(2), [b"ab"], "binary", [b"ab"]), (pa.null(), [None, None], "date", [None, None]),
    (pa.bool_(), [True], "string", ["true"]), (pa.int8(), [-1], "string", ["-1"]),
    (pa.decimal128(10, 8), [D("0.00000001"), D("1.50000000")], "string", ["0.00000001", "1.50000000"]),
    (pa.float64(), [1.0, 0.1, 1e10, -1.5e-5, 1e7, 123456.0, 0.001, nan, -inf, 0.0, 1.25e300], "string",
     ["1.0", "0.1", "1.0E10", "-1.5E-5", "1.0E7", "123456.0", "0.001", "NaN", "-Infinity", "0.0", "1.25E300"]),
    (US, [at(2024, 1, 5, 12), at(2024, 1, 5, 12, 0, 0, 120000), at(2024, 1, 5)], "string",
     ["2024-01-05 12:00:00", "2024-01-05 12:00:00.12", "2024-01-05 00:00:00"]),
    (pa.date32(), [date(2024, 1, 5)], "string", ["2024-01-05"]),
    (ITEMS, [[1.0, 2.0], [], None, [1.5], [None]], "array<int>", [[1, 2], [], None, MISFIT, [None]]),
    (PAIRS, [{"a": 1, "b": "2"}, None, {"a": 2**40, "b": "2"}, {"a": None, "b": "x"}], "struct<b:int,a:int,c:date>",
     [{"b": 2, "a": 1, "c": None}, None, MISFIT, MISFIT]),
    (MAPS, [[(1, "2024-01-05")], [], None, [(2**40, "2024-01-05")], [(1, "x")]], "map<int,date>",
     [[(1, date(2024, 1, 5))], [], None, MISFIT, MISFIT]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "values", "kind", "outcome"), CASTS)
def test_values_as_they_are_or_none(source: pa.DataType, values: list[Any], kind: str, outcome: list[Any]) -> None:
    array, target = pa.array([values[0], *values], source)[1:], parse_type(kind)
    assert is_castable(source, target)
    cast = cast_values(array, target)
    cast.values.validate(full=True)
    assert cast.values.type == target
    assert repr(cast.values.to_pylist()) == repr([None if value is MISFIT else value for value in outcome])
    misfits = [value is MISFIT for value in outcome]
    assert (cast.misfits and cast.misfits.to_pylist()) == (misfits if any(misfits) else None)


NANOSECONDS = [1_000, 1_001, None, -1, -1_000, 2**63 - 1, -(2**63)]


def test_nanoseconds_that_are_no_microseconds_are_misfits() -> None:
    cast = cast_values(pa.array(NANOSECONDS, pa.int64()).cast(NS), parse_type("timestamp_ntz"))
    assert cast.values.cast(pa.int64()).to_pylist() == [1, None, None, None, -1, None, None]
    assert cast.misfits is not None
    assert cast.misfits.to_pylist() == [False, True, False, True, False, True, True]


def test_nanoseconds_that_are_cut_are_counted() -> None:
    cast = cast_values(
        pa.array(NANOSECONDS, pa.int64()).cast(NS), parse_type("timestamp_ntz"), TextForm(truncates_nanoseconds=True)
    )
    assert cast.values.cast(pa.int64()).to_pylist() == [1, 1, None, -1, -1, 9223372036854775, -9223372036854776]
    assert (cast.misfits, cast.cut) == (None, 4)


def test_years_beyond_those_of_dates() -> None:
    days = pa.array([-719163, -719162, 2932896, 2932897, 2**31 - 1], pa.int32()).cast(pa.date32())
    assert cast_values(days, parse_type("timestamp")).values.is_valid().to_pylist() == [False, True, True, False, False]
    seconds = pa.array([253402300799, 253402300800, -(2**63)]).cast(pa.timestamp("s"))
    assert cast_values(seconds, parse_type("timestamp_ntz")).values.is_valid().to_pylist() == [True, False, False]


@pytest.mark.parametrize(("source", "kind", "how"), [
    (pa.int64(), "timestamp", DEFAULT), (pa.int64(), "date", TextForm(unit="epoch_s")), (US, "bigint", DEFAULT),
    (pa.int64(), "binary", DEFAULT), (pa.binary(), "int", DEFAULT), (ITEMS, "int", DEFAULT), (ITEMS, "string", DEFAULT),
    (PAIRS, "struct<a:bigint>", DEFAULT), (PAIRS, "array<int>", DEFAULT), (pa.duration("s"), "bigint", DEFAULT),
    (pa.time64("us"), "timestamp", DEFAULT), (MAPS, "map<date,string>", DEFAULT), (pa.date32(), "int", DEFAULT),
])  # fmt: skip
def test_types_that_are_not_cast(source: pa.DataType, kind: str, how: TextForm) -> None:
    assert not is_castable(source, parse_type(kind), how)


@pytest.mark.parametrize(("source", "value", "unit"), [
    (pa.int64(), 1704448800000, "epoch_ms"), (pa.decimal128(20, 3), D("1704448800.000"), "epoch_s"),
    (pa.float64(), 1704448800.0, "epoch_s"), (pa.string(), "1704448800", "epoch_s"),
    (pa.int64(), 1704448800000000000, "epoch_ns"),
])  # fmt: skip
def test_numbers_of_a_unit(source: pa.DataType, value: Any, unit: Any) -> None:
    assert cast_values(pa.array([value], source), parse_type("timestamp"), TextForm(unit=unit)).values.to_pylist() == [
        at(2024, 1, 5, 10)
    ]


numbers = {
    "bigint": st.integers(-(2**63), 2**63 - 1), "int": st.integers(-(2**31), 2**31 - 1), "double": st.floats(),
    "float": st.floats(width=32), "decimal(38,10)": st.decimals(-(10**27), 10**27, allow_nan=False, places=10),
    "decimal(7,2)": st.decimals(-99999, 99999, places=2), "boolean": st.booleans(),
}  # fmt: skip


@given(st.data(), st.sampled_from(sorted(numbers)), st.sampled_from(sorted(numbers)))
def test_what_is_taken_comes_back(data: st.DataObject, source: str, kind: str) -> None:
    values = pa.array(data.draw(st.lists(numbers[source], max_size=5)), parse_type(source))
    there = cast_values(values, parse_type(kind))
    back = cast_values(there.values, parse_type(source))
    assert back.misfits is None
    for value, other in zip(values.to_pylist(), back.values.to_pylist(), strict=True):
        assert other is None or other == value or (value != value and other != other)
    if source == kind or (source, kind) in {("int", "bigint"), ("float", "double"), ("int", "double")}:
        assert there.misfits is None
