"""Recognise the vendors' own files: a destination's configuration, a catalog, a connection, a Flow specification."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from lakewriter.dialects.airbyte.configured_catalog import ConfiguredCatalog
from lakewriter.dialects.airbyte.foreign_files import API, CATALOG, CONFIG, DISCOVERED, find_configuration
from lakewriter.dialects.common.foreign_files import DESTINATION, recognise_file
from lakewriter.dialects.common.source_files import read_json, read_yaml
from lakewriter.dialects.estuary.foreign_files import ENDPOINT, FLOW
from lakewriter.dialects.registry import FOREIGN_FILES
from lakewriter.errors import SpecInvalidError

Kind = Literal["airbyte destination", "catalog", "connection", "flow", "endpoint"]

_MOST_BYTES: Final = 64 * 1024 * 1024
_MASK: Final = "**"
_MESSAGES: Final = ("RECORD", "STATE", "LOG", "TRACE", "CATALOG", "SPEC", "CONTROL", "CONNECTION_STATUS")
_CAMEL: Final = {
    "syncMode": "sync_mode",
    "destinationSyncMode": "destination_sync_mode",
    "cursorField": "cursor_field",
    "primaryKey": "primary_key",
    "jsonSchema": "json_schema",
}


@dataclass(frozen=True)
class VendorFile:
    """A file of a vendor's; ``masked`` are the secrets that it hides, by the names of their keys."""

    path: str
    kind: Kind
    content: Mapping[str, Any]
    masked: tuple[str, ...] = ()


def read_vendor_file(path: str) -> VendorFile | None:
    """Read a vendor's file; None for a file of data. ``SPEC_INVALID`` for one that cannot begin a lake.yaml."""
    place = Path(path)
    if place.suffix.lower() not in (".json", ".yaml", ".yml") or not place.is_file():
        return None
    if place.stat().st_size > _MOST_BYTES:
        return None
    try:
        content = (read_json if place.suffix.lower() == ".json" else read_yaml)(place).content
    except SpecInvalidError:
        if place.suffix.lower() == ".json":
            # One document per line is data.
            return None
        raise
    return _recognise(path, _open_list(content)) if isinstance(content, dict) else None


def _open_list(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one entry of what the API answers with a list."""
    entries = content.get("data")
    one = entries[0] if isinstance(entries, list) and len(entries) == 1 else None
    return one if isinstance(one, dict) and ("configuration" in one or "configurations" in one) else content


def _recognise(path: str, content: Mapping[str, Any]) -> VendorFile | None:
    if "pipeline" in content and "destination" in content:
        raise SpecInvalidError(f"{path} is a lake.yaml already.", remedy=f"Go on with: lakewriter check {path}.")
    if _has_connection(content):
        return VendorFile(path, "connection", content)
    kind = recognise_file(content, FOREIGN_FILES)
    if kind is None:
        return None
    if kind is DISCOVERED:
        raise SpecInvalidError(f"{path} is {kind.what}.", remedy=kind.remedy)
    kinds: dict[Any, Kind] = {CONFIG: "airbyte destination", API: "airbyte destination", CATALOG: "catalog",
                              FLOW: "flow", ENDPOINT: "endpoint", DESTINATION: "airbyte destination"}  # fmt: skip
    return VendorFile(path, kinds[kind], content, tuple(_list_masked(content)))


def _list_masked(content: Mapping[str, Any]) -> Iterator[str]:
    keys: Mapping[str, Any] = content
    for step in find_configuration(content):
        keys = keys[str(step)]
    for key, value in keys.items():
        if isinstance(value, str) and value.startswith(_MASK):
            yield key


def _has_connection(content: Mapping[str, Any]) -> bool:
    configured = content.get("configurations")
    if isinstance(configured, Mapping) and isinstance(configured.get("streams"), list):
        return True
    synced = content.get("syncCatalog")
    return isinstance(synced, Mapping) and isinstance(synced.get("streams"), list)


def make_catalog(content: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Make the configured catalog of a connection as the API gives it, and notes on what is not as it was there."""
    if "syncCatalog" in content:
        streams, notes = _read_sync_catalog(content["syncCatalog"]["streams"])
    else:
        streams, notes = _read_configurations(content["configurations"]["streams"])
    ConfiguredCatalog.model_validate({"streams": streams})
    return {"streams": streams}, notes


def _read_sync_catalog(entries: list[Any]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    streams, notes = [], list[str]()
    for entry in entries:
        config = {_CAMEL.get(key, key): value for key, value in entry.get("config", {}).items()}
        if config.get("selected") is False:
            continue
        definition = {_CAMEL.get(key, key): value for key, value in entry["stream"].items()}
        kept = {key: definition.get(key) for key in ("name", "namespace", "json_schema") if definition.get(key)}
        streams.append({"stream": kept, **_choose_modes(str(kept["name"]), config, notes)})
    return streams, tuple(notes)


def _read_configurations(entries: list[Any]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The public API's streams, which have one mode of two words and no schema."""
    streams, notes = [], list[str]()
    for entry in entries:
        config = {_CAMEL.get(key, key): value for key, value in entry.items()}
        mode = str(config.get("sync_mode") or "full_refresh_append")
        source = "incremental" if mode.startswith("incremental") else "full_refresh"
        modes = config | {"sync_mode": source, "destination_sync_mode": mode.removeprefix(f"{source}_")}
        definition = {"name": entry["name"]} | ({"namespace": entry["namespace"]} if entry.get("namespace") else {})
        streams.append({"stream": definition, **_choose_modes(entry["name"], modes, notes)})
    if streams:
        notes.append("the connection has no schemas: put each stream's json_schema into the catalog, as the source "
                     "discovers it, for columns with types")  # fmt: skip
    return streams, tuple(notes)


def _choose_modes(name: str, config: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    wanted = str(config.get("destination_sync_mode") or "append")
    mode = "overwrite" if wanted.startswith("overwrite") else "append"
    if wanted != mode:
        notes.append(f"stream {name!r} has {wanted!r}, which files on S3 cannot have: it is {mode!r} here")
    kept = {key: config[key] for key in ("cursor_field", "primary_key") if config.get(key)}
    return {"sync_mode": config.get("sync_mode") or "full_refresh", "destination_sync_mode": mode, **kept}


def holds_messages(path: str) -> bool:
    """True for a file whose first line is a message of Airbyte's protocol."""
    place = Path(path)
    if not place.is_file():
        return False
    with place.open("rb") as stream:
        line = stream.readline(1024 * 1024)
    try:
        message = json.loads(line)
    except ValueError:
        return False
    body = {"record", "state", "log", "trace"}
    return isinstance(message, dict) and message.get("type") in _MESSAGES and not body.isdisjoint(message)
