"""Write manifests, manifest lists and metadata of Iceberg's format version 3, which PyIceberg reads and does not write.

PyIceberg reads every manifest by the schema of version 2. That schema drops the ids of rows, and the place of a
deletion vector in its file. Here manifests are read and written by its schema of version 3. This module goes when
PyIceberg does both.
"""

from collections.abc import Iterator
from typing import Final, Literal

from pyiceberg.avro.codecs import AVRO_CODEC_KEY, AvroCompressionCodec
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io import FileIO, OutputFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriter,
    ManifestListWriterV2,
    ManifestWriterV2,
    PartitionFieldSummary,
    _inherit_from_manifest,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import Compressor
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.typedef import IcebergBaseModel

from lakewriter.commit.iceberg.file_io import MetadataFile, RecordKind

VERSION: Final[Literal[3]] = 3
ENUMS: Final = {0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent}
"""By field id, as ``ManifestFile.fetch_manifest_entry`` has them."""


class DataFile3(DataFile):
    """A data file, or a deletion vector, with the fields that version 3 adds."""

    @property
    def first_row_id(self) -> int | None:
        """The id of the first row of a data file."""
        return self._data[16]  # type: ignore[no-any-return]

    @property
    def referenced_data_file(self) -> str | None:
        """The data file that a deletion vector is of."""
        return self._data[17]  # type: ignore[no-any-return]

    @property
    def content_span(self) -> tuple[int, int]:
        """The offset of a deletion vector in its file, and the number of its bytes."""
        return self._data[18], self._data[19]


class ManifestFile3(ManifestFile):
    """An entry of a manifest list, with the id of the manifest's first row."""

    @property
    def first_row_id(self) -> int | None:
        """The id of the first row of the first file that has none of its own."""
        return self._data[15]  # type: ignore[no-any-return]

    def fetch_manifest_entry(self, io: FileIO, discard_deleted: bool = True) -> list[ManifestEntry]:
        """See ``ManifestFile``. Each data file has the id of its first row."""
        with MetadataFile[ManifestEntry](io.new_input(self.manifest_path), _ENTRIES) as entries:
            return [
                _inherit_from_manifest(entry, self)
                for entry in self._assign_row_ids(entries)
                if not discard_deleted or entry.status != ManifestEntryStatus.DELETED
            ]

    def _assign_row_ids(self, entries: MetadataFile[ManifestEntry]) -> Iterator[ManifestEntry]:
        """See https://iceberg.apache.org/spec/#first-row-id-inheritance."""
        # Rule row-ids-inherited
        next_id = self.first_row_id
        for entry in entries:
            file = entry.data_file
            # A manifest that is new in this snapshot has no id yet; of its files those that were there before have one.
            if next_id is not None and entry.status != ManifestEntryStatus.DELETED and file[16] is None:
                file[16] = next_id
                next_id += file.record_count
            yield entry


def read_manifests(snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    """Return a snapshot's manifests with the ids of their first rows, which ``Snapshot.manifests`` leaves out."""
    with MetadataFile[ManifestFile](io.new_input(snapshot.manifest_list), _MANIFESTS) as manifests:
        return list(manifests)


_ENTRIES: Final = RecordKind(MANIFEST_ENTRY_SCHEMAS[VERSION], {-1: ManifestEntry, 2: DataFile3}, ENUMS)
_MANIFESTS: Final = RecordKind(
    MANIFEST_LIST_FILE_SCHEMAS[VERSION], {-1: ManifestFile3, 508: PartitionFieldSummary}, {517: ManifestContent}
)


class ManifestWriter3(ManifestWriterV2):
    """Writes a manifest of data files, or of files with deletes."""

    def __init__(
        self,
        spec: PartitionSpec,
        schema: Schema,
        output_file: OutputFile,
        snapshot_id: int,
        avro_compression: AvroCompressionCodec,
        content: ManifestContent,
    ) -> None:
        super().__init__(spec, schema, output_file, snapshot_id, avro_compression)
        self._content = content

    def content(self) -> ManifestContent:
        """See ``ManifestWriter``."""
        return self._content

    @property
    def version(self) -> Literal[3]:
        """See ``ManifestWriter``."""
        return VERSION

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "data" if self._content == ManifestContent.DATA else "deletes"}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        """See ``ManifestWriter``."""
        schema = self._with_partition(VERSION)
        return AvroOutputFile[ManifestEntry](self._output_file, schema, "manifest_entry", metadata=self._meta)

    def prepare_entry(self, entry: ManifestEntry) -> ManifestEntry:
        """See ``ManifestWriter``. A file that was made without the fields of version 3 has none of them."""
        entry = super().prepare_entry(entry)
        missing = len(DATA_FILE_TYPE[VERSION].fields) - len(entry.data_file)
        if missing:
            entry.data_file = DataFile3(*entry.data_file._data, *[None] * missing)
        return entry

    def to_manifest_file(self) -> ManifestFile:
        """See ``ManifestWriter``."""
        return ManifestFile3(*super().to_manifest_file()._data, None)


