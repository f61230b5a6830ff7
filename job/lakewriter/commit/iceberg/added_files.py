"""Compare the files that a load's snapshot added with the files that the load wrote."""

from collections.abc import Mapping

from pyiceberg.manifest import DataFileContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from lakewriter.commit.actions import IcebergAction
from lakewriter.commit.iceberg.manifests import read_live_entries


def find_schema(table: Table, action: IcebergAction) -> Schema:
    """Return the schema that the load's files were written with."""
    return table.schemas().get(action.schema_id, table.schema())


def read_added_files(table: Table, snapshot: Snapshot) -> dict[str, int]:
    """Return the number of rows of every data file that the snapshot added, by location.

    Only manifests that the snapshot itself has written can name them.
    """
    rows = {}
    for manifest in snapshot.manifests(table.io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in read_live_entries(manifest, table.io):
            if entry.snapshot_id == snapshot.snapshot_id and entry.content == DataFileContent.DATA:
                rows[entry.path] = entry.rows
    return rows


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
