"""Read a task's next small files while it works on the one before: opening a file on S3 takes several requests."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewriter.spec.specification import MIB

_AT_ONCE: Final = 4
_AHEAD_BYTES: Final = 4 * MIB
"""The limit for files that are read early: a task then holds little beside its row group. For larger files the requests
take a small part of the time, and two of them would take much memory."""


@dataclass(frozen=True)
class Reading:
    """One file to read: ``size`` is its length in bytes, ``open`` yields its batches."""

    size: int
    open: Callable[[], Iterator[pa.RecordBatch]]


@dataclass
class _Opened:
    size: int
    batches: Iterator[pa.RecordBatch]
    coming: Future[pa.RecordBatch | None]


def read_ahead(readings: Sequence[Reading]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all files in their order.

    Small files are read ahead, up to four at a time with 4 MiB together: another thread reads each one's next batch.
    """
    waiting, opened = deque(readings), deque[_Opened]()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="read-ahead") as threads:

        def open_next() -> None:
            reading = waiting.popleft()
            batches = reading.open()
            opened.append(_Opened(reading.size, batches, threads.submit(next, batches, None)))

        while waiting or opened:
            if not opened and waiting[0].size > _AHEAD_BYTES:
                yield from waiting.popleft().open()
                continue
            while waiting and len(opened) < _AT_ONCE and _measure([*opened, waiting[0]]) <= _AHEAD_BYTES:
                open_next()
            first = opened[0]
            batch = first.coming.result()
            if batch is None:
                opened.popleft()
                continue
            first.coming = threads.submit(next, first.batches, None)
            yield batch


def _measure(files: Sequence[_Opened | Reading]) -> int:
    return sum(file.size for file in files)
