"""The strict cast of texts: tables of text and outcome, and random texts against Python's decimal and datetime."""

import random
import re
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from math import copysign, inf, isfinite, isnan
from typing import Any
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.types as pt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakewriter.cast import strict_cast
from lakewriter.cast.exact_text import DEFAULT, TextForm, convert_text
from lakewriter.cast.spelling_table import MisfitError
from lakewriter.cast.sql_types import parse_type
from lakewriter.cast.strict_cast import cast_text, explain_misfit
from tests.cast.numbers_by_length import DECIMALS, is_plain, list_numbers, write_text
from tests.support.sample import fifth_of, values_alone

NO_NUMBER = "it is not a number such as -1234.5 or 1.5e3"
NO_INTEGER = "it is not a whole number of digits 0 to 9"
NO_BOOLEAN = "it is not one of true, false, t, f, yes, no, y, n, 1, 0"
NO_DATE = "it is not a date as YYYY-MM-DD; another spelling can be named by format:"
NO_TIME = "it is not written as YYYY-MM-DD hh:mm:ss"
NO_DAY = "there is no such day in the calendar"
NO_TEXT_TIME = "it is a number; a unit can be named by from:, such as from: epoch_ms"
FINER = "it is finer than microseconds; nanoseconds: truncate would cut it"
OFFSET = "it has an offset, and timestamp_ntz has none; declare timestamp"
YEARS = "it is outside the years 0001 to 9999 in UTC"
BLANKS = "there are blanks around it"
INT = "it is outside the range of int, -2147483648 to 2147483647"
BIGINT = "it is outside the range of bigint, -9223372036854775808 to 9223372036854775807"


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


