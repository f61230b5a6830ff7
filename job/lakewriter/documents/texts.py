"""The text of a value, as row ids and cursors use it; computed from written values, so that any reader can repeat it.

    integer    1                            date       2024-01-15
    boolean    true                         timestamp  2024-01-15T10:30:00.000000Z, without Z for a local one
    decimal    plain, with its scale        binary     lower-case hex
    float      shortest that reads back     nested     compact JSON, sorted keys
    string     as it is

In JSON integers, finite floats and booleans are bare, everything else is a string; a map whose keys are not strings
is an array of ``[key,value]``.
"""

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import islice
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_LAST_PLAIN_SCALE = 6
"""Arrow writes decimals of a greater scale with an exponent when they are small."""
_PLAIN_FLOATS = (1e-4, 1e10)
"""From the first to below the second neither Arrow nor Python's repr writes a float with an exponent."""


def texts(array: pa.Array) -> pa.Array:
    """One string per value, null for null; ``array`` has a type that files have."""
    t = array.type
    if pt.is_nested(t):
        return pa.array(_json(array), pa.string())
    if pt.is_floating(t):
        return _floats(array)
    if pt.is_timestamp(t):
        return _timestamps(array)
    if pt.is_binary(t):
        return pa.array(_each(bytes.hex, array), pa.string())
    plain = array.cast(pa.string())
    if pt.is_decimal(t) and t.scale > _LAST_PLAIN_SCALE:
        return _respelled(plain, pc.match_substring(plain, "E"), _without_exponent)
    return plain


def _floats(array: pa.Array) -> pa.Array:
    """Arrow's text has the fewest digits for the width, float32 included; it is spelled as Python's repr does."""
    plain = array.cast(pa.string())
    size = pc.abs(array)
    lowest, end = _PLAIN_FLOATS
    usual = pc.or_(pc.equal(size, 0.0), pc.and_(pc.greater_equal(size, lowest), pc.less(size, end)))
    whole = pc.and_(usual, pc.invert(pc.match_substring(plain, ".")))
    pointed = pc.if_else(whole, pc.binary_join_element_wise(plain, ".0", ""), plain)
    return _respelled(pointed, pc.invert(usual), lambda text: repr(float(text)))


def _timestamps(array: pa.Array) -> pa.Array:
    # Arrow is twenty times slower with zoned timestamps, and UTC has the same text but for its Z.
    local = array.cast(pa.timestamp("us")).cast(pa.string())
    plain = pc.replace_substring(local, " ", "T")
    return pc.binary_join_element_wise(plain, "Z", "") if array.type.tz else plain


def _respelled(plain: pa.Array, odd: pa.Array, function: Callable[[str], str]) -> pa.Array:
    """``plain`` with the texts at ``odd`` replaced one by one."""
    odd = pc.fill_null(odd, False)
    if not pc.any(odd).as_py():
        return plain
    return pc.replace_with_mask(plain, odd, pa.array(_each(function, plain.filter(odd)), pa.string()))


def _without_exponent(text: str) -> str:
    return format(Decimal(text), "f")


def _each(function: Callable[[Any], str], array: pa.Array) -> list[str | None]:
    return [None if value is None else function(value) for value in _list(array)]


def _json(array: pa.Array) -> list[str | None]:
    """JSON text per value, None for null."""
    t = array.type
    if pt.is_struct(t):
        return _json_structs(array)
    if pt.is_map(t):
        return _json_maps(array)
    if pt.is_list(t):
        values = iter(_json(array.flatten()))
        return [None if n is None else f"[{','.join(_next(values, n))}]" for n in _lengths(array)]
    plain = texts(array)
    if pt.is_integer(t) or pt.is_boolean(t):
        return _list(plain)
    if pt.is_floating(t):
        return _each(_json_float, plain)
    return _each(_quoted, plain)


def _json_structs(array: pa.StructArray) -> list[str | None]:
    fields = sorted((field.name, _json(child)) for field, child in zip(array.type, array.flatten(), strict=True))
    heads = [_quoted(name) + ":" for name, _ in fields]
    rows = zip(*(values for _, values in fields), strict=True)
    objects = ("{" + ",".join(h + (v or "null") for h, v in zip(heads, row, strict=True)) + "}" for row in rows)
    return [text if valid else None for text, valid in zip(objects, _list(array.is_valid()), strict=True)]


def _json_maps(array: pa.MapArray) -> list[str | None]:
    entries = as_list(array)
    keys, items = entries.flatten().flatten()
    form, opening, closing = ("%s:%s", "{", "}") if pt.is_string(keys.type) else ("[%s,%s]", "[", "]")
    # By the key's own text: quoting would order a quote or a control character elsewhere.
    members = iter(zip(_list(texts(keys)), (form % pair for pair in _pairs(keys, items)), strict=True))
    rows = (None if n is None else sorted(islice(members, n)) for n in _lengths(entries))
    return [None if row is None else opening + ",".join(text for _, text in row) + closing for row in rows]


def _pairs(keys: pa.Array, items: pa.Array) -> Iterator[tuple[str, str]]:
    return ((key or "null", item or "null") for key, item in zip(_json(keys), _json(items), strict=True))


def _json_float(text: str) -> str:
    return text if text not in ("nan", "inf", "-inf") else f'"{text}"'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _list(array: pa.Array) -> list[Any]:
    return cast("list[Any]", array.to_pylist())


def _lengths(array: pa.ListArray) -> list[int | None]:
    return _list(pc.list_value_length(array))


def _next(values: Iterator[str | None], count: int) -> list[str]:
    return [value or "null" for value in islice(values, count)]


def as_list(array: pa.MapArray) -> pa.ListArray:
    """A map as the list of its entries, for which more of Arrow's functions exist; shares its buffers."""
    keys, items = array.keys, array.items
    entries = pa.StructArray.from_arrays([keys, items], names=["key", "value"])
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(
        pa.list_(entries.type), len(array), buffers, array.null_count, array.offset, children=[entries]
    )
