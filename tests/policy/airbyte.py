"""lake.yaml files of Airbyte's destination, to make policies for."""

from pathlib import Path
from typing import Any

import yaml

from lakewriter.dialects.lake_yaml import Lake, load

DESTINATION: dict[str, Any] = {
    "type": "airbyte-s3",
    "s3_bucket_name": "acme-lake",
    "s3_bucket_path": "data",
    "s3_bucket_region": "us-east-1",
    "format": {"format_type": "Parquet"},
}
READ = {"format": "parquet", "path": "s3://acme-landing/crm/users"}


def table(name: str = "users", **fields: Any) -> dict[str, Any]:
    return {"table": name, "schema": "crm", "read": READ, **fields}


def stream(name: str = "users", namespace: str | None = "crm", **fields: Any) -> dict[str, Any]:
    """A stream of a configured catalog, with a blank schema."""
    own = {"name": name, "json_schema": {"type": "object", "properties": {}}}
    return {"stream": own | ({"namespace": namespace} if namespace else {}), "sync_mode": "full_refresh", **fields}


def messages(*streams: dict[str, Any], path: Any = "s3://acme-landing/crm/") -> dict[str, Any]:
    """``source`` in place of ``tables``."""
    return {"source": {"messages": path, "catalog": {"streams": list(streams or (stream(),))}}, "tables": None}


def airbyte(folder: Path, *, top: Any = None, **destination: Any) -> Lake:
    """With ``destination`` laid over the usual one and ``top`` over the whole; None leaves a key out."""
    content = {"pipeline": "crm", "destination": DESTINATION | destination, "tables": [table()], **(top or {})}
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in content.items() if value is not None}), "utf-8")
    return load(path)