VALUES: list[tuple[str, str, Any]] = [
    # type, text, value
    ("boolean", "true", True), ("boolean", "TRUE", True), ("boolean", "t", True), ("boolean", "Yes", True),
    ("boolean", "y", True), ("boolean", "1", True), ("boolean", "False", False), ("boolean", "F", False),
    ("boolean", "no", False), ("boolean", "N", False), ("boolean", "0", False),
    ("tinyint", "-128", -128), ("smallint", "32767", 32767), ("int", "+7", 7), ("int", "-0", 0), ("int", "007", 7),
    ("int", "-2147483648", -(2**31)), ("bigint", "9223372036854775807", 2**63 - 1),
    ("bigint", "00000000000000000000000000000000000000000000000001", 1),
    ("decimal(10,2)", "1.23", Decimal("1.23")), ("decimal(10,2)", "1.230", Decimal("1.23")),
    ("decimal(10,2)", "1.2300000000000000000000000000000000000000000000000", Decimal("1.23")),
    ("decimal(10,2)", "+.5", Decimal("0.50")), ("decimal(10,2)", "5.", Decimal("5.00")),
    ("decimal(10,2)", "123e-2", Decimal("1.23")), ("decimal(10,2)", "1.2E3", Decimal("1200.00")),
    ("decimal(10,2)", "-0", Decimal("0.00")), ("decimal(10,2)", "0e999999999999", Decimal("0.00")),
    ("decimal(10,2)", "99999999.99", Decimal("99999999.99")), ("decimal(2,2)", ".25", Decimal("0.25")),
    ("decimal(38,38)", "0.12345678901234567890123456789012345678", Decimal("0.12345678901234567890123456789012345678")),
    ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
    ("double", "0.1", 0.1), ("double", "1e5", 1e5), ("double", ".5", 0.5), ("double", "5.", 5.0), ("double", "+1", 1.0),
    # the nearest: 2**53 + 1 lies between two doubles
    ("double", "9007199254740993", 9007199254740992.0), ("double", "4.9e-324", 5e-324), ("double", "1e308", 1e308),
    ("double", "Infinity", inf), ("double", "-Infinity", -inf), ("double", "0e-999", 0.0), ("double", "-0.0", -0.0),
    ("float", "16777217", 16777216.0), ("float", "0.1", 0.10000000149011612),
    # through a double it would be 1.0000001788139343, by two roundings
    ("float", "1.00000017881393432617187499", 1.00000011920928955078125),
    ("date", "2024-02-29", date(2024, 2, 29)), ("date", "0001-01-01", date(1, 1, 1)),
    ("date", "9999-12-31", date(9999, 12, 31)),
    ("timestamp", "2024-01-05", at(2024, 1, 5)), ("timestamp", "2024-01-05 12:30", at(2024, 1, 5, 12, 30)),
    ("timestamp", "2024-01-05T12:30:15.5", at(2024, 1, 5, 12, 30, 15, 500000)),
    ("timestamp", "2024-01-05 12:30:15.123456", at(2024, 1, 5, 12, 30, 15, 123456)),
    ("timestamp", "2024-01-05 12:30:15.123456000", at(2024, 1, 5, 12, 30, 15, 123456)),
    ("timestamp", "2024-01-05T12:30Z", at(2024, 1, 5, 12, 30)),
    ("timestamp", "2024-01-05T12:30+01:00", at(2024, 1, 5, 11, 30)),
    ("timestamp", "2024-01-05T12:30-0530", at(2024, 1, 5, 18, 0)),
    ("timestamp", "2024-01-05 12:30:00+00", at(2024, 1, 5, 12, 30)),
    ("timestamp", "9999-12-31 23:59:59.999999", at(9999, 12, 31, 23, 59, 59, 999999)),
    ("timestamp_ntz", "2024-03-31 02:30", datetime(2024, 3, 31, 2, 30)),
    ("timestamp_ntz", "2024-01-05", datetime(2024, 1, 5)),
    ("array<double>", "[1, null, 1e5]", [1.0, None, 1e5]),
    ("array<string>", '["a", 1.10, true]', ["a", "1.10", "true"]),
    ("struct<a:date,b:array<int>>", '{"b": [1], "a": "2024-01-05"}', {"a": date(2024, 1, 5), "b": [1]}),
    ("map<string,decimal(3,1)>", '{"x": 1.50}', [("x", Decimal("1.5"))]), ("struct<a:int>", "{}", {"a": None}),
    ("string", " as it is ", " as it is "), ("varchar(3)", "longer", "longer"), ("binary", "é", b"\xc3\xa9"),
]  # fmt: skip

