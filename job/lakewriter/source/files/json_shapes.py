"""Find the shape of JSON documents, all of them or a sample, and choose columns that lose no digit."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.json_text import NumberText
from lakewriter.column_types import make_list
from lakewriter.documents.arrow_lines import ANY, Refusal, change_leaves, parse_json, parse_ranges
from lakewriter.naming import drop_marks
from lakewriter.source.files.json_blocks import Lines, parse_exactly
from lakewriter.source.files.json_by_arrow import DIGITS, LONG_NUMBER, PARSED_WIDE, WIDE
from lakewriter.source.files.json_columns import keeps_digits
from lakewriter.source.text_types import EXACT_DIGITS

Path = tuple[str | None, ...]
"""The names from a document to a value in it, None for an item of an array."""

_MOST_DIGITS: Final = 38
_EXACT_INTEGER: Final = 2**53
_SMALL: Final = (b"e-3", b"E-3")
"""Parts of a number close to zero, which a double may hold with fewer digits."""
_LONG_DIGITS: Final = 20
_EXACT_LINES: Final = 64
"""The lines that are parsed exactly at a time while members are looked for: most documents have all of them."""
_NO_SIGN: Final = re.compile("[^a-z0-9]")
_NUMBER_PARTS: Final = r"^-?(?P<before>[0-9]+)(?:\.(?P<behind>[0-9]+))?(?:[eE](?P<power>[+-]?[0-9]+))?$"


@dataclass(frozen=True)
class Numbers:
    """The numbers at one path: the digits before and behind the point that hold them all, and their common
    properties.
    """

    whole: int = 1
    scale: int = 0
    is_integer: bool = True
    """They are written without a point and without an exponent."""
    is_long: bool = True
    """They are integers of 64 bits."""
    is_double: bool = True
    """A double has all digits of each."""
    has_minus_zero: bool = False
    """An integer is written as -0, which no integer is."""

    def merge(self, other: "Numbers") -> "Numbers":
        """Return the properties of the numbers of both."""
        return Numbers(
            max(self.whole, other.whole),
            max(self.scale, other.scale),
            self.is_integer and other.is_integer,
            self.is_long and other.is_long,
            self.is_double and other.is_double,
            self.has_minus_zero or other.has_minus_zero,
        )

    def choose_type(self, *, prefers_decimal: bool) -> pa.DataType:
        """Return the type that holds all of them: text if no number type does."""
        if not self.whole:
            return pa.float64()
        is_integer = self.is_integer and not (self.has_minus_zero and self.is_double)
        fits = self.whole + self.scale <= _MOST_DIGITS
        if is_integer and self.is_long:
            return pa.int64()
        if not is_integer and self.is_double and not (prefers_decimal and fits):
            return pa.float64()
        return pa.decimal128(self.whole + self.scale, self.scale) if fits else pa.string()


_BEYOND: Final = Numbers(whole=0)
"""A number that no type holds."""


@dataclass(frozen=True)
class Shape:
    """The shape of the values at one path: ``kinds`` of null, boolean, text, and the shapes of numbers, members and
    items.
    """

    kinds: frozenset[str] = frozenset()
    numbers: Numbers | None = None
    members: Mapping[str, "Shape"] | None = None
    items: "Shape | None" = None

    def merge(self, other: "Shape") -> "Shape":
        """Return the shape of the values of both."""
        return Shape(
            self.kinds | other.kinds,
            _merge(self.numbers, other.numbers),
            _merge_members(self.members, other.members),
            _merge(self.items, other.items),
        )


def _merge(one: Any, other: Any) -> Any:
    return one.merge(other) if one is not None and other is not None else one if other is None else other


def _merge_members(one: Mapping[str, Shape] | None, other: Mapping[str, Shape] | None) -> Mapping[str, Shape] | None:
    if one is None or other is None:
        return one if other is None else other
    merged = dict(one)
    for name, shape in other.items():
        merged[name] = merged[name].merge(shape) if name in merged else shape
    return merged


NOTHING: Final = Shape()
_NULL: Final = Shape(frozenset(["null"]))
_TEXT: Final = Shape(frozenset(["text"]))
_BOOLEAN: Final = Shape(frozenset(["boolean"]))


@dataclass(frozen=True)
class TypeChoice:
    """The options of Spark by which types are chosen, under Spark's names. What has no value has the type null."""

    prefers_decimal: bool = False
    is_text: bool = False
    drops_nulls: bool = False

    def choose(self, shape: Shape) -> pa.DataType | None:
        """Return the type of a path; None if its values are all null and can be left out."""
        held = [*(shape.kinds - {"null"}), *(["number"] if shape.numbers else [])]
        held += ["object"] if shape.members is not None else []
        held += ["array"] if shape.items is not None else []
        if not held:
            return None
        if len(held) > 1:
            return pa.string()
        if shape.members is not None:
            fields = self.list_fields(shape.members)
            return None if self.drops_nulls and not fields else pa.struct(fields)
        if shape.items is not None:
            item = self.choose(shape.items)
            return None if item is None and self.drops_nulls else make_list(pa.null() if item is None else item)
        if self.is_text or held == ["text"]:
            return pa.string()
        return pa.bool_() if shape.numbers is None else shape.numbers.choose_type(prefers_decimal=self.prefers_decimal)

    def list_fields(self, members: Mapping[str, Shape]) -> list[pa.Field]:
        """Return the fields of an object, by name as Spark orders them; names that are alike have the order of the
        members among themselves.
        """
        names = sorted(members, key=_order_name)
        for group in _group_alike(members):
            alike = iter(group)
            names = [next(alike) if name in group else name for name in names]
        kinds = {name: self.choose(members[name]) for name in names}
        return [
            pa.field(name, pa.null() if kind is None else kind)
            for name, kind in kinds.items()
            if kind is not None or not self.drops_nulls
        ]


