"""Dates, times and numbers in text, in the forms of each grammar."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from lakewriter.cast.kind_values import (
    parse_date,
    parse_json_integer,
    parse_text,
    parse_time,
    parse_timestamp,
    parse_usual,
)
from lakewriter.cast.spelling_table import LENIENT, RFC_3339, MisfitError
from lakewriter.spec.collection import Kind

DATES = [
    "2021-01-02", "2021/01/02", "2021.01.02", "2021-1-2", "2021 Jan 2", "Jan 2, 2021", "January 2, 2021",
    "2-Jan-2021", "02 january 2021", "2021-Jan-02", "2021-01-02T00:00:00Z", " 2021-01-02 ",
    # forms of the connector's own pattern, "[yyyy][yy]['-']['/']['.'][' ']..."
    "21-01-02", "21/1/2", "21.01.02", "2021 01 02", "21 01 02", "210102", "2021Jan02", "2021-/01.02",
    "2021-01-01T24:00", "2021-01-01 24:00:00.000",
]  # fmt: skip


@pytest.mark.parametrize("text", DATES)
def test_date(text):
    assert parse_date(text, LENIENT) == ((date(2021, 1, 2) - date(1970, 1, 1)).days, False)


LOCAL_DATES = [
    # a time of day is cut off: the connector's LocalDate has the date of the local time, whatever its zone
    "2021-01-02T09:30:00Z", "2021-01-02T23:59:59-08:00", "2021-01-02 00:00:01+14:00", "2021-01-02 23:00:00 PST",
    "2021-01-02T09:30:00 BST", "2021-01-02 09:30", "21-01-02T09:30:00.123456", "2021-01-0209:30", "Jan 2, 2021 9:30",
    "2021-01-02T09:30:00+01:30:15", "2021-01-02  09:30:00",
]  # fmt: skip


@pytest.mark.parametrize("text", LOCAL_DATES)
def test_date_of_a_local_time(text):
    assert parse_date(text, LENIENT) == ((date(2021, 1, 2) - date(1970, 1, 1)).days, True)


def test_date_has_no_time_in_a_collection():
    with pytest.raises(MisfitError):
        parse_date("2021-01-02T09:30:00Z", RFC_3339)


NO_DATES = ["", "2021", "2021-13-01", "2021-02-30", "01/02/2021", "20210102", "0000-01-01", "2021-Foo-01",
            "\u0662021-01-02", "2021-01-02T25:00:00", "2021-01-02T24:00:01", "2021-01-02T09:60", "9999-12-31T24:00",
            "2021-01-02T09:30:00 Foo/Bar", "1609545600", "2021-01", "21", "2101"]  # fmt: skip


@pytest.mark.parametrize("text", NO_DATES)
def test_no_date(text):
    with pytest.raises(MisfitError):
        parse_date(text, LENIENT)


INSTANT = datetime(2021, 1, 2, 3, 4, 5, 678900, UTC)
TIMESTAMPS = [
    # text, hours that its zone is ahead of UTC
    ("2021-01-02T03:04:05.6789", 0), ("2021-01-02 03:04:05.6789Z", 0), ("2021-01-02T03:04:05.6789z", 0),
    ("2021/1/2 3:04:05.6789 UTC", 0), ("2021-01-02T03:04:05.678900000+00:00", 0), ("2021-01-02T03:04:05,6789+01", 1),
    ("2021-01-02 03:04:05.6789 +0100", 1), ("2021-01-02T03:04:05.6789-02:00", -2), ("Jan 2, 2021 03:04:05.6789 GMT", 0),
    ("2021-01-02T03:04:05.6789GMT-2", -2), ("2021-01-02T03:04:05.6789 UTC+01:00", 1),
    ("21-01-02 03:04:05.6789", 0), ("2021 01 02 03:04:05.6789 UT", 0), ("2021-01-02T03:04:05.6789UT+02:00", 2),
    ("2021-01-02T03:04:05.6789 WET", 0), ("2021-01-02T03:04:05.6789 SGT", 8), ("2021-01-02T03:04:05.6789 ART", -3),
    ("2021-01-02T03:04:05.6789 PT", -8), ("2021-01-02T03:04:05.6789 ChST", 10), ("2021-01-02T03:04:05.6789 Japan", 9),
    ("2021-01-02T03:04:05.6789 EST5EDT", -5), ("2021-01-02T03:04:05.6789 W-SU", 3),
    ("2021-01-02T03:04:05.6789+01:30:36", 1.51), ("2021-01-02 T03:04:05.6789 ", 0), ("2021-01-0203:04:05.6789", 0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "ahead"), TIMESTAMPS)
def test_timestamp(text, ahead):
    local = (INSTANT - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert parse_timestamp(text, LENIENT, zoned=False) == (local, False)
    assert parse_timestamp(text, LENIENT, zoned=True) == (local - ahead * 3_600_000_000, False)


def test_timestamp_of_a_date_is_its_midnight():
    assert parse_timestamp("1970-01-02", LENIENT, zoned=True) == (86_400_000_000, False)


def test_hour_24_is_the_next_midnight():
    for text in ("1970-01-02T24:00", "1970-01-02 24:00:00.000Z", "1970-01-02T24:00:00+00:00"):
        assert parse_timestamp(text, LENIENT, zoned=True) == (2 * 86_400_000_000, False)
        assert parse_timestamp(text, LENIENT, zoned=False) == (2 * 86_400_000_000, False)
    assert parse_timestamp("1970-01-02 24:00 PST", LENIENT, zoned=True) == (56 * 3_600_000_000, False)
    for text in ("24:00", "24:00:00", "24:00:00.000"):
        assert parse_time(text, LENIENT, zoned=True) == (0, False)


@pytest.mark.parametrize("text", ["9999-12-31T24:00 PST", "9999-12-31T24:00Z", "1970-01-02T24:00:00.000001"])
def test_hour_24_of_no_day(text):
    with pytest.raises(MisfitError):
        parse_timestamp(text, LENIENT, zoned=True)


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


@pytest.mark.parametrize("text", ["24:00:01", "25:00", "12:60", "12:00:60", "noon", "12:00+19:00", "12:00+18:01"])
def test_no_time(text):
    with pytest.raises(MisfitError):
        parse_time(text, LENIENT, zoned=True)


def test_time_beside_a_region_has_a_local_part_alone():
    assert parse_time("01:02:03 PST", LENIENT, zoned=False) == (3_723_000_000, False)
    with pytest.raises(MisfitError, match="'PST', whose offset depends on the day"):
        parse_time("01:02:03 PST", LENIENT, zoned=True)


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
    assert parse_usual(kind, pa.array([text])).null_count == 1
    with pytest.raises(MisfitError):
        parse_text(kind, text, grammar)


@pytest.mark.parametrize("zone", ["+18:01", "-18:59"])
def test_an_offset_beyond_18_hours_is_left_to_the_spelling(zone):
    """Airbyte's sources give none; RFC 3339 has offsets of up to 23:59, and Arrow reads those too."""
    text = f"2021-01-02T03:04:05{zone}"
    assert parse_usual(Kind.TIMESTAMP, pa.array([text])).null_count == 1
    with pytest.raises(MisfitError, match="there is no offset"):
        parse_text(Kind.TIMESTAMP, text, LENIENT)
    assert parse_text(Kind.TIMESTAMP, text, RFC_3339)


