"""Keeps Python exceptions out of an engine that cannot carry them."""

from collections.abc import Iterator
from types import TracebackType

import pyarrow as pa

from lakewriter.encode.encoder import Sink


class Guard:
    """Stands between an engine and both of its ends, as the file object that engines expect.

    parquet-rs turns what a sink raises into a panic, what a source raises into an exception without a type, and
    pyarrow's writer goes on writing when it is closed after a failure. So the first exception is kept, the engine
    sees its input end and its output accepted, and leaving the ``with`` block raises what was kept.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._kept: BaseException | None = None
        self.closed = False

    def batches(self, source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """``source``, until it or the sink fails."""
        while self._kept is None:
            try:
                batch = next(source, None)
            except BaseException as error:  # noqa: BLE001 - raised again by __exit__
                self._kept = error
                return
            if batch is None:
                return
            yield batch

    def write(self, data: bytes) -> int:
        """Always takes everything."""
        if self._kept is None:
            try:
                self._sink.write(bytes(data))
            except BaseException as error:  # noqa: BLE001 - raised again by __exit__
                self._kept = error
        return len(data)

    def tell(self) -> int:
        """The sink's position."""
        return self._sink.tell()

    def seek(self, _offset: int, _whence: int = 0) -> int:
        """Asked by parquet-rs for the position only."""
        return self._sink.tell()

    def flush(self) -> None:
        """Nothing: the sink decides."""

    def close(self) -> None:
        """Nothing: the sink's owner ends it."""

    def __enter__(self) -> "Guard":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            raise kept
