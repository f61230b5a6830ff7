"""Read the blocks of an Avro file, and cut a large file between blocks, which its sync marker separates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final

from lakewriter.avro.container import MARKER_BYTES, Header, read_exactly, read_header, read_long
from lakewriter.source.files.columnar import name_file
from lakewriter.source.files.file_reader import Piece, Spread
from lakewriter.source.files.stored_files import StoredFile

_FIRST_BYTES: Final = 64 * 1024
"""The bytes that are read for a header. A longer header is read in steps, each four times as long as the one before. A
marker is also searched for in this many bytes at a time."""


@dataclass(frozen=True)
class AvroLayout:
    """The offset of a file's first block, and the marker behind each block.

    ``first_row`` is the number of a piece's first row in the file. With ``is_exact`` the case of column names matters.
    """

    first_block: int
    marker: bytes
    first_row: int = 0
    is_exact: bool = False


@dataclass(frozen=True)
class Block:
    """The compressed rows of a block that begins at the byte ``start``."""

    start: int
    rows: int
    packed: bytes


class ByteReader:
    """The bytes of a file from ``at`` to ``end``, read in order."""

    def __init__(self, blocks: Iterator[bytes], at: int, end: int) -> None:
        self._blocks, self._held, self._position, self._end, self.at = blocks, b"", 0, end, at

    def read(self, size: int, /) -> bytes:
        """Return the next ``size`` bytes; none if the end comes first."""
        # In damaged bytes a length may have any value: the rest of a large file is not read for it.
        if size > self._end - self.at:
            return b""
        parts, missing = list[bytes](), size
        while missing:
            if self._position == len(self._held):
                self._held, self._position = next(self._blocks, b""), 0
                if not self._held:
                    break
            parts.append(self._held[self._position : self._position + missing])
            missing -= len(parts[-1])
            self._position += len(parts[-1])
        self.at += size - missing
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def find(self, marker: bytes, end: int) -> bool:
        """Move behind the first ``marker`` that ends before ``end``; return False if there is none."""
        data = b""
        while self.at < end and (more := self.read(min(_FIRST_BYTES, end - self.at))):
            data = data[1 - len(marker) :] + more
            index = data.find(marker)
            if index >= 0:
                rest = data[index + len(marker) :]
                self.at -= len(rest)
                self._held, self._position = rest + self._held[self._position :], 0
                return True
        return False


def open_header(file: StoredFile) -> tuple[Header, ByteReader]:
    """Read the header of a file, and return it with a reader of the bytes behind it."""
    reader = ByteReader(_stream_growing(file), 0, file.size)
    return read_header(reader), reader


def _stream_growing(file: StoredFile) -> Iterator[bytes]:
    start, size = 0, _FIRST_BYTES
    while start < file.size:
        yield from file.stream(start, start + size)
        start, size = start + size, size * 4


def list_blocks(reader: ByteReader, end: int, marker: bytes) -> Iterator[Block]:
    """Yield the blocks up to the byte ``end``. Raise ``ValueError`` for a damaged block."""
    while reader.at < end:
        start = reader.at
        try:
            rows, size = read_long(reader), read_long(reader)
            if rows < 0 or size < 0:
                raise ValueError(f"it says that it has {rows} rows in {size} bytes")
            packed, sync_marker = read_exactly(reader, size), read_exactly(reader, MARKER_BYTES)
        except ValueError as error:
            raise ValueError(f"the block at byte {start}: {error}") from error
        if sync_marker != marker:
            raise ValueError(
                f"the block at byte {start} has other bytes behind it, at byte {reader.at - MARKER_BYTES}, than the "
                "sync marker of the file"
            )
        yield Block(start, rows, packed)


@dataclass(frozen=True)
class _Part:
    """A range of a file; ``is_first`` if it begins with a block."""

    file: StoredFile
    start: int
    end: int
    marker: bytes
    is_first: bool

    @property
    def size(self) -> int:
        """The number of bytes that are read."""
        return self.end - self.start


@dataclass(frozen=True)
class _Run:
    """Consecutive whole blocks, and the number of their rows."""

    start: int
    end: int
    rows: int


def cut_files(files: Sequence[tuple[StoredFile, AvroLayout]], size: int, spread: Spread) -> list[Piece]:
    """Return the pieces of files, each of about ``size`` bytes and with whole blocks.

    A large file is cut into ranges that each begin with the first block behind a marker. The bytes of a marker may also
    occur in a row: the ranges count only if each one's blocks end where the next one's begin.
    """
    parts = [_list_parts(file, layout, size) for file, layout in files]
    runs = iter(spread(partial(_count_blocks, size), list(chain(*parts))))
    pieces = list[Piece]()
    for (file, layout), ranges in zip(files, parts, strict=True):
        file_runs = list(chain(*(next(runs) for _ in ranges)))
        if ranges and not _are_joined(file_runs, layout.first_block, file.size):
            whole = _Part(file, layout.first_block, file.size, layout.marker, is_first=True)
            file_runs = list(chain(*spread(partial(_count_blocks, size), [whole])))
        row = 0
        for run in file_runs:
            part = replace(layout, first_row=row)
            pieces.append(Piece(file, run.start, run.end, part, rows=run.rows))
            row += run.rows
        if not ranges and layout.first_block < file.size:
            pieces.append(Piece(file, 0, file.size, layout))
    return pieces


def _list_parts(file: StoredFile, layout: AvroLayout, size: int) -> list[_Part]:
    """Return the ranges of a large file; none for a file that is one piece."""
    if file.size <= size:
        return []
    starts = range(layout.first_block, file.size, size)
    return [_Part(file, at, min(at + size, file.size), layout.marker, at == starts[0]) for at in starts]


def _are_joined(runs: Sequence[_Run], start: int, end: int) -> bool:
    bounds = [start, *(run.end for run in runs)]
    return [run.start for run in runs] == bounds[:-1] and bounds[-1] == end


def _count_blocks(size: int, part: _Part) -> list[_Run]:
    """Return the blocks that begin in a part, in runs of ``size`` bytes; none if its bytes are not blocks."""
    runs, first = list[_Run](), part.start if part.is_first else part.start - MARKER_BYTES
    with name_file(part.file):
        reader = ByteReader(chain(part.file.stream(first, part.end), part.file.stream(part.end)), first, part.file.size)
        if not part.is_first and not reader.find(part.marker, part.end):
            return []
        start, rows = reader.at, 0
        try:
            for block in list_blocks(reader, part.end, part.marker):
                rows += block.rows
                if reader.at - start >= size or reader.at >= part.end:
                    runs.append(_Run(start, reader.at, rows))
                    start, rows = reader.at, 0
        except ValueError:
            if part.is_first:
                raise
            return []
    return runs
