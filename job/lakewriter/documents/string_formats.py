"""Values written as text by a format of JSON Schema: each format has one form, and what is not in it is refused.

Arrow and Python each read more forms than these, and not the same ones: by them a value would be taken or refused for
what its neighbours are.
"""

import math
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import Any, Final

from lakewriter.spec.collection import Kind

_ZONE: Final = r"([Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_DAY_OF: Final = r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
FORMS: Final = {
    Kind.BOOLEAN: r"true|false",
    Kind.DATE: _DAY_OF,
    Kind.TIMESTAMP: _DAY_OF + r"[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?" + _ZONE,
    Kind.TIME: r"([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]+))?" + _ZONE + "?",
    Kind.TEXT_INTEGER: r"[+-]?[0-9]+",
    Kind.TEXT_NUMBER: r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|NaN|[+-]?Infinity",
}
_PATTERNS: Final = {kind: re.compile(form) for kind, form in FORMS.items()}
_MICROS: Final = 6
_DAY: Final = 24 * 60 * 60 * 1_000_000

Parsed = tuple[Any, bool]
"""A value, and whether it was cut to microseconds."""


def _formed(kind: Kind, text: str, expected: str) -> re.Match[str]:
    found = _PATTERNS[kind].fullmatch(text)
    if found is None:
        raise ValueError(f"it is no {expected}")
    return found


def _timestamp(text: str) -> Parsed:
    found = _formed(Kind.TIMESTAMP, text, "RFC 3339 timestamp with an offset")
    fraction, cut = _micros(found[3])
    stamp = datetime.fromisoformat(f"{found[1]}T{found[2]}.{fraction}{found[4].upper()}")
    return stamp.astimezone(UTC), cut


def _time(text: str) -> Parsed:
    found = _formed(Kind.TIME, text, "RFC 3339 time")
    fraction, cut = _micros(found[2])
    whole = time.fromisoformat(found[1])
    micros = ((whole.hour * 60 + whole.minute) * 60 + whole.second) * 1_000_000 + int(fraction)
    zone = found[3] or "Z"
    if zone not in ("Z", "z"):
        ahead = (int(zone[1:3]) * 60 + int(zone[4:6])) * 60_000_000
        micros = (micros - ahead if zone[0] == "+" else micros + ahead) % _DAY
    return micros, cut


def _micros(fraction: str | None) -> tuple[str, bool]:
    digits = (fraction or "").ljust(_MICROS, "0")
    return digits[:_MICROS], bool(digits[_MICROS:].strip("0"))


def _date(text: str) -> Parsed:
    return date.fromisoformat(_formed(Kind.DATE, text, "date such as 2024-01-15")[0]), False


def _text_integer(text: str) -> Parsed:
    return long(int(_formed(Kind.TEXT_INTEGER, text, "whole number in decimal digits")[0])), False


def _text_number(text: str) -> Parsed:
    found = float(_formed(Kind.TEXT_NUMBER, text, "number in decimal digits")[0])
    return found if text.endswith("Infinity") else double(found), False


def double(value: float) -> float:
    """``value``, unless it stands for a number that is too large."""
    if math.isinf(value):
        raise ValueError("it is beyond what a double holds")
    return value


def long(value: int) -> int:
    """``value``, unless it has more than 64 bits."""
    if not -(2**63) <= value < 2**63:
        raise ValueError("it is no whole number of 64 bits")
    return value


PARSED: Final[dict[Kind, Callable[[str], Parsed]]] = {
    Kind.BOOLEAN: lambda text: (_formed(Kind.BOOLEAN, text, "boolean")[0] == "true", False),
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIME: _time,
    Kind.BINARY: lambda text: (b64decode(text, validate=True), False),
    Kind.TEXT_INTEGER: _text_integer,
    Kind.TEXT_NUMBER: _text_number,
}
