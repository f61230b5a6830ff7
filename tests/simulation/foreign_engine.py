"""Another engine at a merged table, as PyIceberg writes it: it appends rows of the same keys, and compacts files."""

import io
import random
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import _dataframe_to_data_files, schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update import AddSnapshotUpdate, update_table_metadata

from tests.simulation.bucket import Bucket
from tests.simulation.glue import Catalog
from tests.simulation.iceberg import current_deletes, key_of
from tests.simulation.source import Sources

MOST_ACTS: Final = 20
FIRST: Final = 1_000_000
"""The number of the first row that the engine writes."""


class _Input(InputFile):
    def __init__(self, location: str, bucket: Bucket) -> None:
        super().__init__(location)
        self._bucket = bucket

    def __len__(self) -> int:
        return len(self._bucket.objects[key_of(self.location)].body)

    def exists(self) -> bool:
        """See ``InputFile``."""
        return key_of(self.location) in self._bucket.objects

    def open(self, seekable: bool = True) -> InputStream:
        """See ``InputFile``."""
        return cast(InputStream, io.BytesIO(self._bucket.objects[key_of(self.location)].body))


class _Buffer(io.BytesIO):
    def __init__(self, put: Callable[[bytes], object]) -> None:
        super().__init__()
        self._put = put

    def close(self) -> None:
        """Put the object."""
        if not self.closed:
            self._put(self.getvalue())
        super().close()


class _Output(OutputFile):
    def __init__(self, location: str, bucket: Bucket) -> None:
        super().__init__(location)
        self._bucket = bucket

    def __len__(self) -> int:
        return len(self.to_input_file())

    def exists(self) -> bool:
        """See ``OutputFile``."""
        return self.to_input_file().exists()

    def to_input_file(self) -> _Input:
        """See ``OutputFile``."""
        return _Input(self.location, self._bucket)

    def create(self, overwrite: bool = False) -> OutputStream:
        """See ``OutputFile``."""
        return cast(OutputStream, _Buffer(lambda body: self._bucket.put(key_of(self.location), body, {})))


class _Files(FileIO):
    def __init__(self, bucket: Bucket) -> None:
        super().__init__({})
        self._bucket = bucket

    def new_input(self, location: str) -> _Input:
        """See ``FileIO``."""
        return _Input(location, self._bucket)

    def new_output(self, location: str) -> _Output:
        """See ``FileIO``."""
        return _Output(location, self._bucket)

    def delete(self, location: Any) -> None:
        """See ``FileIO``."""
        self._bucket.delete(key_of(str(location)))


class _Tables(NoopCatalog):
    """Commits to Glue at once: nothing comes between the engine's look and its commit."""

    def __init__(self, name: tuple[str, str], catalog: Catalog) -> None:
        super().__init__("engine")
        self._name, self._catalog = name, catalog
        self.is_compacting = False

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        """See ``Catalog``."""
        if self.is_compacting:
            updates = [_say_replace(update) for update in updates]
        for requirement in requirements:
            requirement.validate(table.metadata)
        before = table.metadata_location
        metadata = update_table_metadata(table.metadata, updates, metadata_location=before)
        number = int(before.rpartition("/")[2].split("-")[0]) + 1
        made = f"{metadata.location}/metadata/{number:05d}-{uuid.uuid4()}.metadata.json"
        ToOutputFile.table_metadata(metadata, table.io.new_output(made))
        content = self._catalog.tables[self._name].content
        parameters = content["Parameters"] | {"metadata_location": made, "previous_metadata_location": before}
        self._catalog.update(self._name, content | {"Parameters": parameters})
        return CommitTableResponse(metadata=metadata, metadata_location=made)


def _say_replace(update: Any) -> Any:
    """Say of a snapshot that it changes files and no rows, as engines do; the library has no such operation."""
    if not isinstance(update, AddSnapshotUpdate) or update.snapshot.summary is None:
        return update
    summary = Summary(Operation.REPLACE, **update.snapshot.summary.additional_properties)
    return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"summary": summary})})


