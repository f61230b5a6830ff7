"""Airbyte's files, and those of its API, by their keys."""

from collections.abc import Mapping
from typing import Final

from lakewriter.dialects.common.foreign_files import Content, ForeignFile

_API: Final = ("connectionConfiguration", "configuration")
_API_NAMES: Final = ("destinationId", "destinationDefinitionId", "destinationType", "workspaceId", "definitionId")
_CONFIG: Final = ("s3_bucket_path", "s3_bucket_region", "format", "s3_path_format")


def _is_discovered(content: Content) -> bool:
    if content.get("type") == "CATALOG" or ("catalog" in content and len(content) == 1):
        return True
    streams = content.get("streams")
    first = streams[0] if isinstance(streams, list) and streams else None
    return isinstance(first, Mapping) and "json_schema" in first and "stream" not in first


def _has_streams(content: Content) -> bool:
    return isinstance(content.get("streams"), list)


def _is_of_api(content: Content) -> bool:
    return any(isinstance(content.get(key), Mapping) for key in _API) and any(key in content for key in _API_NAMES)


def _is_config(content: Content) -> bool:
    return "s3_bucket_name" in content and any(key in content for key in _CONFIG)


DISCOVERED: Final = ForeignFile(
    "the catalog that an Airbyte source discovers, in which no stream is configured",
    "Give the configured catalog of the connection, whose streams have 'stream' and 'sync_mode'.",
    _is_discovered,
)
CATALOG: Final = ForeignFile(
    "a configured catalog of Airbyte's",
    "Name it in a lake.yaml: source: {{messages: ..., catalog: {name}}}.",
    _has_streams,
)
API: Final = ForeignFile(
    "what Airbyte's API answers about a destination",
    "Put the object that it has as {key!r} into a file of its own, with references in place of the secrets that the "
    "API masks, and name that in a lake.yaml: destination: {{type: airbyte-s3, config_file: ...}}.",
    _is_of_api,
    keys=_API,
)
CONFIG: Final = ForeignFile(
    "a configuration of Airbyte's S3 destination",
    "Name it in a lake.yaml: destination: {{type: airbyte-s3, config_file: {name}}}.",
    _is_config,
)
FILES: Final = (DISCOVERED, CATALOG, API, CONFIG)
