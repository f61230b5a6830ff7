"""Read Parquet: pieces are row groups, types are those of the footer, and every page's checksum is compared."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.files.columnar import BY_SPARK, ColumnIndexes, look_at_columns, make_look, open_ranges
from lakewriter.source.files.file_reader import Look, Piece, Spread
from lakewriter.source.files.int96 import UNITS
from lakewriter.source.files.parquet_types import StoredColumn, UnreadTypeError, list_columns
from lakewriter.source.files.spark_options import Options
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.files.stored_values import Converted, convert_column

_BATCH_BYTES: Final = 16 * 1024 * 1024
_BATCH_ROWS: Final = 65_536
_LEAST_BATCH_ROWS: Final = 1024


@dataclass(frozen=True)
class RowGroup:
    """The offset of a row group, its size in bytes, and its rows."""

    start: int
    size: int
    rows: int


@dataclass(frozen=True)
class ParquetLayout:
    """The row groups of a file, or of a piece of a file.

    ``first_group`` is the number of the first of them in the file, and ``first_row`` that of its first row. With
    ``is_exact`` the case of column names matters.
    """

    groups: tuple[RowGroup, ...]
    first_group: int = 0
    first_row: int = 0
    is_exact: bool = False


@dataclass(frozen=True)
class ParquetReader:
    """The settings of a source of Parquet; ``columns`` are the declared ones."""

    columns: pa.Schema | None = None
    truncates: bool = False
    has_lines: ClassVar[bool] = False

    @classmethod
    def make(cls, options: Options, columns: pa.Schema | None) -> "ParquetReader":
        """Return the reader that the options ask for."""
        return cls(columns, options.truncates_nanoseconds)

    def look(self, files: Sequence[StoredFile], table: str, spread: Spread) -> Look:
        """See ``FileReader``."""
        del spread
        merged, described = look_at_columns("parquet", files, table, self._describe, self.columns)
        return make_look(merged, described)

    def _describe(self, file: StoredFile) -> tuple[pa.Schema, ParquetLayout]:
        with open_ranges(file, is_small=False) as source:
            footer = pq.read_metadata(source)
            columns = list_stored_columns(footer, file.path, truncates=self.truncates)
        schema = pa.schema([pa.field(column.name, column.conversion.kind) for column in columns])
        groups = (footer.row_group(index) for index in range(footer.num_row_groups))
        return schema, ParquetLayout(tuple(map(_measure, groups)))

    def read_stored_types(self, file: StoredFile) -> pa.Schema:
        """Return the columns with the types of the file."""
        with open_ranges(file, is_small=False) as source:
            return pq.read_schema(source)

    def cut(self, look: Look, size: int, spread: Spread) -> list[Piece]:
        """See ``FileReader``."""
        del spread
        return [piece for file, layout in look.files for piece in _cut_file(file, layout, size)]

    def count(self, piece: Piece) -> int:
        """See ``FileReader``."""
        return sum(group.rows for group in piece.layout.groups)

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See ``FileReader``."""
        layout, path = piece.layout, piece.file.path
        with open_ranges(piece.file) as source:
            footer = pq.read_metadata(source)
            columns = list_stored_columns(footer, path, truncates=self.truncates)
            indexes = ColumnIndexes.find(schema, [column.name for column in columns], is_exact=layout.is_exact)
            row = layout.first_row
            for number in range(layout.first_group, layout.first_group + len(layout.groups)):
                expected = row + footer.row_group(number).num_rows
                for count, converted in _read_group(source, footer, number, columns, indexes):
                    yield indexes.make_batch(path, row, count, converted)
                    row += count
                if row != expected:
                    raise OSError(f"a column of row group {number} has {row - expected:+} rows than its footer says")

    def find_line(self, piece: Piece, offset: int) -> int | None:
        """See ``FileReader``."""
        del piece, offset
        return None


def list_stored_columns(footer: pq.FileMetaData, path: str, *, truncates: bool) -> list[StoredColumn]:
    """Return the columns of a file. Raise ``SCHEMA_INCOMPATIBLE`` for a column whose type is not read."""
    try:
        return list_columns(footer, truncates=truncates)
    except UnreadTypeError as error:
        raise SchemaIncompatibleError(f"{path!r}: {error}.", remedy=error.remedy) from error
    except pa.ArrowException as error:
        raise SchemaIncompatibleError(f"{path!r}: its columns cannot be read: {error}.", remedy=BY_SPARK) from error


def _measure(group: pq.RowGroupMetaData) -> RowGroup:
    chunks = [group.column(index) for index in range(group.num_columns)]
    starts = [
        min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
        if chunk.has_dictionary_page
        else chunk.data_page_offset
        for chunk in chunks
    ]
    return RowGroup(min(starts, default=0), sum(chunk.total_compressed_size for chunk in chunks), group.num_rows)


def _cut_file(file: StoredFile, layout: ParquetLayout, size: int) -> Iterator[Piece]:
    first, row = 0, 0
    while first < len(layout.groups):
        last, filled = first, 0
        while last < len(layout.groups) and (last == first or filled + layout.groups[last].size <= size):
            filled += layout.groups[last].size
            last += 1
        groups = layout.groups[first:last]
        rows = sum(group.rows for group in groups)
        part = replace(layout, groups=groups, first_group=first, first_row=row)
        if rows:
            yield Piece(file, groups[0].start, groups[0].start + filled, part, rows=rows)
        first, row = last, row + rows


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
