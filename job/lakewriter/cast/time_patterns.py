"""Patterns of dates and times in Spark's letters.

https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html lists the letters; what the table here does not have
is refused by name. Each field that a text has is compared with the value that comes out.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from lakewriter.cast.spelling_table import STRICT, MisfitError
from lakewriter.cast.text_moments import EPOCH, MIDDAY, MONTHS, Moment, find_month, make_moment

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
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
    | {length * letter: "|".join(name[:3] for name in MONTHS) for letter in "ML" for length in (3,)}
    | {length * letter: "|".join(MONTHS) for letter in "ML" for length in (4,)}
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
        """Read ``text``; raise ``MisfitError`` if it is not of this pattern, or no such moment."""
        match = self._regex.fullmatch(text)
        if match is None:
            raise MisfitError(f"it is not of the pattern {self.pattern}")
        given = [pair for pair in zip(self._letters, match.groups(), strict=True) if pair[1] is not None]
        moment = make_moment(dict(given), STRICT)
        local = EPOCH + timedelta(microseconds=moment.local)
        for letter, part in given:
            if letter in _WRITTEN and _WRITTEN[letter](local) != _simplify(letter, part):
                raise MisfitError(f"{part!r} in it does not agree with its other parts")
        letters = [letter for letter, _ in given if letter in "XV"]
        if len(set(letters)) < len(letters):
            raise MisfitError("it has an offset twice")
        return moment

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


_WRITTEN: Final[dict[str, Callable[[datetime], str]]] = {
    "y": lambda at: str(at.year),
    "M": lambda at: str(at.month),
    "d": lambda at: str(at.day),
    "D": lambda at: str(at.timetuple().tm_yday),
    "E": lambda at: str(at.weekday()),
    "a": lambda at: "pm" if at.hour >= MIDDAY else "am",
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
        return str(find_month(text))
    if letter == "E":
        return str(next(number for number, day in enumerate(_DAYS) if day.startswith(text.lower())))
    return text.lower()
