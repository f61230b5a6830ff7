"""Flow files for tests: the vendor's documented example, and what a lake.yaml adds to it."""

from pathlib import Path
from typing import Any

import yaml

DOCUMENTED = """
materializations:
  PREFIX/mat_name:
    endpoint:
      connector:
        config:
          awsAccessKeyId: AKIAIOSFODNN7EXAMPLE
          awsSecretAccessKey: wJalrXUtnFEMI/K7MDENG/bPxRfiCYSECRET
          bucket: my-bucket
          uploadIntervalInSeconds: 300
        # Path to the latest version of the connector, provided as a Docker image
        image: ghcr.io/estuary/materialize-s3-parquet:dev
    # If you have multiple collections you need to materialize, add a binding for each one
    # to ensure complete data flow-through
    bindings:
      - resource:
          pathPrefix: /my-prefix
        source: PREFIX/source_collection
"""

READ = {"format": "json", "path": "a.json"}
TABLE = {"source": "PREFIX/source_collection", "read": READ, "primary_key": ["id"]}
DESTINATION = {
    "type": "estuary-s3-parquet",
    "bucket": "my-bucket",
    "region": "us-east-1",
    "uploadIntervalInSeconds": 300,
}
BINDING = TABLE | {"resource": {"pathPrefix": "/my-prefix"}}


def flow(folder: Path, text: str = DOCUMENTED, *tables: dict[str, Any], **destination: Any) -> Path:
    """A lake.yaml that takes a Flow file as it is."""
    (folder / "flow.yaml").write_text(text, "utf-8")
    content = {
        "pipeline": "p",
        "destination": {"type": "estuary-s3-parquet", "config_file": "flow.yaml"} | destination,
        "tables": list(tables) or [TABLE],
    }
    return _written(folder, content)


def bindings(folder: Path, *tables: dict[str, Any], top: Any = None, **destination: Any) -> Path:
    """A lake.yaml with everything in itself."""
    kept = {key: value for key, value in (DESTINATION | destination).items() if value is not None}
    content = {"pipeline": "p", "destination": kept, "tables": list(tables) or [BINDING]}
    return _written(folder, content | (top or {}))


def _written(folder: Path, content: dict[str, Any]) -> Path:
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    return path
