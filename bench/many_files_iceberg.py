"""Peak memory and seconds of one Iceberg commit of many files of 100 columns, without S3: the product's own publishing.

The catalog is in this process, and objects are files of a temporary folder.

PYTHONPATH=job:. python -m bench.many_files_iceberg --files 100000
"""

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

from bench.many_files import make_receipts, say
from lakewriter.commit.iceberg.added_files import make_data_files, read_added_files
from lakewriter.commit.iceberg.iceberg_columns import number_fields
from lakewriter.commit.iceberg.iceberg_tables import PROPERTIES
from lakewriter.commit.iceberg.manifests import StreamedAppend
from lakewriter.receipt import ReceiptPart
from lakewriter.receipts.parts import BOUNDS, PartWriter, Receipts


class Folder:
    """Objects as files of a folder, so that what is written takes no memory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def file(self, key: str) -> Path:
        """The file of an object."""
        return self._path / key.replace("/", "_").replace(":", "_")

    def write(self, key: str, body: bytes) -> None:
        """Write an object."""
        self.file(key).write_bytes(body)

    def read(self, key: str) -> bytes | None:
        """Read an object."""
        return self.file(key).read_bytes()


class FolderIO(FileIO):
    """PyIceberg's files in the folder; whole objects in memory, as the product has them with S3."""

    def __init__(self, folder: Folder) -> None:
        super().__init__({})
        self._folder = folder

    def new_input(self, location: str) -> InputFile:
        return _Input(location, self._folder)

    def new_output(self, location: str) -> OutputFile:
        return _Output(location, self._folder)

    def delete(self, location: Any) -> None:
        self._folder.file(str(location)).unlink()


class _Input(InputFile):
    def __init__(self, location: str, folder: Folder) -> None:
        super().__init__(location)
        self._folder = folder

    def __len__(self) -> int:
        return self._folder.file(self.location).stat().st_size

    def exists(self) -> bool:
        return self._folder.file(self.location).exists()

    def open(self, seekable: bool = True) -> InputStream:
        return cast(InputStream, io.BytesIO(self._folder.file(self.location).read_bytes()))


class _Output(OutputFile):
    def __init__(self, location: str, folder: Folder) -> None:
        super().__init__(location)
        self._folder = folder

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        return self.to_input_file().exists()

    def to_input_file(self) -> InputFile:
        return _Input(self.location, self._folder)

    def create(self, overwrite: bool = False) -> OutputStream:
        return cast(OutputStream, self._folder.file(self.location).open("wb"))


class OneTable(NoopCatalog):
    """A catalog that commits to one table, in memory."""

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Apply the updates."""
        metadata = update_table_metadata(table.metadata, updates)
        return CommitTableResponse(metadata=metadata, metadata_location=table.metadata_location)


def make_table(schema: Schema, folder: Folder) -> Table:
    """An empty table with the properties of the product's own."""
    metadata = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "s3://acme-lake/t", PROPERTIES
    )
    return Table(("db", "t"), metadata, "s3://acme-lake/t/metadata/0.metadata.json", FolderIO(folder), OneTable("o"))


def write_parts(folder: Folder, files: int, columns: int) -> Receipts:
    """The receipts of a load, in parts as staging leaves them."""
    writer = PartWriter("parts/", BOUNDS.part, folder.write)
    parts: list[ReceiptPart] = []
    for receipt in make_receipts(range(files), columns):
        parts += writer.add(receipt)
    return Receipts((), [*parts, *writer.flush()], folder.read)


def commit(table: Table, receipts: Receipts, *, streamed: bool) -> None:
    """Append all files in one snapshot."""

    def list_files() -> Iterator[Any]:
        return make_data_files(receipts, table.schema(), table.spec())

    with table.transaction() as transaction:
        if streamed:
            StreamedAppend(transaction, table.io, list_files, {}).commit()
        else:
            with transaction.update_snapshot().fast_append() as append:
                for file in list_files():
                    append.append_data_file(file)


def main() -> None:
    """Print what each step takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--library", action="store_true", help="append with PyIceberg's own fast_append instead")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as path:
        folder = Folder(Path(path))
        columns = pa.schema([(f"column_number_{number}", pa.string()) for number in range(given.columns)])
        table = make_table(number_fields(columns), folder)
        at: dict[str, Any] = {}
        steps: list[tuple[str, Callable[[], object]]] = [
            ("receipts in parts", lambda: at.update(receipts=write_parts(folder, given.files, given.columns))),
            ("commit", lambda: commit(table, at["receipts"], streamed=not given.library)),
            ("read back", lambda: at.update(rows=read_added_files(table, table.snapshots()[0]))),
        ]
        for name, step in steps:
            began = time.monotonic()
            step()
            say(name, began)
        manifests = table.snapshots()[0].manifests(table.io)
        sizes = [manifest.manifest_length for manifest in manifests]
        sys.stdout.write(f"{len(at['rows']):,} files in {len(sizes)} manifests of at most {max(sizes):,} bytes\n")


if __name__ == "__main__":
    main()
