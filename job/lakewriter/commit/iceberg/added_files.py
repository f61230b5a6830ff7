"""Make the manifest entries of a load's files, and compare the files that its snapshot added with these."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakewriter.commit.iceberg.iceberg_columns import ManifestStatistics
from lakewriter.commit.iceberg.manifests import read_live_entries, read_manifests
from lakewriter.commit.iceberg.partition_specs import make_partition
from lakewriter.commit.iceberg.renaming import rename_fields
from lakewriter.commit.iceberg.snapshot_presence import read_load
from lakewriter.receipt import Receipt
from lakewriter.records.actions import IcebergAction

DELETES: Final = "deletes-"
MOVED: Final = "moved-"
"""Begin the names of files that are made when a load is committed: those with deletes, and those with rows of the load
that get the ids of rows that they replace, or values that their events leave out."""


def name_made(kind: str, load: str) -> str:
    """Return what the names of files of one kind begin with."""
    return f"{kind}{sha256(load.encode()).hexdigest()[:20]}-"


def find_schema(table: Table, action: IcebergAction) -> Schema:
    """Return the schema that the load's files were written with."""
    return rename_fields(table.schemas().get(action.schema_id, table.schema()), action.renamed)


def make_data_files(files: Iterable[Receipt], schema: Schema, spec: PartitionSpec) -> Iterator[DataFile]:
    """Yield the manifest entries of files."""
    statistics, partition_type = ManifestStatistics(schema), spec.partition_type(schema)
    for receipt in files:
        optional: Mapping[str, Any] = {
            name: values or None for name, values in statistics.convert(receipt.columns).items()
        }
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"s3://{receipt.bucket}/{receipt.key}",
            file_format=FileFormat.PARQUET,
            partition=make_partition(receipt, partition_type),
            record_count=receipt.rows,
            file_size_in_bytes=receipt.size,
            **optional,
        )
        file.spec_id = spec.spec_id
        yield file


def read_added_files(table: Table, snapshot: Snapshot) -> dict[str, int]:
    """Return the number of rows of every data file that the snapshot added, by location, but for files that its load's
    rows were moved into."""
    return {path: rows for path, rows, is_moved in _list_added_files(table, snapshot) if not is_moved}


def list_moved_files(table: Table, snapshot: Snapshot) -> list[str]:
    """Return the locations of the data files that the rows of the snapshot's load were moved into."""
    return [path for path, _, is_moved in _list_added_files(table, snapshot) if is_moved]


def _list_added_files(table: Table, snapshot: Snapshot) -> Iterator[tuple[str, int, bool]]:
    # Only manifests that the snapshot itself has written can name them.
    moved = name_made(MOVED, read_load(snapshot) or "")
    for manifest in read_manifests(table.metadata, snapshot, table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in read_live_entries(manifest, table.io):
            if entry.snapshot_id == snapshot.snapshot_id and entry.content == DataFileContent.DATA:
                yield entry.path, entry.rows, entry.path.rpartition("/")[2].startswith(moved)


def describe_file_differences(actual: Mapping[str, int], expected: Mapping[str, int]) -> list[str]:
    """Say which expected files a snapshot lacks, which others it has, and whose number of rows differs."""
    missing = sorted(expected.keys() - actual.keys())
    strange = sorted(actual.keys() - expected.keys())
    differences = [f"file {name} is not in the snapshot" for name in missing]
    differences += [f"file {name} is in the snapshot, and the load did not write it" for name in strange]
    differences += [
        f"file {name} has {actual[name]} rows, expected {expected[name]}"
        for name in sorted(actual.keys() & expected.keys())
        if actual[name] != expected[name]
    ]
    return differences
