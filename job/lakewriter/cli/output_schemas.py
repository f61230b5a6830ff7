"""The JSON Schema of what each command prints with ``--json``, generated from the models that it prints."""

from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from lakewriter.cli import printed
from lakewriter.dialects.lake_schema import DRAFT
from lakewriter.doctor import CheckReport
from lakewriter.operate.planning import PlanReport
from lakewriter.operate.verification import Verified
from lakewriter.report import ErrorReport, FailureReport, RunReport
from lakewriter.run.continuous_status import RunStatus
from lakewriter.spec.model import Model, plain_text

PRINTED: Final[dict[str, tuple[type[Model], ...]]] = {
    "run": (RunReport, RunStatus),
    "plan": (PlanReport,),
    "replay": (RunReport,),
    "check": (CheckReport,),
    "verify": (Verified, printed.VerifiedLoads),
    "status": (printed.StatusReport,),
    "policy": (printed.PolicyReport,),
    "queries": (printed.QueriesReport,),
    "history": (printed.HistoryReport,),
    "show": (printed.ShownLoad,),
    "undo": (printed.UndoReport,),
    "compact": (printed.CompactReport,),
    "reset": (printed.MendReport,),
    "rebuild": (printed.MendReport,),
    "abandon": (printed.MendReport,),
    "adopt": (printed.AdoptReport,),
    "init": (printed.InitReport,),
    "local": (printed.LocalReport,),
    "publish": (printed.PublishReport,),
}
"""The models that a command prints; in place of each it may print a ``FailureReport``."""


def make_output_schema(command: str, *, is_open: bool = True) -> dict[str, Any]:
    """Return the schema of what ``command`` prints.

    A later release may add fields, so that the published schema takes any; one that is not open takes those of this
    release alone.
    """
    models = PRINTED[command]
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
