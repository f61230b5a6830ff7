"""Define the types of JSON documents, and how a file stores them; pure, no values are touched here.

A union is stored as a struct: ``type`` names the branch that is set, and each branch has a field of its own.
"""

from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.kind_values import ARROW
from lakewriter.column_types import ELEMENT, Rename, enter
from lakewriter.spec.collection import Kind

KIND: Final = b"lakewriter.kind"
"""Field metadata: a kind that the Arrow type alone does not say; one of the values below."""
JSON: Final = b"json"
UUID: Final = b"uuid"
UNION: Final = b"union"
ORIGINAL: Final = b"lakewriter.name"
"""Field metadata: the name in the source if the written one differs."""
LOGICAL_TYPE: Final = b"lakewriter.logical_type"
"""Field metadata: a type of Parquet's that Arrow's does not say, ``json`` or ``interval``."""
RECORD: Final = b"lakewriter.record"
"""Schema metadata: the name of the whole record."""
ROW, DATA, EMITTED, CHANGES = "row", "data", "emitted_at", "changes"
FILE: Final = "__lakewriter_file"
"""The property of a document that refers to the file which belongs to it."""
DOCUMENTS: Final = pa.schema([(ROW, pa.int64()), (DATA, pa.string()), (EMITTED, pa.int64()), (CHANGES, pa.string())])
"""Batches of documents hold a number that each row has alone in its load, JSON text, milliseconds since 1970, and the
source's own changes as JSON text.
"""
TEXT_MAP: Final = pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False))
"""A record holds its properties without a field in this type, as text."""
BRANCH: Final = "type"
"""The field of a union's struct that names the branch."""


@dataclass(frozen=True)
class Leaf:
    """A value without parts, of a kind that vendors' schemas tell apart."""

    kind: Kind


@dataclass(frozen=True)
class Typed:
    """A value without parts, of a type of SQL's."""

    kind: pa.DataType


@dataclass(frozen=True)
class Record:
    """An object with declared properties, by their names in the source.

    ``declares_all`` is for an object that stands for alternatives of which one has no schema: that one declares every
    property, so a property without a field is a value that is lost. ``additional`` is the name of one more field, which
    takes the properties without a field as text.
    """

    fields: "tuple[tuple[str, DocumentType], ...]"
    declares_all: bool = False
    additional: str | None = None


@dataclass(frozen=True)
class Items:
    """An array."""

    item: "DocumentType"


@dataclass(frozen=True)
class Map:
    """An object whose members are alike, and whose names are data."""

    item: "DocumentType"


@dataclass(frozen=True)
class Union:
    """One of several types, by the names of their branches, in the order in which a value is tried.

    With ``takes_first`` a string goes to the first branch that takes it, which may be one of numbers.
    """

    branches: "tuple[tuple[str, DocumentType], ...]"
    takes_first: bool = False


DocumentType = Leaf | Typed | Record | Items | Map | Union


def make_document_type(t: pa.DataType) -> DocumentType:
    """Return the type of documents that are stored as ``t``, which has no renamed fields."""
    if pt.is_struct(t):
        return Record(tuple((field.name, make_document_type(field.type)) for field in t))
    if pt.is_list(t):
        return Items(make_document_type(t.value_type))
    return Map(make_document_type(t.item_type)) if pt.is_map(t) else Typed(t)


def make_stored_type(t: DocumentType, rename: Rename) -> pa.DataType:
    """Return the stored type of a vendor's schema; ``rename`` makes the names of one record safe and distinct."""
    if isinstance(t, Leaf):
        return ARROW[t.kind]
    if isinstance(t, Items):
        return pa.list_(make_arrow_field("element", t.item, enter(rename, ELEMENT)))
    if isinstance(t, Union):
        branches = [make_arrow_field(name, branch, enter(rename, name)) for name, branch in t.branches]
        return pa.struct([pa.field(BRANCH, pa.string(), nullable=False), *branches])
    assert isinstance(t, Record)
    more = [] if t.additional is None else [t.additional]
    names = rename([*more, *(name for name, _ in t.fields)])
    fields = zip(names[len(more) :], t.fields, strict=True)
    members = [make_arrow_field(name, kind, enter(rename, original), original) for name, (original, kind) in fields]
    return pa.struct([*members, *(pa.field(name, TEXT_MAP) for name in names[: len(more)])])


def make_arrow_field(name: str, t: DocumentType, rename: Rename, original: str | None = None) -> pa.Field:
    """Return a nullable field; its metadata hold what its type does not say: a union, a name in the source."""
    metadata = {KIND: UNION} if isinstance(t, Union) else {}
    if original is not None and original != name:
        metadata[ORIGINAL] = original.encode()
    return pa.field(name, make_stored_type(t, rename), metadata=metadata or None)