def _order_name(name: str) -> bytes:
    """Return the key that orders names as Java compares them."""
    return name.encode("utf-16-be")


def _group_alike(names: Iterable[str]) -> list[list[str]]:
    """Return the groups of names that may be written as one name, in their order, with the names that numbers behind
    such a name could give.
    """
    groups: dict[str, dict[str, str]] = {}
    for name in names:
        plain = _NO_SIGN.sub("", drop_marks(name).lower())
        groups.setdefault(plain.rstrip("0123456789"), {})[name] = plain
    return [list(group) for group in groups.values() if len(set(group.values())) < len(group)]


def list_alike(shape: Shape, within: Path = ()) -> Iterator[Path]:
    """Yield the members at any depth whose names may be written as one name."""
    if shape.members is not None:
        yield from ((*within, name) for group in _group_alike(shape.members) for name in group)
        for name, member in shape.members.items():
            yield from list_alike(member, (*within, name))
    if shape.items is not None:
        yield from list_alike(shape.items, (*within, None))


@dataclass(frozen=True)
class Alike:
    """Members whose order of first appearance decides between their names.

    ``levels`` has the names on the way to them in each object and array, by the spellings that are one name.
    """

    paths: frozenset[Path]
    levels: Mapping[Path, Mapping[str, str]]

    @classmethod
    def make(cls, paths: Iterable[Path]) -> "Alike":
        """Return the members at ``paths``."""
        whole, levels = frozenset(paths), dict[Path, dict[str, str]]()
        for path in whole:
            for depth, name in enumerate(path):
                spelled = levels.setdefault(path[:depth], {})
                if name is not None:
                    spelled.setdefault(name.lower(), name)
                    spelled[name] = name
        return cls(whole, levels)

    def find_first(self, lines: Lines, seen: dict[Path, None]) -> None:
        """Add the members to ``seen`` in the order in which the documents of ``lines`` have them."""
        numbers = [number for number in range(len(lines)) if self._may_have(lines.get(number), seen)]
        for start in range(0, len(numbers), _EXACT_LINES):
            for document in parse_exactly(lines, numbers[start : start + _EXACT_LINES]).documents:
                self._walk(document, (), seen)
            if len(seen) == len(self.paths):
                return

    def _may_have(self, line: bytes, seen: Collection[Path]) -> bool:
        """Return False for a line without any of the members that are not ``seen``."""
        text = line.lower()
        missing = (str(path[-1]).lower() for path in self.paths if path not in seen)
        # Escapes and letters beyond ASCII have several spellings.
        return b"\\" in line or any(not name.isascii() or name.encode() in text for name in missing)

    def _walk(self, value: Any, within: Path, seen: dict[Path, None]) -> None:
        spelled = self.levels.get(within)
        if spelled is None:
            return
        if isinstance(value, list):
            for item in value:
                self._walk(item, (*within, None), seen)
        elif isinstance(value, dict):
            for name, member in value.items():
                column = spelled.get(name) or spelled.get(name.lower())
                if column is not None:
                    path = (*within, column)
                    if path in self.paths:
                        seen.setdefault(path)
                    self._walk(member, path, seen)


