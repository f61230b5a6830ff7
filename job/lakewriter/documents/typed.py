"""Columns of one kind out of JSON values or texts: whole where all of them fit, one by one where some do not."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.column_types import UTC_MICROS
from lakewriter.documents.nesting import is_too_deep, too_deep
from lakewriter.documents.string_formats import FORMS, PARSED, Parsed, double, long
from lakewriter.spec.collection import Kind

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
    Kind.MIXED_INTEGER: pa.int64(),
    Kind.MIXED_NUMBER: pa.float64(),
    Kind.JSON: pa.string(),
    Kind.UNTYPED: pa.string(),
    Kind.OBJECT: pa.string(),
    Kind.MAP: pa.string(),
    Kind.ARRAY: pa.string(),
    Kind.VALUE: pa.string(),
}
"""The type of each kind's column; what is no scalar is written as JSON text."""

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
    if kind is Kind.VALUE:
        return pa.array([None if raw == NULL else _plain(raw) for raw in raws], pa.string()), 0
    if not kind.scalar:
        return pa.array([None if raw == NULL else compact(raw) for raw in raws], pa.string()), 0
    if kind in _NATIVE:
        return _native(kind, raws), 0
    if kind in _MIXED:
        return pa.array(_each(raws, _MIXED[kind]), ARROW[kind]), 0
    try:
        texts = msgspec.json.decode(_list(raws), type=list[str | None])
    except msgspec.MsgspecError:
        texts = _each(raws, lambda raw: msgspec.json.decode(raw, type=str | None))
    return from_texts(kind, pa.array(texts, pa.string()))


def from_texts(kind: Kind, texts: pa.Array) -> tuple[pa.Array, int]:
    """The same of texts, for scalar kinds."""
    if kind is Kind.STRING:
        return texts, 0
    kind = _AS_TEXT.get(kind, kind)
    whole = _whole(kind, texts) if kind in _BY_ARROW else None
    if whole is not None:
        return whole, 0
    found = _each(texts.to_pylist(), lambda text: None if text is None else PARSED[kind](text))
    return pa.array([None if each is None else each[0] for each in found], ARROW[kind]), sum(
        bool(each and each[1]) for each in found
    )


def from_nested_texts(kind: Kind, texts: pa.Array) -> tuple[pa.Array, int]:
    """The column of objects or arrays that a source has as JSON text."""
    raws = [NULL if text is None else text.strip().encode() for text in texts.to_pylist()]

    def check(raw: bytes) -> None:
        if is_too_deep(raw):
            raise ValueError(too_deep())
        try:
            _NESTED[kind].decode(raw)
        except msgspec.MsgspecError as error:
            raise ValueError(f"it is no JSON text of one ({error})") from error

    _each(raws, check)
    return from_json(kind, raws)


_NESTED: Final[dict[Kind, Any]] = {
    Kind.OBJECT: msgspec.json.Decoder(dict[str, msgspec.Raw] | None),
    Kind.MAP: msgspec.json.Decoder(dict[str, msgspec.Raw] | None),
    Kind.ARRAY: msgspec.json.Decoder(list[msgspec.Raw] | None),
}
_AS_TEXT: Final = {
    Kind.INTEGER: Kind.TEXT_INTEGER,
    Kind.MIXED_INTEGER: Kind.TEXT_INTEGER,
    Kind.NUMBER: Kind.TEXT_NUMBER,
    Kind.MIXED_NUMBER: Kind.TEXT_NUMBER,
}
_BY_ARROW: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TEXT_INTEGER, Kind.TEXT_NUMBER)


def _whole(kind: Kind, texts: pa.Array) -> pa.Array | None:
    """The column by Arrow's cast, or None where a text has not the kind's form, or Arrow cannot read it."""
    if pc.all(pc.match_substring_regex(texts, f"^(?:{FORMS[kind]})$")).as_py() is False:
        return None
    try:
        found = texts.cast(ARROW[kind])
    except pa.ArrowInvalid:
        return None
    # Arrow makes an infinity of a number that is too large.
    return None if kind is Kind.TEXT_NUMBER and pc.any(pc.is_inf(found)).as_py() else found


def compact(raw: bytes) -> str:
    """JSON text without white space, its numbers and the order of its members as they were."""
    return msgspec.json.format(raw, indent=-1).decode()


def _plain(raw: bytes) -> str:
    """A string, number or boolean as JSON text: a string with no more escapes than it needs, so that one value has one
    text; a number with its digits."""
    if b"\\" not in raw:
        return raw.decode()
    try:
        return json.dumps(msgspec.json.decode(raw, type=str), ensure_ascii=False)
    except msgspec.MsgspecError:
        # Half of a pair: there is no character for it, and the escape says what the source wrote.
        return raw.decode()


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
    return long(int(exact))


def _number(raw: bytes) -> float | None:
    if raw == NULL:
        return None
    return double(float(_numeral(raw)))


def _boolean(raw: bytes) -> bool | None:
    if raw not in (b"true", b"false", NULL):
        raise ValueError("it is no boolean")
    return None if raw == NULL else raw == b"true"


def _numeral(raw: bytes) -> str:
    if not raw[:1].isdigit() and not raw.startswith(b"-"):
        raise ValueError("it is no number")
    return raw.decode()


def _mixed(raw: bytes, parsed: Callable[[str], Parsed], number: Callable[[bytes], Any]) -> Any:
    """A number, or one in a string."""
    return parsed(msgspec.json.decode(raw, type=str))[0] if raw.startswith(b'"') else number(raw)


_MIXED: Final[dict[Kind, Callable[[bytes], Any]]] = {
    Kind.MIXED_INTEGER: partial(_mixed, parsed=PARSED[Kind.TEXT_INTEGER], number=_integer),
    Kind.MIXED_NUMBER: partial(_mixed, parsed=PARSED[Kind.TEXT_NUMBER], number=_number),
}
