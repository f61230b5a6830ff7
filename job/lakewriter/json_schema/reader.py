"""Read which types a JSON Schema allows a value, with references followed and compositions applied.

What a vendor makes of these types is the caller's.

See: https://json-schema.org/draft/2020-12/json-schema-core, and draft-07 for what older schemas spell otherwise.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, NamedTuple

from lakewriter.json_schema.references import References, Schema

ANY: Final = "any"
"""The type of an option that a schema says nothing about."""
TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
ITEMS: Final = "[]"
"""The step of a path for the items of an array."""

_OF_VALUES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}
_NO_ITEMS: Final[tuple[Any, ...]] = (None, True, {}, [])
"""Values of ``items`` that allow an array to hold anything."""
_ANNOTATED: Final = (ANY, "string", "number", "integer")
"""The types whose options keep annotations."""

MOST_PARTS: Final = 50_000
"""A schema may have so many parts, counted once for each reference: twenty definitions that refer to the next one twice
make a million.
"""
MOST_REFERENCES: Final = 100
"""So many references may lead to one another."""
MOST_LEVELS: Final = 150
"""Parts inside one another: properties, items, references and compositions count alike. A level takes three or four
calls, and the interpreter allows a thousand."""
_LONGEST: Final = 80


@dataclass(frozen=True)
class Option:
    """One type that a value may have.

    ``annotations`` are the vendor's keywords with their values, for scalars only. ``items`` are the options of an
    array's items, None if the schema does not restrict them. An ``implied`` type follows from ``properties`` or
    ``items`` alone, which do not restrict values of other types: it yields to every type that is declared.
    """

    type: str
    annotations: frozenset[tuple[str, str]] = frozenset()
    properties: "Mapping[str, Options]" = field(default_factory=dict)
    items: "Options | None" = None
    implied: bool = False

    @property
    def has_parts(self) -> bool:
        """True if the schema says what is inside the object or array."""
        return bool(self.properties) or self.items is not None


Options = tuple[Option, ...]
"""All types that a value may have, in the schema's order; empty if no value fits."""
_ANYTHING: Final = (Option(ANY),)


@dataclass(frozen=True)
class Rules:
    """The rules by which a vendor uses JSON Schema.

    ``annotations`` are the keywords that refine a type, ``types`` maps the vendor's own names to JSON Schema's.
    ``infers_from_values`` lets ``const`` and ``enum`` declare types, ``reads_items`` reads the items of arrays.
    With ``names_types`` text in place of a schema is the name of its type. With ``takes_one_option`` a composition may
    be one schema instead of a list of them.
    ``others`` are documents that every schema may refer to, by name; ``elsewhere`` names documents that only the
    vendor's platform has, which allow any value here. With ``refuses_missing`` a reference that leads nowhere is an
    error; without, it allows any value.
    """

    annotations: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    infers_from_values: bool = True
    reads_items: bool = True
    names_types: bool = False
    takes_one_option: bool = False
    others: Mapping[str, Schema] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    refuses_missing: bool = True


class JsonSchemaError(Exception):
    """A schema cannot be read: it ``what`` at ``path``, and the ``rest`` of the sentence."""

    def __init__(self, what: str, path: Sequence[str] = (), rest: str = "") -> None:
        self.what = what
        self.path = tuple(path)
        self.rest = rest
        super().__init__(what, path, rest)


class MissingReferenceError(JsonSchemaError):
    """A ``$ref`` leads nowhere."""


class SchemaTooLargeError(JsonSchemaError):
    """A schema has too many parts or nests too deep; ``path`` is empty."""


def read_options(schema: Schema, rules: Rules) -> tuple[Options, frozenset[str]]:
    """Read the options of a document, and which documents ``elsewhere`` its schema refers to.

    Raises ``JsonSchemaError`` for an unknown type, a reference that leads nowhere, and a schema beyond the bounds.
    """
    reader = _Reader(schema, rules)
    return reader.read(schema, _Position.at_root(schema)), frozenset(reader.elsewhere)


def read_property_names(schema: Schema, rules: Rules) -> tuple[str, ...]:
    """Read the names of a document's properties without their schemas."""
    reader = _Reader(schema, rules, nested=False)
    options = reader.read(schema, _Position.at_root(schema))
    return tuple(dict.fromkeys(name for option in options for name in option.properties))


