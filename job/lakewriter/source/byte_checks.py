"""Text files looked at by tasks before Spark reads them: what its readers would replace fails the load."""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.report import format_count
from lakewriter.source.failures import make_unreadable_error
from lakewriter.source.packing import Chunk, SourceFile, pack_texts, read_sizes
from lakewriter.source.raw_text import Finding, find_in_encoded, find_in_json, find_in_text, split_blocks
from lakewriter.source.storage import NotListable, Store, find_store, to_path
from lakewriter.spec.access import SecretText
from lakewriter.spec.specification import Read

TEXTS: Final = ("csv", "json", "text", "xml")
CODECS: Final = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Compressed files that are looked at; a file is one piece then."""
_THREADS: Final = 16
UNREADABLE: Final = (".deflate", ".snappy", ".lz4")


@dataclass(frozen=True)
class ByteCheck:
    """What is to be looked at: ``files`` of ``format`` with their sizes, whose rows have the columns of ``kind``."""

    files: tuple[tuple[str, int], ...]
    format: str
    kind: DataType
    encoding: str
    whole: bool

    def require(self, spark: SparkSession, table: str) -> None:
        """``VALUE_UNREPRESENTABLE`` names the first place that the reader would change."""
        require_readable(spark, self, table)


@dataclass(frozen=True)
class _Piece:
    store: Store
    chunk: Chunk


def plan_byte_check(files: Iterable[str], kind: DataType, read: Read) -> tuple[ByteCheck | None, tuple[str, ...]]:
    """The check of ``files``, whose rows are read as ``kind``, and notes on what cannot be looked at."""
    options = {name.lower(): value for name, value in read.options.items() if not isinstance(value, SecretText)}
    encoding = options.get("encoding") or options.get("charset") or "utf-8"
    try:
        encoding = codecs.lookup(encoding).name
    except LookupError:
        return None, (f"bytes are not looked at: Python does not know the encoding {encoding!r}",)
    paths = sorted(map(to_path, files))
    with ThreadPoolExecutor(_THREADS) as pool:
        sizes = dict(zip(paths, pool.map(_read_size, paths), strict=True))
    known = tuple((path, size) for path, size in sizes.items() if size is not None)
    notes: tuple[str, ...] = ()
    if len(known) < len(paths):
        example = next(path for path, size in sizes.items() if size is None)
        notes = (f"bytes of {format_count(len(paths) - len(known), 'file')} are not looked at, such as {example!r}",)
    whole = options.get("multiline", "false").lower() != "true"
    return ByteCheck(known, str(read.format).lower(), kind, encoding, whole), notes


def _read_size(uri: str) -> int | None:
    """The length of a file that this process can open and decompress; Spark may be able to where it is not."""
    if uri.endswith(UNREADABLE):
        return None
    try:
        store, path = find_store(uri)
        size: int | None = store.open().get_file_info(path).size
    except (NotListable, OSError, BotoCoreError, ClientError):
        return None
    return size


def require_readable(spark: SparkSession, check: ByteCheck, table: str) -> None:
    """``VALUE_UNREPRESENTABLE`` names the first place that the reader would change."""
    pieces = _pack_pieces(spark, check)
    if not pieces:
        return
    findings = spark.sparkContext.parallelize(pieces, len(pieces)).map(partial(_look, check)).collect()
    for path, finding in sorted(each for each in findings if each is not None):
        raise ValueUnrepresentableError(
            f"table {table!r}: {path!r}, offset {finding[0]}: {finding[1]}; Spark would read another value.",
            remedy="Correct the file, or name the encoding that it is written in among its options."
            if "byte" in finding[1][:4]
            else "Correct the value, or read its column as text: columns: in read:.",
        )


def _pack_pieces(spark: SparkSession, check: ByteCheck) -> list[tuple[_Piece, ...]]:
    stores: dict[str, Store] = {}
    files: list[SourceFile] = []
    for uri, size in check.files:
        store, path = find_store(uri)
        stores[path] = store
        files.append(SourceFile(path, size))
    packed = pack_texts(
        files, read_sizes(spark), lambda file: find_codec(file.path) is not None or check.encoding != "utf-8"
    )
    return [tuple(_Piece(stores[chunk.path], chunk) for chunk in partition) for partition in packed]


def find_codec(path: str) -> str | None:
    return next((codec for end, codec in CODECS.items() if path.endswith(end)), None)


def _look(check: ByteCheck, pieces: Sequence[_Piece]) -> tuple[str, tuple[int, str]] | None:
    for piece in pieces:
        try:
            finding = next(_find_faults(check, piece.store.open(), piece.chunk), None)
        except (OSError, pa.ArrowException) as error:
            raise make_unreadable_error(piece.chunk.path, error) from error
        if finding is not None:
            return piece.chunk.path, (finding.offset, finding.what)
    return None


def _find_faults(check: ByteCheck, system: fs.FileSystem, chunk: Chunk) -> Iterator[Finding]:
    if check.encoding != "utf-8":
        with system.open_input_stream(chunk.path, compression=find_codec(chunk.path)) as stream:
            finding = find_in_encoded(stream.read, check.encoding)
            yield from [finding] if finding else []
        return
    for place, lines in read_blocks(system, chunk):
        if check.format == "json":
            finding = find_in_json(place, lines, check.kind, whole=check.whole)
        else:
            finding = find_in_text(place, lines)
        if finding is not None:
            yield finding


def read_blocks(system: fs.FileSystem, chunk: Chunk) -> Iterator[tuple[int, bytes]]:
    """Whole lines that begin in a piece, many at a time, each with its offset; a compressed file is one piece."""
    codec = find_codec(chunk.path)
    if codec:
        with system.open_input_stream(chunk.path, compression=codec) as stream:
            yield from split_blocks(stream.read)
        return
    with system.open_input_file(chunk.path) as source:
        # The byte before the piece tells whether its first line begins there.
        before = max(chunk.start - 1, 0)
        source.seek(before)
        yield from split_blocks(source.read, before, chunk.start + chunk.length, skip=chunk.start > 0)
