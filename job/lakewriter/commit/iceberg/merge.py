"""Merge a load into an Iceberg table by key: its rows, and deletes of the rows that they replace, in one snapshot.

The rows to replace are looked up in the very snapshot that the commit is based on. A commit that comes between, of a
compaction or of another writer of the same keys, costs another try. A file that was read once is not read again.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from hashlib import sha256
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, ManifestGroupPlanner, Table, Transaction
from pyiceberg.table.snapshots import Snapshot

from lakewriter.aws.clients import LastingObjects
from lakewriter.commit.iceberg.deleted_keys import UNTIL, UNTIL_TYPE, fold, read_newest, to_rows, write_deleted
from lakewriter.commit.iceberg.manifests import StreamedAppend, read_live_entries
from lakewriter.commit.iceberg.merge_keys import RowReader, rank_alike, read_gone
from lakewriter.commit.iceberg.merge_snapshot import StreamedMerge, StreamedMergedReplacement, write_position_deletes
from lakewriter.commit.iceberg.merge_winners import DELETED, FILE, IS_LOADED, POSITION, PRECEDENCE, find_newest, judge
from lakewriter.commit.iceberg.obstacles import NO_WAY_BACK
from lakewriter.commit.iceberg.snapshot_presence import note_counts
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.changes import Load
from lakewriter.records.facets import MergeIntent
from lakewriter.report import DeletedRows, MergeCounts, format_count, format_size

FORMAT_VERSION: Final = 2
DELETES: Final = "deletes-"
"""Begins the names of files with deletes."""


class KeyMerge:
    """The merge of one load, which may be tried on several versions of its table."""

    def __init__(self, intent: Load, merge: MergeIntent, lasting: LastingObjects) -> None:
        self._merge, self._intent, self._lasting = merge, intent, lasting
        self._loaded: pa.Table | None = None
        self._read: dict[str, pa.Table] = {}
        self._gone: dict[str, dict[str, pa.Array]] = {}
        self._deleted: pa.Table | None = None
        self._schema_id: int | None = None

    def commit(
        self,
        table: Table,
        transaction: Transaction,
        load: str,
        schema: Schema,
        make_files: Callable[[], Iterator[DataFile]],
        summary: dict[str, str],
        *,
        replaces: bool,
    ) -> None:
        """Add the load's files, and deletes of what they replace, to a transaction on the table as it was read. Where
        the load ``replaces`` all of the table's files, its rows are merged among themselves."""
        # Rule judged-on-its-snapshot
        gone, counts = self._judge(table, schema, list(make_files()), replaces=replaces)
        summary |= note_counts(counts)
        if replaces:
            deletes = write_position_deletes(table, gone, lambda: f"{name_deletes(load)}{uuid.uuid4()}.parquet")
            StreamedMergedReplacement(transaction, table.io, make_files, summary, deletes).commit()
            return
        if not gone:
            StreamedAppend(transaction, table.io, make_files, summary).commit()
            return
        deletes = write_position_deletes(table, gone, lambda: f"{name_deletes(load)}{uuid.uuid4()}.parquet")
        StreamedMerge(transaction, table.io, make_files, summary, deletes).commit()

    def _judge(
        self, table: Table, schema: Schema, files: list[DataFile], *, replaces: bool
    ) -> tuple[list[tuple[DataFile, pa.Array]], MergeCounts]:
        """Return the positions that are gone, by data file, and what became of the rows of the load's ``files``.

        ``schema`` is that of the load's files.
        """
        require_mergeable(table)
        reader, files = RowReader(table, schema, self._merge), self._sort_files(files)
        complete = self._read_loaded(table, reader, files)
        keys = complete.select(list(reader.keys)).group_by(list(reader.keys)).aggregate([])
        tasks = [] if replaces else list(_plan(table, reader, keys))
        live = [self._read_live(table, reader, task, keys) for task in tasks]
        deleted = self._read_deleted_before(reader, keys).select(complete.column_names)
        # Rule deleted-keys-keep-out
        rows = pa.concat_tables([complete, *_number_files(live, len(files), is_loaded=False), deleted])
        judged = judge(
            rows,
            reader.keys,
            reader.orders,
            keeps_deleted=self._merge.keeps_deleted,
            wins_ties=self._merge.wins_ties,
        )
        every = [*files, *(task.file for task in tasks)]
        by_file = defaultdict[int, list[int]](list)
        for batch in judged.gone.to_batches():
            for file, position in zip(batch[FILE].to_pylist(), batch[POSITION].to_pylist(), strict=True):
                by_file[file].append(position)
        return [(every[file], pa.array(gone, pa.int64())) for file, gone in sorted(by_file.items())], judged.counts

    def _sort_files(self, files: list[DataFile]) -> list[DataFile]:
        """Return the load's files in the order in which their rows were read: receipts may come in another one."""
        receipts = self._intent.files.without_statistics()
        order = {f"s3://{receipt.bucket}/{receipt.key}": (receipt.partition, receipt.seq) for receipt in receipts}
        # Rule files-in-their-order
        return sorted(files, key=lambda file: order[file.file_path])

    def _read_loaded(self, table: Table, reader: RowReader, files: list[DataFile]) -> pa.Table:
        """Return the rows of the load that have a key."""
        if self._schema_id != table.schema().schema_id:
            # Columns may have wider types by now.
            self._loaded, self._read, self._deleted, self._schema_id = None, {}, None, table.schema().schema_id
        if self._loaded is None:
            loaded = [reader.read(file) for file in files]
            self._loaded = pa.concat_tables(_number_files(loaded, 0, is_loaded=True))
            if self._merge.compared is not None:
                self._loaded = rank_alike(self._loaded, reader, files, self._merge.compared)
        return self._loaded.filter(pc.invert(_has_null(self._loaded, reader.keys)))

    def _read_deleted_before(self, reader: RowReader, keys: pa.Table) -> pa.Table:
        """Read those of the load's ``keys`` that earlier loads have deleted, in the form of rows without a file."""
        if self._deleted is None:
            entries = read_newest(self._read_objects(), reader, keys)
            self._deleted = to_rows(entries.filter(entries[DELETED]), reader, self._intent.started)
        return self._deleted

    def _read_objects(self) -> list[bytes]:
        keys = [keys.key for keys in self._intent.deleted_objects]
        return [self._lasting.get(key, self._intent.read_deleted) for key in keys]

    def list_deleted_keys(self, table: Table, schema: Schema, files: list[DataFile]) -> bytes:
        """Return the body of the load's object of deleted keys: the keys that the load deletes, those that it brings
        back, and what the objects have that it folds.

        The body depends only on the load's rows and on the previous objects, so every process makes the same. Keys of
        rows that are older than the table's are included, and change nothing.
        """
        reader, files = RowReader(table, schema, self._merge), self._sort_files(files)
        loaded = self._read_loaded(table, reader, files)
        before = self._read_deleted_before(reader, loaded)
        until = self._intent.started + timedelta(seconds=self._merge.deleted_seconds)
        loaded = loaded.append_column(UNTIL, pa.repeat(pa.scalar(until, UNTIL_TYPE), len(loaded)))
        rows = pa.concat_tables([loaded, before.select(loaded.column_names)])
        newest = find_newest(rows, reader.keys, reader.orders, wins_ties=self._merge.wins_ties)
        newest = newest.filter(newest[IS_LOADED])
        back = newest.filter(pc.invert(newest[DELETED])).join(before, list(reader.keys), join_type="left semi")
        changed = pa.concat_tables([newest.filter(newest[DELETED]), back.select(newest.column_names)])
        objects = self._read_objects()[: self._merge.deleted_folds]
        after = self._intent.deleted_after
        assert after is not None
        body = write_deleted(fold(changed, objects, reader, self._intent.started, after), reader, after)
        self._lasting.put(after.key, body)
        return body

    def _read_live(self, table: Table, reader: RowReader, task: FileScanTask, keys: pa.Table) -> pa.Table:
        path = task.file.file_path
        if path not in self._read:
            self._read[path] = reader.read(task.file, keys)
        rows = self._read[path]
        # Rule deletes-of-the-snapshot
        if not task.delete_files or not len(rows):
            return rows
        gone = pa.concat_arrays([pa.array([], pa.int64()), *self._list_gone(table, task)])
        return rows.filter(pc.invert(pc.is_in(rows[POSITION], value_set=gone)))

    def _list_gone(self, table: Table, task: FileScanTask) -> Iterator[pa.Array]:
        """Yield the positions in a data file that each file with deletes names; such a file applies to many, and is
        read once."""
        for file in sorted(task.delete_files, key=lambda file: file.file_path):
            if file.file_path not in self._gone:
                self._gone[file.file_path] = read_gone(table.io, file)
            if task.file.file_path in self._gone[file.file_path]:
                yield self._gone[file.file_path][task.file.file_path]


