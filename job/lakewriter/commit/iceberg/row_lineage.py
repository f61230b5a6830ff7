"""Keep the ids of rows of format version 3 that are written again: see https://iceberg.apache.org/spec/#row-lineage.

A row's id is in its file, or follows from the id of the file's first row. A load's files are written before it is known
which rows they replace. So rows that take the place of others are moved, when the load is committed, into files that
have their ids.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from lakewriter.commit.iceberg.deletion_vectors import LiveFile
from lakewriter.commit.iceberg.format3 import DataFile3
from lakewriter.commit.iceberg.iceberg_columns import FIELD_ID, ManifestStatistics
from lakewriter.commit.iceberg.merge_keys import find_column, iterate_rows, open_parquet
from lakewriter.encode.parquet_footer import read_column_statistics
from lakewriter.spec.specification import MIB

ROW_ID: Final = 2147483540
SEQUENCE: Final = 2147483539
"""The field ids that the specification reserves for a row's id and for the sequence number of its last change."""
FULL: Final = 128 * MIB
"""A file with moved rows of so many bytes is closed, and another one begun: it is held in memory."""
_GROUP: Final = 32 * MIB
"""The bytes of rows that become a row group."""


def make_fields(names: Sequence[str]) -> tuple[pa.Field, pa.Field]:
    """Return the columns of a data file for a row's id and last change; ``names`` are its other columns."""
    return _make_field("_row_id", ROW_ID, names), _make_field("_last_updated_sequence_number", SEQUENCE, names)


def _make_field(name: str, field_id: int, names: Sequence[str]) -> pa.Field:
    while name in names:
        # Readers find it by its id; a column of the table may have its name.
        name += "_"
    return pa.field(name, pa.int64(), True, {FIELD_ID: str(field_id)})


def fill_row_ids(stored: pa.Array, file: DataFile, positions: pa.Array) -> pa.Array:
    """Return the ids of the rows at ``positions`` of a file: those ``stored`` in it, otherwise those that follow from
    the file's first one; null where the table has given none yet, as after an upgrade."""
    first = file.first_row_id if isinstance(file, DataFile3) else None
    return stored if first is None else pc.coalesce(stored, pc.add(positions, first))


def fill_lineage(ids: pa.Array, sequences: pa.Array, live: LiveFile, positions: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the ids of the rows at ``positions`` of a file, and the sequence numbers of their last changes. ``ids``
    and ``sequences`` are those that the file itself has. A row without an id has no number either."""
    ids, of_file = fill_row_ids(ids, live.file, positions), pa.scalar(live.sequence, pa.int64())
    return ids, pc.if_else(pc.is_valid(ids), pc.coalesce(sequences, of_file), pa.scalar(None, pa.int64()))


def read_row_ids(io: Any, file: DataFile, positions: pa.Array) -> pa.Array:
    """Read the ids of the rows at ``positions`` of a data file."""
    with pq.ParquetFile(open_parquet(io, file), pre_buffer=True) as parquet:
        name = find_column(parquet, ROW_ID)
        if name is None:
            stored = pa.nulls(len(positions), pa.int64())
        else:
            stored = parquet.read([name]).column(name).take(positions).combine_chunks()
    return fill_row_ids(stored, file, positions)


Moved = tuple[DataFile, pa.Array, pa.Array | None]
"""Rows of a data file: their sorted positions, and their ids, of which a table below format version 3 has none."""
Fill = Callable[[DataFile, pa.RecordBatch, pa.Array], pa.RecordBatch]
"""Returns rows of a data file, which are at these positions, with the values that they lack."""


class RowMove:
    """Writes rows of a load's files into files of their own, with their ids; ``name`` makes the files' names.

    ``schema`` is that of the load's files.
    """

    def __init__(self, table: Table, schema: Schema, name: Callable[[], str], fill: Fill | None = None) -> None:
        self._table, self._name, self._fill = table, name, fill
        self._statistics = ManifestStatistics(schema)

    def write(self, moved: Sequence[Moved]) -> Iterator[DataFile]:
        """Write the rows: at least one file for each partition. Yield the manifest entries."""
        groups = defaultdict[Record, list[Moved]](list)
        for file, positions, ids in moved:
            groups[file.partition].append((file, positions, ids))
        for partition, group in groups.items():
            yield from self._write_group(group, partition)

    def _write_group(self, group: Sequence[Moved], partition: Record) -> Iterator[DataFile]:
        batches = (batch for file, positions, ids in group for batch in self._read(file, positions, ids))
        joined = _join_rows(batches)
        rows = next(joined, None)
        while rows is not None:
            body, schema = BytesIO(), rows.schema
            with pq.ParquetWriter(body, schema, compression="zstd") as writer:
                # Files of one load may differ in columns that no reader asks for.
                while rows is not None and rows.schema == schema and body.tell() < FULL:
                    writer.write_table(rows)
                    rows = next(joined, None)
            yield self._store(body.getvalue(), partition, group[0][0].spec_id)

    def _read(self, file: DataFile, positions: pa.Array, ids: pa.Array | None) -> Iterator[pa.RecordBatch]:
        done = 0
        with pq.ParquetFile(open_parquet(self._table.io, file), pre_buffer=True) as parquet:
            for batch, of_batch in iterate_rows(parquet, positions):
                rows = batch if self._fill is None else self._fill(file, batch, of_batch)
                if ids is not None:
                    field, _ = make_fields(rows.schema.names)
                    rows = rows.append_column(field, ids.slice(done, len(rows)))
                done += len(rows)
                yield rows

    def _store(self, body: bytes, partition: Record, spec_id: int) -> DataFile:
        location = self._table.location_provider().new_data_location(self._name())
        with self._table.io.new_output(location).create() as output:
            output.write(body)
        metadata = pq.read_metadata(pa.BufferReader(body))
        statistics = self._statistics.convert(read_column_statistics(metadata))
        optional: dict[str, Any] = {name: values or None for name, values in statistics.items()}
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=location,
            file_format=FileFormat.PARQUET,
            partition=partition,
            record_count=metadata.num_rows,
            file_size_in_bytes=len(body),
            **optional,
        )
        file.spec_id = spec_id
        return file


def _join_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield batches of one schema together, in row groups of a fair size."""
    held, size = list[pa.RecordBatch](), 0
    for batch in batches:
        if held and (size >= _GROUP or batch.schema != held[0].schema):
            yield pa.Table.from_batches(held)
            held, size = [], 0
        held.append(batch)
        size += batch.nbytes
    if held:
        yield pa.Table.from_batches(held)
