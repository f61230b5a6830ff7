"""Parse text and JSON numbers into values: dates, times, timestamps, numbers, booleans and base64, by a named grammar.

Dates are whole days, and times and timestamps whole microseconds, since midnight and since 1970. Arrow and Python each
read more forms than these grammars, and not the same ones: by them a value would be taken or refused for what its
neighbours are.
"""

import math
import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.documents.time_zones import AMBIGUOUS, Region, find_region
from lakewriter.documents.types import ARROW
from lakewriter.spec.collection import Kind

NULLED, TRUNCATED = "NULLED", "TRUNCATED"
TOO_LARGE: Final = "DESTINATION_FIELD_SIZE_LIMITATION"
NO_FIT: Final = "DESTINATION_SERIALIZATION_ERROR"
"""Changes and their reasons as Airbyte's protocol names them and its S3 destination writes them: it gives the size only
for integers beyond 64 bits, and has no entries with DESTINATION_TYPECAST_ERROR, which the protocol also names."""
KEY_TWICE: Final = "SOURCE_SERIALIZATION_ERROR"
"""The reason for a value that is left out because its object has the key again: the last value of a key counts. The
protocol names it, and nothing else here gives it."""

CUT: Final = "to the microsecond"
CUT_TO_DAY: Final = "to the day"
"""What a report says of times that are finer than their column: no change has this reason."""


class ParseError(ValueError):
    """Text that is no value of its kind; ``reason`` is the protocol's."""

    def __init__(self, message: str, reason: str = NO_FIT) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Grammar:
    """The forms of integers in strings, and of dates and times, as patterns with the groups ``y``, ``m``, ``d`` (each
    with a number), ``h``, ``min``, ``s``, ``f`` and ``zone``, and what a message says of them."""

    date: re.Pattern[str]
    timestamp: re.Pattern[str]
    time: re.Pattern[str]
    names: tuple[str, str, str]
    longest_offset: int
    """An offset has at most so many seconds, if it counts: a local value keeps its clock in any zone."""
    integer: re.Pattern[str]
    """An integer in a string fits this pattern, with its digits as ``whole``."""
    ends_at_24: bool = False
    """``24:00`` is the end of a day."""


_RFC_DAY: Final = r"(?P<y1>[0-9]{4})-(?P<m1>[0-9]{2})-(?P<d1>[0-9]{2})"
_RFC_CLOCK: Final = r"(?P<h>[0-9]{2}):(?P<min>[0-9]{2})"
_RFC_FRACTION: Final = r"(?:\.(?P<f>[0-9]+))?"
_RFC_ZONE: Final = r"(?P<zone>[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
RFC_3339: Final = Grammar(
    re.compile(_RFC_DAY),
    re.compile(rf"{_RFC_DAY}[Tt ]{_RFC_CLOCK}:(?P<s>[0-9]{{2}}){_RFC_FRACTION}{_RFC_ZONE}"),
    re.compile(rf"{_RFC_CLOCK}(?::(?P<s>[0-9]{{2}}))?{_RFC_FRACTION}{_RFC_ZONE}?"),
    ("a date such as 2024-01-15", "an RFC 3339 timestamp with an offset", "an RFC 3339 time"),
    24 * 3600 - 1,
    # JSON Schema takes 1.0 for an integer.
    re.compile(r"[+-]?(?P<whole>[0-9]+)(?:\.0+)?"),
)
"""The forms of JSON Schema's formats, which a collection's schema names; of a time, seconds and zone may be left out.

See: https://json-schema.org/draft/2020-12/json-schema-validation#name-dates-times-and-duration
"""

