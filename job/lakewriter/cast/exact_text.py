"""One text as a value of a declared type, exactly, or the reason why it is none: the slow way of the strict cast."""

import re
from base64 import b64decode
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, Inexact
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.json_text import DocumentError, NumberText, parse_document
from lakewriter.cast.spelling_table import STRICT, MisfitError, read_boolean, read_integer, require_number
from lakewriter.cast.text_moments import DAY, EPOCH, Moment, read_moment, to_utc
from lakewriter.cast.time_patterns import compile_pattern
from lakewriter.column_types import name_type

Unit = Literal["epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "epoch_days", "base64"]
"""A number counts this unit since 1970-01-01T00:00:00Z; or a text is the base64 of bytes, which are a decimal's number
without its point, the first byte with the sign: https://docs.oracle.com/javase/8/docs/api/java/math/BigInteger.html."""

EPOCH_DIGITS: Final[dict[Unit, int]] = {"epoch_s": 6, "epoch_ms": 3, "epoch_us": 0, "epoch_ns": -3}
"""The power of ten that makes microseconds of a unit."""

_LONGEST: Final = 4000
"""Characters of a number; Python converts no more digits to an integer."""
_MICROS: Final = 10**6
_EXACT: Final = Context(prec=10**6, Emax=10**9, Emin=-(10**9), traps=[Inexact])


@dataclass(frozen=True)
class TextForm:
    """The spelling of texts, where it is not the default of their type."""

    date_format: str | None = None
    timestamp_format: str | None = None
    """This is the format of ``timestamp`` and ``timestamp_ntz``."""
    unit: Unit | None = None
    """Timestamps and dates are numbers of this unit; or decimals and bytes are texts of it."""
    truncates_nanoseconds: bool = False
    zone: str = "UTC"
    """The zone of timestamps without an offset."""


DEFAULT: Final = TextForm()


def convert_text(text: str, kind: pa.DataType, form: TextForm = DEFAULT) -> tuple[Any, bool]:
    """Return the value of ``text`` as pyarrow takes it for ``kind``, and whether nanoseconds were cut from it.

    ``MisfitError`` says why it is not a value of ``kind``.
    """
    if text != text.strip() and not (pt.is_string(kind) or pt.is_binary(kind)):
        raise MisfitError("there are blanks around it" if text.strip() else "it is blank")
    if pt.is_timestamp(kind):
        return _convert_timestamp(text, kind, form)
    if pt.is_nested(kind):
        return convert_json(read_json(text), kind, form)
    if form.unit == "base64":
        return _convert_base64(text, kind), False
    convert = next(convert for is_kind, convert in _CONVERTERS if is_kind(kind))
    return convert(text, kind, form), False


def _convert_integer(text: str, kind: pa.DataType, _form: TextForm) -> int:
    number = read_integer(text, STRICT)
    bits = kind.bit_width
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pt.is_signed_integer(kind) else (0, 2**bits - 1)
    if not least <= number <= most:
        raise MisfitError(f"it is outside the range of {name_type(kind)}, {least} to {most}", is_beyond=True)
    return number


def _read_decimal(text: str) -> Decimal:
    """Return the number, exactly; numbers that are beyond every type as one beyond every type."""
    mantissa, _, exponent = require_number(text, STRICT).lower().partition("e")
    exponent = exponent.lstrip("+") or "0"
    if len(exponent.lstrip("-0")) > len(str(_LONGEST)):
        exponent = "-99999" if exponent[0] == "-" else "99999"
    return _EXACT.create_decimal(f"{mantissa}e{exponent}")


def _convert_decimal(text: str, kind: pa.DataType, _form: TextForm) -> Decimal:
    number = _read_decimal(text)
    if not number:
        return Decimal(0)
    scale = -int(_EXACT.normalize(number).as_tuple().exponent)
    if scale > kind.scale:
        raise MisfitError(f"it has {scale} decimal places, and {name_type(kind)} has {kind.scale}")
    if number.adjusted() >= kind.precision - kind.scale:
        whole = kind.precision - kind.scale
        raise MisfitError(f"it has {number.adjusted() + 1} digits before the point, and {name_type(kind)} has {whole}")
    # Arrow refuses a decimal of more digits than its own, zeros included.
    return _EXACT.quantize(number, Decimal(1).scaleb(-kind.scale))


def _convert_base64(text: str, kind: pa.DataType) -> bytes | Decimal:
    decoded = _decode_base64(text)
    if pt.is_binary(kind):
        return decoded
    if not decoded:
        raise MisfitError("it has no bytes")
    number = int.from_bytes(decoded, "big", signed=True)
    if len(str(abs(number))) > kind.precision:
        raise MisfitError(f"it is {number}, which has more than the {kind.precision} digits of {name_type(kind)}")
    return _EXACT.scaleb(Decimal(number), -kind.scale)


def _convert_float(text: str, kind: pa.DataType, _form: TextForm) -> float:
    if text in STRICT.named_numbers:
        return STRICT.named_numbers[text]
    number = _read_decimal(text)
    # Arrow rounds once to the nearest of either width; Python's float would round twice on the way to 32 bits.
    value = pa.scalar(text).cast(kind).as_py()
    if value in (float("inf"), float("-inf")):
        raise MisfitError(f"it is beyond the range of {name_type(kind)}")
    if value == 0 and number:
        raise MisfitError(f"it is closer to zero than any {name_type(kind)}")
    return float(value)


def _convert_date(text: str, _kind: pa.DataType, form: TextForm) -> date:
    if form.unit == "epoch_days":
        return _convert_days(text)
    pattern = form.date_format
    moment = read_moment(text, "date", STRICT) if pattern is None else compile_pattern(pattern).read(text)
    if moment.local % DAY or moment.is_finer:
        raise MisfitError("it has a time of day, which a date would lose")
    if moment.offset is not None or moment.zone is not None:
        raise MisfitError("it has an offset, which a date would lose")
    return (EPOCH + timedelta(microseconds=moment.local)).date()


def _convert_days(text: str) -> date:
    days = read_integer(text, STRICT)
    try:
        return (EPOCH + timedelta(days=days)).date()
    except OverflowError:
        raise MisfitError("it is outside the years 0001 to 9999 as epoch_days") from None


def _convert_timestamp(text: str, kind: pa.DataType, form: TextForm) -> tuple[datetime, bool]:
    if form.unit is not None:
        return _convert_epoch(text, form)
    moment = _read_time(text, form.timestamp_format)
    if moment.is_finer and not form.truncates_nanoseconds:
        raise MisfitError("it is finer than microseconds; nanoseconds: truncate would cut it")
    if kind.tz is not None:
        return to_utc(moment, STRICT, form.zone), moment.is_finer
    if moment.offset is not None or moment.zone is not None:
        raise MisfitError("it has an offset, and timestamp_ntz has none; declare timestamp")
    return EPOCH + timedelta(microseconds=moment.local), moment.is_finer


def _convert_epoch(text: str, form: TextForm) -> tuple[datetime, bool]:
    assert form.unit is not None
    micros = _EXACT.scaleb(_read_decimal(text), EPOCH_DIGITS[form.unit])
    if micros.adjusted() > len(str(_MICROS)) * 3:
        raise MisfitError(f"it is outside the years 0001 to 9999 as {form.unit}")
    whole = int(micros.to_integral_value("ROUND_FLOOR"))
    if whole != micros and not form.truncates_nanoseconds:
        raise MisfitError("it is finer than microseconds; nanoseconds: truncate would cut it")
    try:
        return EPOCH + timedelta(microseconds=whole), whole != micros
    except OverflowError:
        raise MisfitError(f"it is outside the years 0001 to 9999 as {form.unit}") from None


def _read_time(text: str, pattern: str | None) -> Moment:
    if pattern is not None:
        return compile_pattern(pattern).read(text)
    if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text):
        raise MisfitError("it is a number; a unit can be named by from:, such as from: epoch_ms")
    return read_moment(text, "moment", STRICT)


