"""Dates and times in text as Airbyte's connector reads them: its own two patterns, run by a real JDK.

The patterns are those of TemporalFormatters.kt of the connector's CDK (airbyte-cdk/bulk/core/load), and their use is
that of its AirbyteValueCoercer.kt. Each difference is named here, and is a row of docs/guide-airbyte.md, "Differences".
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import pytest

from lakewriter.cast.kind_values import parse_text
from lakewriter.cast.spelling_table import LENIENT, MisfitError
from lakewriter.spec.collection import Kind

PATTERNS = (
    "[yyyy][yy]['-']['/']['.'][' '][MMM][MM][M]['-']['/']['.'][' '][dd][d][[' '][G]][[' ']['T']HH:mm[':'ss[.][SSSSSS]"
    "[SSSSS][SSSS][SSS][' '][z][zzz][Z][O][x][XXX][XX][X][[' '][G]]]]",
    "HH:mm[':'ss[.][SSSSSS][SSSSS][SSSS][SSS][' '][z][zzz][Z][O][x][XXX][XX][X]]",
)
PROGRAM = Path(__file__).with_name("ConnectorTimes.java")
MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.LOCAL_TIMESTAMP)
TIMES = (Kind.TIME, Kind.LOCAL_TIME)

DAYS = [
    "2024-01-15", "2024/01/15", "2024.01.15", "2024 01 15", "2024-1-5", "2024/1/15", "2024.01.5", "24-01-15", "24/1/5",
    "99.12.31", "00-01-01", "24 01 15", "240115", "24115", "2024 Jan 15", "2024-Jan-15", "2024Jan15", "24 Jan 15",
    "2024-Feb-29", "2023-02-29", "2024-02-30", "2024-04-31", "2024-01-32", "2024-13-01", "2024-00-10", "2024-01-00",
    "0000-01-01", "0001-01-01", "9999-12-31", "10000-01-01", "2024", "2024-01", "20240115", "1705311000", "15-01-2024",
    "01/15/2024", "15 Jan 2024", "Jan 15, 2024", "2024 January 15", "2024-jan-15", "2024-JAN-15", "2024-/01.15",
    "2024- 01- 15", " 2024-01-15", "2024-01-15 ", "2024--01-15", "2024_01_15", "+2024-01-15", "-2024-01-15",
    "2024-01-15 BC", "0044-03-15BC", "2024-01-15 AD", "2024-W03-1", "2024-015", "not a date", "",
]  # fmt: skip
JOINS = [" ", "T", "t", "  ", " T", "", "T ", "_", "-"]
CLOCKS = [
    "09:30:00", "09:30", "9:30:00", "00:00:00", "23:59:59", "24:00", "24:00:00", "24:00:00.000", "24:00:01", "25:00:00",
    "12:60:00", "12:00:60", "12:00:00.", "12:00:00.1", "12:00:00.12", "12:00:00.123", "12:00:00.1234",
    "12:00:00.12345", "12:00:00.123456", "12:00:00.1234567", "12:00:00.000000000", "12:00:00.123456789",
    "12:00:00,123", "12:00:00123", "12:00:00 ", "12", "12:00:", "093000", "12:00:00 AM",
]  # fmt: skip
ZONES = [
    "", "Z", " Z", "z", "UTC", " UTC", " UT", " GMT", " GMT0", " utc", "+01", "+0130", "+01:30", " +01:30", " -08",
    "-0800", "-08:00", "+01:30:15", "+013015", "+1", "+1:30", "+18:00", "+18:30", "-19:00", "+14:00", "-00:00",
    " UTC+1", " UTC+01", " UTC+0100", " UTC+01:00", " GMT-3", " GMT-03", " GMT-03:00", "GMT+07", " UT+02:00", "PST",
    " PST",
    " PDT", " EST", " EDT", " CET", " CEST", " WET", " WEST", " MSK", " SGT", " ART", " PT", " ET", " CT", " AKST",
    " HST", " IST", " BST", " MT", " JST", " KST", " NZDT", " AEST", " BRT", " WIB", " ChST", " SAST", " EAT", " Japan",
    " Cuba", " EST5EDT", " W-SU", " GB-Eire", " NZ-CHAT", " Zulu", " Europe/Paris", " America/New_York",
    " America/Argentina/Buenos_Aires", " US/Pacific", " Asia/Kolkata", " Foo/Bar", " FOO", " pst", " Europe/Nowhere",
    " PST BC", "Z BC", " AD", "BC", "[Europe/Paris]", "+01:00[Europe/Paris]", " Etc/UTC",
]  # fmt: skip
SUMMER = ["2024-07-15", "2024-03-10", "2024-11-03", "1970-01-01"]
AT_CHANGES = ["02:30:00", "01:30:00", "00:00:00"]


def list_texts() -> list[tuple[Kind, str]]:
    """Each kind with the texts that it is to read: every form once with usual others, and a thousand of all."""
    usual = "2024-01-15", " ", "09:30:00"
    moments = list(DAYS)
    moments += [day + join + clock for day, join, clock in product(DAYS, [" ", "T"], ["09:30:00", "24:00"])]
    moments += [usual[0] + join + clock for join, clock in product(JOINS, CLOCKS)]
    moments += [usual[0] + join + usual[2] + zone for join, zone in product([" ", "T"], ZONES)]
    moments += [day + " " + clock + zone for day, clock, zone in product(SUMMER, AT_CHANGES, ZONES)]
    random = Random(63)
    moments += ["".join(map(random.choice, (DAYS, JOINS, CLOCKS, ZONES))) for _ in range(1000)]
    moments += [mutate(random, random.choice(moments)) for _ in range(500)]
    times = [clock + zone for clock, zone in product(CLOCKS, ZONES)]
    pairs = [*product(MOMENTS, moments), *product(TIMES, times)]
    return [(kind, text) for kind, text in dict.fromkeys(pairs) if not re.search(r"[\t\n\r]", text)]


def mutate(random: Random, text: str) -> str:
    """``text`` with one character changed, added or taken out."""
    at = random.randrange(len(text) + 1)
    return (
        text[:at] + random.choice(["", " ", "-", ":", "0", "1", "5", "T", "Z", "."]) + text[at + random.randrange(2) :]
    )


@cache
def read_by_java(texts: tuple[tuple[Kind, str], ...]) -> tuple[int | None, ...]:
    """What the connector's formatters make of each text; the test is skipped where no JDK is."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java is on the PATH: the connector's patterns need a JDK")
    command = [java, "-Duser.language=en", "-Duser.country=US", str(PROGRAM), *PATTERNS]
    lines = "".join(f"{kind.value}\t{text}\n" for kind, text in texts)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, encoding="utf-8")
    if done.returncode and "jdk.compiler" in done.stderr:
        pytest.skip(f"{java} is of a JRE, which compiles nothing: the connector's patterns need a JDK")
    assert done.returncode == 0, done.stderr
    return tuple(None if line == "-" else int(line) for line in done.stdout.splitlines())


