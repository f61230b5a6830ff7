"""Write the manifests of a load of any number of files, and read manifests, one entry at a time."""

from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar, Final, NamedTuple, cast

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update.snapshot import _MergeAppendFiles
from pyiceberg.typedef import Record
from pyiceberg.utils.properties import property_as_int

ENTRIES: Final = 250
"""After how many entries a manifest's size is looked at, as Iceberg's Java does:
https://github.com/apache/iceberg/blob/main/core/src/main/java/org/apache/iceberg/RollingManifestWriter.java"""

_ENUMS: Final[dict[int, Any]] = {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
"""By field id, as ``ManifestFile.fetch_manifest_entry`` has them."""


class StreamedAppend(_MergeAppendFiles):
    """Appends files in one snapshot; none of them is held once its entry is written.

    A manifest that has reached the table's ``commit.manifest.target-size-bytes`` is closed and another one begun.
    Manifests are merged where the table asks for it. The library's own append holds all files in memory and writes a
    single manifest; its public classes do not take a manifest that is written already.
    """

    operation: ClassVar = Operation.APPEND

    def __init__(
        self, transaction: Transaction, io: FileIO, files: Callable[[], Iterator[DataFile]], properties: dict[str, str]
    ) -> None:
        super().__init__(self.operation, transaction, io, snapshot_properties=properties)
        self._files = files
        self._sum = SnapshotSummaryCollector()

    def _manifests(self) -> list[ManifestFile]:
        return self._process_manifests([*self._write_manifests(), *self._existing_manifests()])

    def _write_manifests(self) -> Iterator[ManifestFile]:
        metadata, files = self._transaction.table_metadata, self._files()
        spec, schema = metadata.spec(), metadata.schema()
        self._sum = SnapshotSummaryCollector(
            property_as_int(
                metadata.properties,
                TableProperties.WRITE_PARTITION_SUMMARY_LIMIT,
                TableProperties.WRITE_PARTITION_SUMMARY_LIMIT_DEFAULT,
            )
            or 0
        )
        file = next(files, None)
        while file is not None:
            with self.new_manifest_writer(spec) as writer:
                entries = 0
                while file is not None and not self._is_full(writer, entries):
                    self._sum.add_file(file, schema, spec)
                    writer.add(self._make_entry(file))
                    entries += 1
                    file = next(files, None)
            yield writer.to_manifest_file()

    def _is_full(self, writer: ManifestWriter, entries: int) -> bool:
        return entries > 0 and entries % ENTRIES == 0 and writer.tell() >= self._target_size_bytes

    def _make_entry(self, file: DataFile) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=self._snapshot_id,
            sequence_number=None,
            file_sequence_number=None,
            data_file=file,
        )

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        parent = self._parent_snapshot_id
        previous = None if parent is None else self._transaction.table_metadata.snapshot_by_id(parent)
        return update_snapshot_summaries(
            Summary(self._operation, **self._sum.build(), **(snapshot_properties or {})),
            cast("dict[str, str] | None", previous.summary if previous else None),
        )


class DeletesWriter(ManifestWriterV2):
    """Writes a manifest of files with deletes, for which the library has no writer."""

    def content(self) -> ManifestContent:
        """See ``ManifestWriter``."""
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class StreamedReplacement(StreamedAppend):
    """Replaces files of a table in one snapshot, and holds the removed files of one manifest at a time.

    All files are removed, those with deletes too, unless a subclass chooses some of them.
    """

    operation: ClassVar = Operation.OVERWRITE

    def _manifests(self) -> list[ManifestFile]:
        added = list(self._write_manifests())
        parent = self._parent_snapshot_id
        snapshot = None if parent is None else self._transaction.table_metadata.snapshot_by_id(parent)
        before = [] if snapshot is None else snapshot.manifests(self._io)
        gone = (self._write_gone(manifest) if self._may_remove_from(manifest) else manifest for manifest in before)
        return self._process_manifests([*added, *(manifest for manifest in gone if manifest is not None)])

    def _write_gone(self, manifest: ManifestFile) -> ManifestFile | None:
        """Write the manifest's files as deleted entries, which the clean-up of expired snapshots uses."""
        metadata = self._transaction.table_metadata
        spec, schema = metadata.specs()[manifest.partition_spec_id], metadata.schema()
        entries = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
        if not entries:
            return None
        if not any(map(self._removes, entries)):
            return manifest
        with self._open_writer(manifest, spec) as writer:
            for entry in entries:
                goes = self._removes(entry)
                if goes:
                    self._sum.remove_file(entry.data_file, schema, spec)
                writer.add_entry(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.DELETED if goes else ManifestEntryStatus.EXISTING,
                        snapshot_id=self._snapshot_id if goes else entry.snapshot_id,
                        sequence_number=entry.sequence_number,
                        file_sequence_number=entry.file_sequence_number,
                        data_file=entry.data_file,
                    )
                )
        return writer.to_manifest_file()

    def _open_writer(self, manifest: ManifestFile, spec: PartitionSpec) -> ManifestWriter:
        if _has_data(manifest):
            return self.new_manifest_writer(spec)
        schema, output = self._transaction.table_metadata.schema(), self.new_manifest_output()
        return DeletesWriter(spec, schema, output, self._snapshot_id, self._compression)

    def _may_remove_from(self, manifest: ManifestFile) -> bool:
        return True

    def _removes(self, entry: ManifestEntry) -> bool:
        return True


