"""Read the lines and the documents of a piece of a file, of any compression and charset."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np

from lakewriter.source.files.blocks import open_text
from lakewriter.source.files.charsets import UTF_8, Charset
from lakewriter.source.files.file_reader import Piece
from lakewriter.source.files.json_blocks import MOST_BYTES, Lines, join_parts, split_lines
from lakewriter.source.files.json_splitter import Part, split_documents

_BLOCK_BYTES: Final = 4 * 1024 * 1024
_DOCUMENTS: Final = 16_384
_SHOWN_BYTES: Final = 256 * 1024
"""The limit for the held bytes of a line without an end."""
_BREAK: Final = re.compile(rb"\r\n?|\n")


def read_lines(piece: Piece, compression: str | None, charset: Charset) -> Iterator[Lines]:
    """Yield the lines that begin in a piece, many at a time."""
    if piece.is_whole:
        blocks = open_text(piece.file, piece.start, piece.end, compression, charset)
        base = max(piece.start, charset.mark)
    else:
        blocks, base = _bound_lines(piece, charset)
    for block, length, is_endless in _group_lines(_keep_breaks(blocks), charset):
        lines = _hold_endless(block) if is_endless else split_lines(block)
        if len(lines):
            yield _to_utf8(lines, charset, base)
        base += length


def _hold_endless(block: bytes) -> Lines:
    """Return the beginning of a line that is too long to be read."""
    ends = np.array([len(block)], np.int64)
    reason = f"it has more than {MOST_BYTES // 2**20} MiB, which no document may have"
    return Lines(block, ends - len(block), ends, ends, {0: reason})


def find_line(piece: Piece, compression: str | None, charset: Charset, offset: int) -> int | None:
    """Return the number of the line that the byte ``offset`` of the file is in."""
    if piece.first_line is None:
        return None
    line, base = piece.first_line, max(piece.start, charset.mark)
    for block in _keep_breaks(open_text(piece.file, piece.start, piece.end, compression, charset)):
        length = _measure(block, charset)
        if base + length > offset:
            ends = np.array([match.end() for match in _BREAK.finditer(block)], np.int64)
            return line + int(np.searchsorted(base + charset.measure(block, ends), offset, side="right"))
        line += len(_BREAK.findall(block))
        base += length
    return line


def _to_utf8(lines: Lines, charset: Charset, base: int) -> Lines:
    """Return the lines of a block as UTF-8, each with its offset; ``base`` stored bytes are before the block."""
    offsets = base + charset.measure(lines.data, lines.starts)
    if charset.name != UTF_8 and charset.is_plain and not lines.data.isascii():
        lines = replace(split_lines(charset.to_utf8(lines.data)), reasons=lines.reasons)
    return replace(lines, offsets=offsets, charset=charset)


def _bound_lines(piece: Piece, charset: Charset) -> tuple[Iterator[bytes], int]:
    """Return the lines that begin in a piece of a plain file, and the offset of the first."""
    offset = max(piece.start - 1, 0)
    blocks = _keep_breaks(open_text(piece.file, offset, piece.file.size, None, charset))
    if not piece.start:
        return _end_lines(blocks, charset.mark, piece.end), charset.mark
    for block in blocks:
        # The byte before the piece may end the line before it.
        if end := _find_end(block):
            offset += end
            return _end_lines(chain([block[end:]], blocks), offset, piece.end), offset
        offset += len(block)
    return iter(()), offset


def _end_lines(blocks: Iterator[bytes], offset: int, end: int) -> Iterator[bytes]:
    """Yield the lines that begin at ``offset`` or later and before ``end``."""
    if offset >= end:
        return
    for block in blocks:
        if offset + len(block) >= end and (last := _find_end(block, max(end - 1 - offset, 0))):
            yield block[:last]
            return
        yield block
        offset += len(block)


def _find_end(block: bytes, start: int = 0) -> int:
    """Return the offset behind the first line break at ``start`` or later, 0 if there is none.

    A long line is searched from each piece of a file that begins in it; an expression takes many times as long.
    """
    feed = block.find(b"\n", start)
    back = block.find(b"\r", start, len(block) if feed < 0 else feed)
    if back < 0:
        return feed + 1
    return back + (2 if back + 1 == feed else 1)


def _keep_breaks(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks none of which ends between CR and LF."""
    held = b""
    for block in blocks:
        held += block
        if not held.endswith(b"\r"):
            yield held
            held = b""
    if held:
        yield held


