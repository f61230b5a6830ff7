"""Merge a load into an Iceberg table by key: its rows, and deletes of the rows that they replace, in one snapshot.

The rows to replace are looked up in the very snapshot that the commit is based on. A commit that comes between, of a
compaction or of another writer of the same keys, costs another try. A file that was read once is not read again.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot

from lakewriter.aws.clients import LastingObjects
from lakewriter.commit.iceberg import format3
from lakewriter.commit.iceberg.added_files import DELETES, MOVED, name_made
from lakewriter.commit.iceberg.deleted_keys import UNTIL, UNTIL_TYPE, fold, read_newest, to_rows, write_deleted
from lakewriter.commit.iceberg.deletion_vectors import (
    LiveFile,
    is_vector,
    list_position_deletes,
    plan_files,
    write_vectors,
)
from lakewriter.commit.iceberg.manifests import StreamedAppend, read_live_entries, read_manifests
from lakewriter.commit.iceberg.merge_keys import AppliedDeletes, RowReader, rank_alike
from lakewriter.commit.iceberg.merge_snapshot import StreamedMerge, write_position_deletes
from lakewriter.commit.iceberg.merge_winners import (
    DELETED,
    FILE,
    IS_LOADED,
    POSITION,
    PRECEDENCE,
    find_newest,
    find_replaced,
    judge,
)
from lakewriter.commit.iceberg.row_lineage import RowMove, read_row_ids
from lakewriter.commit.iceberg.snapshot_presence import note_counts
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.changes import Load
from lakewriter.records.facets import MergeIntent
from lakewriter.report import DeletedRows, MergeCounts, format_count, format_size

LOWEST: Final = 2
"""The first format version whose files with deletes name positions."""


@dataclass(frozen=True)
class _Judgment:
    """``gone`` has the positions in each data file that readers do not see after the merge. ``moved`` has those rows of
    the load's files, of format version 3, that take the place of others, with the ids of these; they are among
    ``gone``, since they are written again."""

    gone: list[tuple[LiveFile, pa.Array]]
    moved: list[tuple[DataFile, pa.Array, pa.Array]]
    counts: MergeCounts


class KeyMerge:
    """The merge of one load, which may be tried on several versions of its table."""

    def __init__(self, intent: Load, merge: MergeIntent, lasting: LastingObjects) -> None:
        self._merge, self._intent, self._lasting = merge, intent, lasting
        self._loaded: pa.Table | None = None
        self._read: dict[str, pa.Table] = {}
        self._gone = AppliedDeletes()
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
        judgment = self._judge(table, schema, list(make_files()), replaces=replaces)
        summary |= note_counts(judgment.counts)
        if not judgment.gone and not replaces:
            StreamedAppend(transaction, table.io, make_files, summary).commit()
            return

        def make_name(kind: str, ending: str) -> str:
            return f"{name_made(kind, load)}{uuid.uuid4()}.{ending}"

        gone = [(live.file, positions) for live, positions in judgment.gone]
        moved, replaced = list[DataFile](), list[str]()
        if table.format_version < format3.VERSION:
            deletes = write_position_deletes(table, gone, lambda: make_name(DELETES, "parquet"))
        else:
            moved = list(RowMove(table, schema, lambda: make_name(MOVED, "parquet")).write(judgment.moved))
            vectors = [(live.file, self._add_gone(table, live, positions)) for live, positions in judgment.gone]
            # Rule position-deletes-leave
            replaced = [] if replaces else list_position_deletes(table)
            if replaced:
                vectors += self._convert(table, {file.file_path for file, _ in gone})
            deletes = write_vectors(table, vectors, make_name(DELETES, "puffin")) if vectors else []
        StreamedMerge(
            transaction,
            table.io,
            lambda: chain(make_files(), moved),
            summary,
            deletes,
            replaced,
            replaces=replaces,
        ).commit()

    def _add_gone(self, table: Table, live: LiveFile, positions: pa.Array) -> pa.Array:
        """Return all positions in a data file that are gone: a vector has those of the deletes before it too."""
        # Rule vector-holds-former-deletes
        return pa.concat_arrays([positions, self._gone.find(table.io, live)])

    def _convert(self, table: Table, done: Collection[str]) -> Iterator[tuple[DataFile, pa.Array]]:
        """Yield what files with position deletes name in the other data files, for vectors in their place: a table that
        was upgraded has such files, which no reader has to apply once a data file has a vector."""
        for live in plan_files(table):
            if live.file.file_path not in done and not all(map(is_vector, live.deletes)):
                positions = self._gone.find(table.io, live)
                if len(positions):
                    yield live.file, positions

    def _judge(self, table: Table, schema: Schema, files: list[DataFile], *, replaces: bool) -> _Judgment:
        """Judge the rows of the load's ``files``, which have this schema."""
        require_mergeable(table)
        reader, files = RowReader(table, schema, self._merge), self._sort_files(files)
        complete = self._read_loaded(table, reader, files)
        keys = complete.select(list(reader.keys)).group_by(list(reader.keys)).aggregate([])
        # Rule replacing-rows-alone
        sees_none = replaces or not len(keys)
        there = () if sees_none else plan_files(table, reader.make_filter(keys))
        tables = [self._read_live(table, reader, live, keys) for live in there]
        deleted = self._read_deleted_before(reader, keys).select(complete.column_names)
        # Rule deleted-keys-keep-out
        rows = pa.concat_tables([complete, *_number_files(tables, len(files), is_loaded=False), deleted])
        judged = judge(
            rows,
            reader.keys,
            reader.orders,
            keeps_deleted=self._merge.keeps_deleted,
            wins_ties=self._merge.wins_ties,
        )
        every, gone, moved = [*map(LiveFile, files), *there], judged.gone, []
        # Rule updated-rows-keep-ids
        if table.format_version >= format3.VERSION:
            moved = list(_find_moved(table, find_replaced(rows, gone, reader.keys), every))
            numbers = [pa.repeat(pa.scalar(number, pa.int64()), len(positions)) for number, positions, _ in moved]
            columns = {FILE: pa.chunked_array([*numbers], pa.int64())}
            columns |= {POSITION: pa.chunked_array([positions for _, positions, _ in moved], pa.int64())}
            gone = pa.concat_tables([gone, pa.table(columns)])
        gone = gone.sort_by(FILE)
        counts = pc.value_counts(gone[FILE])
        ends = pc.cumulative_sum(counts.field("counts")).to_pylist()
        positions = gone[POSITION].combine_chunks()
        return _Judgment(
            [
                (every[file["values"]], positions.slice(end - file["counts"], file["counts"]))
                for file, end in zip(counts.to_pylist(), ends, strict=True)
            ],
            [(every[file].file, positions, ids) for file, positions, ids in moved],
            judged.counts,
        )

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

    def _read_live(self, table: Table, reader: RowReader, live: LiveFile, keys: pa.Table) -> pa.Table:
        path = live.file.file_path
        if path not in self._read:
            self._read[path] = reader.read(live.file, keys)
        rows = self._read[path]
        # Rule deletes-of-the-snapshot
        if not live.deletes or not len(rows):
            return rows
        return rows.filter(pc.invert(pc.is_in(rows[POSITION], value_set=self._gone.find(table.io, live))))


