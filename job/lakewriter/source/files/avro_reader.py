"""Read Avro: pieces are blocks, types are those of the header's schema, and the rows of a block are decoded at once."""

import struct
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, Final

import fastavro
import pyarrow as pa

from lakewriter.avro.container import Header, decompress, read_header, write_long
from lakewriter.source.files.avro_blocks import (
    AvroLayout,
    Block,
    ByteReader,
    cut_files,
    list_blocks,
    open_header,
)
from lakewriter.source.files.avro_types import ROWS, AvroColumns, read_columns
from lakewriter.source.files.columnar import ColumnarReader, ColumnIndexes, name_file
from lakewriter.source.files.file_reader import Look, Piece, Spread
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.files.stored_values import convert_column

_BATCH_ROWS: Final = 16_384
_BATCH_BYTES: Final = 4 * 1024 * 1024
"""The limit for plain rows: as Python objects they take many times as much."""
_UNDECODED: Final = (
    EOFError, IndexError, KeyError, OverflowError, TypeError, ValueError, struct.error, pa.ArrowException,
)  # fmt: skip
"""The errors that decoding raises for bytes that are not rows."""


class AvroReader(ColumnarReader):
    """The settings of a source of Avro."""

    form = "avro"

    def _describe(self, file: StoredFile) -> tuple[pa.Schema, AvroLayout]:
        with name_file(file):
            header, rest = open_header(file)
        columns = read_columns(header, file.path, truncates=self.truncates)
        return columns.schema, AvroLayout(rest.at, header.marker)

    def read_stored_types(self, file: StoredFile) -> pa.Schema:
        """Return the columns with the types of the file."""
        with name_file(file):
            header, _ = open_header(file)
        return read_columns(header, file.path, truncates=self.truncates).stored_schema

    def cut(self, look: Look, size: int, spread: Spread) -> list[Piece]:
        """See ``FileReader``."""
        return cut_files(look.files, size, spread)

    def count(self, piece: Piece) -> int:
        """See ``FileReader``."""
        if piece.rows is not None:
            return piece.rows
        with name_file(piece.file):
            _, blocks = _open(piece)
            return sum(block.rows for block in blocks)

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See ``FileReader``."""
        layout, path = piece.layout, piece.file.path
        with name_file(piece.file):
            header, blocks = _open(piece)
            columns = read_columns(header, path, truncates=self.truncates)
            indexes = ColumnIndexes.find(schema, columns.names, is_exact=layout.is_exact)
            asked = sorted({index for index in indexes.indexes if index is not None})
            row = layout.first_row
            for rows, arrays in _decode(header.codec, columns, asked, blocks):
                converted = {
                    index: convert_column(columns.values[index].conversion, columns.names[index], [array])
                    for index, array in arrays.items()
                }
                yield indexes.make_batch(path, row, rows, converted)
                row += rows


def _open(piece: Piece) -> tuple[Header, Iterator[Block]]:
    """Return the header of a piece's file, and its blocks."""
    reader = ByteReader(piece.file.stream(piece.start, piece.end), piece.start, piece.end)
    header = read_header(reader) if piece.start == 0 else open_header(piece.file)[0]
    return header, list_blocks(reader, piece.end, header.marker)


def _decode(
    codec: str, columns: AvroColumns, asked: Sequence[int], blocks: Iterator[Block]
) -> Iterator[tuple[int, dict[int, pa.Array]]]:
    """Yield the number of rows in each batch, and the requested columns by their indexes."""
    decoder, held, size = columns.make_decoder(), list[dict[str, Any]](), 0
    for block in blocks:
        try:
            plain = decompress(codec, block.packed)
            held += _decode_block(decoder, block.rows, plain)
        except _UNDECODED as error:
            raise ValueError(f"the block at byte {block.start} is damaged: {error or type(error).__name__}") from error
        size += len(plain)
        if len(held) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            yield from _make_arrays(columns, asked, held, block)
            held, size = [], 0
    if held:
        yield from _make_arrays(columns, asked, held, block)


def _decode_block(decoder: Any, rows: int, plain: bytes) -> list[dict[str, Any]]:
    if not rows and not plain:
        return []
    # Decoded as an array whose items are all in one block.
    data = b"".join((write_long(rows), plain, b"\0"))
    source = BytesIO(data)
    decoded: Any = fastavro.schemaless_reader(source, decoder, None)
    if source.tell() < len(data) or len(decoded[ROWS]) != rows:
        raise ValueError(f"it has other bytes than those of its {rows} rows")
    return list(decoded[ROWS])


def _make_arrays(
    columns: AvroColumns, asked: Sequence[int], rows: Sequence[dict[str, Any]], last: Block
) -> Iterator[tuple[int, dict[int, pa.Array]]]:
    for start in range(0, len(rows), _BATCH_ROWS):
        some = rows[start : start + _BATCH_ROWS]
        try:
            arrays = {
                index: pa.array([row[name] for row in some], columns.values[index].raw)
                for index in asked
                for name in (f"f{index}",)
            }
        except _UNDECODED as error:
            raise ValueError(f"the blocks up to that at byte {last.start} are damaged: {error}") from error
        yield len(some), arrays
