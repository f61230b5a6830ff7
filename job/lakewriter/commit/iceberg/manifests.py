"""Write the manifests of a load of any number of files, and read manifests, one entry at a time."""

from collections.abc import Callable, Collection, Iterator
from typing import ClassVar, Final, NamedTuple, cast

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV2,
    PartitionFieldSummary,
    _inherit_from_manifest,
    write_manifest,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    SetSnapshotRefUpdate,
    UpdatesAndRequirements,
)
from pyiceberg.table.update.snapshot import _MergeAppendFiles
from pyiceberg.typedef import Record
from pyiceberg.utils.properties import property_as_int

from lakewriter.commit.iceberg import format3
from lakewriter.commit.iceberg.file_io import MetadataFile, RecordKind

ENTRIES: Final = 250
"""After how many entries a manifest's size is looked at, as Iceberg's Java does:
https://github.com/apache/iceberg/blob/main/core/src/main/java/org/apache/iceberg/RollingManifestWriter.java"""

_RETENTION: Final = ("max_ref_age_ms", "max_snapshot_age_ms", "min_snapshots_to_keep")


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
        return self._process_manifests([*self._write_added(), *self._keep_manifests()])

    def _write_added(self) -> list[ManifestFile]:
        """Write the manifests of what the snapshot adds."""
        return list(self._write_manifests())

    def _keep_manifests(self) -> list[ManifestFile]:
        """Return the manifests of what was there before."""
        return self._existing_manifests()

    def _existing_manifests(self) -> list[ManifestFile]:
        return [one for one in self._read_manifests() if one.has_added_files() or one.has_existing_files()]

    def _read_manifests(self) -> list[ManifestFile]:
        """Return the manifests of the snapshot that this one follows."""
        metadata, parent = self._transaction.table_metadata, self._parent_snapshot_id
        snapshot = None if parent is None else metadata.snapshot_by_id(parent)
        if snapshot is None:
            return []
        return read_manifests(metadata, snapshot, self._io)

    def new_manifest_writer(
        self, spec: PartitionSpec, content: ManifestContent = ManifestContent.DATA
    ) -> ManifestWriter:
        """Open a manifest of the table's format version, for files of data or with deletes."""
        metadata, output = self._transaction.table_metadata, self.new_manifest_output()
        common = (spec, metadata.schema(), output, self._snapshot_id, self._compression)
        if metadata.format_version == format3.VERSION:
            return format3.ManifestWriter3(*common, content)
        if content == ManifestContent.DELETES:
            return DeletesWriter(*common)
        return write_manifest(metadata.format_version, *common)

    def _commit(self) -> UpdatesAndRequirements:
        is_of_3 = self._transaction.table_metadata.format_version == format3.VERSION
        updates, requirements = self._commit_3() if is_of_3 else super()._commit()
        # The library sets the branch without its retention. An undo may have set it in this transaction already.
        main = self._transaction._table.metadata.refs.get(MAIN_BRANCH)
        # Rule retention-of-main
        retention = {name: getattr(main, name) for name in _RETENTION if main is not None}
        return tuple(
            update.model_copy(update=retention) if isinstance(update, SetSnapshotRefUpdate) else update
            for update in updates
        ), requirements

    def _commit_3(self) -> UpdatesAndRequirements:
        snapshot, branch = self._write_snapshot(), SnapshotRefType.BRANCH
        updates = (
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate(
                snapshot_id=snapshot.snapshot_id, ref_name=MAIN_BRANCH, type=branch, **dict.fromkeys(_RETENTION)
            ),
        )
        return updates, (AssertRefSnapshotId(snapshot_id=self._parent_snapshot_id, ref=MAIN_BRANCH),)

    def _write_snapshot(self) -> Snapshot:
        """Write the manifests and their list as format version 3 has them; see ``_SnapshotProducer._commit``."""
        metadata, manifests = self._transaction.table_metadata, self._manifests()
        name = f"snap-{self._snapshot_id}-0-{self.commit_uuid}.avro"
        location = self._transaction._table.location_provider().new_metadata_location(name)
        self._written_manifest_lists.append(location)
        first_row_id = format3.find_next_row_id(metadata)
        writer = format3.ManifestListWriter3(
            self._io.new_output(location),
            self._snapshot_id,
            self._parent_snapshot_id,
            metadata.next_sequence_number(),
            self._compression,
            first_row_id,
        )
        with writer:
            writer.add_manifests(manifests)
        return Snapshot(
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=self._parent_snapshot_id,
            sequence_number=metadata.next_sequence_number(),
            manifest_list=location,
            summary=self._summary(self.snapshot_properties),
            schema_id=metadata.current_schema_id,
            first_row_id=first_row_id,
            added_rows=writer.next_row_id - first_row_id,
        )

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

    def _keep_manifests(self) -> list[ManifestFile]:
        before = self._existing_manifests()
        gone = (self._write_gone(manifest) if self._may_remove_from(manifest) else manifest for manifest in before)
        return [manifest for manifest in gone if manifest is not None]

    def _write_gone(self, manifest: ManifestFile) -> ManifestFile | None:
        """Write the manifest's files as deleted entries, which the clean-up of expired snapshots uses."""
        metadata = self._transaction.table_metadata
        spec, schema = metadata.specs()[manifest.partition_spec_id], metadata.schema()
        entries = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
        if not entries:
            return None
        if not any(map(self._removes, entries)):
            return manifest
        with self.new_manifest_writer(spec, manifest.content) as writer:
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

    def _may_remove_from(self, manifest: ManifestFile) -> bool:
        return True

    def _removes(self, entry: ManifestEntry) -> bool:
        return True


