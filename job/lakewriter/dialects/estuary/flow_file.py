"""A Flow specification taken as it is: its one materialization's endpoint and bindings, its collections."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from lakewriter.dialects.common.dialect import ForeignFiles
from lakewriter.dialects.common.foreign_files import refuse_other
from lakewriter.dialects.common.problems import describe_value, suggest_nearest
from lakewriter.dialects.common.source_files import Location, Position, describe_kind, read_yaml, require_mapping
from lakewriter.dialects.common.yaml_text import Document, require_file_name
from lakewriter.dialects.estuary.current_settings import CURRENT_KEYS, EstuaryConnector, is_current
from lakewriter.dialects.estuary.flow_fields import OF_BINDINGS, Data, FlowKeys, omit_given
from lakewriter.dialects.estuary.foreign_files import FLOW
from lakewriter.dialects.estuary.settings import ENDPOINT_KEYS, BindingEntry, CollectionEntry, EstuaryS3Parquet
from lakewriter.errors import SpecInvalidError
from lakewriter.json_schema.references import NAMED, VALUES, iterate_bundled

KIND: Final = "estuary-s3-parquet"
_IMAGE: Final = "materialize-s3-parquet"
_CONFIG: Final = ("endpoint", "connector", "config")
_BINDING: Final = ("resource", "fields", "backfill")
_COLLECTION: Final = ("key", "schema", "readSchema", "writeSchema", "projections")


def with_flow(document: Document, kinds: ForeignFiles) -> tuple[Document, tuple[str, ...]]:
    """Return the document with the Flow file's content in place of ``destination.config_file``, schemas in files read,
    and warnings about keys that mean nothing here."""
    destination = document.data.get("destination")
    if not isinstance(destination, dict) or destination.get("type") != KIND:
        return document, ()
    warnings: Sequence[str] = ()
    if "config_file" in destination:
        flow = _Flow(document, destination.get("materialization"), kinds)
        document, warnings = flow.lay_under(document, destination), flow.keys.warnings
    tables = document.data.get("tables")
    if isinstance(tables, list):
        tables = [_with_schemas(entry, document, number) for number, entry in enumerate(tables)]
        document = replace(document, data={**document.data, "tables": tables})
    return document, tuple(warnings)


def _with_schemas(entry: Any, document: Document, number: int) -> Any:
    collection = entry.get("collection") if isinstance(entry, dict) else None
    if not isinstance(collection, dict):
        return entry
    return entry | {
        "collection": _read_schemas(
            collection, document.folder, document.find_position(("tables", number, "collection"))
        )
    }


@dataclass(frozen=True)
class _Table:
    """A table of the lake.yaml with its binding: its number in the file, and where the binding's values are."""

    number: int
    content: dict[str, Any]
    origins: Mapping[str, Position]