def order_members(shape: Shape, seen: Iterable[Path]) -> Shape:
    """Return the shape with members in the order in which they were ``seen``."""
    return _order_level(shape, {path: number for number, path in enumerate(seen)}, ())


def _order_level(shape: Shape, ranks: Mapping[Path, int], within: Path) -> Shape:
    members = shape.members
    if members is not None:
        names = sorted(members, key=lambda name: ranks.get((*within, name), len(ranks)))
        members = {name: _order_level(members[name], ranks, (*within, name)) for name in names}
    items = None if shape.items is None else _order_level(shape.items, ranks, (*within, None))
    return replace(shape, members=members, items=items)


def describe_values(values: Iterable[Any]) -> Shape:
    """Return the common shape of parsed values. Each key is described once, for all values."""
    kinds, numbers = set[str](), set[str]()
    members: dict[str, list[Any]] | None = None
    items: list[Any] | None = None
    for value in values:
        if isinstance(value, NumberText):
            numbers.add(value)
        elif isinstance(value, dict):
            members = {} if members is None else members
            for name, member in value.items():
                members.setdefault(name, []).append(member)
        elif isinstance(value, list):
            items = [] if items is None else items
            items.extend(value)
        else:
            kinds.add("null" if value is None else "boolean" if isinstance(value, bool) else "text")
    return Shape(
        frozenset(kinds),
        reduce(_merge, (_describe_number(text).numbers for text in numbers), None),
        None if members is None else {name: describe_values(of_name) for name, of_name in members.items()},
        None if items is None else describe_values(items),
    )


def _describe_number(text: str) -> Shape:
    """Return the shape of a number. If its exponent is beyond every type, it fits nowhere and has no digits."""
    mantissa, _, exponent = text.lower().partition("e")
    is_zero, number = not mantissa.strip("-0."), float(text)
    if exponent and (math.isinf(number) or (not number and not is_zero)):
        return Shape(numbers=_BEYOND)
    is_integer = not exponent and "." not in text
    whole, scale = (1, 0) if is_zero else _count_digits(Decimal(text))
    is_long = is_integer and whole < _LONG_DIGITS and -(2**63) <= int(text) < 2**63
    is_short = not exponent and len(text) <= EXACT_DIGITS
    is_double = abs(int(text)) <= _EXACT_INTEGER if is_long else is_short or keeps_digits(text)
    return Shape(numbers=Numbers(whole, scale, is_integer, is_long, is_double, text == "-0"))


def _count_digits(number: Decimal) -> tuple[int, int]:
    """Return the number of digits before and behind the point of a number that is not zero."""
    _, digits, power = number.as_tuple()
    assert isinstance(power, int)
    count = len(digits)
    while not digits[count - 1]:
        count, power = count - 1, power + 1
    return max(count + power, 1), max(-power, 0)


def describe_lines(lines: Lines, step: int = 1) -> Shape:
    """Return the shape of the documents of every ``step``-th line. Lines that are not documents have no shape."""
    plain = lines.may_be_fast.copy()
    plain[lines.find_minus_zeros()] = False
    shape, read = NOTHING, np.ones(len(lines), np.bool_)
    read[::step] = False
    for numbers, part in parse_ranges(lines, np.flatnonzero(plain & ~read), _describe_plain):
        shape, read[numbers] = shape.merge(part), True
    documents = parse_exactly(lines, np.flatnonzero(~read).tolist()).documents
    others = [document for document in documents if document is not None]
    return shape.merge(describe_values(others)) if others else shape


def _describe_plain(data: bytes, count: int) -> Shape | Refusal:
    """Return the shape of plain lines; or what is refused of them."""
    table = parse_json(data, count, None)
    if isinstance(table, Refusal):
        return table
    exact = table
    if LONG_NUMBER in data.translate(DIGITS) or any(part in data for part in _SMALL):
        exact = parse_json(data, count, pa.schema(list(change_leaves(pa.struct(list(table.schema)), _widen))))
        if isinstance(exact, Refusal):
            return exact
    try:
        return Shape(
            members={
                name: _describe_array(table[name].combine_chunks(), exact[name].combine_chunks())
                for name in table.column_names
            }
        )
    except (pa.ArrowInvalid, _UnclearError):
        return ANY


class _UnclearError(Exception):
    """Numbers whose text is needed to describe them."""


