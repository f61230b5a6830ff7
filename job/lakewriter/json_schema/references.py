"""Resolve a ``$ref`` of a JSON Schema: a pointer, an anchor, or a bundled schema by its key or its ``$id``.

See: https://json-schema.org/draft/2020-12/json-schema-core#section-8 and https://www.rfc-editor.org/rfc/rfc6901;
docs/adr/0017-one-document-engine.md says why no library does it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote, urljoin

from lakewriter.spec.collection import steps

Schema = Mapping[str, Any]

VALUES: Final = ("const", "default", "enum", "examples")
"""Keywords that hold values, in which ``$ref`` is no reference."""
NAMED: Final = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
"""Keywords that hold schemas by name: in them ``default`` is a name, not a keyword."""
_BUNDLES: Final = ("$defs", "definitions")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
"""A list in a JSON pointer has such an index."""


class References:
    """Documents by name, ``root`` and ``others``, in which references are resolved."""

    def __init__(self, root: Schema, others: Mapping[str, Schema]) -> None:
        self._root = root
        self._others = others
        self._names: dict[int, dict[str, Schema]] = {}
        self._anchors: dict[int, dict[str, Schema]] = {}

    def find(self, reference: str, document: Schema) -> tuple[Any, Schema] | None:
        """Find the schema that ``reference`` in ``document`` names, and its document; None if there is none."""
        name, _, fragment = reference.partition("#")
        inside = self._find_document(name, document) if name else document
        if inside is None:
            return None
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            schema = self._find_anchor(fragment, inside)
        else:
            schema = _follow_pointer(inside, fragment)
        return None if schema is None else (schema, inside)

    def _find_document(self, name: str, document: Schema) -> Schema | None:
        for bundle in (document, self._root, *self._others.values()):
            if id(bundle) not in self._names:
                self._names[id(bundle)] = dict(_iterate_names(bundle))
            names = self._names[id(bundle)]
            schema = names.get(name) or names.get(_resolve_name(bundle, name))
            if schema is not None:
                return schema
        return self._others.get(name) or self._others.get(name.rpartition("/")[2])

    def _find_anchor(self, anchor: str, document: Schema) -> Schema | None:
        if id(document) not in self._anchors:
            self._anchors[id(document)] = dict(_iterate_anchors(document))
        return self._anchors[id(document)].get(anchor)


def _follow_pointer(document: Any, pointer: str) -> Any:
    """Follow a JSON pointer (RFC 6901); None if it leads nowhere."""
    value = document
    for step in steps(pointer) if pointer else ():
        if isinstance(value, list):
            value = value[int(step)] if _INDEX.fullmatch(step) and int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _iterate_names(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield a document and those bundled with it by every name: its key, its ``$id``, both resolved against the
    document's own ``$id``."""
    for key, schema in (("", document), *iterate_bundled(document)):
        for name in (key, schema.get("$id")):
            if name and isinstance(name, str):
                yield from ((name, schema), (_resolve_name(document, name), schema))


def _resolve_name(document: Schema, name: str) -> str:
    """Resolve a name against the document's ``$id``; one that is no URL stays as it is."""
    try:
        return urljoin(str(document.get("$id") or ""), name)
    except ValueError:
        return name


def _iterate_anchors(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield every anchor with its schema: ``$anchor``, or up to draft-07 an ``$id`` that is only a fragment."""
    waiting: list[Any] = [document]
    for part in waiting:
        waiting += _iterate_parts(part)
        if isinstance(part, Mapping):
            anchor, identifier = part.get("$anchor"), part.get("$id")
            if isinstance(anchor, str):
                yield anchor, part
            if isinstance(identifier, str) and identifier.startswith("#"):
                yield identifier[1:], part


def _iterate_parts(part: Any) -> Iterator[Any]:
    """Yield the values right inside a part that may be or hold schemas."""
    if isinstance(part, list):
        yield from part
    elif isinstance(part, Mapping):
        for key, value in part.items():
            if key in NAMED and isinstance(value, Mapping):
                yield from value.values()
            elif key not in VALUES:
                yield value


def iterate_bundled(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the schemas that are bundled with a document, by their keys."""
    for bundle in _BUNDLES:
        schemas = document.get(bundle)
        if isinstance(schemas, Mapping):
            yield from ((str(key), schema) for key, schema in schemas.items() if isinstance(schema, Mapping))
