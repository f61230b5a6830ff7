"""When an EventBridge Scheduler expression fires: cron of six fields, in wall-clock time.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html#cron-based
"""

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice, pairwise
from typing import Final

from lakewriter.spec.deployment import Schedule

MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
YEARS: Final = range(1970, 2200)
SAMPLE: Final = range(2026, 2026 + 28)
"""Every combination of weekday, date and leap year."""

_STEP = re.compile(r"(?P<span>[^/]+)(/(?P<step>\d+))?")
_NEAREST = re.compile(r"(\d+)W")
_NTH = re.compile(r"(\w+)#([1-5])")
_LAST = re.compile(r"(\w+)L")


@dataclass(frozen=True)
class Field:
    """One field's name, its values and what else they may be called, the first for the lowest value."""

    name: str
    values: range
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        """The value that ``text`` stands for."""
        if text.upper() in self.names:
            return self.values.start + self.names.index(text.upper())
        if not text.isdecimal() or int(text) not in self.values:
            known = f"{self.values.start} to {self.values.stop - 1}"
            named = f" or {self.names[0]} to {self.names[-1]}" if self.names else ""
            raise ValueError(f"{text!r} is no {self.name}; expected {known}{named}")
        return int(text)

    def parse(self, text: str) -> frozenset[int]:
        """The values of a list of single values, ranges and steps."""
        return frozenset(value for part in text.split(",") for value in self._part(part))

    def _part(self, text: str) -> Iterator[int]:
        found = _STEP.fullmatch(text)
        if found is None or (found["step"] and not int(found["step"])):
            raise ValueError(f"{text!r} is no {self.name}; expected a value, a range, '*', or such with '/' and a step")
        start, _, end = found["span"].partition("-")
        if start == "*":
            first, last = self.values.start, self.values.stop - 1
        else:
            first = self.number(start)
            last = self.number(end) if end else (self.values.stop - 1 if found["step"] else first)
        size = (last - first) % len(self.values) + 1
        for offset in range(0, size, int(found["step"] or 1)):
            yield self.values[(first - self.values.start + offset) % len(self.values)]


MINUTE: Final = Field("minute", range(60))
HOUR: Final = Field("hour", range(24))
DAY: Final = Field("day of the month", range(1, 32))
MONTH: Final = Field("month", range(1, 13), MONTHS)
WEEKDAY: Final = Field("day of the week", range(1, 8), WEEKDAYS)
YEAR: Final = Field("year", YEARS)


@dataclass(frozen=True)
class Cron:
    """A parsed expression; ``day`` and ``weekday`` stay text, since they depend on the month."""

    minutes: frozenset[int]
    hours: frozenset[int]
    day: str
    months: frozenset[int]
    weekday: str
    years: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """``ValueError`` says which field is wrong, and when the expression can never fire."""
        fields = text.split()
        if len(fields) != 6:
            raise ValueError(f"{text!r} has {len(fields)} fields; expected six, such as '0 * * * ? *'")
        minutes, hours, day, months, weekday, years = fields
        if (day == "?") == (weekday == "?"):
            raise ValueError("expected '?' for either the day of the month or the day of the week, and not for both")
        cron = cls(
            MINUTE.parse(minutes), HOUR.parse(hours), day, MONTH.parse(months), weekday.upper(), YEAR.parse(years)
        )
        if next(cron.dates(), None) is None:
            raise ValueError(f"{text!r} never fires")
        return cron

    @property
    def times(self) -> tuple[time, ...]:
        """The times of a day on which it fires, in order."""
        return tuple(time(hour, minute) for hour in sorted(self.hours) for minute in sorted(self.minutes))

    def dates(self, start: date = date(SAMPLE.start, 1, 1)) -> Iterator[date]:
        """The days on which it fires, from ``start``, over the named years or else over ``SAMPLE``."""
        every = len(self.years) == len(YEARS)
        for year in range(start.year, start.year + len(SAMPLE)) if every else sorted(self.years):
            for month in sorted(self.months):
                for day in sorted(self._days(year, month)):
                    if (found := date(year, month, day)) >= start:
                        yield found

    def after(self, moment: datetime, count: int) -> tuple[datetime, ...]:
        """The first ``count`` times from ``moment`` on; without a zone, as the clock on the wall shows them."""
        moments = (datetime.combine(day, at) for day in self.dates(moment.date()) for at in self.times)
        return tuple(islice((each for each in moments if each >= moment), count))

    def periods(self) -> tuple[timedelta, timedelta] | None:
        """The least and the most time between two firings; None when there is one only. A change of clocks is not
        counted."""
        times = [timedelta(hours=at.hour, minutes=at.minute) for at in self.times]
        within = [later - earlier for earlier, later in pairwise(times)]
        days = [later - earlier for earlier, later in pairwise(self.dates())]
        over_night = [apart - times[-1] + times[0] for apart in (min(days), max(days))] if days else []
        found = within + over_night
        return (min(found), max(found)) if found else None

    def _days(self, year: int, month: int) -> set[int]:
        first, length = calendar.monthrange(year, month)
        # monthrange counts from Monday as 0, a cron field from Sunday as 1.
        weekday_of = {day: (first + day) % 7 + 1 for day in range(1, length + 1)}
        if self.day != "?":
            return {day for part in self.day.upper().split(",") for day in _of_month(part, weekday_of)}
        return {day for part in self.weekday.split(",") for day in _of_week(part, weekday_of)}


def periods(schedule: Schedule) -> tuple[timedelta, timedelta] | None:
    """The least and the most time between two starts; None when there is one only, ``ValueError`` when the expression
    is wrong."""
    if schedule.cron is not None:
        return Cron.parse(schedule.cron).periods()
    count, unit = str(schedule.rate).split()
    if count == "0":
        raise ValueError("0 is no rate; expected a positive number")
    period = timedelta(**{f"{unit.rstrip('s')}s": int(count)})
    return period, period


def _of_month(part: str, weekday_of: dict[int, int]) -> set[int]:
    """The days of one month that ``part`` of a day-of-month field names."""
    length = len(weekday_of)
    if part == "L":
        return {length}
    if part == "LW":
        return {_nearest_workday(length, weekday_of)}
    if nearest := _NEAREST.fullmatch(part):
        day = DAY.number(nearest[1])
        return {_nearest_workday(day, weekday_of)} if day <= length else set()
    return set(DAY.parse(part)) & set(weekday_of)


def _of_week(part: str, weekday_of: dict[int, int]) -> set[int]:
    """The days of one month that ``part`` of a day-of-week field names."""
    if part == "L":
        return {day for day, weekday in weekday_of.items() if weekday == 7}
    if nth := _NTH.fullmatch(part):
        return set(_days_of(nth[1], weekday_of)[int(nth[2]) - 1 : int(nth[2])])
    if last := _LAST.fullmatch(part):
        return set(_days_of(last[1], weekday_of)[-1:])
    wanted = WEEKDAY.parse(part)
    return {day for day, weekday in weekday_of.items() if weekday in wanted}


def _days_of(name: str, weekday_of: dict[int, int]) -> list[int]:
    wanted = WEEKDAY.number(name)
    return [day for day, weekday in weekday_of.items() if weekday == wanted]


def _nearest_workday(day: int, weekday_of: dict[int, int]) -> int:
    """The Monday to Friday that is nearest to ``day`` in its month."""
    workdays = [each for each, weekday in weekday_of.items() if 2 <= weekday <= 6]
    return min(workdays, key=lambda each: (abs(each - day), each))
