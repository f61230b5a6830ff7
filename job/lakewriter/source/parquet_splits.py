"""The splits feed: each task reads its own pieces of Parquet files with Arrow, and nothing crosses from the JVM."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.arrow_types import make_nullable, match_by_name, match_by_position, require_utf8
from lakewriter.source.failures import SPARK_ERRORS, Origin, make_unreadable_error
from lakewriter.source.file_listing import keep_listed
from lakewriter.source.int96 import require_microseconds
from lakewriter.source.merged_schema import find_variants, merge
from lakewriter.source.packing import Chunk, SourceFile, pack, read_sizes, select_row_groups
from lakewriter.source.parquet_types import NotAlike, to_spark_schema
from lakewriter.source.read_ahead import Reading, read_ahead
from lakewriter.source.storage import NotListable, Store, list_files
from lakewriter.spec.specification import TableSpec

Body = Callable[[int, Iterator[pa.RecordBatch]], Iterator[str]]

_BATCH_BYTES: Final = 16 * 1024 * 1024
_BATCH_ROWS: Final = 65_536
_LEAST_BATCH_ROWS: Final = 1024
_FOOTER_THREADS: Final = 16


@dataclass(frozen=True)
class Footer:
    """What a file's end says: its schema as Spark has it, and each row group's middle byte and rows."""

    schema: pa.Schema
    middles: tuple[int, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Piece:
    """Row groups of one file, and about how many bytes they are."""

    path: str
    row_groups: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class Splits:
    """The files of a bare Parquet scan, as their footers describe them."""

    store: Store
    files: tuple[SourceFile, ...]
    footers: dict[str, Footer]
    schema: pa.Schema
    notes: tuple[str, ...]


class SplitsFeed:
    """Batches read by the tasks, at most 65,536 rows and about 16 MiB each."""

    kind = "splits"

    def __init__(self, spark: SparkSession, splits: Splits, chunks: list[tuple[Chunk, ...]], origin: Origin) -> None:
        footers = splits.footers
        self.schema = splits.schema
        self.notes = splits.notes
        self.reason = (
            f"a bare Parquet scan of {len(footers)} file{'s'[: len(footers) != 1]}, read by the tasks themselves"
        )
        self.partitions = len(chunks)
        self.counts: tuple[int, ...] | None = tuple(_count_rows(partition, footers) for partition in chunks)
        self._pieces = [tuple(_select_pieces(partition, footers)) for partition in chunks]
        self._spark, self._splits, self._origin = spark, splits, origin

    @property
    def input_bytes(self) -> int:
        """The bytes of its files."""
        return sum(file.length for file in self._splits.files)

    def list_readers(self) -> list[Callable[[], Iterator[pa.RecordBatch]]]:
        """What reads each partition, in whatever task it is called."""
        return [partial(_read_pieces, self.schema, self._splits.store, pieces) for pieces in self._pieces]

    def run(self, body: Body) -> list[str]:
        """What ``body`` yields in the tasks, in the order of the partitions."""
        if not self._pieces:
            return []
        pieces = self._spark.sparkContext.parallelize(self._pieces, self.partitions)
        task = partial(_run_task, self.schema, self._splits.store, body)
        try:
            return list(pieces.mapPartitionsWithIndex(task, preservesPartitioning=False).collect())
        except SPARK_ERRORS as error:
            raise self._origin.make_error(error) from error

    def read_first(self, rows: int) -> pa.Table:
        """The first rows in one table, under the source's own names."""
        return read_first_rows(self._splits, rows)

    def close(self) -> None:
        """Nothing is held."""


def find_splits(table: TableSpec) -> Splits | str:
    """What the footers say, or the reason why the table has to go by rows; Spark is not needed for it."""
    try:
        store, files = _list_files(table)
        files = [file for file in files if file.length]
        if not files:
            return "no data file lies directly under the path"
        footers = read_footers(table.id, store.open(), files)
    except (NotListable, NotAlike) as reason:
        return str(reason)
    schema = next(iter(footers.values())).schema
    notes: tuple[str, ...] = ()
    if any(footer.schema != schema for footer in footers.values()):
        merged = _merge_schemas(table.id, footers)
        if isinstance(merged, str):
            return merged
        schema, notes = merged
    return Splits(store, () if table.read.is_empty else tuple(files), footers, schema, notes)


def open_splits(spark_factory: Callable[[], SparkSession], table: TableSpec) -> SplitsFeed | str:
    """The feed, or the reason why the table has to go by rows."""
    splits = find_splits(table)
    if isinstance(splits, str):
        return splits
    if table.truncates_nanoseconds:
        return "its nanoseconds are cut"
    spark = spark_factory()
    origin = Origin(table.id, f"parquet {', '.join(map(repr, table.read.paths))}")
    chunks = pack(list(splits.files), read_sizes(spark))
    return SplitsFeed(spark, splits, chunks, origin)


