"""JSON Schema, as Airbyte's sources declare their streams, read as document types.

See: https://docs.airbyte.com/understanding-airbyte/supported-data-types
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lakewriter.documents.types import DocumentType, Items, Leaf, Record, Union
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.spec.collection import Kind

Schema = Mapping[str, Any]
Branch = tuple[str, DocumentType]

_JSON: Final = Leaf(Kind.JSON)
_STRING: Final = Leaf(Kind.STRING)
_WELL_KNOWN: Final = {
    "String": Kind.STRING,
    "BinaryData": Kind.STRING,
    "Date": Kind.DATE,
    "TimestampWithTimezone": Kind.TIMESTAMP,
    "TimestampWithoutTimezone": Kind.LOCAL_TIMESTAMP,
    "TimeWithTimezone": Kind.TIME,
    "TimeWithoutTimezone": Kind.LOCAL_TIME,
    "Number": Kind.NUMBER,
    "Integer": Kind.INTEGER,
    "Boolean": Kind.BOOLEAN,
}
_PLAIN: Final = {
    "boolean": Kind.BOOLEAN,
    "integer": Kind.INTEGER,
    "int": Kind.INTEGER,
    "number": Kind.NUMBER,
}
_COMPOSED: Final = ("allOf", "oneOf", "anyOf")
_KNOWN: Final = ("array", "boolean", "int", "integer", "null", "number", "object", "string")
_TIMES: Final = (Kind.DATE, Kind.LOCAL_TIME, Kind.TIME, Kind.LOCAL_TIMESTAMP, Kind.TIMESTAMP)
_LONGS: Final = (Kind.LOCAL_TIME, Kind.TIME, Kind.LOCAL_TIMESTAMP, Kind.TIMESTAMP)


_BRANCHES: Final = {
    Kind.TIME: "time_with_timezone",
    Kind.LOCAL_TIME: "time_without_timezone",
    Kind.TIMESTAMP: "timestamp_with_timezone",
    Kind.LOCAL_TIMESTAMP: "timestamp_without_timezone",
    Kind.JSON: "unknown",
}
"""Names of union branches, as Airbyte's Avro and Parquet files have them, where they are not the kinds' own."""


def record_type(schema: Schema, *, one_text: bool = False) -> Record:
    """The type of a stream's records; ``SCHEMA_INCOMPATIBLE`` for a type that no file stores.

    ``one_text`` is for files whose unions have one branch of text, as Avro's do: what has no schema is text there like
    any other, and an object or array with a schema stands for those without.
    """
    try:
        found = dict(_Reader(schema, one_text=one_text).branches(schema, "", ())).get("object")
    except RecursionError as error:
        raise SchemaIncompatibleError(
            "the schema of the stream nests too deep to be read.",
            remedy="Give the deepest objects no properties: they are JSON text then.",
        ) from error
    return found if isinstance(found, Record) else Record(())


def declared_properties(schema: Schema) -> tuple[str, ...]:
    """The names of a record's properties, whatever their types are."""
    reader, found = _Reader(schema), dict[str, None]()
    waiting: list[tuple[Any, tuple[str, ...]]] = [(schema, ())]
    while waiting:
        each, seen = waiting.pop(0)
        if not isinstance(each, Mapping):
            continue
        properties = each.get("properties")
        found |= dict.fromkeys(properties if isinstance(properties, Mapping) else ())
        for key in _COMPOSED:
            waiting += [(option, seen) for option in each.get(key) or ()]
        reference = each.get("$ref")
        if isinstance(reference, str) and reference.startswith("#") and reference not in seen:
            waiting.append((reader.at(reference), (*seen, reference)))
    return tuple(found)


