"""The splits feed of messages: each task reads its own stretches of the files, and nothing crosses from the JVM."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.documents.types import DOCUMENTS
from lakewriter.errors import SourceFailedError
from lakewriter.source.bad_rows import BAD_FIELD, FIELDS
from lakewriter.source.failures import SPARK_ERRORS, Origin, make_unreadable_error
from lakewriter.source.messages.contents import Contents, scan
from lakewriter.source.messages.lines import parse_line
from lakewriter.source.messages.odd_lines import parse_odd_line
from lakewriter.source.packing import Chunk, SourceFile, pack, read_sizes
from lakewriter.source.storage import AnyStore, NotListable, list_files
from lakewriter.spec.stream import StreamKey

Body = Callable[[int, Iterator[pa.RecordBatch]], Iterator[str]]

FILE_BITS: Final = 42
"""A line's place is its file's number above these bits, and its first byte's offset below them."""
_BLOCK: Final = 4 * 1024 * 1024
_ROWS, _BYTES = 8192, 8 * 1024 * 1024
_GZIP: Final = ".gz"
_MARKED: Final = pa.schema([*(field.with_nullable(True) for field in DOCUMENTS), BAD_FIELD])


@dataclass(frozen=True)
class MessageFiles:
    """Files of messages in order."""

    store: AnyStore
    files: tuple[SourceFile, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """Each file's number."""
        return {file.path: number for number, file in enumerate(self.files)}


@dataclass(frozen=True)
class Piece:
    """A stretch of a file and the file's number."""

    chunk: Chunk
    number: int

    @property
    def start(self) -> int:
        """The place of its first byte."""
        return (self.number << FILE_BITS) + self.chunk.start

    @property
    def end(self) -> int:
        """The place behind its last line's first byte."""
        if self.chunk.path.endswith(_GZIP):
            return (self.number + 1) << FILE_BITS
        return self.start + self.chunk.length


@dataclass(frozen=True)
class Stretch:
    """The records of one stream that are loaded: those at places from ``start`` to before ``end``."""

    stream: StreamKey
    start: int = 0
    end: int = 1 << 62

    def has_piece(self, piece: Piece) -> bool:
        """Whether any place of the piece is in it."""
        return piece.start < self.end and piece.end > self.start


def list_message_files(paths: Sequence[str]) -> MessageFiles:
    """The files in the order of the paths, those of a folder by their names; ``SOURCE_FAILED`` where there are none."""
    try:
        store, files = list_files(tuple(paths), by_name=True)
        if len({file.path for file in files}) < len(files):
            raise NotListable("a file is named twice, or with its folder")
    except (NotListable, OSError, BotoCoreError, ClientError) as error:
        raise SourceFailedError(f"messages in {', '.join(paths)} cannot be read: {error}") from error
    return MessageFiles(store, tuple(files))


def pack_pieces(spark: SparkSession, found: MessageFiles) -> list[tuple[Piece, ...]]:
    """The pieces of each partition; a compressed file is one piece."""
    numbers = found.numbers
    whole = [file for file in found.files if file.path.endswith(_GZIP) and file.length]
    plain = [file for file in found.files if not file.path.endswith(_GZIP)]
    packed = [*pack(plain, read_sizes(spark)), *((Chunk(file.path, 0, file.length),) for file in whole)]
    return [tuple(Piece(chunk, numbers[chunk.path]) for chunk in partition) for partition in packed]


def scan_pieces(
    spark: SparkSession, message_files: MessageFiles, partitions: Sequence[tuple[Piece, ...]]
) -> dict[Piece, Contents]:
    """What each piece holds, in the order of the places; read by tasks."""
    pieces = sorted((piece for partition in partitions for piece in partition), key=lambda piece: piece.start)
    if not pieces:
        return {}
    listed = spark.sparkContext.parallelize(pieces, len(pieces))
    try:
        texts = listed.map(partial(_scan, message_files.store)).collect()
    except SPARK_ERRORS as error:
        raise Origin("messages", "Airbyte messages").make_error(error) from error
    return {piece: Contents.from_json(json.loads(text)) for piece, text in zip(pieces, texts, strict=True)}


class Unread:
    """Messages that are not read now, where only the columns are asked for."""

    kind = "splits"
    reason = "Airbyte messages, read by the tasks themselves"
    schema: pa.Schema = DOCUMENTS
    partitions = 0
    counts: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()

    def run(self, body: Body) -> list[str]:
        """Nothing."""
        return []

    def close(self) -> None:
        """Nothing is held."""


class MessagesFeed:
    """Documents of one stream, at most 8,192 rows and about 8 MiB each."""

    kind = "splits"
    counts: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()
    schema: pa.Schema = DOCUMENTS

    def __init__(
        self,
        spark: SparkSession,
        store: AnyStore,
        stretch: Stretch,
        partitions: Iterable[tuple[Piece, ...]],
        table: str,
        *,
        sets_aside: bool = False,
    ) -> None:
        kept = (tuple(piece for piece in partition if stretch.has_piece(piece)) for partition in partitions)
        self._pieces = [partition for partition in kept if partition]
        self.partitions = len(self._pieces)
        self.reason = "Airbyte messages, read by the tasks themselves"
        self._spark, self._store, self._stretch = spark, store, stretch
        self._sets_aside = sets_aside
        self._origin = Origin(table, "Airbyte messages")

    def run(self, body: Body) -> list[str]:
        """What ``body`` yields in the tasks, in the order of the partitions."""
        if not self._pieces:
            return []
        pieces = self._spark.sparkContext.parallelize(self._pieces, self.partitions)
        try:
            task = partial(_run_task, self._store, self._stretch, body, self._sets_aside)
            return list(pieces.mapPartitionsWithIndex(task).collect())
        except SPARK_ERRORS as error:
            raise self._origin.make_error(error) from error

    def merge(self) -> "MessagesFeed":
        """The same records in one partition."""
        self._pieces = [tuple(piece for partition in self._pieces for piece in partition)] if self._pieces else []
        self.partitions = len(self._pieces)
        return self

    def close(self) -> None:
        """Nothing is held."""


def select_pieces(
    contents: dict[Piece, Contents], partitions: Iterable[tuple[Piece, ...]], stream: StreamKey
) -> list[tuple[Piece, ...]]:
    """The partitions' pieces that have a record of the stream, or a bad one that may be."""
    return [tuple(piece for piece in own if contents[piece].has(stream)) for own in partitions]


def _scan(store: AnyStore, piece: Piece) -> str:
    return json.dumps(scan(read_lines(store.open(), piece)).to_json())


def _run_task(
    store: AnyStore,
    stretch: Stretch,
    body: Body,
    sets_aside: bool,
    partition: int,
    pieces: Iterator[tuple[Piece, ...]],
) -> Iterator[str]:
    system = store.open()
    documents = (each for mine in pieces for piece in mine for each in read_batches(system, piece, stretch, sets_aside))
    yield from body(partition, documents)


def read_batches(
    system: fs.FileSystem, piece: Piece, stretch: Stretch, sets_aside: bool = False
) -> Iterator[pa.RecordBatch]:
    """The documents of a stream in a piece; with ``sets_aside`` bad records too, in batches of marked rows."""
    namespace, name = stretch.stream
    held: list[tuple[int, bytes, int | None, bytes | None]] = []
    size = 0
    for place, line in read_lines(system, piece):
        if not stretch.start <= place < stretch.end:
            continue
        message = parse_line(line)
        if message is None:
            odd = parse_odd_line(line)
            message = odd.message
            if sets_aside and odd.is_record and odd.stream in (None, stretch.stream):
                yield _make_bad_batch(piece, place, line, odd.fault)
        record = message.record if message is not None else None
        # As ``stream_key`` has it, without a call for each record.
        if record is None or record.stream != name or (record.namespace or None) != namespace:
            continue
        data = bytes(record.data)
        changes = (bytes(record.meta.changes) or None) if record.meta else None
        held.append((place, data, None if record.emitted_at is None else int(record.emitted_at), changes))
        size += len(data)
        if len(held) >= _ROWS or size >= _BYTES:
            yield make_batch(held)
            held, size = [], 0
    if held:
        yield make_batch(held)


def _make_bad_batch(piece: Piece, place: int, line: bytes, fault: str) -> pa.RecordBatch:
    offset = place - (piece.number << FILE_BITS)
    values = (piece.chunk.path, offset, None, line.decode(errors="backslashreplace"), fault)
    mark = pa.array([dict(zip(FIELDS, values, strict=True))], BAD_FIELD.type)
    return pa.RecordBatch.from_arrays([*(pa.nulls(1, field.type) for field in DOCUMENTS), mark], schema=_MARKED)


def make_batch(held: list[tuple[int, bytes, int | None, bytes | None]]) -> pa.RecordBatch:
    columns = zip(*held, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, own.type) for column, own in zip(columns, DOCUMENTS, strict=True)], schema=DOCUMENTS
    )


