"""The blocks of an Avro file, and where a large file is cut: between blocks, which its sync marker tells apart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final

from lakewriter.avro.container import MARKER_BYTES, Header, read_exactly, read_header, read_long
from lakewriter.source.files.columnar import name_file
from lakewriter.source.files.file_reader import Piece, Spread
from lakewriter.source.files.stored import StoredFile

_FIRST_BYTES: Final = 64 * 1024
"""Of a header that is read by itself; a longer one is read in stretches, each four times as long as the one before. A
marker is looked for in so many bytes at a time."""


@dataclass(frozen=True)
class AvroLayout:
    """Where the first block of a file begins, and the marker behind each. ``first_row`` is the number of a piece's
    first row in the file. Where ``is_exact`` columns are matched by the case of their names."""

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
    """The bytes of a file from ``at`` to ``end``, which are read one after the other."""

    def __init__(self, blocks: Iterator[bytes], at: int, end: int) -> None:
        self._blocks, self._held, self._place, self._end, self.at = blocks, b"", 0, end, at

    def read(self, size: int, /) -> bytes:
        """Return the next ``size`` bytes; none where the end comes before them."""
        # A length in bytes that are no block's may be any: the rest of a large file is not read for it.
        if size > self._end - self.at:
            return b""
        parts, missing = list[bytes](), size
        while missing:
            if self._place == len(self._held):
                self._held, self._place = next(self._blocks, b""), 0
                if not self._held:
                    break
            parts.append(self._held[self._place : self._place + missing])
            missing -= len(parts[-1])
            self._place += len(parts[-1])
        self.at += size - missing
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def find(self, marker: bytes, end: int) -> bool:
        """Go behind the first ``marker`` that ends before ``end``; False where there is none."""
        data = b""
        while self.at < end and (more := self.read(min(_FIRST_BYTES, end - self.at))):
            data = data[1 - len(marker) :] + more
            place = data.find(marker)
            if place >= 0:
                rest = data[place + len(marker) :]
                self.at -= len(rest)
                self._held, self._place = rest + self._held[self._place :], 0
                return True
        return False


def open_header(file: StoredFile) -> tuple[Header, ByteReader]:
    """Read the header of a file, and return what stands behind it."""
    reader = ByteReader(_stream_growing(file), 0, file.size)
    return read_header(reader), reader


def _stream_growing(file: StoredFile) -> Iterator[bytes]:
    start, size = 0, _FIRST_BYTES
    while start < file.size:
        yield from file.stream(start, start + size)
        start, size = start + size, size * 4


def list_blocks(reader: ByteReader, end: int, marker: bytes) -> Iterator[Block]:
    """Yield the blocks up to the byte ``end``; ``ValueError`` says where one is not what it should be."""
    while reader.at < end:
        start = reader.at
        try:
            rows, size = read_long(reader), read_long(reader)
            if rows < 0 or size < 0:
                raise ValueError(f"it says that it has {rows} rows in {size} bytes")
            packed, found = read_exactly(reader, size), read_exactly(reader, MARKER_BYTES)
        except ValueError as error:
            raise ValueError(f"the block at byte {start}: {error}") from error
        if found != marker:
            raise ValueError(
                f"the block at byte {start} has other bytes behind it, at byte {reader.at - MARKER_BYTES}, than the "
                "sync marker of the file"
            )
        yield Block(start, rows, packed)


@dataclass(frozen=True)
class _Part:
    """A range of a file; ``is_first`` where a block begins with it."""

    file: StoredFile
    start: int
    end: int
    marker: bytes
    is_first: bool

    @property
    def size(self) -> int:
        """The bytes that are read for it."""
        return self.end - self.start


@dataclass(frozen=True)
class _Run:
    """Whole blocks one after the other, and their rows."""

    start: int
    end: int
    rows: int


def cut_files(files: Sequence[tuple[StoredFile, AvroLayout]], size: int, spread: Spread) -> list[Piece]:
    """Return the pieces of files, each of about ``size`` bytes and with whole blocks.

    A large file is cut into ranges, of which each begins with the first block behind a marker. What looks like a marker
    may be part of a row: only where each range's blocks end with the first one of the next are they what they seem.
    """
    parts = [_list_parts(file, layout, size) for file, layout in files]
    runs = iter(spread(partial(_count_blocks, size), list(chain(*parts))))
    pieces = list[Piece]()
    for (file, layout), ranges in zip(files, parts, strict=True):
        found = list(chain(*(next(runs) for _ in ranges)))
        if ranges and not _are_joined(found, layout.first_block, file.size):
            whole = _Part(file, layout.first_block, file.size, layout.marker, is_first=True)
            found = list(chain(*spread(partial(_count_blocks, size), [whole])))
        row = 0
        for run in found:
            part = replace(layout, first_row=row)
            pieces.append(Piece(file, run.start, run.end, part, rows=run.rows))
            row += run.rows
        if not ranges and layout.first_block < file.size:
            pieces.append(Piece(file, 0, file.size, layout))
    return pieces


def _list_parts(file: StoredFile, layout: AvroLayout, size: int) -> list[_Part]:
    """Return the ranges of a large file; none of one that is a piece by itself."""
    if file.size <= size:
        return []
    starts = range(layout.first_block, file.size, size)
    return [_Part(file, at, min(at + size, file.size), layout.marker, at == starts[0]) for at in starts]


def _are_joined(runs: Sequence[_Run], start: int, end: int) -> bool:
    bounds = [start, *(run.end for run in runs)]
    return [run.start for run in runs] == bounds[:-1] and bounds[-1] == end


def _count_blocks(size: int, part: _Part) -> list[_Run]:
    """Return the blocks that begin in a part, in runs of ``size`` bytes; none where what stands in it is no blocks."""
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
