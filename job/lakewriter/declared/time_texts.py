"""Dates and times as text: ISO 8601 as the documentation has it, or by a pattern of Spark's letters.

https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html lists the letters; what the table here does not have
is refused by name. Each field that a text has is compared with the value that comes out.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

_MONTHS: Final = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                  "november", "december")  # fmt: skip
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SHORT: Final = 3

_ISO: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_ISO_LETTERS: Final = "yMdHmsSX"

_OFFSET: Final = {
    "X": r"Z|[+-][0-9]{2}(?:[0-9]{2})?",
    "XX": r"Z|[+-][0-9]{4}",
    "XXX": r"Z|[+-][0-9]{2}:[0-9]{2}",
    "x": r"[+-][0-9]{2}(?:[0-9]{2})?",
    "xx": r"[+-][0-9]{4}",
    "xxx": r"[+-][0-9]{2}:[0-9]{2}",
    "Z": r"[+-][0-9]{4}",
    "ZZ": r"[+-][0-9]{4}",
    "ZZZ": r"[+-][0-9]{4}",
    "ZZZZZ": r"Z|[+-][0-9]{2}:[0-9]{2}",
}
_FIELDS: Final = (
    {"y": "[0-9]{1,4}", "yyyy": "[0-9]{4}", "D": "[0-9]{1,3}", "DDD": "[0-9]{3}", "a": "[AaPp][Mm]"}
    | dict.fromkeys("MLdHhKkms", "[0-9]{1,2}")
    | {2 * letter: "[0-9]{2}" for letter in "MLdHhKkms"}
    | {length * letter: "|".join(name[:3] for name in _MONTHS) for letter in "ML" for length in (3,)}
    | {length * letter: "|".join(_MONTHS) for letter in "ML" for length in (4,)}
    | {length * "E": "|".join(name[:3] for name in _DAYS) for length in (1, 2, 3)}
    | {"EEEE": "|".join(_DAYS), "VV": r"[A-Za-z0-9_+:/-]+"}
    | {length * "S": f"[0-9]{{1,{length}}}" for length in range(1, 10)}
    | _OFFSET
)
"""The regular expression of each field that a pattern may have."""
_REFUSED: Final = {
    "yy": "years have four digits: write yyyy, and correct the source",
    "z": "a zone's short name means several zones: correct the source, or write VV for names such as Europe/Berlin",
    "O": "write XXX for offsets such as +01:00",
    "G": "years are those of the common era",
    "Q": "a quarter is no date",
    "q": "a quarter is no date",
    "F": "a day of the week in the month is no date",
    "Y": "weeks are no dates: write yyyy for the year",
    "u": "write yyyy for the year",
}
_TAKEN: Final = "yyyy M MM MMM MMMM d dd D DDD E EEEE H HH h hh K k a m mm s ss S to SSSSSSSSS X XX XXX x xx xxx Z VV"
_PART: Final = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|.", re.DOTALL)
_NEEDED: Final = (("y",), ("M", "D"), ("d", "D"))
_MIDDAY: Final = 12


@dataclass(frozen=True)
class Moment:
    """A parsed text: its local date and time, and its other parts."""

    local: datetime
    finer: str = ""
    """The digits behind microseconds."""
    offset: timedelta | None = None
    zone: str | None = None


class TimePattern:
    """A pattern such as ``dd.MM.yyyy HH:mm[:ss]``; ``ValueError`` names the part that is not supported."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._parts: list[tuple[str, str]] = []
        """The letter and the regular expression of each field; what is between fields has no letter."""
        needed = self._translate()
        self._letters = [letter for letter, _ in self._parts if letter]
        regex = "".join(f"({regex})" if letter else regex for letter, regex in self._parts)
        self._regex = re.compile(regex, re.IGNORECASE | re.ASCII)
        if not all(needed & set(choice) for choice in _NEEDED):
            raise ValueError("it names no year, month and day that every text has: write yyyy, MM and dd")
        halves = set(self._letters) & {"h", "K"}
        if bool(halves) != ("a" in self._letters):
            raise ValueError("it has one of h and a without the other: write HH for hours from 0 to 23")

    def read(self, text: str) -> Moment:
        """Read ``text``; raise ``ValueError`` if it is not of this pattern, or no such moment."""
        match = self._regex.fullmatch(text)
        if match is None:
            raise ValueError(f"it is not of the pattern {self.pattern}")
        return _make_moment(self._letters, match.groups())

    @property
    def has_offset(self) -> bool:
        """The pattern has letters for an offset or a zone."""
        return bool({"X", "V"} & set(self._letters))

    @property
    def iso_fields(self) -> tuple[str, ...]:
        """The letters of a pattern that writes ISO's fields in another order; empty for other patterns.

        It has each letter once, in numbers and in every text.
        """
        letters = set(self._letters)
        is_plain = {"y", "M", "d"} <= letters <= set(_ISO_LETTERS) and len(letters) == len(self._letters)
        has_names = any("|" in regex for letter, regex in self._parts if letter == "M")
        is_optional = any(not letter and regex == ")?" for letter, regex in self._parts)
        return tuple(self._letters) if is_plain and not has_names and not is_optional else ()

    @property
    def named_regex(self) -> str:
        """The regular expression, each field a group that is named by its letter."""
        return "".join(f"(?P<{letter}>{regex})" if letter else regex for letter, regex in self._parts)

    def _translate(self) -> set[str]:
        """Fill the parts; return the letters of the fields that every text has."""
        depth, needed = 0, set()
        for match in _PART.finditer(self.pattern):
            part = match[0]
            if part in "[]":
                depth += 1 if part == "[" else -1
                self._parts.append(("", "(?:" if part == "[" else ")?"))
            elif match[1]:
                letter = "X" if part in _OFFSET else "M" if part[0] == "L" else part[0]
                self._parts.append((letter, self._find_field(part)))
                needed |= set() if depth else {letter}
            elif part in "#{}" or part == "'":
                said = "''" if part == "'" else repr(part)
                raise ValueError(f"it has {part!r} outside quotes: write {said}")
            else:
                text = part[1:-1].replace("''", "'") or "'" if part[0] == "'" else part
                self._parts.append(("", re.escape(text)))
            if depth < 0:
                break
        if depth:
            raise ValueError("it has a '[' or ']' without the other")
        return needed

    def _find_field(self, part: str) -> str:
        if part in _FIELDS:
            return _FIELDS[part]
        reason = _REFUSED.get(part, _REFUSED.get(part[0], f"letters that are taken: {_TAKEN}"))
        raise ValueError(f"it has {part!r}, which is not taken: {reason}")


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> TimePattern:
    """Return the pattern, compiled once."""
    return TimePattern(pattern)