class ManifestListWriter3(ManifestListWriterV2):
    """Writes a manifest list, and gives row ids to the manifests of data that have none.

    ``next_row_id`` is the first id that no row of the table has.
    """

    def __init__(
        self,
        output_file: OutputFile,
        snapshot_id: int,
        parent_snapshot_id: int | None,
        sequence_number: int,
        compression: AvroCompressionCodec,
        next_row_id: int,
    ) -> None:
        super().__init__(output_file, snapshot_id, parent_snapshot_id, sequence_number, compression)
        self._format_version = VERSION
        self._meta |= {"format-version": str(VERSION), "first-row-id": str(next_row_id), AVRO_CODEC_KEY: compression}
        self.next_row_id = next_row_id

    def __enter__(self) -> ManifestListWriter:
        """See ``ManifestListWriter``."""
        schema = MANIFEST_LIST_FILE_SCHEMAS[VERSION]
        self._writer = AvroOutputFile[ManifestFile](self._output_file, schema, "manifest_file", metadata=self._meta)
        self._writer.__enter__()
        return self

    def prepare_manifest(self, manifest_file: ManifestFile) -> ManifestFile:
        """See ``ManifestListWriter``, and https://iceberg.apache.org/spec/#first-row-id-assignment."""
        prepared = ManifestFile3(*super().prepare_manifest(manifest_file)._data)
        # Rule row-ids-assigned
        if prepared.content == ManifestContent.DATA and prepared.first_row_id is None:
            prepared[15] = self.next_row_id
            # Existing files may lack ids as well: those of a table that was upgraded.
            self.next_row_id += (prepared.existing_rows_count or 0) + (prepared.added_rows_count or 0)
        return prepared


def find_deleted_from(file: DataFile) -> str | None:
    """Return the only data file that a file with deletes applies to, such as a deletion vector; None where that is not
    known, and for a data file."""
    return file.referenced_data_file if isinstance(file, DataFile3) else None


def keeps_ids(current: Snapshot | None, read: Snapshot | None) -> bool:
    """Return whether rows that were ``read`` in a snapshot, with their ids, still have the ids that they had there. The
    first snapshot after an upgrade gives ids to all rows."""
    # Rule ids-since-it-was-read
    return current is None or current.first_row_id is None or (read is not None and read.first_row_id is not None)


def find_next_row_id(metadata: TableMetadata) -> int:
    """Return the first id that no row of a table of version 3 has."""
    assert isinstance(metadata, TableMetadataV3)
    assert metadata.next_row_id is not None
    return metadata.next_row_id


def write_metadata(metadata: TableMetadata, io: FileIO, location: str) -> None:
    """Write a table's metadata file. PyIceberg makes new tables without the first id of a row."""
    if isinstance(metadata, TableMetadataV3) and metadata.next_row_id is None:
        metadata = metadata.model_copy(update={"next_row_id": 0})
    body = Compressor.get_compressor(location).bytes_compressor()(dump_metadata(metadata).encode())
    with io.new_output(location).create() as output:
        output.write(body)


def dump_metadata(metadata: TableMetadata) -> str:
    """Return the metadata as JSON; PyIceberg's own model refuses to write that of version 3."""
    return IcebergBaseModel.model_dump_json(metadata)
