"""Cast texts and typed values to the type that is declared for them, exactly or not at all.

A regular expression picks the texts whose cast by Arrow is exact, which are nearly all; Arrow alone takes ``0x1F`` as
an integer and wraps decimals. The others are converted one by one, each distinct text once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.exact_text import DEFAULT, EPOCH_DIGITS, TextForm, Unit, convert_text
from lakewriter.cast.spelling_table import (
    MORE_THAN_ZERO,
    PLAIN_DAY,
    PLAIN_INTEGER,
    PLAIN_LOCAL_MOMENT,
    PLAIN_MOMENT,
    PLAIN_NUMBER,
    STRICT,
    MisfitError,
    find_plain_decimal,
)
from lakewriter.cast.time_patterns import TimePattern, compile_pattern

_FEW: Final = 64
"""Rows that are converted one by one rather than halved again."""
_ZONED: Final = ":[0-9.]+[Z+-]"
"""A part of a text of that spelling that has an offset."""
_DAY_FIELDS: Final = {"y": 4, "M": 2, "d": 2}
"""The letters of a day's fields and how many digits ISO gives each."""
MICROS: Final = pa.timestamp("us")
YEARS: Final = {pa.date32(): (-719162, 2932896), MICROS: (-62135596800000000, 253402300799999999)}
"""The first value of the year 0001 and the last of 9999."""


@dataclass(frozen=True)
class Cast:
    """The values of a cast, null if there is none or if it does not fit.

    ``misfits`` is true for values that do not fit, None if all fit. ``cut`` counts values that lost nanoseconds.
    """

    values: pa.Array
    misfits: pa.BooleanArray | None = None
    cut: int = 0


def cast_text(values: pa.Array, kind: pa.DataType, how: TextForm = DEFAULT) -> Cast:
    """Cast an array of strings to ``kind``, a type of ``sql_types``.

    Args:
        values: A ``StringArray``, ``LargeStringArray`` or ``StringViewArray``; null stays null.
        kind: The declared type. Lists, maps and structs are read from JSON.
        how: The spelling of dates and times if it is not the default.
    """
    is_encoded = how.unit == "base64" and bool(pt.is_binary(kind) or pt.is_decimal(kind))
    if (pt.is_string(kind) or pt.is_binary(kind)) and not is_encoded:
        return Cast(values.cast(kind))
    if pt.is_string_view(values.type):
        # Arrow's functions of text do not take its views.
        values = values.cast(pa.large_string())
    if pt.is_nested(kind) or is_encoded or (pt.is_date(kind) and how.unit == "epoch_days"):
        return _cast_exactly(values, kind, how)
    taken = _cast_plain(values, kind, how)
    if taken.null_count == values.null_count:
        return Cast(taken)
    doubtful = pc.and_(values.is_valid(), taken.is_null())
    exact = _cast_exactly(values.filter(doubtful), kind, how)
    whole = pc.replace_with_mask(taken, doubtful, exact.values)
    return Cast(whole, None if exact.misfits is None else pc.and_(values.is_valid(), whole.is_null()), exact.cut)


def _cast_exactly(values: pa.Array, kind: pa.DataType, how: TextForm) -> Cast:
    """Convert each distinct text by itself."""
    encoded = values.dictionary_encode()
    converted = [_convert_or_none(text, kind, how) for text in encoded.dictionary.to_pylist()]
    whole = pa.array([value for value, _ in converted], kind).take(encoded.indices)
    cut = pc.sum(pa.array([is_cut for _, is_cut in converted], pa.bool_()).take(encoded.indices)).as_py() or 0
    misfits = pc.and_(values.is_valid(), whole.is_null()) if whole.null_count > values.null_count else None
    return Cast(whole, misfits, cut)


def explain_misfit(text: str, kind: pa.DataType, how: TextForm = DEFAULT) -> str:
    """Return the reason why ``text`` is no value of ``kind``; blank if it is one."""
    try:
        convert_text(text, kind, how)
    except MisfitError as misfit:
        return str(misfit)
    return ""


def _convert_or_none(text: str, kind: pa.DataType, how: TextForm) -> tuple[object, bool]:
    try:
        return convert_text(text, kind, how)
    except MisfitError:
        return None, False


def _cast_plain(values: pa.Array, kind: pa.DataType, how: TextForm) -> pa.Array:
    """Return the values of texts whose spelling is plain, null for all others, even if they are values."""
    if pt.is_boolean(kind):
        spellings = pc.index_in(pc.ascii_lower(values), pa.array(STRICT.booleans, values.type))
        return pa.array(list(STRICT.booleans.values())).take(spellings)
    if (format_ := _find_format(kind, how)) is not None:
        values, how = _write_iso(values, compile_pattern(format_), kind), TextForm(zone=how.zone)
    spelling = _find_plain_spelling(kind, how)
    if spelling is None:
        return pa.nulls(len(values), kind)
    return cast_matching(values, spelling, kind, partial(_parse, kind=kind, how=how))


