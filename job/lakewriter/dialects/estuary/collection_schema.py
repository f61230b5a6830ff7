"""Read a collection's JSON Schema as locations: each property with the one kind that its column can have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.json_schema.reader import (
    ANY,
    JsonSchemaError,
    MissingReferenceError,
    Options,
    Rules,
    SchemaTooLargeError,
    read_options,
)
from lakewriter.json_schema.references import Schema
from lakewriter.spec.collection import Kind, Location

INFERRED: Final = "flow://inferred-schema"
_WRITE: Final = ("flow://write-schema", "flow://relaxed-write-schema")
_RULES: Final = Rules(
    annotations=("format", "contentEncoding"),
    # The vendor's connector skips arrays, or writes them whole as JSON strings: their items make no columns.
    reads_items=False,
    elsewhere=(INFERRED,),
)
_FORMATS: Final = {
    "date": Kind.DATE,
    "date-time": Kind.TIMESTAMP,
    "time": Kind.TIME,
    "duration": Kind.DURATION,
    "integer": Kind.TEXT_INTEGER,
    "number": Kind.TEXT_NUMBER,
}
_NUMERIC: Final = {Kind.TEXT_INTEGER, Kind.TEXT_NUMBER}
_EITHER_WAY: Final[Mapping[tuple[frozenset[str], Kind | None], Kind]] = {
    (frozenset({"integer", "string"}), Kind.TEXT_INTEGER): Kind.MIXED_INTEGER,
    (frozenset({"number", "string"}), Kind.TEXT_NUMBER): Kind.MIXED_NUMBER,
}
"""Kinds of two types that are numeric columns to the vendor's connector all the same."""


@dataclass(frozen=True)
class CollectionSchema:
    """All locations in the schema's order, an object before its properties; ``notes`` say what of the schema is unknown
    here."""

    locations: tuple[Location, ...]
    notes: tuple[str, ...] = ()


def read_schema(schema: Schema, write: Schema | None = None) -> CollectionSchema:
    """Read the locations of a schema, which may refer to the collection's ``write`` schema. The relaxed write schema,
    which only the platform makes, is taken to be the same.

    Raises ``SPEC_INVALID`` for an unknown type, a root that is no object, and a reference that leads nowhere.
    """
    options, elsewhere = _read(schema, {} if write is None else dict.fromkeys(_WRITE, write))
    types, properties = _find_types(options), _find_properties(options)
    if types is not None and "object" not in types:
        raise SpecInvalidError("the collection's schema is of no object; documents are objects.")
    if elsewhere and not properties:
        raise SpecInvalidError(
            f"the collection's schema is {INFERRED!r}, which only the vendor's platform has.",
            remedy="Give the schema itself, or leave it out: the types are then found in the documents.",
        )
    note = f"its schema refers to {INFERRED!r}, which only the vendor's platform has: nothing of that is written."
    return CollectionSchema(tuple(_list_locations(properties, ())), (note,) if elsewhere else ())


def _read(schema: Schema, others: Mapping[str, Schema]) -> tuple[Options, frozenset[str]]:
    try:
        return read_options(schema, replace(_RULES, others=others))
    except SchemaTooLargeError as error:
        raise SpecInvalidError(
            f"the collection's schema {error.what}.", remedy="Leave out what is not materialized."
        ) from error
    except JsonSchemaError as error:
        remedy = ""
        if isinstance(error, MissingReferenceError):
            remedy = "Write it out under $defs, or into a file beside, and refer to that."
        path = "/".join(error.path) or "the root"
        raise SpecInvalidError(f"the collection's schema {error.what} at {path}{error.rest}.", remedy=remedy) from error


def _list_locations(properties: Mapping[str, Options], path: tuple[str, ...]) -> Iterator[Location]:
    for name, options in properties.items():
        kind = _find_kind(options)
        yield Location((*path, name), kind)
        if kind is Kind.OBJECT:
            yield from _list_locations(_find_properties(options), (*path, name))


def _find_types(options: Options) -> frozenset[str] | None:
    """Find the types that a value may have; None for any."""
    types = frozenset(option.type for option in options)
    return None if ANY in types else types


def _find_properties(options: Options) -> Mapping[str, Options]:
    return next((option.properties for option in options if option.properties), {})


def _find_kind(options: Options) -> Kind:
    types = (_find_types(options) or frozenset()) - {"null"}
    if "number" in types:
        types -= {"integer"}
    text = _find_text_kind(options)
    if len(types) == 2 and (types, text) in _EITHER_WAY:
        return _EITHER_WAY[types, text]
    if len(types) != 1:
        return Kind.JSON if types else Kind.UNTYPED
    (name,) = types
    if name == "object":
        return Kind.OBJECT if _find_properties(options) else Kind.MAP
    return text or Kind.STRING if name == "string" else Kind(name)


def _find_text_kind(options: Options) -> Kind | None:
    """Find the kind that all strings of a value have; None if they may be any text."""
    kinds = {_find_format(option.annotations) for option in options if option.type == "string"}
    if kinds == _NUMERIC:
        return Kind.TEXT_NUMBER
    return kinds.pop() if len(kinds) == 1 else None


def _find_format(annotations: frozenset[tuple[str, str]]) -> Kind | None:
    """Find the kind of a string by all formats that it has at once; None for none, and for formats that differ."""
    if ("contentEncoding", "base64") in annotations:
        return Kind.BINARY
    kinds = {_FORMATS[value] for key, value in annotations if key == "format" and value in _FORMATS}
    if kinds == _NUMERIC:
        return Kind.TEXT_INTEGER
    return kinds.pop() if len(kinds) == 1 else None