class _Reader:
    """Reads the parts of one document; ``seen`` are the references above, since a type may hold itself."""

    def __init__(self, root: Schema, *, one_text: bool = False) -> None:
        self._root = root
        self._one_text = one_text

    def type(self, schema: Any, path: str, seen: tuple[str, ...]) -> DocumentType:
        """The one type of a schema."""
        return _settled(self.branches(schema, path, seen), one_text=self._one_text)

    def at(self, reference: str) -> Any:
        """What a local reference points to, nothing where it points to nothing."""
        found: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            plain = step.replace("~1", "/").replace("~0", "~")
            found = found.get(plain) if isinstance(found, Mapping) and step else found
        return found

    def branches(self, schema: Any, path: str, seen: tuple[str, ...]) -> list[Branch]:
        """All that a value may be, each kind once, by the names of their branches."""
        if not isinstance(schema, Mapping):
            return [("unknown", _JSON)]
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]), path, seen)
        if not any(schema.get(key) for key in _COMPOSED):
            return self._typed(schema, path, seen)
        sure, options = self._parts(schema, seen)
        found = (branch for part in (*sure, *options) for branch in self.branches(part, path, seen))
        return _merged(found, one_text=self._one_text, absorb=bool(sure))

    def _reference(self, reference: str, path: str, seen: tuple[str, ...]) -> list[Branch]:
        name = reference.rpartition("/")[2]
        if "WellKnownTypes" in reference and name in _WELL_KNOWN:
            kind = _WELL_KNOWN[name]
            return [(_branch_name(kind), Leaf(kind))]
        if reference.startswith("#") and reference not in seen:
            return self.branches(self.at(reference), path, (*seen, reference))
        return [("unknown", _JSON)]

    def _parts(self, schema: Schema, seen: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
        """What all values are, and what some of them are; no part that only constrains.

        Its own bare ``type`` only repeats, and less exactly, what options say that all have a type.
        """
        own = {key: value for key, value in schema.items() if key not in _COMPOSED}
        sure = [part for part in schema.get("allOf") or () if self._has_type(part, seen)]
        options = [option for key in ("oneOf", "anyOf") for option in schema.get(key) or ()]
        typed = [option for option in options if self._has_type(option, seen)]
        repeated = len(typed) == len(options) and bool(sure or typed)
        if "properties" in own or "items" in own or (self._has_type(own, seen) and not repeated):
            sure = [own, *sure]
        return sure, typed if sure else options

    def _has_type(self, schema: Any, seen: tuple[str, ...]) -> bool:
        """Whether a schema says what a value is, and not only what is asked of it."""
        if not isinstance(schema, Mapping):
            return False
        reference = str(schema.get("$ref", ""))
        if reference.startswith("#") and reference not in seen:
            return self._has_type(self.at(reference), (*seen, reference))
        if any(key in schema for key in ("$ref", "type", "properties", "items")):
            return True
        return any(self._has_type(part, seen) for key in _COMPOSED for part in schema.get(key) or ())

    def _typed(self, schema: Schema, path: str, seen: tuple[str, ...]) -> list[Branch]:
        declared = schema.get("type")
        if declared is None:
            declared = "object" if "properties" in schema else "array" if "items" in schema else None
        if declared is None:
            return [("unknown", _JSON)]
        names = [declared] if isinstance(declared, str) else list(declared)
        kept = [name for name in names if name != "null"]
        return _merged((self._branch(str(name), schema, path, seen) for name in kept), one_text=self._one_text)

    def _branch(self, name: str, schema: Schema, path: str, seen: tuple[str, ...]) -> Branch:
        if name == "object":
            return "object", self._object(schema, path, seen)
        if name == "array":
            return "array", self._array(schema, path, seen)
        if name == "string":
            kind = _text_kind(schema)
        elif name == "number" and schema.get("airbyte_type") in ("integer", "big_integer"):
            kind = Kind.INTEGER
        elif name in _PLAIN:
            kind = _PLAIN[name]
        else:
            raise SchemaIncompatibleError(
                f"the schema of {path or 'the stream'} has type {name!r}; expected one of {', '.join(_KNOWN)}.",
                remedy="Correct the catalog, or write CSV or JSONL, which need no types.",
            )
        return _branch_name(kind), Leaf(kind)

    def _object(self, schema: Schema, path: str, seen: tuple[str, ...]) -> DocumentType:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            return _JSON
        return Record(
            tuple((name, self.type(own, f"{path}.{name}".lstrip("."), seen)) for name, own in properties.items())
        )

    def _array(self, schema: Schema, path: str, seen: tuple[str, ...]) -> DocumentType:
        items = schema.get("items")
        if not items:
            return _JSON
        options = items if isinstance(items, list) else [items]
        found = (branch for option in options for branch in self.branches(option, f"{path}[]", seen))
        branches = _merged(found, one_text=self._one_text)
        return Items(_settled(branches, one_text=self._one_text))


def _branch_name(kind: Kind) -> str:
    return _BRANCHES.get(kind, kind.value)


def _text_kind(schema: Schema) -> Kind:
    form, own = schema.get("format"), schema.get("airbyte_type")
    if form == "date":
        return Kind.DATE
    if form == "time":
        return Kind.LOCAL_TIME if own == "time_without_timezone" else Kind.TIME
    if form == "date-time":
        return Kind.LOCAL_TIMESTAMP if own == "timestamp_without_timezone" else Kind.TIMESTAMP
    return Kind.STRING


def _merged(branches: Iterable[Branch], *, one_text: bool, absorb: bool = False) -> list[Branch]:
    """One branch of each name: objects become one, and so do arrays. Beside one with a schema those without are text of
    their own, ``unknown``; where all of them hold at once, ``absorb``, the one with a schema stands for them."""
    found: dict[str, DocumentType] = {}
    for name, t in branches:
        before = found.get(name)
        is_open = before is not None and (before == _JSON) != (t == _JSON)
        found[name] = t if before is None else _both(before, t, one_text=one_text, absorb=absorb)
        if is_open and not (one_text or absorb):
            found["unknown"] = _JSON
    return list(found.items())


def _both(a: DocumentType, b: DocumentType, **how: bool) -> DocumentType:
    if isinstance(a, Record) and isinstance(b, Record):
        fields = dict(a.fields)
        for name, t in b.fields:
            fields[name] = _union_of(fields[name], t, **how) if name in fields else t
        return Record(tuple(fields.items()))
    if isinstance(a, Items) and isinstance(b, Items):
        return Items(_union_of(a.item, b.item, **how))
    return b if a == _JSON else a


def _union_of(a: DocumentType, b: DocumentType, *, one_text: bool, absorb: bool) -> DocumentType:
    if a == b:
        return a
    branches = _merged([*_opened(a), *_opened(b)], one_text=one_text, absorb=absorb)
    return _settled(branches, one_text=one_text)


def _opened(t: DocumentType) -> Sequence[Branch]:
    if isinstance(t, Union):
        return t.branches
    if isinstance(t, Record | Items):
        return [("object" if isinstance(t, Record) else "array", t)]
    return [(_branch_name(t.kind), t)]


def _settled(branches: Sequence[Branch], *, one_text: bool) -> DocumentType:
    """A union whose branches a file can tell apart, or the one type that is left.

    Avro has one branch for each of its types, and a date, a time or a timestamp is a string, a number or a text
    depending on where one looks. So times beside text are text; so are several kinds of them, and those that Avro
    stores as numbers beside integers. What has no schema is text as well where it is beside nothing but text.
    """
    if not branches:
        return _JSON
    kinds = {t.kind for _, t in branches if isinstance(t, Leaf)}
    times = [kind for kind in _TIMES if kind in kinds]
    clash = len(times) > 1 or (Kind.INTEGER in kinds and any(kind in _LONGS for kind in times))
    if times and clash:
        kinds.add(Kind.STRING)
    kept = list(branches)
    if Kind.STRING in kinds:
        kept = [(name, t) for name, t in branches if not (isinstance(t, Leaf) and t.kind in _TIMES)]
        if not any(t == _STRING for _, t in kept):
            kept.append((Kind.STRING.value, _STRING))
        if one_text or all(t in (_STRING, _JSON) for _, t in kept):
            kept = [(name, t) for name, t in kept if t != _JSON]
    loose = [name for name, t in kept if t == _JSON]
    kept = [(name, t) for name, t in kept if t != _JSON or name == loose[0]]
    kept = [("unknown" if len(loose) > 1 and t == _JSON else name, t) for name, t in kept]
    return kept[0][1] if len(kept) == 1 else Union(tuple(kept))
