"""Glue's (Hive's) type texts read into Arrow types, nested ones included."""

import re
from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from job.errors import SchemaIncompatibleError

_TOKEN: Final = re.compile(r"[^<>,:()\s]+|[<>,:()]")
_DEFAULT_DECIMAL: Final = (10, 0)
"""Hive's meaning of a decimal without arguments."""


def list_of(t: pa.DataType) -> pa.DataType:
    """A list whose element has the name the Parquet standard gives it."""
    return pa.list_(pa.field("element", t))


def parse(glue: str, scalars: Mapping[str, pa.DataType], timestamp: pa.DataType) -> pa.DataType:
    """The Arrow type of ``glue``; ``scalars`` are the types by name that take no arguments that matter."""
    tokens = _TOKEN.findall(glue.lower())[::-1]
    try:
        t = _parse(tokens, scalars, timestamp)
        if tokens:
            raise ValueError(f"unexpected {tokens[-1]!r} after the type's end")
    except (IndexError, KeyError, ValueError, TypeError) as exc:
        raise SchemaIncompatibleError(f"Glue type {glue!r} is not one that can be written.") from exc
    return t


def _parse(tokens: list[str], scalars: Mapping[str, pa.DataType], timestamp: pa.DataType) -> pa.DataType:
    kind = tokens.pop()
    if kind == "timestamp":
        return timestamp
    if kind == "decimal":
        return pa.decimal128(*_arguments(tokens, default=_DEFAULT_DECIMAL))
    if kind in ("array", "map", "struct"):
        return _parse_nested(kind, tokens, scalars, timestamp)
    if kind in ("char", "varchar"):
        _arguments(tokens, default=())
    return scalars[kind]


def _parse_nested(
    kind: str, tokens: list[str], scalars: Mapping[str, pa.DataType], timestamp: pa.DataType
) -> pa.DataType:
    _expect(tokens, "<")
    fields: list[pa.Field] = []
    while not fields or tokens[-1] == ",":
        if fields:
            _expect(tokens, ",")
        name = ""
        if kind == "struct":
            name = tokens.pop()
            _expect(tokens, ":")
        fields.append(pa.field(name, _parse(tokens, scalars, timestamp)))
    _expect(tokens, ">")
    if kind == "struct":
        return pa.struct(fields)
    if kind == "array":
        (element,) = fields
        return list_of(element.type)
    key, value = fields
    return pa.map_(key.type, value.type)


def _arguments(tokens: list[str], *, default: tuple[int, ...]) -> tuple[int, ...]:
    if not tokens or tokens[-1] != "(":
        return default
    tokens.pop()
    numbers = [int(tokens.pop())]
    while tokens[-1] == ",":
        tokens.pop()
        numbers.append(int(tokens.pop()))
    _expect(tokens, ")")
    return tuple(numbers)


def _expect(tokens: list[str], mark: str) -> None:
    if tokens.pop() != mark:
        raise ValueError(mark)
