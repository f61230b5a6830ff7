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
    places: list[Schema] = list(_find_properties(schema, first))
    if steps and first in ("destination", "tables"):
        places = [schema["$defs"][name] for name in list_definitions(kind)[first]]
    for step in steps:
        places = [
            own for place in places for mapping in list_mappings(place) for own in _find_properties(mapping, step)
        ]
    descriptions = [place["description"] for place in places if "description" in place]
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


def list_mappings(place: Schema) -> Iterator[Schema]:
    """Yield the mappings that may stand at a place, through references, unions and lists."""
    if "$ref" in place:
        yield from list_mappings(_read_schema()["$defs"][place["$ref"].rpartition("/")[2]])
    for other in (*place.get("anyOf", ()), *place.get("oneOf", ()), *filter(None, [place.get("items")])):
        yield from list_mappings(other)
    if place.get("type") == "object":
        yield place


def _find_properties(mapping: Schema, key: str) -> Iterator[Schema]:
    """Yield the schema of a key; in a mapping of names that the user chooses, such as those of views, that of any
    name."""
    properties, others = mapping.get("properties", {}), mapping.get("additionalProperties")
    if key in properties:
        yield properties[key]
    elif isinstance(others, dict):
        yield others
