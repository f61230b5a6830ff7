"""What documents say of themselves, where no schema does: every property and the types it has."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa

from lakewriter.errors import SchemaIncompatibleError, ValueUnrepresentableError
from lakewriter.spec.collection import Kind, Location

MOST: Final = 2000
"""Properties beyond which objects are taken for maps with keys of their own."""

_KINDS: Final[Mapping[type, Kind]] = {
    bool: Kind.BOOLEAN,
    int: Kind.INTEGER,
    float: Kind.NUMBER,
    str: Kind.STRING,
    list: Kind.ARRAY,
    dict: Kind.OBJECT,
}

Seen = dict[tuple[str, ...], set[Kind]]


def seen_in(partition: int, batches: Iterable[pa.RecordBatch], column: int) -> Iterator[str]:
    """One JSON text: the paths of a partition's documents with their kinds, in the order they were first seen."""
    seen: Seen = {}
    for batch in batches:
        for text in batch.column(column).to_pylist():
            try:
                document = msgspec.json.decode(text or b"null")
            except msgspec.MsgspecError as error:
                raise ValueUnrepresentableError(
                    f"partition {partition}: a document is no JSON object ({error})."
                ) from error
            if isinstance(document, dict):
                _note(document, (), seen)
        if len(seen) > MOST:
            break
    yield json.dumps([[list(path), sorted(kinds)] for path, kinds in seen.items()])


def _note(document: dict[str, Any], path: tuple[str, ...], seen: Seen) -> None:
    for name, value in document.items():
        place = (*path, name)
        if value is None:
            continue
        kind = _KINDS[type(value)]
        if kind is Kind.INTEGER and not -(2**63) <= value < 2**63:
            kind = Kind.JSON
        seen.setdefault(place, set()).add(kind)
        if kind is Kind.OBJECT:
            _note(value, place, seen)


def merged(table: str, texts: Iterable[str]) -> tuple[Location, ...]:
    """The locations that all partitions saw; one inside another comes after it."""
    seen: Seen = {}
    for text in texts:
        for path, kinds in json.loads(text):
            seen.setdefault(tuple(path), set()).update(Kind(kind) for kind in kinds)
    if len(seen) > MOST:
        raise SchemaIncompatibleError(
            f"the documents of {table!r} have more than {MOST} properties in all.",
            remedy="Give the collection's schema, in which an object without declared properties is left out.",
        )
    kinds = {path: _settled(found) for path, found in seen.items()}
    holders = {path[:-1] for path in kinds}
    kinds |= {path: Kind.MAP for path, kind in kinds.items() if kind is Kind.OBJECT and path not in holders}
    inside = [path for path in kinds if all(kinds[path[:end]] is Kind.OBJECT for end in range(1, len(path)))]
    return tuple(Location(path, kinds[path]) for path in sorted(inside, key=_first_seen(inside)))


def _settled(kinds: set[Kind]) -> Kind:
    if kinds == {Kind.INTEGER, Kind.NUMBER}:
        return Kind.NUMBER
    return next(iter(kinds)) if len(kinds) == 1 else Kind.JSON


def _first_seen(paths: list[tuple[str, ...]]) -> Any:
    """Orders by where each step was first seen, so that what is inside an object stays together behind it."""
    ranks: dict[tuple[str, ...], int] = {}
    for path in paths:
        for end in range(1, len(path) + 1):
            ranks.setdefault(path[:end], len(ranks))
    return lambda path: tuple(ranks[path[:end]] for end in range(1, len(path) + 1))