_MARK: Final = r"-?/?\.? ?"
_GAP: Final = r"(?:[-/. ]|, )"
_MONTH: Final = r"(?P<{0}>[A-Za-z]{{3,9}})\.?"
_DAY: Final = (
    # The connector's form. Its parts are atomic, as Java goes back in none: four digits are a year, never a date.
    rf"(?:(?P<y1>(?>\d{{4}}(?!\d)|\d{{2}})){_MARK}(?P<m1>[A-Z][a-z]{{2}}|(?>\d{{2}}|\d)){_MARK}(?P<d1>(?>\d{{2}}|\d))"
    rf"|(?P<y2>\d{{4}}){_GAP}{_MONTH.format('m2')}{_GAP}(?P<d2>\d{{1,2}})"
    rf"|{_MONTH.format('m3')}{_GAP}(?P<d3>\d{{1,2}}){_GAP}(?P<y3>\d{{4}})"
    rf"|(?P<d4>\d{{1,2}}){_GAP}{_MONTH.format('m4')}{_GAP}(?P<y4>\d{{4}}))"
)
_CLOCK: Final = r"(?P<h>\d{1,2}):(?P<min>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d*)|(?P<g>\d{3,6}))?)?"
_OFFSETS: Final = r"[Zz]|(?:UTC?|GMT)?[+-]\d{1,2}(?::?\d{2}|:\d{2}:\d{2})?|UTC?|GMT"
_ZONE: Final = rf"(?: ?(?P<zone>{_OFFSETS}|(?!(?:AD|BC)\s*\Z)[A-Z][A-Za-z0-9_+-]*?(?:/[A-Za-z0-9_+-]+?)*))?"
_ERA: Final = r"(?: ?(?P<{0}>AD|BC))?"
_BEFORE_CLOCK: Final = r"(?: *[Tt]| +|(?=\d{2}:))"
_MOMENT: Final = re.compile(
    rf"\s*(?a:{_DAY}{_ERA.format('era1')}(?:{_BEFORE_CLOCK}{_CLOCK}{_ZONE}{_ERA.format('era2')})?)\s*"
)
LENIENT: Final = Grammar(
    _MOMENT,
    _MOMENT,
    re.compile(rf"\s*(?a:{_CLOCK}{_ZONE})\s*"),
    ("a date", "a date with a time", "a time of day"),
    # Java's offsets end there, and so do those that the vendor's connector takes.
    18 * 3600,
    re.compile(r"[+-]?(?P<whole>[0-9]+)"),
    ends_at_24=True,
)
"""The forms that Airbyte's sources give, with all that its destinations take:

date    2021-01-02  2021/1/2  2021 01 02  21-01-02  210102  2021 Jan 2  Jan 2, 2021  2-January-2021
time    3:04  03:04:05  03:04:05.678; 24:00 is the midnight of the next day
both    one behind the other, with a space or T between; a date alone is its midnight, and a date of both is their date
zone    nothing, Z, UTC, UT, GMT, +01, +0130, +01:30, +01:30:15, UTC+1, GMT-03:00, PST, Japan, Europe/Paris
era     AD or BC behind the date, or at the end

See: https://docs.airbyte.com/understanding-airbyte/supported-data-types
"""

_TEXT_INTEGER: Final = r"[+-]?[0-9]+"
_TEXT_NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity"
_USUAL_DAY: Final = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_USUAL_CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_USUAL_MOMENT: Final = rf"{_USUAL_DAY}[T ]{_USUAL_CLOCK}"
_USUAL: Final = {
    Kind.DATE: _USUAL_DAY,
    Kind.TIMESTAMP: _USUAL_MOMENT + r"(?:Z|[+-](?:0[0-9]|1[0-8]):[0-5][0-9])",
    Kind.LOCAL_TIMESTAMP: _USUAL_MOMENT,
    Kind.TIME: _USUAL_CLOCK + "Z?",
    Kind.LOCAL_TIME: _USUAL_CLOCK + "Z?",
    Kind.TEXT_INTEGER: _TEXT_INTEGER,
    Kind.TEXT_NUMBER: _TEXT_NUMBER,
}
"""Forms that Arrow reads, all values at once, as every grammar does."""