class StreamedPartitions(StreamedReplacement):
    """Replaces the data files of ``partitions``, which have the table's present partition spec. Their deletion vectors
    leave with them. Other files with deletes stay: they do not apply to newer files."""

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
        return _has_data(manifest) or isinstance(manifest, format3.ManifestFile3)

    def _removes(self, entry: ManifestEntry) -> bool:
        file = entry.data_file
        goes = file.content == DataFileContent.DATA or format3.find_deleted_from(file) is not None
        return goes and file.partition in self._partitions


class StreamedRemoval(StreamedReplacement):
    """Takes the files at ``locations`` out, of data and of deletes, with the deletion vectors of these data files."""

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
        file = entry.data_file
        return file.file_path in self._locations or format3.find_deleted_from(file) in self._locations


class StreamedRewrite(StreamedRemoval):
    """Replaces the files at ``locations``, of data and of deletes, by others with the same rows."""

    operation: ClassVar = Operation.REPLACE

    def _summary(self, snapshot_properties: dict[str, str] | None = None) -> Summary:
        # The library makes no summary of a replace; the summary of an overwrite has the same sums.
        self._operation = Operation.OVERWRITE
        summary = super()._summary(snapshot_properties)
        self._operation = Operation.REPLACE
        return Summary(Operation.REPLACE, **summary.additional_properties)


def _has_data(manifest: ManifestFile) -> bool:
    return manifest.content == ManifestContent.DATA


def read_manifests(metadata: TableMetadata, snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    """Return a snapshot's manifests, by which entries are read with all fields of the table's format version."""
    is_of_3 = metadata.format_version == format3.VERSION
    return format3.read_manifests(snapshot, io) if is_of_3 else _read_manifests_of_2(snapshot, io)


def _read_manifests_of_2(snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    with MetadataFile[ManifestFile](io.new_input(snapshot.manifest_list), _MANIFESTS) as manifests:
        return list(manifests)


class _Manifest(ManifestFile):
    def fetch_manifest_entry(self, io: FileIO, discard_deleted: bool = True) -> list[ManifestEntry]:
        """See ``ManifestFile``."""
        with MetadataFile[ManifestEntry](io.new_input(self.manifest_path), _ENTRIES) as entries:
            return [
                _inherit_from_manifest(entry, self)
                for entry in entries
                if not discard_deleted or entry.status != ManifestEntryStatus.DELETED
            ]


_ENTRIES: Final = RecordKind(
    MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION], {-1: ManifestEntry, 2: DataFile}, format3.ENUMS
)
_MANIFESTS: Final = RecordKind(
    MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION],
    {-1: _Manifest, 508: PartitionFieldSummary},
    {517: ManifestContent},
)


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
    with MetadataFile[ManifestEntry](io.new_input(manifest.manifest_path), _ENTRIES) as entries:
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
    for manifest in read_manifests(table.metadata, snapshot, table.io) if snapshot is not None else ():
        for entry in read_live_entries(manifest, table.io):
            if entry.content == DataFileContent.DATA:
                yield entry.path
