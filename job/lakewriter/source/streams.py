"""Open streams of rows: a ``readStream`` for every kind of source of Spark, with a bound on a batch."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from lakewriter.errors import LakeError, SourceUnreachableError, SpecInvalidError
from lakewriter.source.bad_rows import BAD
from lakewriter.source.feed import may_read_splits
from lakewriter.source.file_splits import make_feed
from lakewriter.source.file_streams import FileStream, open_path_stream
from lakewriter.source.files.file_source import has_reader
from lakewriter.source.kafka_topics import StreamedTopics, list_kafka_reads, lower_names
from lakewriter.source.marked_rows import mark
from lakewriter.source.request import Feed, RowsRequest
from lakewriter.source.session import isolate
from lakewriter.source.source_options import make_origin, make_reader_options, resolve_secrets
from lakewriter.source.spark_failures import SPARK_ERRORS, Origin, find_useful_line
from lakewriter.source.spark_rows import open_batch
from lakewriter.source.stream_checkpoint import BatchPlan, Checkpoint, read_offsets
from lakewriter.source.table_frames import Loaded, replace_char_types
from lakewriter.spec.access import SecretText
from lakewriter.spec.source_formats import FILE_FORMATS
from lakewriter.spec.specification import MIB
from lakewriter.spec.table_spec import Read, TableSpec

BOUNDS: Final[Mapping[str, tuple[str, int]]] = {
    **dict.fromkeys(FILE_FORMATS, ("maxBytesPerTrigger", 256 * MIB)),
    "kafka": ("maxOffsetsPerTrigger", 1_000_000),
}
"""The bound of a batch by format, if the options name none: without it a backlog would be one load."""
_BOUNDING: Final = ("maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger")
TASK_BYTES: Final = 128 * MIB
"""Input of a batch that one task reads, equal to ``spark.sql.files.maxPartitionBytes``."""
TASK_ROWS: Final = 250_000
"""The same for sources that count rows and not bytes, such as Kafka: rows of half a KiB."""
_MOST_BYTES: Final = 1024**4
"""The limit in bytes for Spark's figure to be used: it is 2**63 if Spark has none, and multiplied for joins."""
OLDEST: Final = "36500d"
"""For ``maxFileAge``, by default a week: Spark never reads files older than the newest one by more."""


class TableStream:
    """The stream of one table and the feeds of its batches."""

    def __init__(self, spark: SparkSession, table: TableSpec, checkpoint: str = "") -> None:
        self._table = table
        secrets = resolve_secrets(table.read)
        self.origin: Origin = replace(make_origin(table, secrets), checkpoint=checkpoint)
        self._files: FileStream | None = None
        try:
            if has_reader(table.read):
                options = make_reader_options(table.read, secrets)
                added = add_stream_options(table.read.kind.name, options)
                self.frame = open_path_stream(isolate(spark), _choose_path(table.read), added)
                self._files = FileStream(spark, table, options, self.origin)
            else:
                self.frame = _load(isolate(spark), table.read, secrets, aside=table.marks_rows)
        except SPARK_ERRORS as error:
            if "[PATH_NOT_FOUND]" in str(error):
                raise _make_absent_error(table, find_useful_line(self.origin.redact(str(error)))) from error
            raise self.origin.make_error(error) from error
        if not self.frame.isStreaming:
            raise SpecInvalidError(f"table {table.id!r}: the source of a continuous run is a stream; this one is not.")
        self._checkpoint = Checkpoint(self.frame.sparkSession, self.origin)
        sources = [lower_names(make_reader_options(read, secrets)) for read in list_kafka_reads(table.read)]
        self._topics = StreamedTopics(self._checkpoint, table.id, sources) if sources else None
        if self._topics is not None:
            self.origin = replace(self.origin, reasons=(self._topics.explain,))

    def require_topics(self) -> None:
        """Raise what keeps the query from going on where its checkpoint is, if it reads Kafka."""
        if self._topics is not None:
            self._topics.require()

    def take_notes(self) -> list[str]:
        """Return what there is to say of the source since the last call."""
        if self._topics is None:
            return []
        notes, self._topics.notes = self._topics.notes, []
        return notes

    def read_plan(self, number: int) -> BatchPlan:
        """Read the checkpoint's plan of a batch."""
        return self._checkpoint.read_plan(number)

    def _choose_tasks(self, frame: DataFrame, plan: BatchPlan) -> int:
        """Return the number of tasks for a batch's input, by the bytes of its files or the rows of its offsets."""
        size = int(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())
        if size <= _MOST_BYTES:
            return max(1, math.ceil(size / TASK_BYTES))
        return max(1, math.ceil(self._count_rows(plan) / TASK_ROWS))

    def _count_rows(self, plan: BatchPlan) -> int:
        """Return the rows of those sources of a batch that count them."""
        starts, ends = self._checkpoint.read_starts(plan), read_offsets(plan.log)
        return sum(
            end - before.get(partition, 0)
            for after, before in zip(ends, starts, strict=False)
            for partition, end in after.items()
        )

    def explain_end(self, query: StreamingQuery) -> LakeError:
        """Return the error that ended the query, from Java's trace: Spark's error names neither the checkpoint nor the
        kind of failure.
        """
        ended = query._jsq.exception()
        if ended.isEmpty():
            return self.origin.explain("the query ended")
        jvm = self.frame.sparkSession._jvm
        assert jvm is not None
        return self.origin.explain(str(jvm.org.apache.spark.util.Utils.exceptionString(ended.get())))

    def open_feed(self, frame: DataFrame, plan: BatchPlan, request: RowsRequest, *, least: int) -> Feed:
        """Open the feed of one batch, in as many partitions as its input needs, or ``least`` if that is more.

        The request's table has what earlier loads have learnt of its columns.
        """
        if self._files is None:
            tasks = 1 if request.single else max(least, self._choose_tasks(frame, plan))
            return open_batch(Loaded(frame), request, self.origin, tasks)
        files = self._files
        opened = files.open_batch(self._checkpoint, plan.number, request.table.read)
        size = sum(file.size for file in opened.listing.files)
        tasks = 1 if request.single else max(1, least, math.ceil(size / TASK_BYTES))
        feed = make_feed(request, opened, self.origin, tasks) if may_read_splits(request) else None
        if feed is not None:
            return feed
        loaded = Loaded(files.make_frame(opened), opened.notes, inferred=opened.inferred)
        return open_batch(loaded, request, self.origin, tasks)


