"""Make DataFrames of files: Spark hands out numbers of pieces, and the tasks read these with the product's readers."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakewriter.source.bad_rows import mark_schema
from lakewriter.source.declared_columns import number_fields
from lakewriter.source.file_splits import PIECE_BYTES, measure, pack_pieces, read_pieces
from lakewriter.source.files.file_reader import Piece, Spread
from lakewriter.source.files.file_source import FilesSource, OpenedFiles
from lakewriter.source.task_sizes import read_sizes
from lakewriter.spec.specification import MIB

_MOST_BYTES: Final = 1024 * MIB
"""Spark plans alike for all tables that are larger."""


@dataclass(frozen=True)
class FileRows:
    """The rows of files in a session: their source, and the pieces that each task reads."""

    session: SparkSession
    opened: OpenedFiles
    partitions: tuple[tuple[Piece, ...], ...]

    @property
    def source(self) -> FilesSource:
        """The object that reads a piece."""
        return self.opened.source

    def make_frame(self, label: str = "files", wanted: Collection[str] | None = None) -> DataFrame:
        """Return the rows as a DataFrame, with marks behind its columns if the source marks bad rows.

        Args:
            label: The name that Spark's plan shows for the function that reads the rows.
            wanted: The columns to read from a columnar format, None for all; the others are null.
        """
        source, session = self.source if wanted is None else self.source.select(wanted), self.session
        marked = mark_schema(source.schema) if source.aside else source.schema
        names = marked.names
        # Named by their indexes: Spark cannot distinguish some names.
        fields = number_fields(source.schema)
        schema = from_arrow_schema(
            mark_schema(fields) if source.aside else pa.schema(fields), prefer_timestamp_ntz=True
        )
        read = _NumberedReader(label, source, self.partitions, tuple(schema.names))
        frame = self._number(1).mapInArrow(read, schema)
        size = min(_MOST_BYTES, measure(self.partitions))
        assumed = int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
        if assumed < size:
            frame = self._number(math.ceil(size / assumed)).mapInArrow(read, schema)
        if len({field.lower() for field in names}) < len(set(names)):
            session.conf.set("spark.sql.caseSensitive", "true")
        return frame.toDF(*names)

    def _number(self, copies: int) -> DataFrame:
        """Return the numbers of the partitions, one in each.

        Spark assumes that a table is as large as its input, and would broadcast a large one in a join. ``copies`` is
        the number of rows that Spark then assumes per partition.
        """
        count = max(1, len(self.partitions))
        numbers = self.session.range(0, count * copies, 1, count)
        return numbers.where(f"id % {copies} = 0").selectExpr(f"id div {copies} AS id")


class _NumberedReader:
    """A reader of the partitions with given numbers; Spark shows its name."""

    def __init__(
        self, name: str, source: FilesSource, partitions: Sequence[tuple[Piece, ...]], names: tuple[str, ...]
    ) -> None:
        self.__name__ = name
        self._source, self._partitions, self._names = source, partitions, names

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for pieces in self._partitions[number : number + 1]:
                    yield from (
                        piece_batch.rename_columns(self._names) for piece_batch in read_pieces(self._source, pieces)
                    )


def pack_rows(session: SparkSession, opened: OpenedFiles, spread: Spread) -> FileRows:
    """Return the rows of files that have been looked at."""
    return FileRows(session, opened, tuple(pack_pieces(opened.cut(PIECE_BYTES, spread), read_sizes(session))))
