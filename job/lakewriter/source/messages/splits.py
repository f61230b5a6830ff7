"""Open the splits feed of messages: each task reads its own pieces of the files, and no data passes through the JVM."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.documents.types import DOCUMENTS
from lakewriter.errors import SourceFailedError
from lakewriter.source.bad_rows import BAD_FIELD, FIELDS, mark_schema
from lakewriter.source.messages.chunks import read_chunks
from lakewriter.source.messages.contents import Contents, scan
from lakewriter.source.messages.lines import parse_line
from lakewriter.source.messages.mended_lines import parse_odd_line
from lakewriter.source.request import Body, Feed, Reader
from lakewriter.source.spark_failures import Origin, make_unreadable_error
from lakewriter.source.storage import AnyStore, NotListable, list_files
from lakewriter.source.task_sizes import Chunk, SourceFile
from lakewriter.spec.stream import StreamKey

FILE_BITS: Final = 42
"""A line's position is its file's number above these bits, and its first byte's offset below them."""
PIECE_BYTES: Final = 16 * 1024 * 1024
"""The size of a piece of plain text: a fraction of a target file's input, so that several pieces nearly fill a file."""
_MOST_PIECES: Final = 10_000
_BLOCK: Final = 4 * 1024 * 1024
_ROWS, _BYTES = 8192, 8 * 1024 * 1024
_GZIP: Final = ".gz"
_MARKED: Final = mark_schema([field.with_nullable(True) for field in DOCUMENTS])