def _find_moved(
    table: Table, replaced: pa.Table, every: Sequence[LiveFile]
) -> Iterator[tuple[int, pa.Array, pa.Array]]:
    """Yield the number of each file of the load, the positions of its rows that take the place of rows with ids, and
    these ids."""
    ids = dict[tuple[int, int], int | None]()
    for file in pc.unique(replaced[f"replaced_{FILE}"]).to_pylist():
        of_file = replaced.filter(pc.equal(replaced[f"replaced_{FILE}"], file))
        positions = of_file[f"replaced_{POSITION}"].combine_chunks().sort()
        numbers = read_row_ids(table.io, every[file].file, positions).to_pylist()
        ids |= {(file, position): number for position, number in zip(positions.to_pylist(), numbers, strict=True)}
    by_file = defaultdict[int, list[tuple[int, int]]](list)
    for row in replaced.to_pylist():
        row_id = ids[row[f"replaced_{FILE}"], row[f"replaced_{POSITION}"]]
        if row_id is not None:
            by_file[row[FILE]].append((row[POSITION], row_id))
    for file, pairs in by_file.items():
        positions, row_ids = zip(*pairs, strict=True)
        yield file, pa.array(positions, pa.int64()), pa.array(row_ids, pa.int64())


def require_mergeable(table: Table, what: str = "rows are merged") -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` for a table of format version 1, and for one with equality deletes, which hide what
    its present rows are."""
    name, snapshot = ".".join(table.name()), table.current_snapshot()
    if table.format_version < LOWEST:
        raise SchemaIncompatibleError(
            f"Iceberg table {name} has format version {table.format_version}, expected {LOWEST} or {format3.VERSION}: "
            f"{what} by files with deletes of positions.",
            remedy=f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='{LOWEST}'), or load into another table.",
        )
    for manifest in read_manifests(table.metadata, snapshot, table.io) if snapshot is not None else ():
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