class StreamedPartitions(StreamedReplacement):
    """Replaces the data files of ``partitions``, which have the table's present partition spec. Files with deletes
    stay: they do not apply to newer files."""

    def __init__(
        self,
        transaction: Transaction,
        io: FileIO,
        files: Callable[[], Iterator[DataFile]],
        properties: dict[str, str],
        partitions: Collection[Record],
    ) -> None:
        super().__init__(transaction, io, files, properties)
        self._partitions = partitions

    def _may_remove_from(self, manifest: ManifestFile) -> bool:
        return _has_data(manifest)

    def _removes(self, entry: ManifestEntry) -> bool:
        return entry.data_file.partition in self._partitions


class StreamedRewrite(StreamedReplacement):
    """Replaces the files at ``locations``, of data and of deletes, by others with the same rows."""

    operation: ClassVar = Operation.REPLACE

    def __init__(
        self,
        transaction: Transaction,
        io: FileIO,
        files: Callable[[], Iterator[DataFile]],
        properties: dict[str, str],
        locations: Collection[str],
    ) -> None:
        super().__init__(transaction, io, files, properties)
        self._locations = locations

    def _removes(self, entry: ManifestEntry) -> bool:
        return entry.data_file.file_path in self._locations

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        # The library makes no summary of a replace; the summary of an overwrite has the same sums.
        self._operation = Operation.OVERWRITE
        summary = super()._summary(snapshot_properties)
        self._operation = Operation.REPLACE
        return Summary(Operation.REPLACE, **summary.additional_properties)


def _has_data(manifest: ManifestFile) -> bool:
    return manifest.content == ManifestContent.DATA


class Entry(NamedTuple):
    """The fields of a manifest's entry that are compared, without statistics, which are most of an entry."""

    status: ManifestEntryStatus
    snapshot_id: int
    content: DataFileContent
    path: str
    rows: int
    size: int


def read_entries(manifest: ManifestFile, io: FileIO) -> Iterator[Entry]:
    """Yield a manifest's entries, those of removed files too; the library's own reader holds all of them."""
    schema = MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION]
    input_file = io.new_input(manifest.manifest_path)
    with AvroFile[ManifestEntry](input_file, schema, {-1: ManifestEntry, 2: DataFile}, _ENUMS) as entries:
        for entry in entries:
            file = entry.data_file
            # The specification lets an entry inherit the id.
            snapshot_id = manifest.added_snapshot_id if entry.snapshot_id is None else entry.snapshot_id
            assert snapshot_id is not None
            yield Entry(
                entry.status, snapshot_id, file.content, file.file_path, file.record_count, file.file_size_in_bytes
            )


def read_live_entries(manifest: ManifestFile, io: FileIO) -> Iterator[Entry]:
    """Yield the entries of files that the manifest has not removed."""
    return (entry for entry in read_entries(manifest, io) if entry.status != ManifestEntryStatus.DELETED)


def list_data_files(table: Table, snapshot: Snapshot | None) -> Iterator[str]:
    """Yield the locations of the data files that a snapshot has; none without a snapshot."""
    for manifest in snapshot.manifests(table.io) if snapshot is not None else ():
        for entry in read_live_entries(manifest, table.io):
            if entry.content == DataFileContent.DATA:
                yield entry.path
