"""Types as ``columns:`` and ``read.columns`` spell them, in SQL's words, as Arrow types; no Spark is asked."""

import difflib
import re
from collections.abc import Callable
from typing import Final, TypeVar

import pyarrow as pa

from lakewriter.column_types import UTC_MICROS, make_list

TYPE_NAMES: Final = (
    "string, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, timestamp, timestamp_ntz, "
    "binary, char(n), varchar(n), array<type>, map<type,type>, struct<name: type>"
)
"""The types for messages; their aliases are left out."""

_SCALARS: Final = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": UTC_MICROS,
    "timestamp_ltz": UTC_MICROS,
    "timestamp_ntz": pa.timestamp("us"),
    "binary": pa.binary(),
}
_DECIMALS: Final = ("decimal", "dec", "numeric")
_CHARACTERS: Final = ("char", "character", "varchar")
_NESTED: Final = ("array", "map", "struct")
_DEFAULT_DECIMAL: Final = [10, 0]
_MOST_DIGITS: Final = 38

Parsed = TypeVar("Parsed")

_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)+`|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|\w+|[<>(),:]|\S)")


def parse_type(text: str) -> pa.DataType:
    """Return the Arrow type of one SQL type, such as ``decimal(10,2)`` or ``array<struct<id: bigint>>``.

    Char and varchar are text of any length. ``ValueError`` says what is wrong and lists the types.
    """
    return _parse(text, lambda tokens: tokens.read_type())


def parse_columns(text: str) -> pa.Schema:
    """Return the schema of a list of columns, such as ``id BIGINT NOT NULL, name STRING``, everything nullable.

    ``struct<...>`` stands for its fields, any other type alone for a column ``value``. ``ValueError`` names what
    is wrong.
    """
    try:
        kind = parse_type(text)
    except ValueError:
        return pa.schema(_parse(text, lambda tokens: tokens.read_fields()))
    return pa.schema(list(kind) if pa.types.is_struct(kind) else [pa.field("value", kind)])


def _parse(text: str, read: "Callable[[_Tokens], Parsed]") -> Parsed:
    tokens = _Tokens(text)
    try:
        parsed = read(tokens)
        tokens.require_end()
    except _SyntaxError as error:
        # A comma ends a value in braces, as in {amount: decimal(12,2)}.
        is_cut = re.fullmatch(r"\s*(decimal\(\d+|map<\w+)", text, re.IGNORECASE)
        quotes = " Within {...} of YAML a type with a comma needs quotes: {amount: 'decimal(12,2)'}." if is_cut else ""
        ending = "" if str(error).endswith("?") else "."
        raise ValueError(f"{error}{ending}{quotes} Types: {TYPE_NAMES}") from error
    return parsed


class _SyntaxError(Exception):
    """A syntax error: what was expected, and what is there instead."""


class _Tokens:
    """The tokens of a text, read from left to right."""

    def __init__(self, text: str) -> None:
        self._rest = _TOKEN.findall(text)[::-1]

    def read_type(self) -> pa.DataType:
        name = self._take("a type")
        word = name.lower()
        if word in _NESTED:
            return self._read_nested(word)
        if word in _DECIMALS:
            return self._read_decimal()
        if word in _CHARACTERS:
            if len(self._read_numbers()) != 1:
                raise _SyntaxError(f"expected a length, as in {word}(10)")
            return pa.string()
        if word not in _SCALARS:
            near = difflib.get_close_matches(word, [*_SCALARS, *_DECIMALS, *_CHARACTERS, *_NESTED], 1, 0.7)
            raise _SyntaxError(f"there is no type {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return _SCALARS[word]

    def read_fields(self, end: str = "") -> list[pa.Field]:
        """Read the fields up to ``end``: each a name, its type, and what SQL may say behind it."""
        fields: list[pa.Field] = []
        while not fields or self._skip(","):
            name = self._take("a name")
            if not (name.startswith("`") or re.fullmatch(r"\w+", name)):
                raise _SyntaxError(f"expected a name, got {name!r}; put other names in backquotes")
            self._skip(":")
            fields.append(pa.field(name[1:-1].replace("``", "`") if name[0] == "`" else name, self.read_type()))
            if self._skip("not"):
                self._expect("null")
            if self._skip("comment"):
                self._take("a comment")
        if end:
            self._expect(end)
        return fields

    def require_end(self) -> None:
        if self._rest:
            raise _SyntaxError(f"unexpected {self._rest[-1]!r}")

    def _read_nested(self, word: str) -> pa.DataType:
        self._expect("<")
        if word == "struct":
            return pa.struct([] if self._skip(">") else self.read_fields(">"))
        first = self.read_type()
        if word == "array":
            self._expect(">")
            return make_list(first)
        self._expect(",")
        second = self.read_type()
        self._expect(">")
        return pa.map_(first, second)

    def _read_decimal(self) -> pa.DataType:
        numbers = self._read_numbers() or _DEFAULT_DECIMAL
        precision, scale = (*numbers, 0)[:2]
        if len(numbers) > 2 or not 0 <= scale <= precision <= _MOST_DIGITS or precision < 1:
            raise _SyntaxError(f"expected decimal(p,s) with p from 1 to {_MOST_DIGITS} and s from 0 to p")
        return pa.decimal128(precision, scale)

    def _read_numbers(self) -> list[int]:
        numbers: list[int] = []
        if self._skip("("):
            while not numbers or self._skip(","):
                number = self._take("a number")
                if not (number.isascii() and number.isdigit() and len(number) < 10):
                    raise _SyntaxError(f"expected a number, got {number!r}")
                numbers.append(int(number))
            self._expect(")")
        return numbers

    def _skip(self, token: str) -> bool:
        is_next = bool(self._rest) and self._rest[-1].lower() == token
        if is_next:
            self._rest.pop()
        return is_next

    def _expect(self, token: str) -> None:
        if not self._skip(token):
            raise _SyntaxError(f"expected {token!r}, got {repr(self._rest[-1]) if self._rest else 'the end'}")

    def _take(self, what: str) -> str:
        if not self._rest:
            raise _SyntaxError(f"expected {what}, got the end")
        return str(self._rest.pop())
