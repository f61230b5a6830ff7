"""Parse text and JSON numbers into values of the kinds of documents, by a named spelling.

Dates are whole days, and times and timestamps whole microseconds, since midnight and since 1970.
"""

import math
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.cast.spelling_table import (
    MORE_THAN_ZERO,
    RFC_3339,
    USUAL_DAY,
    USUAL_INTEGER,
    USUAL_LOCAL_MOMENT,
    USUAL_MOMENT,
    USUAL_NUMBER,
    USUAL_TIME,
    MisfitError,
    Spelling,
    read_boolean,
    read_integer,
    require_number,
)
from lakewriter.cast.strict_cast import cast_matching, leave_out_extremes
from lakewriter.cast.text_moments import DAY, EPOCH, find_offset, read_moment, require_region
from lakewriter.column_types import UTC_MICROS
from lakewriter.spec.collection import Kind

ARROW: Final = {
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.STRING: pa.string(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: UTC_MICROS,
    # Airbyte's Avro has one type for both, timestamp-micros; the local part is kept.
    Kind.LOCAL_TIMESTAMP: UTC_MICROS,
    Kind.TIME: pa.time64("us"),
    Kind.LOCAL_TIME: pa.time64("us"),
    Kind.DURATION: pa.binary(12),
    Kind.PUBLISHED: UTC_MICROS,
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
    Kind.TEXT: pa.string(),
}
"""The type of each kind's column; what is no scalar is written as JSON text."""

_USUAL: Final = {
    Kind.DATE: USUAL_DAY,
    Kind.TIMESTAMP: USUAL_MOMENT,
    Kind.LOCAL_TIMESTAMP: USUAL_LOCAL_MOMENT,
    Kind.TIME: USUAL_TIME,
    Kind.LOCAL_TIME: USUAL_TIME,
    Kind.TEXT_INTEGER: USUAL_INTEGER,
    Kind.TEXT_NUMBER: USUAL_NUMBER,
}

_DURATION: Final = re.compile(
    r"(?a:P(?:(?P<y>\d+)Y)?(?:(?P<m>\d+)M)?(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?:(?P<h>\d+)H)?(?:(?P<min>\d+)M)?(?:(?P<s>\d+)(?:[.,](?P<f>\d+))?S)?)?)"
)
_FIRST: Final = (datetime.min - EPOCH) // timedelta(microseconds=1)
_LAST: Final = (datetime.max - EPOCH) // timedelta(microseconds=1)
"""Readers have no timestamps beyond the microseconds of the years 1 to 9999."""
_OUTSIDE: Final = "it is outside the years 1 to 9999"
_LONGEST: Final = 40
"""An integer of at most so many digits can still fit 64 bits, with room for zeros."""

Parsed = tuple[Any, bool]
"""A value, and whether digits beyond the microseconds were cut off."""


def parse_usual(kind: Kind, texts: pa.Array) -> pa.Array:
    """Return the values that Arrow casts of texts of a usual form, null for all others, even if they are values."""
    form = _USUAL.get(kind)
    if form is None:
        return pa.nulls(len(texts), ARROW[kind])
    return cast_matching(texts, form, ARROW[kind], partial(_cast_texts, kind))


def _cast_texts(kind: Kind, texts: pa.Array) -> pa.Array:
    if kind in (Kind.TIME, Kind.LOCAL_TIME):
        # Arrow casts no text to a time.
        texts = pc.binary_join_element_wise("1970-01-01T", pc.utf8_rtrim(texts, "Z"), "")
    elif kind is Kind.TIMESTAMP:
        moments = texts.cast(ARROW[kind])
        return pc.if_else(pc.greater(moments.cast(pa.int64()), _LAST), None, moments)
    elif kind is not Kind.LOCAL_TIMESTAMP:
        values = texts.cast(ARROW[kind])
        return leave_out_extremes(texts, values) if kind is Kind.TEXT_NUMBER else values
    return texts.cast(pa.timestamp("us")).cast(pa.int64()).cast(ARROW[kind])


def parse_text(kind: Kind, text: str, spelling: Spelling) -> Parsed:
    """Return one value as Arrow's type of the kind takes it; ``MisfitError`` if it does not fit."""
    return _PARSERS[kind](text, spelling)


def parse_date(text: str, spelling: Spelling) -> Parsed:
    """Return days since 1970 of a date, or of the date of a local time in any zone; a time of day is cut off."""
    moment = read_moment(text, "date", spelling)
    require_region(moment, spelling)
    if moment.local > _LAST:
        raise MisfitError(_OUTSIDE)
    return moment.local // DAY, bool(moment.local % DAY)


def parse_timestamp(text: str, spelling: Spelling, *, zoned: bool) -> Parsed:
    """Return microseconds since 1970; with ``zoned`` in UTC, otherwise of the local part, whatever its zone."""
    moment = read_moment(text, "moment", spelling)
    require_region(moment, spelling)
    whole = moment.local - (find_offset(moment, spelling) if zoned else 0)
    # A moment before Christ has a local part before the first.
    if whole > _LAST or whole < _FIRST <= moment.local:
        raise MisfitError(_OUTSIDE)
    return whole, moment.is_finer


def parse_time(text: str, spelling: Spelling, *, zoned: bool) -> Parsed:
    """Return microseconds since midnight; with ``zoned`` in UTC."""
    moment = read_moment(text, "time", spelling)
    require_region(moment, spelling)
    if moment.zone is not None and zoned:
        raise MisfitError(f"it names the time zone {moment.zone!r}, whose offset depends on the day")
    return (moment.local - (find_offset(moment, spelling) if zoned else 0)) % DAY, moment.is_finer


def parse_duration(text: str) -> Parsed:
    """Return Parquet's INTERVAL: months, days and milliseconds, each an unsigned little-endian integer of 32 bits."""
    match = _DURATION.fullmatch(text)
    if match is None or text.endswith(("P", "T")):
        raise MisfitError("it is not an ISO 8601 duration")
    counts = {name: int(digits or 0) for name, digits in match.groupdict().items() if name != "f"}
    fraction = match["f"] or ""
    seconds = (counts["h"] * 60 + counts["min"]) * 60 + counts["s"]
    parts = (
        12 * counts["y"] + counts["m"],
        7 * counts["w"] + counts["d"],
        1000 * seconds + int(fraction[:3].ljust(3, "0")),
    )
    if max(parts) >= 2**32:
        raise MisfitError("it is longer than an INTERVAL holds", is_beyond=True)
    return b"".join(part.to_bytes(4, "little") for part in parts), bool(fraction[3:].strip("0"))


def parse_published(text: str) -> int:
    """Return the microseconds since 1970 at which a UUID of version 1 was made."""
    try:
        uuid = UUID(text)
    except ValueError as error:
        raise MisfitError("it is not a UUID") from error
    if uuid.version != 1:
        raise MisfitError("it is not a UUID of version 1, which has a time")
    # It counts tenths of a microsecond since 15 October 1582.
    return uuid.time // 10 + (datetime(1582, 10, 15) - EPOCH).days * DAY


def parse_json_integer(raw: bytes) -> int:
    """Return the integer of a JSON number; JSON Schema takes ``1.0`` for one too."""
    exact = Decimal(_require_number(raw))
    if exact and exact.adjusted() > _LONGEST:
        raise MisfitError(_NO_LONG, is_beyond=True)
    if exact != exact.to_integral_value():
        raise MisfitError(_NO_LONG)
    return _require_long(int(exact))


def parse_json_number(raw: bytes) -> float:
    """Return the double of a JSON number."""
    return _require_double(_require_number(raw))


def parse_json_boolean(raw: bytes) -> bool:
    """Return JSON's true or false."""
    return read_boolean(raw.decode(errors="replace"), RFC_3339)


def _require_number(raw: bytes) -> str:
    if not raw[:1].isdigit() and not raw.startswith(b"-"):
        raise MisfitError("it is not a number")
    return raw.decode()


def _parse_binary(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise MisfitError(str(error)) from error


def _parse_text_integer(text: str, spelling: Spelling) -> int:
    return _require_long(read_integer(text, spelling))


def _parse_text_number(text: str, spelling: Spelling) -> float:
    if text in spelling.named_numbers:
        return spelling.named_numbers[text]
    return _require_double(require_number(text, spelling))


_NO_LONG: Final = "it is not a whole number of 64 bits"


def _require_long(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise MisfitError(_NO_LONG, is_beyond=True)
    return value


def _require_double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise MisfitError("it is beyond what a double holds", is_beyond=True)
    if not value and MORE_THAN_ZERO.match(text):
        raise MisfitError("it is closer to zero than any double", is_beyond=True)
    return value


_PARSERS: Final[dict[Kind, Callable[[str, Spelling], Parsed]]] = {
    Kind.DATE: parse_date,
    Kind.TIMESTAMP: lambda text, spelling: parse_timestamp(text, spelling, zoned=True),
    Kind.LOCAL_TIMESTAMP: lambda text, spelling: parse_timestamp(text, spelling, zoned=False),
    Kind.TIME: lambda text, spelling: parse_time(text, spelling, zoned=True),
    Kind.LOCAL_TIME: lambda text, spelling: parse_time(text, spelling, zoned=False),
    Kind.TEXT_INTEGER: lambda text, spelling: (_parse_text_integer(text, spelling), False),
    Kind.TEXT_NUMBER: lambda text, spelling: (_parse_text_number(text, spelling), False),
    Kind.BOOLEAN: lambda text, spelling: (read_boolean(text, spelling), False),
    Kind.DURATION: lambda text, _: parse_duration(text),
    Kind.BINARY: lambda text, _: (_parse_binary(text), False),
    Kind.PUBLISHED: lambda text, _: (parse_published(text), False),
}
