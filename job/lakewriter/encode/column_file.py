"""A Parquet file of one column, taken apart while it is written: pages go on as soon as they are whole."""

from collections.abc import Callable
from typing import Final

from lakewriter.encode.parquet_structures import ColumnChunk, FileMetaData, OffsetIndex, PageHeader, RowGroup

MAGIC: Final = b"PAR1"

TakePage = Callable[[int, PageHeader, bytes], None]
"""Take a page: the offset of its header in the column's file, the header, the data."""


class ColumnFile:
    """A file that pyarrow can write one column to. Each page goes to ``take_page``, so that the file holds at most one;
    what follows the pages is kept.

    An error of ``take_page`` is raised by ``finish`` and not where it occurs: Arrow replaces an error that a file
    raises by its own, and closes the file once more.
    """

    closed = False

    def __init__(self, take_page: TakePage) -> None:
        self._take_page = take_page
        self._size = 0
        self._offset = len(MAGIC)
        self._held = b""
        self._header: tuple[PageHeader, int] | None = None
        self._error: BaseException | None = None

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._size

    def flush(self) -> None:
        """Do nothing: no page is held that could be passed on."""

    def close(self) -> None:
        """Mark the file as closed, as Arrow closes its files."""
        self.closed = True

    def write(self, data: bytes) -> int:
        """Pass on the pages that are whole by now."""
        skipped = max(len(MAGIC) - self._size, 0)
        self._size += len(data)
        if self._error is None:
            self._held = self._held + data[skipped:] if self._held else data[skipped:]
            try:
                while self._pass_on():
                    pass
            except BaseException as error:  # noqa: BLE001 - finish() raises it
                self._error = error
        return len(data)

    def finish(self) -> tuple[RowGroup, memoryview]:
        """Return the file's only row group, and the tail behind its pages, which ends where the file does."""
        if self._error is not None:
            raise self._error
        tail = memoryview(self._held)
        (group,) = read_footer(tail).row_groups
        written = sum(chunk.meta_data.total_compressed_size for chunk in group.columns)
        if len(MAGIC) + written != self._offset:
            raise ValueError(f"pages of {written} bytes: expected {self._offset - len(MAGIC)}, which were written")
        return group, tail

    def _pass_on(self) -> bool:
        """Pass on a whole header or a whole page of the held bytes; return whether there was one."""
        if self._header is None:
            return self._read_header()
        header, size = self._header
        end = header.compressed_page_size
        if len(self._held) < end:
            return False
        page, self._held = (self._held[:end], self._held[end:]) if len(self._held) > end else (self._held, b"")
        self._header = None
        self._take_page(self._offset, header, page)
        self._offset += size + end
        return True

    def _read_header(self) -> bool:
        """Read a page header from the held bytes; return whether there was one.

        Page indexes and the footer have other types where a page header has its type and size: they are no header, and
        nothing after them is.
        """
        if not self._held:
            return False
        try:
            header, size = PageHeader.decode(self._held)
        except EOFError:
            return False
        if header.type is None or header.compressed_page_size is None:
            return False
        self._header, self._held = (header, size), self._held[size:]
        return True


def read_footer(file: memoryview) -> FileMetaData:
    """Return the metadata at the end of the file; ``file`` may hold only that end."""
    size = int.from_bytes(file[-8:-4], "little")
    return FileMetaData.decode(bytes(file[-8 - size : -8]))[0]


def read_indexes(tail: memoryview, end: int, chunk: ColumnChunk) -> tuple[bytes | None, OffsetIndex | None]:
    """Return the column index as it was written and the offset index, from the tail of a file of ``end`` bytes."""
    moved = len(tail) - end
    column = offsets = None
    if chunk.column_index_offset is not None:
        column = bytes(tail[chunk.column_index_offset + moved :][: chunk.column_index_length])
    if chunk.offset_index_offset is not None:
        offsets, _ = OffsetIndex.decode(bytes(tail[chunk.offset_index_offset + moved :][: chunk.offset_index_length]))
    return column, offsets


def find_start(chunk: ColumnChunk) -> int:
    """Return the offset of the first page of a column chunk."""
    meta = chunk.meta_data
    return int(meta.data_page_offset if meta.dictionary_page_offset is None else meta.dictionary_page_offset)
