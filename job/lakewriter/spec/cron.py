"""Compute when an EventBridge Scheduler expression fires: cron of six fields, in wall-clock time.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
"""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice, pairwise
from typing import Final

MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
YEARS: Final = range(1970, 2200)
SAMPLE: Final = range(2026, 2026 + 28)
"""28 years, which hold every combination of weekday, date and leap year."""

_STEP = re.compile(r"(?P<span>[^/]+)(/(?P<step>\d+))?")
_NEAREST = re.compile(r"(\d+)W")
_NTH = re.compile(r"(\w+)#([1-5])")
_LAST = re.compile(r"(\w+)L")


@dataclass(frozen=True)
class Field:
    """One field of an expression: its name, its values, and the names of the values in order."""

    name: str
    values: range
    names: tuple[str, ...] = ()

    def parse_number(self, text: str) -> int:
        """Parse one value, given as a number or a name."""
        if text.upper() in self.names:
            return self.values.start + self.names.index(text.upper())
        if not text.isdecimal() or int(text) not in self.values:
            bounds = f"{self.values.start} to {self.values.stop - 1}"
            named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
            raise ValueError(f"{self.name}: expected {bounds}{named}, got {text!r}")
        return int(text)

    def parse(self, text: str) -> frozenset[int]:
        """Parse a list of single values, ranges and steps."""
        return frozenset(value for part in text.split(",") for value in self._parse_part(part))

    def _parse_part(self, text: str) -> Iterator[int]:
        parsed = _STEP.fullmatch(text)
        if parsed is None or (parsed["step"] and not int(parsed["step"])):
            raise ValueError(f"{self.name}: expected a value, a range or '*', with or without '/STEP', got {text!r}")
        start, _, end = parsed["span"].partition("-")
        if start == "*":
            first, last = self.values.start, self.values.stop - 1
        else:
            first = self.parse_number(start)
            last = self.parse_number(end) if end else (self.values.stop - 1 if parsed["step"] else first)
        size = (last - first) % len(self.values) + 1
        for offset in range(0, size, int(parsed["step"] or 1)):
            yield self.values[(first - self.values.start + offset) % len(self.values)]


MINUTE: Final = Field("minute", range(60))
HOUR: Final = Field("hour", range(24))
DAY: Final = Field("day of the month", range(1, 32))
MONTH: Final = Field("month", range(1, 13), MONTHS)
WEEKDAY: Final = Field("day of the week", range(1, 8), WEEKDAYS)
YEAR: Final = Field("year", YEARS)


@dataclass(frozen=True)
class Cron:
    """A parsed expression; ``day`` and ``weekday`` stay text, since their dates depend on the month."""

    minutes: frozenset[int]
    hours: frozenset[int]
    day: str
    months: frozenset[int]
    weekday: str
    years: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """Parse an expression; ``ValueError`` names the wrong field, or says that it never fires."""
        fields = text.split()
        if len(fields) != 6:
            raise ValueError(f"expected six fields, such as '0 * * * ? *', got {len(fields)} in {text!r}")
        minutes, hours, day, months, weekday, years = fields
        if (day == "?") == (weekday == "?"):
            raise ValueError("expected '?' for exactly one of the day of the month and the day of the week")
        cron = cls(
            MINUTE.parse(minutes), HOUR.parse(hours), day, MONTH.parse(months), weekday.upper(), YEAR.parse(years)
        )
        if next(cron.list_dates(), None) is None:
            raise ValueError(f"{text!r} never fires")
        return cron

    @property
    def times(self) -> tuple[time, ...]:
        """The times of day at which it fires, in order."""
        return tuple(time(hour, minute) for hour in sorted(self.hours) for minute in sorted(self.minutes))

    def list_dates(self, start: date = date(SAMPLE.start, 1, 1)) -> Iterator[date]:
        """List the days on which it fires, from ``start``, in its years, or in 28 years if it names none."""
        is_yearly = len(self.years) == len(YEARS)
        for year in range(start.year, start.year + len(SAMPLE)) if is_yearly else sorted(self.years):
            for month in sorted(self.months):
                for day in sorted(self._find_days(year, month)):
                    if (fires := date(year, month, day)) >= start:
                        yield fires

    def find_next(self, moment: datetime, count: int) -> tuple[datetime, ...]:
        """Find the first ``count`` times from ``moment`` on, in wall-clock time without a zone."""
        starts = (datetime.combine(day, at) for day in self.list_dates(moment.date()) for at in self.times)
        return tuple(islice((start for start in starts if start >= moment), count))

    def measure_periods(self) -> tuple[timedelta, timedelta] | None:
        """Measure the shortest and longest time between two firings, without clock changes; None if it fires once."""
        times = [timedelta(hours=at.hour, minutes=at.minute) for at in self.times]
        within = [later - earlier for earlier, later in pairwise(times)]
        days = [later - earlier for earlier, later in pairwise(self.list_dates())]
        over_night = [apart - times[-1] + times[0] for apart in (min(days), max(days))] if days else []
        periods = within + over_night
        return (min(periods), max(periods)) if periods else None

    def _find_days(self, year: int, month: int) -> set[int]:
        first, length = calendar.monthrange(year, month)
        # monthrange counts from Monday as 0, a cron field from Sunday as 1.
        weekday_of = {day: (first + day) % 7 + 1 for day in range(1, length + 1)}
        if self.day != "?":
            return {day for part in self.day.upper().split(",") for day in _find_days_of_month(part, weekday_of)}
        return {day for part in self.weekday.split(",") for day in _find_days_of_week(part, weekday_of)}


def measure_rate(rate: str) -> timedelta:
    """Measure the time between two starts of a rate such as ``15 minutes``; ``ValueError`` for zero."""
    count, unit = rate.split()
    if not int(count):
        raise ValueError(f"expected a positive number, got {count}")
    return timedelta(**{f"{unit.rstrip('s')}s": int(count)})


def _find_days_of_month(part: str, weekday_of: dict[int, int]) -> set[int]:
    """Find the days of one month that ``part`` of a day-of-month field names."""
    length = len(weekday_of)
    if part == "L":
        return {length}
    if part == "LW":
        return {_find_nearest_workday(length, weekday_of)}
    if nearest := _NEAREST.fullmatch(part):
        day = DAY.parse_number(nearest[1])
        return {_find_nearest_workday(day, weekday_of)} if day <= length else set()
    return set(DAY.parse(part)) & set(weekday_of)


def _find_days_of_week(part: str, weekday_of: dict[int, int]) -> set[int]:
    """Find the days of one month that ``part`` of a day-of-week field names."""
    if part == "L":
        return {day for day, weekday in weekday_of.items() if weekday == 7}
    if nth := _NTH.fullmatch(part):
        return set(_list_weekdays(nth[1], weekday_of)[int(nth[2]) - 1 : int(nth[2])])
    if last := _LAST.fullmatch(part):
        return set(_list_weekdays(last[1], weekday_of)[-1:])
    wanted = WEEKDAY.parse(part)
    return {day for day, weekday in weekday_of.items() if weekday in wanted}


def _list_weekdays(name: str, weekday_of: dict[int, int]) -> list[int]:
    wanted = WEEKDAY.parse_number(name)
    return [day for day, weekday in weekday_of.items() if weekday == wanted]


def _find_nearest_workday(day: int, weekday_of: dict[int, int]) -> int:
    """Find the day from Monday to Friday that is nearest to ``day`` in its month."""
    workdays = [workday for workday, weekday in weekday_of.items() if 2 <= weekday <= 6]
    return min(workdays, key=lambda workday: (abs(workday - day), workday))