class _Flow:
    """One materialization of a Flow file."""

    def __init__(self, document: Document, name: Any, kinds: ForeignFiles) -> None:
        self.keys = FlowKeys()
        location: Location = ("destination", "config_file")
        self._path = document.folder / require_file_name(document, location)
        self._file = read_yaml(self._path, document.describe_position(location))
        refuse_other(self._file, (FLOW,), document.describe_position(location), kinds)
        self._data = require_mapping(self._file, "a Flow specification with 'materializations'")
        self._name = self._choose_name(name)
        self._position = Position(self._file, ("materializations", self._name))
        self._materialization = self._find_materialization()

    def lay_under(self, document: Document, destination: Data) -> Document:
        """Return ``document`` completed by what the file says: keys of ``document`` win."""
        keys = {key: value for key, value in destination.items() if key not in ("config_file", "materialization")}
        endpoint, origins = self._read_endpoint(keys)
        entries = _require_entries(document)
        tables = self._make_tables(entries, document)
        for number, table in enumerate(tables):
            position = document.find_position(("tables", table.number))
            origins[("tables", number)] = position
            origins |= {("tables", number, key): at for key, at in table.origins.items()}
            origins |= {("tables", number, key): position.get_child(key) for key in entries[table.number]}
        data = {**document.data, "destination": endpoint | keys, "tables": [table.content for table in tables]}
        origins = {at: position for at, position in origins.items() if at[0] == "tables" or at[1] not in keys}
        return replace(document, data=data, origins={**document.origins, **origins})

    def _choose_name(self, name: Any) -> str:
        """Return the name of the one materialization, or of the one asked for."""
        materializations = self._data.get("materializations")
        if not isinstance(materializations, dict) or not materializations:
            raise SpecInvalidError(
                f"{self._file.describe_position(())}: there are no 'materializations'.",
                remedy="Name the Flow specification that has the materialization, its endpoint and its bindings.",
            )
        names = [str(materialization) for materialization in materializations]
        if name is None and len(names) > 1:
            raise SpecInvalidError(
                f"{self._file.describe_position(('materializations',))}: there are {len(names)}: "
                f"{', '.join(map(repr, names))}.",
                remedy="Name one as destination.materialization.",
            )
        chosen = names[0] if name is None else str(name)
        if chosen not in names:
            raise SpecInvalidError(
                f"{self._file.describe_position(('materializations',))}: there is no {chosen!r}"
                f"{suggest_nearest(chosen, names) or '; expected ' + ' or '.join(map(repr, names)) + '.'}"
            )
        return chosen

    def _find_materialization(self) -> Data:
        materialization = next(
            content for name, content in self._data["materializations"].items() if str(name) == self._name
        )
        bindings = _get(materialization, "bindings")
        if not isinstance(bindings, list) or not bindings:
            raise SpecInvalidError(
                f"{self._position.get_child('bindings')}: {describe_kind(bindings)}, expected a list of bindings.",
                remedy="Give each collection a binding with 'source' and 'resource'.",
            )
        self.keys.note(materialization, ("endpoint", "bindings", *OF_BINDINGS), self._position)
        self.keys.refuse_backfill_on_change(materialization, self._position)
        return dict(materialization)

    def _read_endpoint(self, anew: Data) -> tuple[dict[str, Any], dict[Location, Position]]:
        """Return the connector's configuration without what is given ``anew``, read from a file if it is a file's name,
        and the place of each of its keys."""
        config = _get(self._find_connector(), "config")
        position = self._position.get_child(*_CONFIG)
        if isinstance(config, str):
            file = read_yaml(self._path.parent / config, str(position))
            config, position = require_mapping(file, "the endpoint's configuration"), Position(file)
        if not isinstance(config, dict):
            raise SpecInvalidError(
                f"{position}: {describe_kind(config)}, expected the endpoint's configuration or the name of its file."
            )
        # Blanks count as absent.
        current = is_current(lambda key: config.get(key) or anew.get(key))
        config = omit_given(config, anew)
        model, keys = (EstuaryConnector, CURRENT_KEYS) if current else (EstuaryS3Parquet, ENDPOINT_KEYS)
        selected = dict(self.keys.select_endpoint_keys(config, model, position, keys))
        return selected, {("destination", key): position.get_child(key) for key in selected}

    def _find_connector(self) -> Data:
        """Return the endpoint's connector; ``SPEC_INVALID`` for another kind of endpoint or another connector."""
        endpoint = self._materialization.get("endpoint")
        connector = _get(endpoint, "connector")
        if not isinstance(connector, dict):
            kinds = ", ".join(map(str, endpoint)) if isinstance(endpoint, dict) else describe_kind(endpoint)
            raise SpecInvalidError(
                f"{self._position.get_child('endpoint')}: expected 'connector' with the image {_IMAGE!r}, got {kinds}.",
                remedy="A local command, a dekaf and other endpoints are not S3: name the materialization into S3.",
            )
        image = str(connector.get("image") or _IMAGE)
        name = re.split("[:@]", image.rpartition("/")[2])[0]
        if name != _IMAGE and name.startswith("materialize-"):
            raise SpecInvalidError(
                f"{self._position.get_child('endpoint', 'connector', 'image')}: {name!r} is another connector; "
                f"expected {_IMAGE!r}.",
                remedy="Name a materialization of Parquet into S3, or describe the destination as lakewriter-s3.",
            )
        return connector

    def _make_tables(self, entries: Sequence[Data], document: Document) -> list[_Table]:
        """Return the lake.yaml's tables in their order, each with the binding of the same source."""
        waiting = dict(enumerate(entries))
        tables, disabled = [], []
        for number, binding in enumerate(self._materialization["bindings"]):
            position = self._position.get_child("bindings", number)
            if not isinstance(binding, dict):
                raise SpecInvalidError(
                    f"{position}: {describe_kind(binding)}, expected a mapping with 'source' and 'resource'."
                )
            source = binding.get("source")
            if binding.get("disable"):
                disabled.append(_get(source, "name") or source)
                continue
            name = self.keys.read_source(source, position.get_child("source"))
            old = next((index for index, entry in waiting.items() if entry.get("source") == name), None)
            if not isinstance(_get(source, "name") or source, str):
                raise SpecInvalidError(
                    f"{position.get_child('source')}: {describe_kind(source)}, expected a collection's name."
                )
            if old is None:
                sources = ", ".join(describe_value(entry.get("source"), ()) for entry in entries) or "none"
                raise SpecInvalidError(
                    f"{position}: collection {name!r} has no source of documents; tables has: {sources}.",
                    remedy=f"Add to tables: {{source: {name}, read: ...}}.",
                )
            tables.append(self._make_table(binding, name, old, waiting.pop(old), position))
        for number, entry in waiting.items():
            if entry.get("source") not in disabled:
                where = document.describe_position(("tables", number, "source"))
                raise SpecInvalidError(
                    f"{where}: {describe_value(entry.get('source'), ())} is the source of no binding of "
                    f"{self._file.name}.",
                    remedy="Leave it out of tables, or add a binding with this source.",
                )
            self.keys.warnings.append(f"tables has {entry.get('source')!r}, whose binding is disabled: it is left out.")
        return sorted(tables, key=lambda table: table.number)

    def _make_table(self, binding: Data, source: str, number: int, entry: Data, position: Position) -> _Table:
        self.keys.note(binding, (*_BINDING, "source", "disable", *OF_BINDINGS), position)
        self.keys.refuse_backfill_on_change(binding, position)
        collection = _get(self._data.get("collections"), source)
        identity = entry.get("primary_key") or _get(entry.get("collection") or collection, "key")
        binding = self.keys.settle_binding(binding, identity if isinstance(identity, list) else [], position)
        keys = {key: value for key, value in binding.items() if key in _BINDING}
        selected = self.keys.select_keys(keys, BindingEntry, position)
        origins = {key: position.get_child(key) for key in selected}
        if isinstance(collection, dict) and "collection" not in entry:
            at = Position(self._file, ("collections", source))
            collection_keys = {key: value for key, value in collection.items() if key in _COLLECTION}
            selected["collection"] = _read_schemas(
                self.keys.select_keys(collection_keys, CollectionEntry, at), self._path.parent, at
            )
            origins["collection"] = at
        return _Table(number, selected | {"source": source} | dict(entry), origins)