MISFITS: list[tuple[str, str, str]] = [
    # type, text, reason
    ("boolean", "on", NO_BOOLEAN), ("boolean", "", NO_BOOLEAN), ("boolean", "2", NO_BOOLEAN),
    ("boolean", " true", BLANKS), ("boolean", "ﬀ", NO_BOOLEAN),
    ("int", "1.0", NO_INTEGER), ("int", "1e3", NO_INTEGER), ("int", "0x1F", NO_INTEGER), ("int", "1_000", NO_INTEGER),
    ("int", "1,000", NO_INTEGER), ("int", "", NO_INTEGER), ("int", "-", NO_INTEGER), ("int", "--1", NO_INTEGER),
    ("int", "\u0663", NO_INTEGER), ("int", "\uff11", NO_INTEGER), ("int", "1\n", BLANKS), ("int", "\u00a01", BLANKS),
    ("int", "2147483648", INT), ("int", "-2147483649", INT), ("bigint", "9223372036854775808", BIGINT),
    ("bigint", "9" * 5000, BIGINT), ("bigint", "0xFFFFFFFFFFFFFFFF", NO_INTEGER),
    ("tinyint", "128", "it is outside the range of tinyint, -128 to 127"),
    ("decimal(10,2)", "1.239", "it has 3 decimal places, and decimal(10,2) has 2"),
    ("decimal(10,2)", "123e-3", "it has 3 decimal places, and decimal(10,2) has 2"),
    ("decimal(10,2)", "1e-400", "it has 400 decimal places, and decimal(10,2) has 2"),
    ("decimal(10,2)", "123456789", "it has 9 digits before the point, and decimal(10,2) has 8"),
    ("decimal(10,2)", "1e400", "it has 401 digits before the point, and decimal(10,2) has 8"),
    # Arrow makes 551517109574152.15223034546004397391872 of it
    ("decimal(38,23)", "300000000000000000", "it has 18 digits before the point, and decimal(38,23) has 15"),
    ("decimal(10,2)", "NaN", NO_NUMBER), ("decimal(10,2)", "1d", NO_NUMBER), ("decimal(10,2)", "1,5", NO_NUMBER),
    ("decimal(10,2)", "", NO_NUMBER), ("decimal(10,2)", ".", NO_NUMBER), ("decimal(10,2)", "1e", NO_NUMBER),
    ("decimal(10,2)", "१.५", NO_NUMBER), ("decimal(10,2)", "$1", NO_NUMBER), ("decimal(10,2)", "1 ", BLANKS),
    ("double", "1e400", "it is beyond the range of double"), ("double", "-1e400", "it is beyond the range of double"),
    ("double", "1.7976931348623159e308", "it is beyond the range of double"),
    ("double", "1e-400", "it is closer to zero than any double"),
    ("double", "2e-324", "it is closer to zero than any double"),
    ("float", "1e39", "it is beyond the range of float"), ("float", "1e-46", "it is closer to zero than any float"),
    ("double", "1d", NO_NUMBER), ("double", "1f", NO_NUMBER),
    ("double", "0x1p3", NO_NUMBER), ("double", "1D", NO_NUMBER),
    ("double", "nan", NO_NUMBER), ("double", "inf", NO_NUMBER), ("double", "+Infinity", NO_NUMBER),
    ("double", "nan(1)", NO_NUMBER), ("double", "1_0.5", NO_NUMBER),
    ("double", "\u0663", NO_NUMBER), ("double", "", NO_NUMBER),
    ("double", " ", "it is blank"),
    ("date", "2024-01-05 12:30", NO_DATE), ("date", "2024-01-05T", NO_DATE), ("date", "2024-01-05x", NO_DATE),
    ("date", "2024-1-5", NO_DATE), ("date", "20240105", NO_DATE),
    ("date", "24-01-05", NO_DATE), ("date", "2024", NO_DATE),
    ("date", "05.01.2024", NO_DATE), ("date", "10000-01-01", NO_DATE),
    ("date", "\u0662\u0660\u0662\u0664-01-05", NO_DATE),
    ("date", "2023-02-29", NO_DAY), ("date", "2024-02-30", NO_DAY), ("date", "2024-13-01", NO_DAY),
    ("date", "0000-01-01", "its years are 0000, expected 0001 to 9999"), ("date", "1900-02-29", NO_DAY),
    ("timestamp", "12:30", NO_TIME), ("timestamp", "2024-01-05 12", NO_TIME), ("timestamp", "2024-01-05 12Z", NO_TIME),
    ("timestamp", "2024-01-05Z", NO_TIME), ("timestamp", "2024-01-05 12:30:00.", NO_TIME),
    ("timestamp", "2024-01-05 12:30:00 UTC", NO_TIME), ("timestamp", "2024-01-05 12:30:00 +01:00", NO_TIME),
    ("timestamp", "2024-01-05 12:30:00z", NO_TIME), ("timestamp", "2024-01-05t12:30:00", NO_TIME),
    ("timestamp", "2024-01-05 123000", NO_TIME), ("timestamp", "2024-01", NO_TIME), ("timestamp", "", NO_TIME),
    ("timestamp", "2024-01-05 12:30:00,5", NO_TIME), ("timestamp", "-2024-01-05 12:30", NO_TIME),
    ("timestamp", "1704448800000", NO_TEXT_TIME), ("timestamp", "2024", NO_TEXT_TIME),
    ("timestamp", "1704448800.5", NO_TEXT_TIME), ("timestamp", "20240105", NO_TEXT_TIME),
    ("timestamp", "2024-01-05 24:00:00", "its hours are 24, expected 00 to 23"),
    ("timestamp", "2016-12-31 23:59:60", "its seconds are 60, expected 00 to 59"),
    ("timestamp", "2024-01-05 12:60", "its minutes are 60, expected 00 to 59"),
    ("timestamp", "2024-01-05 12:30:15.1234567", FINER), ("timestamp", "2024-01-05 12:30:15.000000001", FINER),
    ("timestamp", "2024-01-05 12:30+24:00", "there is no offset +24:00"),
    ("timestamp", "2024-01-05 12:30+01:60", "there is no offset +01:60"),
    ("timestamp", "0001-01-01 00:00+05:00", YEARS), ("timestamp", "9999-12-31 23:59-01:00", YEARS),
    ("timestamp", "2024-02-30 12:30", NO_DAY), ("timestamp", "2024-01-05 12:30 ", BLANKS),
    ("timestamp", "2024-01-05 12:30[Europe/Berlin]", NO_TIME),
    ("timestamp_ntz", "2024-01-05 12:30Z", OFFSET), ("timestamp_ntz", "2024-01-05 12:30+00:00", OFFSET),
    ("timestamp_ntz", "2024-01-05 12:30-05", OFFSET),
    ("array<int>", "[1", "it is not JSON: it breaks off at character 3"),
    ("array<int>", "[1.5]", NO_INTEGER), ("array<int>", "{}", "JSON's object does not convert to array<int>"),
    ("array<int>", '[[1]]', "JSON's array does not convert to int"),
    ("array<int>", "[NaN]", "it is not JSON: NaN is no number of JSON"),
    ("struct<a:int>", '{"a":1,"A":2}', "the struct has no field 'A'"),
    ("struct<a:int>", '{"a":1,"a":1}', 'it is not JSON: the key "a" is twice in one object'),
    ("array<int>", "[" * 100000, "it is not JSON: it nests more than 994 levels deep"),
    ("array<int>", "[true]", "JSON's boolean does not convert to int"),
]  # fmt: skip

