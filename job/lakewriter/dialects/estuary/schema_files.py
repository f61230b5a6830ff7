"""Bundle the files that a collection's JSON Schemas refer to into one document each."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lakewriter.dialects.common.source_files import Place, read_yaml, require_mapping
from lakewriter.errors import SpecInvalidError
from lakewriter.json_schema.references import NAMED, VALUES, iterate_bundled

_SCHEMAS: Final = ("schema", "readSchema", "writeSchema")


def opened(collection: Mapping[str, Any], folder: Path, place: Place) -> dict[str, Any]:
    """Return the collection at ``place`` with schemas instead of the names of their files, which start at
    ``folder``."""
    return {
        key: _schema(own, folder, place.get_child(key)) if key in _SCHEMAS else own for key, own in collection.items()
    }


def _schema(own: Any, folder: Path, place: Place) -> Any:
    if isinstance(own, str):
        name, _, fragment = own.partition("#")
        if fragment:
            return _schema({"$ref": own}, folder, place)
        own, start = require_mapping(read_yaml(folder / name, str(place))), (folder / name).parent
    else:
        start = folder
    if not isinstance(own, Mapping):
        return own
    bundle = _Bundle(folder, place)
    found = bundle.rewritten(own, start, own)
    if not bundle.files:
        return found
    own_definitions = found.get("$defs") or {}
    if not isinstance(own_definitions, Mapping):
        raise SpecInvalidError(f"{place}: the collection's schema has no mapping as '$defs'; expected one.")
    return found | {"$defs": {**own_definitions, **bundle.files}}


class _Bundle:
    """The ``files`` that schemas refer to, under names that no scheme of the web has."""

    def __init__(self, folder: Path, place: Place) -> None:
        self.files: dict[str, Any] = {}
        self._folder = folder
        self._place = place

    def rewritten(self, value: Any, folder: Path, document: Mapping[str, Any]) -> Any:
        """``value``, a part of ``document``, with references to files as references into the bundle."""
        if isinstance(value, list):
            return [self.rewritten(each, folder, document) for each in value]
        if not isinstance(value, Mapping):
            return value
        found: dict[str, Any] = {}
        for key, own in value.items():
            if key == "$ref" and isinstance(own, str):
                found[key] = self._reference(own, folder, document)
            elif key in NAMED and isinstance(own, Mapping):
                found[key] = {name: self.rewritten(part, folder, document) for name, part in own.items()}
            else:
                found[key] = own if key in VALUES else self.rewritten(own, folder, document)
        return found

    def _reference(self, reference: str, folder: Path, document: Mapping[str, Any]) -> str:
        name, mark, fragment = reference.partition("#")
        if not name or ":" in name or any(name in (key, own.get("$id")) for key, own in iterate_bundled(document)):
            return reference
        path = (folder / name).resolve()
        known = "file:" + Path(os.path.relpath(path, self._folder.resolve())).as_posix()
        if known not in self.files:
            self.files[known] = {}
            content = require_mapping(read_yaml(path, str(self._place)))
            self.files[known] = self.rewritten(content, path.parent, content)
        return f"{known}{mark}{fragment}"
