"""Bundle the files that a collection's JSON Schemas refer to into one document each."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from lakewriter.dialects.common.source_files import Place, read_yaml, require_mapping
from lakewriter.errors import SpecInvalidError
from lakewriter.json_schema.references import NAMED, VALUES, iterate_bundled

_SCHEMAS: Final = ("schema", "readSchema", "writeSchema")


def opened(collection: Mapping[str, Any], folder: Path, position: Place) -> dict[str, Any]:
    """Return the collection at ``place`` with schemas instead of the names of their files, which start at
    ``folder``."""
    return {
        key: _schema(value, folder, position.get_child(key)) if key in _SCHEMAS else value
        for key, value in collection.items()
    }


def _schema(schema: Any, folder: Path, position: Place) -> Any:
    if isinstance(schema, str):
        name, _, fragment = schema.partition("#")
        if fragment:
            return _schema({"$ref": schema}, folder, position)
        schema, start = require_mapping(read_yaml(folder / name, str(position))), (folder / name).parent
    else:
        start = folder
    if not isinstance(schema, Mapping):
        return schema
    bundle = _Bundle(folder, position)
    bundled = bundle.rewritten(schema, start, schema)
    if not bundle.files:
        return bundled
    own_definitions = bundled.get("$defs") or {}
    if not isinstance(own_definitions, Mapping):
        raise SpecInvalidError(f"{position}: the collection's schema has no mapping as '$defs'; expected one.")
    return bundled | {"$defs": {**own_definitions, **bundle.files}}


class _Bundle:
    """The ``files`` that schemas refer to, under names that no scheme of the web has."""

    def __init__(self, folder: Path, position: Place) -> None:
        self.files: dict[str, Any] = {}
        self._folder = folder
        self._place = position

    def rewritten(self, value: Any, folder: Path, document: Mapping[str, Any]) -> Any:
        """``value``, a part of ``document``, with references to files as references into the bundle."""
        if isinstance(value, list):
            return [self.rewritten(item, folder, document) for item in value]
        if not isinstance(value, Mapping):
            return value
        members: dict[str, Any] = {}
        for key, member in value.items():
            if key == "$ref" and isinstance(member, str):
                members[key] = self._reference(member, folder, document)
            elif key in NAMED and isinstance(member, Mapping):
                members[key] = {name: self.rewritten(part, folder, document) for name, part in member.items()}
            else:
                members[key] = member if key in VALUES else self.rewritten(member, folder, document)
        return members

    def _reference(self, reference: str, folder: Path, document: Mapping[str, Any]) -> str:
        name, mark, fragment = reference.partition("#")
        if (
            not name
            or ":" in name
            or any(name in (key, bundled.get("$id")) for key, bundled in iterate_bundled(document))
        ):
            return reference
        path = (folder / name).resolve()
        file_uri = "file:" + Path(os.path.relpath(path, self._folder.resolve())).as_posix()
        if file_uri not in self.files:
            self.files[file_uri] = {}
            content = require_mapping(read_yaml(path, str(self._place)))
            self.files[file_uri] = self.rewritten(content, path.parent, content)
        return f"{file_uri}{mark}{fragment}"
