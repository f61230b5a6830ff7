"""Estuary's files, by their keys."""

from typing import Final

from lakewriter.dialects.common.foreign_files import Content, ForeignFile


def _is_flow(content: Content) -> bool:
    return "materializations" in content or "captures" in content or "collections" in content


def _is_endpoint(content: Content) -> bool:
    endpoint_keys = ("uploadIntervalInSeconds", "awsAccessKeyId", "uploadInterval", "parquetConfig")
    return "bucket" in content and any(key in content for key in endpoint_keys)


FLOW: Final = ForeignFile(
    "a Flow specification of Estuary's",
    "Name it in a lake.yaml: destination: {{type: estuary-s3-parquet, config_file: {name}}}.",
    _is_flow,
)
ENDPOINT: Final = ForeignFile(
    "the configuration of an Estuary endpoint",
    "Put its keys under 'destination' of a lake.yaml, beside type: estuary-s3-parquet.",
    _is_endpoint,
)
FILES: Final = (FLOW, ENDPOINT)