def test_values_of_a_usual_form_are_read_beside_others():
    texts = [None, "2021-01-02", "Jan 2, 2021", "2021-01-03", None]
    assert parse_usual(Kind.DATE, pa.array(texts)).cast(pa.int32()).to_pylist() == [
        None, 18629, None, 18630, None,
    ]  # fmt: skip


def test_local_part_is_kept_whatever_the_zone():
    for zone in ("+01:00", "+19:00"):
        assert parse_text(Kind.LOCAL_TIMESTAMP, f"1970-01-01T01:00:00{zone}", LENIENT) == (3_600_000_000, False)
    column = parse_usual(Kind.LOCAL_TIMESTAMP, pa.array(["1970-01-01T01:00:00"]))
    assert column.cast(pa.int64()).to_pylist() == [3_600_000_000]


def test_integers_of_any_length():
    assert parse_json_integer(b"0e999999") == 0
    assert parse_text(Kind.TEXT_INTEGER, "0" * 5000 + "7", RFC_3339) == (7, False)
    for raw in (b"1e99999999", b"9" * 5000):
        with pytest.raises(MisfitError) as raised:
            parse_json_integer(raw)
        assert raised.value.is_beyond
    with pytest.raises(MisfitError, match="not a whole number of 64 bits"):
        parse_text(Kind.TEXT_INTEGER, "9" * 5000, RFC_3339)
