"""One Parquet file out of columns that are each encoded apart, with their pages compressed on the way.

A page's compression is outside its encoding: headers, sizes, offsets and checksums change, and the values do not.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from isal import isal_zlib

from lakewriter.encode.column_file import MAGIC, ColumnFile, find_start, read_footer, read_indexes
from lakewriter.encode.deflate import FEW_BYTES, Compress, choose_gzip
from lakewriter.encode.encoder import Sink
from lakewriter.encode.parquet_structures import (
    ColumnChunk,
    Empty,
    LogicalType,
    OffsetIndex,
    PageHeader,
    RowGroup,
    SchemaElement,
)

_GZIP: Final = 2
"""The number of gzip among the format's codecs."""
_DICTIONARY_PAGE: Final = 2
_LOGICAL_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "json": {"converted_type": 19, "logicalType": LogicalType(JSON=Empty())},
    # Its number among the logical types is reserved: readers know it by the older one.
    "interval": {"converted_type": 21, "logicalType": None},
}
"""A node of the schema has these types for a logical type."""
_MOST_ORDINALS: Final = 2**15
"""A row group's number has 16 bits and a sign; it may be left out."""


@dataclass(frozen=True)
class Column:
    """A column of a row group. ``write`` writes a Parquet file with nothing else, for gzip without compression, to the
    file it is called with. A ``nested`` column may have several column chunks."""

    write: Callable[[Any], None]
    nested: bool


@dataclass(frozen=True)
class _Page:
    """A page: its offsets in its column's file and in the sink, and its bytes with the header in the sink and before
    compression.
    """

    begin: int
    offset: int
    size: int
    uncompressed_size: int
    is_dictionary: bool


class PageWriter:
    """Writer of a Parquet file into ``sink``: ``add`` for each row group, then ``finish``."""

    def __init__(
        self,
        sink: Sink,
        empty: memoryview,
        *,
        gzip: bool,
        way: Compress | None = None,
        logical_types: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._sink, self._gzip, self._way = sink, gzip, way
        self._footer = read_footer(empty)
        for element in _list_top_nodes(self._footer.schema):
            if element.name in logical_types:
                for name, value in _LOGICAL_TYPES[logical_types[element.name]].items():
                    setattr(element, name, value)
        self._ways: dict[tuple[int, int], Compress] = {}
        self._groups: list[RowGroup] = []
        self._indexes: list[tuple[bytes | None, OffsetIndex | None]] = []
        sink.write(MAGIC)

    def add(self, rows: int, columns: Iterable[Column]) -> None:
        """Write a row group; each of ``columns`` is asked for when the one before is written."""
        offset, group = self._sink.tell(), RowGroup(columns=[], num_rows=rows)
        for number, column in enumerate(columns):
            group.columns += self._write_column(number, column)
        group.file_offset = offset
        group.total_byte_size = sum(chunk.meta_data.total_uncompressed_size for chunk in group.columns)
        group.total_compressed_size = sum(chunk.meta_data.total_compressed_size for chunk in group.columns)
        group.ordinal = len(self._groups) if len(self._groups) < _MOST_ORDINALS else None
        self._groups.append(group)

    def finish(self) -> None:
        """Write page indexes and footer."""
        footer = self._footer
        footer.row_groups, footer.num_rows = self._groups, sum(group.num_rows for group in self._groups)
        chunks = [chunk for group in self._groups for chunk in group.columns]
        for chunk, (column, _) in zip(chunks, self._indexes, strict=True):
            if column is not None:
                chunk.column_index_offset, chunk.column_index_length = self._write(column)
        for chunk, (_, offsets) in zip(chunks, self._indexes, strict=True):
            if offsets is not None:
                chunk.offset_index_offset, chunk.offset_index_length = self._write(offsets.encode())
        content = footer.encode()
        self._sink.write(content + len(content).to_bytes(4, "little") + MAGIC)

    def _write(self, data: bytes) -> tuple[int, int]:
        offset = self._sink.tell()
        self._sink.write(data)
        return offset, len(data)

    def _write_column(self, number: int, column: Column) -> list[ColumnChunk]:
        pages: list[_Page] = []

        def take_page(begin: int, header: PageHeader, page: bytes) -> None:
            packed = self._compress(number, header, page, nested=column.nested) if self._gzip else page
            head, offset = header.encode(), self._sink.tell()
            self._sink.write(head)
            self._sink.write(packed)
            sizes = len(head) + len(packed), len(head) + len(page)
            pages.append(_Page(begin, offset, *sizes, is_dictionary=header.type == _DICTIONARY_PAGE))

        file = ColumnFile(take_page)
        column.write(file)
        group, tail = file.finish()
        begins = [page.begin for page in pages]
        for chunk in group.columns:
            meta = chunk.meta_data
            start = find_start(chunk)
            moved = pages[bisect_left(begins, start) : bisect_left(begins, start + meta.total_compressed_size)]
            bounds, offsets = read_indexes(tail, file.tell(), chunk)
            self._indexes.append((bounds, offsets))
            self._move_chunk(chunk, moved, offsets)
        return list(group.columns)

    def _move_chunk(self, chunk: ColumnChunk, pages: list[_Page], offsets: OffsetIndex | None) -> None:
        """Set the offsets of a column chunk and of its offset index to where its pages are now."""
        meta, data = chunk.meta_data, [page for page in pages if not page.is_dictionary]
        if meta.dictionary_page_offset is not None:
            meta.dictionary_page_offset = pages[0].offset
        meta.data_page_offset = data[0].offset
        if offsets is not None:
            for location, page in zip(offsets.page_locations, data, strict=True):
                location.offset, location.compressed_page_size = page.offset, page.size
        if self._gzip:
            meta.codec = _GZIP
            meta.total_uncompressed_size = sum(page.uncompressed_size for page in pages)
            meta.total_compressed_size = sum(page.size for page in pages)
        chunk.file_offset = 0

    def _compress(self, number: int, header: PageHeader, page: bytes, *, nested: bool) -> bytes:
        way = self._way or self._choose_way(number, header, page, nested=nested)
        packed = way(page)
        header.compressed_page_size, header.crc = len(packed), _compute_signed_crc(packed)
        return packed

    def _choose_way(self, number: int, header: PageHeader, page: bytes, *, nested: bool) -> Compress:
        """Choose how to compress a column's dictionaries or data, by its first page that is not small.

        Pages of a nested column belong to several leaves, and which one's is unknown until all are written: each page
        decides for itself.
        """
        if nested or len(page) < FEW_BYTES:
            return choose_gzip(page)
        kind = number, header.type
        if kind not in self._ways:
            self._ways[kind] = choose_gzip(page)
        return self._ways[kind]


def _list_top_nodes(schema: Sequence[SchemaElement]) -> Iterator[SchemaElement]:
    """Yield the nodes below the root, without their children."""
    position = 1
    while position < len(schema):
        yield schema[position]
        left = 1
        while left:
            left += (schema[position].num_children or 0) - 1
            position += 1


def _compute_signed_crc(data: Any) -> int:
    """Return the CRC-32 as a signed integer, as Thrift's integers are."""
    crc = int(isal_zlib.crc32(data))
    return crc - 2**32 if crc >= 2**31 else crc
