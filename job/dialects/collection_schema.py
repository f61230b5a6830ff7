"""A collection's JSON Schema read as locations: each property with the one kind its column can have."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from job.collection import Kind, Location
from job.errors import SpecInvalidError

Schema = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_FORMATS: Final = {
    "date": Kind.DATE,
    "date-time": Kind.TIMESTAMP,
    "time": Kind.TIME,
    "integer": Kind.TEXT_INTEGER,
    "number": Kind.TEXT_NUMBER,
}
_DEEPEST: Final = 30


@dataclass(frozen=True)
class _Found:
    """What the alternatives of one location say together: its kinds, and its properties where it may be an object."""

    kinds: frozenset[Kind]
    properties: Mapping[str, "_Found"]


def locations(schema: Schema) -> tuple[Location, ...]:
    """Every location with a type, objects and arrays included, in the schema's order; a location comes before those
    inside it. ``SPEC_INVALID`` for a type that JSON Schema does not have, or a root that is no object."""
    found = _Reader(schema).read(schema, (), ())
    if found.kinds and not found.kinds & {Kind.OBJECT, Kind.MAP}:
        raise SpecInvalidError("the collection's schema is of no object; documents are objects.")
    return tuple(_listed(found, ()))


def _listed(found: _Found, path: tuple[str, ...]) -> Iterator[Location]:
    for name, own in found.properties.items():
        kind = _kind(own)
        place = (*path, name)
        if kind is not None:
            yield Location(place, kind)
        if kind is Kind.OBJECT:
            yield from _listed(own, place)


def _kind(found: _Found) -> Kind | None:
    """None for a location without a type."""
    if not found.kinds:
        return None
    if found.kinds == {Kind.INTEGER, Kind.NUMBER}:
        return Kind.NUMBER
    if found.kinds == {Kind.OBJECT, Kind.MAP}:
        return Kind.OBJECT
    return next(iter(found.kinds)) if len(found.kinds) == 1 else Kind.JSON


class _Reader:
    """Reads the parts of one schema; ``seen`` are the references above, since a type may hold itself."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def read(self, schema: Any, path: tuple[str, ...], seen: tuple[str, ...]) -> _Found:
        """What the schema of one location says."""
        if not isinstance(schema, Mapping) or len(path) > _DEEPEST:
            return _Found(frozenset(), {})
        parts = [self._own(schema, path, seen)]
        if "$ref" in schema:
            parts.append(self._referred(str(schema["$ref"]), path, seen))
        for each in schema.get("allOf") or ():
            parts.append(self.read(each, path, seen))
        options = [self.read(o, path, seen) for key in ("oneOf", "anyOf") for o in schema.get(key) or ()]
        if options:
            parts.append(_either(options))
        return _both(parts)

    def _referred(self, reference: str, path: tuple[str, ...], seen: tuple[str, ...]) -> _Found:
        if not reference.startswith("#") or reference in seen:
            return _Found(frozenset(), {})
        found: Any = self._root
        for step in filter(None, reference.removeprefix("#").split("/")):
            plain = step.replace("~1", "/").replace("~0", "~")
            found = found.get(plain) if isinstance(found, Mapping) else None
        return self.read(found, path, (*seen, reference))

    def _own(self, schema: Schema, path: tuple[str, ...], seen: tuple[str, ...]) -> _Found:
        properties = schema.get("properties")
        named = properties if isinstance(properties, Mapping) else {}
        declared = schema.get("type") or (["object"] if named else [])
        types = [declared] if isinstance(declared, str) else list(declared)
        for name in types:
            if name not in _TYPES:
                place = "/".join(path) or "the root"
                known = ", ".join(_TYPES)
                raise SpecInvalidError(f"the collection's schema has type {name!r} at {place}; expected {known}.")
        kinds = frozenset(self._simple(name, schema, bool(named)) for name in types if name != "null")
        if "object" not in types:
            return _Found(kinds, {})
        return _Found(kinds, {name: self.read(own, (*path, name), seen) for name, own in named.items()})

    def _simple(self, name: str, schema: Schema, named: bool) -> Kind:
        if name == "object":
            return Kind.OBJECT if named else Kind.MAP
        if name != "string":
            return Kind(name)
        if schema.get("contentEncoding") == "base64":
            return Kind.BINARY
        return _FORMATS.get(str(schema.get("format")), Kind.STRING)


def _either(options: Iterable[_Found]) -> _Found:
    """A value is one of them."""
    kinds: frozenset[Kind] = frozenset()
    properties: dict[str, _Found] = {}
    for option in options:
        kinds |= option.kinds
        for name, own in option.properties.items():
            properties[name] = _either([properties[name], own]) if name in properties else own
    return _Found(kinds, properties)


def _both(parts: Iterable[_Found]) -> _Found:
    """A value is all of them: a part without a type says nothing, kinds that differ leave what they share."""
    kinds: frozenset[Kind] | None = None
    properties: dict[str, _Found] = {}
    for part in parts:
        if part.kinds:
            kinds = part.kinds if kinds is None else _shared(kinds, part.kinds)
        for name, own in part.properties.items():
            properties[name] = _both([properties[name], own]) if name in properties else own
    return _Found(kinds or frozenset(), properties)


def _shared(a: frozenset[Kind], b: frozenset[Kind]) -> frozenset[Kind]:
    found = set(a & b)
    for general, special in (
        (Kind.NUMBER, Kind.INTEGER),
        (Kind.MAP, Kind.OBJECT),
        *((Kind.STRING, each) for each in (*_FORMATS.values(), Kind.BINARY)),
    ):
        if (general in a and special in b) or (general in b and special in a):
            found.add(special)
            found.discard(general)
    return frozenset(found)
