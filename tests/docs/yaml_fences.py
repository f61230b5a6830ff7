"""Pieces of a lake.yaml, put where they belong in a smallest whole file, and loaded."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from tests.docs.fences import Fence

SUPAFLOW: Final[dict[str, Any]] = yaml.safe_load("""
type: supaflow-s3-data-lake
s3_bucket_name: acme-lake
bucket_region: us-east-1
s3_path_prefix: data
update_aws_glue_catalog: true
""")
AIRBYTE: Final[dict[str, Any]] = yaml.safe_load("""
type: airbyte-s3
s3_bucket_name: acme-lake
s3_bucket_path: data
s3_bucket_region: us-east-1
format: {format_type: JSONL}
""")
ESTUARY: Final[dict[str, Any]] = yaml.safe_load("""
type: estuary-s3-parquet
bucket: acme-lake
region: us-east-1
uploadIntervalInSeconds: 300
""")
TABLE: Final[dict[str, Any]] = yaml.safe_load(
    "{table: flights, schema: public, read: {format: parquet, path: flights}}"
)
BINDING: Final[dict[str, Any]] = yaml.safe_load("""
source: acmeCo/wiki
resource: {path: wiki}
read: {format: json, path: wiki}
primary_key: [id]
""")
ICEBERG: Final = {key: value for key, value in SUPAFLOW.items() if key != "update_aws_glue_catalog"} | {
    "table_format": "ICEBERG"
}

USUAL: Final = (SUPAFLOW, TABLE)
BASES: Final[Mapping[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "docs/guide-estuary.md": (ESTUARY, BINDING),
    "docs/continuous.md": (ESTUARY, BINDING),
    "docs/guide-airbyte.md": (AIRBYTE, TABLE),
    "docs/guide-iceberg.md": (ICEBERG, TABLE),
}
"""What a page's pieces belong to; those of the others to Supaflow's S3 Data Lake."""

FILES: Final = {
    "destination.json": """
{"s3_bucket_name": "acme-lake", "s3_bucket_path": "data", "s3_bucket_region": "us-east-1",
 "format": {"format_type": "JSONL"}}
""",
    "flow.yaml": """
materializations:
  acme/lake:
    endpoint:
      connector:
        image: ghcr.io/estuary/materialize-s3-parquet:v1
        config:
          bucket: acme-lake
          region: us-east-1
          uploadIntervalInSeconds: 300
          awsAccessKeyId: ${env:KEY_ID}
          awsSecretAccessKey: ${env:SECRET}
    bindings:
      - source: estuary/public/wikipedia/recentchange
        resource: {pathPrefix: changes}
""",
    "configured_catalog.json": """
{"streams": [{
  "stream": {
    "name": "users",
    "json_schema": {"properties": {"id": {"type": "integer"}}},
    "supported_sync_modes": ["full_refresh"]
  },
  "sync_mode": "full_refresh",
  "destination_sync_mode": "append"
}]}
""",
}
"""Files that pages refer to."""


def load_fence(fence: Fence, folder: Path) -> str:
    """Load it as it stands, or in the first place that takes it; the place."""
    content = yaml.safe_load(fence.code)
    if content is None:
        return "a comment"
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    failures = []
    for place, whole in _list_places(fence, content):
        file = folder / "lake.yaml"
        file.write_text(fence.code if place == "whole" else yaml.safe_dump(whole), "utf-8")
        try:
            load_spec(file)
        except SpecInvalidError as error:
            failures.append(f"{place}: {error}")
        else:
            return place
    raise AssertionError(f"{fence}: no place takes it:\n" + "\n".join(failures))


def _list_places(fence: Fence, content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    if content.keys() >= {"pipeline", "destination"} and content.keys() & {"tables", "source"}:
        yield "whole", content
        return
    for destination, table in (BASES.get(fence.page, USUAL), USUAL):
        base = {"pipeline": "p", "destination": destination, "tables": [table]}
        if isinstance(content.get("source"), dict):
            # Messages are in place of tables.
            del base["tables"]
        yield "top", base | content
        yield "table", base | {"tables": [table | content]}
        yield "destination", base | {"destination": destination | content}
        yield "deployment", base | {"deployment": content}
