"""Write files with position deletes, and one snapshot of a load's data files and these."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from io import BytesIO
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.typedef import Record

from lakewriter.commit.iceberg.format3 import find_deleted_from
from lakewriter.commit.iceberg.manifests import StreamedReplacement

PATH_ID: Final = 2147483546
POSITION_ID: Final = 2147483545
"""The field ids that the specification reserves for files with position deletes."""

_SCHEMA: Final = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(PATH_ID)}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(POSITION_ID)}),
    ]
)


def write_position_deletes(
    table: Table, positions: Sequence[tuple[DataFile, pa.Array]], name: Callable[[], str]
) -> list[DataFile]:
    """Write deletes of positions in data files: one file for each partition of each partition spec, since readers match
    deletes with data files by both. ``name`` makes the file names."""
    groups = defaultdict[tuple[int, Record], list[tuple[DataFile, pa.Array]]](list)
    for file, gone in positions:
        # Rule deletes-of-their-partition
        groups[file.spec_id, file.partition].append((file, gone))
    return [_write_group(table, group, spec_id, partition, name()) for (spec_id, partition), group in groups.items()]


def _write_group(
    table: Table, group: list[tuple[DataFile, pa.Array]], spec_id: int, partition: Record, name: str
) -> DataFile:
    group.sort(key=lambda pair: pair[0].file_path.encode())
    body, rows = BytesIO(), 0
    with pq.ParquetWriter(body, _SCHEMA, compression="zstd") as writer:
        for file, gone in group:
            positions = gone.sort()
            writer.write_table(pa.table([pa.repeat(file.file_path, len(positions)), positions], schema=_SCHEMA))
            rows += len(positions)
    location = table.location_provider().new_data_location(name)
    with table.io.new_output(location).create() as output:
        output.write(body.getvalue())
    lower, upper = group[0][0].file_path.encode(), group[-1][0].file_path.encode()
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=rows,
        file_size_in_bytes=len(body.getvalue()),
        # The bounds have the full path: readers compare whole paths with them.
        lower_bounds={PATH_ID: lower},
        upper_bounds={PATH_ID: upper},
    )
    deletes.spec_id = spec_id
    return deletes


class StreamedMerge(StreamedReplacement):
    """Appends data files and files with deletes in one snapshot; a manifest has the deletes of one partition spec.

    Where ``deletes`` are vectors, those that the data files had before leave. So do the files at ``removed``, of data
    and of deletes, with the vectors of these data files. A merge that ``replaces`` the table's files takes all out.

    Manifests of deletes are merged like those of data: the library would leave one more for each snapshot.
    """

    operation: ClassVar = Operation.OVERWRITE

    def __init__(
        self,
        transaction: Transaction,
        io: FileIO,
        files: Callable[[], Iterator[DataFile]],
        properties: dict[str, str],
        deletes: Sequence[DataFile],
        removed: Collection[str] = (),
        *,
        replaces: bool = False,
    ) -> None:
        super().__init__(transaction, io, files, properties)
        self._deletes, self._removed, self._replaces = deletes, frozenset(removed), replaces
        self._vectored = {path for path in map(find_deleted_from, deletes) if path is not None}

    def _write_added(self) -> list[ManifestFile]:
        return [*super()._write_added(), *self._write_deletes()]

    def _may_remove_from(self, manifest: ManifestFile) -> bool:
        has_vectors = manifest.content == ManifestContent.DELETES and bool(self._vectored)
        return self._replaces or bool(self._removed) or has_vectors

    def _removes(self, entry: ManifestEntry) -> bool:
        file = entry.data_file
        of = find_deleted_from(file)
        # Rule one-vector-for-each-file
        return self._replaces or of in self._vectored or not self._removed.isdisjoint({file.file_path, of})

    def _write_deletes(self) -> Iterator[ManifestFile]:
        metadata, by_spec = self._transaction.table_metadata, defaultdict[int, list[ManifestEntry]](list)
        for file in self._deletes:
            self._sum.add_file(file, metadata.schema(), metadata.specs()[file.spec_id])
            by_spec[file.spec_id].append(self._make_entry(file))
        for spec_id, entries in by_spec.items():
            yield self._write_delete_manifest(metadata.specs()[spec_id], entries)

    def _write_delete_manifest(self, spec: PartitionSpec, entries: Sequence[ManifestEntry]) -> ManifestFile:
        with self.new_manifest_writer(spec, ManifestContent.DELETES) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        processed = super()._process_manifests(manifests)
        by_spec = defaultdict[int, list[ManifestFile]](list)
        for manifest in processed:
            if manifest.content == ManifestContent.DELETES:
                by_spec[manifest.partition_spec_id].append(manifest)
        data = [manifest for manifest in processed if manifest.content == ManifestContent.DATA]
        return [*data, *(manifest for group in by_spec.values() for manifest in self._merge_deletes(group))]

    def _merge_deletes(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        small = [manifest for manifest in manifests if manifest.manifest_length < self._target_size_bytes]
        if not self._merge_enabled or len(small) < self._min_count_to_merge:
            return manifests
        spec = self._transaction.table_metadata.specs()[small[0].partition_spec_id]
        entries = [
            self._carry(entry)
            for manifest in small
            for entry in manifest.fetch_manifest_entry(self._io, discard_deleted=False)
            if entry.status != ManifestEntryStatus.DELETED or entry.snapshot_id == self._snapshot_id
        ]
        return [self._write_delete_manifest(spec, entries), *(one for one in manifests if one not in small)]

    def _carry(self, entry: ManifestEntry) -> ManifestEntry:
        """Return the entry as the merged manifest has it: what this snapshot adds has no sequence number yet."""
        if entry.status == ManifestEntryStatus.DELETED:
            return entry
        if entry.snapshot_id == self._snapshot_id:
            return self._make_entry(entry.data_file)
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.EXISTING,
            snapshot_id=entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )
