"""``destination.config_file``: a JSON file with the destination's keys, in place of them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lakewriter.dialects.common.source_files import Location, Position, SpecFile, read_json, require_mapping
from lakewriter.dialects.common.yaml_text import Document, require_file_name

CONFIG_FILE: Location = ("destination", "config_file")

SelectKnown = Callable[[SpecFile, dict[str, Any]], dict[str, Any]]
"""Selects the part of a file's content that is taken."""
FindRoot = Callable[[Mapping[str, Any]], Location]
"""Finds the destination's keys in a file."""


def read_named(document: Document, location: Location) -> tuple[SpecFile, dict[str, Any]]:
    """Return the JSON file whose name is at ``location``, and its content."""
    file = read_json(document.folder / require_file_name(document, location), document.describe_position(location))
    return file, require_mapping(file, "a JSON object")


def read_config_file(
    document: Document, select: SelectKnown = lambda _, content: content, find_root: FindRoot = lambda _: ()
) -> Document:
    """Return the document with the file's content under the destination's own keys, where it names a file."""
    destination = document.data.get("destination")
    if not isinstance(destination, Mapping) or "config_file" not in destination:
        return document
    keys = {key: value for key, value in destination.items() if key != "config_file"}
    file, content = read_named(document, CONFIG_FILE)
    root, content = find_root(content), select(file, content)
    position = Position(file, root)
    origins: dict[Location, Position] = {
        ("destination", key): position.get_child(key) for key in content if key not in keys
    }
    data = {**document.data, "destination": content | keys}
    return replace(document, data=data, origins={**document.origins, **origins})
