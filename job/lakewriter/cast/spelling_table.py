"""The spellings of numbers, booleans, dates and times: one table, in which each rule for texts has a name.

STRICT     what ``columns:`` takes, the same for files, databases and messages; dates and times by ISO 8601
RFC_3339   what JSON Schema's formats are, by which Estuary's collections are validated
LENIENT    what Airbyte's sources give and its destinations take

A text is a value by its own spelling alone: Arrow and Python each read more forms than these, and not the same ones, so
that by them a value would be taken or refused for what its neighbours are. Dates and times have groups named by the
letters of Spark's patterns (``y M d H m s S``), ``X`` for an offset, ``V`` for a region and ``G`` for an era.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lakewriter.cast.time_zones import ABBREVIATIONS

_JSON_BOOLEANS: Final = {"true": True, "false": False}
_BOOLEANS: Final = {
    **_JSON_BOOLEANS,
    "t": True,
    "f": False,
    "yes": True,
    "no": False,
    "y": True,
    "n": False,
    "1": True,
    "0": False,
}
_NUMBER: Final = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NAMED: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_SIGNED_NAMES: Final = {**_NAMED, "+Infinity": float("inf")}
_DAY_SECONDS: Final = 24 * 3600


@dataclass(frozen=True)
class Spelling:
    """One rule for texts; each pattern is matched with the whole text."""

    date: re.Pattern[str]
    moment: re.Pattern[str]
    """A date with a time."""
    time: re.Pattern[str] | None
    """A time of day; None if no type of the rule has one."""
    names: Mapping[str, str]
    """What a message calls a ``date``, a ``moment`` and a ``time``."""
    longest_offset: int
    """An offset has at most so many seconds, if it counts: a local value keeps its clock in any zone."""
    integer: re.Pattern[str] = re.compile("[+-]?(?P<whole>[0-9]+)")
    """An integer, with its digits as ``whole``."""
    number: re.Pattern[str] = re.compile(_NUMBER)
    named_numbers: Mapping[str, float] = field(default_factory=lambda: _SIGNED_NAMES)
    booleans: Mapping[str, bool] = field(default_factory=lambda: _JSON_BOOLEANS)
    """In lower case if ``folds_case``: then a text may have any case."""
    folds_case: bool = False
    has_short_years: bool = False
    """A year of two digits is one of this century."""
    ends_at_24: bool = False
    """``24:00`` is the end of a day."""
    abbreviations: Mapping[str, str | None] = field(default_factory=dict)
    """Regions by their abbreviations, None for one of several meanings; any rule takes ``Europe/Paris``."""
    picks_first: bool = False
    """A local time that a region's clock shows twice is the first of the two, and one that it skips is taken by the
    offset before; otherwise both are refused."""


_ISO_DAY: Final = r"(?P<y>[0-9]{4})-(?P<M>[0-9]{2})-(?P<d>[0-9]{2})"
_ISO_CLOCK: Final = r"(?P<H>[0-9]{2}):(?P<m>[0-9]{2})"
_ISO_FRACTION: Final = r"(?:\.(?P<S>[0-9]+))?"
STRICT: Final = Spelling(
    date=re.compile(_ISO_DAY),
    moment=re.compile(
        rf"{_ISO_DAY}(?:[ T]{_ISO_CLOCK}(?::(?P<s>[0-9]{{2}}){_ISO_FRACTION})?"
        r"(?P<X>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
    ),
    time=None,
    names={
        "date": "a date as YYYY-MM-DD; another spelling can be named by format:",
        "moment": "written as YYYY-MM-DD hh:mm:ss",
    },
    longest_offset=_DAY_SECONDS - 60,
    named_numbers=_NAMED,
    booleans=_BOOLEANS,
    folds_case=True,
)
"""A date alone is its midnight, and a time without an offset is of a zone that is set elsewhere."""

_RFC_ZONE: Final = r"(?P<X>[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
RFC_3339: Final = Spelling(
    date=re.compile(_ISO_DAY),
    moment=re.compile(rf"{_ISO_DAY}[Tt ]{_ISO_CLOCK}:(?P<s>[0-9]{{2}}){_ISO_FRACTION}{_RFC_ZONE}"),
    time=re.compile(rf"{_ISO_CLOCK}(?::(?P<s>[0-9]{{2}}))?{_ISO_FRACTION}{_RFC_ZONE}?"),
    names={
        "date": "a date such as 2024-01-15",
        "moment": "an RFC 3339 timestamp with an offset",
        "time": "an RFC 3339 time",
    },
    longest_offset=_DAY_SECONDS - 60,
    # JSON Schema takes 1.0 for an integer.
    integer=re.compile(r"[+-]?(?P<whole>[0-9]+)(?:\.0+)?"),
)
"""The forms of JSON Schema's formats; of a time, seconds and zone may be left out.

