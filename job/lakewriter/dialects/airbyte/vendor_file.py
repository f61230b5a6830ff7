"""Files that a lake.yaml names and that belong to it: the vendor's own configuration, a configured catalog."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lakewriter.dialects.airbyte.file_formats import FORMATS, find_part_model
from lakewriter.dialects.airbyte.foreign_files import API, CATALOG, CONFIG, find_configuration
from lakewriter.dialects.airbyte.settings import AirbyteDestination, AirbyteS3, HeroPixelS3
from lakewriter.dialects.common.config_file import CONFIG_FILE, read_config_file, read_named
from lakewriter.dialects.common.dialect import ForeignFiles
from lakewriter.dialects.common.foreign_files import DESTINATION, refuse_other
from lakewriter.dialects.common.source_files import Location, Position, SpecFile
from lakewriter.dialects.common.yaml_text import Document

TYPES: dict[str, type[AirbyteDestination]] = {"airbyte-s3": AirbyteS3, "heropixel-s3": HeroPixelS3}


def read_files(document: Document, kinds: ForeignFiles) -> tuple[Document, tuple[str, ...]]:
    """Return the document with the content of those files in place of their names, and warnings about what is in
    them."""
    warnings: list[str] = []
    destination = document.data.get("destination")
    kind = TYPES.get(str(destination.get("type"))) if isinstance(destination, dict) else None
    if kind is not None:

        def drop_unknown(file: SpecFile, content: dict[str, Any]) -> dict[str, Any]:
            refuse_other(file, (CONFIG, API, DESTINATION), document.describe_position(CONFIG_FILE), kinds)
            content_kept, unknown = split_known_keys(kind, content)
            warnings.extend(
                f"{file.describe_position(location)} is not known here and has no effect." for location in unknown
            )
            return content_kept

        document = read_config_file(document, drop_unknown, find_configuration)
    return _read_catalog(document, kinds), tuple(warnings)


def _read_catalog(document: Document, kinds: ForeignFiles) -> Document:
    source = document.data.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("catalog"), str):
        return document
    location: Location = ("source", "catalog")
    file, content = read_named(document, location)
    refuse_other(file, (CATALOG,), document.describe_position(location), kinds)
    data = {**document.data, "source": source | {"catalog": content}}
    return replace(document, data=data, origins={**document.origins, location: Position(file)})


def split_known_keys(
    kind: type[AirbyteDestination], file: dict[str, Any], extra: Sequence[str] = ()
) -> tuple[dict[str, Any], list[Location]]:
    """Return the destination's keys that a file has, without those that mean nothing here, and the places of those.

    ``extra`` keys are this project's own. The API writes the type of the destination among its keys.
    """
    keys, root = (*kind.vendor_keys, *extra), find_configuration(file)
    content = file[str(root[0])] if root else file
    unknown: list[Location] = [(key,) for key in content if key not in (*keys, *(["destinationType"] if root else []))]
    known_keys = {key: value for key, value in content.items() if key in keys}
    form = known_keys.get("format")
    model = FORMATS.get(str(form.get("format_type"))) if isinstance(form, dict) else None
    if isinstance(form, dict) and model is not None:
        known_keys["format"] = {}
        for key, value in form.items():
            if key not in model.model_fields:
                unknown.append(("format", key))
            else:
                known_keys["format"][key] = _split_part(("format", key), value, unknown)
    return known_keys, [(*root, *location) for location in unknown]


def _split_part(location: Location, value: Any, unknown: list[Location]) -> Any:
    if not isinstance(value, dict):
        return value
    model = find_part_model(value)
    if model is None:
        return value
    unknown += [(*location, name) for name in value if name not in model.model_fields]
    return {name: item for name, item in value.items() if name in model.model_fields}
