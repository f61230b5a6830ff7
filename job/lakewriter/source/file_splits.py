"""Open the splits feed: each task reads its own pieces of files with the product's readers."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import Final

import pyarrow as pa

from lakewriter.report import format_count
from lakewriter.source.bad_rows import Marked
from lakewriter.source.files.file_reader import Item, Piece, Result, Spread
from lakewriter.source.files.file_source import OpenedFiles, open_files
from lakewriter.source.judged_rows import AnySource, judge_rows
from lakewriter.source.request import Body, Feed, Reader, RowsRequest, SparkFactory
from lakewriter.source.source_options import make_reader_options, resolve_secrets
from lakewriter.source.spark_failures import Origin
from lakewriter.source.task_sizes import Sizes, read_sizes
from lakewriter.spec.specification import MIB
from lakewriter.spec.table_spec import IndexKind, TableSpec

PIECE_BYTES: Final = 64 * MIB
_FEW_BYTES: Final = 16 * MIB
"""The driver itself reads all rows of files up to this size: a job of Spark takes longer."""
_ONE_TASK_BYTES: Final = 4 * MIB
"""Equal to Spark's ``openCostInBytes``: below it, more tasks take longer."""
_THREADS: Final = 4


def spread_locally(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call ``work`` for each item in threads of this process."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(work, items))


def make_spread(spark: SparkFactory, origin: Origin) -> Spread:
    """Return a function that calls work in Spark's tasks if there are many bytes to read."""

    def spread(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if sum(measure(item) for item in items) <= _FEW_BYTES:
            return spread_locally(work, items)
        with origin.explain_errors():
            return list(spark().sparkContext.parallelize(items, len(items)).map(work).collect())

    return spread


def measure(item: object) -> int:
    """Return the bytes that work on an item reads. An item is a file, a piece or a part of one, or several of them."""
    if isinstance(item, tuple | list):
        return sum(map(measure, item))
    return int(getattr(item, "size", 0))


class FilesFeed(Feed):
    """Batches read by the tasks, at most 65,536 rows and about 8 MiB of a file each."""

    kind = "splits"
    is_in_order = True

    def __init__(
        self,
        spark: SparkFactory,
        opened: OpenedFiles,
        source: AnySource,
        partitions: Sequence[tuple[Piece, ...]],
        counts: tuple[int, ...] | None,
        origin: Origin,
    ) -> None:
        files = len(opened.look.files)
        self.schema = source.schema
        self.notes = opened.notes
        self.inferred, self.is_untyped = opened.inferred, opened.is_untyped
        self.reason = f"{format_count(files, 'file')}, read by the tasks themselves"
        self.partitions = len(partitions)
        self.counts = counts
        self._spark, self._source, self._pieces, self._origin = spark, source, partitions, origin
        self._opened = opened

    @property
    def input_bytes(self) -> int:
        """The size of its files in bytes, as they are stored."""
        return measure(self._pieces)

    def read_stored_types(self) -> Mapping[str, str]:
        """Return the types of the columns that its first file stores as another type."""
        return self._opened.read_stored_types()

    def list_readers(self) -> list[Reader]:
        """Return the reader of each partition, which runs in any task."""
        return [partial(read_pieces, self._source, pieces) for pieces in self._pieces]

    def run(self, body: Body) -> list[str]:
        """Return what ``body`` yields in the tasks, in the order of the partitions."""
        if not self._pieces:
            return []
        pieces = self._spark().sparkContext.parallelize(self._pieces, self.partitions)
        with self._origin.explain_errors():
            return list(pieces.mapPartitionsWithIndex(partial(_run_task, self._source, body)).collect())

    def read_first(self, rows: int) -> pa.Table:
        """Return the first rows in one table, under the source's names, without the bad ones."""
        return read_good_rows(self._source, [piece for pieces in self._pieces for piece in pieces], rows)


def _run_task(source: AnySource, body: Body, partition: int, shares: Iterable[tuple[Piece, ...]]) -> Iterator[str]:
    yield from body(partition, (batch for pieces in shares for batch in read_pieces(source, pieces)))


def read_pieces(source: AnySource, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of pieces in their order, reading small ones ahead."""
    yield from read_ahead([Reading(piece.size, partial(source.read, piece)) for piece in pieces])


def read_good_rows(source: AnySource, pieces: Sequence[Piece], rows: int) -> pa.Table:
    """Return the first rows in one table, without the bad ones and without marks."""
    batches: list[pa.RecordBatch] = []
    for batch in source.read_all(pieces):
        good = Marked(batch).good if source.aside else batch
        batches.append(good.slice(0, rows - sum(taken.num_rows for taken in batches)))
        if sum(taken.num_rows for taken in batches) >= rows:
            break
    return pa.Table.from_batches(batches, source.schema)


def open_own_files(table: TableSpec, spread: Spread) -> OpenedFiles:
    """Look at the files of a table that the product's own readers read."""
    options = make_reader_options(table.read, resolve_secrets(table.read))
    return open_files(table, table.read, options, spread, aside=table.sets_aside)


def open_file_splits(request: RowsRequest) -> FilesFeed | None:
    """Open the feed of a table whose files the tasks read; None if only Spark can evaluate the table's conditions."""
    opened = open_own_files(request.table, make_spread(request.spark, request.origin))
    return make_feed(request, opened, request.origin)


def make_feed(request: RowsRequest, opened: OpenedFiles, origin: Origin, most: int | None = None) -> FilesFeed | None:
    """Make the feed of files that have been looked at; None if only Spark can evaluate the table's conditions.

    ``most`` is the limit for partitions; if it is None, their size alone decides.
    """
    source = judge_rows(request, opened.source)
    if source is None:
        return None
    spread = make_spread(request.spark, origin)
    pieces = opened.cut(PIECE_BYTES, spread)
    is_one = request.single or most == 1 or (most is None and measure(pieces) <= _ONE_TASK_BYTES)
    partitions = [tuple(pieces)] if is_one and pieces else []
    if pieces and not is_one:
        partitions = pack_pieces(pieces, read_sizes(request.spark()))
    if most is not None and len(partitions) > most:
        partitions = join_partitions(partitions, most)
    counts = count_rows(partitions) if source.has_all_rows else None
    if counts is None and len(partitions) > 1 and request.table.index == IndexKind.CONTIGUOUS:
        counts = tuple(spread(source.count_all, partitions))
    return FilesFeed(request.spark, opened, source, partitions, counts, origin)


def count_rows(partitions: Sequence[Sequence[Piece]]) -> tuple[int, ...] | None:
    """Return the rows of each partition; None if a file does not state them."""
    rows = [[piece.rows for piece in pieces] for pieces in partitions]
    if any(count is None for counts in rows for count in counts):
        return None
    return tuple(sum(filter(None, counts)) for counts in rows)


def pack_pieces(pieces: Sequence[Piece], sizes: Sizes) -> list[tuple[Piece, ...]]:
    """Return pieces in partitions of about the size that Spark's would have, in their order."""
    total = sum(piece.size + sizes.open_cost for piece in pieces)
    limit = min(sizes.partition_bytes, max(sizes.open_cost, total // sizes.least_partitions))
    partitions: list[list[Piece]] = []
    filled = limit
    for piece in pieces:
        if filled + piece.size // 2 >= limit:
            partitions.append([])
            filled = 0
        partitions[-1].append(piece)
        filled += piece.size + sizes.open_cost
    return [tuple(partition) for partition in partitions]


def join_partitions(partitions: Sequence[tuple[Piece, ...]], count: int) -> list[tuple[Piece, ...]]:
    """Return the pieces in ``count`` partitions, in their order."""
    bounds = [len(partitions) * number // count for number in range(count + 1)]
    return [tuple(chain(*partitions[start:stop])) for start, stop in pairwise(bounds)]


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
    To open a file on S3 takes several requests.
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
            while waiting and len(opened) < _AT_ONCE and measure([*opened, waiting[0]]) <= _AHEAD_BYTES:
                open_next()
            first = opened[0]
            batch = first.coming.result()
            if batch is None:
                opened.popleft()
                continue
            first.coming = threads.submit(next, first.batches, None)
            yield batch
