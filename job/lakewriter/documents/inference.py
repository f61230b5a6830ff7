"""Infer from documents without a schema what they hold: every property, and whether it has values itself."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import pyarrow as pa

from lakewriter.cast.json_text import require_shallow
from lakewriter.documents.nesting import Path, open_object
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.spec.collection import Kind

MOST_PROPERTIES: Final = 2000
"""Objects with more properties are taken for maps with varying keys."""

Seen = Mapping[Path, frozenset[Kind]]
"""By path: ``value`` for a string, number or boolean, ``object`` for one with properties, ``map`` for one without,
``array``. Null is none of them.
"""


def collect_paths(partition: int, batches: Iterable[pa.RecordBatch], column: int) -> Iterator[str]:
    """Yield one JSON text: the paths of a partition's documents and their kinds, in the order of their first sight.

    A text that is not a document is passed over: it is a bad row when the rows are shaped.
    """
    seen: dict[Path, set[Kind]] = {}
    for batch in batches:
        for text in batch.column(column).to_pylist():
            try:
                document = open_object(require_shallow(text or b"null"))
            except ValueError:
                continue
            _note(document, (), seen)
        if len(seen) > MOST_PROPERTIES:
            break
    yield json.dumps([[list(path), sorted(kinds)] for path, kinds in seen.items()])


def _note(document: Mapping[str, msgspec.Raw], path: Path, seen: dict[Path, set[Kind]]) -> None:
    for name, raw in document.items():
        mark = bytes(memoryview(raw)[:1])
        if mark == b"n":
            continue
        inner_path = (*path, name)
        inner = open_object(raw) if mark == b"{" else None
        kinds = seen.setdefault(inner_path, set())
        if inner is None:
            kinds.add(Kind.ARRAY if mark == b"[" else Kind.VALUE)
        else:
            kinds.add(Kind.OBJECT if inner else Kind.MAP)
            _note(inner, inner_path, seen)


def merge_paths(table: str, texts: Iterable[str]) -> Seen:
    """Merge the kinds that all partitions saw; one path inside another comes after it."""
    seen: dict[Path, set[Kind]] = {}
    for text in texts:
        for path, kinds in json.loads(text):
            seen.setdefault(tuple(path), set()).update(Kind(kind) for kind in kinds)
    require_few(table, len(seen))
    return {path: frozenset(seen[path]) for path in sorted(seen, key=_rank_by_first_seen(list(seen)))}


def require_few(table: str, count: int) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` for more properties than a table has columns for."""
    if count > MOST_PROPERTIES:
        raise SchemaIncompatibleError(
            f"the documents of {table!r} have more than {MOST_PROPERTIES} properties in all.",
            remedy="Give the collection's schema, in which an object without declared properties is left out.",
        )


def _rank_by_first_seen(paths: list[Path]) -> Any:
    """Return a sort key by where each step was first seen, so that the members of an object stay together behind it."""
    ranks: dict[Path, int] = {}
    for path in paths:
        for end in range(1, len(path) + 1):
            ranks.setdefault(path[:end], len(ranks))
    return lambda path: tuple(ranks[path[:end]] for end in range(1, len(path) + 1))