See: https://json-schema.org/draft/2020-12/json-schema-validation#name-dates-times-and-duration
"""

_MARK: Final = r"-?/?\.? ?"
_GAP: Final = r"(?:[-/. ]|, )"
_MONTH: Final = r"(?P<{0}>[A-Za-z]{{3,9}})\.?"
_DAY: Final = (
    # The connector's form. Its parts are atomic, as Java goes back in none: four digits are a year, never a date.
    rf"(?:(?P<y1>(?>\d{{4}}(?!\d)|\d{{2}})){_MARK}(?P<M1>[A-Z][a-z]{{2}}|(?>\d{{2}}|\d)){_MARK}(?P<d1>(?>\d{{2}}|\d))"
    rf"|(?P<y2>\d{{4}}){_GAP}{_MONTH.format('M2')}{_GAP}(?P<d2>\d{{1,2}})"
    rf"|{_MONTH.format('M3')}{_GAP}(?P<d3>\d{{1,2}}){_GAP}(?P<y3>\d{{4}})"
    rf"|(?P<d4>\d{{1,2}}){_GAP}{_MONTH.format('M4')}{_GAP}(?P<y4>\d{{4}}))"
)
_CLOCK: Final = r"(?P<H>\d{1,2}):(?P<m>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<S1>\d*)|(?P<S2>\d{3,6}))?)?"
_OFFSETS: Final = r"[Zz]|(?:UTC?|GMT)?[+-]\d{1,2}(?::?\d{2}|:\d{2}:\d{2})?|UTC?|GMT"
_REGION: Final = r"(?!(?:AD|BC)\s*\Z)[A-Z][A-Za-z0-9_+-]*?(?:/[A-Za-z0-9_+-]+?)*"
_ZONE: Final = rf"(?: ?(?:(?P<X>{_OFFSETS})|(?P<V>{_REGION})))?"
_ERA: Final = r"(?: ?(?P<{0}>AD|BC))?"
_BEFORE_CLOCK: Final = r"(?: *[Tt]| +|(?=\d{2}:))"
_MOMENT: Final = re.compile(
    rf"\s*(?a:{_DAY}{_ERA.format('G1')}(?:{_BEFORE_CLOCK}{_CLOCK}{_ZONE}{_ERA.format('G2')})?)\s*"
)
LENIENT: Final = Spelling(
    date=_MOMENT,
    moment=_MOMENT,
    time=re.compile(rf"\s*(?a:{_CLOCK}{_ZONE})\s*"),
    names={"date": "a date", "moment": "a date with a time", "time": "a time of day"},
    # Java's offsets end there, and so do those that the vendor's connector takes.
    longest_offset=18 * 3600,
    has_short_years=True,
    ends_at_24=True,
    abbreviations=ABBREVIATIONS,
    picks_first=True,
)
"""The forms that Airbyte's sources give, with all that its destinations take:

date    2021-01-02  2021/1/2  2021 01 02  21-01-02  210102  2021 Jan 2  Jan 2, 2021  2-January-2021
time    3:04  03:04:05  03:04:05.678; 24:00 is the midnight of the next day
both    one behind the other, with a space or T between; a date alone is its midnight, and a date of both is their date
zone    nothing, Z, UTC, UT, GMT, +01, +0130, +01:30, +01:30:15, UTC+1, GMT-03:00, PST, Japan, Europe/Paris
era     AD or BC behind the date, or at the end

See: https://docs.airbyte.com/understanding-airbyte/supported-data-types
"""


class MisfitError(ValueError):
    """The reason why a text is no value of its type; completes "value 'x': ".

    With ``is_beyond`` it is spelled as one, and the type has no value that is so large or so small.
    """

    def __init__(self, reason: str, *, is_beyond: bool = False) -> None:
        super().__init__(reason)
        self.is_beyond = is_beyond


_LONGEST: Final = 400
"""An integer of more digits than this is beyond every type; Python converts at most 4,300."""


def read_boolean(text: str, spelling: Spelling) -> bool:
    """Return the truth value of a text; raise ``MisfitError`` if it is none."""
    value = spelling.booleans.get(text.lower() if spelling.folds_case and text.isascii() else text)
    if value is None:
        raise MisfitError(f"it is not one of {', '.join(spelling.booleans)}")
    return value


def read_integer(text: str, spelling: Spelling) -> int:
    """Return a whole number, or another one beyond every type for one of very many digits."""
    match = spelling.integer.fullmatch(text)
    if match is None:
        raise MisfitError("it is not a whole number of digits 0 to 9")
    digits = match["whole"].lstrip("0") or "0"
    return int(digits[:_LONGEST]) * (-1 if text[0] == "-" else 1)


def require_number(text: str, spelling: Spelling) -> str:
    """Return a text that is a number in digits, not by name."""
    if spelling.number.fullmatch(text) is None:
        raise MisfitError("it is not a number such as -1234.5 or 1.5e3")
    return text


MORE_THAN_ZERO: Final = re.compile(r"\A[+-]?[0.]*[1-9]")
"""The beginning of a number that is not zero."""

USUAL_DAY: Final = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_USUAL_CLOCK: Final = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
USUAL_TIME: Final = _USUAL_CLOCK + "Z?"
USUAL_LOCAL_MOMENT: Final = rf"{USUAL_DAY}[T ]{_USUAL_CLOCK}"
USUAL_MOMENT: Final = USUAL_LOCAL_MOMENT + r"(?:Z|[+-](?:(?:0[0-9]|1[0-7]):[0-5][0-9]|18:00))"
USUAL_INTEGER: Final = r"[+-]?[0-9]+"
USUAL_NUMBER: Final = _NUMBER + r"|NaN|[+-]?Infinity"
"""Forms that Arrow reads, all values of a column at once, as RFC_3339 and LENIENT do."""

PLAIN_INTEGER: Final = "-?[0-9]+"
PLAIN_NUMBER: Final = _NUMBER
PLAIN_DAY: Final = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_PLAIN_TIME: Final = r"[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
PLAIN_LOCAL_MOMENT: Final = f"{PLAIN_DAY}(?:{_PLAIN_TIME})?"
PLAIN_MOMENT: Final = f"{PLAIN_DAY}(?:{_PLAIN_TIME}(?:Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)?)?"
"""Forms of STRICT that Arrow casts exactly or refuses."""


def find_plain_decimal(precision: int, scale: int) -> str:
    """Return the forms of decimals that Arrow casts exactly or refuses: beyond 38 digits its decimals wrap."""
    whole = precision - scale
    digits = f"[0-9]{{1,{whole}}}" if whole else "0"
    return rf"[+-]?{digits}(?:\.[0-9]{{0,{scale}}}0{{0,{38 - precision}}})?"
