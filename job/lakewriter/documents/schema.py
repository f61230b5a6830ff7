"""Make document types of the JSON Schemas with which Airbyte's sources declare their streams.

See: https://docs.airbyte.com/understanding-airbyte/supported-data-types
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from lakewriter.documents.types import DocumentType, Items, Leaf, Record, Union
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.json_schema.reader import (
    ANY,
    ITEMS,
    JsonSchemaError,
    Option,
    Options,
    Rules,
    SchemaTooLargeError,
    read_options,
    read_property_names,
)
from lakewriter.json_schema.references import Schema
from lakewriter.spec.collection import Kind

Branch = tuple[str, DocumentType]

_JSON: Final = Leaf(Kind.JSON)
_STRING: Final = Leaf(Kind.STRING)
_TEXTS: Final = (Option("string"),)
_WELL_KNOWN: Final[Schema] = {
    "definitions": {
        "String": {"type": "string"},
        "BinaryData": {"type": "string"},
        "Date": {"type": "string", "format": "date"},
        "TimestampWithTimezone": {"type": "string", "format": "date-time"},
        "TimestampWithoutTimezone": {
            "type": "string",
            "format": "date-time",
            "airbyte_type": "timestamp_without_timezone",
        },
        "TimeWithTimezone": {"type": "string", "format": "time"},
        "TimeWithoutTimezone": {"type": "string", "format": "time", "airbyte_type": "time_without_timezone"},
        "Number": {"type": "number"},
        "Integer": {"type": "integer"},
        "Boolean": {"type": "boolean"},
    }
}
_RULES: Final = Rules(
    annotations=("format", "airbyte_type"),
    types={"int": "integer"},
    # The vendor's table of types knows "type" alone: a schema without one is unknown.
    infers_from_values=False,
    # As the vendor's connector has it: "integer" for {"type": "integer"}, of a property or of an array's items.
    names_types=True,
    # Likewise {"oneOf": {...}} is the one schema.
    takes_one_option=True,
    others={"WellKnownTypes.json": _WELL_KNOWN},
    # The vendor's destinations take a schema that they do not know for an unknown type, which is JSON text: catalogs of
    # their sources refer to files that are not sent along.
    refuses_missing=False,
)
_PLAIN: Final = {"boolean": Kind.BOOLEAN, "integer": Kind.INTEGER, "number": Kind.NUMBER}
_LARGE: Final = {("airbyte_type", "integer"), ("airbyte_type", "big_integer")}
_FORMATS: Final = {
    "date": (Kind.DATE, Kind.DATE, ""),
    "time": (Kind.TIME, Kind.LOCAL_TIME, "time_without_timezone"),
    "date-time": (Kind.TIMESTAMP, Kind.LOCAL_TIMESTAMP, "timestamp_without_timezone"),
}
"""For each format its kind, its kind without a zone, and the ``airbyte_type`` that selects the latter."""
_TIMES: Final = (Kind.DATE, Kind.LOCAL_TIME, Kind.TIME, Kind.LOCAL_TIMESTAMP, Kind.TIMESTAMP)
_LONGS: Final = (Kind.LOCAL_TIME, Kind.TIME, Kind.LOCAL_TIMESTAMP, Kind.TIMESTAMP)
_BRANCHES: Final = {
    Kind.TIME: "time_with_timezone",
    Kind.LOCAL_TIME: "time_without_timezone",
    Kind.TIMESTAMP: "timestamp_with_timezone",
    Kind.LOCAL_TIMESTAMP: "timestamp_without_timezone",
    Kind.JSON: "unknown",
}
"""Union branches in Airbyte's Avro and Parquet files have these names where they differ from the kinds'."""


@dataclass(frozen=True)
class _Style:
    """The parts of a file's form and of the vendor's release that decide on types; see ``make_record_type``."""

    one_text: bool
    additional: str | None
    lifted: tuple[str, ...]


def make_record_type(
    schema: Schema, *, one_text: bool = False, additional: str | None = None, lifted: tuple[str, ...] = ()
) -> Record:
    """Make the type of a stream's records; ``SCHEMA_INCOMPATIBLE`` for a schema that cannot be read.

    Args:
        schema: The stream's JSON Schema.
        one_text: For Avro, whose unions have one branch of text: values without a schema are text there, and an object
            or array with a schema takes those without.
        additional: The name of the field of every object with properties that takes the others as text. With it types
            are those of the vendor's releases that have it: an array without items is one of text, and of a union's
            branches the first that takes a string has it.
        lifted: Properties that make no fields, since their members are additional ones.
    """
    style = _Style(one_text, additional, lifted)
    with _name_stream():
        options, _ = read_options(schema, _RULES)
    record = dict(_make_branches(options, style)).get("object")
    if not isinstance(record, Record):
        return Record((), additional=additional)
    # A record has no branch of text for what its properties do not describe.
    is_loose = any(option.type in ("object", ANY) and not option.properties for option in options)
    return _declare_record(record) if is_loose else record


def find_property_names(schema: Schema) -> tuple[str, ...]:
    """Find the names of a record's properties, whatever their types are."""
    with _name_stream():
        return read_property_names(schema, _RULES)


