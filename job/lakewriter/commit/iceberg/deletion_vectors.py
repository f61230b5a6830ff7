"""Read and write deletion vectors, which name the deleted rows of one data file each in format version 3.

A Puffin file has any number of them. See https://iceberg.apache.org/puffin-spec/#deletion-vector-v1-blob-type.
"""

import json
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.manifest import DATA_FILE_TYPE, DataFile, DataFileContent, FileFormat, ManifestContent, ManifestEntry
from pyiceberg.table import ManifestGroupPlanner, Table
from pyiceberg.table.puffin import MAGIC_BYTES
from pyroaring import BitMap64

from lakewriter.commit.iceberg.file_io import ClientsFileIO
from lakewriter.commit.iceberg.format3 import VERSION, DataFile3, find_deleted_from
from lakewriter.commit.iceberg.manifests import read_manifests
from lakewriter.errors import SchemaIncompatibleError

BLOB: Final = "deletion-vector-v1"
POSITION_ID: Final = 2147483645
"""The field id of a row's position, which a vector is made of."""
_MAGIC: Final = b"\xd1\xd3\x39\x64"


@dataclass(frozen=True)
class LiveFile:
    """A data file, with the files whose deletes apply to it, and with the number of the snapshot that added it."""

    file: DataFile
    deletes: tuple[DataFile, ...] = ()
    sequence: int | None = None


def plan_files(table: Table, condition: BooleanExpression | None = None) -> tuple[LiveFile, ...]:
    """Return the data files of the current snapshot that may have rows of a ``condition``.

    A vector has all deletes of its data file: no other file with deletes applies then. The library's planner takes the
    vectors of one Puffin file for one file, so it plans without them.
    """
    snapshot = table.current_snapshot()
    if snapshot is None:
        return ()
    vectors, sequences = dict[str, DataFile](), dict[str, int | None]()

    def note(entry: ManifestEntry) -> bool:
        path = find_deleted_from(entry.data_file)
        if path is not None and is_vector(entry.data_file):
            vectors[path] = entry.data_file
            return False
        sequences[entry.data_file.file_path] = entry.sequence_number
        return True

    planner = ManifestGroupPlanner(table.metadata, table.io, AlwaysTrue() if condition is None else condition)
    tasks = planner.plan_files(read_manifests(table.metadata, snapshot, table.io), note)

    def make(file: DataFile, deletes: set[DataFile]) -> LiveFile:
        # Rule vector-of-the-file
        applied = {vectors[file.file_path]} if file.file_path in vectors else deletes
        return LiveFile(
            file, tuple(sorted(applied, key=lambda applying: applying.file_path)), sequences[file.file_path]
        )

    return tuple(make(task.file, task.delete_files) for task in tasks)


def list_position_deletes(table: Table) -> list[str]:
    """List the files of the current snapshot that name deleted positions and are not vectors."""
    snapshot = table.current_snapshot()
    return [
        entry.data_file.file_path
        for manifest in (read_manifests(table.metadata, snapshot, table.io) if snapshot is not None else ())
        if manifest.content == ManifestContent.DELETES
        for entry in manifest.fetch_manifest_entry(table.io)
        if entry.data_file.content == DataFileContent.POSITION_DELETES and not is_vector(entry.data_file)
    ]


def is_vector(file: DataFile) -> bool:
    """Return whether a file of a manifest is a deletion vector."""
    return file.file_format == FileFormat.PUFFIN and find_deleted_from(file) is not None


def read_vector(io: Any, file: DataFile) -> pa.Array:
    """Return the positions that a deletion vector names; of its Puffin file no more is read than its own bytes."""
    assert isinstance(io, ClientsFileIO)
    assert isinstance(file, DataFile3)
    offset, size = file.content_span
    with io.open_parts(file.file_path, file.file_size_in_bytes) as source:
        source.seek(offset)
        blob = source.read(size)
    framed = blob[4:-4]
    if framed[: len(_MAGIC)] != _MAGIC or zlib.crc32(framed) != int.from_bytes(blob[-4:], "big"):
        raise SchemaIncompatibleError(
            f"{file.file_path} has no deletion vector of {find_deleted_from(file)} in its {size} bytes from {offset}.",
            remedy="Roll the table back to a snapshot before that file was written.",
        )
    positions = BitMap64.deserialize(framed[len(_MAGIC) :]).to_array()
    return pa.Array.from_buffers(pa.int64(), len(positions), [None, pa.py_buffer(positions)])


def write_vectors(table: Table, vectors: Sequence[tuple[DataFile, pa.Array]], name: str) -> list[DataFile]:
    """Write the deletion vectors of data files into one Puffin file, and return an entry of a manifest for each."""
    body, blobs = bytearray(MAGIC_BYTES), []
    for file, positions in vectors:
        bitmap = BitMap64(array("Q", positions.to_numpy().tobytes()))
        framed = _MAGIC + bitmap.serialize()
        blob = len(framed).to_bytes(4, "big") + framed + zlib.crc32(framed).to_bytes(4, "big")
        properties = {"referenced-data-file": file.file_path, "cardinality": str(len(bitmap))}
        span = {"offset": len(body), "length": len(blob)}
        # No snapshot has an id or a number yet: the specification has these in place of both.
        unknown = {"snapshot-id": -1, "sequence-number": -1}
        blobs.append({"type": BLOB, "fields": [POSITION_ID], **unknown, **span, "properties": properties})
        body += blob
    footer = json.dumps({"blobs": blobs, "properties": {"created-by": "lakewriter"}}).encode()
    # The four bytes of flags say that the footer is not compressed.
    body += MAGIC_BYTES + footer + len(footer).to_bytes(4, "little") + bytes(4) + MAGIC_BYTES
    location = table.location_provider().new_data_location(name)
    with table.io.new_output(location).create() as output:
        output.write(bytes(body))
    return [_make_entry(file, location, len(body), blob) for (file, _), blob in zip(vectors, blobs, strict=True)]


def _make_entry(file: DataFile, location: str, size: int, blob: dict[str, Any]) -> DataFile:
    values = {
        "content": DataFileContent.POSITION_DELETES,
        "file_path": location,
        "file_format": FileFormat.PUFFIN,
        "partition": file.partition,
        "record_count": int(blob["properties"]["cardinality"]),
        "file_size_in_bytes": size,
        "referenced_data_file": file.file_path,
        "content_offset": blob["offset"],
        "content_size_in_bytes": blob["length"],
    }
    entry = DataFile3(*(values.get(field.name) for field in DATA_FILE_TYPE[VERSION].fields))
    entry.spec_id = file.spec_id
    return entry
