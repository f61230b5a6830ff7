"""lake.yaml files of Estuary's destination, to make policies and stacks for."""

from pathlib import Path
from typing import Any

import yaml

from lakewriter.dialects.lake_yaml import Lake, load

CHECKPOINT = "s3://acme-lake/_checkpoints"


def binding(path: str, **fields: Any) -> dict[str, Any]:
    read = {"format": "json", "path": f"s3://acme-landing/{path}", "columns": "id BIGINT"}
    return {"source": f"acmeCo/{path}", "resource": {"pathPrefix": path}, "read": read, "primary_key": ["id"]} | fields


def content(*, top: Any = None, **destination: Any) -> dict[str, Any]:
    """Two bindings, with ``destination`` laid over the usual one and ``top`` over the whole; None leaves a key out."""
    own = {"type": "estuary-s3-parquet", "bucket": "acme-lake", "region": "us-east-1", "uploadIntervalInSeconds": 300}
    whole = {
        "pipeline": "wiki",
        "destination": {key: value for key, value in (own | destination).items() if value is not None},
        "tables": [binding("changes"), binding("shop/orders")],
    }
    return {key: value for key, value in (whole | (top or {})).items() if value is not None}


def endless(checkpoint: str | None = CHECKPOINT, **deployment: Any) -> dict[str, Any]:
    """What makes the deployment run continuously, for ``top``."""
    return {"checkpoint": checkpoint, "deployment": {"spark": {"mode": "STREAMING"}, **deployment}}


def estuary(folder: Path, *, top: Any = None, stage: str | None = None, **destination: Any) -> Lake:
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump(content(top=top, **destination)), "utf-8")
    return load(path, stage=stage)
