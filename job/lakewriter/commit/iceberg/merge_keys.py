"""Read the key, the order and the position of rows in the data files of an Iceberg table."""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, reduce
from hashlib import sha256
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThanOrEqual,
    IsNull,
    LessThanOrEqual,
    Or,
)
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import BooleanType

from lakewriter.commit.iceberg.deletion_vectors import LiveFile, is_vector, read_vector
from lakewriter.commit.iceberg.file_io import ClientsFileIO
from lakewriter.commit.iceberg.format3 import find_deleted_from
from lakewriter.commit.iceberg.iceberg_columns import FIELD_ID, shorten_offsets
from lakewriter.commit.iceberg.merge_winners import DELETED, FILE, KEY, POSITION, PRECEDENCE
from lakewriter.encode.parquet_footer import read_sure_bounds
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.naming import ORDINAL_ID
from lakewriter.records.facets import MergeIntent

_DIGEST_BYTES: Final = 7
_ABOVE_DIGESTS: Final = 256**_DIGEST_BYTES
ROWS: Final = 131_072
"""The rows of a file that are compared with the load's keys at a time."""
_FEW_KEYS: Final = 2**14
"""Keys between which row groups may lie."""
_FAR_MORE: Final = 4
_LEAST_BITS: Final = 10
"""The bits of a hash of few keys; that of many has so many that one of eight hashes is theirs at most."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
"""2**64 by the golden ratio: keys side by side, and multiples of one number, get hashes far from one another."""
FEW_ROWS: Final = 8_192
"""Whole rows, or values of any length, that are held at a time."""


class RowReader:
    """Reads the columns that a merge depends on, found by their field ids: a file may have earlier names and types.

    The tables that it yields have a column for each of ``keys`` and ``orders``, ``deleted`` and ``position``.
    """

    def __init__(self, table: Table, schema: Schema, merge: MergeIntent) -> None:
        self._table, self._io = table, table.io
        self.keys = tuple(f"key{number}" for number in range(len(merge.keys)))
        self.orders = tuple(f"order{number}" for number in range(len(merge.order_by)))
        names = dict(zip((*self.keys, *self.orders), (*merge.keys, *merge.order_by), strict=True))
        # Rule changes-of-the-whole-table
        self.required_keys = () if merge.is_history else self.keys
        """The keys without which a row is merged with none. Of a history, which has a row of each key for each order,
        a null is a value: an order is null, or a row has no key, since it stands for a change of the whole table."""
        if merge.deleted is not None:
            names[DELETED] = merge.deleted
        self._ids = {label: schema.find_field(name, case_sensitive=False).field_id for label, name in names.items()}
        self._types = {label: self._find_type(label, names[label]) for label in names}

    def describe_fields(self) -> str:
        """Return the ids of the table's fields that are the keys and orders, as JSON."""
        return json.dumps([[self._ids[label] for label in labels] for labels in (self.keys, self.orders)])

    def _find_type(self, label: str, name: str) -> pa.DataType:
        """Return the type that the table has for the column now."""
        schema, field_id = self._table.schema(), self._ids[label]
        if schema.find_column_name(field_id) is None:
            raise SchemaIncompatibleError(
                f"Iceberg table {'.'.join(self._table.name())} has lost column {name!r}, which its rows are merged by.",
                remedy="Roll the table's schema back, or give the load up: lakewriter abandon LAKE JOB.",
            )
        return shorten_offsets(schema_to_pyarrow(Schema(schema.find_field(field_id)), include_field_ids=False)[0].type)

    def make_filter(self, keys: pa.Table) -> BooleanExpression:
        """Return a condition on files that may have one of the keys, by the bounds of each key column.

        A file's partition excludes it only where this follows from the keys: a row's partition may change.
        """
        schema, condition = self._table.schema(), cast("BooleanExpression", AlwaysTrue())
        for label in self.keys:
            name, bounds = str(schema.find_column_name(self._ids[label])), pc.min_max(keys[label])
            if not len(keys) or isinstance(schema.find_type(self._ids[label]), BooleanType):
                continue
            ways = list[BooleanExpression]()
            if bounds["min"].is_valid:
                lowest, highest = (bounds[end].as_py() for end in ("min", "max"))
                ways.append(And(GreaterThanOrEqual(term=name, value=lowest), LessThanOrEqual(term=name, value=highest)))
            if keys[label].null_count:
                ways.append(IsNull(term=name))
            condition = And(condition, reduce(Or, ways))
        return condition

    def read(self, file: DataFile, keys: "KeySet | None" = None) -> Iterator[pa.Table]:
        """Read the rows of a file, some at a time; with ``keys`` of those row groups that may have one of them."""
        if file.file_format != FileFormat.PARQUET:
            raise SchemaIncompatibleError(
                f"Iceberg table {'.'.join(self._table.name())} has file {file.file_path}, whose format is "
                f"{file.file_format.value}; rows are merged with those of Parquet files.",
                remedy="Rewrite the table's files as Parquet (Spark: CALL system.rewrite_data_files).",
            )
        with pq.ParquetFile(open_parquet(self._io, file), pre_buffer=True) as parquet:
            names, start = self.find_names(parquet.schema_arrow, file), 0
            columns, groups = sorted(set(names.values())), range(parquet.num_row_groups)
            selected = groups if keys is None else keys.select_groups(parquet, names)
            for group in groups:
                if group not in selected:
                    start += parquet.metadata.row_group(group).num_rows
                    continue
                for batch in parquet.iter_batches(batch_size=ROWS, row_groups=[group], columns=columns):
                    rows = self._take_columns(batch, names, file, start)
                    # Rule keys-of-the-file
                    start += len(batch)
                    yield rows.select(self.schema.names).cast(self.schema)

    def read_ordinals(self, file: DataFile, positions: pa.ChunkedArray) -> Iterator[int] | None:
        """Return the ordinal of each row at these positions, which are sorted; None if the file has none."""
        with pq.ParquetFile(open_parquet(self._io, file), pre_buffer=True) as parquet:
            name = find_column(parquet, ORDINAL_ID)
            column = None if name is None else parquet.read([name]).column(name)
        return None if column is None else iter(column.take(positions).to_pylist())

    def read_values(self, file: DataFile, wanted: Mapping[str, pa.Array]) -> Iterator[tuple[str, pa.Array]]:
        """Yield the values of columns, by their labels, at the sorted positions that are ``wanted`` of each: in their
        order, some at a time."""
        with pq.ParquetFile(open_parquet(self._io, file), pre_buffer=True) as parquet:
            names = self.find_names(parquet.schema_arrow, file)
            for label, positions in wanted.items():
                if label in names:
                    for rows, _ in iterate_rows(parquet, positions, [names[label]]):
                        yield label, rows.column(0).cast(self._types[label])
                else:
                    constant = self.find_constant(self._ids[label], self._types[label], file)
                    yield label, pa.repeat(constant, len(positions))

    def digest_rows(self, file: DataFile, positions: pa.ChunkedArray, columns: Collection[str]) -> Iterator[int]:
        """Yield the digest of the values that each row at these positions has in ``columns``, as a number below
        ``_ABOVE_DIGESTS``; ``positions`` are sorted."""
        wanted = {name.lower() for name in columns}
        with pq.ParquetFile(open_parquet(self._io, file), pre_buffer=True) as parquet:
            names = sorted(name for name in parquet.schema_arrow.names if name.lower() in wanted)
            for rows, _ in iterate_rows(parquet, positions.combine_chunks(), names):
                yield from (_digest(row) for row in rows.to_pylist())

    def _take_columns(self, batch: pa.RecordBatch, names: dict[str, str], file: DataFile, start: int) -> pa.Table:
        columns: dict[str, Any] = {}
        for label, type_ in self._types.items():
            if label in names:
                columns[label] = batch.column(names[label]).cast(type_)
            else:
                columns[label] = pa.repeat(self.find_constant(self._ids[label], type_, file), len(batch))
        columns[DELETED] = pc.fill_null(columns.get(DELETED, pa.repeat(False, len(batch))), False)
        columns[POSITION] = pa.arange(start, start + len(batch))
        return pa.table(columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows that are read."""
        types = {DELETED: pa.bool_()} | self._types | {POSITION: pa.int64()}
        return pa.schema([(label, types[label]) for label in (*self.keys, *self.orders, DELETED, POSITION)])

    def find_names(self, schema: pa.Schema, file: DataFile) -> dict[str, str]:
        """Return the names that a file has for the columns; those that it lacks are left out."""
        by_id = {int(field.metadata[FIELD_ID]): field.name for field in schema if FIELD_ID in (field.metadata or {})}
        if not by_id:
            mapping = self._table.name_mapping()
            if mapping is None:
                raise SchemaIncompatibleError(
                    f"File {file.file_path} of Iceberg table {'.'.join(self._table.name())} has no field ids, and the "
                    "table no name mapping.",
                    remedy="Set schema.name-mapping.default, or rewrite the file.",
                )
            ids = {name: field.field_id for field in mapping for name in field.names}
            by_id = {field_id: name for name in schema.names if (field_id := ids.get(name)) is not None}
        return {label: by_id[field_id] for label, field_id in self._ids.items() if field_id in by_id}

    def find_constant(self, field_id: int, type_: pa.DataType, file: DataFile) -> pa.Scalar:
        """Return the value that all rows of a file have in a column that it lacks: that of its partition, or null."""
        for position, field in enumerate(self._table.specs()[file.spec_id].fields):
            if field.source_id == field_id and isinstance(field.transform, IdentityTransform):
                value = file.partition[position]
                if isinstance(value, int) and pa.types.is_temporal(type_):
                    return pa.scalar(value, pa.int32() if pa.types.is_date32(type_) else pa.int64()).cast(type_)
                return pa.scalar(value, type_)
        return pa.scalar(None, type_)


class KeySet:
    """The keys of a load. Each has a number from 0, in the order in which they come.

    The values of a first column are numbered by themselves, then its numbers together with the values of the next one.
    """

    def __init__(self, steps: Sequence[tuple[str, pa.Array, pa.Array | None]]) -> None:
        """Take each column's name, values, and pairs of a number of the columns before and a value's number."""
        self._steps = steps

    def __len__(self) -> int:
        _, values, pairs = self._steps[-1]
        return len(values if pairs is None else pairs)

    def select_rows(self, rows: pa.Table) -> pa.Table:
        """Return those rows that have one of the keys, with its number, without the columns of the key."""
        rows = self._drop_most_others(rows)
        numbers = self._find(rows)
        rows = rows.drop_columns([name for name, _, _ in self._steps]).append_column(KEY, numbers)
        return rows.filter(pc.is_valid(numbers))

    def select_others(self, rows: pa.Table) -> pa.Table:
        """Return the rows that have none of the keys."""
        return rows.filter(pc.is_null(self._find(rows)))

    def select_groups(self, parquet: pq.ParquetFile, names: Mapping[str, str]) -> list[int]:
        """Return the row groups of a file that may have one of the keys; ``names`` are what it calls their columns."""
        name, values, _ = self._steps[0]
        file, every = parquet.metadata, range(parquet.num_row_groups)
        columns = [at for at in range(file.num_columns) if file.schema.column(at).path == names.get(name)]
        # A column of a struct may have the same path as one whose name has a dot.
        if len(columns) != 1 or parquet.schema_arrow.field(names[name]).type != values.type:
            return list(every)
        # The bounds of floats leave NaN out. Python has no years above 9999.
        if pa.types.is_floating(values.type) or pa.types.is_temporal(values.type):
            return list(every)
        [column], ordered = columns, self._sorted_values

        def may_have(statistics: pq.Statistics | None) -> bool:
            bounds = read_sure_bounds(statistics)
            if statistics is None or bounds is None or (values.null_count and statistics.null_count != 0):
                return True
            at = bisect_left(ordered, bounds[0])
            return at < len(ordered) and ordered[at if len(values) <= _FEW_KEYS else 0] <= bounds[1]

        # Rule groups-by-their-bounds
        return [number for number in every if may_have(file.row_group(number).column(column).statistics)]

    @cached_property
    def _sorted_values(self) -> list[Any]:
        """Return the first column's values in their order; of many the least and the greatest, since to sort those
        takes longer than to read row groups for nothing."""
        values = self._steps[0][1].drop_null()
        return values.sort().to_pylist() if len(values) <= _FEW_KEYS else list(pc.min_max(values).as_py().values())

    def _drop_most_others(self, rows: pa.Table) -> pa.Table:
        """Return those rows that have the hash of one of the first column's values, if these are integers and far
        fewer: most rows of a large table have none, and to look each up takes longer."""
        name, values, _ = self._steps[0]
        if not pa.types.is_integer(values.type) or len(rows) < _FAR_MORE * len(values):
            return rows
        bits = len(self._has_hash).bit_length() - 1
        has_hash = [self._has_hash[_hash(chunk, bits)] for chunk in rows[name].chunks]
        return rows.filter(pa.chunked_array(has_hash, pa.bool_()))

    @cached_property
    def _has_hash(self) -> Any:
        """Return for each hash whether one of the first column's values has it."""
        values = self._steps[0][1]
        bits = max(_LEAST_BITS, (8 * len(values)).bit_length())
        has_hash = np.zeros(1 << bits, bool)
        has_hash[_hash(values, bits)] = True
        return has_hash

    def _find(self, rows: pa.Table) -> pa.ChunkedArray:
        numbers: Any = None
        for name, values, pairs in self._steps:
            codes = pc.index_in(rows[name], value_set=values)
            numbers = codes if pairs is None else pc.index_in(_pair(numbers, codes, len(values)), value_set=pairs)
        return numbers


def _hash(values: pa.Array, bits: int) -> Any:
    """Return a number of so many bits for each integer; that of a null is that of 0."""
    integers = pc.fill_null(values, 0).cast(pa.int64()).to_numpy().view(np.uint64)
    return ((integers * _FACTOR) >> np.uint64(64 - bits)).view(np.int64)


def number_keys(rows: pa.Table, keys: Sequence[str]) -> tuple[KeySet, pa.ChunkedArray]:
    """Return the keys of rows, and the number of each row's key. A null is a value of its own."""
    steps, numbers = list[tuple[str, pa.Array, pa.Array | None]](), None
    for name in keys:
        values, codes = _encode(rows[name])
        if numbers is None:
            pairs, numbers = None, codes
        else:
            pairs, numbers = _encode(_pair(numbers, codes, len(values)))
        steps.append((name, values, pairs))
    return KeySet(steps), numbers


def _pair(numbers: pa.ChunkedArray, others: pa.ChunkedArray, count: int) -> pa.ChunkedArray:
    return pc.add(pc.multiply(numbers.cast(pa.int64()), count), others.cast(pa.int64()))


def _encode(column: pa.ChunkedArray) -> tuple[pa.Array, pa.ChunkedArray]:
    """Return the different values of a column, and which of them each row has."""
    encoded = column.dictionary_encode(null_encoding="encode")
    indices = pa.chunked_array([chunk.indices for chunk in encoded.chunks], pa.int32())
    return encoded.chunks[-1].dictionary if encoded.chunks else pa.array([], column.type), indices


def rank_alike(rows: pa.Table, reader: RowReader, files: Sequence[DataFile], columns: Collection[str]) -> pa.Table:
    """Return the rows of a load with ranks that every attempt gives them, whatever order they are written in.

    Of the rows of one key and order the one with the highest ordinal comes last. Where the files have no ordinals those
    that delete come last, then those with the highest digest of the values in ``columns``. Files are read again only
    where there are such rows.
    """
    numbers = rows[KEY].to_numpy()
    [several] = np.nonzero(np.bincount(numbers)[numbers] > 1)
    if not len(several):
        return rows
    alike = rows.take(several).append_column("number", pa.array(several))
    groups = alike.group_by([KEY, *reader.orders]).aggregate([("number", "list")])["number_list"]
    tied = rows.append_column("number", pa.arange(0, len(rows)))
    tied = tied.take(groups.filter(pc.greater(pc.list_value_length(groups), 1)).combine_chunks().flatten())
    ranks = np.zeros(len(rows), np.int64)
    for number, file in enumerate(files):
        of_file = tied.filter(pc.equal(tied[FILE], number)).sort_by(POSITION)
        indices = of_file["number"].to_numpy()
        # Rule row-further-down
        if not len(indices) or (of_rows := reader.read_ordinals(file, of_file[POSITION])) is None:
            deletes = of_file[DELETED].to_pylist()
            digests = reader.digest_rows(file, of_file[POSITION], columns) if len(indices) else ()
            of_rows = (rank + _ABOVE_DIGESTS * delete for rank, delete in zip(digests, deletes, strict=True))
        ranks[indices] = list(of_rows)
    return rows.set_column(rows.schema.get_field_index(PRECEDENCE), PRECEDENCE, pa.array(ranks))


def _digest(row: Mapping[str, Any]) -> int:
    return int.from_bytes(sha256(repr(sorted(row.items())).encode()).digest()[:_DIGEST_BYTES])


def iterate_rows(
    parquet: pq.ParquetFile, positions: pa.Array, columns: Sequence[str] | None = None
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Yield the rows at sorted positions of a file, some at a time, with their positions. Row groups that have none of
    them are not read."""
    end = 0
    for group in range(parquet.num_row_groups):
        start, end = end, end + parquet.metadata.row_group(group).num_rows
        if not pc.any(_is_within(positions, start, end)).as_py():
            continue
        for batch in parquet.iter_batches(batch_size=FEW_ROWS, row_groups=[group], columns=columns):
            of_batch = positions.filter(_is_within(positions, start, start + len(batch)))
            if len(of_batch):
                yield batch.take(pc.subtract(of_batch, start)), of_batch
            start += len(batch)


def _is_within(positions: pa.Array, start: int, end: int) -> pa.Array:
    return pc.and_(pc.greater_equal(positions, start), pc.less(positions, end))


def find_column(parquet: pq.ParquetFile, field_id: int) -> str | None:
    """Return the name of a file's column with a field id; None where the file has none."""
    ids = {(field.metadata or {}).get(FIELD_ID): field.name for field in parquet.schema_arrow}
    return ids.get(str(field_id).encode())


def open_parquet(io: Any, file: DataFile) -> Any:
    """Open a Parquet file that is read in parts."""
    assert isinstance(io, ClientsFileIO)
    return pa.PythonFile(io.open_parts(file.file_path, file.file_size_in_bytes), mode="r")


class AppliedDeletes:
    """The rows that files with deletes name; such a file may apply to many data files, and is read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str | None], dict[str, pa.Array]] = {}

    def is_of(self, file: DataFile, paths: Collection[str]) -> bool:
        """Return whether a file with deletes that was read names no data files but those at ``paths``."""
        named = self._read.get((file.file_path, None))
        return named is not None and named.keys() <= set(paths)

    def find(self, io: Any, live: LiveFile) -> pa.Array:
        """Return the positions in a data file that the files with deletes name that apply to it."""
        path, positions = live.file.file_path, [pa.array([], pa.int64())]
        for file in live.deletes:
            key = (file.file_path, path if is_vector(file) else None)
            if key not in self._read:
                self._read[key] = read_gone(io, file)
            if path in self._read[key]:
                positions.append(self._read[key][path])
        return pa.concat_arrays(positions)


def read_gone(io: Any, file: DataFile) -> dict[str, pa.Array]:
    """Return the positions that a file with deletes names, by the data file that they are in."""
    if is_vector(file):
        return {str(find_deleted_from(file)): read_vector(io, file)}
    if file.file_format != FileFormat.PARQUET:
        raise SchemaIncompatibleError(
            f"{file.file_path} has deletes in the format {file.file_format.value}; expected Parquet.",
            remedy="Rewrite the table's files (Spark: CALL system.rewrite_data_files), which applies deletes.",
        )
    positions = defaultdict[str, list[pa.Array]](list)
    source = open_parquet(io, file)
    with pq.ParquetFile(source, pre_buffer=True, read_dictionary=["file_path"]) as parquet:
        for batch in parquet.iter_batches(batch_size=ROWS, columns=["file_path", "pos"]):
            paths, gone = batch.column("file_path"), batch.column("pos").cast(pa.int64())
            # A batch a minute leaves files that name a few rows of each of many data files.
            codes = pc.fill_null(paths.indices, -1).to_numpy()
            order = np.argsort(codes, kind="stable")
            gone = gone.take(pa.array(order))
            for code, start, count in zip(*np.unique(codes[order], return_index=True, return_counts=True), strict=True):
                if code >= 0:
                    positions[paths.dictionary[code].as_py()].append(gone.slice(start, count))
    return {path: pa.concat_arrays(parts) for path, parts in positions.items()}