FORMS: list[tuple[str, TextForm, str, Any]] = [
    # type, form, text, value or reason
    ("timestamp", TextForm(unit="epoch_ms"), "1704448800123", at(2024, 1, 5, 10, 0, 0, 123000)),
    ("timestamp", TextForm(unit="epoch_s"), "1704448800", at(2024, 1, 5, 10)),
    ("timestamp", TextForm(unit="epoch_s"), "-1", at(1969, 12, 31, 23, 59, 59)),
    ("timestamp", TextForm(unit="epoch_s"), "1704448800.000001", at(2024, 1, 5, 10, 0, 0, 1)),
    ("timestamp", TextForm(unit="epoch_s"), "1.7044488e9", at(2024, 1, 5, 10)),
    ("timestamp", TextForm(unit="epoch_us"), "1704448800000001", at(2024, 1, 5, 10, 0, 0, 1)),
    ("timestamp_ntz", TextForm(unit="epoch_ns"), "1704448800000001000", datetime(2024, 1, 5, 10, 0, 0, 1)),
    ("timestamp", TextForm(unit="epoch_ns"), "1704448800000001001", FINER),
    ("timestamp", TextForm(unit="epoch_ns", truncates_nanoseconds=True), "-1", at(1969, 12, 31, 23, 59, 59, 999999)),
    ("timestamp", TextForm(unit="epoch_us"), "1.5", FINER),
    ("timestamp", TextForm(unit="epoch_ms"), "2024-01-05", NO_NUMBER),
    ("timestamp", TextForm(unit="epoch_s"), "1704448800000", "it is outside the years 0001 to 9999 as epoch_s"),
    ("timestamp", TextForm(unit="epoch_s"), "1e400", "it is outside the years 0001 to 9999 as epoch_s"),
    ("timestamp", TextForm(unit="epoch_s"), "99999999999999999999", "it is outside the years 0001 to 9999 as epoch_s"),
    ("date", TextForm(unit="epoch_days"), "17000", date(2016, 7, 18)),
    ("date", TextForm(unit="epoch_days"), "-1", date(1969, 12, 31)),
    ("date", TextForm(unit="epoch_days"), "9999999", "it is outside the years 0001 to 9999 as epoch_days"),
    # The bytes of https://debezium.io/documentation/faq/#how_to_retrieve_decimal_field_from_binary_representation
    ("decimal(10,2)", TextForm(unit="base64"), "BNI=", Decimal("12.34")),
    ("decimal(10,2)", TextForm(unit="base64"), "/w==", Decimal("-0.01")),
    ("decimal(3,2)", TextForm(unit="base64"), "BNI=", "it is 1234, which has more than the 3 digits of decimal(3,2)"),
    ("decimal(10,2)", TextForm(unit="base64"), "12.34", "it is not base64"),
    ("decimal(10,2)", TextForm(unit="base64"), "", "it has no bytes"),
    ("binary", TextForm(unit="base64"), "BNI=", b"\x04\xd2"),
    ("binary", TextForm(unit="base64"), "BNI", "it is not base64"),
    ("timestamp", TextForm(truncates_nanoseconds=True), "2024-01-05 10:00:00.1234567899Z",
     at(2024, 1, 5, 10, 0, 0, 123456)),
    ("timestamp", TextForm(zone="Europe/Berlin"), "2024-07-01 12:00", at(2024, 7, 1, 10)),
    ("timestamp", TextForm(zone="Europe/Berlin"), "2024-07-01 12:00Z", at(2024, 7, 1, 12)),
    ("timestamp", TextForm(zone="Europe/Berlin"), "2024-03-31 02:30",
     "this local time does not exist in Europe/Berlin: its clocks were put forward"),
    ("timestamp", TextForm(zone="Europe/Berlin"), "2024-10-27 02:30",
     "this local time comes twice in Europe/Berlin: an offset would say which"),
    ("timestamp", TextForm(zone="Europe/Berlin"), "2024-10-27 02:30+02:00", at(2024, 10, 27, 0, 30)),
    ("date", TextForm(date_format="dd.MM.yyyy"), "05.01.2024", date(2024, 1, 5)),
    ("date", TextForm(date_format="dd.MM.yyyy"), "2024-01-05", "it is not of the pattern dd.MM.yyyy"),
    ("date", TextForm(date_format="yyyy-MM-dd HH:mm:ss"), "2024-01-05 00:00:00", date(2024, 1, 5)),
    ("date", TextForm(date_format="yyyy-MM-dd HH:mm:ss"), "2024-01-05 00:00:01",
     "it has a time of day, which a date would lose"),
    ("timestamp", TextForm(timestamp_format="d/M/yyyy h:mm a"), "5/1/2024 12:30 AM", at(2024, 1, 5, 0, 30)),
    ("timestamp_ntz", TextForm(timestamp_format="yyyy-MM-dd HH:mmXXX"), "2024-01-05 12:30Z", OFFSET),
]  # fmt: skip


