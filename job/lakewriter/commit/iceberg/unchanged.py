"""Fill the values that change events leave out because they are unchanged, when a load is merged.

The value of such a column is that of the newest earlier event of the key that has it, in the load, or of the row in
the snapshot that the commit is based on. After a change of the key it is that of the row of the old key. Nothing is
guessed: without such a row the load is not committed. Filled rows are written into files of their own, see ``RowMove``.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lakewriter.commit.iceberg.deletion_vectors import LiveFile
from lakewriter.commit.iceberg.merge_keys import RowReader, find_column, open_parquet
from lakewriter.commit.iceberg.merge_winners import DELETED, FILE, KEY, POSITION, differ_from_previous
from lakewriter.commit.iceberg.row_lineage import Fill
from lakewriter.errors import PendingUnrecoverableError
from lakewriter.naming import UNCHANGED, UNCHANGED_ID
from lakewriter.records.changes import Load
from lakewriter.records.facets import MergeIntent
from lakewriter.report import format_count

_MARK, _ROW, _STAYS, _IS_LOADED = "mark", "row", "stays", "is_loaded"
_FILE_BITS: Final = 40
"""No file has as many rows as this power of two."""
_NONE: Final = -1

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Gaps:
    """The rows of a load that lack values.

    Args:
        moved: Whether the event of a row with a mark gives the row another key, by the number of the mark.
        lacking: The columns that such a row lacks.
    """

    def __init__(self, io: Any, files: Sequence[DataFile]) -> None:
        texts = dict[str, int]()
        rows = [of_batch for number, file in enumerate(files) for of_batch in _read_marks(io, file, number, texts)]
        nothing = np.zeros(0, np.int64)
        # Files and positions grow.
        self._rows = np.concatenate([nothing, *(numbers for numbers, _ in rows)])
        self._marks = np.concatenate([nothing, *(marks for _, marks in rows)])
        parsed = [json.loads(text) for text in texts]
        self.moved = [bool(moved) for moved, *_ in parsed]
        self.lacking = [frozenset(columns) for _, *columns in parsed]

    def find_marks(self, loaded: pa.Table) -> Numbers:
        """Return the number of the mark that each row of the load has; ``_NONE`` for one that lacks nothing."""
        if not len(self._rows):
            return np.full(len(loaded), _NONE)
        wanted = _number_rows(_to_numpy(loaded[FILE]), _to_numpy(loaded[POSITION]))
        nearest = np.minimum(np.searchsorted(self._rows, wanted), len(self._rows) - 1)
        return np.where(self._rows[nearest] == wanted, self._marks[nearest], _NONE)


def _number_rows(files: Any, positions: Numbers) -> Numbers:
    """Return one number for file and position, which sorts as they do."""
    return (np.asarray(files, np.int64) << _FILE_BITS) + positions


def _read_marks(io: Any, file: DataFile, number: int, texts: dict[str, int]) -> Iterator[tuple[Numbers, Numbers]]:
    with pq.ParquetFile(open_parquet(io, file), pre_buffer=True) as parquet:
        name, start = find_column(parquet, UNCHANGED_ID), 0
        for batch in parquet.iter_batches(columns=[name]) if name is not None else ():
            positions = pc.indices_nonzero(batch.column(0).is_valid())
            encoded = batch.column(0).take(positions).dictionary_encode()
            numbers = [texts.setdefault(text, len(texts)) for text in encoded.dictionary.to_pylist()]
            marks = pa.array(numbers, pa.int64()).take(encoded.indices)
            yield _number_rows(number, _to_numpy(positions.cast(pa.int64())) + start), _to_numpy(marks)
            start += len(batch)


class Source(NamedTuple):
    """The rows that have the values of one column: ``targets`` are the numbers of the rows that lack them."""

    targets: Numbers
    files: Numbers
    positions: Numbers


class Histories:
    """The rows of the keys with gaps, and of the old keys of those that events have given another one."""

    def __init__(self, gaps: Gaps, reader: RowReader, loaded: Iterable[pa.Table]) -> None:
        """Take the rows of the load, which are given a second time with those of the table."""
        self._gaps, self._keys, self._orders = gaps, reader.keys, list(reader.orders)
        self._tables, self._next = list[pa.Table](), 0
        self._moved_orders: pa.Table | None = None
        if any(gaps.moved):
            of_moved = (rows.select(self._orders).filter(pa.array(self._find_moved(rows))) for rows in loaded)
            self._moved_orders = pa.concat_tables(of_moved)

    def _find_moved(self, rows: pa.Table) -> Flags:
        return _look_up(self._gaps.moved, self._gaps.find_marks(rows))

    def add(self, loaded: pa.Table, others: pa.Table, newest: Flags) -> None:
        """Add those of the rows of some keys that belong to a history; ``newest`` says which of the load's rows win."""
        marks, keys = self._gaps.find_marks(loaded), _to_numpy(loaded[KEY])
        has_gaps = np.zeros(int(keys.max(initial=_NONE)) + 1, np.bool_)
        has_gaps[keys[marks != _NONE]] = True
        if self._moved_orders is not None:
            deleted = loaded.filter(loaded[DELETED]).select([KEY, *self._orders])
            old = deleted.join(self._moved_orders, self._orders, join_type="left semi")
            has_gaps[_to_numpy(old[KEY])] = True
        columns = {_MARK: pa.array(marks), _IS_LOADED: pa.repeat(True, len(loaded)), _STAYS: pa.array(newest)}
        for name, values in columns.items():
            loaded = loaded.append_column(name, values)
        names = [KEY, *self._orders, DELETED, FILE, POSITION]
        of_load = loaded.select([*names, *columns, *self._keys]).filter(pa.array(has_gaps[keys]))
        of_table = others.select(names).filter(pa.array(has_gaps[_to_numpy(others[KEY])]))
        rows = pa.concat_tables([of_load, of_table], promote_options="default")
        number = pc.add(rows[KEY].cast(pa.int64()), self._next)
        self._tables.append(rows.set_column(rows.schema.get_field_index(KEY), KEY, number))
        self._next += len(has_gaps)

    def find_filling(self, intent: Load) -> "Filling | None":
        """Return how the rows are filled that lack values and stay; None where there are none.

        Raises:
            PendingUnrecoverableError: No earlier event and no row of the table has a value that a row lacks.
        """
        histories = _Sorted(pa.concat_tables(self._tables), self._gaps, self._orders)
        targets = histories.find_targets()
        if not len(targets):
            return None
        sources = {}
        for column in sorted(frozenset().union(*self._gaps.lacking)):
            lacking, having = histories.find_sources(column, targets)
            # Rule nothing-is-guessed
            if len(absent := np.flatnonzero(having == _NONE)):
                row = int(targets[lacking[absent[0]]])
                key = ", ".join(repr(histories.rows[name][row].as_py()) for name in self._keys)
                raise _make_error(intent, column, len(absent), key)
            if len(lacking):
                sources[column] = Source(lacking, *histories.locate(having))
        return Filling(histories.locate(targets), sources)


