"""Merge a load into an Iceberg table by key: its rows, and deletes of the rows that they replace, in one snapshot.

The rows to replace are looked up in the very snapshot that the commit is based on. A commit that comes between, of a
compaction or of another writer of the same keys, costs another try. A file that was read once is not read again.
"""

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.snapshots import Snapshot

from lakewriter.aws.clients import LastingObjects
from lakewriter.commit.iceberg import format3
from lakewriter.commit.iceberg.added_files import DELETES, MOVED, name_made
from lakewriter.commit.iceberg.deleted_keys import (
    UNTIL,
    UNTIL_TYPE,
    fold,
    read_entries,
    read_newest,
    to_rows,
    write_deleted,
)
from lakewriter.commit.iceberg.deletion_vectors import (
    LiveFile,
    is_vector,
    list_position_deletes,
    plan_files,
    write_vectors,
)
from lakewriter.commit.iceberg.manifests import StreamedAppend, read_live_entries, read_manifests
from lakewriter.commit.iceberg.merge_floors import Cleared, Floors, drop_positions, join_gone
from lakewriter.commit.iceberg.merge_keys import AppliedDeletes, RowReader, rank_alike
from lakewriter.commit.iceberg.merge_rows import MergeRows, Part
from lakewriter.commit.iceberg.merge_snapshot import StreamedMerge, write_position_deletes
from lakewriter.commit.iceberg.merge_winners import (
    DELETED,
    FILE,
    KEY,
    POSITION,
    PRECEDENCE,
    REPLACED,
    judge,
)
from lakewriter.commit.iceberg.row_lineage import Moved, RowMove, read_row_ids
from lakewriter.commit.iceberg.snapshot_presence import note_counts
from lakewriter.commit.iceberg.unchanged import Filling, Gaps, Histories
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.changes import Load
from lakewriter.records.facets import MergeIntent
from lakewriter.report import DeletedRows, MergeCounts, format_count, format_size

LOWEST: Final = 2
"""The first format version whose files with deletes name positions."""
_ID: Final = "id"
_MOVED: Final = pa.schema([(FILE, pa.int32()), (POSITION, pa.int64()), (_ID, pa.int64())])


@dataclass(frozen=True)
class _Judgment:
    """``gone`` has the positions in each data file that readers do not see after the merge. ``moved`` has those rows of
    the load's files that are written again, so that they are among ``gone``: those that lack values, which ``filling``
    has, and of format version 3 those that take the place of others, with the ids of these. ``every`` are the files by
    their numbers, ``removed`` the locations of files, of data and of deletes, that leave the table."""

    gone: list[tuple[LiveFile, pa.Array]]
    moved: list[Moved]
    filling: Filling | None
    every: Mapping[int, LiveFile]
    counts: MergeCounts
    removed: frozenset[str]


