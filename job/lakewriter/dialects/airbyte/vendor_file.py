"""Files that a lake.yaml names and that belong to it: the vendor's own configuration, a configured catalog."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from lakewriter.dialects.airbyte.file_formats import FORMATS, part_of
from lakewriter.dialects.airbyte.settings import AirbyteDestination
from lakewriter.dialects.common.foreign_files import AIRBYTE, CATALOG, SUPAFLOW, refuse_other
from lakewriter.dialects.common.source_files import Location, Place, SourceFile, mapping_of, read_json
from lakewriter.dialects.common.yaml_text import Document, file_name


def expanded(document: Document, destinations: Mapping[str, type[BaseModel]]) -> tuple[Document, tuple[str, ...]]:
    """The document with the content of those files in place of their names, and warnings about what is in them."""
    data, warnings, origins = dict(document.data), [], dict(document.origins)
    destination, source = data.get("destination"), data.get("source")
    if isinstance(destination, dict) and "config_file" in destination:
        own = {key: value for key, value in destination.items() if key != "config_file"}
        kind = destinations.get(str(destination.get("type")))
        file, content = _read(document, ("destination", "config_file"))
        if kind is not None and issubclass(kind, AirbyteDestination):
            refuse_other(file, (AIRBYTE, SUPAFLOW), document.where(("destination", "config_file")))
            content, unknown = known(kind, content)
            warnings = [f"{file.where(place)} is not known here and has no effect." for place in unknown]
        data["destination"] = content | own
        origins |= {("destination", key): Place(file, (key,)) for key in content if key not in own}
    if isinstance(source, dict) and isinstance(source.get("catalog"), str):
        file, content = _read(document, ("source", "catalog"))
        refuse_other(file, (CATALOG,), document.where(("source", "catalog")))
        data["source"] = source | {"catalog": content}
        origins["source", "catalog"] = Place(file)
    return replace(document, data=data, origins=origins), tuple(warnings)


def _read(document: Document, location: Location) -> tuple[SourceFile, dict[str, Any]]:
    file = read_json(document.folder / file_name(document, location), document.where(location))
    return file, mapping_of(file, "a JSON object")


def known(
    kind: type[AirbyteDestination], content: dict[str, Any], extra: Sequence[str] = ()
) -> tuple[dict[str, Any], list[Location]]:
    """The content without keys that mean nothing here, and those keys; ``extra`` keys are this project's own."""
    keys = (*kind.vendor_keys, *extra)
    unknown: list[Location] = [(key,) for key in content if key not in keys]
    kept = {key: value for key, value in content.items() if key in keys}
    form = kept.get("format")
    model = FORMATS.get(str(form.get("format_type"))) if isinstance(form, dict) else None
    if isinstance(form, dict) and model is not None:
        kept["format"] = {}
        for key, value in form.items():
            if key not in model.model_fields:
                unknown.append(("format", key))
            else:
                kept["format"][key] = _part(("format", key), value, unknown)
    return kept, unknown


def _part(place: Location, value: Any, unknown: list[Location]) -> Any:
    if not isinstance(value, dict):
        return value
    model = part_of(value)
    if model is None:
        return value
    unknown += [(*place, name) for name in value if name not in model.model_fields]
    return {name: item for name, item in value.items() if name in model.model_fields}
