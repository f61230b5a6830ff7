"""lake.yaml files for tests, as text."""

from pathlib import Path
from typing import Any

import yaml

DESTINATION = {"type": "supaflow-s3-data-lake", "s3_bucket_name": "my-bucket", "bucket_region": "us-east-1"}
READ = {"format": "csv", "path": "a.csv"}
TABLE = {"table": "accounts", "read": READ}


def lake(folder: Path, *, tables: list[dict[str, Any]] | None = None, top: Any = None, **destination: Any) -> Path:
    """A valid file with ``destination`` laid over its destination and ``top`` over the whole."""
    kept = {key: value for key, value in (DESTINATION | destination).items() if value is not None}
    content = {"pipeline": "p", "destination": kept, "tables": [TABLE] if tables is None else tables}
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump(content | (top or {}), sort_keys=False), "utf-8")
    return path
