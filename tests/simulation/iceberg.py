"""Iceberg tables as a reader finds them: metadata, manifest list, manifests; by the format's specification alone.

See: https://iceberg.apache.org/spec/
"""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq
from pyroaring import BitMap64

from tests.simulation.bucket import Bucket
from tests.simulation.glue import Catalog

DATA: Final = 0
"""The content of a data file, and not of one with deletes."""
REMOVED: Final = 2
"""The status of an entry that a snapshot has removed."""


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
    return {
        key_of(entry["data_file"]["file_path"]): entry["data_file"]["record_count"]
        for entry, _, _ in _list_entries(bucket, snapshot)
        if entry["data_file"].get("content", DATA) == DATA
    }


def current_deletes(catalog: Catalog, bucket: Bucket, name: tuple[str, str]) -> dict[str, set[int]]:
    """The positions of rows that are deleted, by the key of their file: those that apply by sequence number, partition
    spec and partition. Of a file with a vector nothing else applies; ``ValueError`` for one with two."""
    metadata = metadata_of(catalog, bucket, name)
    if metadata is None or metadata.get("current-snapshot-id") in (None, -1):
        return {}
    snapshot = next(own for own in metadata["snapshots"] if own["snapshot-id"] == metadata["current-snapshot-id"])
    data, deletes, entries = {}, [], list(_list_entries(bucket, snapshot))
    for entry, manifest, number in entries:
        file = entry["data_file"]
        scope = (manifest["partition_spec_id"], json.dumps(file["partition"], default=str))
        if file.get("content", DATA) == DATA:
            data[key_of(file["file_path"])] = (scope, number)
        elif not _is_vector(file):
            deletes.append((file, scope, number))
    deleted: dict[str, set[int]] = {}
    for file, scope, number in deletes:
        for location, position in _positions(bucket.objects[key_of(file["file_path"])].body):
            of = data.get(key_of(location))
            if of is not None and of[0] == scope and of[1] <= number:
                deleted.setdefault(key_of(location), set()).add(position)
    vectors = _read_vectors(bucket, [entry["data_file"] for entry, _, _ in entries])
    return deleted | {key: positions for key, positions in vectors.items() if key in data}


def _is_vector(file: Mapping[str, Any]) -> bool:
    return str(file["file_format"]).upper() == "PUFFIN"


def _read_vectors(bucket: Bucket, files: Sequence[Mapping[str, Any]]) -> dict[str, set[int]]:
    """Read the positions in vectors, by the key of their data file."""
    vectors: dict[str, set[int]] = {}
    for file in filter(_is_vector, files):
        key, begin = key_of(file["referenced_data_file"]), file["content_offset"]
        if key in vectors:
            raise ValueError(f"{key} has two vectors")
        # Length and magic come before the bitmap, a checksum behind it.
        blob = bucket.objects[key_of(file["file_path"])].body[begin + 8 : begin + file["content_size_in_bytes"] - 4]
        vectors[key] = set(BitMap64.deserialize(blob))
    return vectors


def list_delete_files(catalog: Catalog, bucket: Bucket, name: tuple[str, str]) -> set[str]:
    """The keys of the files with deletes that any snapshot has."""
    metadata = metadata_of(catalog, bucket, name) or {}
    return {
        key_of(entry["data_file"]["file_path"])
        for snapshot in metadata.get("snapshots", ())
        for entry, _, _ in _list_entries(bucket, snapshot)
        if entry["data_file"].get("content", DATA) != DATA
    }


def list_needed(catalog: Catalog, bucket: Bucket, name: tuple[str, str]) -> set[str]:
    """The keys of all that the table's metadata name: metadata files, and what each snapshot has. What is gone is named
    all the same."""
    metadata = metadata_of(catalog, bucket, name)
    if metadata is None:
        return set()
    needed = {key_of(catalog.tables[name].content["Parameters"]["metadata_location"])}
    needed |= {key_of(entry["metadata-file"]) for entry in metadata.get("metadata-log", ())}
    needed |= {key_of(snapshot["manifest-list"]) for snapshot in metadata["snapshots"]}
    lists = (bucket.objects.get(key_of(snapshot["manifest-list"])) for snapshot in metadata["snapshots"])
    manifests = {key_of(one["manifest_path"]) for stored in lists if stored for one in _records(stored.body)}
    read = (bucket.objects.get(key) for key in manifests)
    entries = (entry for stored in read if stored for entry in _records(stored.body))
    return needed | manifests | {key_of(own["data_file"]["file_path"]) for own in entries if own["status"] != REMOVED}


def list_ancestors(
    catalog: Catalog, bucket: Bucket, name: tuple[str, str], seen: Mapping[int, dict[str, Any]]
) -> list[dict[str, Any]]:
    """The current snapshot and those that it follows, the oldest first; expired ones as they were ``seen``."""
    metadata, ancestors = metadata_of(catalog, bucket, name) or {}, list[dict[str, Any]]()
    snapshots = {own["snapshot-id"]: own for own in metadata.get("snapshots", ())} | dict(seen)
    current = metadata.get("current-snapshot-id")
    while current in snapshots:
        ancestors.insert(0, snapshots[current])
        current = snapshots[current].get("parent-snapshot-id")
    return ancestors


def _list_entries(bucket: Bucket, snapshot: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any], int]]:
    """Entry, manifest and data sequence number of what a snapshot has."""
    for manifest in _records(bucket.objects[key_of(snapshot["manifest-list"])].body):
        for entry in _records(bucket.objects[key_of(manifest["manifest_path"])].body):
            if entry["status"] != REMOVED:
                number = entry.get("sequence_number")
                yield entry, manifest, manifest.get("sequence_number", 0) if number is None else number


@lru_cache(maxsize=512)
def _positions(body: bytes) -> tuple[tuple[str, int], ...]:
    table = pq.ParquetFile(io.BytesIO(body)).read(["file_path", "pos"], use_threads=False)
    return tuple(zip(table.column("file_path").to_pylist(), table.column("pos").to_pylist(), strict=True))


@lru_cache(maxsize=512)
def _records(body: bytes) -> tuple[dict[str, Any], ...]:
    return tuple(fastavro.reader(io.BytesIO(body)))  # type: ignore[arg-type]