class ForeignEngine:
    """Acts at any moment; ``rows`` has what it appended, by snapshot: key, order and id of each row."""

    def __init__(
        self, seed: int, bucket: Bucket, catalog: Catalog, sources: Sources, tables: dict[tuple[str, str], str]
    ) -> None:
        self.rng = random.Random(f"engine of {seed}")
        self.bucket, self.catalog, self.sources, self.tables = bucket, catalog, sources, tables
        self.rows = dict[int, list[tuple[int, int, tuple[int, int]]]]()
        self.met = Counter[str]()
        self._chance = self.rng.choice([0, 0.02, 0.1])
        self._orders = set[int]()

    def act(self) -> str:
        """Perhaps change a table; return what was done."""
        if self.rng.random() >= self._chance or self.met.total() >= MOST_ACTS:
            return ""
        names = sorted(self.tables.keys() & self.catalog.tables.keys())
        if not names:
            return ""
        name = self.rng.choice(names)
        location = self.catalog.tables[name].content["Parameters"]["metadata_location"]
        files = _Files(self.bucket)
        metadata = FromInputFile.table_metadata(files.new_input(location))
        table = Table(name, metadata, location, files, _Tables(name, self.catalog))
        what = self.rng.choice(["foreign-rows", "compaction", "compaction"])
        if "key" not in table.schema().column_names or table.current_snapshot() is None:
            return ""
        if not (self._append(table, self.tables[name]) if what == "foreign-rows" else self._compact(table)):
            return ""
        self.met[what] += 1
        return f"{what} {name}"

    def _append(self, table: Table, source: str) -> bool:
        """Append a row or two of keys that loads have, with times between theirs."""
        pipeline, _, table_id = source.partition("/")
        nonce = self.sources.read(pipeline, table_id, "", "another engine", (FIRST,)).nonce
        rows, ids = list[dict[str, Any]](), list[tuple[int, int, tuple[int, int]]]()
        for number in range(FIRST, FIRST + self.rng.choice([1, 2])):
            at = self.rng.randrange(12) * 10 + self.rng.randrange(1, 10)
            while at in self._orders:
                at = at + 1 if at % 10 < 9 else at + 2
            self._orders.add(at)
            row = {"id": number, "nonce": nonce, "key": self.rng.randrange(2), "at": at, "region": number % 2}
            rows.append(row | {"_deleted": False})
            ids.append((row["key"], at, (nonce, number)))
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        data = pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
            for file in _dataframe_to_data_files(table.metadata, data, table.io):
                append.append_data_file(file)
        snapshot = table.current_snapshot()
        assert snapshot is not None
        self.rows[snapshot.snapshot_id] = ids
        return True

    def _compact(self, table: Table) -> bool:
        """Write some of the table's files anew, or all of them, without the rows that are deleted."""
        files = self._list_files(table)
        chosen = [file for file in files if self.rng.random() < self.rng.choice([0.5, 1.0])]
        if not chosen:
            return False
        schema = schema_to_pyarrow(table.schema(), include_field_ids=False)
        deletes = current_deletes(self.catalog, self.bucket, cast(tuple[str, str], table.name()))
        parts = [self._read(file, deletes.get(key_of(file.file_path), set()), schema) for file in chosen]
        rows = pa.concat_tables(parts)
        assert isinstance(table.catalog, _Tables)
        table.catalog.is_compacting = True
        with table.transaction() as transaction, transaction.update_snapshot().overwrite() as change:
            for file in chosen:
                change.delete_data_file(file)
            for file in _dataframe_to_data_files(table.metadata, rows, table.io) if len(rows) else ():
                change.append_data_file(file)
        return True

    def _list_files(self, table: Table) -> list[DataFile]:
        snapshot = table.current_snapshot()
        assert snapshot is not None
        entries = [
            entry.data_file
            for manifest in snapshot.manifests(table.io)
            for entry in manifest.fetch_manifest_entry(table.io)
        ]
        files = [file for file in entries if file.content == DataFileContent.DATA]
        return sorted(files, key=lambda file: file.file_path)

    def _read(self, file: DataFile, deleted: set[int], schema: pa.Schema) -> pa.Table:
        rows = pq.ParquetFile(io.BytesIO(self.bucket.objects[key_of(file.file_path)].body)).read(use_threads=False)
        kept = [row for position, row in enumerate(rows.to_pylist()) if position not in deleted]
        return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in kept], schema=schema)