def cast_one(text: str, kind: str, how: TextForm = DEFAULT) -> Any:
    """Return the value, or the reason; by itself and among others, one truth."""
    target = parse_type(kind)
    cast = cast_text(pa.array([None, text, text]), target, how)
    assert cast.values.type == target
    assert (cast.misfits is None) == (explain_misfit(text, target, how) == "")
    value = cast.values.to_pylist()
    assert value[0] is None
    assert same(value[1], value[2])
    if cast.misfits is None:
        return value[1]
    assert (value[1], cast.misfits.to_pylist()) == (None, [False, True, True])
    return explain_misfit(text, target, how)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (isnan(one) and isnan(other)) or (one == other and copysign(1, one) == copysign(1, other))
    return bool(type(one) is type(other) and one == other)


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_values(kind: str, text: str, value: Any) -> None:
    assert same(cast_one(text, kind), value)


def test_nan_by_its_name() -> None:
    assert isnan(cast_one("NaN", "double"))


@pytest.mark.parametrize(("kind", "text", "reason"), MISFITS)
def test_misfits(kind: str, text: str, reason: str) -> None:
    assert cast_one(text, kind) == reason


@pytest.mark.parametrize(("kind", "form", "text", "outcome"), FORMS)
def test_forms(kind: str, form: TextForm, text: str, outcome: Any) -> None:
    assert same(cast_one(text, kind, form), outcome)