def _plan(table: Table, reader: RowReader, keys: pa.Table) -> Iterator[FileScanTask]:
    """Yield the data files of the current snapshot that may have one of the keys, with the deletes that apply."""
    snapshot = table.current_snapshot()
    if snapshot is None or not len(keys):
        return
    manifests = snapshot.manifests(table.io)
    yield from ManifestGroupPlanner(table.metadata, table.io, reader.make_filter(keys)).plan_files(manifests)


def require_mergeable(table: Table, what: str = "rows are merged") -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` for a table of another format version, and for one with equality deletes, which
    hide what its present rows are."""
    name, snapshot = ".".join(table.name()), table.current_snapshot()
    if table.format_version != FORMAT_VERSION:
        raise SchemaIncompatibleError(
            f"Iceberg table {name} has format version {table.format_version}, expected {FORMAT_VERSION}: {what} "
            "by files with position deletes.",
            remedy=f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='2'), or load into another table."
            if table.format_version < FORMAT_VERSION
            else f"{NO_WAY_BACK}.",
        )
    for manifest in snapshot.manifests(table.io) if snapshot is not None else ():
        if manifest.content == ManifestContent.DELETES:
            for entry in read_live_entries(manifest, table.io):
                if entry.content == DataFileContent.EQUALITY_DELETES:
                    raise SchemaIncompatibleError(
                        f"Iceberg table {name} has equality deletes, such as {entry.path}; {what} "
                        "where deletes name positions.",
                        remedy="Rewrite the table's files (Spark: CALL system.rewrite_data_files with "
                        "'delete-file-threshold'='1'), and let nobody write equality deletes to it.",
                    )


def describe_read(table: Table) -> str:
    """Say which of the table's files a merge may read, and how many of its rows are deleted by position."""
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return "it has no files yet"
    files, size = _read_totals(snapshot, "data-files", "files-size")
    reads = f"of its {format_count(files, 'data file')} ({format_size(size)}) those are read that may have a key"
    deletes = read_deletes(snapshot)
    return reads if deletes is None else f"{reads}; {deletes.describe()}"


def read_deletes(snapshot: Snapshot) -> DeletedRows | None:
    """Return how many of the table's rows are deleted by files with deletes, by the snapshot's summary; None without
    any."""
    files, rows, of = _read_totals(snapshot, "delete-files", "position-deletes", "records")
    return DeletedRows(files=files, rows=rows, of=of) if files else None


def _read_totals(snapshot: Snapshot, *names: str) -> list[int]:
    totals = snapshot.summary.additional_properties if snapshot.summary else {}
    return [int(totals.get(f"total-{name}", 0)) for name in names]


def _number_files(tables: Iterable[pa.Table], first: int, *, is_loaded: bool) -> list[pa.Table]:
    def number_file(rows: pa.Table, number: int) -> pa.Table:
        rows = rows.append_column(PRECEDENCE, pa.repeat(pa.scalar(0, pa.int64()), len(rows)))
        rows = rows.append_column(FILE, pa.repeat(pa.scalar(number, pa.int64()), len(rows)))
        return rows.append_column(IS_LOADED, pa.repeat(is_loaded, len(rows)))

    return [number_file(rows, number) for number, rows in enumerate(tables, first)]


def _has_null(rows: pa.Table, keys: tuple[str, ...]) -> pa.Array:
    has_null = pa.chunked_array([pa.repeat(False, len(rows))])
    for key in keys:
        has_null = pc.or_(has_null, pc.is_null(rows[key]))
    return has_null


def name_deletes(load: str) -> str:
    """Return what the names of a load's files with deletes begin with."""
    return f"{DELETES}{sha256(load.encode()).hexdigest()[:20]}-"
