"""Cast values of one type to another if nothing is lost: the strict cast of columns that are not text.

Numbers are compared by their shortest text, which the cast of texts takes or refuses: so both casts have one rule.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.exact_text import DEFAULT, EPOCH_DIGITS, TextForm, Unit
from lakewriter.cast.strict_cast import MICROS, YEARS, Cast, cast_text
from lakewriter.nested_arrays import compute_flat_offsets, list_map_entries

Way = Callable[[pa.Array, pa.DataType, TextForm], Cast]

_WHOLE: Final = pa.decimal128(38, 0)
_EXACT_BITS: Final = {pa.float32(): 24, pa.float64(): 53}
"""The type holds every integer of so many bits."""
_TICKS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def is_text(kind: pa.DataType) -> bool:
    """Return True for any of Arrow's layouts of text."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def is_castable(source: pa.DataType, kind: pa.DataType, how: TextForm = DEFAULT) -> bool:
    """Return True if values of ``source`` may be values of ``kind``; ``cast_values`` checks each one."""
    if pt.is_nested(source) and not source.equals(kind):
        pairs = _pair_inside(source, kind)
        return pairs is not None and all(is_castable(inner, target, how) for inner, target in pairs)
    return _find_way(source, kind, how) is not None


def cast_values(values: pa.Array, kind: pa.DataType, how: TextForm = DEFAULT) -> Cast:
    """Cast an array of any type that ``is_castable`` to ``kind``; see ``cast_text`` for texts."""
    if pt.is_float16(values.type):
        # Few of Arrow's functions take it.
        return cast_values(values.cast(pa.float32()), kind, how)
    way = _find_way(values.type, kind, how)
    if way is None:
        raise TypeError(f"{values.type} is not cast to {kind}")
    return way(values, kind, how)


def _find_way(source: pa.DataType, kind: pa.DataType, how: TextForm) -> Way | None:
    is_numeric, is_time = _is_number(source), bool(pt.is_date(source) or pt.is_timestamp(source))
    ways: tuple[tuple[bool, Way], ...] = (
        (source.equals(kind), lambda values, _kind, _how: Cast(values)),
        (pt.is_dictionary(source), _cast_dictionary),
        (is_text(source), cast_text),
        (pt.is_null(source), lambda values, kind, _how: Cast(pa.nulls(len(values), kind))),
        (pt.is_nested(source), _cast_nested),
        (pt.is_string(kind), _write_texts),
        (is_time and bool(pt.is_date(kind) or pt.is_timestamp(kind)), _cast_times),
        (is_numeric and pt.is_floating(kind), _cast_to_float),
        (is_numeric and (_is_number(kind) or _counts(how.unit, kind)), _cast_number),
        (_is_binary(source) and pt.is_binary(kind), lambda values, kind, _how: Cast(values.cast(kind))),
    )
    return next((way for applies, way in ways if applies), None)


def _counts(unit: Unit | None, kind: pa.DataType) -> bool:
    return bool((pt.is_timestamp(kind) and unit in EPOCH_DIGITS) or (pt.is_date(kind) and unit == "epoch_days"))


def _pair_inside(source: pa.DataType, kind: pa.DataType) -> list[tuple[pa.DataType, pa.DataType]] | None:
    """Return the types inside a nested type with their targets; None if the two do not match."""
    if pt.is_struct(source) and pt.is_struct(kind):
        targets = {field.name: field.type for field in kind}
        whole = all(field.name in targets for field in source)
        return [(field.type, targets[field.name]) for field in source] if whole else None
    if pt.is_list(source) and pt.is_list(kind):
        return [(source.value_type, kind.value_type)]
    if pt.is_map(source) and pt.is_map(kind):
        return [(source.key_type, kind.key_type), (source.item_type, kind.item_type)]
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_boolean(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))


def _compare(given: pa.Array, values: pa.Array, cut: int = 0) -> Cast:
    """Return the cast. Its misfits are the values that are null though they were given."""
    if values.null_count == given.null_count:
        return Cast(values, None, cut)
    return Cast(values, pc.and_(given.is_valid(), values.is_null()), cut)


