"""Dates and times in text, in the forms that sources give them; whole days and microseconds since 1970.

date    2021-01-02  2021/1/2  2021.01.02  2021 Jan 2  Jan 2, 2021  2-January-2021
time    3:04  03:04:05  03:04:05.678
both    one behind the other, with a space or T between
zone    nothing, Z, UTC, GMT, +01, +0130, +01:30, UTC+1, GMT-03:00
"""

import re
from datetime import date
from typing import Final

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_GAP: Final = r"(?:[-/. ]|, )"
_MONTH: Final = r"(?P<{0}>[A-Za-z]{{3,9}})\.?"
_DATE: Final = (
    r"(?:(?P<y1>\d{4})[-/.](?P<m1>\d{1,2})[-/.](?P<d1>\d{1,2})"
    rf"|(?P<y2>\d{{4}}){_GAP}{_MONTH.format('m2')}{_GAP}(?P<d2>\d{{1,2}})"
    rf"|{_MONTH.format('m3')}{_GAP}(?P<d3>\d{{1,2}}){_GAP}(?P<y3>\d{{4}})"
    rf"|(?P<d4>\d{{1,2}}){_GAP}{_MONTH.format('m4')}{_GAP}(?P<y4>\d{{4}}))"
)
_TIME: Final = r"(?P<h>\d{1,2}):(?P<min>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d+))?)?"
_ZONE: Final = r"(?: ?(?P<zone>[Zz]|(?:UTC|GMT)?[+-]\d{1,2}(?::?\d{2})?|UTC|GMT))?"
_WHOLE: Final = re.compile(rf"{_DATE}(?:(?:[Tt]| +){_TIME}{_ZONE})?", re.ASCII)
_CLOCK: Final = re.compile(_TIME + _ZONE, re.ASCII)
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY: Final = 24 * 3600 * 1_000_000

Parsed = tuple[int, bool]
"""The value, and whether digits beyond the microseconds were cut off."""


def parse_date(text: str) -> Parsed | None:
    """Days since 1970; None for what is no date, or a date with a time of day that is not midnight."""
    found = _WHOLE.fullmatch(text.strip())
    days = _days(found) if found else None
    clock = _clock(found) if found and found["h"] else (0, False)
    if days is None or clock is None or clock[0]:
        return None
    return days, clock[1]


def parse_timestamp(text: str, *, zoned: bool) -> Parsed | None:
    """Microseconds since 1970; with ``zoned`` in UTC, otherwise of the local part, whatever its zone."""
    found = _WHOLE.fullmatch(text.strip())
    days = _days(found) if found else None
    clock = _clock(found) if found and found["h"] else (0, False)
    offset = _offset(found["zone"]) if found and zoned else 0
    if days is None or clock is None or offset is None:
        return None
    return days * _DAY + clock[0] - offset, clock[1]


def parse_time(text: str, *, zoned: bool) -> Parsed | None:
    """Microseconds since midnight; with ``zoned`` in UTC."""
    found = _CLOCK.fullmatch(text.strip())
    clock = _clock(found) if found else None
    offset = _offset(found["zone"]) if found and zoned else 0
    if clock is None or offset is None:
        return None
    return (clock[0] - offset) % _DAY, clock[1]


def _days(found: re.Match[str]) -> int | None:
    for number in "1234":
        if found[f"y{number}"]:
            year, month, day = (found[f"{part}{number}"] for part in "ymd")
            break
    try:
        return date(int(year), _month(month), int(day)).toordinal() - _EPOCH
    except ValueError:
        return None


def _month(text: str) -> int:
    if text.isdigit():
        return int(text)
    low = text.lower()
    return (_MONTHS if len(low) == 3 else _NAMES).index(low) + 1


def _clock(found: re.Match[str]) -> Parsed | None:
    hours, minutes, seconds = int(found["h"]), int(found["min"]), int(found["s"] or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    fraction = found["f"] or ""
    micros = int(fraction[:6].ljust(6, "0"))
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros, bool(fraction[6:].strip("0"))


def _offset(zone: str | None) -> int | None:
    """Microseconds east of UTC."""
    found = _OFFSET.fullmatch(zone or "")
    if found is None:
        return 0
    hours, minutes = int(found[2]), int(found[3] or 0)
    if hours > 18 or minutes > 59:
        return None
    return (hours * 60 + minutes) * 60_000_000 * (-1 if found[1] == "-" else 1)