class KeyMerge:
    """The merge of one load, which may be tried on several versions of its table."""

    def __init__(self, intent: Load, merge: MergeIntent, lasting: LastingObjects) -> None:
        self._merge, self._intent, self._lasting = merge, intent, lasting
        self._rows: MergeRows | None = None
        self._gone, self._floors = AppliedDeletes(), Floors(merge)
        self._below: Mapping[int, pa.Array] = {}
        self._schema_id: int | None = None
        self._gaps: Gaps | None = None

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
        if not judgment.gone and not judgment.removed and not replaces:
            StreamedAppend(transaction, table.io, make_files, summary).commit()
            return

        def make_name(kind: str, ending: str) -> str:
            return f"{name_made(kind, load)}{uuid.uuid4()}.{ending}"

        gone, replaced = [(live.file, positions) for live, positions in judgment.gone], list[str]()
        moved = self._move_rows(table, schema, judgment, lambda: make_name(MOVED, "parquet"))
        if table.format_version < format3.VERSION:
            deletes = write_position_deletes(table, gone, lambda: make_name(DELETES, "parquet"))
        else:
            vectors = [(live.file, self._add_gone(table, live, positions)) for live, positions in judgment.gone]
            # Rule position-deletes-leave
            replaced = [] if replaces else list_position_deletes(table)
            if replaced:
                vectors += self._convert(table, {file.file_path for file, _ in gone} | judgment.removed)
            deletes = write_vectors(table, vectors, make_name(DELETES, "puffin")) if vectors else []
        StreamedMerge(
            transaction,
            table.io,
            lambda: chain(make_files(), moved),
            summary,
            deletes,
            [*replaced, *judgment.removed],
            replaces=replaces,
        ).commit()

    def _move_rows(self, table: Table, schema: Schema, judgment: _Judgment, name: Callable[[], str]) -> list[DataFile]:
        """Write rows of the load again, with the ids and the values that they get by the merge."""
        filling = judgment.filling
        with nullcontext() if filling is None else filling.open(table, schema, judgment.every) as fill:
            return list(RowMove(table, schema, name, fill).write(judgment.moved))

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
        rows = self._read_loaded(table, schema, reader, files)
        cleared = Cleared() if replaces else self._floors.clear(table, schema, self._gone)
        # Rule replacing-rows-alone
        sees_none = replaces or not len(rows.extremes)
        there = () if sees_none else plan_files(table, reader.make_filter(rows.extremes))
        there = tuple(live for live in there if live.file.file_path not in cleared.paths)
        rows.read_stored(live.file for live in there)
        every = dict(enumerate(map(LiveFile, files))) | {rows.numbers[live.file.file_path]: live for live in there}
        counts, replaced, gone = MergeCounts(), list[pa.Table](), defaultdict[int, list[pa.Array]](list)
        for number, positions in self._below.items():
            gone[number].append(positions)
            counts += MergeCounts(late=len(positions))
        histories = self._begin_histories(table, reader, files, rows)
        for part in rows.parts:
            loaded, others = pa.concat_tables(part.loaded), self._read_others(table, reader, rows, part, every, cleared)
            judged = judge(
                loaded,
                others,
                reader.orders,
                keeps_deleted=self._merge.keeps_deleted,
                wins_ties=self._merge.wins_ties,
            )
            counts += judged.counts
            for file, of_file in _split_by_file(judged.gone):
                gone[file] += of_file[POSITION].chunks
            if histories is not None:
                histories.add(loaded, others, judged.newest)
            # Rule updated-rows-keep-ids
            if table.format_version >= format3.VERSION:
                replaced.append(judged.replaced)
        # Rule filled-on-its-snapshot
        filling = None if histories is None else histories.find_filling(self._intent)
        moved = list(_join_moved(_find_moved(table, replaced, every), filling))
        for file, positions, _ in moved:
            gone[file].append(positions)
        by_file = [(every[file], pa.concat_arrays(gone.pop(file))) for file in sorted(gone)]
        return _Judgment(
            join_gone(by_file, cleared.parts),
            [(every[file].file, positions, ids if replaced else None) for file, positions, ids in moved],
            filling,
            every,
            counts + MergeCounts(cleared=cleared.rows),
            cleared.paths | cleared.deletes,
        )

    def _begin_histories(
        self, table: Table, reader: RowReader, files: Sequence[DataFile], rows: MergeRows
    ) -> Histories | None:
        """Return room for the rows of keys that lack values; None where the load's events leave none out."""
        if not self._merge.fills:
            return None
        if self._gaps is None:
            self._gaps = Gaps(table.io, files)
        return Histories(self._gaps, reader, (pa.concat_tables(part.loaded) for part in rows.parts))

    def _read_others(
        self,
        table: Table,
        reader: RowReader,
        rows: MergeRows,
        part: Part,
        every: Mapping[int, LiveFile],
        cleared: Cleared,
    ) -> pa.Table:
        """Return the rows with a part's keys that the table has, and those of these keys that were deleted before."""
        stored = self._drop_gone(table, part.stored.read(rows.stored_schema), every, cleared)
        # Rule deleted-keys-keep-out
        return pa.concat_tables([stored, self._read_deleted_before(reader, rows, part)])

    def _drop_gone(self, table: Table, rows: pa.Table, every: Mapping[int, LiveFile], cleared: Cleared) -> pa.Table:
        """Return those rows of the table, by file and position, that its current snapshot has and that no floor
        clears."""
        numbers, is_there = rows[FILE].to_numpy(), np.full(len(rows), False)
        for number in np.unique(numbers).tolist():
            if number not in every:
                continue
            start, end = np.searchsorted(numbers, [number, number + 1]).tolist()
            is_there[start:end] = True
            below = cleared.positions.get(every[number].file.file_path)
            # Rule deletes-of-the-snapshot
            if every[number].deletes or below is not None:
                gone = self._gone.find(table.io, every[number])
                gone = gone if below is None else pa.concat_arrays([gone, below])
                is_there[start:end] = pc.invert(pc.is_in(rows[POSITION].slice(start, end - start), value_set=gone))
        return rows if is_there.all() else rows.filter(pa.array(is_there))

    def _sort_files(self, files: list[DataFile]) -> list[DataFile]:
        """Return the load's files in the order in which their rows were read: receipts may come in another one."""
        receipts = self._intent.files.without_statistics()
        order = {f"s3://{receipt.bucket}/{receipt.key}": (receipt.partition, receipt.seq) for receipt in receipts}
        # Rule files-in-their-order
        return sorted(files, key=lambda file: order[file.file_path])

    def _read_loaded(self, table: Table, schema: Schema, reader: RowReader, files: list[DataFile]) -> MergeRows:
        """Return the rows of the load that have a key and are not below a floor."""
        if self._rows is None or self._schema_id != table.schema().schema_id:
            # Columns may have wider types by now.
            below = self._floors.find_loaded(table, schema, files)
            rows = MergeRows(reader, len(files), sum(file.record_count for file in files))
            compared = self._merge.compared

            def rank(of_part: pa.Table) -> pa.Table:
                return of_part if compared is None else rank_alike(of_part, reader, files, compared)

            rows.fill(_read_files(reader, files, below), rank)
            # A read that fails leaves nothing half known to the next try.
            self._rows, self._below, self._schema_id = rows, below, table.schema().schema_id
        return self._rows

    def _read_deleted_before(self, reader: RowReader, rows: MergeRows, part: Part) -> pa.Table:
        """Read those of the load's keys that earlier loads have deleted, in the form of rows without a file."""
        if part.before is None:
            entries, before = read_newest(self._read_objects(), reader, rows.find_keys(part)), rows.make_chunks()
            before.add(to_rows(entries, rows.stored_schema, self._intent.started))
            part.before = before
        return pa.concat_tables(part.before)

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
        rows = self._read_loaded(table, schema, reader, files)
        objects, after = self._read_objects()[: self._merge.deleted_folds], self._intent.deleted_after
        assert after is not None

        def fold_part(part: Part) -> pa.Table:
            changed = self._find_changed(reader, rows, part)
            before = (rows.select_range(part, entries) for body in objects for entries in read_entries(body, reader))
            return fold(changed, before, reader, self._intent.started, after)

        body = write_deleted(map(fold_part, rows.parts), reader, after)
        self._lasting.put(after.key, body)
        return body

    def _find_changed(self, reader: RowReader, rows: MergeRows, part: Part) -> pa.Table:
        """Return the newest rows of the load of those keys that it deletes or brings back."""
        loaded, before = pa.concat_tables(part.loaded), self._read_deleted_before(reader, rows, part)
        keys, was_deleted = loaded[KEY].to_numpy(), np.full(len(rows.find_keys(part)), False)
        was_deleted[before[KEY].to_numpy()] = True
        newest = judge(loaded, before, reader.orders, keeps_deleted=True, wins_ties=self._merge.wins_ties).newest
        changed = loaded.filter(pa.array(newest & (loaded[DELETED].to_numpy() | was_deleted[keys])))
        until = self._intent.started + timedelta(seconds=self._merge.deleted_seconds)
        return changed.append_column(UNTIL, pa.repeat(pa.scalar(until, UNTIL_TYPE), len(changed)))