def _cast_number(values: pa.Array, kind: pa.DataType, how: TextForm) -> Cast:
    texts = _write_digits(values.cast(pa.int8()) if pt.is_boolean(values.type) else values)
    if (pt.is_integer(kind) or pt.is_boolean(kind)) and not (pt.is_integer(values.type) or pt.is_boolean(values.type)):
        texts = cast_text(texts, _WHOLE).values.cast(pa.string())
    cast = cast_text(texts, kind, how)
    return _compare(values, cast.values, cast.cut)


def _write_digits(values: pa.Array) -> pa.Array:
    """Return numbers as text: floats as the shortest that reads back, integers among them with all digits."""
    texts = values.cast(pa.string())
    if not pt.is_floating(values.type):
        return texts
    # Below it the shortest text of an integer has all of its digits.
    is_long = pc.and_(pc.greater_equal(pc.abs(values), float(2 ** _EXACT_BITS[values.type])), pc.is_finite(values))
    if not pc.any(is_long).as_py():
        return texts
    whole = pa.array([format(Decimal(number), "f") for number in values.filter(is_long).to_pylist()], pa.string())
    return pc.replace_with_mask(texts, is_long, whole)


def _cast_dictionary(values: pa.Array, kind: pa.DataType, how: TextForm) -> Cast:
    # A dictionary may have values that no row has.
    cast = cast_values(values.dictionary, kind, how)
    return _compare(values, cast.values.take(values.indices))


def _cast_to_float(values: pa.Array, kind: pa.DataType, _how: TextForm) -> Cast:
    return _compare(values, _find_floats(values, kind))


