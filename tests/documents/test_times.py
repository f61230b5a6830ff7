"""Dates and times in the forms that sources give them."""

from datetime import UTC, date, datetime, timedelta

import pytest

from lakewriter.documents.times import parse_date, parse_time, parse_timestamp

DATES = [
    "2021-01-02", "2021/01/02", "2021.01.02", "2021-1-2", "2021 Jan 2", "Jan 2, 2021", "January 2, 2021",
    "2-Jan-2021", "02 january 2021", "2021-Jan-02", "2021-01-02T00:00:00Z", " 2021-01-02 ",
]  # fmt: skip


@pytest.mark.parametrize("text", DATES)
def test_date(text):
    assert parse_date(text) == ((date(2021, 1, 2) - date(1970, 1, 1)).days, False)


NO_DATES = ["", "2021", "2021-13-01", "2021-02-30", "01/02/2021", "2021-01-02T10:00:00", "20210102", "0000-01-01",
            "2021-Foo-01", "\u0662021-01-02"]  # fmt: skip


@pytest.mark.parametrize("text", NO_DATES)
def test_no_date(text):
    assert parse_date(text) is None


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
    assert parse_timestamp(text, zoned=False) == (local, False)
    assert parse_timestamp(text, zoned=True) == (local - ahead * 3_600_000_000, False)


def test_timestamp_of_a_date_is_its_midnight():
    assert parse_timestamp("1970-01-02", zoned=True) == (86_400_000_000, False)


def test_digits_beyond_microseconds_are_cut_and_told():
    assert parse_timestamp("1970-01-01T00:00:00.0000019", zoned=True) == (1, True)
    assert parse_timestamp("1970-01-01T00:00:00.0000010", zoned=True) == (1, False)


TIMES = [
    # text, with its zone kept, in UTC; seconds since midnight
    ("01:02:03", 3723, 3723), ("1:02", 3720, 3720), ("01:02:03Z", 3723, 3723), ("01:02:03+01:00", 3723, 123),
    ("01:02:03+02:00", 3723, 82_923), ("23:30:00-01", 84_600, 1800),
]  # fmt: skip


@pytest.mark.parametrize(("text", "local", "utc"), TIMES)
def test_time(text, local, utc):
    assert parse_time(text, zoned=False) == (local * 1_000_000, False)
    assert parse_time(text, zoned=True) == (utc * 1_000_000, False)


@pytest.mark.parametrize("text", ["24:00:00", "12:60", "12:00:60", "noon", "12:00+19:00"])
def test_no_time(text):
    assert parse_time(text, zoned=True) is None
