"""Recognise the vendors' own files: a destination's configuration, a catalog, a connection, a Flow specification."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, cast

from lakewriter.dialects.airbyte.foreign_files import API, CATALOG, CONFIG, DISCOVERED, find_configuration
from lakewriter.dialects.common.foreign_files import DESTINATION, recognise_file
from lakewriter.dialects.common.source_files import read_json, read_yaml
from lakewriter.dialects.configured_catalog import ConfiguredCatalog
from lakewriter.dialects.estuary.foreign_files import ENDPOINT, FLOW
from lakewriter.dialects.registry import FOREIGN_FILES
from lakewriter.errors import SpecInvalidError

Kind = Literal["airbyte destination", "catalog", "discovered", "connection", "flow", "endpoint"]

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
    file = Path(path)
    ending = file.suffix.lower()
    if ending not in (".json", ".jsonl", ".yaml", ".yml") or not file.is_file():
        return None
    if file.stat().st_size > _MOST_BYTES:
        return None
    try:
        content = (read_json if ending.startswith(".json") else read_yaml)(file).content
    except SpecInvalidError:
        if ending.startswith(".json"):
            # One document per line is data, unless it is what a connector says of its streams.
            content = _find_catalog_message(file)
            return None if content is None else VendorFile(path, "discovered", content)
        raise
    return _recognise(path, _open_list(content)) if isinstance(content, dict) else None


def _find_catalog_message(file: Path) -> Mapping[str, Any] | None:
    """Find the message with the streams among those that a connector's ``discover`` prints; None for other lines."""
    with file.open("rb") as stream:
        for line in stream:
            try:
                message = json.loads(line)
            except ValueError:
                return None
            kind = message.get("type") if isinstance(message, dict) else None
            if kind == "CATALOG":
                return cast(Mapping[str, Any], message)
            if kind not in ("LOG", "TRACE"):
                return None
    return None


def _open_list(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the one entry of what the API answers with a list."""
    entries = content.get("data")
    one = entries[0] if isinstance(entries, list) and len(entries) == 1 else None
    return one if isinstance(one, dict) and ("configuration" in one or "configurations" in one) else content


def _recognise(path: str, content: Mapping[str, Any]) -> VendorFile | None:
    if "pipeline" in content and "destination" in content:
        raise SpecInvalidError(f"{path} is a lake.yaml already.", remedy=f"Continue with: lakewriter check {path}.")
    if _has_connection(content):
        return VendorFile(path, "connection", content)
    kind = recognise_file(content, FOREIGN_FILES)
    if kind is None:
        return None
    kinds: dict[Any, Kind] = {
        CONFIG: "airbyte destination",
        API: "airbyte destination",
        CATALOG: "catalog",
        DISCOVERED: "discovered",
        FLOW: "flow",
        ENDPOINT: "endpoint",
        DESTINATION: "airbyte destination",
    }
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


def make_discovered_catalog(content: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Make a configured catalog of all streams that a source discovers, each in the way that costs least and loses
    nothing; and notes on what a person may want otherwise."""
    entries = content.get("catalog", content).get("streams") or []
    if not entries:
        raise SpecInvalidError("the source discovers no stream.", remedy="Check what its user may see.")
    streams = [_configure_stream({_CAMEL.get(key, key): value for key, value in entry.items()}) for entry in entries]
    ConfiguredCatalog.model_validate({"streams": streams})
    whole = [str(stream["stream"]["name"]) for stream in streams if stream["sync_mode"] == "full_refresh"]
    notes = [f"all {len(streams):,} streams of the source are in the catalog: take out those that you do not want"]
    if whole:
        notes.append(f"read whole and replaced by each load, since the source names no cursor: {', '.join(whole)}")
    return {"streams": streams}, tuple(notes)


def _configure_stream(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Read what is new where the source itself says by what, everything else anew."""
    cursor = entry.get("default_cursor_field") or []
    supports = "incremental" in (entry.get("supported_sync_modes") or ())
    is_incremental = supports and bool(cursor or entry.get("source_defined_cursor"))
    modes = ("incremental", "append") if is_incremental else ("full_refresh", "overwrite")
    configured: dict[str, Any] = {"stream": dict(entry), "sync_mode": modes[0], "destination_sync_mode": modes[1]}
    if is_incremental and cursor:
        configured["cursor_field"] = cursor
    if key := entry.get("source_defined_primary_key"):
        configured["primary_key"] = key
    return configured


def find_subject(file: VendorFile) -> str:
    """Find what a vendor's file says that it is about: its own name, or the folder that it writes to."""
    if file.kind == "flow":
        return next(iter(file.content.get("materializations") or ()), "").rpartition("/")[2]
    keys: Mapping[str, Any] = file.content
    for step in find_configuration(keys):
        keys = keys[str(step)]
    said = (file.content.get("name"), keys.get("s3_bucket_path"), keys.get("s3_bucket_name"), keys.get("bucket"))
    return next((text.strip("/").rpartition("/")[2] for text in said if isinstance(text, str) and text.strip("/")), "")


def _read_sync_catalog(entries: list[Any]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    streams, notes = [], list[str]()
    for entry in entries:
        config = {_CAMEL.get(key, key): value for key, value in entry.get("config", {}).items()}
        if config.get("selected") is False:
            continue
        definition = {_CAMEL.get(key, key): value for key, value in entry["stream"].items()}
        fields = {key: definition.get(key) for key in ("name", "namespace", "json_schema") if definition.get(key)}
        streams.append({"stream": fields, **_choose_modes(str(fields["name"]), config, notes)})
    return streams, tuple(notes)


def _read_configurations(entries: list[Any]) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Return the public API's streams, which have one mode of two words and no schema."""
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
    modes = {key: config[key] for key in ("cursor_field", "primary_key") if config.get(key)}
    return {"sync_mode": config.get("sync_mode") or "full_refresh", "destination_sync_mode": mode, **modes}


def holds_messages(path: str) -> bool:
    """Return True for a file whose first line is a message of Airbyte's protocol."""
    file = Path(path)
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        line = stream.readline(1024 * 1024)
    try:
        message = json.loads(line)
    except ValueError:
        return False
    body = {"record", "state", "log", "trace"}
    return isinstance(message, dict) and message.get("type") in _MESSAGES and not body.isdisjoint(message)
