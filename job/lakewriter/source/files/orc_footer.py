"""Read the parts of an ORC file's footer that Arrow does not expose: its calendar, and the positions of its stripes.

See: https://orc.apache.org/specification/ORCv1/
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewriter.source.files.file_reader import Part
from lakewriter.source.files.stored_files import decompress

_TAIL: Final = 16 * 1024
_RAW_DEFLATE: Final = -15
_CODECS: Final = {0: "none", 1: "zlib", 2: "snappy", 4: "lz4", 5: "zstd"}
_JULIAN, _PROLEPTIC = 1, 2
_JAVA: Final = 0
_MORE, _KIND, _DELIMITED = 0x80, 0x07, 2


class UnknownFooterError(Exception):
    """A footer that does not follow its specification."""


@dataclass(frozen=True)
class Stripe(Part):
    """A stripe, and the bytes of its footer."""

    tail: int = 0


@dataclass(frozen=True)
class OrcFooter:
    """The stripes, True if days before 15 October 1582 are counted by the Julian calendar, the compression of streams,
    and the kind and the number of each top-level column.
    """

    stripes: tuple[Stripe, ...]
    counts_by_julian: bool
    codec: str
    kinds: tuple[tuple[int, int], ...]


def read_orc_footer(source: pa.NativeFile) -> OrcFooter:
    """Read the footer. Raise ``UnknownFooterError`` if it cannot be understood."""
    try:
        return _read(source)
    except (IndexError, KeyError, ValueError, OSError, zlib.error, pa.ArrowException) as error:
        raise UnknownFooterError(str(error)) from error


def _read(source: pa.NativeFile) -> OrcFooter:
    size = source.size()
    tail = source.read_at(min(size, _TAIL), max(0, size - _TAIL))
    script = dict(list_fields(tail[-1 - tail[-1] : -1]))
    length = _as_number(script.get(1, 0))
    end = size - 1 - tail[-1]
    stored = source.read_at(length, end - length)
    codec = _CODECS[_as_number(script.get(2, 0))]
    plain = unpack(stored, codec)
    stripes, types, calendar, writer = list[Stripe](), list[bytes](), 0, _JAVA
    for number, value in list_fields(plain):
        if number == 3 and isinstance(value, bytes):
            part = {name: _as_number(item) for name, item in list_fields(value)}
            stripes.append(
                Stripe(part.get(1, 0), sum(part.get(name, 0) for name in (2, 3, 4)), part.get(5, 0), part.get(4, 0))
            )
        elif number == 4 and isinstance(value, bytes):
            types.append(value)
        elif number == 9:
            writer = _as_number(value)
        elif number == 11:
            calendar = _as_number(value)
    is_julian = calendar == _JULIAN or (calendar != _PROLEPTIC and writer == _JAVA)
    return OrcFooter(tuple(stripes), is_julian, codec, tuple(_list_kinds(types)))


def _list_kinds(types: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the kind and the number of each column of the top-level type, which is the first."""
    for number, value in list_fields(types[0] if types else b""):
        if number != 2:
            continue
        index, packed = 0, value if isinstance(value, bytes) else b""
        columns = [] if isinstance(value, bytes) else [value]
        while index < len(packed):
            column, index = read_number(packed, index)
            columns.append(column)
        for column in columns:
            yield _as_number(dict(list_fields(types[column])).get(1, 0)), column


def _as_number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("a number was expected")
    return value


def list_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a Protocol Buffers message: numbers, or bytes."""
    index = 0
    while index < len(data):
        tag, index = read_number(data, index)
        value, index = read_number(data, index)
        if tag & _KIND == _DELIMITED:
            yield tag >> 3, data[index : index + value]
            index += value
        elif tag & _KIND == 0:
            yield tag >> 3, value
        else:
            raise ValueError(f"field {tag >> 3} has an unknown kind")


def read_number(data: bytes, index: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, and the index of the next byte."""
    number, shift = 0, 0
    while True:
        byte = data[index]
        number |= (byte & 0x7F) << shift
        index, shift = index + 1, shift + 7
        if not byte & _MORE:
            return number, index


def unpack(data: bytes, codec: str) -> bytes:
    """Return the plain bytes of chunks, each of which states its length and whether it is compressed."""
    if codec == "none":
        return data
    plain, index = b"", 0
    while index < len(data):
        head = int.from_bytes(data[index : index + 3], "little")
        chunk = data[index + 3 : index + 3 + (head >> 1)]
        plain += chunk if head & 1 else _unpack_chunk(chunk, codec)
        index += 3 + (head >> 1)
    return plain


def _unpack_chunk(chunk: bytes, codec: str) -> bytes:
    if codec == "zlib":
        return zlib.decompress(chunk, _RAW_DEFLATE)
    if codec == "zstd":
        return b"".join(decompress(iter([chunk]), "zstd"))
    if codec == "snappy":
        return bytes(pa.decompress(chunk, read_number(chunk, 0)[0], "snappy"))
    return _unpack_lz4(chunk)


def _unpack_lz4(chunk: bytes) -> bytes:
    """Return the bytes of a block of LZ4 of unstated size, which Arrow would need.

    See: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
    """
    plain, index = bytearray(), 0
    while index < len(chunk):
        token, index = chunk[index], index + 1
        length, index = _read_length(chunk, index, token >> 4)
        plain += chunk[index : index + length]
        index += length
        if index >= len(chunk):
            break
        distance, index = int.from_bytes(chunk[index : index + 2], "little"), index + 2
        length, index = _read_length(chunk, index, token & 15)
        # The copied bytes may overlap the added ones.
        for _ in range(length + 4):
            plain.append(plain[-distance])
    return bytes(plain)


def _read_length(chunk: bytes, index: int, length: int) -> tuple[int, int]:
    more = 255 if length == 15 else 0
    while more == 255:
        more, index = chunk[index], index + 1
        length += more
    return length, index