def _widen(leaf: pa.DataType) -> pa.DataType:
    return PARSED_WIDE if pt.is_float64(leaf) else leaf


def _describe_array(array: pa.Array, exact: pa.Array) -> Shape:
    """Return the shape of parsed values; ``exact`` are the same values with all digits, if they were parsed so."""
    kind = array.type
    if pt.is_null(kind):
        return _NULL
    if pt.is_struct(kind):
        return Shape(
            members={
                field.name: _describe_array(array.field(index), exact.field(index)) for index, field in enumerate(kind)
            }
        )
    if pt.is_list(kind):
        return Shape(items=_describe_array(array.values, exact.values))
    if pt.is_int64(kind):
        return Shape(numbers=_describe_integers(array))
    if pt.is_float64(kind):
        return Shape(numbers=_describe_doubles(array, exact))
    # A text that looks like a time is parsed as one: it is text.
    return _BOOLEAN if pt.is_boolean(kind) else _TEXT


def _describe_integers(array: pa.Array) -> Numbers:
    ends = pc.min_max(array).as_py()
    most = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
    return Numbers(whole=len(str(most)), is_double=most <= _EXACT_INTEGER)


def _describe_doubles(array: pa.Array, exact: pa.Array) -> Numbers:
    if not pc.all(pc.is_finite(array)).as_py():
        raise _UnclearError
    texts, is_double = array.cast(pa.string()), True
    if pt.is_decimal(exact.type):
        exact = exact.cast(WIDE)
        is_double = pc.all(pc.equal(exact, texts.cast(WIDE))).as_py()
        texts = texts if is_double else exact.cast(pa.string())
    # Arrow divides decimals of more than one word wrongly, and rounding and casting them to fewer places with it.
    parts = pc.extract_regex(texts, _NUMBER_PARTS)
    powers = pc.if_else(pc.equal(parts.field("power"), ""), "0", parts.field("power")).cast(pa.int64())
    behind = pc.utf8_length(pc.utf8_rtrim(parts.field("behind"), "0"))
    before = pc.utf8_length(parts.field("before"))
    whole, scale = pc.max(pc.add(before, powers)).as_py(), pc.max(pc.subtract(behind, powers)).as_py()
    if scale <= 0 and pc.max(pc.abs(array)).as_py() >= 2**63:
        raise _UnclearError
    return Numbers(max(whole, 1), max(scale, 0), False, False, is_double)


def fold_files(shapes: Sequence[Shape]) -> Shape:
    """Return the shape of the documents of all files.

    Names that differ by case alone are one name, as the first file spells it, unless one file has both.
    """
    members = [shape.members for shape in shapes if shape.members is not None]
    items = [shape.items for shape in shapes if shape.items is not None]
    numbers = None
    for shape in shapes:
        numbers = _merge(numbers, shape.numbers)
    return Shape(
        frozenset().union(*(shape.kinds for shape in shapes)),
        numbers,
        _fold_members(members) if members else None,
        fold_files(items) if items else None,
    )


def _fold_members(files: Sequence[Mapping[str, Shape]]) -> dict[str, Shape]:
    apart = {
        name.lower()
        for members in files
        for name, count in Counter(name.lower() for name in members).items()
        if count > 1
    }
    spelled: dict[str, str] = {}
    of_name: dict[str, list[Shape]] = {}
    for members in files:
        for name, shape in members.items():
            folded = name.lower()
            column = name if folded in apart else spelled.setdefault(folded, name)
            of_name.setdefault(column, []).append(shape)
    return {name: fold_files(shapes) if len(shapes) > 1 else shapes[0] for name, shapes in of_name.items()}


def spell(fields: Iterable[pa.Field], shape: Shape) -> list[pa.Field]:
    """Return the fields of all files with the names of one file."""
    fields, members = list(fields), shape.members or {}
    names = {field.name for field in fields}
    others = {name.lower(): name for name in members if name not in names}
    spelled = []
    for field in fields:
        name = field.name if field.name in members else others.get(field.name.lower(), field.name)
        spelled.append(pa.field(name, _spell_type(field.type, members.get(name, NOTHING))))
    return spelled


def _spell_type(kind: pa.DataType, shape: Shape) -> pa.DataType:
    if pt.is_struct(kind):
        return pa.struct(spell(kind, shape))
    return make_list(_spell_type(kind.value_type, shape.items or NOTHING)) if pt.is_list(kind) else kind
