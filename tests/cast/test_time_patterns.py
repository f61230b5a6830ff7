"""Patterns of dates and times: letters that are taken or refused, and texts that agree with themselves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewriter.cast import text_moments
from lakewriter.cast.spelling_table import STRICT
from lakewriter.cast.time_patterns import TimePattern

AT = datetime(2024, 1, 5, 14, 30, 9)
DAY = datetime(2024, 1, 5)


def Moment(local: datetime, *parts: str | None) -> text_moments.Moment:  # noqa: N802 - with a date for its microseconds
    return text_moments.Moment((local - datetime(1970, 1, 1)) // timedelta(microseconds=1), *parts)  # type: ignore[arg-type]


READ: list[tuple[str, str, Any]] = [
    # pattern, text, moment or reason
    ("yyyy-MM-dd", "2024-01-05", Moment(DAY)),
    ("dd.MM.yyyy HH:mm:ss", "05.01.2024 14:30:09", Moment(AT)),
    ("d/M/yyyy", "5/1/2024", Moment(DAY)), ("d/M/yyyy", "05/01/2024", Moment(DAY)),
    ("M/d/y h:mm:ss a", "1/5/2024 2:30:09 PM", Moment(AT)),
    ("M/d/y h:mm a", "1/5/2024 12:30 AM", Moment(datetime(2024, 1, 5, 0, 30))),
    ("M/d/y K:mm a", "1/5/2024 0:30 pm", Moment(datetime(2024, 1, 5, 12, 30))),
    ("yyyy-MM-dd kk", "2024-01-05 24", Moment(DAY)),
    ("dd MMM yyyy", "05 Jan 2024", Moment(DAY)), ("dd MMM yyyy", "05 jan 2024", Moment(DAY)),
    ("d MMMM yyyy", "5 January 2024", Moment(DAY)), ("EEE, d LLL yyyy", "Fri, 5 Jan 2024", Moment(DAY)),
    ("EEEE d.M.yyyy", "Friday 5.1.2024", Moment(DAY)),
    ("yyyyDDD", "2024005", Moment(DAY)),
    ("yyyy D", "2024 366", Moment(datetime(2024, 12, 31))),
    ("yyyyMMdd'T'HHmmss'Z'", "20240105T143009Z", Moment(AT)), ("yyyy''MM''dd", "2024'01'05", Moment(DAY)),
    ("yyyy-MM-dd HH:mm:ss.SSS", "2024-01-05 14:30:09.120", Moment(AT.replace(microsecond=120000))),
    ("yyyy-MM-dd HH:mm:ss.SSS", "2024-01-05 14:30:09.1", Moment(AT.replace(microsecond=100000))),
    ("yyyy-MM-dd HH:mm:ss.SSSSSSSSS", "2024-01-05 14:30:09.123456789", Moment(AT.replace(microsecond=123456), "789")),
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-01-05T14:30:09", Moment(AT)),
    ("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-01-05T14:30:09.5+05:30", Moment(AT.replace(microsecond=500000), "",
     "+05:30")),
    ("yyyy-MM-dd'T'HH:mm:ss[XXX][XX]", "2024-01-05T14:30:09-0800", Moment(AT, "", "-0800")),
    ("yyyy-MM-dd HH:mmX", "2024-01-05 14:30Z", Moment(AT.replace(second=0), "", "Z")),
    ("yyyy-MM-dd HH:mm VV", "2024-01-05 14:30 Europe/Berlin", Moment(AT.replace(second=0), "", None, "Europe/Berlin")),
    ("yyyy-MM-dd", "2024-1-5", "it is not of the pattern yyyy-MM-dd"),
    ("yyyy-MM-dd", "2024-01-05x", "it is not of the pattern yyyy-MM-dd"),
    ("yyyy-MM-dd", "24-01-05", "it is not of the pattern yyyy-MM-dd"),
    ("yyyy-MM-dd", "\u0662024-01-05", "it is not of the pattern yyyy-MM-dd"),
    ("dd.MM.yyyy", "30.02.2024", "there is no such day in the calendar"),
    ("yyyyDDD", "2023366", "there is no such day in the calendar"),
    ("EEE, d MMM yyyy", "Thu, 5 Jan 2024", "'Thu' in it does not agree with its other parts"),
    ("yyyy-MM-dd D", "2024-01-05 6", "'05' in it does not agree with its other parts"),
    ("yyyy-MM-dd HH h a", "2024-01-05 15 2 PM", "'15' in it does not agree with its other parts"),
    ("yyyy-MM-dd h a", "2024-01-05 13 PM", "its hours are 13, expected 01 to 12"),
    ("yyyy-MM-dd HH", "2024-01-05 24", "its hours are 24, expected 00 to 23"),
    ("yyyy-MM-dd HH:mm:ss", "2016-12-31 23:59:60", "its seconds are 60, expected 00 to 59"),
    ("yyyy-MM-dd HH:mm[X][XXX]", "2024-01-05 14:30Z+01:00", "it has an offset twice"),
    ("yyyy-MM-dd", "0000-01-01", "its years are 0000, expected 0001 to 9999"),
]  # fmt: skip

REFUSED = [
    # pattern, what its message has
    ("yy-MM-dd", "'yy', which is not taken: years have four digits"),
    ("YYYY-MM-dd", "'YYYY', which is not taken: weeks are no dates"),
    ("uuuu-MM-dd", "'uuuu', which is not taken: write yyyy"),
    ("yyyy-MM-dd z", "'z', which is not taken: a zone's short name"),
    ("yyyy-MM-dd O", "'O', which is not taken: write XXX"), ("G yyyy-MM-dd", "'G', which is not taken"),
    ("yyyy QQQ", "'QQQ', which is not taken: a quarter is no date"),
    ("yyyy-MM-dd nn", "'nn', which is not taken: letters that are taken: yyyy"),
    ("yyyy-MM-dd XXXXX", "'XXXXX', which is not taken"), ("yyyy-MM-dd SSSSSSSSSS", "'SSSSSSSSSS', which is not taken"),
    ("HH:mm", "no year, month and day that every text has"),
    ("yyyy-MM[-dd]", "no year, month and day that every text has"),
    ("yyyy-MM-dd hh:mm", "one of h and a without the other"),
    ("yyyy-MM-dd HH:mm a", "one of h and a without the other"),
    ("yyyy-MM-dd[ HH", "a '[' or ']' without the other"), ("yyyy-MM-dd]", "a '[' or ']' without the other"),
    ("yyyy-MM-dd {HH}", "'{' outside quotes: write '{'"),
    ("yyyy-MM-dd 'T", "\"'\" outside quotes: write ''"),
    ("%Y-%m-%d", "'Y', which is not taken"),
    ("", "no year, month and day"),
]  # fmt: skip

ZONES: list[tuple[str, str, Any]] = [
    # text, zone, instant or reason
    ("2024-07-01 12:00", "Europe/Berlin", datetime(2024, 7, 1, 10)),
    ("2024-07-01 12:00Z", "Europe/Berlin", datetime(2024, 7, 1, 12)),
    ("2024-03-10 02:30", "America/New_York",
     "this local time does not exist in America/New_York: its clocks were put forward"),
    ("2011-12-30 12:00", "Pacific/Apia", "this local time does not exist in Pacific/Apia: its clocks were put forward"),
    ("2024-11-03 01:30", "America/New_York",
     "this local time comes twice in America/New_York: an offset would say which"),
    ("1800-01-01 00:00", "Europe/Berlin", datetime(1799, 12, 31, 23, 6, 32)),
    ("2024-01-01 00:00", "Mars/Base", "there is no zone 'Mars/Base'"),
    ("2024-01-01 00:00", "../etc", "there is no zone '../etc'"),
]  # fmt: skip


def outcome(read: Any, *arguments: Any) -> Any:
    try:
        return read(*arguments)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize(("pattern", "text", "expected"), READ)
def test_texts_of_a_pattern(pattern: str, text: str, expected: Any) -> None:
    assert outcome(TimePattern(pattern).read, text) == expected


@pytest.mark.parametrize(("pattern", "said"), REFUSED)
def test_patterns_that_are_not_taken(pattern: str, said: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the text is asserted below
        TimePattern(pattern)
    assert said in str(error.value)


@pytest.mark.parametrize(("text", "zone", "expected"), ZONES)
def test_local_times_of_a_zone(text: str, zone: str, expected: Any) -> None:
    assert (
        outcome(lambda: text_moments.to_utc(text_moments.read_moment(text, "moment", STRICT), STRICT, zone)) == expected
    )


def test_a_zone_that_does_not_agree_with_the_offset() -> None:
    read = TimePattern("yyyy-MM-dd HH:mmXXX'['VV']'").read
    assert text_moments.to_utc(read("2024-10-27 02:30+01:00[Europe/Berlin]"), STRICT, "UTC") == datetime(
        2024, 10, 27, 1, 30
    )
    assert (
        outcome(text_moments.to_utc, read("2024-07-01 12:00+01:00[Europe/Berlin]"), STRICT, "UTC")
        == "its offset is not that of Europe/Berlin"
    )
    at_offset = TimePattern("yyyy-MM-dd HH:mm VV").read("2024-07-01 12:00 +05:30")
    assert text_moments.to_utc(at_offset, STRICT, "UTC") == datetime(2024, 7, 1, 6, 30)


WRITTEN = {"%Y-%m-%d %H:%M:%S": "yyyy-MM-dd HH:mm:ss", "%d %b %Y %I:%M:%S %p": "dd MMM yyyy hh:mm:ss a",
           "%A, %d %B %Y %H.%M.%S": "EEEE, dd MMMM yyyy HH.mm.ss", "%Y%j%H%M%S": "yyyyDDDHHmmss",
           "%m/%d/%Y %H:%M:%S.%f": "MM/dd/yyyy HH:mm:ss.SSSSSS"}  # fmt: skip


@given(st.datetimes(datetime(1000, 1, 1)), st.sampled_from(sorted(WRITTEN)))
def test_what_python_writes_is_read_back(value: datetime, form: str) -> None:
    value = value if "%f" in form else value.replace(microsecond=0)
    assert TimePattern(WRITTEN[form]).read(value.strftime(form)) == Moment(value)


@given(st.datetimes(timezones=st.timezones()))
def test_instants_of_zones(value: datetime) -> None:
    """An offset tells which of two times is meant; without it such a time is refused, never shifted."""
    name, instant = str(value.tzinfo), value.astimezone(UTC).replace(tzinfo=None)
    said = outcome(lambda: text_moments.to_utc(Moment(value.replace(tzinfo=None, fold=0)), STRICT, name))
    twice = value.replace(fold=0).utcoffset() != value.replace(fold=1).utcoffset()
    assert isinstance(said, str) if twice else said == instant