class _Position(NamedTuple):
    """The position of a part of a schema.

    References start in ``document``; ``path`` leads to the value. ``above`` are the references that led here, each by
    the id of its target and the path where it was followed. ``level`` counts the parts around this one.
    """

    document: Schema
    path: tuple[str, ...]
    above: tuple[tuple[int, tuple[str, ...]], ...]
    level: int

    @classmethod
    def at_root(cls, schema: Schema) -> "_Position":
        return cls(schema, (), ((id(schema), ()),), 0)

    def inside(self, *names: str) -> "_Position":
        return self._replace(path=self.path + names, level=self.level + 1)

    def behind(self, schema: Any, document: Schema) -> "_Position":
        above = (*self.above, (id(schema), self.path))
        return self._replace(document=document, above=above, level=self.level + 1)


class _Reader:
    """Reads the parts of one schema.

    Without ``nested`` it reads names of properties only: it ignores ``type``, and refuses no reference.
    """

    def __init__(self, root: Schema, rules: Rules, *, nested: bool = True) -> None:
        self._rules = rules
        self._nested = nested
        self._references = References(root, rules.others)
        self._parts = 0
        self.elsewhere = set[str]()

    def read(self, schema: Any, at: _Position) -> Options:
        """Read the options of a value: what the schema's own keywords, its ``$ref``, all parts of ``allOf``, one of
        ``oneOf`` and one of ``anyOf`` have in common."""
        if schema is False:
            return ()
        if isinstance(schema, str) and self._rules.names_types:
            schema = {"type": schema}
        if not isinstance(schema, Mapping):
            return _ANYTHING
        self._count(1, at)
        options = self._read_keywords(schema, at)
        if "$ref" in schema:
            options = self._meet(options, self._read_reference(schema["$ref"], at), at)
        for part in self._list_options("allOf", schema, at.path):
            options = self._meet(options, self.read(part, at.inside()), at)
        for key in ("oneOf", "anyOf"):
            if parts := self._list_options(key, schema, at.path):
                either = _join([self.read(part, at.inside()) for part in parts])
                options = self._meet(options, either, at)
        return options

    def _list_options(self, key: str, schema: Schema, path: tuple[str, ...]) -> Sequence[Any]:
        """List the schemas of a composition."""
        if self._rules.takes_one_option and not isinstance(schema.get(key, []), list):
            return [schema[key]]
        return _list_under(key, schema, path)

    def _count(self, parts: int, at: _Position) -> None:
        self._parts += parts
        if self._parts > MOST_PARTS or len(at.above) > MOST_REFERENCES:
            raise SchemaTooLargeError(
                f"has more than {MOST_PARTS:,} parts, or {MOST_REFERENCES} references one behind the other, where its "
                "references are followed"
            )
        if at.level > MOST_LEVELS:
            raise SchemaTooLargeError(f"nests too deep: it has more than {MOST_LEVELS} parts one inside the other")

    def _meet(self, first: Options, second: Options, at: _Position) -> Options:
        if len(first) > 1 and len(second) > 1:
            # Formats that hold at once double with every part that has two.
            self._count(len(first) * len(second), at)
        return _meet(first, second)

    def _read_keywords(self, schema: Schema, at: _Position) -> Options:
        """Read the options by the keywords that hold no composition."""
        said = ((key, schema.get(key)) for key in self._rules.annotations)
        annotations = frozenset((key, value) for key, value in said if isinstance(value, str))
        options = list[Option]()
        implied = not schema.get("type") and ("properties" in schema or "items" in schema)
        # Loops and no comprehensions, here and below: each would be one call more for every level.
        for name in self._find_types(schema, at.path):
            if name == "object":
                options.append(Option(name, properties=self._read_properties(schema, at), implied=implied))
            elif name == "array":
                options.append(Option(name, items=self._read_items(schema, at), implied=implied))
            else:
                options.append(Option(name, annotations if name in _ANNOTATED else frozenset()))
        return tuple(options)

    def _find_types(self, schema: Any, path: tuple[str, ...]) -> Iterable[str]:
        """Find the types that a schema declares, or that its keywords imply."""
        if not isinstance(schema, Mapping):
            return (ANY,)
        if self._nested and (declared := schema.get("type")):
            names = declared if isinstance(declared, list) else [declared]
            return dict.fromkeys(self._check_type(name, path) for name in names)
        if "properties" in schema:
            return ("object",)
        if "items" in schema:
            return ("array",)
        if not self._rules.infers_from_values:
            return (ANY,)
        values = [schema["const"]] if "const" in schema else _list_under("enum", schema, path)
        return dict.fromkeys(_OF_VALUES.get(type(value), "string") for value in values) or (ANY,)

    def _check_type(self, name: Any, path: tuple[str, ...]) -> str:
        types = dict(zip(TYPES, TYPES, strict=True)) | dict(self._rules.types)
        if not isinstance(name, str) or name not in types:
            raise JsonSchemaError(f"has type {_describe(name)}", path, f"; expected {', '.join(sorted(types))}")
        return types[name]

    def _read_properties(self, schema: Schema, at: _Position) -> Mapping[str, Options]:
        named = schema.get("properties")
        if not isinstance(named, Mapping):
            return {}
        if any(not isinstance(name, str) for name in named):
            raise JsonSchemaError("has a property", at.path, " whose name is not text")
        if not self._nested:
            return dict.fromkeys(named, _ANYTHING)
        properties = {}
        for name, part in named.items():
            properties[name] = self.read(part, at.inside(name))
        return properties

    def _read_items(self, schema: Schema, at: _Position) -> Options | None:
        items = schema.get("items")
        if not (self._nested and self._rules.reads_items) or items in _NO_ITEMS:
            return None
        if isinstance(items, list):
            # A tuple, as up to draft 2019-09: what an array holds is one of them.
            return _join([self.read(part, at.inside(ITEMS)) for part in items])
        return self.read(items, at.inside(ITEMS))

    def _read_reference(self, reference: Any, at: _Position) -> Options:
        if not isinstance(reference, str):
            raise JsonSchemaError(f"has {_describe(reference)} as '$ref'", at.path, "; expected text, a reference")
        target = self._references.find(reference, at.document)
        if target is None and reference.partition("#")[0] in self._rules.elsewhere:
            self.elsewhere.add(reference.partition("#")[0])
            return _ANYTHING
        if target is None and not (self._nested and self._rules.refuses_missing):
            return _ANYTHING
        if target is None:
            raise MissingReferenceError(f"refers to {_describe(reference)}", at.path, ", which is not there")
        schema, document = target
        if (id(schema), at.path) in at.above:
            return _ANYTHING
        if any(id(schema) == identity for identity, _ in at.above):
            # A type that holds itself would have no end: its inner values get the type without parts.
            return tuple(Option(name) for name in self._find_types(schema, at.path))
        return self.read(schema, at.behind(schema, document))