def read_iso(text: str) -> Moment:
    """Read an ISO text; raise ``ValueError`` if it is none, or no such moment."""
    match = _ISO.fullmatch(text)
    if match is None:
        raise ValueError("it is not written as YYYY-MM-DD hh:mm:ss")
    return _make_moment(list(_ISO_LETTERS), match.groups())


def _make_moment(letters: list[str], groups: tuple[str | None, ...]) -> Moment:
    """Return the moment of the fields; each is compared with the value that comes out."""
    given = [(letter, group) for letter, group in zip(letters, groups, strict=True) if group is not None]
    fields = dict(given)
    fraction = fields.get("S", "")
    local = _make_day(fields).replace(
        hour=_read_hour(fields),
        minute=_read_number(fields, "m", 0, 59),
        second=_read_number(fields, "s", 0, 59),
        microsecond=int(fraction[:6].ljust(6, "0")),
    )
    for letter, text in given:
        if letter in _WRITTEN and _WRITTEN[letter](local) != _simplify(letter, text):
            raise ValueError(f"{text!r} in it does not agree with its other parts")
    if len([letter for letter, _ in given if letter in "XV"]) > len({"X", "V"} & fields.keys()):
        raise ValueError("it has an offset twice")
    offset = _read_offset(fields["X"]) if "X" in fields else None
    return Moment(local, fraction[6:], offset, fields.get("V"))


def _make_day(fields: dict[str, str]) -> datetime:
    year = _read_number(fields, "y", 1, 9999)
    try:
        if "D" in fields:
            day = datetime(year, 1, 1) + timedelta(days=_read_number(fields, "D", 1, 366) - 1)
            if day.year != year:
                raise ValueError
            return day
        month = fields["M"]
        number = int(month) if month.isdigit() else _find_month(month)
        return datetime(year, number, int(fields["d"]))
    except ValueError:
        raise ValueError("there is no such day in the calendar") from None