def _read_files(reader: RowReader, files: Iterable[DataFile], below: Mapping[int, pa.Array]) -> Iterator[pa.Table]:
    """Yield the rows of the load's files that have a key, with the file's number; not those ``below`` a floor."""
    for number, file in enumerate(files):
        for rows in reader.read(file):
            rows = drop_positions(rows, below.get(number))
            for key in reader.required_keys:
                if rows[key].null_count:
                    rows = rows.filter(pc.is_valid(rows[key]))
            rows = rows.append_column(FILE, pa.repeat(pa.scalar(number, pa.int32()), len(rows)))
            yield rows.append_column(PRECEDENCE, pa.repeat(pa.scalar(0, pa.int64()), len(rows)))


def _split_by_file(rows: pa.Table, name: str = FILE) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each file, whose number is in the column ``name``, by this number."""
    numbers = rows[name].to_numpy()
    if np.any(numbers[1:] < numbers[:-1]):
        order = np.argsort(numbers, kind="stable")
        rows, numbers = rows.take(order), numbers[order]
    spans = zip(*np.unique(numbers, return_index=True, return_counts=True), strict=True)
    for file, start, count in spans:
        yield int(file), rows.slice(start, count)


def _find_moved(table: Table, replaced: Sequence[pa.Table], every: Mapping[int, LiveFile]) -> pa.Table:
    """Return file and position of each row of the load that takes the place of a row with an id, with this id."""
    if not replaced:
        return _MOVED.empty_table()
    file_before, position_before = f"{REPLACED}{FILE}", f"{REPLACED}{POSITION}"
    rows = pa.concat_tables(replaced).sort_by([(file_before, "ascending"), (position_before, "ascending")])
    ids = [
        read_row_ids(table.io, every[file].file, of_file[position_before].combine_chunks())
        for file, of_file in _split_by_file(rows, file_before)
    ]
    moved = rows.select([FILE, POSITION]).append_column(_ID, pa.chunked_array(ids, pa.int64())).cast(_MOVED)
    return moved.filter(pc.is_valid(moved[_ID]))


def _join_moved(moved: pa.Table, filling: Filling | None) -> Iterator[tuple[int, pa.Array, pa.Array]]:
    """Yield the number of each file with rows to write again, and the positions and ids of these, each once."""
    if filling is not None:
        # A row that takes no other one's place gets an id of its own.
        moved = pa.concat_tables([moved, filling.rows.append_column(_ID, pa.nulls(len(filling.rows), pa.int64()))])
        ids = moved.group_by([FILE, POSITION]).aggregate([(_ID, "max")])
        # Releases of Arrow have these columns in different orders.
        moved = ids.select([FILE, POSITION, f"{_ID}_max"]).rename_columns(_MOVED.names)
    for file, rows in _split_by_file(moved.sort_by([(FILE, "ascending"), (POSITION, "ascending")])):
        yield file, rows[POSITION].combine_chunks(), rows[_ID].combine_chunks()


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
