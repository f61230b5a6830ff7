"""Make moments of the fields of a text: one reader of days, clocks, offsets and regions for every spelling."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final, Literal

from lakewriter.cast.spelling_table import MisfitError, Spelling
from lakewriter.cast.time_zones import find_offsets, find_zone

EPOCH: Final = datetime(1970, 1, 1)
DAY: Final = 24 * 3600 * 10**6
"""Microseconds of a day."""
MIDDAY: Final = 12
MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_SHORT: Final = 3
_ZERO: Final = EPOCH.toordinal()
_CYCLE_DAYS: Final = 146_097
_OFFSET: Final = re.compile(r"(?:UTC?|GMT)?([+-])(\d{1,2})(?::?(\d{2})(?::(\d{2}))?)?")
_ALTERNATIVES: Final = "1234"
"""Behind a letter in a group's name: alternatives have a group each."""

Fields = Mapping[str, str]
"""The fields of a text by the letters of Spark's patterns."""


@dataclass(frozen=True)
class Moment:
    """A parsed text: its local date and time, and its other parts."""

    local: int
    """Microseconds since 1970 on the local clock; since midnight if it has no date."""
    finer: str = ""
    """The digits behind microseconds."""
    offset: str | None = None
    zone: str | None = None

    @property
    def is_finer(self) -> bool:
        """It has digits other than zero behind the microseconds."""
        return bool(self.finer.strip("0"))


def read_moment(text: str, part: Literal["date", "moment", "time"], spelling: Spelling) -> Moment:
    """Read a text by one of a spelling's patterns; raise ``MisfitError`` if it is another, or no such moment."""
    pattern: re.Pattern[str] | None = getattr(spelling, part)
    match = pattern and pattern.fullmatch(text)
    if not match:
        raise MisfitError(f"it is not {spelling.names[part]}")
    fields: dict[str, str] = {}
    for name, value in match.groupdict().items():
        if value is not None:
            letter = name.rstrip(_ALTERNATIVES)
            fields[letter] = fields.get(letter, "") + value
    return make_moment(fields, spelling)


def make_moment(fields: Fields, spelling: Spelling) -> Moment:
    """Return the moment of the fields; raise ``MisfitError`` for a day or an hour that does not exist."""
    local = (_count_days(fields, spelling) * DAY if "y" in fields else 0) + _count_micros(fields, spelling)
    return Moment(local, fields.get("S", "")[6:], fields.get("X"), fields.get("V"))


def find_offset(moment: Moment, spelling: Spelling, zone: str = "UTC") -> int:
    """Return the microseconds east of UTC of a moment; one that has neither offset nor region is of ``zone``.

    ``MisfitError`` for an offset or a region that does not exist, and where the local time is not one in the region.
    """
    given = None if moment.offset is None else _read_offset(moment.offset, spelling)
    name = moment.zone or (zone if given is None else None)
    if name is None:
        return given or 0
    before, after = _find_offsets(name, moment.local, spelling)
    if given is not None:
        if given not in (before, after):
            raise MisfitError(f"its offset is not that of {name}")
        return given
    if before > after and not spelling.picks_first:
        raise MisfitError(f"this local time comes twice in {name}: an offset would say which")
    if before < after and not spelling.picks_first:
        raise MisfitError(f"this local time does not exist in {name}: its clocks were put forward")
    return before


def require_region(moment: Moment, spelling: Spelling) -> None:
    """Raise ``MisfitError`` if a moment whose local part alone counts names a region that does not exist."""
    name = moment.zone
    if name is not None and spelling.abbreviations.get(name, name) is not None:
        _find_offsets(name, moment.local, spelling)


def to_utc(moment: Moment, spelling: Spelling, zone: str) -> datetime:
    """Return the moment as UTC without a zone; see ``find_offset``."""
    try:
        return EPOCH + timedelta(microseconds=moment.local - find_offset(moment, spelling, zone))
    except OverflowError:
        raise MisfitError("it is outside the years 0001 to 9999 in UTC") from None