def _find_month(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name.lower()))


def _read_hour(fields: dict[str, str]) -> int:
    if "a" in fields:
        after = _MIDDAY * (fields["a"].lower() == "pm")
        return after + (_read_number(fields, "h", 1, 12) % 12 if "h" in fields else _read_number(fields, "K", 0, 11))
    if "k" in fields:
        return _read_number(fields, "k", 1, 24) % 24
    return _read_number(fields, "H", 0, 23)


_NAMES: Final = {"y": "years", "D": "days", "h": "hours", "K": "hours", "k": "hours", "H": "hours", "m": "minutes",
                 "s": "seconds"}  # fmt: skip


def _read_number(fields: dict[str, str], letter: str, least: int, most: int) -> int:
    number = int(fields.get(letter, least))
    if not least <= number <= most:
        lowest = str(least).zfill(len(fields[letter]))
        raise ValueError(f"its {_NAMES[letter]} are {fields[letter]}, expected {lowest} to {most}")
    return number


def _read_offset(text: str) -> timedelta:
    if text in "Zz":
        return timedelta(0)
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError(f"there is no offset {text}")
    return (-1 if text[0] == "-" else 1) * timedelta(hours=hours, minutes=minutes)


_WRITTEN: Final[dict[str, Callable[[datetime], str]]] = {
    "y": lambda at: str(at.year),
    "M": lambda at: str(at.month),
    "d": lambda at: str(at.day),
    "D": lambda at: str(at.timetuple().tm_yday),
    "E": lambda at: str(at.weekday()),
    "a": lambda at: "pm" if at.hour >= _MIDDAY else "am",
    "H": lambda at: str(at.hour),
    "h": lambda at: str((at.hour + 11) % 12 + 1),
    "K": lambda at: str(at.hour % 12),
    "k": lambda at: str((at.hour + 23) % 24 + 1),
    "m": lambda at: str(at.minute),
    "s": lambda at: str(at.second),
    "S": lambda at: f"{at.microsecond:06}".rstrip("0"),
}


def _simplify(letter: str, text: str) -> str:
    """Return a field's text as ``_WRITTEN`` writes it."""
    if text.isdigit():
        return text[:6].rstrip("0") if letter == "S" else text.lstrip("0") or "0"
    if letter == "M":
        return str(_find_month(text))
    if letter == "E":
        return str(next(number for number, day in enumerate(_DAYS) if day.startswith(text.lower())))
    return text.lower()


def to_utc(moment: Moment, zone: str) -> datetime:
    """Return the moment as UTC without a zone; one without an offset is of ``zone``.

    ``ValueError`` where the local time does not exist or comes twice there, or the result is outside 0001 to 9999.
    """
    offset, name = moment.offset, moment.zone or zone
    if offset is None or moment.zone:
        offsets = _list_offsets(moment.local, name)
        if offset is not None and offset not in offsets:
            raise ValueError(f"its offset is not that of {name}")
        if offset is None and offsets[0] > offsets[1]:
            raise ValueError(f"this local time comes twice in {name}: an offset would say which")
        if offset is None and offsets[0] < offsets[1]:
            raise ValueError(f"this local time does not exist in {name}: its clocks were put forward")
        offset = offsets[0] if offset is None else offset
    try:
        return moment.local - offset
    except OverflowError:
        raise ValueError("it is outside the years 0001 to 9999 in UTC") from None


def _list_offsets(local: datetime, zone: str) -> tuple[timedelta, timedelta]:
    """Return the zone's offset before and after a change of its clocks at this local time, the same twice elsewhere."""
    if zone in ("UTC", "Z"):
        return timedelta(0), timedelta(0)
    if re.fullmatch(r"[+-][0-9]{2}:[0-9]{2}", zone):
        return _read_offset(zone), _read_offset(zone)
    try:
        earlier, later = (local.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset() for fold in (0, 1))
    except (KeyError, OSError, ValueError):
        raise ValueError(f"there is no zone {zone!r}") from None
    assert earlier is not None
    assert later is not None
    return earlier, later
