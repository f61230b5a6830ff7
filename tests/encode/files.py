"""Files written to memory."""

import io
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from lakewriter.encode.parquet import ParquetEncoder
from lakewriter.spec.encodings import ParquetEncoding


class MemorySink(io.BytesIO):
    """A sink that is not closed by whoever writes to it, and may fail after so many bytes."""

    def __init__(self, *, fails_after: int | None = None) -> None:
        super().__init__()
        self.fails_after = fails_after
        self.calls_after_failure = -1

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Takes ``data``, or raises ``OSError``."""
        if self.calls_after_failure >= 0 or (self.fails_after is not None and self.tell() >= self.fails_after):
            self.calls_after_failure += 1
            raise OSError("no room")
        return super().write(data)


def written(
    encoding: ParquetEncoding,
    schema: pa.Schema,
    batches: Sequence[pa.RecordBatch] | Iterator[pa.RecordBatch],
    rows: int = 8192,
) -> bytes:
    """The bytes of one file."""
    sink = MemorySink()
    ParquetEncoder(encoding).write(schema, iter(batches), sink, rows)
    return sink.getvalue()


def opened(data: bytes) -> pq.ParquetFile:
    """The file that ``data`` is."""
    return pq.ParquetFile(pa.BufferReader(data))


def numbers(rows: int, start: int = 0) -> pa.RecordBatch:
    """``id`` counts up from ``start``, ``name`` has five values."""
    ids = range(start, start + rows)
    return pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{i % 5}" for i in ids])})
