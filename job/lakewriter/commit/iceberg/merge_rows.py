"""Hold the rows that a merge judges: the load's, and those of the same keys that its table has.

The rows of a large load are divided by ranges of the key, and kept in a temporary file. They are judged one range
after the other, so that memory does not grow with the load.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile

from lakewriter.commit.iceberg.merge_keys import KeySet, RowReader, number_keys
from lakewriter.commit.iceberg.merge_winners import FILE, KEY, PRECEDENCE
from lakewriter.spec.specification import MIB

PART: Final = 2**20
"""The rows of a load that are judged at a time."""
PENDING: Final = 256 * MIB
"""The bytes of the table's rows that are held until they are looked up among the load's keys: each time the keys of
every part are hashed anew."""
SAMPLED: Final = 1024
"""One of so many rows of a load is looked at to find ranges of the key."""


class Chunks:
    """Tables of one schema, in memory, or in a file that several of these share."""

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self._file = file
        self._tables: list[pa.Table] = []
        self._starts: list[int] = []

    def add(self, rows: pa.Table) -> None:
        """Add a table."""
        if self._file is None:
            self._tables.append(rows)
            return
        start = self._file.seek(0, os.SEEK_END)
        with pa.ipc.new_stream(self._file, rows.schema) as writer:
            writer.write_table(rows)
        self._starts.append(start)

    def __iter__(self) -> Iterator[pa.Table]:
        yield from self._tables
        for start in self._starts:
            assert self._file is not None
            self._file.seek(start)
            with pa.ipc.open_stream(self._file) as reader:
                yield reader.read_all()

    def read(self, schema: pa.Schema) -> pa.Table:
        """Return the rows of all tables."""
        return pa.concat_tables([schema.empty_table(), *self])


@dataclass(eq=False)
class Part:
    """The rows of one range of keys.

    loaded  rows of the load, each with the number of its key
    stored  rows of the same keys, by file and position, in all of the table's files that were read
    before  the keys among these that earlier loads have deleted; None if these were not read yet
    keys    the numbers of the keys; None if they are made again from the rows
    """

    loaded: Chunks
    stored: Chunks
    before: Chunks | None = None
    keys: KeySet | None = None


class MergeRows:
    """The rows of a load in parts, and what was read of the table.

    A data file that was read once is not read again: its rows are kept for later versions of the table.
    """

    def __init__(self, reader: RowReader, files: int, rows: int) -> None:
        """Take how many files and rows the load has."""
        self._reader = reader
        self._count = max(1, -(-rows // PART))
        self._file: IO[bytes] | None = tempfile.TemporaryFile() if self._count > 1 else None  # noqa: SIM115
        self._bounds: list[Mapping[str, Any]] = []
        self._numbers: dict[str, int] = {}
        self._next = files
        self.parts: list[Part] = []
        self.extremes = reader.schema.empty_table().select(reader.keys)
        """Rows with the least and the greatest value that each column of the key has in a part."""
        self.stored_schema = pa.schema([(KEY, pa.int32()), *_list_types(reader, {FILE: pa.int32()})])
        self._loaded_types = [*_list_types(reader, {FILE: pa.int32(), PRECEDENCE: pa.int64()})]

    @property
    def numbers(self) -> Mapping[str, int]:
        """The numbers of the table's files that were read, by their locations."""
        return self._numbers

    def make_chunks(self) -> Chunks:
        """Return room for rows."""
        return Chunks(self._file)

    def fill(self, tables: Iterable[pa.Table], rank: Callable[[pa.Table], pa.Table]) -> None:
        """Take the rows of the load; ``rank`` gives those of a part their ranks."""
        if self._file is None:
            self._number([_gather(tables)], rank)
            return
        # Each row is in two of the three files at most.
        with tempfile.TemporaryFile() as divided:
            with tempfile.TemporaryFile() as whole:
                ranges = self._divide(tables, Chunks(whole), divided)
            self._number(ranges, rank)

    def _number(self, ranges: Sequence[Chunks], rank: Callable[[pa.Table], pa.Table]) -> None:
        keys = self._reader.keys
        schema = pa.schema([*((key, self._reader.schema.field(key).type) for key in keys), *self._loaded_types])
        self.parts = [Part(self.make_chunks(), self.make_chunks()) for _ in ranges]
        for part, rows_of_range in zip(self.parts, ranges, strict=True):
            rows = rows_of_range.read(schema)
            numbered, numbers = number_keys(rows, keys)
            part.loaded.add(rank(rows.append_column(KEY, numbers)))
            if self._file is None:
                part.keys = numbered
            if len(rows):
                self.extremes = pa.concat_tables([self.extremes, _find_extremes(rows, keys)])

    def _divide(self, tables: Iterable[pa.Table], whole: Chunks, divided: IO[bytes]) -> list[Chunks]:
        """Divide the load's rows by ranges of the key that have about as many."""
        samples, keys = [self.extremes], self._reader.keys
        for rows in tables:
            whole.add(rows)
            samples.append(rows.select(keys).take(np.arange(0, len(rows), SAMPLED)))
        sample = pa.concat_tables(samples).sort_by([(key, "ascending") for key in keys])
        firsts = {len(sample) * number // self._count for number in range(1, self._count)} if len(sample) else ()
        self._bounds = [{key: sample[key][first] for key in keys} for first in sorted(firsts)]
        ranges = [Chunks(divided) for _ in range(len(self._bounds) + 1)]
        for rows in whole:
            for of_range, some in zip(ranges, self._split(rows), strict=True):
                of_range.add(some)
        return ranges

    def _split(self, rows: pa.Table) -> list[pa.Table]:
        """Return the rows of each part, in their order."""
        if not self._bounds:
            return [rows]
        numbers = np.zeros(len(rows), np.uint16)
        for bound in self._bounds:
            numbers += _reach(rows, bound)
        rows = rows.take(np.argsort(numbers, kind="stable"))
        ends = np.cumsum(np.bincount(numbers, minlength=len(self._bounds) + 1))
        return [rows.slice(start, end - start) for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def select_range(self, part: Part, rows: pa.Table) -> pa.Table:
        """Return those rows whose keys are in a part's range."""
        number, is_in = self.parts.index(part), np.full(len(rows), True)
        for bound in self._bounds[number - 1 : number] if number else ():
            is_in &= _reach(rows, bound)
        for bound in self._bounds[number : number + 1]:
            is_in &= ~_reach(rows, bound)
        return rows.filter(pa.array(is_in))

    def read_stored(self, files: Iterable[DataFile]) -> None:
        """Read those rows of the table's files that have a key of the load."""
        pending, size, numbers = [list[pa.Table]() for _ in self.parts], 0, dict[str, int]()
        # So many keys that they are in parts are in most row groups.
        keys = self.parts[0].keys if len(self.parts) == 1 else None
        for file in files:
            if file.file_path in self._numbers:
                continue
            # Where reading fails nothing has this number, and the file is read again.
            numbers[file.file_path] = self._next
            self._next += 1
            for rows in self._reader.read(file, keys):
                number = pa.repeat(pa.scalar(numbers[file.file_path], pa.int32()), len(rows))
                for of_part, tables in zip(self._split(rows.append_column(FILE, number)), pending, strict=True):
                    tables.append(of_part)
                size += rows.nbytes
                if size >= PENDING:
                    self._look_up(pending)
                    size = 0
        self._look_up(pending)
        self._numbers |= numbers

    def _look_up(self, pending: Sequence[list[pa.Table]]) -> None:
        for part, tables in zip(self.parts, pending, strict=True):
            if not tables:
                continue
            rows = self.find_keys(part).select_rows(pa.concat_tables(tables))
            if len(rows):
                part.stored.add(rows.select(self.stored_schema.names))
            tables.clear()

    def find_keys(self, part: Part) -> KeySet:
        """Return the numbers of the part's keys."""
        return number_keys(pa.concat_tables(part.loaded), self._reader.keys)[0] if part.keys is None else part.keys


def _list_types(reader: RowReader, others: Mapping[str, pa.DataType]) -> Iterator[tuple[str, pa.DataType]]:
    yield from ((field.name, field.type) for field in reader.schema if field.name not in reader.keys)
    yield from others.items()


def _gather(tables: Iterable[pa.Table]) -> Chunks:
    chunks = Chunks()
    for rows in tables:
        chunks.add(rows)
    return chunks


def _find_extremes(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    ends = dict[str, list[Any]]()
    for key in keys:
        bounds = pc.min_max(rows[key])
        lowest, highest = bounds["min"].as_py(), bounds["max"].as_py()
        ends[key] = [lowest, highest, None if rows[key].null_count else highest]
    return pa.table({key: pa.array(ends[key], rows.schema.field(key).type) for key in keys})


def _reach(rows: pa.Table, bound: Mapping[str, Any]) -> Any:
    """Return whether the key of each row is the ``bound`` or above it."""
    reaches: Any = pa.repeat(True, len(rows))
    for key, value in reversed(list(bound.items())):
        reaches = pc.or_(pc.greater(rows[key], value), pc.and_(pc.equal(rows[key], value), reaches))
    # The comparison with a null is null: a row with one is in the same part, whether of the load or of the table.
    return np.asarray(pc.fill_null(reaches, False))
