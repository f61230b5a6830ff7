"""Files of the vendors that are given where another file is expected: what they are, and where they belong."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewriter.dialects.common.source_files import SourceFile
from lakewriter.dialects.common.yaml_text import Document
from lakewriter.errors import SpecInvalidError

Data = Mapping[str, Any]


@dataclass(frozen=True)
class ForeignFile:
    """A kind of file, and what to do with it; ``{name}`` is the file's."""

    what: str
    remedy: str


FLOW: Final = ForeignFile(
    "a Flow specification of Estuary's",
    "Name it in a lake.yaml: destination: {{type: estuary-s3-parquet, config_file: {name}}}.",
)
ENDPOINT: Final = ForeignFile(
    "the configuration of an Estuary endpoint",
    "Put its keys under 'destination' of a lake.yaml, beside type: estuary-s3-parquet.",
)
AIRBYTE: Final = ForeignFile(
    "a configuration of Airbyte's S3 destination",
    "Name it in a lake.yaml: destination: {{type: airbyte-s3, config_file: {name}}}.",
)
AIRBYTE_API: Final = ForeignFile(
    "what Airbyte's API answers about a destination",
    "Put the object that it has as {key!r} into a file of its own, with references in place of the secrets that the "
    "API masks, and name that in a lake.yaml: destination: {{type: airbyte-s3, config_file: ...}}.",
)
CATALOG: Final = ForeignFile(
    "a configured catalog of Airbyte's", "Name it in a lake.yaml: source: {{messages: ..., catalog: {name}}}."
)
DISCOVERED: Final = ForeignFile(
    "the catalog that an Airbyte source discovers, in which no stream is configured",
    "Give the configured catalog of the connection, whose streams have 'stream' and 'sync_mode'.",
)
SUPAFLOW: Final = ForeignFile(
    "a destination alone",
    "Put them under 'destination' of a lake.yaml, with 'type', beside 'pipeline' and 'tables'.",
)

_API: Final = ("connectionConfiguration", "configuration")
_API_NAMES: Final = ("destinationId", "destinationDefinitionId", "destinationType", "workspaceId", "definitionId")


def refuse_foreign(document: Document) -> None:
    """``SPEC_INVALID`` where a vendor's file is given as the lake.yaml."""
    kind = recognise(document.data)
    if kind is not None:
        raise SpecInvalidError(
            f"{document.name}: this is {kind.what}, expected a lake.yaml.",
            remedy=_remedy(kind, document.name, document.data),
        )


def refuse_other(file: SourceFile, expected: Collection[ForeignFile], place: str) -> None:
    """``SPEC_INVALID`` where the file named at ``place`` is another of a vendor's."""
    kind = recognise(file.content)
    if kind is not None and kind not in expected:
        raise SpecInvalidError(
            f"{place}: {file.name} is {kind.what}, expected {next(iter(expected)).what}.",
            remedy=_remedy(kind, file.name, file.content),
        )


def recognise(content: Any) -> ForeignFile | None:
    """What a file is by its keys; None for a lake.yaml and for anything unknown."""
    if not isinstance(content, Mapping) or "pipeline" in content or "destination" in content:
        return None
    return next((kind for kind, is_kind in _KINDS if is_kind(content)), None)


def _remedy(kind: ForeignFile, name: str, content: Data) -> str:
    """What to do with the file ``name``."""
    return kind.remedy.format(name=name, key=next((key for key in _API if key in content), ""))


def _has_streams(content: Data) -> bool:
    return isinstance(content.get("streams"), list)


def _is_discovered(content: Data) -> bool:
    if content.get("type") == "CATALOG" or ("catalog" in content and len(content) == 1):
        return True
    streams = content.get("streams")
    first = streams[0] if isinstance(streams, list) and streams else None
    return isinstance(first, Mapping) and "json_schema" in first and "stream" not in first


def _is_of_api(content: Data) -> bool:
    return any(isinstance(content.get(key), Mapping) for key in _API) and any(key in content for key in _API_NAMES)


def _is_endpoint(content: Data) -> bool:
    return "bucket" in content and ("uploadIntervalInSeconds" in content or "awsAccessKeyId" in content)


def _is_airbyte(content: Data) -> bool:
    return "s3_bucket_name" in content and any(
        key in content for key in ("s3_bucket_path", "s3_bucket_region", "format", "s3_path_format")
    )


_KINDS: Final[tuple[tuple[ForeignFile, Callable[[Data], bool]], ...]] = (
    (DISCOVERED, _is_discovered),
    (CATALOG, _has_streams),
    (AIRBYTE_API, _is_of_api),
    (FLOW, lambda content: "materializations" in content or "captures" in content or "collections" in content),
    (ENDPOINT, _is_endpoint),
    (AIRBYTE, _is_airbyte),
    (SUPAFLOW, lambda content: "s3_bucket_name" in content),
)
