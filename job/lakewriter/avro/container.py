"""The container of Avro files: a header with the schema, then blocks of rows, each with a sync marker behind it.

See: https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa
import zstandard

_MAGIC: Final = b"Obj\x01"
MARKER_BYTES: Final = 16
_RAW_DEFLATE: Final = -15
_CHECKSUM_BYTES: Final = 4
_LONGEST: Final = 63
"""The shift of the last bits of a number of 64 bits."""


class Readable(Protocol):
    """A stream that is read from its beginning on."""

    def read(self, size: int, /) -> bytes:
        """Return the next ``size`` bytes, or fewer at the end."""


@dataclass(frozen=True)
class Header:
    """A file's header: its metadata by name, and the marker behind each of its blocks."""

    entries: Mapping[str, bytes]
    marker: bytes

    @property
    def codec(self) -> str:
        """The compression of the blocks."""
        return self.entries.get("avro.codec", b"null").decode() or "null"


def read_header(file: Readable) -> Header:
    """Read a header; ``ValueError`` for what is no Avro file."""
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as an Avro file")
    entries = {}
    while count := read_long(file):
        if count < 0:
            read_long(file)
        for _ in range(abs(count)):
            key = read_bytes(file).decode()
            entries[key] = read_bytes(file)
    return Header(entries, read_exactly(file, MARKER_BYTES))


def read_long(file: Readable, start: bytes = b"") -> int:
    """Read a number, whose first byte is ``start`` where that has been read."""
    number, shift = 0, 0
    byte = (start or read_exactly(file, 1))[0]
    while byte >= 0x80:
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > _LONGEST:
            raise ValueError("a number has more than 64 bits")
        byte = read_exactly(file, 1)[0]
    number |= byte << shift
    return (number >> 1) ^ -(number & 1)


def write_long(number: int) -> bytes:
    """Return a number of 64 bits as Avro has it: zigzag, then seven bits a byte."""
    left, data = (number << 1) ^ (number >> _LONGEST), bytearray()
    while left >= 0x80:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*data, left])


def read_bytes(file: Readable) -> bytes:
    """Read bytes behind their number."""
    return read_exactly(file, read_long(file))


def read_exactly(file: Readable, size: int) -> bytes:
    """Read so many bytes; ``ValueError`` where the file ends before them."""
    data = file.read(size) if size >= 0 else b""
    if len(data) != size:
        raise ValueError("it ends in the middle of a block")
    return data


def decompress(codec: str, data: bytes) -> bytes:
    """Return the plain bytes of a block; ``ValueError`` for what the codec did not write."""
    if codec not in _UNPACK:
        raise ValueError(f"its codec is {codec!r}, expected {', '.join(_UNPACK)}")
    try:
        return _UNPACK[codec](data)
    except (zlib.error, lzma.LZMAError, zstandard.ZstdError, pa.ArrowException, OSError) as error:
        raise ValueError(f"its {codec} data is damaged: {error}") from error


def _decompress_snappy(data: bytes) -> bytes:
    # A block begins with its length before compression, as a varint without a sign, and ends with a CRC32.
    size, shift = 0, 0
    for byte in data:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    packed, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    unpacked: bytes = pa.decompress(packed, decompressed_size=size, codec="snappy", asbytes=True)
    if zlib.crc32(unpacked).to_bytes(_CHECKSUM_BYTES, "big") != checksum:
        raise ValueError("its snappy data is damaged: the checksum differs")
    return unpacked


_UNPACK: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "null": lambda data: data,
    "deflate": lambda data: zlib.decompress(data, _RAW_DEFLATE),
    "snappy": _decompress_snappy,
    "bzip2": bz2.decompress,
    "xz": lzma.decompress,
    "zstandard": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
