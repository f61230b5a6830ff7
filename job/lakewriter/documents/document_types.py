"""The types of JSON documents, and how a file stores them; pure, no values are touched here.

A union is stored as a struct: ``type`` names the branch that is set, and each branch has a field of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa

from lakewriter.column_types import UTC_MICROS

KIND: Final = b"lakewriter.kind"
"""Field metadata: what the Arrow type alone does not tell; one of the values below."""
JSON: Final = b"json"
UUID: Final = b"uuid"
UNION: Final = b"union"
ORIGINAL: Final = b"lakewriter.name"
"""Field metadata: the name in the source, where the written one is another."""
RECORD: Final = b"lakewriter.record"
"""Schema metadata: the name of the whole record."""
ROW, DATA, EMITTED, CHANGES = "row", "data", "emitted_at", "changes"
DOCUMENTS: Final = pa.schema([(ROW, pa.int64()), (DATA, pa.string()), (EMITTED, pa.int64()), (CHANGES, pa.string())])
"""Batches of documents: a number that is the row's own in its load, JSON text, milliseconds since 1970, and what the
source says it changed, as JSON text."""
BRANCH: Final = "type"
"""The field of a union's struct that names the branch."""


class Kind(StrEnum):
    """What a leaf holds; ``JSON`` is any value as JSON text."""

    STRING = "string"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    DATE = "date"
    TIME_TZ = "time_with_timezone"
    TIME = "time_without_timezone"
    TIMESTAMP_TZ = "timestamp_with_timezone"
    TIMESTAMP = "timestamp_without_timezone"
    JSON = "json"


@dataclass(frozen=True)
class Leaf:
    """A value without parts."""

    kind: Kind


@dataclass(frozen=True)
class Record:
    """An object with declared properties, by their names in the source."""

    fields: "tuple[tuple[str, DocumentType], ...]"


@dataclass(frozen=True)
class Items:
    """An array."""

    item: "DocumentType"


@dataclass(frozen=True)
class Union:
    """One of several types, by the names of their branches, in the order in which a value is tried."""

    branches: "tuple[tuple[str, DocumentType], ...]"


DocumentType = Leaf | Record | Items | Union
Rename = Callable[[Sequence[str]], list[str]]

_LEAVES: Final = {
    Kind.STRING: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.INTEGER: pa.int64(),
    Kind.NUMBER: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.TIME_TZ: pa.time64("us"),
    Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP_TZ: UTC_MICROS,
    Kind.TIMESTAMP: UTC_MICROS,
    Kind.JSON: pa.string(),
}


def arrow_type(t: DocumentType, rename: Rename) -> pa.DataType:
    """The stored type; ``rename`` makes the names of one record safe and distinct."""
    if isinstance(t, Leaf):
        return _LEAVES[t.kind]
    if isinstance(t, Items):
        return pa.list_(arrow_field("element", t.item, rename))
    if isinstance(t, Union):
        branches = [arrow_field(name, branch, rename) for name, branch in t.branches]
        return pa.struct([pa.field(BRANCH, pa.string(), nullable=False), *branches])
    names = rename([name for name, _ in t.fields])
    fields = zip(names, t.fields, strict=True)
    return pa.struct([arrow_field(name, own, rename, original) for name, (original, own) in fields])


def arrow_field(name: str, t: DocumentType, rename: Rename, original: str | None = None) -> pa.Field:
    """A nullable field with what its type does not tell as metadata."""
    metadata = {KIND: UNION} if isinstance(t, Union) else {}
    if original is not None and original != name:
        metadata[ORIGINAL] = original.encode()
    return pa.field(name, arrow_type(t, rename), metadata=metadata or None)
