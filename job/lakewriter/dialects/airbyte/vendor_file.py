"""Files that a lake.yaml names and that belong to it: the vendor's own configuration, a configured catalog."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from lakewriter.dialects.airbyte.file_formats import FORMATS, part_of
from lakewriter.dialects.airbyte.settings import AirbyteDestination
from lakewriter.dialects.common.yaml_text import Document
from lakewriter.errors import SpecInvalidError


def expanded(document: Document, destinations: Mapping[str, type[BaseModel]]) -> tuple[Document, tuple[str, ...]]:
    """The document with the content of those files in place of their names, and warnings about what is in them."""
    data, warnings, origins = dict(document.data), [], dict(document.origins)
    destination, source = data.get("destination"), data.get("source")
    if isinstance(destination, dict) and "config_file" in destination:
        own = {key: value for key, value in destination.items() if key != "config_file"}
        kind = destinations.get(str(destination.get("type")))
        content = _read(document.folder, destination["config_file"], "destination.config_file")
        if kind is not None and issubclass(kind, AirbyteDestination):
            content, unknown = known(kind, content)
            warnings = [f"{destination['config_file']}: {key} is not known here and has no effect." for key in unknown]
        data["destination"] = content | own
        name = str(destination["config_file"])
        origins |= {("destination", key): (name, (key,)) for key in content if key not in own}
    if isinstance(source, dict) and isinstance(source.get("catalog"), str):
        data["source"] = source | {"catalog": _read(document.folder, source["catalog"], "source.catalog")}
        origins["source", "catalog"] = (source["catalog"], ())
    return replace(document, data=data, origins=origins), tuple(warnings)


def _read(folder: Path, name: Any, key: str) -> dict[str, Any]:
    path = folder / str(name)
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SpecInvalidError(f"{key}: {path} cannot be read as JSON ({_reason(error)}).") from error
    if not isinstance(content, dict):
        raise SpecInvalidError(f"{key}: {path} holds {type(content).__name__}, expected a JSON object.")
    return content


def _reason(error: Exception) -> str:
    """Without the text around the place, which may hold a secret."""
    return f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)


def known(
    kind: type[AirbyteDestination], content: dict[str, Any], extra: Sequence[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """The content without keys that mean nothing here, and those keys; ``extra`` keys are this project's own."""
    keys = (*kind.vendor_keys, *extra)
    unknown = [key for key in content if key not in keys]
    kept = {key: value for key, value in content.items() if key in keys}
    form = kept.get("format")
    model = FORMATS.get(str(form.get("format_type"))) if isinstance(form, dict) else None
    if isinstance(form, dict) and model is not None:
        kept["format"] = {}
        for key, value in form.items():
            if key not in model.model_fields:
                unknown.append(f"format.{key}")
            else:
                kept["format"][key] = _part(f"format.{key}", value, unknown)
    return kept, unknown


def _part(key: str, value: Any, unknown: list[str]) -> Any:
    if not isinstance(value, dict):
        return value
    model = part_of(value)
    if model is None:
        return value
    unknown += [f"{key}.{name}" for name in value if name not in model.model_fields]
    return {name: item for name, item in value.items() if name in model.model_fields}
