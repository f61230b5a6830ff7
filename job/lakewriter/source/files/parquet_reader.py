"""Read Parquet: pieces are row groups, types are those of the footer, and every page's checksum is compared."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.files.columnar import (
    BY_SPARK,
    ColumnIndexes,
    PartsLayout,
    PartsReader,
    open_ranges,
)
from lakewriter.source.files.file_reader import Part, Piece
from lakewriter.source.files.parquet_types import UNITS, StoredColumn, UnreadTypeError, list_columns
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.files.stored_values import Converted, convert_column

_BATCH_BYTES: Final = 16 * 1024 * 1024
_BATCH_ROWS: Final = 65_536
_LEAST_BATCH_ROWS: Final = 1024


class ParquetReader(PartsReader):
    """The settings of a source of Parquet."""

    form = "parquet"

    def _describe(self, file: StoredFile) -> tuple[pa.Schema, PartsLayout]:
        with open_ranges(file, is_small=False) as source:
            footer = pq.read_metadata(source)
            columns = list_stored_columns(footer, file.path, truncates=self.truncates)
        schema = pa.schema([pa.field(column.name, column.conversion.kind) for column in columns])
        groups = (footer.row_group(index) for index in range(footer.num_row_groups))
        return schema, PartsLayout(tuple(map(_measure, groups)))

    def read_stored_types(self, file: StoredFile) -> pa.Schema:
        """Return the columns with the types of the file."""
        with open_ranges(file, is_small=False) as source:
            return pq.read_schema(source)

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See ``FileReader``."""
        layout, path = piece.layout, piece.file.path
        with open_ranges(piece.file) as source:
            footer = pq.read_metadata(source)
            columns = list_stored_columns(footer, path, truncates=self.truncates)
            indexes = ColumnIndexes.find(schema, [column.name for column in columns], is_exact=layout.is_exact)
            row = layout.first_row
            for number in range(layout.first, layout.first + len(layout.parts)):
                expected = row + footer.row_group(number).num_rows
                for count, converted in _read_group(source, footer, number, columns, indexes):
                    yield indexes.make_batch(path, row, count, converted)
                    row += count
                if row != expected:
                    raise OSError(f"a column of row group {number} has {row - expected:+} rows than its footer says")


def list_stored_columns(footer: pq.FileMetaData, path: str, *, truncates: bool) -> list[StoredColumn]:
    """Return the columns of a file. Raise ``SCHEMA_INCOMPATIBLE`` for a column whose type is not read."""
    try:
        return list_columns(footer, truncates=truncates)
    except UnreadTypeError as error:
        raise SchemaIncompatibleError(f"{path!r}: {error}.", remedy=error.remedy) from error
    except pa.ArrowException as error:
        raise SchemaIncompatibleError(f"{path!r}: its columns cannot be read: {error}.", remedy=BY_SPARK) from error


def _measure(group: pq.RowGroupMetaData) -> Part:
    chunks = [group.column(index) for index in range(group.num_columns)]
    starts = [
        min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        if chunk.has_dictionary_page
        else chunk.data_page_offset
        for chunk in chunks
    ]
    return Part(min(starts, default=0), sum(chunk.total_compressed_size for chunk in chunks), group.num_rows)


def _read_group(
    source: pa.NativeFile,
    footer: pq.FileMetaData,
    number: int,
    columns: Sequence[StoredColumn],
    indexes: ColumnIndexes,
) -> Iterator[tuple[int, dict[int, Converted]]]:
    """Yield the number of rows in each batch of a row group, and its columns by their indexes in the file."""
    asked = sorted({index for index in indexes.indexes if index is not None})
    special = [index for index in asked if columns[index].has_int96]
    size = _choose_batch_rows(footer.row_group(number))
    read = partial(_read_columns, source, footer, number, columns, size)
    finer = zip(*(read(special, unit) for unit in UNITS[1:]), strict=True) if special else repeat(())
    for (count, arrays), more in zip(read(asked, UNITS[0]), finer, strict=False):
        converted = {}
        for index, array in arrays.items():
            readings = [array, *(other[index] for _, other in more if index in other)]
            converted[index] = convert_column(columns[index].conversion, columns[index].name, readings)
        yield count, converted


def _read_columns(
    source: pa.NativeFile,
    footer: pq.FileMetaData,
    number: int,
    columns: Sequence[StoredColumn],
    size: int,
    asked: Sequence[int],
    unit: str,
) -> Iterator[tuple[int, dict[int, pa.Array]]]:
    """Yield the number of rows in each batch of a row group, and the arrays of some columns by their indexes."""
    # One row group a call: Arrow fetches all of the request before the first batch.
    file = pq.ParquetFile(
        source, metadata=footer, coerce_int96_timestamp_unit=unit, page_checksum_verification=True,
        arrow_extensions_enabled=False, pre_buffer=isinstance(source, pa.PythonFile),
    )  # fmt: skip
    names = [column.name for column in columns]
    is_all = len(asked) == len(columns) or len(set(names)) < len(names)
    leaves = None if is_all else [leaf for index in asked for leaf in columns[index].leaves]
    for batch in file.iter_batches(size, row_groups=[number], columns=leaves, use_threads=False):
        batch_indexes = (
            range(len(columns)) if is_all else [batch.schema.get_field_index(names[index]) for index in asked]
        )
        wanted = {index: batch.column(batch_indexes[index if is_all else number]) for number, index in enumerate(asked)}
        yield batch.num_rows, wanted


def _choose_batch_rows(group: pq.RowGroupMetaData) -> int:
    width = max(1, int(group.total_byte_size) // max(1, int(group.num_rows)))
    return max(_LEAST_BATCH_ROWS, min(_BATCH_ROWS, _BATCH_BYTES // width))