def _list_under(key: str, schema: Schema, path: tuple[str, ...]) -> Sequence[Any]:
    value = schema.get(key) or []
    if not isinstance(value, list):
        raise JsonSchemaError(f"has no list as {key!r}", path, "; expected one")
    return value


def _describe(value: Any) -> str:
    if isinstance(value, list | Mapping):
        return "a list" if isinstance(value, list) else "a mapping"
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _join(values: Iterable[Options]) -> Options:
    """Join the options of alternatives: one for each type and set of annotations. Objects and arrays without parts stay
    apart from those with parts, which describe their values in full."""
    joined: dict[Any, Option] = {}
    for option in chain.from_iterable(values):
        key = (option.type, option.annotations, option.has_parts)
        before = joined.get(key)
        if before is not None:
            implied = before.implied and option.implied
            option = replace(_combine(before, option, lambda *both: _join(both)), implied=implied)
        joined[key] = option
    return tuple(joined.values())


def _meet(first: Options, second: Options) -> Options:
    """Intersect the options of two schemas that hold at once, in the order of the second."""
    if first == _ANYTHING:
        return second
    return _join([_meet_one(here, there) for there in second for here in first])


def _meet_one(first: Option, second: Option) -> Options:
    """Intersect two options; of types that differ, one that is only implied yields."""
    name = _meet_types(first.type, second.type)
    if name is None:
        return tuple(option for option, other in ((first, second), (second, first)) if other.implied)
    annotations = first.annotations | second.annotations if name in _ANNOTATED else frozenset()
    implied = all(option.implied or option.type == ANY for option in (first, second))
    return (replace(_combine(first, second, _meet), type=name, annotations=annotations, implied=implied),)


def _meet_types(first: str, second: str) -> str | None:
    """Intersect two types, None if no value has both; every integer is a number."""
    if first == second or second == ANY:
        return first
    if first == ANY:
        return second
    return "integer" if {first, second} == {"integer", "number"} else None


def _combine(first: Option, second: Option, combine: Callable[[Options, Options], Options]) -> Option:
    """Return the first with the parts of both; ``combine`` merges the parts that both have."""
    if first is second or not second.has_parts:
        return first
    properties = {**first.properties}
    for name, options in second.properties.items():
        properties[name] = combine(properties[name], options) if name in properties else options
    items = second.items if first.items is None else first.items
    if first.items is not None and second.items is not None:
        items = combine(first.items, second.items)
    return replace(first, properties=properties, items=items)