def read_json(text: str) -> Any:
    """Return a JSON text's value, whose numbers keep their digits; ``MisfitError`` says what is wrong with it."""
    try:
        return parse_document(text.encode(errors="surrogatepass"))
    except DocumentError as error:
        raise MisfitError(f"it is not JSON: {error}") from error


def convert_json(value: Any, kind: pa.DataType, form: TextForm = DEFAULT) -> tuple[Any, bool]:
    """Return a value of ``read_json`` as one of ``kind``, and whether nanoseconds were cut inside.

    Binary is base64, as the product writes it; ``MisfitError`` says why the value is none of ``kind``.
    """
    if value is None:
        return None, False
    if pt.is_struct(kind) and isinstance(value, dict):
        if unknown := value.keys() - {field.name for field in kind}:
            raise MisfitError(explain_undeclared(unknown))
        members = {field.name: convert_json(value.get(field.name), field.type, form) for field in kind}
        return {name: member for name, (member, _) in members.items()}, any(cut for _, cut in members.values())
    if pt.is_map(kind) and isinstance(value, dict):
        keys = [convert_json(key, kind.key_type, form)[0] for key in value]
        items = [convert_json(item, kind.item_type, form) for item in value.values()]
        return list(zip(keys, [item for item, _ in items], strict=True)), any(cut for _, cut in items)
    if pt.is_list(kind) and isinstance(value, list):
        items = [convert_json(item, kind.value_type, form) for item in value]
        return [item for item, _ in items], any(cut for _, cut in items)
    return _convert_leaf(value, kind, form)


def explain_undeclared(names: Collection[str]) -> str:
    """Say that an object has members which its declared struct has not."""
    return f"the struct has no field {min(names)!r}"


def _convert_leaf(value: Any, kind: pa.DataType, form: TextForm) -> tuple[Any, bool]:
    if isinstance(value, bool) and (pt.is_boolean(kind) or pt.is_string(kind)):
        return value if pt.is_boolean(kind) else str(value).lower(), False
    if isinstance(value, str) and not pt.is_nested(kind):
        return (_decode_base64(value), False) if pt.is_binary(kind) else convert_text(value, kind, form)
    raise MisfitError(f"JSON's {_JSON_NAMES[type(value)]} does not convert to {name_type(kind)}")


def _decode_base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise MisfitError("it is not base64") from None


_JSON_NAMES: Final = {dict: "object", list: "array", bool: "boolean", str: "string", NumberText: "number"}


_CONVERTERS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType, TextForm], Any]], ...]] = (
    (pt.is_boolean, lambda text, _kind, _form: read_boolean(text, STRICT)),
    (pt.is_integer, _convert_integer),
    (pt.is_decimal, _convert_decimal),
    (pt.is_floating, _convert_float),
    (pt.is_date32, _convert_date),
    (pt.is_string, lambda text, _kind, _form: text),
    (pt.is_binary, lambda text, _kind, _form: text.encode()),
)
