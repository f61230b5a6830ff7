"""The protocols of an encoder and of the sink that it writes to."""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa


class Sink(Protocol):
    """Receiver of one file's bytes in order; what ``write`` raises reaches the caller of ``Encoder.write`` as it is."""

    def write(self, data: bytes) -> int:
        """Write ``data`` and return the number of bytes taken, always all of them."""

    def tell(self) -> int:
        """Return the number of bytes taken so far."""


class Encoder(Protocol):
    """One file format with its settings; ``name`` is the engine's, for receipts and reports."""

    @property
    def name(self) -> str:
        """The engine."""

    @property
    def footer(self) -> bool:
        """True if the file ends with Parquet's metadata."""

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: Sink, row_group_rows: int) -> None:
        """Write one whole file; it ends when ``batches`` does.

        No batch may reach over a row group's edge. When the batch after an edge is asked for, ``sink`` has been given
        everything before it (some engines keep back their last few kilobytes).
        """
