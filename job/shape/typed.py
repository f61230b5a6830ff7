"""Columns of one kind out of JSON values or texts: whole where all of them fit, one by one where some do not."""

import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any, Final

import msgspec
import pyarrow as pa

from job.collection import Kind
from job.types import UTC_MICROS

NULL: Final = b"null"
ARROW: Final = {
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: UTC_MICROS,
    Kind.TIME: pa.time64("us"),
    Kind.BINARY: pa.binary(),
    Kind.TEXT_INTEGER: pa.int64(),
    Kind.TEXT_NUMBER: pa.float64(),
    Kind.JSON: pa.string(),
    Kind.OBJECT: pa.string(),
    Kind.MAP: pa.string(),
    Kind.ARRAY: pa.string(),
}
"""The type of each kind's column; what is no scalar is written as JSON text."""

_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")
_TIME: Final = re.compile(r"(\d\d:\d\d(?::\d\d)?)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)?")
_MICROS: Final = 6
_DAY: Final = 24 * 60 * 60 * 1_000_000
_LONGEST: Final = 40
"""Characters of an integer that can still fit 64 bits, with room for zeros."""


class BadValueError(ValueError):
    """A value that its column cannot hold: its position, and why."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(reason)
        self.position = position
        self.reason = reason


def from_json(kind: Kind, raws: Sequence[bytes]) -> tuple[pa.Array, int]:
    """The column of JSON values, and how many timestamps and times were cut to microseconds."""
    if not kind.scalar:
        return pa.array([None if raw == NULL else compact(raw) for raw in raws], pa.string()), 0
    if kind in _NATIVE:
        return _native(kind, raws), 0
    try:
        texts = msgspec.json.decode(_list(raws), type=list[str | None])
    except msgspec.MsgspecError:
        texts = _each(raws, lambda raw: msgspec.json.decode(raw, type=str | None))
    return from_texts(kind, pa.array(texts, pa.string()))


def from_texts(kind: Kind, texts: pa.Array) -> tuple[pa.Array, int]:
    """The same of texts, for the kinds that JSON writes as strings."""
    if kind is Kind.STRING:
        return texts, 0
    t = ARROW[kind]
    if kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TEXT_INTEGER, Kind.TEXT_NUMBER):
        try:
            return texts.cast(t), 0
        except pa.ArrowInvalid:
            pass
    found = _each(texts.to_pylist(), lambda text: None if text is None else _PARSED[kind](text))
    return pa.array([None if each is None else each[0] for each in found], t), sum(
        bool(each and each[1]) for each in found
    )


def compact(raw: bytes) -> str:
    """JSON text without white space, its numbers and the order of its members as they were."""
    return msgspec.json.format(raw, indent=-1).decode()


def _native(kind: Kind, raws: Sequence[bytes]) -> pa.Array:
    """Numbers and booleans."""
    try:
        return pa.array(_NATIVE[kind].decode(_list(raws)), ARROW[kind])
    except (msgspec.MsgspecError, OverflowError, pa.ArrowInvalid):
        one = {Kind.INTEGER: _integer, Kind.NUMBER: _number, Kind.BOOLEAN: _boolean}[kind]
        return pa.array(_each(raws, one), ARROW[kind])


_NATIVE: Final[dict[Kind, Any]] = {
    Kind.INTEGER: msgspec.json.Decoder(list[int | None]),
    Kind.NUMBER: msgspec.json.Decoder(list[float | None]),
    Kind.BOOLEAN: msgspec.json.Decoder(list[bool | None]),
}


def _list(raws: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(raws) + b"]"


def _each(values: Sequence[Any], convert: Callable[[Any], Any]) -> list[Any]:
    found = []
    for position, value in enumerate(values):
        try:
            found.append(convert(value))
        except (ValueError, ArithmeticError) as error:
            raise BadValueError(position, str(error)) from error
    return found


def _integer(raw: bytes) -> int | None:
    """JSON Schema takes ``1.0`` for an integer too."""
    if raw == NULL:
        return None
    exact = Decimal(_numeral(raw))
    if exact.adjusted() > _LONGEST or exact != exact.to_integral_value():
        raise ValueError("it is no whole number of 64 bits")
    return _long(int(exact))


def _number(raw: bytes) -> float | None:
    if raw == NULL:
        return None
    found = float(_numeral(raw))
    if found in (float("inf"), float("-inf")):
        raise ValueError("it is beyond what a double holds")
    return found


def _boolean(raw: bytes) -> bool | None:
    if raw not in (b"true", b"false", NULL):
        raise ValueError("it is no boolean")
    return None if raw == NULL else raw == b"true"


def _numeral(raw: bytes) -> str:
    if not raw[:1].isdigit() and not raw.startswith(b"-"):
        raise ValueError("it is no number")
    return raw.decode()


def _long(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise ValueError("it is no whole number of 64 bits")
    return value


Parsed = tuple[Any, bool]
"""A value, and whether it was cut to microseconds."""


def _timestamp(text: str) -> Parsed:
    found = _STAMP.fullmatch(text)
    if found is None:
        raise ValueError("it is no RFC 3339 timestamp with an offset")
    fraction, cut = _micros(found[3])
    stamp = datetime.fromisoformat(f"{found[1]}T{found[2]}.{fraction}{found[4].upper()}")
    return stamp.astimezone(UTC), cut


def _time(text: str) -> Parsed:
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("it is no RFC 3339 time")
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
    return datetime.strptime(text, "%Y-%m-%d").date(), False


_PARSED: Final[dict[Kind, Callable[[str], Parsed]]] = {
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.TIME: _time,
    Kind.BINARY: lambda text: (b64decode(text, validate=True), False),
    Kind.TEXT_INTEGER: lambda text: (_long(int(text)), False),
    Kind.TEXT_NUMBER: lambda text: (float(text), False),
}
