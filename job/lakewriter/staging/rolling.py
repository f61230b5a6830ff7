"""Cut rows into batches, row groups and files: at the same places for the same rows, however the rows arrive."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewriter.nested_arrays import find_text_bounds
from lakewriter.spec.specification import MIB, Limits

BATCH_ROWS: Final = 8192
"""Rows of a batch. Files are cut at its multiples, so a change gives other files for the same rows."""

BATCH_BYTES: Final = 16 * MIB


@dataclass(frozen=True)
class Sized:
    """A batch with its size in bytes by ``measure_batch``."""

    batch: pa.RecordBatch
    size: int


class CanonicalRows:
    """A partition's rows in batches of at most ``batch_rows`` rows and ``batch_bytes`` bytes.

    Where they are cut depends on the rows alone, not on the batches they came in, so that every feed gives the same
    files.
    """

    def __init__(
        self, batches: Iterator[pa.RecordBatch], *, batch_rows: int = BATCH_ROWS, batch_bytes: int = BATCH_BYTES
    ) -> None:
        self._batches = _cut_batches(batches, batch_rows, batch_bytes)
        self._head: Sized | None = None

    def peek(self) -> Sized | None:
        """Return the next batch without taking it, None at the end."""
        if self._head is None:
            self._head = next(self._batches, None)
        return self._head

    def take(self, rows: int) -> Sized | None:
        """Take the next batch, or its first ``rows`` rows; None at the end."""
        head = self.peek()
        if head is None or head.batch.num_rows <= rows:
            self._head = None
            return head
        front = head.batch.slice(0, rows)
        taken = Sized(front, measure_batch(front))
        self._head = Sized(head.batch.slice(rows), head.size - taken.size)
        return taken


class FileRows:
    """The rows of one file: as many as reach the target size, up to the end of a row group.

    ``written`` returns the file's bytes so far. A row group that grows to twice its budget, since later rows are wider
    than the first, ends the file early, so that memory stays bounded.
    """

    def __init__(self, rows: CanonicalRows, limits: Limits, written: Callable[[], int]) -> None:
        self._source = rows
        self._limits = limits
        self._written = written
        self.rows = 0
        self.row_groups = 0
        self.row_group_rows = choose_row_group_rows(rows.peek(), limits)

    def take_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches for the encoder; no batch crosses the end of a row group."""
        while not self._is_full():
            size = count = 0
            while count < self.row_group_rows:
                taken = self._source.take(self.row_group_rows - count)
                if taken is None:
                    break
                count += taken.batch.num_rows
                size += taken.size
                self.row_groups += count == taken.batch.num_rows
                self.rows += taken.batch.num_rows
                yield taken.batch
                if size > 2 * self._limits.row_group_bytes:
                    return
            if count < self.row_group_rows:
                return

    def _is_full(self) -> bool:
        if not self.row_groups:
            return False
        written = self._written()
        return written + 0.6 * written / self.row_groups > self._limits.target_file_bytes


def choose_row_group_rows(first: Sized | None, limits: Limits) -> int:
    """Choose the number of rows in a row group by the size of a file's first batch: whole batches where it has
    several."""
    fitting = BATCH_ROWS if first is None else limits.row_group_bytes * first.batch.num_rows // max(first.size, 1)
    rows = min(fitting, limits.row_group_rows)
    return max(rows, 1) if rows < BATCH_ROWS else rows // BATCH_ROWS * BATCH_ROWS


def measure_batch(batch: pa.RecordBatch) -> int:
    """Return the bytes of the batch's own rows; unlike ``nbytes``, the sizes of two slices add up exactly."""
    return sum(_measure_array(column) for column in batch.columns)


def _cut_batches(batches: Iterator[pa.RecordBatch], max_rows: int, max_bytes: int) -> Iterator[Sized]:
    held: list[Sized] = []
    rows = size = 0
    for batch in batches:
        rest = batch
        while rest.num_rows:
            piece = _take_fitting(rest, max_rows - rows, max_bytes - size, at_least=0 if held else 1)
            if piece.batch.num_rows:
                held.append(piece)
                rows, size = rows + piece.batch.num_rows, size + piece.size
                rest = rest.slice(piece.batch.num_rows)
            if rest.num_rows:
                yield _join(held, size)
                held, rows, size = [], 0, 0
    if held:
        yield _join(held, size)


def _take_fitting(batch: pa.RecordBatch, rows: int, size: int, *, at_least: int) -> Sized:
    piece = batch.slice(0, rows)
    whole = measure_batch(piece)
    if whole <= size:
        return Sized(piece, whole)
    fitting = bisect_right(range(1, piece.num_rows + 1), size, key=lambda n: measure_batch(piece.slice(0, n)))
    cut = piece.slice(0, max(fitting, at_least))
    return Sized(cut, measure_batch(cut))


def _join(held: list[Sized], size: int) -> Sized:
    if len(held) == 1:
        return held[0]
    return Sized(pa.concat_batches([piece.batch for piece in held]), size)


def _measure_array(array: pa.Array) -> int:
    kind, types = array.type, pa.types
    if len(array) == 0 or types.is_null(kind):
        return len(array)
    if types.is_struct(kind):
        return len(array) + sum(_measure_array(array.field(i)) for i in range(kind.num_fields))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return _measure_list(array)
    if types.is_string(kind) or types.is_binary(kind):
        return _measure_text(array, pa.int32())
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return _measure_text(array, pa.int64())
    return _measure_fixed(array)


def _measure_fixed(array: pa.Array) -> int:
    try:
        return len(array) * max(int(array.type.bit_width) // 8, 1)
    except ValueError:
        # A type no file stores; near enough.
        return int(array.nbytes)


def _measure_list(array: pa.Array) -> int:
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    children = (array.keys, array.items) if pa.types.is_map(array.type) else (array.values,)
    return 4 * len(array) + sum(_measure_array(child.slice(start, end - start)) for child in children)


def _measure_text(array: pa.Array, offset: pa.DataType) -> int:
    start, end = find_text_bounds(array, offset)
    return 4 * len(array) + end - start