class _Sorted:
    """The rows of some keys, sorted by key and order."""

    def __init__(self, rows: pa.Table, gaps: Gaps, orders: Sequence[str]) -> None:
        self._gaps, self._orders = gaps, list(orders)
        rows = rows.set_column(rows.schema.get_field_index(_MARK), _MARK, pc.fill_null(rows[_MARK], _NONE))
        by = [KEY]
        for name in orders:
            rows = rows.append_column(f"{name} is valid", pc.is_valid(rows[name]).cast(pa.int8()))
            by += [f"{name} is valid", name]
        # Of an event that comes again, and the row that it has made before, the row counts.
        rows = rows.append_column("is whole", pc.equal(rows[_MARK], _NONE).cast(pa.int8()))
        by += ["is whole", FILE, POSITION]
        self.rows = rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in by])).combine_chunks()
        numbers = np.arange(len(rows))
        self._is_first = self._find_changes([KEY])
        self._first = np.maximum.accumulate(np.where(self._is_first, numbers, 0))
        self._same = np.maximum.accumulate(np.where(self._find_changes([KEY, *orders]), numbers, 0))
        self._marks = _to_numpy(self.rows[_MARK])
        self._is_deleted = _to_numpy(self.rows[DELETED])
        self._is_loaded, self._stays = (
            _to_numpy(pc.fill_null(self.rows[name], False)) for name in (_IS_LOADED, _STAYS)
        )
        self._is_moved = _look_up(gaps.moved, self._marks)
        self._old_row = self._find_old_rows()

    def _find_changes(self, names: Sequence[str]) -> Flags:
        """Return where a row differs from the one before it in these columns."""
        if not len(self.rows):
            return np.zeros(0, np.bool_)
        differs: Flags = _to_numpy(reduce(pc.or_, [differ_from_previous(self.rows[name]) for name in names]))
        return np.concatenate([np.ones(1, np.bool_), differs[1:]])

    def _find_old_rows(self) -> Numbers:
        """Return for each row that an event has given another key the number of the row that deletes the old key.

        PostgreSQL gives each update a position of its own in its log, which both events of a change of the key have. If
        the load has two of either, the position is another connector's, and says nothing.
        """
        numbered = self.rows.select([*self._orders, KEY]).append_column(_ROW, pa.array(np.arange(len(self.rows))))

        def group(is_one: Flags) -> pa.Table:
            rows = numbered.filter(pa.array(is_one & self._is_loaded)).group_by(self._orders)
            grouped = rows.aggregate([(_ROW, "min"), (KEY, "count_distinct")])
            return grouped.filter(pc.equal(grouped[f"{KEY}_count_distinct"], 1)).select([*self._orders, f"{_ROW}_min"])

        created = numbered.filter(pa.array(self._is_moved))
        single = group(self._is_moved).select(self._orders)
        single = single.join(group(self._is_deleted), self._orders, join_type="inner")
        pairs = created.join(single, self._orders, join_type="inner")
        old_rows = np.full(len(self.rows), _NONE)
        old_rows[_to_numpy(pairs[_ROW])] = _to_numpy(pairs[f"{_ROW}_min"])
        return old_rows

    def find_targets(self) -> Numbers:
        """Return the numbers of the rows of the load with gaps that stay, by file and position."""
        rows = np.flatnonzero(self._stays & (self._marks != _NONE))
        files, positions = self.locate(rows)
        return rows[np.lexsort((positions, files))]

    def find_sources(self, column: str, targets: Numbers) -> tuple[Numbers, Numbers]:
        """Return which of the ``targets`` lack a column, and the number of the row that has its value; ``_NONE`` where
        no row is known to have it."""
        lacks = _look_up([column in lacking for lacking in self._gaps.lacking], self._marks)
        # Rows that are passed over are unchanged events between two that say more.
        says = ~lacks | self._is_deleted | self._is_moved | self._is_first
        last = np.maximum.accumulate(np.where(says, np.arange(len(says)), 0))
        wanted = np.flatnonzero(lacks[targets])
        sources, left = np.full(len(wanted), _NONE), np.arange(len(wanted))
        row = targets[wanted]
        while len(left):
            row = np.where(self._is_moved[row], self._old_row[row], row)
            before = self._same[row] - 1
            is_known = (row != _NONE) & (before >= self._first[row])
            row, left = last[before[is_known]], left[is_known]
            # Rule filled-from-no-deleted-row
            is_there = ~self._is_deleted[row]
            row, left = row[is_there], left[is_there]
            has_value = ~lacks[row]
            sources[left[has_value]] = row[has_value]
            row, left = row[~has_value], left[~has_value]
        return wanted, self._leave_other_epochs_out(targets[wanted], sources)

    def _leave_other_epochs_out(self, rows: Numbers, sources: Numbers) -> Numbers:
        """Return the sources without those of another epoch: changes may have been lost between two."""
        epoch = self.rows[self._orders[0]].combine_chunks()
        of_row, of_source = epoch.take(pa.array(rows)), epoch.take(pa.array(np.maximum(sources, 0)))
        is_same = _to_numpy(pc.fill_null(pc.equal(of_row, of_source), False))
        # Rule filled-in-its-epoch
        return np.where(is_same, sources, _NONE)

    def locate(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return the file and the position of rows."""
        return _to_numpy(self.rows[FILE])[rows], _to_numpy(self.rows[POSITION])[rows]


class Filling:
    """The rows of one try of a commit that are filled, and where their values are.

    Args:
        rows: The file and the position of each, in this order.
        sources: The rows that have the values, by column.
    """

    def __init__(self, rows: tuple[Numbers, Numbers], sources: Mapping[str, Source]) -> None:
        self._files, self._positions = rows
        self._sources = sources

    @property
    def rows(self) -> pa.Table:
        """The file and the position of each row, in this order."""
        return pa.table({FILE: pa.array(self._files, pa.int32()), POSITION: self._positions})

    @contextmanager
    def open(self, table: Table, schema: Schema, every: Mapping[int, LiveFile]) -> Iterator[Fill]:
        """Read the values into files of this machine, and give what fills rows with them; ``schema`` is that of the
        load's files, ``every`` are the files of the load and of the table by their numbers."""
        columns = tuple(self._sources)
        reader = RowReader(table, schema, MergeIntent(keys=columns, order_by=()))
        with TemporaryDirectory(prefix="lakewriter-values-") as folder, ExitStack() as stack:
            values = {
                label: stack.enter_context(_Values(Path(folder) / label, len(self._files))) for label in reader.keys
            }
            for number in np.unique(np.concatenate([source.files for source in self._sources.values()])):
                self._read_file(reader, every[int(number)].file, int(number), values)
            for of_column in values.values():
                of_column.finish()
            numbers = {live.file.file_path: number for number, live in every.items()}
            by_column = dict(zip(columns, values.values(), strict=True))
            yield lambda file, rows, positions: self._fill(rows, numbers[file.file_path], positions, by_column)

    def _read_file(self, reader: RowReader, file: DataFile, number: int, values: "Mapping[str, _Values]") -> None:
        wanted = {}
        for label, source in zip(reader.keys, self._sources.values(), strict=True):
            of_file = np.flatnonzero(source.files == number)
            of_file = of_file[np.argsort(source.positions[of_file], kind="stable")]
            wanted[label] = pa.array(source.positions[of_file])
            values[label].expect(source.targets[of_file])
        for label, of_batch in reader.read_values(file, wanted):
            values[label].write(of_batch)

    def _fill(
        self, rows: pa.RecordBatch, file: int, positions: pa.Array, values: "Mapping[str, _Values]"
    ) -> pa.RecordBatch:
        first, end = np.searchsorted(self._files, [file, file + 1])
        wanted = _to_numpy(positions)
        numbers = first + np.searchsorted(self._positions[first:end], wanted)
        is_target = (numbers < end) & (self._positions[np.minimum(numbers, len(self._positions) - 1)] == wanted)
        for column, of_column in values.items():
            index = rows.schema.get_field_index(column)
            filled = of_column.fill(rows.column(index), np.where(is_target, numbers, _NONE))
            rows = rows.set_column(index, rows.schema.field(index), filled)
        # They lack nothing any more.
        return rows.select([name for name in rows.schema.names if name != UNCHANGED])


class _Values(AbstractContextManager["_Values"]):
    """The values of one column for some of ``count`` rows, in a file: they may be larger than the memory."""

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._offsets, self._written = path, np.full(count, _NONE), 0
        self._ends = list[int]()
        self._writer: pa.RecordBatchFileWriter | None = None
        self._file: pa.MemoryMappedFile | None = None
        self._reader: pa.RecordBatchFileReader | None = None

    def __exit__(self, *exception: object) -> None:
        for opened in (self._writer, self._file):
            if opened is not None:
                opened.close()

    def expect(self, rows: Numbers) -> None:
        """Take note of the rows that the next values are of, in their order."""
        self._offsets[rows] = np.arange(self._written, self._written + len(rows))
        self._written += len(rows)

    def write(self, values: pa.Array) -> None:
        """Write the next values."""
        batch = pa.record_batch({"value": values})
        if self._writer is None:
            self._writer = pa.ipc.new_file(str(self._path), batch.schema)
        self._writer.write_batch(batch)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(values))

    def finish(self) -> None:
        """Make the values readable."""
        assert self._writer is not None
        self._writer.close()
        self._file = pa.memory_map(str(self._path))
        self._writer, self._reader = None, pa.ipc.open_file(self._file)

    def fill(self, lacking: pa.Array, rows: Numbers) -> pa.Array:
        """Return the values of rows: those that lack none as they are. ``_NONE`` stands for such a row."""
        offsets = np.where(rows == _NONE, _NONE, self._offsets[rows])
        filled = np.flatnonzero(offsets != _NONE)
        batches = np.searchsorted(np.array(self._ends), offsets[filled], side="right")
        parts, indices, count = [lacking], np.arange(len(lacking)), len(lacking)
        for number in np.unique(batches):
            of_batch = filled[batches == number]
            assert self._reader is not None
            first = self._ends[number - 1] if number else 0
            part = self._reader.get_batch(int(number)).column(0).take(pa.array(offsets[of_batch] - first))
            parts.append(part.cast(lacking.type))
            indices[of_batch] = np.arange(count, count + len(part))
            count += len(part)
        return pa.concat_arrays(parts).take(pa.array(indices))


def _make_error(intent: Load, column: str, count: int, key: str) -> PendingUnrecoverableError:
    return PendingUnrecoverableError(
        f"load {intent.job_id!r} of table {intent.table_id!r} has {format_count(count, 'row')} without a value in "
        f"column {column!r}, such as that with the key {key}: the database left the unchanged value out, and neither "
        "an earlier event of the load nor the table has the row that it is of.",
        remedy=f"Give the load up: lakewriter abandon LAKE {intent.job_id}. Then have the connector read the rows "
        "again, by an incremental snapshot, and load its events together with these; or have the database log whole "
        "rows, such as by REPLICA IDENTITY FULL.",
    )


def _look_up(values: Sequence[bool], marks: Numbers) -> Flags:
    """Return the value that each mark has, False for ``_NONE``."""
    flags: Flags = np.array([*values, False], np.bool_)[marks]
    return flags


def _to_numpy(values: Any) -> npt.NDArray[Any]:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return np.asarray(array.to_numpy(zero_copy_only=False))
