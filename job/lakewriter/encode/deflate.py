"""DEFLATE by three libraries: the quickest one for a column, or the one for a level that the user sets.

ISA-L is several times as fast as zlib at about the size of zlib's lowest levels. zlib-ng searches longer, as a higher
level asks for, and its Huffman-only strategy searches for no repetitions: hexadecimal digests have none.

zlib-ng makes equal bytes of equal data on every machine. ISA-L may not: which repetitions it finds depends on the
instructions that the processor has, and differs now and then between processes on one machine.
"""

import zlib
from collections.abc import Callable
from typing import Any, Final

from isal import igzip_lib, isal_zlib
from zlib_ng import zlib_ng

Compress = Callable[[Any], bytes]
"""Compress an object with the buffer protocol into one gzip member, or one raw deflate stream."""

GZIP: Final = 31
"""zlib's window bits for gzip's frame. The time in it is zero."""
RAW: Final = -15
"""zlib's window bits for no frame."""

_SAMPLE_BYTES: Final = 65_536
FEW_BYTES: Final = 2048
"""Fewer bytes are not worth a choice: setting up takes longer than searching, and zlib-ng's output is the smallest."""
_SEARCHED: Final = 1.25
"""If Huffman-only output is so many times as large as ISA-L's, repetitions matter, and zlib-ng finds more of them."""
_SAVES: Final = 0.99
_SAVES_MUCH: Final = 0.94
"""A slower way must make at most this share of the quicker one's size: Huffman-only takes about 1.3 times as long as
ISA-L, and zlib-ng five times.
"""
_SEARCH_LEVEL: Final = 4


def _make_isal(level: int) -> Compress:
    return lambda data: igzip_lib.compress(data, level, igzip_lib.COMP_GZIP)


def _compress_huffman(data: Any) -> bytes:
    packer = zlib_ng.compressobj(1, zlib_ng.DEFLATED, GZIP, 9, zlib_ng.Z_HUFFMAN_ONLY)
    return bytes(packer.compress(data) + packer.flush())


ISAL_1: Final = _make_isal(1)
ISAL_2: Final = _make_isal(2)
HUFFMAN: Final[Compress] = _compress_huffman
SEARCH: Final[Compress] = lambda data: zlib_ng.compress(data, _SEARCH_LEVEL, GZIP)  # noqa: E731 - one of four


def choose_gzip(page: Any) -> Compress:
    """Choose how to compress the pages of a column by the end of one of them: counters begin with small numbers.

    Only sizes decide: if time did, equal columns would differ in size from file to file.
    """
    sample = memoryview(page)[-_SAMPLE_BYTES:]
    if len(sample) < FEW_BYTES:
        return SEARCH
    best, size = ISAL_1, len(ISAL_1(sample))
    quick = size
    huffman = len(HUFFMAN(sample))
    for way, packed in ((ISAL_2, len(ISAL_2(sample))), (HUFFMAN, huffman)):
        if packed < _SAVES * size:
            best, size = way, packed
    if huffman > _SEARCHED * quick and len(SEARCH(sample)) < _SAVES_MUCH * size:
        return SEARCH
    return best


def make_gzip(level: int) -> Compress:
    """Return the function that compresses at a level from 1 to 9."""
    return lambda data: compress(data, level, GZIP)


def compress(data: Any, level: int, wbits: int) -> bytes:
    """Compress at one of zlib's levels, 0 to 9.

    Level 1 is ISA-L's: zlib-ng's own makes no Huffman codes of the data, so that it is a third larger than zlib's.
    """
    if level == 0:
        return zlib.compress(data, level, wbits)
    if level == 1:
        return bytes(isal_zlib.compress(data, level, wbits))
    return bytes(zlib_ng.compress(data, level, wbits))


def open_gzip(level: int) -> Any:
    """Open zlib-ng's compressor of a stream, for levels from 2 to 9."""
    return zlib_ng.compressobj(level, zlib_ng.DEFLATED, GZIP)
