"""A collection's JSON Schema read as locations: each property with the one kind its column can have."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lakewriter.dialects.common.problems import shown
from lakewriter.dialects.estuary.schema_references import INFERRED, References, Schema
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.collection import Kind, Location

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_OF_VALUES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}
_FORMATS: Final = {
    "date": Kind.DATE,
    "date-time": Kind.TIMESTAMP,
    "time": Kind.TIME,
    "integer": Kind.TEXT_INTEGER,
    "number": Kind.TEXT_NUMBER,
}
_NUMERIC: Final = {Kind.TEXT_INTEGER, Kind.TEXT_NUMBER}
_EITHER_WAY: Final[Mapping[tuple[frozenset[str], Kind | None], Kind]] = {
    (frozenset({"integer", "string"}), Kind.TEXT_INTEGER): Kind.MIXED_INTEGER,
    (frozenset({"number", "string"}), Kind.TEXT_NUMBER): Kind.MIXED_NUMBER,
}
"""Of two types, and numeric columns to the vendor's connector all the same."""
_DEEPEST: Final = 30
_MOST_PARTS: Final = 50_000
"""Of a schema, those it refers to counted wherever it does: two references in each of twenty make a million."""
_MOST_REFERENCES: Final = 100
"""One behind the other."""


@dataclass(frozen=True)
class CollectionSchema:
    """Every location, objects and arrays included, in the schema's order; a location comes before those inside it.
    ``notes`` say what of the schema is not known here."""

    locations: tuple[Location, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Found:
    """What is said of one location. ``types`` is None where any value may be, ``text`` where any string may be."""

    types: frozenset[str] | None = None
    text: Kind | None = None
    properties: Mapping[str, "_Found"] = field(default_factory=dict)


def read_schema(schema: Schema, write: Schema | None = None) -> CollectionSchema:
    """The locations of a schema that may refer to the collection's ``write`` schema.

    ``SPEC_INVALID`` for a type that JSON Schema does not have, a root that is no object, a reference to what is not
    there.
    """
    reader = _Reader(References(schema, write))
    found = reader.read(schema, schema, (), ((id(schema), ()),))
    if found.types is not None and "object" not in found.types:
        raise SpecInvalidError("the collection's schema is of no object; documents are objects.")
    if reader.inferred and not found.properties:
        raise SpecInvalidError(
            f"the collection's schema is {INFERRED!r}, which only the vendor's platform has.",
            remedy="Give the schema itself, or leave it out: then the documents tell.",
        )
    note = f"its schema refers to {INFERRED!r}, which only the vendor's platform has: nothing of that is written."
    return CollectionSchema(tuple(_listed(found, ())), (note,) if reader.inferred else ())


def _listed(found: _Found, path: tuple[str, ...]) -> Iterator[Location]:
    for name, own in found.properties.items():
        kind = _kind(own)
        place = (*path, name)
        yield Location(place, kind)
        if kind is Kind.OBJECT:
            yield from _listed(own, place)


def _kind(found: _Found) -> Kind:
    types = frozenset() if found.types is None else found.types - {"null"}
    if "number" in types:
        types -= {"integer"}
    if len(types) == 2 and (types, found.text) in _EITHER_WAY:
        return _EITHER_WAY[types, found.text]
    if len(types) != 1:
        return Kind.JSON if types else Kind.UNTYPED
    (name,) = types
    if name == "object":
        return Kind.OBJECT if found.properties else Kind.MAP
    return found.text or Kind.STRING if name == "string" else Kind(name)


class _Reader:
    """Reads the parts of one schema. ``above`` are the references that led there, since a type may hold itself;
    ``inferred`` tells whether the platform's own schema was referred to."""

    def __init__(self, references: References) -> None:
        self._references = references
        self.inferred = False
        self._parts = 0

    def read(self, schema: Any, document: Schema, path: tuple[str, ...], above: tuple[Any, ...]) -> _Found:
        """What the schema of one location says; ``document`` is what its references start in."""
        if not isinstance(schema, Mapping) or len(path) > _DEEPEST:
            return _Found()
        self._parts += 1
        if self._parts > _MOST_PARTS or len(above) > _MOST_REFERENCES:
            raise SpecInvalidError(
                f"the collection's schema has more than {_MOST_PARTS:,} parts, or {_MOST_REFERENCES} references one "
                "behind the other, where its references are followed.",
                remedy="Leave out of it what is not materialized.",
            )
        parts = [self._own(schema, document, path, above)]
        if "$ref" in schema:
            parts.append(self._referred(_reference(schema["$ref"], path), document, path, above))
        for each in _listed_under("allOf", schema, path):
            parts.append(self.read(each, document, path, above))
        for key in ("oneOf", "anyOf"):
            if options := [self.read(each, document, path, above) for each in _listed_under(key, schema, path)]:
                parts.append(_either(options))
        return _both(parts)

    def _referred(self, reference: str, document: Schema, path: tuple[str, ...], above: tuple[Any, ...]) -> _Found:
        found = self._references.target(reference, document, _place(path))
        if found is None:
            self.inferred = True
            return _Found()
        schema, inside = found
        if (id(schema), path) in above:
            return _Found()
        if any(id(schema) == known for known, _ in above):
            # A type that holds itself has no end of columns: from here on it is an object like any other.
            return _Found(_types(schema, path))
        return self.read(schema, inside, path, (*above, (id(schema), path)))

    def _own(self, schema: Schema, document: Schema, path: tuple[str, ...], above: tuple[Any, ...]) -> _Found:
        types = _types(schema, path)
        binary = schema.get("contentEncoding") == "base64"
        text = Kind.BINARY if binary else _FORMATS.get(str(schema.get("format")))
        if types is not None and "object" not in types:
            return _Found(types, text)
        named = _properties(schema)
        for name in named:
            if not isinstance(name, str):
                raise SpecInvalidError(
                    f"the collection's schema has a property at {_place(path)} whose name is not text.",
                    remedy="Put the name in quotes.",
                )
        return _Found(
            types, text, {name: self.read(own, document, (*path, name), above) for name, own in named.items()}
        )


def _reference(value: Any, path: tuple[str, ...]) -> str:
    if not isinstance(value, str):
        raise SpecInvalidError(
            f"the collection's schema has {shown(value, ())} as '$ref' at {_place(path)}; expected text, a reference."
        )
    return value


def _listed_under(key: str, schema: Schema, path: tuple[str, ...]) -> Sequence[Any]:
    value = schema.get(key) or []
    if not isinstance(value, list):
        raise SpecInvalidError(f"the collection's schema has no list as {key!r} at {_place(path)}; expected one.")
    return value


def _properties(schema: Schema) -> Schema:
    named = schema.get("properties")
    return named if isinstance(named, Mapping) else {}


def _types(schema: Any, path: tuple[str, ...]) -> frozenset[str] | None:
    """The types that a schema names, or that the values it allows have."""
    if not isinstance(schema, Mapping):
        return None
    declared = schema.get("type")
    if declared:
        types = declared if isinstance(declared, list) else [declared]
        for name in types:
            if name not in _TYPES:
                known = ", ".join(_TYPES)
                raise SpecInvalidError(
                    f"the collection's schema has type {shown(name, ())} at {_place(path)}; expected {known}."
                )
        return frozenset(types)
    if _properties(schema):
        return frozenset({"object"})
    values = [schema["const"]] if "const" in schema else _listed_under("enum", schema, path)
    return frozenset(_OF_VALUES.get(type(each), "string") for each in values) if values else None


def _place(path: tuple[str, ...]) -> str:
    return "/".join(path) or "the root"


def _either(options: Sequence[_Found]) -> _Found:
    """A value is one of them: of strings, what all of them say."""
    types = [option.types for option in options]
    texts = {each.text for each in options if each.types is None or "string" in each.types}
    text = Kind.TEXT_NUMBER if texts == _NUMERIC else texts.pop() if len(texts) == 1 else None
    every = None if None in types else frozenset().union(*(each for each in types if each is not None))
    return _Found(every, text, _merged(options, _either))


def _both(parts: Sequence[_Found]) -> _Found:
    """A value is all of them: a part without a type says nothing, types that differ leave what they share."""
    types: frozenset[str] | None = None
    for part in parts:
        if part.types is not None:
            types = part.types if types is None else _shared(types, part.types)
    texts = {part.text for part in parts if part.text is not None}
    text = Kind.TEXT_INTEGER if texts == _NUMERIC else next((p.text for p in parts if p.text is not None), None)
    return _Found(types, text, _merged(parts, _both))


def _merged(parts: Iterable[_Found], how: Callable[[Sequence[_Found]], _Found]) -> dict[str, _Found]:
    together: dict[str, list[_Found]] = {}
    for part in parts:
        for name, own in part.properties.items():
            together.setdefault(name, []).append(own)
    return {name: how(found) for name, found in together.items()}


def _shared(a: frozenset[str], b: frozenset[str]) -> frozenset[str]:
    """Every integer is a number."""
    a, b = (types | {"integer"} if "number" in types else types for types in (a, b))
    return a & b
