"""A Flow specification taken as it is: its one materialization's endpoint and bindings, its collections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from lakewriter.dialects.common.problems import nearest
from lakewriter.dialects.common.yaml_text import Document, Location
from lakewriter.dialects.estuary.flow_keys import Data, FlowKeys
from lakewriter.dialects.estuary.schema_references import mapping, opened
from lakewriter.dialects.estuary.settings import ENDPOINT_KEYS, BindingEntry, CollectionEntry, EstuaryS3Parquet
from lakewriter.errors import SpecInvalidError

KIND: Final = "estuary-s3-parquet"
_CONFIG: Final = ("endpoint", "connector", "config")
_BINDING: Final = ("resource", "fields")
_COLLECTION: Final = ("key", "schema", "readSchema", "writeSchema", "projections")


def with_flow(document: Document) -> tuple[Document, tuple[str, ...]]:
    """The document with the Flow file's content in place of ``destination.config_file``, schemas in files read, and
    warnings about keys that mean nothing here."""
    destination = document.data.get("destination")
    if not isinstance(destination, dict) or destination.get("type") != KIND:
        return document, ()
    warnings: Sequence[str] = ()
    if "config_file" in destination:
        flow = _Flow(document.folder / str(destination["config_file"]), destination.get("materialization"))
        document, warnings = flow.laid_under(document, destination), flow.keys.warnings
    tables = document.data.get("tables")
    if isinstance(tables, list):
        tables = [_with_schemas(entry, document.folder) for entry in tables]
        document = replace(document, data={**document.data, "tables": tables})
    return document, tuple(warnings)


def _with_schemas(entry: Any, folder: Path) -> Any:
    collection = entry.get("collection") if isinstance(entry, dict) else None
    return entry | {"collection": opened(collection, folder)} if isinstance(collection, dict) else entry


@dataclass(frozen=True)
class _Table:
    """A table of the lake.yaml with its binding: its number in the file, and where what the binding says stands."""

    number: int
    content: dict[str, Any]
    origins: Mapping[str, Location]


class _Flow:
    """One materialization of a Flow file."""

    def __init__(self, path: Path, name: Any) -> None:
        self.keys = FlowKeys(path.name)
        self._path = path
        self._data = mapping(path)
        self._own = self._materialization(name)

    def laid_under(self, document: Document, destination: Data) -> Document:
        """``document`` with what the file says, except where it says something itself."""
        own = {key: value for key, value in destination.items() if key not in ("config_file", "materialization")}
        endpoint, origins = self._endpoint()
        given = document.data.get("tables")
        tables = self._tables([entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else [])
        lines = {place: line for place, line in document.lines.items() if place[:1] != ("tables",) or len(place) == 1}
        for number, table in enumerate(tables):
            above = ("tables", table.number)
            lines |= {("tables", number, *at[2:]): line for at, line in document.lines.items() if at[:2] == above}
            origins |= {("tables", number, key): (self._path.name, at) for key, at in table.origins.items()}
        data = {**document.data, "destination": endpoint | own, "tables": [table.content for table in tables]}
        origins = {at: origin for at, origin in origins.items() if at not in lines}
        return replace(document, data=data, lines=lines, origins=origins)

    def _materialization(self, name: Any) -> Data:
        """The one materialization, or the named one."""
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
        bindings = _at(own, "bindings")
        if not isinstance(bindings, list) or not bindings:
            raise SpecInvalidError(f"{self._path.name}: materialization {chosen!r} has no bindings.")
        self.keys.note(own, ("endpoint", "bindings"), f"materializations.{chosen}")
        return dict(own)

    def _endpoint(self) -> tuple[dict[str, Any], dict[Location, tuple[str, Location]]]:
        """The connector's configuration, from the file that it names where it is a name; and where it stands."""
        config = _at(_at(self._own.get("endpoint"), "connector"), "config")
        name = self._path.name
        above: Location = _CONFIG
        if isinstance(config, str):
            name, above = config, ()
            config = mapping(self._path.parent / config)
        if not isinstance(config, dict):
            raise SpecInvalidError(f"{self._path.name} has no endpoint.connector.config.")
        kept = self.keys.kept(config, EstuaryS3Parquet, ".".join(_CONFIG), ENDPOINT_KEYS)
        return kept, {("destination", key): (name, (*above, key)) for key in kept}

    def _tables(self, entries: Sequence[Data]) -> list[_Table]:
        """The lake.yaml's tables in their order, each with the binding of the same source."""
        waiting = dict(enumerate(entries))
        tables, disabled = [], []
        for number, binding in enumerate(self._own["bindings"]):
            if not isinstance(binding, dict):
                continue
            place, source = f"bindings.{number}", binding.get("source")
            if binding.get("disable"):
                disabled.append(_at(source, "name") or source)
                continue
            name = self.keys.source(source, f"{place}.source")
            old = next((each for each, entry in waiting.items() if entry.get("source") == name), None)
            if old is None:
                known = ", ".join(repr(each.get("source")) for each in entries) or "none"
                raise SpecInvalidError(
                    f"{self._path.name}: collection {name!r} of {place} has no source of documents; "
                    f"tables has: {known}.",
                    remedy=f"Add to tables: {{source: {name}, read: ...}}.",
                )
            tables.append(self._table(binding, name, old, waiting.pop(old), place))
        for entry in waiting.values():
            if entry.get("source") not in disabled:
                raise SpecInvalidError(f"tables has {entry.get('source')!r}, and no binding of {self._path.name} has.")
            self.keys.warnings.append(f"tables has {entry.get('source')!r}, whose binding is disabled: it is left out.")
        return sorted(tables, key=lambda table: table.number)

    def _table(self, binding: Data, source: str, number: int, entry: Data, place: str) -> _Table:
        self.keys.note(binding, (*_BINDING, "source", "disable", "backfill"), place)
        self.keys.backfill(binding.get("backfill"), f"{place}.backfill")
        own = {key: value for key, value in binding.items() if key in _BINDING}
        kept = self.keys.kept(own, BindingEntry, place)
        origins: dict[str, Location] = {key: (place, key) for key in kept}
        collection = _at(_at(self._data, "collections"), source)
        if isinstance(collection, dict) and "collection" not in entry:
            at = f"collections.{source}"
            known = {key: value for key, value in collection.items() if key in _COLLECTION}
            kept["collection"] = opened(self.keys.kept(known, CollectionEntry, at), self._path.parent)
            origins["collection"] = (at,)
        return _Table(number, kept | {"source": source} | dict(entry), origins)


def _at(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None