def test_cut_nanoseconds_are_counted() -> None:
    texts = pa.array(["2024-01-05 10:00:00.0000001", None, "2024-01-05 10:00", "2024-01-05 10:00:00.0000001"])
    cast = cast_text(texts, parse_type("timestamp"), TextForm(truncates_nanoseconds=True))
    assert (cast.cut, cast.misfits) == (2, None)
    assert cast.values.to_pylist() == [at(2024, 1, 5, 10), None, at(2024, 1, 5, 10), at(2024, 1, 5, 10)]


@pytest.mark.parametrize("layout", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("kind", ["bigint", "double", "decimal(9,1)", "date", "timestamp", "boolean", "string"])
def test_layouts_of_text(layout: pa.DataType, kind: str) -> None:
    texts = {"date": "2024-01-05", "timestamp": "2024-01-05"}
    given = pa.array([texts.get(kind, "1"), None, "?"] * 100, layout)[1:]
    cast = cast_text(given, parse_type(kind))
    assert cast.values.null_count == (100 if kind == "string" else 200)
    misfits = cast.misfits and cast.misfits.to_pylist()
    assert misfits == (None if kind == "string" else [False, True, False] * 99 + [False, True])


def test_one_bad_value_among_many_and_offsets_beside_none() -> None:
    texts = ["2024-01-05 10:00", "2024-01-05T10:00Z", "2024-02-30 10:00", "2024-01-05 11:00:00.0000000+01:00"] * 100
    cast = cast_text(pa.array(texts), parse_type("timestamp"))
    assert cast.values.to_pylist() == [at(2024, 1, 5, 10), at(2024, 1, 5, 10), None, at(2024, 1, 5, 10)] * 100
    assert cast.misfits is not None
    assert cast.misfits.to_pylist() == [False, False, True, False] * 100


def test_nothing_to_cast() -> None:
    for kind in ("int", "boolean", "date", "timestamp", "decimal(3,1)", "float", "string", "binary"):
        for nulls in ([], [None], [None] * 100):
            cast = cast_text(pa.array(nulls, pa.string()), parse_type(kind))
            assert (cast.values, cast.misfits, cast.cut) == (pa.nulls(len(nulls), parse_type(kind)), None, 0)


# random texts, near to what is taken

signs = st.sampled_from(["", "", "", "+", "-", "--"])
digits = st.text("0123456789", max_size=42) | st.integers(0, 45).map(lambda count: "0" * count)
exponents = st.just("") | st.builds("{}{}{}".format, st.sampled_from("eE"), signs, st.integers(0, 400))
numbers = st.builds("{}{}{}{}{}".format, signs, digits, st.sampled_from(["", ".", ".."]), digits, exponents)
noise = st.text("0123456789+-.eExXdfDFinaNtyT:Z /,_\u0661\uff11\n", max_size=12)
days = st.builds("{:04}-{:02}-{:02}".format, st.integers(0, 10001), st.integers(0, 14), st.integers(0, 32))
clocks = st.builds("{:02}:{:02}".format, st.integers(0, 25), st.integers(0, 61))
seconds = st.just("") | st.builds(
    ":{:02}{}".format, st.integers(0, 61), st.just("") | st.text("0123456789", max_size=10).map(".{}".format)
)
offsets = st.sampled_from(["", "", "Z", "z", "UTC", "+01", "-0530", "+05:30", "-23:59", "+24:00", "+1", " Z"])
times = st.builds(
    "{}{}{}{}{}".format, days, st.sampled_from(["T", " ", "  ", ""]), clocks | st.just(""), seconds, offsets
)
PATTERNS = ["dd/M/yyyy HH:mm:ss", "yyyyMMddHHmm", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX", "M/d/y H:m", "HH:mm:ssX yyyy.MM.dd",
            "dd.MM.yyyy", "yyyy/d/M", "(yyyy) MM+dd", "yyyy-MM-dd HH:mm:ss[.SSS][XXX]", "d MMM yyyy HH"]  # fmt: skip


@given(st.data(), st.sampled_from(PATTERNS), st.sampled_from(["date", "timestamp", "timestamp_ntz"]))
def test_random_texts_of_patterns(data: st.DataObject, pattern: str, kind: str) -> None:
    """Whole columns are rewritten as ISO texts where they can; each text by itself is read by the pattern."""
    numbers = {
        "yyyy": 9999,
        "y": 9999,
        "MMM": 0,
        "MM": 13,
        "M": 13,
        "dd": 32,
        "d": 32,
        "HH": 24,
        "H": 24,
        "mm": 60,
        "m": 60,
    }
    field = r"yyyy|y|MMM|MM|M|dd|d|HH|H|mm|m|ss|SSS|XXX|X"

    def write(match: re.Match[str]) -> str:
        if match[0] in ("X", "XXX", "MMM"):
            return data.draw(st.sampled_from(["Z", "+01:00", "-05", "+0530", "Jan", "feb", "Foo"]))
        number = data.draw(st.integers(0, numbers.get(match[0], 61)))
        return str(number).zfill(len(match[0]) - data.draw(st.sampled_from([0, 0, 0, 0, 1])))

    plain = pattern.replace("'T'", "T").replace("[", "").replace("]", "")
    given = [re.sub(field, write, plain) for _ in range(4)]
    target, how = parse_type(kind), TextForm(pattern, pattern)
    cast = cast_text(pa.array(given), target, how)
    for text, value in zip(given, cast.values.to_pylist(), strict=True):
        try:
            assert convert_text(text, target, how) == (
                value.replace(tzinfo=None) if kind == "timestamp" else value,
                False,
            )
        except MisfitError:
            assert value is None


texts = numbers | noise | days | times | st.integers(-(10**20), 10**20).map(str) | st.floats().map(repr)
KINDS = ["tinyint", "int", "bigint", "float", "double", "decimal(38,0)", "decimal(38,23)", "decimal(5,5)",
         "decimal(12,3)", "decimal(1,0)", "date", "timestamp", "timestamp_ntz"]  # fmt: skip
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
TIME = re.compile(r"(\d{4}-\d\d-\d\d)([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)?)?", re.ASCII)


def expect_value(text: str, kind: pa.DataType) -> Any:
    """Return what Python's own types make of a text; None where it is no value."""
    try:
        if pt.is_integer(kind):
            whole = int(text) if re.fullmatch("[+-]?[0-9]+", text) else None
            return (
                whole
                if whole is not None and -(2 ** (kind.bit_width - 1)) <= whole < 2 ** (kind.bit_width - 1)
                else None
            )
        if pt.is_date(kind):
            return date.fromisoformat(text) if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else None
        if pt.is_timestamp(kind):
            return expect_time(text, kind)
        if pt.is_floating(kind) and text in ("NaN", "Infinity", "-Infinity"):
            return float(text)
        if not NUMBER.fullmatch(text):
            return None
        exact = Fraction(text)
        if pt.is_decimal(kind):
            scaled = exact * 10**kind.scale
            return (
                Decimal(f"{int(scaled)}e{-kind.scale}")
                if scaled.denominator == 1 and abs(scaled) < 10**kind.precision
                else None
            )
        return expect_float(text, exact, kind.bit_width)
    except (ValueError, OverflowError):
        return None


def expect_time(text: str, kind: pa.DataType) -> datetime | None:
    match = TIME.fullmatch(text)
    if match is None or (match[4] or "")[7:].strip("0") or (kind.tz is None and match[5]):
        return None
    cut = text.replace(match[4], match[4][:7]) if match[4] else text
    if (match[5] or "").endswith("24:00"):
        return None
    value = datetime.fromisoformat(cut)
    return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC) if kind.tz else value


