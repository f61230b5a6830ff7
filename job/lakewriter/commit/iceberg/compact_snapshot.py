"""Commit a compaction: files take the place of others with the same rows, in one snapshot.

The snapshot that the commit is based on decides: a group is left out if another writer has replaced its files, or
deleted rows of them, since they were read.
"""

from collections.abc import Iterator

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry
from pyiceberg.table import Table

from lakewriter.commit.change_count import name_count_property
from lakewriter.commit.iceberg.added_files import find_schema, make_data_files
from lakewriter.commit.iceberg.deletion_vectors import is_vector
from lakewriter.commit.iceberg.format3 import find_deleted_from, keeps_ids
from lakewriter.commit.iceberg.iceberg_tables import drop_history
from lakewriter.commit.iceberg.manifests import StreamedRewrite, read_manifests
from lakewriter.commit.iceberg.merge import require_mergeable
from lakewriter.commit.iceberg.merge_keys import ROWS, open_parquet
from lakewriter.commit.iceberg.snapshot_presence import make_summary, note_counts, walk_ancestors
from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Effects, Intent
from lakewriter.records.facets import CompactedGroup, CompactIntent
from lakewriter.report import CompactCounts


def commit_compaction(table: Table, intent: Intent, effects: Effects, number: int) -> None:
    """Commit the groups that are unchanged since they were read, with the number of the change. If there is none,
    commit a snapshot that changes nothing: it keeps a process that has read an earlier version from committing
    groups."""
    compact = effects.work
    assert isinstance(intent.catalog, IcebergAction)
    assert isinstance(compact, CompactIntent)
    require_mergeable(table, "files are replaced")
    live = _Live(table, compact)
    # Rule compacted-spec
    is_of_spec = table.spec().spec_id == intent.catalog.spec_id
    dropped = tuple(
        group for group, files in enumerate(compact.groups) if not is_of_spec or not live.is_unchanged(files)
    )
    replaced = [files for group, files in enumerate(compact.groups) if group not in dropped]
    added = intent.leave_out(dropped).files
    removed = [live.data[path] for files in replaced for path in files.removes]
    gone = {file.file_path for file in removed}
    # Rule unused-deletes
    unused = live.list_unused(gone, {path for files in replaced for path in files.deletes})
    rows = added.totals.rows
    counts = CompactCounts(
        files=len(removed),
        files_after=len(added),
        bytes=sum(file.file_size_in_bytes for file in removed),
        bytes_after=added.totals.bytes,
        rows=rows,
        deletes=sum(file.record_count for file in removed) - rows,
        delete_files=len(unused) + live.count_vectors(gone),
        dropped=dropped,
    )
    schema = find_schema(table, intent.catalog)

    def make_files() -> Iterator[DataFile]:
        return make_data_files(added, schema, table.spec())

    summary = make_summary(intent) | note_counts(counts)
    locations = gone.union(unused)
    with drop_history(table).transaction() as transaction:
        transaction.set_properties({name_count_property(intent.pipeline): str(number)})
        StreamedRewrite(transaction, table.io, make_files, summary, locations).commit()


class _Live:
    """The files of a table's current snapshot, and which of them a compaction has not read."""

    def __init__(self, table: Table, compact: CompactIntent) -> None:
        self.data: dict[str, DataFile] = {}
        # A Puffin file may have the vectors of several data files.
        self._deletes: dict[tuple[str, str | None], ManifestEntry] = {}
        self._io, self._sequence = table.io, compact.sequence
        self._paths: dict[str, frozenset[str]] = {}
        snapshot = table.current_snapshot()
        ancestors = walk_ancestors(table, snapshot) if snapshot is not None else iter(())
        # After a rollback the table may have older deletes again that the snapshot read did not have.
        self._is_descendant = any(ancestor.snapshot_id == compact.snapshot for ancestor in ancestors)
        self._keeps_ids = keeps_ids(snapshot, table.snapshot_by_id(compact.snapshot))
        for manifest in read_manifests(table.metadata, snapshot, table.io) if snapshot is not None else ():
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                file = entry.data_file
                if file.content == DataFileContent.DATA:
                    self.data[file.file_path] = file
                else:
                    self._deletes[file.file_path, find_deleted_from(file) if is_vector(file) else None] = entry

    def is_unchanged(self, group: CompactedGroup) -> bool:
        """Return whether the table still has the group's files, and no more of their rows are deleted than when the
        group was read."""
        others = (
            entry for (path, _), entry in self._deletes.items() if path not in group.deletes and self._may_be_new(entry)
        )
        return (
            self._keeps_ids
            and self.data.keys() >= set(group.removes)
            # Rule compacted-deletes-stay
            and {path for path, _ in self._deletes} >= set(group.deletes)
            # Rule compacted-as-it-was-read
            and not any(self._may_delete(entry, group) for entry in others)
        )

    def _may_be_new(self, entry: ManifestEntry) -> bool:
        """Return whether the snapshot that the compaction has read may lack a file with deletes."""
        # Rule compacted-behind-a-rollback
        return not self._is_descendant or entry.sequence_number is None or entry.sequence_number > self._sequence

    def _may_delete(self, entry: ManifestEntry, group: CompactedGroup) -> bool:
        # Equality deletes may delete any row.
        is_by_position = entry.data_file.content == DataFileContent.POSITION_DELETES
        return not is_by_position or not self._read_paths(entry.data_file).isdisjoint(group.removes)

    def list_unused(self, removed: set[str], applied: set[str]) -> list[str]:
        """List the files of ``applied`` position deletes that apply to no data file any more once those at ``removed``
        leave the table; vectors leave with their data files."""
        left, files = self.data.keys() - removed, {path: self._deletes.get((path, None)) for path in applied}
        # Rule deletes-of-other-files
        return sorted(path for path, one in files.items() if one and self._read_paths(one.data_file).isdisjoint(left))

    def count_vectors(self, removed: set[str]) -> int:
        """Count the deletion vectors of the data files at ``removed``."""
        return sum(path in removed for _, path in self._deletes)

    def _read_paths(self, deletes: DataFile) -> frozenset[str]:
        """Return the data files that a file with deletes names."""
        if is_vector(deletes):
            return frozenset([str(find_deleted_from(deletes))])
        if (paths := self._paths.get(deletes.file_path)) is None:
            names = set[str]()
            with pq.ParquetFile(open_parquet(self._io, deletes), pre_buffer=True) as parquet:
                for batch in parquet.iter_batches(batch_size=ROWS, columns=["file_path"]):
                    names.update(pc.unique(batch.column("file_path")).to_pylist())
            paths = self._paths[deletes.file_path] = frozenset(names)
        return paths
