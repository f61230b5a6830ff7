"""One Parquet file out of row groups that are each written into memory, with their pages compressed on the way.

A page's compression is outside its encoding: headers, sizes, offsets and checksums change, and the values do not.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from isal import isal_zlib

from lakewriter.encode.deflate import FEW_BYTES, Compress, choose_gzip
from lakewriter.encode.encoder import Sink
from lakewriter.encode.parquet_structures import ColumnChunk, FileMetaData, OffsetIndex, PageHeader, RowGroup

MAGIC: Final = b"PAR1"
_GZIP: Final = 2
"""The number of gzip among the format's codecs."""
_DICTIONARY_PAGE: Final = 2
_HEADER_BYTES: Final = 1024
"""As much as holds a page header; one with longer statistics is read again from the whole chunk."""
_MOST_ORDINALS: Final = 2**15
"""A row group's number has 16 bits and a sign; it may be left out."""


@dataclass
class _Indexes:
    """The page indexes of a column chunk: the first as it was written, the second with the pages' new places."""

    column: bytes | None
    offsets: OffsetIndex | None


class PageWriter:
    """Writes a Parquet file into ``sink``: ``add`` for each row group, then ``finish``.

    ``empty`` is a whole file without rows, whose schema and versions the new one has. With ``gzip`` the files that are
    added are not compressed: their pages are, each in ``way``, or where that is None in the way that the first page of
    its column decides for the whole file. Without, pages are copied.
    """

    def __init__(self, sink: Sink, empty: memoryview, *, gzip: bool, way: Compress | None = None) -> None:
        self._sink, self._gzip, self._way = sink, gzip, way
        self._footer = _read_footer(empty)
        self._ways: dict[tuple[int, int], Compress] = {}
        self._groups: list[RowGroup] = []
        self._indexes: list[_Indexes] = []
        sink.write(MAGIC)

    def add(self, rows: int, files: Iterable[memoryview]) -> None:
        """Write a row group. Each of ``files`` is a whole Parquet file in memory with its ``rows`` of the next column;
        it is asked for when the one before is written, so that memory holds few."""
        place, group = self._sink.tell(), RowGroup(columns=[], num_rows=rows)
        for file in files:
            (part,) = _read_footer(file).row_groups
            for chunk in part.columns:
                self._write_chunk(file, chunk, len(group.columns))
                group.columns.append(chunk)
        group.file_offset = place
        group.total_byte_size = sum(chunk.meta_data.total_uncompressed_size for chunk in group.columns)
        group.total_compressed_size = sum(chunk.meta_data.total_compressed_size for chunk in group.columns)
        group.ordinal = len(self._groups) if len(self._groups) < _MOST_ORDINALS else None
        self._groups.append(group)

    def finish(self) -> None:
        """Write page indexes and footer."""
        footer = self._footer
        footer.row_groups, footer.num_rows = self._groups, sum(group.num_rows for group in self._groups)
        chunks = [chunk for group in self._groups for chunk in group.columns]
        for chunk, indexes in zip(chunks, self._indexes, strict=True):
            if indexes.column is not None:
                chunk.column_index_offset, chunk.column_index_length = self._write(indexes.column)
        for chunk, indexes in zip(chunks, self._indexes, strict=True):
            if indexes.offsets is not None:
                chunk.offset_index_offset, chunk.offset_index_length = self._write(indexes.offsets.encode())
        content = footer.encode()
        self._sink.write(content + len(content).to_bytes(4, "little") + MAGIC)

    def _write(self, data: bytes) -> tuple[int, int]:
        place = self._sink.tell()
        self._sink.write(data)
        return place, len(data)

    def _write_chunk(self, file: memoryview, chunk: ColumnChunk, number: int) -> None:
        indexes = _read_indexes(file, chunk)
        if self._gzip:
            self._compress_chunk(file, chunk, indexes.offsets, number)
        else:
            self._copy_chunk(file, chunk, indexes.offsets)
        chunk.file_offset = 0
        self._indexes.append(indexes)

    def _copy_chunk(self, file: memoryview, chunk: ColumnChunk, offsets: OffsetIndex | None) -> None:
        meta, start = chunk.meta_data, _find_start(chunk)
        moved = self._sink.tell() - start
        self._sink.write(bytes(file[start : start + meta.total_compressed_size]))
        meta.data_page_offset += moved
        if meta.dictionary_page_offset is not None:
            meta.dictionary_page_offset += moved
        for location in offsets.page_locations if offsets else ():
            location.offset += moved

    def _compress_chunk(self, file: memoryview, chunk: ColumnChunk, offsets: OffsetIndex | None, number: int) -> None:
        meta, start = chunk.meta_data, _find_start(chunk)
        begin, uncompressed = self._sink.tell(), 0
        locations = iter(offsets.page_locations if offsets else ())
        first = None
        for header, page in _iterate_pages(file[start : start + meta.total_compressed_size]):
            way = self._way or self._choose_way(number, header, page)
            packed = way(page)
            header.compressed_page_size, header.crc = len(packed), _compute_signed_crc(packed)
            head, place = header.encode(), self._sink.tell()
            self._sink.write(head)
            self._sink.write(packed)
            uncompressed += len(head) + len(page)
            if header.type == _DICTIONARY_PAGE:
                meta.dictionary_page_offset = place
                continue
            first = place if first is None else first
            if (location := next(locations, None)) is not None:
                location.offset, location.compressed_page_size = place, len(head) + len(packed)
        meta.codec, meta.data_page_offset = _GZIP, begin if first is None else first
        meta.total_uncompressed_size, meta.total_compressed_size = uncompressed, self._sink.tell() - begin

    def _choose_way(self, number: int, header: PageHeader, page: memoryview) -> Compress:
        """The way of a column's dictionaries or data, which its first page that is not small decides."""
        if len(page) < FEW_BYTES:
            return choose_gzip(page)
        kind = number, header.type
        if kind not in self._ways:
            self._ways[kind] = choose_gzip(page)
        return self._ways[kind]


def _read_footer(file: memoryview) -> FileMetaData:
    size = int.from_bytes(file[-8:-4], "little")
    return FileMetaData.decode(bytes(file[-8 - size : -8]))[0]


def _find_start(chunk: ColumnChunk) -> int:
    meta = chunk.meta_data
    start = meta.data_page_offset if meta.dictionary_page_offset is None else meta.dictionary_page_offset
    return int(start)


def _read_indexes(file: memoryview, chunk: ColumnChunk) -> _Indexes:
    column = offsets = None
    if chunk.column_index_offset is not None:
        column = bytes(file[chunk.column_index_offset :][: chunk.column_index_length])
    if chunk.offset_index_offset is not None:
        offsets, _ = OffsetIndex.decode(bytes(file[chunk.offset_index_offset :][: chunk.offset_index_length]))
    return _Indexes(column, offsets)


def _iterate_pages(chunk: memoryview) -> Iterator[tuple[PageHeader, memoryview]]:
    """The pages of a column chunk that is not compressed, each with its header."""
    place = 0
    while place < len(chunk):
        header, size = _read_header(chunk[place:])
        start = place + size
        place = start + header.compressed_page_size
        yield header, chunk[start:place]


def _read_header(data: memoryview) -> tuple[PageHeader, int]:
    try:
        return PageHeader.decode(bytes(data[:_HEADER_BYTES]))
    except EOFError:
        return PageHeader.decode(bytes(data))


def _compute_signed_crc(data: Any) -> int:
    """Thrift's integers have a sign, and a CRC-32 has none."""
    crc = int(isal_zlib.crc32(data))
    return crc - 2**32 if crc >= 2**31 else crc