def expect_float(text: str, exact: Fraction, width: int) -> float | None:
    value = float(text)
    if width == 32 and abs(exact) >= Fraction(2**128 + 2**128 - 2**104) / 2:
        return None  # nearer to 2**128 than to the greatest float
    if width == 32 and isfinite(value):
        [bits] = struct.unpack("i", struct.pack("f", min(abs(value), 3.4028234663852886e38)))
        near = [struct.unpack("f", struct.pack("i", b))[0] for b in (bits - 1, bits, bits + 1) if 0 <= b < 0x7F800000]
        best = min(near, key=lambda f: (abs(Fraction(f) - abs(exact)), struct.unpack("i", struct.pack("f", f))[0] % 2))
        value = copysign(best, value)
    return value if isfinite(value) and (value or not exact) else None


@settings(max_examples=fifth_of(1500), deadline=None)
@given(st.lists(texts, min_size=1, max_size=8), st.sampled_from(KINDS))
@example(["0.1234567890123456789012345678901234567800000"], "decimal(38,23)")
def test_random_texts(given: list[str], kind: str) -> None:
    target = parse_type(kind)
    expected = [expect_value(text, target) for text in given]
    cast = cast_text(pa.array(given), target)
    assert all(map(same, cast.values.to_pylist(), expected)), (given, cast.values.to_pylist(), expected)
    assert cast.misfits is None or cast.misfits.to_pylist() == [value is None for value in expected]
    # Each by itself is what it is among others.
    assert [explain_misfit(text, target) == "" for text in given] == [value is not None for value in expected]


