"""References in a collection's JSON Schemas: files are bundled into one document, then each ``$ref`` is resolved."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from lakewriter.dialects.common.source_files import Place, mapping_of, read_yaml
from lakewriter.errors import SpecInvalidError

_SCHEMAS: Final = ("schema", "readSchema", "writeSchema")
_VALUES: Final = ("const", "default", "enum", "examples")
"""Keywords that hold values, in which ``$ref`` refers to nothing."""


def opened(collection: Mapping[str, Any], folder: Path, place: Place) -> dict[str, Any]:
    """The collection at ``place`` with schemas instead of the names of their files, which start at ``folder``."""
    return {key: _schema(own, folder, place.inside(key)) if key in _SCHEMAS else own for key, own in collection.items()}


def _schema(own: Any, folder: Path, place: Place) -> Any:
    if isinstance(own, str):
        name, _, fragment = own.partition("#")
        if fragment:
            return _schema({"$ref": own}, folder, place)
        own, start = mapping_of(read_yaml(folder / name, str(place))), (folder / name).parent
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
        found = {}
        for key, own in value.items():
            if key == "$ref" and isinstance(own, str):
                found[key] = self._reference(own, folder, document)
            else:
                found[key] = own if key in _VALUES else self.rewritten(own, folder, document)
        return found

    def _reference(self, reference: str, folder: Path, document: Mapping[str, Any]) -> str:
        name, mark, fragment = reference.partition("#")
        if not name or ":" in name or any(name in (key, own.get("$id")) for key, own in bundled(document)):
            return reference
        path = (folder / name).resolve()
        known = "file:" + Path(os.path.relpath(path, self._folder.resolve())).as_posix()
        if known not in self.files:
            self.files[known] = {}
            content = mapping_of(read_yaml(path, str(self._place)))
            self.files[known] = self.rewritten(content, path.parent, content)
        return f"{known}{mark}{fragment}"


Schema = Mapping[str, Any]

INFERRED: Final = "flow://inferred-schema"
_WRITE: Final = ("flow://write-schema", "flow://relaxed-write-schema")
_BUNDLES: Final = ("$defs", "definitions")


class References:
    """``write`` is the collection's write schema; the relaxed one, which only the platform makes, is taken to be it."""

    def __init__(self, root: Schema, write: Schema | None) -> None:
        self._root = root
        self._write = write

    def target(self, reference: str, document: Schema, place: str) -> tuple[Any, Schema] | None:
        """The schema that ``reference`` in ``document`` means, and the document that it is in; None for the inferred
        schema, which only the platform has. ``SPEC_INVALID`` for what is not there."""
        name, _, fragment = reference.partition("#")
        found = self._document(name, document) if name else document
        if found is None and name == INFERRED:
            return None
        inside = None if found is None else _inside(found, unquote(fragment))
        if found is None or inside is None:
            raise SpecInvalidError(
                f"the collection's schema refers to {reference!r} at {place}, which is not there.",
                remedy="Write it out under $defs, or into a file beside, and refer to that.",
            )
        return inside, found

    def _document(self, name: str, document: Schema) -> Schema | None:
        for each in (document, self._root, self._write or {}):
            for key, own in bundled(each):
                if name in (key, own.get("$id")):
                    return own
        return self._write if name in _WRITE else None


def bundled(document: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas that come with a document, by their keys in it."""
    for bundle in _BUNDLES:
        own = document.get(bundle)
        if isinstance(own, Mapping):
            yield from ((str(key), each) for key, each in own.items() if isinstance(each, Mapping))


def _inside(document: Schema, fragment: str) -> Any:
    """What a JSON pointer or an anchor names."""
    if fragment and not fragment.startswith("/"):
        return next((each for _, each in bundled(document) if each.get("$anchor") == fragment), None)
    found: Any = document
    for step in filter(None, fragment.split("/")):
        plain = step.replace("~1", "/").replace("~0", "~")
        found = found.get(plain) if isinstance(found, Mapping) else None
    return found