def read_lines(system: fs.FileSystem, piece: Piece) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in the piece, each with its place and without its end."""
    chunk, base = piece.chunk, piece.number << FILE_BITS
    try:
        if chunk.path.endswith(_GZIP):
            with system.open_input_stream(chunk.path, compression="gzip") as stream:
                yield from _split_lines(stream.read, 0, None, base)
            return
        with system.open_input_file(chunk.path) as source:
            # The byte before the piece tells whether its first line begins there.
            start = max(chunk.start - 1, 0)
            source.seek(start)
            yield from _split_lines(source.read, start, chunk.start + chunk.length, base, skip=chunk.start > 0)
    except (OSError, pa.ArrowException) as error:
        raise make_unreadable_error(chunk.path, error) from error


def _split_lines(
    read: Callable[[int], bytes], place: int, end: int | None, base: int, *, skip: bool = False
) -> Iterator[tuple[int, bytes]]:
    rest: list[bytes] = []
    while block := read(_BLOCK):
        *whole, last = block.split(b"\n")
        for part in whole:
            line = b"".join([*rest, part]) if rest else part
            rest.clear()
            if not skip:
                yield base + place, line
            skip = False
            place += len(line) + 1
            if end is not None and place >= end:
                return
        rest.append(last)
    line = b"".join(rest)
    if line and not skip:
        yield base + place, line
