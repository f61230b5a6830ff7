"""Leaf values of documents: whole columns where all of them fit, and one by one where some do not."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.column_types import UTC_MICROS
from lakewriter.documents.document_types import Kind
from lakewriter.documents.times import parse_date, parse_time, parse_timestamp

NULL: Final = msgspec.Raw(b"null")
NULLED, TRUNCATED = "NULLED", "TRUNCATED"
TOO_LARGE: Final = "DESTINATION_FIELD_SIZE_LIMITATION"
NO_FIT: Final = "DESTINATION_TYPECAST_ERROR"
UNREADABLE: Final = "DESTINATION_SERIALIZATION_ERROR"
"""Reasons as Airbyte's protocol names them."""

_INTEGER: Final = re.compile(rb"-?\d+")
_NUMBER: Final = re.compile(rb"-?\d")
_MOST_DIGITS: Final = 40

Raw = bytes | msgspec.Raw


@dataclass(frozen=True)
class Change:
    """Why a value is not what the source gave."""

    change: str
    reason: str


def column(kind: Kind, raws: Sequence[Raw]) -> pa.Array | None:
    """The column of JSON texts, or None where one of them does not fit as it is."""
    try:
        return _COLUMNS[kind](b"[" + b",".join(raws) + b"]")
    except (msgspec.MsgspecError, pa.ArrowException, OverflowError, ValueError):
        return None


def value(kind: Kind, raw: bytes) -> tuple[Any, Change | None]:
    """One value as Arrow's type of the kind takes it: numbers for dates and times."""
    if raw == b"null":
        return None, None
    if kind is Kind.JSON:
        return raw.decode(), None
    if kind is Kind.STRING:
        return _string(raw)
    if kind is Kind.INTEGER:
        return _integer(raw)
    if kind is Kind.NUMBER:
        return _number(raw)
    if kind is Kind.BOOLEAN:
        return (raw == b"true", None) if raw in (b"true", b"false") else (None, Change(NULLED, NO_FIT))
    return _time(kind, raw)


def _string(raw: bytes) -> tuple[Any, Change | None]:
    if not raw.startswith(b'"'):
        return raw.decode(), None
    try:
        return msgspec.json.decode(raw, type=str), None
    except msgspec.MsgspecError:
        return None, Change(NULLED, UNREADABLE)


def _integer(raw: bytes) -> tuple[Any, Change | None]:
    if not _NUMBER.match(raw):
        return None, Change(NULLED, NO_FIT)
    if _INTEGER.fullmatch(raw):
        found = int(raw) if len(raw) <= _MOST_DIGITS else None
    else:
        exact = Decimal(raw.decode())
        if exact.adjusted() > _MOST_DIGITS:
            found = None
        elif exact != exact.to_integral_value():
            return None, Change(NULLED, NO_FIT)
        else:
            found = int(exact)
    if found is None or not -(2**63) <= found < 2**63:
        return None, Change(NULLED, TOO_LARGE)
    return found, None


def _number(raw: bytes) -> tuple[Any, Change | None]:
    if not _NUMBER.match(raw):
        return None, Change(NULLED, NO_FIT)
    found = float(raw)
    if found in (float("inf"), float("-inf")):
        return None, Change(NULLED, TOO_LARGE)
    return found, None


def _time(kind: Kind, raw: bytes) -> tuple[Any, Change | None]:
    text, change = _string(raw) if raw.startswith(b'"') else (None, Change(NULLED, NO_FIT))
    if text is None:
        return None, change
    if kind is Kind.DATE:
        found = parse_date(text)
    elif kind in (Kind.TIME, Kind.TIME_TZ):
        found = parse_time(text, zoned=kind is Kind.TIME_TZ)
    else:
        found = parse_timestamp(text, zoned=kind is Kind.TIMESTAMP_TZ)
    if found is None:
        return None, Change(NULLED, NO_FIT)
    return found[0], Change(TRUNCATED, TOO_LARGE) if found[1] else None


def _strict(kind: Any, t: pa.DataType) -> Any:
    decoder = msgspec.json.Decoder(list[kind])
    return lambda body: pa.array(decoder.decode(body), t)


_texts: Final = _strict(str | None, pa.string())


def _whole_json(body: bytes) -> pa.Array:
    found = [bytes(raw).decode() for raw in msgspec.json.decode(body, type=list[msgspec.Raw])]
    texts = pa.array(found, pa.string())
    return pc.if_else(pc.equal(texts, "null"), pa.scalar(None, pa.string()), texts)


_COLUMNS: Final = {
    Kind.STRING: _texts,
    Kind.BOOLEAN: _strict(bool | None, pa.bool_()),
    Kind.INTEGER: _strict(int | None, pa.int64()),
    Kind.NUMBER: _strict(float | None, pa.float64()),
    Kind.JSON: _whole_json,
    Kind.DATE: lambda body: _texts(body).cast(pa.date32()),
    Kind.TIME: lambda body: _texts(body).cast(pa.time64("us")),
    Kind.TIME_TZ: lambda body: _texts(body).cast(pa.time64("us")),
    Kind.TIMESTAMP: lambda body: _texts(body).cast(pa.timestamp("us")).cast(pa.int64()).cast(UTC_MICROS),
    Kind.TIMESTAMP_TZ: lambda body: _texts(body).cast(UTC_MICROS),
}