TEXTS_ALONE = values_alone()


def cast_alone(text: str, target: pa.DataType) -> tuple[Any, bool]:
    """The value of a text in an array of its own, and whether Arrow has made it, not the conversion of one text."""
    with pytest.MonkeyPatch.context() as patch:
        exact = Mock(wraps=strict_cast._cast_exactly)
        patch.setattr(strict_cast, "_cast_exactly", exact)
        cast = cast_text(pa.array([text]), target)
    return cast.values.to_pylist()[0], not exact.called


def test_decimals_each_in_an_array_of_its_own() -> None:
    """Arrow makes all plain numbers that fit, whose digits are counted before."""
    rng = random.Random(5)
    types = DECIMALS if TEXTS_ALONE > 20_000 else rng.sample(DECIMALS, 100)
    for precision, scale in types:
        target = pa.decimal128(precision, scale)
        for number in list_numbers(rng, precision, scale, TEXTS_ALONE // len(types)):
            text = rng.choice([number, write_text(rng, number)])
            value, is_fast = cast_alone(text, target)
            assert same(value, expect_value(text, target)), (text, target)
            assert is_fast or value is None or not is_plain(text, precision, scale), (text, target)


@pytest.mark.parametrize(
    ("kind", "digits", "scale"),
    [("tinyint", 2, 0), ("int", 9, 0), ("bigint", 18, 0), ("float", 7, 4), ("double", 17, 9)],
)
def test_numbers_each_in_an_array_of_its_own(kind: str, digits: int, scale: int) -> None:
    rng, target, taken, count = random.Random(kind), parse_type(kind), 0, TEXTS_ALONE // 20
    for number in list_numbers(rng, digits, scale, count):
        text = rng.choice([number, write_text(rng, number)])
        value, is_fast = cast_alone(text, target)
        assert same(value, expect_value(text, target)), text
        taken += is_fast and value is not None
    assert taken > count // 50
