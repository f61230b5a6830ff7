"""Schedule expressions: when they fire, how close together, and what is wrong with one that is none."""

import re
from datetime import datetime, timedelta

import pytest

from lakewriter.spec.cron import Cron
from lakewriter.spec.deployment import Schedule

# Expressions and their meaning: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
# and .../AmazonCloudWatch/latest/events/ScheduledEvents.html. The dates were looked up in a calendar.
FIRINGS = [
    ("0 10 * * ? *", ["2027-01-01 10:00", "2027-01-02 10:00"]),
    ("0 18 ? * MON-FRI *", ["2027-01-01 18:00", "2027-01-04 18:00"]),
    ("0 8 1 * ? *", ["2027-01-01 08:00", "2027-02-01 08:00"]),
    ("0/10 * ? * MON-FRI *", ["2027-01-01 00:00", "2027-01-01 00:10"]),
    ("0/5 8-17 ? * MON-FRI *", ["2027-01-01 08:00", "2027-01-01 08:05"]),
    ("15,45 6 * JUL-AUG ? *", ["2027-07-01 06:15", "2027-07-01 06:45"]),
    ("0 9 ? * 2#1 *", ["2027-01-04 09:00", "2027-02-01 09:00"]),
    ("0 9 ? * TUE#5 *", ["2027-03-30 09:00", "2027-06-29 09:00"]),
    ("15 10 ? * 6L 2027-2028", ["2027-01-29 10:15", "2027-02-26 10:15"]),
    ("0 0 ? * L *", ["2027-01-02 00:00", "2027-01-09 00:00"]),
    ("0 0 L * ? *", ["2027-01-31 00:00", "2027-02-28 00:00"]),
    ("0 0 LW * ? *", ["2027-01-29 00:00", "2027-02-26 00:00"]),
    ("0 0 3W * ? *", ["2027-01-04 00:00", "2027-02-03 00:00"]),
    ("0 0 1W 5 ? *", ["2027-05-03 00:00", "2028-05-01 00:00"]),
    ("0 0 31W * ? *", ["2027-01-29 00:00", "2027-03-31 00:00"]),
    ("0 22-2/4 ? * FRI-SUN *", ["2027-01-01 02:00", "2027-01-01 22:00"]),
    ("0 0 29 2 ? *", ["2028-02-29 00:00", "2032-02-29 00:00"]),
    ("0 0 1 1 ? 2030", ["2030-01-01 00:00"]),
]

PERIODS = [
    # the least and the most time between two starts
    ({"cron": "0 * * * ? *"}, (timedelta(hours=1), timedelta(hours=1))),
    ({"cron": "0/15 * * * ? *"}, (timedelta(minutes=15), timedelta(minutes=15))),
    ({"cron": "5,50 * * * ? *"}, (timedelta(minutes=15), timedelta(minutes=45))),
    ({"cron": "0 1,23 * * ? *"}, (timedelta(hours=2), timedelta(hours=22))),
    ({"cron": "30 2 ? * MON,WED *"}, (timedelta(days=2), timedelta(days=5))),
    ({"cron": "0 6 ? * MON-FRI *"}, (timedelta(days=1), timedelta(days=3))),
    ({"cron": "0 0 1 * ? *"}, (timedelta(days=28), timedelta(days=31))),
    ({"cron": "0 0,6 1 * ? *"}, (timedelta(hours=6), timedelta(days=30, hours=18))),
    ({"cron": "0 0 29 2 ? *"}, (timedelta(days=1461), timedelta(days=1461))),
    ({"cron": "0 0 1 1 ? 2030"}, None),
    ({"rate": "1 hour"}, (timedelta(hours=1), timedelta(hours=1))),
    ({"rate": "90 minutes"}, (timedelta(minutes=90), timedelta(minutes=90))),
    ({"rate": "2 days"}, (timedelta(days=2), timedelta(days=2))),
]

WRONG = [
    ("0 * * * *", "expected six fields, such as '0 * * * ? *', got 5 in '0 * * * *'"),
    ("60 * * * ? *", "minute: expected 0 to 59, got '60'"),
    ("0 24 * * ? *", "hour: expected 0 to 23, got '24'"),
    ("0 0 ? * 0 *", "day of the week: expected 1 to 7 or SUN to SAT, got '0'"),
    ("0 0 ? * MONDAY *", "day of the week: expected 1 to 7 or SUN to SAT, got 'MONDAY'"),
    ("0 0 1 13 ? *", "month: expected 1 to 12 or JAN to DEC, got '13'"),
    ("0 0 32 * ? *", "day of the month: expected 1 to 31, got '32'"),
    ("0 0 40W * ? *", "day of the month: expected 1 to 31, got '40'"),
    ("0 0 1 1 ? 1969", "year: expected 1970 to 2199, got '1969'"),
    ("0/0 * * * ? *", "minute: expected a value, a range or '*', with or without '/STEP', got '0/0'"),
    ("0/00 * * * ? *", "minute: expected a value, a range or '*', with or without '/STEP', got '0/00'"),
    ("0 0 * * * *", "expected '?' for exactly one of the day of the month and the day of the week"),
    ("0 0 ? * ? *", "expected '?' for exactly one of the day of the month and the day of the week"),
    ("0 0 31 2 ? *", "'0 0 31 2 ? *' never fires"),
    ("0 0 29 2 ? 2027", "'0 0 29 2 ? 2027' never fires"),
]


@pytest.mark.parametrize(("text", "expected"), FIRINGS)
def test_cron_fires(text: str, expected: list[str]) -> None:
    fired = Cron.parse(text).find_next(datetime(2027, 1, 1), 2)
    assert [f"{moment:%Y-%m-%d %H:%M}" for moment in fired] == expected


@pytest.mark.parametrize(("given", "expected"), PERIODS)
def test_periods(given: dict[str, str], expected: tuple[timedelta, timedelta] | None) -> None:
    assert Schedule(**given).measure_periods() == expected


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_cron_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Cron.parse(text)


def test_rate_of_nothing() -> None:
    with pytest.raises(ValueError, match="expected a positive number, got 0"):
        Schedule(rate="0 minutes")