@dataclass(frozen=True)
class MessageFiles:
    """Files of messages in order."""

    store: AnyStore
    files: tuple[SourceFile, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each file, by path."""
        return {file.path: number for number, file in enumerate(self.files)}


@dataclass(frozen=True)
class Piece:
    """A part of a file, and the file's number."""

    chunk: Chunk
    number: int

    @property
    def start(self) -> int:
        """The position of its first byte."""
        return (self.number << FILE_BITS) + self.chunk.start

    @property
    def end(self) -> int:
        """The position behind its last line's first byte."""
        if self.chunk.path.endswith(_GZIP):
            return (self.number + 1) << FILE_BITS
        return self.start + self.chunk.length


END: Final = 1 << 62
"""A position behind all records."""


@dataclass(frozen=True)
class Stretch:
    """The records of one stream that are loaded: those at positions from ``start`` to before ``end``."""

    stream: StreamKey
    start: int = 0
    end: int = END

    def has_piece(self, piece: Piece) -> bool:
        """Return True if a position of the piece is in the stretch."""
        return piece.start < self.end and piece.end > self.start


def list_message_files(paths: Sequence[str]) -> MessageFiles:
    """Return the files in the order of the paths, sorted by name in a folder. Raise ``SOURCE_FAILED`` if there are
    none.
    """
    try:
        store, files = list_files(tuple(paths))
        if len({file.path for file in files}) < len(files):
            raise NotListable("a file is named twice, or with its folder")
    except (NotListable, OSError, BotoCoreError, ClientError) as error:
        raise SourceFailedError(f"messages in {', '.join(paths)} cannot be read: {error}") from error
    return MessageFiles(store, tuple(files))


def cut_pieces(message_files: MessageFiles) -> list[Piece]:
    """Return the files in pieces, in order. A compressed file is one piece."""
    numbers = message_files.numbers
    length = max(PIECE_BYTES, sum(file.length for file in message_files.files) // _MOST_PIECES)
    return [
        Piece(Chunk(file.path, start, min(step, file.length - start)), numbers[file.path])
        for file in message_files.files
        for step in (file.length if file.path.endswith(_GZIP) else length,)
        for start in range(0, file.length, max(step, 1))
    ]


def scan_pieces(spark: SparkSession, message_files: MessageFiles) -> dict[Piece, Contents]:
    """Return the contents of each piece, in the order of the positions; tasks read them."""
    pieces = cut_pieces(message_files)
    if not pieces:
        return {}
    listed = spark.sparkContext.parallelize(pieces, len(pieces))
    with Origin("messages", "Airbyte messages").explain_errors():
        texts = listed.map(partial(_scan, message_files.store)).collect()
    return {piece: Contents.from_json(json.loads(text)) for piece, text in zip(pieces, texts, strict=True)}


class Unread(Feed):
    """Messages that are not read now, because only the columns are needed."""

    kind = "splits"
    reason = "Airbyte messages, read by the tasks themselves"
    schema = DOCUMENTS
    partitions = 0

    def run(self, body: Body) -> list[str]:
        """Return nothing."""
        return []


class MessagesFeed(Feed):
    """Documents of one stream, at most 8,192 rows and about 8 MiB each."""

    kind = "splits"
    schema = DOCUMENTS

    def __init__(
        self,
        spark: SparkSession,
        store: AnyStore,
        stretch: Stretch,
        sizes: Mapping[Piece, int],
        table: str,
        *,
        sets_aside: bool = False,
    ) -> None:
        self._sizes = {piece: size for piece, size in sizes.items() if stretch.has_piece(piece)}
        self._pieces = [tuple(self._sizes)] if self._sizes else []
        self.partitions = len(self._pieces)
        self._is_divisible = True
        self.reason = "Airbyte messages, read by the tasks themselves"
        self._spark, self._store, self._stretch = spark, store, stretch
        self._sets_aside = sets_aside
        self._origin = Origin(table, "Airbyte messages")

    @property
    def size(self) -> int:
        """The size of the records' data in bytes."""
        return sum(self._sizes.values())

    def divide(self, partitions: int) -> None:
        """Divide the records into at most ``partitions`` shares, in order and of about the same size."""
        if not self._is_divisible or not self._pieces:
            return
        shares: list[list[Piece]] = [[] for _ in range(partitions)]
        total, before = max(self.size, 1), 0
        for piece, size in self._sizes.items():
            shares[min((2 * before + size) * partitions // (2 * total), partitions - 1)].append(piece)
            before += size
        self._pieces = [tuple(share) for share in shares if share]
        self.partitions = len(self._pieces)

    def sample(self) -> Iterator[pa.RecordBatch]:
        """Yield some of the records: of the first piece, of one in the middle and of the last."""
        pieces, system = list(self._sizes), self._store.open()
        for piece in dict.fromkeys((pieces[0], pieces[len(pieces) // 2], pieces[-1])):
            yield from itertools.islice(read_batches(system, piece, self._stretch), 1)

    @property
    def input_bytes(self) -> int:
        """The size of its pieces in bytes, which may hold the records of other streams too."""
        return sum(piece.chunk.length for piece in self._sizes)

    def list_readers(self) -> list[Reader]:
        """Return the reader of each partition, which runs in any task."""
        return [
            partial(_read_documents, self._store, self._stretch, self._sets_aside, pieces) for pieces in self._pieces
        ]

    def run(self, body: Body) -> list[str]:
        """Return what ``body`` yields in the tasks, in the order of the partitions."""
        if not self._pieces:
            return []
        pieces = self._spark.sparkContext.parallelize(self._pieces, self.partitions)
        with self._origin.explain_errors():
            task = partial(_run_task, self._store, self._stretch, body, self._sets_aside)
            return list(pieces.mapPartitionsWithIndex(task).collect())

    def merge(self) -> "MessagesFeed":
        """Return the same records in one partition."""
        self.divide(1)
        self._is_divisible = False
        return self


def scan_piece(store: AnyStore, piece: Piece) -> Contents:
    """Return the contents of one piece."""
    return scan(read_lines(store.open(), piece))


def _scan(store: AnyStore, piece: Piece) -> str:
    return json.dumps(scan_piece(store, piece).to_json())


def _run_task(
    store: AnyStore,
    stretch: Stretch,
    body: Body,
    sets_aside: bool,
    partition: int,
    pieces: Iterator[tuple[Piece, ...]],
) -> Iterator[str]:
    documents = (batch for share in pieces for batch in _read_documents(store, stretch, sets_aside, share))
    yield from body(partition, documents)


def _read_documents(
    store: AnyStore, stretch: Stretch, sets_aside: bool, pieces: tuple[Piece, ...]
) -> Iterator[pa.RecordBatch]:
    system = store.open()
    for piece in pieces:
        yield from read_batches(system, piece, stretch, sets_aside)


def read_batches(
    system: fs.FileSystem, piece: Piece, stretch: Stretch, sets_aside: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a stream in a piece. With ``sets_aside`` yield bad records too, in batches of
    marked rows.
    """
    namespace, name = stretch.stream
    held: list[tuple[int, bytes, int | None, bytes | None]] = []
    size = 0
    for position, line in read_lines(system, piece):
        if not stretch.start <= position < stretch.end:
            continue
        message = parse_line(line)
        if message is None:
            odd = parse_odd_line(line)
            message = odd.message
            if sets_aside and odd.is_record and odd.stream in (None, stretch.stream):
                yield _make_bad_batch(piece, position, line, odd.fault)
        record = message.record if message is not None else None
        # Compared as ``stream_key`` does, without a call for each record.
        if record is None or record.stream != name or (record.namespace or None) != namespace:
            continue
        data = bytes(record.data) if record.file_reference is None else record.text
        changes = (bytes(record.meta.changes) or None) if record.meta else None
        held.append((position, data, None if record.emitted_at is None else int(record.emitted_at), changes))
        size += len(data)
        if len(held) >= _ROWS or size >= _BYTES:
            yield _make_batch(held)
            held, size = [], 0
    if held:
        yield _make_batch(held)


def _make_bad_batch(piece: Piece, position: int, line: bytes, fault: str) -> pa.RecordBatch:
    offset = position - (piece.number << FILE_BITS)
    values = (piece.chunk.path, offset, None, line.decode(errors="backslashreplace"), fault, None)
    mark = pa.array([dict(zip(FIELDS, values, strict=True))], BAD_FIELD.type)
    return pa.RecordBatch.from_arrays([*(pa.nulls(1, field.type) for field in DOCUMENTS), mark], schema=_MARKED)


def _make_batch(held: list[tuple[int, bytes, int | None, bytes | None]]) -> pa.RecordBatch:
    columns = zip(*held, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)], schema=DOCUMENTS
    )


def read_lines(system: fs.FileSystem, piece: Piece) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin in the piece, each with its position and without its end."""
    chunk, base = piece.chunk, piece.number << FILE_BITS
    try:
        if chunk.path.endswith(_GZIP):
            with system.open_input_stream(chunk.path, compression="gzip") as stream:
                yield from _split_lines(stream.read, 0, None, base)
            return
        with system.open_input_file(chunk.path) as source:
            # The byte before the piece shows whether its first line begins there.
            start = max(chunk.start - 1, 0)
            source.seek(start)
            yield from _split_lines(source.read, start, chunk.start + chunk.length, base, skip=chunk.start > 0)
    except (OSError, pa.ArrowException) as error:
        raise make_unreadable_error(chunk.path, error) from error


def _split_lines(
    read: Callable[[int], bytes], position: int, end: int | None, base: int, *, skip: bool = False
) -> Iterator[tuple[int, bytes]]:
    # Each read of a file in S3 is a request.
    for _, chunk in read_chunks(lambda _: read(_BLOCK)):
        for line in chunk.removesuffix(b"\n").split(b"\n"):
            if not skip:
                yield base + position, line
            skip = False
            position += len(line) + 1
            if end is not None and position >= end:
                return
