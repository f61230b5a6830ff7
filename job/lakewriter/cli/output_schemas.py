"""The JSON Schema of what each command prints with ``--json``, generated from the models that it prints."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from lakewriter.cli.lazy_group import import_named
from lakewriter.dialects.lake_schema import DRAFT
from lakewriter.report import ErrorReport, FailureReport
from lakewriter.spec.model import Model, plain_text


def make_output_schema(command: str, printed: Sequence[str], *, is_open: bool = True) -> dict[str, Any]:
    """Return the schema of what ``command`` prints: the ``printed`` models, each by ``module:class``.

    A later release may add fields, so that the published schema takes any; one that is not open takes those of this
    release alone.
    """
    models: list[type[Model]] = [import_named(name) for name in printed]
    whole: list[type[Model]] = [*models, FailureReport]
    every: list[type[Model]] = [ErrorReport, *whole]
    asked: list[tuple[type[BaseModel], JsonSchemaMode]] = [(model, "serialization") for model in every]
    made, schema = models_json_schema(asked, by_alias=True)
    schemas = {model: made[model, mode] for model, mode in asked}
    definitions = schema["$defs"]
    for model in models:
        report = definitions[_name(schemas[model])]
        report["properties"]["error"] = {"anyOf": [schemas[ErrorReport], {"type": "null"}]}
    return {
        "$schema": DRAFT,
        "title": f"lakewriter {command} --json",
        "description": "One of these objects. Later releases of version 1 may add fields.",
        "anyOf": [schemas[model] | {"required": ["version", "error"]} for model in whole],
        "$defs": {name: _tidy(definition, is_open=is_open) for name, definition in definitions.items()},
    }


def _name(schema: dict[str, str]) -> str:
    return schema["$ref"].rpartition("/")[2]


def _tidy(schema: Any, *, is_open: bool) -> Any:
    """Return the schema without the titles that pydantic makes of names, and open to further fields if it
    ``is_open``."""
    if isinstance(schema, list):
        return [_tidy(part, is_open=is_open) for part in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: _tidy(value, is_open=is_open) for key, value in schema.items() if not _is_noise(key, value)}
    if isinstance(tidy.get("description"), str):
        tidy["description"] = plain_text(tidy["description"])
    if is_open and tidy.get("additionalProperties") is False:
        del tidy["additionalProperties"]
    return tidy


def _is_noise(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str)