def read_here(kind: Kind, text: str) -> int | None:
    try:
        value, _ = parse_text(kind, text, LENIENT)
    except MisfitError:
        return None
    assert isinstance(value, int)
    return value


ZONED = (Kind.TIMESTAMP, Kind.TIME)
_PREFIXED = re.compile(r"(?:UTC?|GMT)[+-]\d{2}(?!:)")
_NAME = re.compile(r"\d\.? ?([A-Z][A-Za-z0-9_/+-]*)(?: ?(?:AD|BC))? ?$")


def explain(kind: Kind, text: str, theirs: int | None, here: int | None) -> str:
    """Name the row of the guide that says why both differ; blank if none does."""
    if theirs is None:
        return "read here only"
    if here is None:
        return next((row for row, is_it in NULL_HERE.items() if is_it(kind, text)), "")
    return next((row for row, is_it in OTHER_VALUE.items() if is_it(kind, text, here - theirs)), "")


def is_ambiguous(text: str) -> bool:
    """Whether it ends in an abbreviation of several meanings."""
    name = _NAME.search(text)
    return name is not None and LENIENT.abbreviations.get(name[1], "") is None


NULL_HERE: dict[str, Callable[[Kind, str], bool]] = {
    "a zone behind a zone": lambda _, text: re.search(r"[0-9 ]Z[A-Z]|[A-Z]Z$", text) is not None,
    "zones of several meanings": lambda kind, text: kind in ZONED and is_ambiguous(text),
    "zones named beside a time of day alone": lambda kind, text: kind is Kind.TIME and _NAME.search(text) is not None,
    "years after 9999": lambda _, text: text.startswith(("9999-12-31", "10000")),
    "days that a month does not have": lambda _, text: re.search(r"(?:02|Feb).*(?:29|30)|04.*31", text) is not None,
}
OTHER_VALUE: dict[str, Callable[[Kind, str, int], bool]] = {
    "zones such as GMT+07": lambda kind, text, _: kind is Kind.LOCAL_TIMESTAMP and _PREFIXED.search(text) is not None,
    "local times that a zone's clock skips": lambda kind, text, ahead: (
        kind is Kind.LOCAL_TIMESTAMP and "2024-03-10" in text and ahead == -3_600_000_000
    ),
    "zones named beside a time of day alone": lambda kind, text, _: (
        kind is Kind.TIME and re.search(r"(?:UTC?|GMT)[+-]", text) is not None
    ),
}


def test_values_are_those_of_the_connector():
    texts = list_texts()
    assert len(texts) > 2000
    compared = zip(texts, read_by_java(tuple(texts)), strict=True)
    differing = [(kind, text, theirs, here) for (kind, text), theirs in compared
                 if (here := read_here(kind, text)) != theirs]  # fmt: skip
    unexplained = [case for case in differing if not explain(*case)]
    assert unexplained == [], Counter(kind for kind, *_ in unexplained)