_DURATION: Final = re.compile(
    r"(?a:P(?:(?P<y>\d+)Y)?(?:(?P<m>\d+)M)?(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<min>\d+)M)?(?:(?P<s>\d+)(?:[.,](?P<f>\d+))?S)?)?)"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_OFFSET: Final = re.compile(r"(?:UTC?|GMT)?([+-])(\d{1,2})(?::?(\d{2})(?::(\d{2}))?)?")
_AT_ZERO: Final = ("", "Z", "z", "UTC", "UT", "GMT")
_EPOCH: Final = date(1970, 1, 1).toordinal()
_CYCLE_DAYS: Final = 146_097
_DAY_MICROS: Final = 24 * 3600 * 1_000_000
_FIRST: Final = (date.min.toordinal() - _EPOCH) * _DAY_MICROS
_LAST: Final = (date.max.toordinal() - _EPOCH + 1) * _DAY_MICROS - 1
"""Readers have no timestamps beyond the microseconds of the years 1 to 9999."""
_LONGEST: Final = 40
"""An integer of at most so many digits can still fit 64 bits, with room for zeros."""

Parsed = tuple[Any, bool]
"""A value, and whether digits beyond the microseconds were cut off."""


def parse_usual(kind: Kind, texts: pa.Array) -> pa.Array | None:
    """Return the column by Arrow's cast, None if a text has another form, or Arrow cannot read it."""
    form = _USUAL.get(kind)
    if form is None or pc.all(pc.match_substring_regex(texts, f"^(?:{form})$")).as_py() is False:
        return None
    try:
        values = _cast_texts(kind, texts)
    except pa.ArrowInvalid:
        return None
    if kind is Kind.TIMESTAMP and (pc.max(values).cast(pa.int64()).as_py() or 0) > _LAST:
        return None
    # Arrow makes an infinity of a number that is too large.
    return None if kind is Kind.TEXT_NUMBER and pc.any(pc.is_inf(values)).as_py() else values


def _cast_texts(kind: Kind, texts: pa.Array) -> pa.Array:
    if kind in (Kind.TIME, Kind.LOCAL_TIME):
        # Arrow casts no text to a time.
        texts = pc.binary_join_element_wise("1970-01-01T", pc.utf8_rtrim(texts, "Z"), "")
    elif kind is not Kind.LOCAL_TIMESTAMP:
        return texts.cast(ARROW[kind])
    return texts.cast(pa.timestamp("us")).cast(pa.int64()).cast(ARROW[kind])


def parse_text(kind: Kind, text: str, grammar: Grammar) -> Parsed:
    """Return one value as Arrow's type of the kind takes it; ``ParseError`` if it does not fit."""
    if kind in _BY_GRAMMAR:
        return _BY_GRAMMAR[kind](text, grammar)
    return _PLAIN[kind](text), False


def parse_date(text: str, grammar: Grammar) -> Parsed:
    """Return days since 1970 of a date, or of the date of a local time in any zone; a time of day is cut off."""
    match = _match(grammar.date, text, grammar.names[0])
    micros, _ = _parse_clock(match, grammar) if match.groupdict().get("h") else (0, False)
    _read_region(match, zoned=False)
    days = _count_days(match) + micros // _DAY_MICROS
    if days > date.max.toordinal() - _EPOCH:
        raise ParseError("it is outside the years 1 to 9999")
    return days, bool(micros % _DAY_MICROS)


def parse_timestamp(text: str, grammar: Grammar, *, zoned: bool) -> Parsed:
    """Return microseconds since 1970; with ``zoned`` in UTC, otherwise of the local part, whatever its zone."""
    match = _match(grammar.timestamp, text, grammar.names[1])
    micros, cut = _parse_clock(match, grammar) if match["h"] else (0, False)
    local = _count_days(match) * _DAY_MICROS + micros
    region = _read_region(match, zoned=zoned)
    offset = 0
    if zoned:
        offset = _parse_offset(match, grammar) if region is None else region.find_offset(local)
    whole = local - offset
    if whole > _LAST or (whole < _FIRST and not _is_before_christ(match)):
        raise ParseError("it is outside the years 1 to 9999")
    return whole, cut


def parse_time(text: str, grammar: Grammar, *, zoned: bool) -> Parsed:
    """Return microseconds since midnight; with ``zoned`` in UTC."""
    match = _match(grammar.time, text, grammar.names[2])
    micros, cut = _parse_clock(match, grammar)
    if _read_region(match, zoned=zoned) is not None and zoned:
        raise ParseError(f"it names the time zone {match['zone']!r}, whose offset depends on the day")
    return (micros - (_parse_offset(match, grammar) if zoned else 0)) % _DAY_MICROS, cut


def parse_duration(text: str) -> Parsed:
    """Return Parquet's INTERVAL: months, days and milliseconds, each an unsigned little-endian integer of 32 bits."""
    match = _DURATION.fullmatch(text)
    if match is None or text.endswith(("P", "T")):
        raise ParseError("it is not an ISO 8601 duration")
    counts = {name: int(digits or 0) for name, digits in match.groupdict().items() if name != "f"}
    fraction = match["f"] or ""
    seconds = (counts["h"] * 60 + counts["min"]) * 60 + counts["s"]
    parts = (
        12 * counts["y"] + counts["m"],
        7 * counts["w"] + counts["d"],
        1000 * seconds + int(fraction[:3].ljust(3, "0")),
    )
    if max(parts) >= 2**32:
        raise ParseError("it is longer than an INTERVAL holds", TOO_LARGE)
    return b"".join(part.to_bytes(4, "little") for part in parts), bool(fraction[3:].strip("0"))


def parse_published(text: str) -> int:
    """Return the microseconds since 1970 at which a UUID of version 1 was made."""
    try:
        uuid = UUID(text)
    except ValueError as error:
        raise ParseError("it is not a UUID") from error
    if uuid.version != 1:
        raise ParseError("it is not a UUID of version 1, which has a time")
    # It counts tenths of a microsecond since 15 October 1582.
    return uuid.time // 10 + (date(1582, 10, 15).toordinal() - _EPOCH) * _DAY_MICROS


def parse_json_integer(raw: bytes) -> int:
    """Return the integer of a JSON number; JSON Schema takes ``1.0`` for one too."""
    exact = Decimal(_require_number(raw))
    if exact and exact.adjusted() > _LONGEST:
        raise ParseError(_NO_LONG, TOO_LARGE)
    if exact != exact.to_integral_value():
        raise ParseError(_NO_LONG)
    return _require_long(int(exact))


def parse_json_number(raw: bytes) -> float:
    """Return the double of a JSON number."""
    return _require_double(float(_require_number(raw)))


def parse_json_boolean(raw: bytes) -> bool:
    """Return JSON's true or false."""
    return _parse_boolean(raw.decode(errors="replace"))


def _require_number(raw: bytes) -> str:
    if not raw[:1].isdigit() and not raw.startswith(b"-"):
        raise ParseError("it is not a number")
    return raw.decode()


def _match(pattern: re.Pattern[str], text: str, expected: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ParseError(f"it is not {expected}")
    return match


def _count_days(match: re.Match[str]) -> int:
    number = next(number for number in "1234" if match[f"y{number}"])
    digits, month, day = (match[f"{part}{number}"] for part in "ymd")
    year = int(digits) + (2000 if len(digits) == 2 else 0)
    # Python's dates begin with the year 1; the calendar repeats every 400 years, and 1 BC is the year 0.
    cycles = (year + 399) // 400 if _is_before_christ(match) else 0
    counted = 1 - year + 400 * cycles if cycles else year
    try:
        return date(counted, _parse_month(month), int(day)).toordinal() - _EPOCH - cycles * _CYCLE_DAYS
    except ValueError as error:
        raise ParseError(str(error)) from error


def _is_before_christ(match: re.Match[str]) -> bool:
    groups = match.groupdict()
    return "BC" in (groups.get("era1"), groups.get("era2"))


def _parse_month(text: str) -> int:
    if text.isdigit():
        return int(text)
    low = text.lower()
    return (_MONTHS if len(low) == 3 else _MONTH_NAMES).index(low) + 1


def _parse_clock(match: re.Match[str], grammar: Grammar) -> tuple[int, bool]:
    groups = match.groupdict()
    hours, minutes, seconds = int(groups["h"]), int(groups["min"]), int(groups["s"] or 0)
    fraction = groups["f"] or groups.get("g") or ""
    is_end = grammar.ends_at_24 and hours == 24 and not (minutes or seconds or fraction.strip("0"))
    if (hours > 23 and not is_end) or minutes > 59 or seconds > 59:
        raise ParseError("it has no time of day")
    micros = int(fraction[:6].ljust(6, "0"))
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros, bool(fraction[6:].strip("0"))


def _parse_offset(match: re.Match[str], grammar: Grammar) -> int:
    """Return microseconds east of UTC."""
    zone = _OFFSET.fullmatch(match["zone"] or "")
    if zone is None:
        return 0
    hours, minutes, seconds = int(zone[2]), int(zone[3] or 0), int(zone[4] or 0)
    size = (hours * 60 + minutes) * 60 + seconds
    if size > grammar.longest_offset or max(minutes, seconds) > 59:
        raise ParseError("its offset is beyond any zone's")
    return size * 1_000_000 * (-1 if zone[1] == "-" else 1)


def _read_region(match: re.Match[str], *, zoned: bool) -> Region | None:
    """Return the region that the text names, None for an offset; a name's meaning counts only if ``zoned``."""
    name = match.groupdict().get("zone") or ""
    if name in _AT_ZERO or _OFFSET.fullmatch(name) or (name in AMBIGUOUS and not zoned):
        return None
    try:
        return find_region(name)
    except ValueError as error:
        raise ParseError(str(error)) from error


def _parse_boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ParseError("it is not a boolean")
    return text == "true"


def _parse_binary(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise ParseError(str(error)) from error


def _parse_text_integer(text: str, grammar: Grammar) -> Parsed:
    digits = _match(grammar.integer, text, "a whole number in decimal digits")["whole"].lstrip("0") or "0"
    if len(digits) > _LONGEST:
        raise ParseError(_NO_LONG, TOO_LARGE)
    return _require_long(-int(digits) if text.startswith("-") else int(digits)), False


def _parse_text_number(text: str) -> float:
    number = float(_match(_NUMBER_FORM, text, "a number in decimal digits")[0])
    return number if text.endswith("Infinity") else _require_double(number)


_NUMBER_FORM: Final = re.compile(_TEXT_NUMBER)
_NO_LONG: Final = "it is not a whole number of 64 bits"


def _require_long(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ParseError(_NO_LONG, TOO_LARGE)
    return value


def _require_double(value: float) -> float:
    if math.isinf(value):
        raise ParseError("it is beyond what a double holds", TOO_LARGE)
    return value


_BY_GRAMMAR: Final[dict[Kind, Callable[[str, Grammar], Parsed]]] = {
    Kind.DATE: parse_date,
    Kind.TIMESTAMP: lambda text, grammar: parse_timestamp(text, grammar, zoned=True),
    Kind.LOCAL_TIMESTAMP: lambda text, grammar: parse_timestamp(text, grammar, zoned=False),
    Kind.TIME: lambda text, grammar: parse_time(text, grammar, zoned=True),
    Kind.LOCAL_TIME: lambda text, grammar: parse_time(text, grammar, zoned=False),
    Kind.TEXT_INTEGER: _parse_text_integer,
    Kind.DURATION: lambda text, _: parse_duration(text),
}
_PLAIN: Final[dict[Kind, Callable[[str], Any]]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.BINARY: _parse_binary,
    Kind.PUBLISHED: parse_published,
    Kind.TEXT_NUMBER: _parse_text_number,
}