def _make_absent_error(table: TableSpec, line: str) -> SourceUnreachableError:
    return SourceUnreachableError(
        f"table {table.id!r}: its source is not there yet: {line}", remedy="The run waits for it; check its path."
    )


def _load(session: SparkSession, read: Read, secrets: dict[SecretText, str], *, aside: bool = False) -> DataFrame:
    frame = _read(session, read, secrets)
    if not aside:
        return frame
    # Marked before the batches, which no longer have a row's position.
    kind = read.kind.name
    if kind in FILE_FORMATS:
        marks = mark(file=F.col("_metadata.file_path"))
    elif kind == "kafka":
        marks = mark(file=F.concat_ws("/", "topic", "partition"), offset=F.col("offset"))
    else:
        marks = mark()
    return frame.select("*", marks.alias(BAD))


def _read(session: SparkSession, read: Read, secrets: dict[SecretText, str]) -> DataFrame:
    if read.sql is not None:
        for name, view in read.views.items():
            _load(session, view, secrets).createOrReplaceTempView(name)
        return session.sql(read.sql)
    path = _choose_path(read) if read.paths else None
    options = make_reader_options(read, secrets)
    reader = session.readStream.format(str(read.format)).options(**add_stream_options(read.kind.name, options))
    schema = _find_columns(session, read, options, path)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(path)


def _choose_path(read: Read) -> str:
    if len(read.paths) > 1:
        raise SpecInvalidError(
            f"a stream reads one path, got {', '.join(map(repr, read.paths))}.", remedy="Give a pattern, such as in/*."
        )
    return read.paths[0]


def add_stream_options(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with those that a stream needs besides."""
    given, added = {key.lower(): value for key, value in options.items()}, {}
    if kind in BOUNDS and given.keys().isdisjoint(_BOUNDING):
        bound, size = BOUNDS[kind]
        least = given.get("minoffsetspertrigger", "")
        # Spark refuses a least number above the most.
        added[bound] = str(max(size, int(least)) if least.isdecimal() else size)
    if kind == "csv" and given.get("header", "").lower() == "true" and "enforceschema" not in given:
        # Otherwise Spark would ignore the header of a file with other columns and read it by position.
        added["enforceSchema"] = "false"
    if kind in FILE_FORMATS and "maxfileage" not in given:
        added["maxFileAge"] = OLDEST
    return {**options, **added}


def _find_columns(
    session: SparkSession, read: Read, options: Mapping[str, str], path: str | None
) -> str | StructType | None:
    """Return the declared columns; else those of the files that exist now, and None for other sources."""
    if read.columns is not None:
        return replace_char_types(read.columns)
    # Of the formats of files, text alone is streamed without a schema.
    if not read.kind.has_files or read.kind.name == "text":
        return None
    schema = session.read.format(str(read.format)).options(**options).load(path).schema
    if not schema.fields:
        raise SpecInvalidError(f"{path} has no columns yet.", remedy="Declare them under read.columns.")
    return schema