def cast_matching(
    values: pa.Array, spelling: str, kind: pa.DataType, parse: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Return the values of texts of a spelling, null for all others, for those that ``parse`` refuses by
    ``ArrowInvalid``, and for a few beside them."""
    is_plain = pc.match_substring_regex(values, rf"\A(?:{spelling})\z")
    if pc.all(is_plain).as_py() is False:
        values = pc.if_else(is_plain, values, None)
    return _cast_parts(values, kind, parse)


def _find_format(kind: pa.DataType, how: TextForm) -> str | None:
    if pt.is_timestamp(kind):
        return None if how.unit is not None else how.timestamp_format
    return how.date_format if pt.is_date(kind) else None


def _write_iso(values: pa.Array, pattern: TimePattern, kind: pa.DataType) -> pa.Array:
    """Return the ISO texts of texts of a pattern that has ISO's fields in another order, null for all others."""
    letters = pattern.iso_fields
    if not letters or (pt.is_date(kind) and len(letters) > len(_DAY_FIELDS)):
        return pa.nulls(len(values), pa.string())
    matches = pc.extract_regex(values, rf"\A(?i:{pattern.named_regex})\z")
    fields = {letter: pc.struct_field(matches, letter).cast(pa.string()) for letter in letters}
    parts = [_pad(fields.get(letter), width) for letter, width in _DAY_FIELDS.items()]
    day = pc.binary_join_element_wise(*parts, "-")
    if pt.is_date(kind):
        return day
    clock = pc.binary_join_element_wise(*(_pad(fields.get(letter), 2) for letter in "Hms"), ":")
    fraction = [pc.binary_join_element_wise("", fields["S"], ".")] if "S" in letters else []
    offset = [fields["X"]] if "X" in letters else []
    # The last argument is the separator.
    return pc.binary_join_element_wise(day, "T", clock, *fraction, *offset, "")


def _pad(field: pa.Array | None, width: int) -> pa.Array | pa.Scalar:
    return pa.scalar("0" * width) if field is None else pc.ascii_lpad(field, width, "0")


def _find_plain_spelling(kind: pa.DataType, how: TextForm) -> str | None:
    """Return the regular expression of texts that Arrow casts to ``kind`` exactly or refuses; None if there is none."""
    if pt.is_integer(kind):
        return PLAIN_INTEGER
    if pt.is_floating(kind):
        return PLAIN_NUMBER
    if pt.is_decimal(kind):
        return find_plain_decimal(kind.precision, kind.scale)
    if pt.is_date32(kind):
        return PLAIN_DAY
    if how.unit is not None:
        return PLAIN_INTEGER
    if not pt.is_timestamp(kind) or how.zone != "UTC":
        return None
    return PLAIN_MOMENT if kind.tz else PLAIN_LOCAL_MOMENT


def _cast_parts(values: pa.Array, kind: pa.DataType, parse: Callable[[pa.Array], pa.Array]) -> pa.Array:
    try:
        return parse(values)
    except pa.ArrowInvalid:
        if len(values) <= _FEW:
            return pa.nulls(len(values), kind)
    half = len(values) // 2
    return pa.concat_arrays([_cast_parts(part, kind, parse) for part in (values[:half], values[half:])])


def _parse(values: pa.Array, kind: pa.DataType, how: TextForm) -> pa.Array:
    """Return the values of texts of a plain spelling; ``ArrowInvalid`` if Arrow refuses one."""
    if pt.is_floating(kind):
        return leave_out_extremes(values, values.cast(kind))
    if pt.is_timestamp(kind):
        parsed = _parse_timestamps(values, kind) if how.unit is None else _count_micros(values, how.unit)
        return _leave_out_years(parsed).cast(kind)
    parsed = values.cast(kind)
    return _leave_out_years(parsed) if pt.is_date(kind) else parsed


def leave_out_extremes(values: pa.Array, parsed: pa.Array) -> pa.Array:
    """Return the numbers, null for infinite ones and for zeros whose text is of another number."""
    is_doubtful = pc.or_(pc.is_inf(parsed), pc.equal(parsed, 0))
    if not pc.any(is_doubtful).as_py():
        return parsed
    is_other = pc.and_(is_doubtful, pc.match_substring_regex(values, MORE_THAN_ZERO.pattern))
    return pc.if_else(is_other, None, parsed)


def _parse_timestamps(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the instants in UTC, without a zone. Arrow takes texts with offsets, or texts without, in one array."""
    if kind.tz is None:
        return values.cast(MICROS)
    # A cast that fails looks at all values: the first ones show which is likely to succeed.
    is_zoned = bool(pc.any(pc.match_substring_regex(values[:_FEW], _ZONED)).as_py())
    try:
        return values.cast(kind if is_zoned else MICROS).cast(MICROS)
    except pa.ArrowInvalid:
        has_offset = pc.match_substring_regex(values, _ZONED)
    zoned = pc.if_else(has_offset, values, None).cast(kind).cast(MICROS)
    return pc.coalesce(zoned, pc.if_else(has_offset, None, values).cast(MICROS))


def _count_micros(values: pa.Array, unit: Unit) -> pa.Array:
    """Return the instants of whole numbers, null for nanoseconds that are no microseconds."""
    numbers = values.cast(pa.int64())
    power = EPOCH_DIGITS[unit]
    if power >= 0:
        return pc.multiply_checked(numbers, 10**power).cast(MICROS)
    micros = pc.divide(numbers, 10**-power)
    is_whole = pc.equal(pc.multiply(micros, 10**-power), numbers)
    return pc.if_else(is_whole, micros, None).cast(MICROS)


def _leave_out_years(parsed: pa.Array) -> pa.Array:
    """Return dates or times, null outside the years 0001 to 9999."""
    numbers = parsed.view(pa.int32() if pt.is_date32(parsed.type) else pa.int64())
    first, last = YEARS[parsed.type]
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is None or (bounds["min"] >= first and bounds["max"] <= last):
        return parsed
    return pc.if_else(pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last)), parsed, None)
