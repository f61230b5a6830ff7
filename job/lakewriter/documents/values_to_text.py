"""Render Arrow values as text: by themselves, as row ids and cursors use them, and as JSON by a named profile.

    integer    1                            date       2024-01-15
    boolean    true                         timestamp  2024-01-15T10:30:00.000000Z, without Z for a local one
    decimal    plain, with its scale        time       10:30:00.000000
    float      shortest that reads back     binary     lower-case hex
    string     as it is                     nested     JSON of the profile ``CANONICAL``

In JSON a value has the same text: bare where JSON has its type, in quotes elsewhere. Arrow joins the texts of whole
columns, and only strings with special characters pass through Python; no number passes a double.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.column_types import is_list_like, is_wrapped
from lakewriter.nested_arrays import compute_flat_offsets, list_map_entries, read_text_bytes


@dataclass(frozen=True)
class Profile:
    """A form of JSON text.

    ``hashed`` is the form whose digests are stored, and so it never changes: members of structs and maps are sorted,
    those without a value are null, a map whose keys are not strings is an array of ``[key,value]``, binary is hex, and
    decimals, NaN and infinities are strings. The other form keeps the order, leaves out the members of structs that
    have no value, takes the text of a key for its name, and writes binary as base64, decimals as numbers, NaN and
    infinities as null, since JSON has none of them. With ``whole`` these two are the strings that Spark's ``from_json``
    reads, ``NaN`` and ``-Infinity``.
    """

    hashed: bool
    whole: bool = False


CANONICAL: Final = Profile(hashed=True)
"""This form is for row ids: a changed text would give stored rows another id."""
COMPACT: Final = Profile(hashed=False)
"""For files. A member without a value is left out, as Spark's ``to_json`` does (``ignoreNullFields``): a struct has the
members of all rows that were read with it, and the text of a row must not hang on the rows beside it."""
WHOLE: Final = Profile(hashed=False, whole=True)
"""This form is for rows that are read again: no value is lost."""

_LAST_PLAIN_SCALE: Final = 6
"""Arrow writes decimals of a greater scale with an exponent when they are small."""
_PLAIN_FLOATS: Final = (1e-4, 1e10)
"""From the first to below the second neither Arrow nor Python's repr writes a float with an exponent."""
# No scalar of Arrow is a constant here: it would make pyarrow load pandas, half a second of every command.
_SPECIAL: Final = r'["\\\x00-\x1f]'
"""Characters that a JSON string holds escaped."""
_SPECIAL_BYTES: Final = tuple(bytes([code]) for code in (*b'"\\', *range(0x20)))
_TIME_WIDTH: Final = 26
"""Characters of a time to the microsecond, in years of four digits."""
_REPEATING: Final = 1024
"""So many times decide for a column: if few of them differ, each distinct one is written once."""


def render_text(array: pa.Array) -> pa.Array:
    """Render one string per value, null for null."""
    t = array.type
    if is_wrapped(t):
        return render_text(_unwrap(array))
    if pt.is_nested(t):
        return render_json(array, CANONICAL)
    if pt.is_floating(t):
        return _render_floats(array.cast(pa.float32()) if pt.is_float16(t) else array)
    if pt.is_timestamp(t):
        return _render_timestamps(array)
    if _is_binary(t):
        return pa.array(_map_each(bytes.hex, array), pa.string())
    if pt.is_time(t):
        return array.cast(pa.time64("us")).cast(pa.string())
    plain = (array.cast(pa.date32()) if pt.is_date(t) else array).cast(pa.string())
    if pt.is_decimal(t) and t.scale > _LAST_PLAIN_SCALE:
        return _replace_odd(plain, pc.match_substring(plain, "E"), lambda text: format(Decimal(text), "f"))
    return plain


def render_json(array: pa.Array, profile: Profile) -> pa.Array:
    """Render the JSON text of each value; null for null, and for a float that the profile has no JSON for."""
    texts, quote = _render_unquoted(array, profile)
    return join([quote, texts, quote]) if quote else texts


def _render_unquoted(array: pa.Array, profile: Profile) -> tuple[pa.Array, str]:
    """Render the JSON text of each value; return the texts and the quote on both sides, blank if they have it.

    Callers that join the texts with others add the quotes then, so that no text is copied for them alone.
    """
    t = array.type
    if is_wrapped(t):
        return _render_unquoted(_unwrap(array), profile)
    if pt.is_struct(t):
        return _render_structs(array, profile), ""
    if pt.is_map(t):
        return _render_maps(array, profile), ""
    if is_list_like(t):
        return _join_members(array, render_json(array.flatten(), profile), "[]"), ""
    if _is_binary(t) and not profile.hashed:
        return _encode_base64(array), '"'
    plain = render_text(array)
    if pt.is_integer(t) or pt.is_boolean(t) or pt.is_null(t) or (pt.is_decimal(t) and not profile.hashed):
        return plain, ""
    if not pt.is_floating(t):
        return (quote_json(plain), "") if _has_special(plain) else (plain, '"')
    finite = pc.fill_null(pc.is_finite(array), True)
    return pc.if_else(finite, plain, _render_non_finite(plain, profile)), ""


