"""Avro object container files, a batch at a time: Arrow encodes whole columns, no row passes through Python.

See: https://avro.apache.org/docs/1.12.0/specification/
"""

import bz2
import json
import lzma
import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
import zstandard

from lakewriter.avro.container import write_long
from lakewriter.encode.avro_schema import make_avro_schema
from lakewriter.encode.avro_values import encode_rows
from lakewriter.encode.deflate import RAW, compress
from lakewriter.encode.encoder import Sink
from lakewriter.spec.encodings import AvroEncoding

BLOCK_BYTES: Final = 1024 * 1024
"""A block has so many bytes before compression, unless a row is larger: readers hold one block at a time."""

_MAGIC: Final = b"Obj\x01"

Compress = Callable[[bytes], bytes]


class AvroEncoder:
    """See ``Encoder``."""

    name = "avro"
    footer = False

    def __init__(self, encoding: AvroEncoding) -> None:
        self._codec = encoding.codec
        self._compress = make_compressor(encoding)

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: Sink, row_group_rows: int) -> None:
        """Write the schema into the header, the rows into blocks."""
        marker = os.urandom(16)
        sink.write(make_header(json.dumps(make_avro_schema(schema), ensure_ascii=False), self._codec, marker))
        for batch in batches:
            for rows, data in _cut_blocks(encode_rows(batch)):
                packed = self._compress(data)
                sink.write(write_long(rows) + write_long(len(packed)) + packed + marker)


def make_header(schema: str, codec: str, marker: bytes) -> bytes:
    """Return the header of a container file."""
    entries = {"avro.schema": schema.encode(), "avro.codec": codec.encode()}
    body = b"".join(_encode_bytes(key.encode()) + _encode_bytes(value) for key, value in entries.items())
    return _MAGIC + write_long(len(entries)) + body + write_long(0) + marker


def make_compressor(encoding: AvroEncoding) -> Compress:
    """Return the function that compresses one block."""
    level = encoding.level or 0
    if encoding.codec == "zstandard":
        compressor = zstandard.ZstdCompressor(level=level, write_checksum=encoding.checksum)
        return compressor.compress
    simple: dict[str, Compress] = {
        "null": lambda data: data,
        "deflate": lambda data: compress(data, level, RAW),
        "bzip2": bz2.compress,
        "xz": lambda data: lzma.compress(data, preset=level),
        "snappy": _compress_snappy,
    }
    return simple[encoding.codec]


def _compress_snappy(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


def _encode_bytes(data: bytes) -> bytes:
    return write_long(len(data)) + data


def _cut_blocks(rows: pa.Array) -> Iterator[tuple[int, bytes]]:
    """Yield the number of rows of each block, and their bytes."""
    buffers = [None, rows.buffers()[1]]
    offsets = pa.Array.from_buffers(pa.int32(), len(rows) + 1, buffers, offset=rows.offset).to_pylist()
    data = memoryview(rows.buffers()[2] or b"")
    start = 0
    while start < len(rows):
        end = max(bisect_right(offsets, offsets[start] + BLOCK_BYTES) - 1, start + 1)
        yield end - start, bytes(data[offsets[start] : offsets[end]])
        start = end
