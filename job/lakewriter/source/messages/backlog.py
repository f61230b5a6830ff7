"""Hold the records of one stream that no load has taken yet: the last ones in memory, earlier ones in files."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from lakewriter.documents.types import DOCUMENTS, ROW
from lakewriter.source.messages.chunks import Records

PIECE_BYTES: Final = 8 * 1024 * 1024
_ROW_BYTES: Final = 64
"""The size of a record in memory beside its data, in bytes."""


@dataclass(frozen=True)
class PieceFile:
    """Records in a file, at positions from ``first`` to ``last``; ``size`` is that of their data in bytes."""

    path: Path
    first: int
    last: int
    size: int


class Backlog:
    """Records in the order of their positions; ``numbers`` are unique names of files in the folder."""

    def __init__(self, folder: Path, numbers: Iterator[int]) -> None:
        self._folder, self._numbers = folder, numbers
        self._records = Records(("", ""))
        self._pieces: deque[PieceFile] = deque()
        self.in_memory = 0

    @property
    def size(self) -> int:
        """The size of all records in bytes."""
        return self.in_memory + sum(piece.size for piece in self._pieces)

    def add(self, records: Records) -> int:
        """Add records and return their size in bytes."""
        held = self._records
        held.positions.extend(records.positions)
        held.data.extend(records.data)
        held.emitted_at.extend(records.emitted_at)
        held.changes.extend(records.changes)
        size = sum(map(len, records.data)) + _ROW_BYTES * len(records.data)
        self.in_memory += size
        if self.in_memory >= PIECE_BYTES:
            self.flush()
        return size

    def flush(self) -> None:
        """Move the records in memory into a file."""
        held = self._records
        if held.positions:
            columns = (held.positions, held.data, held.emitted_at, held.changes)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=DOCUMENTS)
            self._pieces.append(self._write(batch, self.in_memory))
            self._records, self.in_memory = Records(held.key), 0

    def has_file(self, before: int) -> bool:
        """Return True if ``take`` yields a file."""
        return bool(self._pieces) and self._pieces[0].last < before

    def take(self, before: int) -> Iterator[PieceFile]:
        """Yield files whose records all lie before a position. The caller deletes them."""
        while self.has_file(before):
            yield self._pieces.popleft()

    def take_all(self, before: int) -> Iterator[PieceFile]:
        """Yield files with all records before a position."""
        self.flush()
        yield from self.take(before)
        if self._pieces and self._pieces[0].first < before:
            yield self._cut(self._pieces.popleft(), before)

    def _cut(self, piece: PieceFile, before: int) -> PieceFile:
        batch = read_piece(piece.path)
        count = bisect_left(batch.column(ROW).to_pylist(), before)
        size = piece.size * count // batch.num_rows
        self._pieces.appendleft(self._write(batch.slice(count), piece.size - size))
        piece.path.unlink()
        return self._write(batch.slice(0, count), size)

    def _write(self, batch: pa.RecordBatch, size: int) -> PieceFile:
        path = self._folder / f"{next(self._numbers):010d}"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, DOCUMENTS) as stream:
            stream.write_batch(batch)
        positions = batch.column(ROW)
        return PieceFile(path, positions[0].as_py(), positions[-1].as_py(), size)


def read_piece(path: Path) -> pa.RecordBatch:
    """Return the records of a file, copied into memory."""
    with pa.ipc.open_stream(path.read_bytes()) as stream:
        return stream.read_next_batch()