def _render_non_finite(texts: pa.Array, profile: Profile) -> pa.Array | pa.Scalar:
    """Render NaN and the infinities at their positions; the texts at others do not matter."""
    if profile.hashed:
        return quote_json(texts)
    if not profile.whole:
        return pa.scalar(None, pa.string())
    is_nan, is_low = pc.equal(texts, "nan"), pc.starts_with(texts, "-")
    return pc.if_else(is_nan, '"NaN"', pc.if_else(is_low, '"-Infinity"', '"Infinity"'))


def find_non_finite(array: pa.Array) -> Sequence[int]:
    """Return the positions whose value is, or has inside, a float without JSON."""
    t = array.type
    if pt.is_floating(t):
        odd = pc.and_(array.is_valid(), pc.invert(pc.fill_null(pc.is_finite(array), True)))
        return [int(position) for position in pc.indices_nonzero(odd).to_pylist()]
    if pt.is_struct(t):
        return sorted({position for child in array.flatten() for position in find_non_finite(child)})
    if pt.is_map(t):
        return find_non_finite(list_map_entries(array))
    if pt.is_list(t):
        inner = find_non_finite(array.flatten())
        owners = pc.list_parent_indices(array).to_pylist() if inner else []
        return sorted({int(owners[position]) for position in inner})
    return []


def quote_json(texts: pa.Array) -> pa.Array:
    """Return strings as JSON strings; null stays null."""
    quoted = join([pa.scalar('"'), texts, pa.scalar('"')])
    if not _has_special(texts):
        return quoted
    special = pc.fill_null(pc.match_substring_regex(texts, _SPECIAL), False)
    return replace_masked(quoted, special, _map_each(_quote_one, texts.filter(special)))


def _has_special(texts: pa.Array) -> bool:
    """Return whether a string may hold what JSON escapes.

    All bytes are searched together, which is many times as fast as each string apart.
    """
    data = read_text_bytes(texts)
    return any(special in data for special in _SPECIAL_BYTES)


def replace_masked(texts: pa.Array, mask: pa.Array, by: Iterable[Any]) -> pa.Array:
    """Return ``texts`` with those under ``mask`` replaced in order."""
    if not pc.any(mask).as_py():
        return texts
    return pc.replace_with_mask(texts, mask, pa.array(list(by), pa.string()))


def join(pieces: list[Any], separator: str = "", *, null_as_empty: bool = False) -> pa.Array:
    """Join each row's pieces, one behind the other; null if any is, unless nulls count as empty."""
    handling = "replace" if null_as_empty else "emit_null"
    return pc.binary_join_element_wise(*pieces, separator, null_handling=handling, null_replacement="")


def render_objects(fields: Iterable[tuple[str, pa.Array]], rows: int) -> pa.Array:
    """Render JSON objects of columns of JSON text; a null is written as such."""
    pieces: list[Any] = [pa.repeat(pa.scalar("{"), rows)]
    for position, (name, texts) in enumerate(fields):
        pieces += [("," if position else "") + _quote_one(name) + ":", pc.fill_null(texts, "null")]
    return join([*pieces, "}"])


def render_members(columns: Iterable[tuple[str, pa.Array]], rows: int, profile: Profile) -> pa.Array:
    """Render rows as JSON objects of columns without the members that are null; columns with nulls come last."""
    fields = [(_quote_one(name), *_render_unquoted(column, profile)) for name, column in columns]
    pieces: list[Any] = []
    before = "{"
    for name, texts, quote in fields:
        if not texts.null_count:
            pieces += [f"{before}{name}:{quote}", texts]
            before = f"{quote},"
    others = [join([f",{name}:{quote}", texts, quote]) for name, texts, quote in fields if texts.null_count]
    if pieces:
        return join([*pieces, before.removesuffix(","), *others, "}"], null_as_empty=True)
    # Nobody knows which member is a row's first.
    whole = join([pa.repeat(pa.scalar(""), rows), *others], null_as_empty=True)
    return join(["{", pc.utf8_slice_codeunits(whole, 1), "}"])


