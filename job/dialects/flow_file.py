"""A Flow specification taken as it is: its one materialization's endpoint and bindings, its collections."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from job.dialects.estuary_form import ENDPOINT_KEYS
from job.dialects.problems import nearest
from job.dialects.text import Document
from job.errors import SpecInvalidError

KIND: Final = "estuary-s3-parquet"
_BINDING: Final = ("resource", "source", "fields")
_COLLECTION: Final = ("key", "schema", "readSchema", "writeSchema", "projections")
_SCHEMAS: Final = ("schema", "readSchema", "writeSchema")

Data = Mapping[str, Any]


def with_flow(document: Document) -> tuple[Document, tuple[str, ...]]:
    """The document with the Flow file's content in place of ``destination.config_file``, schemas in files read, and
    warnings about keys that mean nothing here."""
    destination = document.data.get("destination")
    if not isinstance(destination, dict) or destination.get("type") != KIND:
        return document, ()
    data = dict(document.data)
    warnings: list[str] = []
    if "config_file" in destination:
        flow = _Flow(document.folder / str(destination["config_file"]))
        own = {key: value for key, value in destination.items() if key not in ("config_file", "materialization")}
        endpoint, bindings = flow.materialization(destination.get("materialization"))
        data["destination"] = flow.endpoint(endpoint) | own
        data["tables"] = flow.tables(bindings, data.get("tables"))
        warnings = flow.warnings
    tables = data.get("tables")
    if isinstance(tables, list):
        data["tables"] = [_with_schemas(entry, document.folder) for entry in tables]
    return replace(document, data=data), tuple(warnings)


def _with_schemas(entry: Any, folder: Path) -> Any:
    collection = entry.get("collection") if isinstance(entry, dict) else None
    if not isinstance(collection, dict):
        return entry
    return entry | {"collection": _opened(collection, folder)}


def _opened(collection: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The collection with schemas in place of the names of their files."""
    named = {key: value for key, value in collection.items() if key in _SCHEMAS and isinstance(value, str)}
    return collection | {key: _mapping(folder / value) for key, value in named.items()}


def _mapping(path: Path) -> dict[str, Any]:
    """A YAML or JSON file's content; messages hold none of it, as it may hold a secret."""
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SpecInvalidError(f"{path} cannot be read ({error}).") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise SpecInvalidError(f"{path} is not YAML: {where}{getattr(error, 'problem', '')}.") from error
    if not isinstance(content, dict):
        raise SpecInvalidError(f"{path} holds {type(content).__name__}, expected a mapping.")
    return content


class _Flow:
    """One Flow file; ``warnings`` names what of it has no effect."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = _mapping(path)
        self.warnings: list[str] = []

    def materialization(self, name: Any) -> tuple[Data, Sequence[Any]]:
        """The endpoint and the bindings of the one materialization, or of the named one."""
        found = self._data.get("materializations")
        if not isinstance(found, dict) or not found:
            raise SpecInvalidError(f"{self._path.name} has no materializations.")
        if name is None and len(found) > 1:
            raise SpecInvalidError(
                f"{self._path.name} has {len(found)} materializations: {', '.join(map(repr, found))}.",
                remedy="Name one as destination.materialization.",
            )
        chosen = next(iter(found)) if name is None else str(name)
        if chosen not in found:
            raise SpecInvalidError(f"{self._path.name} has no materialization {chosen!r}{nearest(chosen, found)}.")
        own = found[chosen]
        endpoint, bindings = _at(own, "endpoint"), _at(own, "bindings")
        if not isinstance(bindings, list) or not bindings:
            raise SpecInvalidError(f"{self._path.name}: materialization {chosen!r} has no bindings.")
        return endpoint if isinstance(endpoint, dict) else {}, bindings

    def endpoint(self, endpoint: Data) -> dict[str, Any]:
        """The connector's configuration, from the file that it names where it is a name."""
        config = _at(_at(endpoint, "connector"), "config")
        if isinstance(config, str):
            config = _mapping(self._path.parent / config)
        if not isinstance(config, dict):
            raise SpecInvalidError(f"{self._path.name} has no endpoint.connector.config.")
        self._note(config, ENDPOINT_KEYS, "endpoint.connector.config")
        return {key: value for key, value in config.items() if key in ENDPOINT_KEYS}

    def tables(self, bindings: Sequence[Any], given: Any) -> list[Any]:
        """Each binding with its collection, and with what the lake.yaml's table of the same source says."""
        own = given if isinstance(given, list) else []
        waiting = [entry for entry in own if isinstance(entry, dict)]
        tables = []
        for number, binding in enumerate(bindings):
            if not isinstance(binding, dict) or binding.get("disable"):
                continue
            source = _source(binding.get("source"))
            self._note(binding, (*_BINDING, "disable", "backfill"), f"bindings.{number}")
            entry = next((each for each in waiting if each.get("source") == source), None)
            if entry is None:
                known = ", ".join(repr(each.get("source")) for each in own if isinstance(each, dict)) or "none"
                raise SpecInvalidError(
                    f"{self._path.name}: collection {source!r} of bindings.{number} has no source of documents; "
                    f"tables has: {known}.",
                    remedy=f"Add to tables: {{source: {source}, read: ...}}.",
                )
            waiting.remove(entry)
            tables.append(self._table(binding, source, entry))
        if waiting:
            raise SpecInvalidError(f"tables has {waiting[0].get('source')!r}, and no binding of {self._path.name} has.")
        return tables

    def _table(self, binding: Data, source: str, entry: Data) -> dict[str, Any]:
        kept = {key: value for key, value in binding.items() if key in _BINDING}
        collection = _at(_at(self._data, "collections"), source)
        if isinstance(collection, dict) and "collection" not in entry:
            known = {key: value for key, value in collection.items() if key in _COLLECTION}
            kept["collection"] = _opened(known, self._path.parent)
        return kept | {"source": source} | dict(entry)

    def _note(self, found: Data, known: Sequence[str], place: str) -> None:
        for key in self._unknown(found, known):
            self.warnings.append(f"{self._path.name}: {place}.{key} is not known here and has no effect.")

    @staticmethod
    def _unknown(found: Data, known: Sequence[str]) -> Iterator[str]:
        return (str(key) for key in found if key not in known)


def _source(value: Any) -> str:
    """A binding's source is a name, or a mapping with the name."""
    return str(value.get("name")) if isinstance(value, dict) else str(value)


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None
