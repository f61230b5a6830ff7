"""Rows of an Avro container file: counted block by block, with the texts of their first field; a number of the first.

See: https://avro.apache.org/docs/1.12.0/specification/
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, BinaryIO, Final

from lakewriter.avro.container import MARKER_BYTES, decompress, read_bytes, read_exactly, read_header, read_long

_FIXED: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}

Skip = Callable[[BinaryIO], None]


def read_first_fields(file: BinaryIO, name: str | None) -> Iterator[tuple[int, list[str]]]:
    """Yield for each block its number of rows, and the texts of the field ``name``.

    There are texts only if that is the records' first field and a string. ``ValueError`` for a file that is no Avro
    container.
    """
    header = read_header(file)
    schema = json.loads(header.entries["avro.schema"])
    first, *rest = schema["fields"]
    is_wanted = first["name"] == name and _find_plain_type(first["type"]) == "string"
    skips = [_make_skipper(field["type"], {}) for field in rest]
    while True:
        start = file.read(1)
        if not start:
            return
        rows, size = read_long(file, start), read_long(file)
        block = BytesIO(decompress(header.codec, read_exactly(file, size)))
        read_exactly(file, MARKER_BYTES)
        yield rows, [_read_text(block, skips) for _ in range(rows)] if is_wanted else []


def read_schema(file: BinaryIO) -> dict[str, Any]:
    """Return the schema in a file's header; ``ValueError`` for a file that is no Avro container."""
    schema: dict[str, Any] = json.loads(read_header(file).entries["avro.schema"])
    return schema


def read_first_long(file: BinaryIO, path: Sequence[str]) -> int | None:
    """Return the number at ``path``, the names of nested records, in the first row; None if there is none."""
    header = read_header(file)
    start = file.read(1)
    if not start or not read_long(file, start):
        return None
    block = BytesIO(decompress(header.codec, read_bytes(file)))
    return _read_long_at(block, json.loads(header.entries["avro.schema"]), path, {})


def _read_long_at(block: BinaryIO, kind: Any, path: Sequence[str], named: dict[str, Skip]) -> int | None:
    branch = kind[read_long(block)] if isinstance(kind, list) else kind
    name = _find_plain_type(branch)
    if not path:
        return read_long(block) if name in ("int", "long") else None
    for field in branch["fields"] if name == "record" else ():
        if field["name"] == path[0]:
            return _read_long_at(block, field["type"], path[1:], named)
        _make_skipper(field["type"], named)(block)
    return None


def _read_text(block: BinaryIO, skips: list[Skip]) -> str:
    text = read_bytes(block).decode()
    _skip_each(block, skips)
    return text


def _find_plain_type(kind: Any) -> Any:
    return kind["type"] if isinstance(kind, dict) else kind


def _make_skipper(kind: Any, named: dict[str, Skip]) -> Skip:
    """Return a function that reads over one value of a type; ``named`` are the records met before."""
    if isinstance(kind, list):
        branches = [_make_skipper(branch, named) for branch in kind]
        return lambda file: branches[read_long(file)](file)
    name = _find_plain_type(kind)
    if name in _FIXED:
        size = _FIXED[name]
        return lambda file: _skip_bytes(file, size)
    if name in ("int", "long"):
        return _skip_long
    if name in ("bytes", "string"):
        return lambda file: _skip_bytes(file, read_long(file))
    return _make_nested_skipper(name, kind, named)


def _make_nested_skipper(name: Any, kind: Mapping[str, Any], named: dict[str, Skip]) -> Skip:
    if name == "record":
        fields: list[Skip] = []
        named[kind["name"]] = lambda file: _skip_each(file, fields)
        fields += [_make_skipper(field["type"], named) for field in kind["fields"]]
        return named[kind["name"]]
    if name in ("array", "map"):
        inner = _make_skipper(kind["items"] if name == "array" else kind["values"], named)
        return lambda file: _skip_blocks(file, inner, is_map=name == "map")
    if isinstance(name, str) and name in named:
        return named[name]
    raise ValueError(f"its schema has type {name!r}, which no load writes")


def _skip_long(file: BinaryIO) -> None:
    read_long(file)


def _skip_each(file: BinaryIO, skips: Iterable[Skip]) -> None:
    for skip in skips:
        skip(file)


def _skip_blocks(file: BinaryIO, inner: Skip, *, is_map: bool) -> None:
    while count := read_long(file):
        if count < 0:
            _skip_bytes(file, read_long(file))
            continue
        for _ in range(count):
            if is_map:
                _skip_bytes(file, read_long(file))
            inner(file)


def _skip_bytes(file: BinaryIO, size: int) -> None:
    file.seek(size, 1)
