"""Dates, times and numbers in text, in the forms of each grammar."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from lakewriter.documents.parsing import (
    LENIENT,
    RFC_3339,
    TOO_LARGE,
    ParseError,
    parse_date,
    parse_json_integer,
    parse_text,
    parse_time,
    parse_timestamp,
    parse_usual,
)
from lakewriter.spec.collection import Kind

DATES = [
    "2021-01-02", "2021/01/02", "2021.01.02", "2021-1-2", "2021 Jan 2", "Jan 2, 2021", "January 2, 2021",
    "2-Jan-2021", "02 january 2021", "2021-Jan-02", "2021-01-02T00:00:00Z", " 2021-01-02 ",
]  # fmt: skip


@pytest.mark.parametrize("text", DATES)
def test_date(text):
    assert parse_date(text, LENIENT) == ((date(2021, 1, 2) - date(1970, 1, 1)).days, False)


NO_DATES = ["", "2021", "2021-13-01", "2021-02-30", "01/02/2021", "2021-01-02T10:00:00", "20210102", "0000-01-01",
            "2021-Foo-01", "\u0662021-01-02"]  # fmt: skip


@pytest.mark.parametrize("text", NO_DATES)
def test_no_date(text):
    with pytest.raises(ParseError):
        parse_date(text, LENIENT)


INSTANT = datetime(2021, 1, 2, 3, 4, 5, 678900, UTC)
TIMESTAMPS = [
    # text, hours that its zone is ahead of UTC
    ("2021-01-02T03:04:05.6789", 0), ("2021-01-02 03:04:05.6789Z", 0), ("2021-01-02T03:04:05.6789z", 0),
    ("2021/1/2 3:04:05.6789 UTC", 0), ("2021-01-02T03:04:05.678900000+00:00", 0), ("2021-01-02T03:04:05,6789+01", 1),
    ("2021-01-02 03:04:05.6789 +0100", 1), ("2021-01-02T03:04:05.6789-02:00", -2), ("Jan 2, 2021 03:04:05.6789 GMT", 0),
    ("2021-01-02T03:04:05.6789GMT-2", -2), ("2021-01-02T03:04:05.6789 UTC+01:00", 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ahead"), TIMESTAMPS)
def test_timestamp(text, ahead):
    local = (INSTANT - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_timestamp(text, LENIENT, zoned=False) == (local, False)
    assert parse_timestamp(text, LENIENT, zoned=True) == (local - ahead * 3_600_000_000, False)


def test_timestamp_of_a_date_is_its_midnight():
    assert parse_timestamp("1970-01-02", LENIENT, zoned=True) == (86_400_000_000, False)


def test_digits_beyond_microseconds_are_cut_and_told():
    assert parse_timestamp("1970-01-01T00:00:00.0000019", LENIENT, zoned=True) == (1, True)
    assert parse_timestamp("1970-01-01T00:00:00.0000010", LENIENT, zoned=True) == (1, False)


TIMES = [
    # text, with its zone kept, in UTC; seconds since midnight
    ("01:02:03", 3723, 3723), ("1:02", 3720, 3720), ("01:02:03Z", 3723, 3723), ("01:02:03+01:00", 3723, 123),
    ("01:02:03+02:00", 3723, 82_923), ("23:30:00-01", 84_600, 1800),
]  # fmt: skip


@pytest.mark.parametrize(("text", "local", "utc"), TIMES)
def test_time(text, local, utc):
    assert parse_time(text, LENIENT, zoned=False) == (local * 1_000_000, False)
    assert parse_time(text, LENIENT, zoned=True) == (utc * 1_000_000, False)


@pytest.mark.parametrize("text", ["24:00:00", "12:60", "12:00:60", "noon", "12:00+19:00"])
def test_no_time(text):
    with pytest.raises(ParseError):
        parse_time(text, LENIENT, zoned=True)


BOTH = [
    # what every grammar and Arrow read alike
    (Kind.DATE, "2021-01-02"), (Kind.TIMESTAMP, "2021-01-02T03:04:05Z"), (Kind.TIME, "03:04:05.5Z"),
    (Kind.LOCAL_TIME, "23:59:59"), (Kind.LOCAL_TIME, "03:04:05Z"),
    (Kind.TIMESTAMP, "9999-12-31 23:59:59.999999Z"),
    (Kind.TIMESTAMP, "1000-01-01T00:00:00.5+18:00"), (Kind.TIMESTAMP, "2021-01-02 03:04:05.678-02:30"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), BOTH)
@pytest.mark.parametrize("grammar", [LENIENT, RFC_3339])
def test_a_column_is_read_as_its_values_are(kind, text, grammar):
    column = parse_usual(kind, pa.array([text]))
    assert column is not None
    alone, _ = parse_text(kind, text, grammar)
    assert column.cast(pa.int32() if kind is Kind.DATE else pa.int64()).to_pylist() == [alone]


NO_MOMENTS = [
    # Arrow reads all of these
    (Kind.DATE, "0000-01-01"), (Kind.TIMESTAMP, "0000-01-01T00:00:00Z"), (Kind.TIMESTAMP, "2021-01-02T03Z"),
    (Kind.TIMESTAMP, "0001-01-01T00:00:00+01:00"), (Kind.TIMESTAMP, "9999-12-31T23:59:59-01:00"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), NO_MOMENTS)
@pytest.mark.parametrize("grammar", [LENIENT, RFC_3339])
def test_no_value_whatever_its_neighbours_are(kind, text, grammar):
    assert parse_usual(kind, pa.array([text])) is None
    with pytest.raises(ParseError):
        parse_text(kind, text, grammar)


def test_local_part_is_kept_whatever_the_zone():
    for zone in ("+01:00", "+19:00"):
        assert parse_text(Kind.LOCAL_TIMESTAMP, f"1970-01-01T01:00:00{zone}", LENIENT) == (3_600_000_000, False)
    column = parse_usual(Kind.LOCAL_TIMESTAMP, pa.array(["1970-01-01T01:00:00"]))
    assert column is not None
    assert column.cast(pa.int64()).to_pylist() == [3_600_000_000]


def test_integers_of_any_length():
    assert parse_json_integer(b"0e999999") == 0
    assert parse_text(Kind.TEXT_INTEGER, "0" * 5000 + "7", RFC_3339) == (7, False)
    for raw in (b"1e99999999", b"9" * 5000):
        with pytest.raises(ParseError) as raised:
            parse_json_integer(raw)
        assert raised.value.reason == TOO_LARGE
    with pytest.raises(ParseError, match="not a whole number of 64 bits"):
        parse_text(Kind.TEXT_INTEGER, "9" * 5000, RFC_3339)
