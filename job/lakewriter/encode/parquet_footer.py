"""A Parquet file's footer, read from the last bytes of a file that is being written, or of an object."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lakewriter import aws
from lakewriter.receipt import ColumnStatistics
from lakewriter.spec.specification import MIB

TAIL_BYTES: Final = 16 * MIB
FIRST_BYTES: Final = 64 * 1024
"""This end of an object holds most footers."""
_SURE_BYTES: Final = 60
"""Writers cut long bounds near 64 bytes, at the edge of a character, and do not all say so."""


class Tail:
    """The last bytes of a file that is being written."""

    def __init__(self, limit: int = TAIL_BYTES) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._size = 0

    def write(self, data: bytes) -> None:
        """Keep the last bytes of ``data``, and drop those that are no longer among the file's last."""
        self._pieces.append(data)
        self._size += len(data)
        while self._size - len(self._pieces[0]) >= self._limit:
            self._size -= len(self._pieces.popleft())

    def metadata(self) -> pq.FileMetaData | None:
        """Return the footer of the file that has ended; None if it is larger than the kept tail."""
        tail = b"".join(self._pieces)
        if _read_footer_size(tail) > len(tail):
            return None
        return pq.read_metadata(pa.BufferReader(tail))


def read_footer(clients: aws.Clients, bucket: str, key: str, end: bytes | None = None) -> pq.FileMetaData | None:
    """Return the footer of a Parquet object, read from its last bytes; None if it would exceed ``TAIL_BYTES``.

    ``end`` are its last ``FIRST_BYTES``, where these are at hand.
    """
    size, body = FIRST_BYTES, end
    while True:
        if body is None:
            body = _read_end(clients, bucket, key, size)
        needed = _read_footer_size(body)
        if needed <= len(body):
            return pq.read_metadata(pa.BufferReader(body))
        if needed > TAIL_BYTES or len(body) < size:
            return None
        size, body = needed, None


def _read_end(clients: aws.Clients, bucket: str, key: str, size: int) -> bytes:
    try:
        return aws.read_object(clients.s3, Bucket=bucket, Key=key, Range=f"bytes=-{size}")[0]
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise aws.explain(error, doing=f"s3:GetObject on s3://{bucket}/{key}", access=clients.access) from error


def _read_footer_size(tail: bytes) -> int:
    """Return the footer's size in bytes: a file ends with its length in four bytes and the four bytes "PAR1"."""
    return int.from_bytes(tail[-8:-4], "little") + 8


def list_leaf_columns(schema: pa.Schema) -> tuple[str, ...]:
    """Return the dotted paths of the leaf columns that a Parquet file of this schema has; none where pyarrow has no
    such file."""
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(schema.empty_table(), sink)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return ()
    leaves = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    return tuple(leaves.column(number).path for number in range(len(leaves)))


def read_column_statistics(metadata: pq.FileMetaData) -> dict[str, ColumnStatistics]:
    """Return statistics of every leaf column over all row groups, by its dotted path in the Parquet schema.

    Bounds are exact: ISO 8601 for dates and times, hex digits for binary, ``str()`` for the rest; None where a row
    group has none, or where a text or binary bound is so long that the writer may have cut it.
    """
    return {chunks[0].path_in_schema: _merge(chunks) for chunks in _iterate_columns(metadata)}


@dataclass(frozen=True)
class Bounds:
    """A leaf column over all row groups: ``nulls``, and the lowest and the highest value.

    They are None if they are unknown or no row has a value. NaN has no part in them, and long text may be cut.
    """

    nulls: int | None
    lower: Any
    upper: Any


def read_bounds(metadata: pq.FileMetaData, path: str) -> Bounds | None:
    """Return the nulls and bounds of the leaf column at a dotted path; None if the footer has no such column."""
    chunks = next((chunks for chunks in _iterate_columns(metadata) if chunks[0].path_in_schema == path), None)
    if chunks is None:
        return None
    lower, upper = _join_bounds(chunks) or (None, None)
    return Bounds(_count_nulls(chunks), lower, upper)


@dataclass(frozen=True)
class _Chunk:
    path_in_schema: str
    values: int
    nulls: int | None
    compressed_bytes: int
    bounds: tuple[Any, Any] | None


def _iterate_columns(metadata: pq.FileMetaData) -> Iterator[list[_Chunk]]:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for column in range(metadata.num_columns if groups else 0):
        yield [_read_chunk(group.column(column)) for group in groups]


def _read_chunk(column: pq.ColumnChunkMetaData) -> _Chunk:
    statistics = column.statistics
    nulls = statistics.null_count if statistics is not None and statistics.has_null_count else None
    return _Chunk(
        column.path_in_schema, column.num_values, nulls, column.total_compressed_size, _read_bounds(column.statistics)
    )


def _read_bounds(statistics: pq.Statistics | None) -> tuple[Any, Any] | None:
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        return statistics.min, statistics.max
    except (ValueError, OverflowError):
        # Python has no dates beyond the year 9999.
        return None


def read_sure_bounds(statistics: pq.Statistics | None) -> tuple[Any, Any] | None:
    """Return the lowest and the highest value of a column in a row group; None where they are unknown, or so long that
    the writer may have cut them."""
    bounds = _read_bounds(statistics)
    return None if bounds is None or any(map(_may_be_cut, bounds)) else bounds


def _may_be_cut(value: Any) -> bool:
    return isinstance(value, str | bytes) and len(value.encode() if isinstance(value, str) else value) > _SURE_BYTES


def _count_nulls(chunks: list[_Chunk]) -> int | None:
    nulls = [chunk.nulls for chunk in chunks]
    return None if None in nulls else sum(n for n in nulls if n is not None)


def _join_bounds(chunks: list[_Chunk]) -> tuple[Any, Any] | None:
    filled = [chunk for chunk in chunks if chunk.nulls != chunk.values]
    bounds = [chunk.bounds for chunk in filled if chunk.bounds is not None]
    if not bounds or len(bounds) != len(filled):
        return None
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _merge(chunks: list[_Chunk]) -> ColumnStatistics:
    bounds = _join_bounds(chunks)
    return ColumnStatistics(
        values=sum(chunk.values for chunk in chunks),
        nulls=_count_nulls(chunks),
        compressed_bytes=sum(chunk.compressed_bytes for chunk in chunks),
        lower=_write_text(bounds[0]) if bounds else None,
        upper=_write_text(bounds[1]) if bounds else None,
    )


def _write_text(value: Any) -> str | None:
    if _may_be_cut(value):
        return None
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, datetime | date) else str(value)