def read_first_rows(splits: Splits, rows: int) -> pa.Table:
    """The first rows of the first file that has any."""
    path = next((file.path for file in splits.files if any(splits.footers[file.path].rows)), None)
    batch = None if path is None else next(_read(splits.store.open(), Piece(path, (0,), 0), splits.schema), None)
    return pa.Table.from_batches([] if batch is None else [batch.slice(0, rows)], splits.schema)


def _merge_schemas(table: str, footers: dict[str, Footer]) -> tuple[pa.Schema, tuple[str, ...]] | str:
    """The schema of all files and what they differ in, or why Spark has to read them."""
    for path, footer in footers.items():
        if twice := [name for name, count in Counter(footer.schema.names).items() if count > 1]:
            other = next(other for other, found in footers.items() if found.schema != footer.schema)
            raise SchemaIncompatibleError(
                f"table {table!r}: {path!r} has several columns {twice[0]!r}, and {other!r} has other columns than it: "
                "columns of different files go by their names.",
                remedy="Load the files as two tables, or rename the columns in the file.",
            )
    schemas = {path: from_arrow_schema(footer.schema, prefer_timestamp_ntz=True) for path, footer in footers.items()}
    merged = merge(table, find_variants(schemas))
    if merged.folds_inside:
        return "the files spell a struct's fields in different cases"
    schema = to_arrow_schema(merged.schema)
    return pa.schema([pa.field(field.name, make_nullable(field.type)) for field in schema]), merged.notes


def _list_files(table: TableSpec) -> tuple[Store, list[SourceFile]]:
    try:
        store, files = list_files(table.read.paths)
    except (OSError, BotoCoreError, ClientError) as error:
        raise make_unreadable_error(", ".join(table.read.paths), error, table.id) from error
    return store, keep_listed(table.read, files)


def read_footers(table: str, system: fs.FileSystem, files: list[SourceFile]) -> dict[str, Footer]:
    """The footers by path; ``SOURCE_FAILED`` names the file that has none."""

    def read(file: SourceFile) -> Footer:
        try:
            with system.open_input_file(file.path) as source:
                return _make_footer(file.path, pq.read_metadata(source))
        except (OSError, pa.ArrowException) as error:
            raise make_unreadable_error(file.path, error, table) from error

    with ThreadPoolExecutor(_FOOTER_THREADS) as pool:
        return dict(zip([file.path for file in files], pool.map(read, files), strict=True))


def _make_footer(path: str, metadata: pq.FileMetaData) -> Footer:
    try:
        schema = to_spark_schema(metadata)
    except NotAlike as reason:
        raise NotAlike(f"{path!r} is for Spark to read: {reason}") from reason
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return Footer(schema, tuple(map(_find_middle, groups)), tuple(group.num_rows for group in groups))


def _find_middle(group: pq.RowGroupMetaData) -> int:
    first = group.column(0)
    start = first.data_page_offset
    if first.has_dictionary_page and first.dictionary_page_offset:
        start = min(start, first.dictionary_page_offset)
    size = sum(group.column(index).total_compressed_size for index in range(group.num_columns))
    return int(start + size // 2)


def _count_rows(partition: Iterable[Chunk], footers: dict[str, Footer]) -> int:
    return sum(
        footers[chunk.path].rows[index]
        for chunk in partition
        for index in select_row_groups(chunk, footers[chunk.path].middles)
    )


def _select_pieces(partition: Iterable[Chunk], footers: dict[str, Footer]) -> Iterator[Piece]:
    for chunk in partition:
        groups = select_row_groups(chunk, footers[chunk.path].middles)
        if groups:
            yield Piece(chunk.path, groups, chunk.length)


def _run_task(
    schema: pa.Schema, store: Store, body: Body, partition: int, pieces: Iterator[tuple[Piece, ...]]
) -> Iterator[str]:
    yield from body(partition, (batch for mine in pieces for batch in _read_pieces(schema, store, mine)))


def _read_pieces(schema: pa.Schema, store: Store, pieces: tuple[Piece, ...]) -> Iterator[pa.RecordBatch]:
    system = store.open()
    yield from read_ahead([Reading(piece.size, partial(_read, system, piece, schema)) for piece in pieces])


def _read(system: fs.FileSystem, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        with system.open_input_file(piece.path) as source:
            file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
            for index in piece.row_groups:
                # One row group a call: the reader fetches all that it is asked for before its first batch.
                group = file.metadata.row_group(index)
                require_microseconds(source, file.metadata, piece.path, index)
                for batch in file.iter_batches(_choose_batch_rows(group), row_groups=[index], use_threads=False):
                    # Of names that occur twice only the place tells.
                    is_whole = batch.schema.names == schema.names
                    require_utf8(batch, f"{piece.path!r}, row group {index}")
                    yield match_by_position(batch, schema) if is_whole else match_by_name(batch, schema)
    except (OSError, pa.ArrowException) as error:
        raise make_unreadable_error(piece.path, error) from error


def _choose_batch_rows(group: pq.RowGroupMetaData) -> int:
    width = max(1, int(group.total_byte_size) // max(1, int(group.num_rows)))
    return max(_LEAST_BATCH_ROWS, min(_BATCH_ROWS, _BATCH_BYTES // width))
