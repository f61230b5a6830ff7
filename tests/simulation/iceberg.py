"""Iceberg tables as a reader finds them: metadata, manifest list, manifests; by the format's specification alone.

See: https://iceberg.apache.org/spec/
"""

import io
import json
from functools import lru_cache
from typing import Any

import fastavro

from tests.simulation.bucket import Bucket
from tests.simulation.glue import Catalog


def key_of(location: str) -> str:
    """The key of an ``s3://`` URI."""
    return location.split("/", 3)[3]


def metadata_of(catalog: Catalog, bucket: Bucket, name: tuple[str, str]) -> dict[str, Any] | None:
    """The table's metadata; None where there is no such table."""
    table = catalog.tables.get(name)
    if table is None:
        return None
    return dict(json.loads(bucket.objects[key_of(table.content["Parameters"]["metadata_location"])].body))


def current_files(catalog: Catalog, bucket: Bucket, name: tuple[str, str]) -> dict[str, int]:
    """Rows by key of every file in the current snapshot."""
    metadata = metadata_of(catalog, bucket, name)
    if metadata is None or metadata.get("current-snapshot-id") in (None, -1):
        return {}
    snapshot = next(own for own in metadata["snapshots"] if own["snapshot-id"] == metadata["current-snapshot-id"])
    found = {}
    for manifest in _records(bucket.objects[key_of(snapshot["manifest-list"])].body):
        for entry in _records(bucket.objects[key_of(manifest["manifest_path"])].body):
            if entry["status"] != 2:
                found[key_of(entry["data_file"]["file_path"])] = entry["data_file"]["record_count"]
    return found


@lru_cache(maxsize=512)
def _records(body: bytes) -> tuple[dict[str, Any], ...]:
    return tuple(fastavro.reader(io.BytesIO(body)))  # type: ignore[arg-type]
