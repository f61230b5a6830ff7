"""Airbyte's files, and those of its API, by their keys."""

from collections.abc import Mapping
from typing import Final

from lakewriter.dialects.common.foreign_files import Content, ForeignFile
from lakewriter.dialects.common.source_files import Location

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
    inner = [part for part in map(content.get, _API) if isinstance(part, Mapping)]
    return any("s3_bucket_name" in part for part in inner) or (
        bool(inner) and any(key in content for key in _API_NAMES)
    )


def find_configuration(content: Content) -> Location:
    """Return the location of the destination's keys in a file: below a key of the API's where that exported it."""
    return next(((key,) for key in _API if _is_of_api(content) and isinstance(content.get(key), Mapping)), ())


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
    "Name it in a lake.yaml, with the secrets that the API masks beside it: destination: {{type: airbyte-s3, "
    "config_file: {name}, access_key_id: ..., secret_access_key: ...}}.",
    _is_of_api,
)
CONFIG: Final = ForeignFile(
    "a configuration of Airbyte's S3 destination",
    "Name it in a lake.yaml: destination: {{type: airbyte-s3, config_file: {name}}}.",
    _is_config,
)
FILES: Final = (DISCOVERED, CATALOG, API, CONFIG)
