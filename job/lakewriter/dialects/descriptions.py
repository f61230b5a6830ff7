"""Describe each key of a lake.yaml, in the words that editors show and ``init`` writes beside it."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.lake_schema import make_lake_schema
from lakewriter.dialects.registry import BY_TYPE

Schema = Mapping[str, Any]


def describe(kind: str, path: str) -> str:
    """Return the description of a key in a file whose ``destination.type`` is ``kind``; ``LookupError`` for a key it
    has not.

    ``path`` has dots, and no numbers of tables: ``tables.read.options``, ``destination.format.compression_codec``.
    """
    schema = _read_schema()
    first, *steps = path.split(".")
    mappings: list[Schema] = list(_find_properties(schema, first))
    if steps and first in ("destination", "tables"):
        mappings = [schema["$defs"][name] for name in list_definitions(kind)[first]]
    for step in steps:
        mappings = [
            property_schema
            for schema_part in mappings
            for mapping in list_mappings(schema_part)
            for property_schema in _find_properties(mapping, step)
        ]
    descriptions = [mapping["description"] for mapping in mappings if "description" in mapping]
    if not descriptions:
        raise LookupError(f"a lake.yaml of the destination {kind!r} has no key {path!r}")
    return str(descriptions[0])


@cache
def _read_schema() -> dict[str, Any]:
    return make_lake_schema()


def list_definitions(kind: str) -> dict[str, list[str]]:
    """Return the definitions of the schema that ``destination`` and an entry of ``tables`` may have, where they
    differ."""
    dialect = BY_TYPE[kind]
    form = dialect.table_form
    return {
        "destination": [model.__name__ for tag, model in dialect.models.items() if tag.partition(",")[0] == kind],
        "tables": [form.model.__name__ if form else TableEntry.__name__],
    }


def list_mappings(schema: Schema) -> Iterator[Schema]:
    """Yield the mappings that may be at a place, through references, unions and lists."""
    if "$ref" in schema:
        yield from list_mappings(_read_schema()["$defs"][schema["$ref"].rpartition("/")[2]])
    for other in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *filter(None, [schema.get("items")])):
        yield from list_mappings(other)
    if schema.get("type") == "object":
        yield schema


def _find_properties(mapping: Schema, key: str) -> Iterator[Schema]:
    """Yield the schema of a key; in a mapping of names that the user chooses, such as those of views, that of any
    name."""
    properties, others = mapping.get("properties", {}), mapping.get("additionalProperties")
    if key in properties:
        yield properties[key]
    elif isinstance(others, dict):
        yield others