@contextmanager
def _name_stream() -> Iterator[None]:
    """Raise ``SCHEMA_INCOMPATIBLE`` in place of an error of the schema, with the place in the stream."""
    try:
        yield
    except SchemaTooLargeError as error:
        raise SchemaIncompatibleError(
            f"the schema of the stream {error.what}.",
            remedy="Give the deepest objects no properties: they are JSON text then.",
        ) from error
    except JsonSchemaError as error:
        location = ".".join(error.path).replace(f".{ITEMS}", ITEMS) or "the stream"
        raise SchemaIncompatibleError(
            f"the schema of {location} {error.what}{error.rest}.",
            remedy="Correct the catalog, or write CSV or JSONL, which need no types.",
        ) from error


def _make_type(options: Options, style: _Style) -> DocumentType:
    """Make the one type of a value."""
    return _settle(_make_branches(options, style), style)


def _make_branches(options: Options, style: _Style) -> list[Branch]:
    """Make one branch of each name.

    Beside an object or array with a schema, those without are text in the branch ``unknown``; with ``one_text`` the one
    with a schema takes them, and declares all that they may hold.
    """
    branches: dict[str, DocumentType] = {}
    for option in options if style.additional is None else _join_arrays(options):
        if option.type == "null":
            continue
        name, t = _make_branch(option, style)
        before = branches.setdefault(name, t)
        if _JSON in (before, t) and before != t:
            described = t if before == _JSON else before
            branches[name] = _declare_all(described) if style.one_text else described
            if not style.one_text:
                branches["unknown"] = _JSON
    return list(branches.items())


def _declare_record(record: Record) -> Record:
    return replace(record, fields=tuple((name, _declare_all(t)) for name, t in record.fields), declares_all=True)


def _declare_all(t: DocumentType) -> DocumentType:
    """Return the type with every property declared, at any depth."""
    if isinstance(t, Record):
        return _declare_record(t)
    if isinstance(t, Items):
        return Items(_declare_all(t.item))
    if isinstance(t, Union):
        return replace(t, branches=tuple((name, _declare_all(branch)) for name, branch in t.branches))
    return t


def _join_arrays(options: Options) -> Iterator[Option]:
    """Yield the options with one array, whose items are text where it does not say what they are."""
    arrays = [option for option in options if option.type == "array"]
    items = [item for option in arrays for item in (_TEXTS if option.items is None else option.items)]
    for option in options:
        if option.type != "array":
            yield option
        elif option is arrays[0]:
            yield replace(option, items=tuple(items))


def _make_branch(option: Option, style: _Style) -> Branch:
    if option.type == "object" and option.properties:
        fields = tuple(
            (name, _make_type(schema, style)) for name, schema in option.properties.items() if name not in style.lifted
        )
        return "object", Record(fields, additional=style.additional)
    if option.type == "array" and option.items is not None:
        return "array", Items(_make_type(option.items, style))
    if option.type in ("object", "array"):
        return option.type, _JSON
    kind = _find_kind(option)
    return _BRANCHES.get(kind, kind.value), Leaf(kind)


def _find_kind(option: Option) -> Kind:
    if option.type == "string":
        return _find_text_kind(option.annotations)
    if option.type == "number" and option.annotations & _LARGE:
        return Kind.INTEGER
    return _PLAIN.get(option.type, Kind.JSON)


def _find_text_kind(annotations: frozenset[tuple[str, str]]) -> Kind:
    """Find the kind of a string; a string of several formats at once is plain text."""
    kinds = [
        local if ("airbyte_type", zoneless) in annotations else kind
        for form, (kind, local, zoneless) in _FORMATS.items()
        if ("format", form) in annotations
    ]
    return kinds[0] if len(kinds) == 1 else Kind.STRING


def _settle(branches: Sequence[Branch], style: _Style) -> DocumentType:
    """Make a union whose branches a file can tell apart, or the one type that is left.

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
    settled = list(branches)
    if Kind.STRING in kinds:
        settled = [(name, t) for name, t in branches if not (isinstance(t, Leaf) and t.kind in _TIMES)]
        if not any(t == _STRING for _, t in settled):
            settled.append((Kind.STRING.value, _STRING))
        if style.one_text or all(t in (_STRING, _JSON) for _, t in settled):
            is_loose = ("unknown", _JSON) in settled
            settled = [(name, _declare_all(t) if is_loose else t) for name, t in settled if t != _JSON]
    loose = [name for name, t in settled if t == _JSON]
    settled = [(name, t) for name, t in settled if t != _JSON or name == loose[0]]
    settled = [("unknown" if len(loose) > 1 and t == _JSON else name, t) for name, t in settled]
    return settled[0][1] if len(settled) == 1 else Union(tuple(settled), takes_first=style.additional is not None)