def find_month(name: str) -> int:
    """Return the number of a month by its English name, or by the first three letters."""
    low = name.lower()
    names = [month[:_SHORT] for month in MONTHS] if len(low) == _SHORT else MONTHS
    return names.index(low) + 1


def _count_days(fields: Fields, spelling: Spelling) -> int:
    """Return the days since 1970."""
    is_short = spelling.has_short_years and len(fields["y"]) == len("yy")
    year = 2000 + int(fields["y"]) if is_short else _read_number(fields, "y", 1, 9999)
    # Python's dates begin with the year 1; the calendar repeats every 400 years, and 1 BC is the year 0.
    cycles = (year + 399) // 400 if "BC" in fields.get("G", "") else 0
    counted = 1 - year + 400 * cycles if cycles else year
    try:
        if "D" in fields:
            day = date(year, 1, 1) + timedelta(days=_read_number(fields, "D", 1, 366) - 1)
            if day.year != year:
                raise ValueError
            return day.toordinal() - _ZERO
        month = fields["M"]
        number = int(month) if month.isdigit() else find_month(month)
        return date(counted, number, int(fields["d"])).toordinal() - _ZERO - cycles * _CYCLE_DAYS
    except (ValueError, OverflowError):
        raise MisfitError("there is no such day in the calendar") from None


def _count_micros(fields: Fields, spelling: Spelling) -> int:
    """Return the microseconds since midnight."""
    fraction = fields.get("S", "")
    if spelling.ends_at_24 and fields.get("H") == "24" and not any(fields.get(part, "").strip("0") for part in "msS"):
        return DAY
    hours = _read_hour(fields)
    minutes, seconds = _read_number(fields, "m", 0, 59), _read_number(fields, "s", 0, 59)
    return ((hours * 60 + minutes) * 60 + seconds) * 10**6 + int(fraction[:6].ljust(6, "0"))


def _read_hour(fields: Fields) -> int:
    if "a" in fields:
        after = MIDDAY * (fields["a"].lower() == "pm")
        return after + (_read_number(fields, "h", 1, 12) % 12 if "h" in fields else _read_number(fields, "K", 0, 11))
    if "k" in fields:
        return _read_number(fields, "k", 1, 24) % 24
    return _read_number(fields, "H", 0, 23)


_NAMES: Final = {"y": "years", "D": "days", "h": "hours", "K": "hours", "k": "hours", "H": "hours", "m": "minutes",
                 "s": "seconds"}  # fmt: skip


def _read_number(fields: Fields, letter: str, least: int, most: int) -> int:
    number = int(fields.get(letter, least))
    if not least <= number <= most:
        lowest = str(least).zfill(len(fields[letter]))
        raise MisfitError(f"its {_NAMES[letter]} are {fields[letter]}, expected {lowest} to {most}")
    return number


def _read_offset(text: str, spelling: Spelling) -> int:
    """Return microseconds east of UTC; ``Z``, ``UTC`` and the like are zero."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        return 0
    hours, minutes, seconds = int(match[2]), int(match[3] or 0), int(match[4] or 0)
    size = (hours * 60 + minutes) * 60 + seconds
    if size > spelling.longest_offset or max(minutes, seconds) > 59:
        raise MisfitError(f"there is no offset {text}")
    return size * 10**6 * (-1 if match[1] == "-" else 1)


def _find_offsets(name: str, local: int, spelling: Spelling) -> tuple[int, int]:
    if name in ("UTC", "Z"):
        return 0, 0
    if re.fullmatch(r"[+-][0-9]{2}:[0-9]{2}", name):
        return (_read_offset(name, spelling),) * 2
    region = spelling.abbreviations.get(name, name)
    if region is None:
        raise MisfitError(f"it names the time zone {name!r}, which means several; expected an offset")
    try:
        return find_offsets(find_zone(region), local)
    except ValueError as error:
        raise MisfitError(str(error)) from error