def _find_floats(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the numbers that the float holds: the same number, or for decimals one with the same shortest text."""
    source = values.type
    if pt.is_floating(source):
        near = values.cast(kind)
        return pc.if_else(pc.or_(pc.equal(near.cast(source), values), pc.is_nan(values)), near, None)
    if pt.is_boolean(source):
        return values.cast(pa.int8()).cast(kind)
    near = cast_text(values.cast(pa.string()), kind).values
    if pt.is_decimal(source):
        back = cast_text(_write_digits(near), source).values
        return pc.if_else(pc.equal(back, values), near, None)
    most = 2 ** _EXACT_BITS[kind]
    wide = values.cast(pa.decimal128(20, 0))
    is_exact = pc.and_(pc.less_equal(wide, Decimal(most)), pc.greater_equal(wide, Decimal(-most)))
    if pc.all(is_exact).as_py() is not False:
        return near
    pairs = zip(values.to_pylist(), near.to_pylist(), strict=True)
    return pa.array([number if exact is not None and number == exact else None for exact, number in pairs], kind)


def _cast_times(values: pa.Array, kind: pa.DataType, how: TextForm) -> Cast:
    micros, cut = _count_micros(values, truncates=how.truncates_nanoseconds)
    times = micros.cast(MICROS)
    if pt.is_date(kind):
        days = pc.floor_temporal(times, unit="day")
        return _compare(values, pc.if_else(pc.equal(days, times), days, None).cast(kind))
    return _compare(values, times.cast(kind), cut)


def _count_micros(values: pa.Array, *, truncates: bool) -> tuple[pa.Array, int]:
    """Return the microseconds since 1970 of dates or times in the years 0001 to 9999, null for others, and how many
    were cut.
    """
    ticks = _TICKS[values.type.unit] if pt.is_timestamp(values.type) else None
    if ticks is None:
        values = values.cast(pa.date32(), safe=False) if pt.is_date64(values.type) else values
        return pc.multiply(_limit(values.view(pa.int32()).cast(pa.int64()), YEARS[pa.date32()]), 86_400 * 10**6), 0
    numbers = values.view(pa.int64())
    if ticks <= 10**6:
        first, last = (bound * ticks // 10**6 for bound in YEARS[MICROS])
        return pc.multiply(_limit(numbers, (first, last)), 10**6 // ticks), 0
    rest = pc.subtract(numbers, pc.multiply(pc.divide(numbers, 1000), 1000))
    whole = pc.if_else(pc.less(rest, 0), pc.subtract(pc.divide(numbers, 1000), 1), pc.divide(numbers, 1000))
    is_whole = pc.equal(rest, 0)
    if truncates:
        return whole, len(values) - values.null_count - (pc.sum(is_whole).as_py() or 0)
    return pc.if_else(is_whole, whole, None), 0


def _limit(numbers: pa.Array, bounds: tuple[int, int]) -> pa.Array:
    first, last = bounds
    return pc.if_else(pc.and_(pc.greater_equal(numbers, first), pc.less_equal(numbers, last)), numbers, None)


def _write_texts(values: pa.Array, _kind: pa.DataType, _how: TextForm) -> Cast:
    """Return the values' texts, as Spark writes them."""
    source = values.type
    if _is_binary(source):
        return _decode(values)
    if pt.is_timestamp(source):
        texts = values.cast(pa.timestamp("us", source.tz) if source.unit != "ns" else source).cast(pa.string())
        return Cast(pc.replace_substring_regex(texts, r"(?:\.0+|(\.[0-9]*[1-9])0*)Z?\z", r"\1"))
    if pt.is_decimal(source) or pt.is_floating(source):
        write = _write_decimal if pt.is_decimal(source) else _write_float
        shortest = values.cast(pa.string()).dictionary_encode()
        return Cast(
            pa.array([write(text) for text in shortest.dictionary.to_pylist()], pa.string()).take(shortest.indices)
        )
    return Cast(values.cast(pa.string()))


def _write_decimal(text: str) -> str:
    return format(Decimal(text), "f")


def _write_float(text: str) -> str:
    """Return the shortest text of a number as Java has it: ``1.0``, ``1.0E10``."""
    if text.lstrip("-") in ("nan", "inf"):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, "NaN")
    number = Decimal(text)
    power = number.adjusted()
    if not number or -3 <= power < 7:
        plain = format(number.normalize() if number else number, "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, _ = number.normalize().as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{power}"


def _decode(values: pa.Array) -> Cast:
    """Return binary values as text; bytes that are no UTF-8 do not fit."""
    try:
        return Cast(values.cast(pa.binary()).cast(pa.string()))
    except pa.ArrowInvalid:
        return _compare(values, pa.array([_decode_one(value) for value in values.to_pylist()], pa.string()))


def _decode_one(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _cast_nested(values: pa.Array, kind: pa.DataType, how: TextForm) -> Cast:
    """Cast the inner values. If one does not fit, its row does not fit."""
    if pt.is_struct(kind):
        inside = [cast_values(array, kind.field(name).type, how) for name, array in _list_members(values)]
        casts = dict(zip((field.name for field in values.type), inside, strict=True))
        arrays = [casts[f.name].values if f.name in casts else pa.nulls(len(values), f.type) for f in kind]
        is_missing = reduce(pc.or_, (cast.misfits for cast in inside if cast.misfits is not None), values.is_null())
        whole = pa.StructArray.from_arrays(arrays, fields=list(kind), mask=is_missing)
        return _compare(values, whole, sum(cast.cut for cast in inside))
    lists = list_map_entries(values) if pt.is_map(kind) else values
    arrays = lists.flatten().flatten() if pt.is_map(kind) else [lists.flatten()]
    kinds = [kind.key_type, kind.item_type] if pt.is_map(kind) else [kind.value_type]
    inside = [cast_values(array, child, how) for array, child in zip(arrays, kinds, strict=True)]
    bad = _find_parents(lists, [cast.misfits for cast in inside])
    if bad is not None:
        # No key of a map may be null, so that such rows are left out before the others are put together.
        hidden = pc.if_else(bad, None, values)
        return _compare(values, cast_values(hidden, kind, how).values)
    make = pa.MapArray.from_arrays if pt.is_map(kind) else pa.ListArray.from_arrays
    whole = make(compute_flat_offsets(lists), *(cast.values for cast in inside), type=kind, mask=values.is_null())
    return Cast(whole, None, sum(cast.cut for cast in inside))


def _list_members(values: pa.StructArray) -> list[tuple[str, pa.Array]]:
    # Unlike field(), flatten() hides the members' values where the struct is null: they may be anything.
    return list(zip((field.name for field in values.type), values.flatten(), strict=True))


def _find_parents(lists: pa.Array, misfits: Sequence[pa.Array | None]) -> pa.Array | None:
    """Return a mask of lists that have a misfit among their values; None if none has."""
    parents = pc.list_parent_indices(lists)
    bad = {number for mask in misfits if mask is not None for number in parents.filter(mask).to_pylist()}
    return pa.array([number in bad for number in range(len(lists))]) if bad else None
