"""Check events against OpenLineage's specification, as the models of its client have it."""

import importlib
import pkgutil
import types
import typing
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

import attr
from openlineage.client import generated
from openlineage.client.generated import base


def _list_models() -> dict[str, Any]:
    """Each facet's model by the URL of its schema."""
    models = dict[str, Any]()
    for module in pkgutil.iter_modules(generated.__path__):
        loaded = importlib.import_module(f"{generated.__name__}.{module.name}")
        found = [model for model in vars(loaded).values() if isinstance(model, type)]
        models |= {model._get_schema(): model for model in found if issubclass(model, base.BaseFacet)}
    return models


MODELS: Final = _list_models()


def require_valid(event: dict[str, Any]) -> None:
    """Fail where an event is not as the specification has it: https://openlineage.io/spec/2-0-2/OpenLineage.json."""
    assert event["schemaURL"] == "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert UUID(event["run"]["runId"]).version == 7
    _check(event, base.RunEvent, "event")


def _check(value: Any, model: Any, place: str) -> None:
    if attr.has(model):
        _check_object(value, model, place)
        return
    if isinstance(model, type) and issubclass(model, Enum):
        assert value in [member.value for member in model], (place, value)
        return
    origin, arguments = typing.get_origin(model), typing.get_args(model)
    if origin in (typing.Union, types.UnionType):
        plain = [argument for argument in arguments if argument is not types.NoneType]
        _check(value, plain[0], place)
    elif origin is list:
        assert isinstance(value, list), place
        _check_all(enumerate(value), arguments[0], place)
    elif origin is dict:
        _check_all(value.items(), arguments[1], place)
    elif model is not Any:
        assert type(value) is model, (place, value, model)


def _check_all(parts: Iterable[tuple[Any, Any]], model: Any, place: str) -> None:
    for name, part in parts:
        _check(part, model, f"{place}.{name}")


def _check_object(value: Any, model: Any, place: str) -> None:
    if issubclass(model, base.BaseFacet):
        model = MODELS[value["_schemaURL"]]
        assert value["_producer"].startswith("urn:lakewriter:"), place
    fields, hints = attr.fields_dict(model), typing.get_type_hints(model)
    assert set(value) <= set(fields), (place, set(value) - set(fields))
    required = {name for name, field in fields.items() if field.default is attr.NOTHING}
    assert required <= set(value), (place, required - set(value))
    for name, each in value.items():
        _check(each, hints[name], f"{place}.{name}")


def shorten(event: dict[str, Any]) -> dict[str, Any]:
    """What of an event is not the same in every one: its type, its job, its data, its own facets."""
    require_valid(event)
    run = event["run"]["facets"]
    short = {
        "type": event["eventType"],
        "job": event["job"]["name"],
        "in": [f"{each['namespace']} {each['name']}" for each in event["inputs"]],
        "out": [f"{each['namespace']} {each['name']}" for each in event["outputs"]],
    }
    if "errorMessage" in run:
        short["error"] = run["errorMessage"]["message"]
    for output in event["outputs"]:
        short |= _shorten_output(output)
    return short


def _shorten_output(output: dict[str, Any]) -> dict[str, Any]:
    facets, short = output["facets"], dict[str, Any]()
    if "schema" in facets:
        short["columns"] = {field["name"]: field["type"] for field in facets["schema"]["fields"]}
    if "columnLineage" in facets:
        short["from"] = {
            name: [(used["field"], used["transformations"][0]["subtype"]) for used in field["inputFields"]]
            for name, field in facets["columnLineage"]["fields"].items()
        }
    if "symlinks" in facets:
        (link,) = facets["symlinks"]["identifiers"]
        short["symlink"] = f"{link['namespace']} {link['name']}"
    if "lifecycleStateChange" in facets:
        short["change"] = facets["lifecycleStateChange"]["lifecycleStateChange"]
    if "version" in facets:
        short["version"] = facets["version"]["datasetVersion"]
    if "storage" in facets:
        short["storage"] = facets["storage"]["storageLayer"]
    if "outputStatistics" in output["outputFacets"]:
        written = output["outputFacets"]["outputStatistics"]
        short["rows"], short["files"] = written["rowCount"], written["fileCount"]
        assert (written["size"] > 0) == (written["rowCount"] > 0)
    return short