def _measure(data: bytes, charset: Charset) -> int:
    return int(charset.measure(data, np.array([len(data)]))[0])


def _group_lines(blocks: Iterator[bytes], charset: Charset) -> Iterator[tuple[bytes, int, bool]]:
    """Yield whole lines, about a block's bytes at a time, with the number of their stored bytes.

    A line that is too long to be read is yielded alone, and only its beginning.
    """
    held, size, passed = list[bytes](), 0, 0
    for block in blocks:
        if size > MOST_BYTES:
            end = _find_end(block)
            passed += _measure(block[: end or len(block)], charset)
            if not end:
                continue
            yield held[0][:_SHOWN_BYTES], passed, True
            block, held, size = block[end:], [], 0
        cut = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        if cut:
            yield from _cut_lines(b"".join([*held, block[:cut]]), charset)
            held, size = [], 0
        held.append(block[cut:])
        size += len(block) - cut
        if size > MOST_BYTES:
            passed = sum(_measure(part, charset) for part in held)
            del held[1:]
    if size > MOST_BYTES:
        yield held[0][:_SHOWN_BYTES], passed, True
    else:
        yield from _cut_lines(b"".join(held), charset)


def _cut_lines(data: bytes, charset: Charset) -> Iterator[tuple[bytes, int, bool]]:
    start = 0
    while start < len(data):
        end = _find_end(data, start + _BLOCK_BYTES) if len(data) - start > 2 * _BLOCK_BYTES else 0
        part = data[start : end or len(data)]
        yield part, _measure(part, charset), False
        start += len(part)


def read_documents(piece: Piece, compression: str | None, charset: Charset) -> Iterator[Lines]:
    """Yield the documents of a file that is read whole, many at a time."""
    blocks = open_text(piece.file, piece.start, piece.end, compression, charset)
    meter = _Meter(blocks, charset, max(piece.start, charset.mark))
    held, size = list[Part](), 0
    for part in split_documents(meter.pass_blocks(), most=MOST_BYTES):
        raw = charset.to_utf8(part.raw) if charset.is_plain else part.raw
        held.append(replace(part, offset=meter.measure(part.offset), raw=raw))
        size += len(part.raw)
        if size > _BLOCK_BYTES or len(held) >= _DOCUMENTS:
            yield replace(join_parts(held), charset=charset)
            held, size = [], 0
    if held:
        yield replace(join_parts(held), charset=charset)


class _Meter:
    """Blocks of text as they pass, which map each byte to its offset in the file."""

    def __init__(self, blocks: Iterator[bytes], charset: Charset, base: int) -> None:
        self._blocks, self._charset, self._base = blocks, charset, base
        self._passed = deque[tuple[int, int, bytes]]()

    def pass_blocks(self) -> Iterator[bytes]:
        """Yield the blocks."""
        position, stored = 0, self._base
        for block in self._blocks:
            self._passed.append((position, stored, block))
            position += len(block)
            stored += _measure(block, self._charset)
            yield block

    def measure(self, position: int) -> int:
        """Return the offset in the file of the byte ``position`` of the text. Positions must ascend."""
        while len(self._passed) > 1 and self._passed[1][0] <= position:
            self._passed.popleft()
        start, stored, block = self._passed[0]
        return stored + _measure(block[: position - start], self._charset)
