"""The JSON Schema of a lake.yaml, for editors: every key with its description, its values and its default."""

from typing import Any, Final

from lakewriter.dialects.lake_yaml import LakeFile
from lakewriter.dialects.registry import MODELS
from lakewriter.spec.model import plain_text

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

_OF_PYDANTIC: Final = ("title", "discriminator")
"""Titles made of the names of keys and classes, and a keyword that JSON Schema does not have."""
_OF_SCHEMAS: Final = ("properties", "$defs")
_LISTS: Final = ("anyOf", "oneOf", "allOf")
_SINGLE: Final = ("items", "additionalProperties", "propertyNames")


def make_lake_schema() -> dict[str, Any]:
    """Return the schema as editors show it."""
    schema = _tidy(LakeFile.model_json_schema())
    definitions = schema.pop("$defs")
    for tag, model in MODELS.items():
        # What an editor calls the destinations when it offers them.
        definitions[model.__name__]["title"] = tag
    for part in (schema, *definitions.values()):
        for property_schema in part.get("properties", {}).values():
            # Pydantic leaves a description out that is also the model's.
            if "$ref" in property_schema and "description" not in property_schema:
                property_schema["description"] = definitions[property_schema["$ref"].rpartition("/")[2]]["description"]
    return {"$schema": DRAFT, "title": "lake.yaml", **schema, "$defs": definitions}


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: _tidy_value(key, value) for key, value in schema.items() if _is_told(key, value, schema)}


def _tidy_value(key: str, value: Any) -> Any:
    if key == "description":
        return plain_text(value)
    if key in _OF_SCHEMAS:
        return {name: _tidy(item) for name, item in value.items()}
    if key in _LISTS:
        return [_tidy(item) for item in value]
    return _tidy(value) if key in _SINGLE and isinstance(value, dict) else value


def _is_told(key: str, value: Any, schema: dict[str, Any]) -> bool:
    """Return whether an editor shows a default: an empty one, or one that the keys inside show themselves, is noise."""
    if key == "default":
        return value not in (None, [], {}) and not (isinstance(value, dict) and "$ref" in schema)
    return key not in _OF_PYDANTIC