def _require_entries(document: Document) -> list[Data]:
    """Return the lake.yaml's own tables."""
    given = document.data.get("tables") or []
    if not isinstance(given, list):
        raise SpecInvalidError(f"{document.describe_position(('tables',))}: {describe_kind(given)}, expected a list.")
    for number, entry in enumerate(given):
        if not isinstance(entry, dict):
            raise SpecInvalidError(
                f"{document.describe_position(('tables', number))}: {describe_kind(entry)}, expected a mapping."
            )
    return given


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


_SCHEMAS: Final = ("schema", "readSchema", "writeSchema")


def _read_schemas(collection: Mapping[str, Any], folder: Path, position: Position) -> dict[str, Any]:
    """Return the collection at ``position`` with schemas instead of the names of their files, which start at
    ``folder``."""
    return {
        key: _read_schema(value, folder, position.get_child(key)) if key in _SCHEMAS else value
        for key, value in collection.items()
    }


def _read_schema(schema: Any, folder: Path, position: Position) -> Any:
    if isinstance(schema, str):
        name, _, fragment = schema.partition("#")
        if fragment:
            return _read_schema({"$ref": schema}, folder, position)
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

    def __init__(self, folder: Path, position: Position) -> None:
        self.files: dict[str, Any] = {}
        self._folder = folder
        self._position = position

    def rewritten(self, value: Any, folder: Path, document: Mapping[str, Any]) -> Any:
        """Return ``value``, a part of ``document``, with references to files as references into the bundle."""
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
            content = require_mapping(read_yaml(path, str(self._position)))
            self.files[file_uri] = self.rewritten(content, path.parent, content)
        return f"{file_uri}{mark}{fragment}"