def _render_structs(array: pa.StructArray, profile: Profile) -> pa.Array:
    children = zip((field.name for field in array.type), array.flatten(), strict=True)
    if profile.hashed:
        members = sorted(((name, render_json(child, profile)) for name, child in children), key=lambda pair: pair[0])
        return _mask_nulls(array, render_objects(members, len(array)))
    pieces: list[Any] = [pa.repeat(pa.scalar(""), len(array))]
    for name, child in children:
        text = pc.fill_null(render_json(child, profile), "null")
        member = pc.binary_join_element_wise("," + _quote_one(name) + ":", text, "")
        pieces.append(pc.if_else(child.is_valid(), member, "") if child.null_count else member)
    inner = pc.utf8_slice_codeunits(join(pieces), 1)
    return _mask_nulls(array, join(["{", inner, "}"]))


def _render_maps(array: pa.MapArray, profile: Profile) -> pa.Array:
    entries = list_map_entries(array)
    keys, items = entries.flatten().flatten()
    values = pc.fill_null(render_json(items, profile), "null")
    if not profile.hashed:
        names = quote_json(_encode_base64(keys) if _is_binary(keys.type) else render_text(keys))
        return _join_members(entries, join([names, ":", values]), "{}")
    if pt.is_string(keys.type):
        ends, members = "{}", join([quote_json(keys), ":", values])
    else:
        ends, members = "[]", join(["[", pc.fill_null(render_json(keys, profile), "null"), ",", values, "]"])
    owners = pc.list_parent_indices(pa.ListArray.from_arrays(compute_flat_offsets(entries), members))
    # By the key's own text: quoting would order a quote or a control character elsewhere.
    table = pa.table({"owner": owners, "key": render_text(keys), "member": members})
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in table.column_names])
    return _join_members(entries, members.take(order), ends)


def _join_members(lists: pa.Array, members: pa.Array, ends: str) -> pa.Array:
    inner = pc.binary_join(pa.ListArray.from_arrays(compute_flat_offsets(lists), pc.fill_null(members, "null")), ",")
    return _mask_nulls(lists, join([ends[0], inner, ends[1]]))


def _mask_nulls(array: pa.Array, texts: pa.Array) -> pa.Array:
    return pc.if_else(array.is_valid(), texts, pa.scalar(None, pa.string())) if array.null_count else texts


def _render_floats(array: pa.Array) -> pa.Array:
    """Render floats as Python's repr does. Arrow's text has the fewest digits for the width, float32 included."""
    plain = array.cast(pa.string())
    size = pc.abs(array)
    lowest, end = _PLAIN_FLOATS
    usual = pc.or_(pc.equal(size, 0.0), pc.and_(pc.greater_equal(size, lowest), pc.less(size, end)))
    whole = pc.and_(usual, pc.invert(pc.match_substring(plain, ".")))
    pointed = pc.if_else(whole, pc.binary_join_element_wise(plain, ".0", ""), plain)
    return _replace_odd(pointed, pc.invert(usual), lambda text: repr(float(text)))


def _render_timestamps(array: pa.Array) -> pa.Array:
    # Arrow is twenty times slower with zoned timestamps, and UTC has the same text but for its Z.
    local, zone = array.cast(pa.timestamp("us")), "Z" if array.type.tz else ""
    first = local.slice(0, _REPEATING)
    if pc.count_distinct(first).as_py() * 2 > len(first):
        return _write_times(local, zone)
    encoded = local.dictionary_encode()
    return _write_times(encoded.dictionary, zone).take(encoded.indices)


def _write_times(local: pa.Array, zone: str) -> pa.Array:
    plain = local.cast(pa.string())
    widths = pc.min_max(pc.binary_length(plain))
    if widths["min"].as_py() == widths["max"].as_py() == _TIME_WIDTH:
        # Putting something at a place takes a quarter of the time that finding it does.
        spelled = pc.binary_replace_slice(plain, 10, 11, "T")
        return pc.binary_replace_slice(spelled, _TIME_WIDTH, _TIME_WIDTH, zone) if zone else spelled
    return join([pc.replace_substring(plain, " ", "T"), zone])


def _replace_odd(plain: pa.Array, odd: pa.Array, function: Callable[[str], str]) -> pa.Array:
    """Return ``plain`` with the texts at ``odd`` replaced one by one."""
    odd = pc.fill_null(odd, False)
    return replace_masked(plain, odd, _map_each(function, plain.filter(odd)))


def _encode_base64(array: pa.Array) -> pa.Array:
    return pa.array(_map_each(lambda value: b64encode(value).decode(), array), pa.string())


def _map_each(function: Callable[[Any], str], array: pa.Array) -> list[str | None]:
    return [None if value is None else function(value) for value in array.to_pylist()]


def _quote_one(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _unwrap(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pt.is_dictionary(array.type) else pc.run_end_decode(array)


def _is_binary(t: pa.DataType) -> bool:
    return any(check(t) for check in (pt.is_binary, pt.is_large_binary, pt.is_fixed_size_binary, pt.is_binary_view))
