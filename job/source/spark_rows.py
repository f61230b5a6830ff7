"""The rows feed: any DataFrame, its batches handed to the tasks by ``mapInArrow``."""

import difflib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType

from job.aws import resolve
from job.errors import SourceFailedError, SpecInvalidError
from job.source.arrow_types import arrow_schema, conform, delivered
from job.source.failures import SPARK_ERRORS, Origin, useful_line
from job.source.session import isolated
from job.spec import IndexKind, Read, SecretText, TableSpec

Body = Callable[[int, Iterator[pa.RecordBatch]], Iterator[str]]
Keys = Callable[[Sequence[pa.Array]], pa.Array]

_ADAPTIVE: Final = "spark.sql.adaptive.enabled"
_KEY: Final = "__lakewriter_key"
_SERIAL: Final = itertools.count()
_STEADY_FORMATS: Final = ("parquet", "orc")
_CHARACTERS: Final = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)


class Numbering(Enum):
    """What it takes to number the rows without gaps."""

    NONE = auto()
    COUNT = auto()
    KEEP = auto()


class RowsFeed:
    """Batches of a DataFrame, at most 16,384 rows and about 64 MiB each."""

    kind = "rows"

    def __init__(self, frame: DataFrame, schema: pa.Schema, origin: Origin, reason: str, numbering: Numbering) -> None:
        self.schema = schema
        self.reason = reason
        self.counts: tuple[int, ...] | None = None
        self._frame = frame
        self._origin = origin
        self._numbering = numbering
        self._kept = False
        # An adaptive plan decides on its partitions while it runs, too late for what is numbered by partition.
        frame.sparkSession.conf.set(_ADAPTIVE, "false")
        self.partitions = self._count_partitions()

    def cluster(self, positions: Sequence[int], keys: Keys) -> None:
        """Bring the rows of one key together, in one partition and without others in between.

        ``keys`` gives each row its text, from the arrays of the columns at ``positions``.
        """
        columns = self._frame.columns
        types = [self.schema.field(position).type for position in positions]

        def keyed(*arrays: pa.Array) -> pa.Array:
            return keys([array.cast(t) for array, t in zip(arrays, types, strict=True)])

        # PySpark goes by the annotations; its stubs do not.
        key = arrow_udf(keyed, "string")(*[F.col(columns[place]) for place in positions])  # type: ignore[call-overload]
        frame = self._frame.withColumn(_KEY, key)
        self._frame = frame.repartition(self.partitions, _KEY).sortWithinPartitions(_KEY).drop(_KEY)

    def number(self) -> None:
        """Count the rows, holding them first where a second reading may differ; nothing where no number needs it."""
        if self.partitions == 1 or self._numbering is Numbering.NONE:
            return
        if self._numbering is Numbering.COUNT:
            self.count()
        else:
            self.keep()

    def keep(self) -> None:
        """Hold the rows on the executors' disks, so that the count and the load see the same ones, and count them."""
        settings = self._frame.sparkSession.conf
        settings.set(_ADAPTIVE, "true")
        # Spark's cache goes by the plan: without a literal of its own two tables with one plan would share an entry.
        own = F.lit(next(_SERIAL))
        self._frame = self._frame.where(own == own).persist(StorageLevel.DISK_ONLY)
        self._kept = True
        try:
            self.count()
        except BaseException:
            self.close()
            raise
        settings.set(_ADAPTIVE, "false")

    def count(self) -> None:
        """Count the rows of each partition; Spark reads no column for it."""
        try:
            found = self._frame.select(F.spark_partition_id().alias("p")).groupBy("p").count().collect()
        except SPARK_ERRORS as error:
            raise self._origin.failed(error) from error
        self.partitions = self._count_partitions()
        rows = {row[0]: row[1] for row in found}
        self.counts = tuple(rows.get(partition, 0) for partition in range(self.partitions))

    def _count_partitions(self) -> int:
        try:
            return self._frame.rdd.getNumPartitions()
        except SPARK_ERRORS as error:
            raise self._origin.failed(error) from error

    def run(self, body: Body) -> list[str]:
        """What ``body`` yields in the tasks, in the order of the partitions."""
        try:
            found = self._frame.mapInArrow(partial(_task, self.schema, body), "receipt string").collect()
        except SPARK_ERRORS as error:
            raise self._origin.failed(error) from error
        return [str(row[0]) for row in found]

    def close(self) -> None:
        """Give the disk back, where the rows were kept on it."""
        if self._kept:
            self._frame.unpersist()
            self._kept = False


def _task(schema: pa.Schema, body: Body, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("no Spark task is running")
    for text in body(context.partitionId(), (conform(batch, schema) for batch in batches)):
        yield pa.RecordBatch.from_arrays([pa.array([text], pa.string())], ["receipt"])


def open_rows(
    spark: SparkSession,
    table: TableSpec,
    *,
    condition: str | None,
    deleted_column: str,
    reason: str,
    twice: bool = False,
    single: bool = False,
) -> RowsFeed:
    """The feed of a table; its rows are numbered later where they are first brought into another order."""
    session = isolated(spark)
    secrets = secrets_of(table.read)
    origin = origin_of(table, secrets)
    steady = table.read.format in _STEADY_FORMATS and table.read.sql is None and condition is None
    try:
        source = _declared(_load(session, table.read, secrets), table)
        if condition is not None:
            source = source.where(condition)
    except SPARK_ERRORS as error:
        raise origin.failed(error) from error
    frame, schema = _delivered(_with_deleted(source, table, deleted_column))
    # Of a bare scan two readings agree: the files are listed once, and no row depends on the columns read.
    feed = RowsFeed(frame.coalesce(1) if single else frame, schema, origin, reason, _numbering(table, steady))
    _settle(feed, table, twice=twice and not steady)
    return feed


def batch_rows(
    batch: DataFrame, table: TableSpec, *, origin: Origin, deleted_column: str, twice: bool, tasks: int
) -> RowsFeed:
    """The feed of one micro-batch, in at most ``tasks`` partitions."""
    try:
        source = _with_deleted(_declared(batch, table), table, deleted_column).coalesce(tasks)
    except SPARK_ERRORS as error:
        raise origin.failed(error) from error
    frame, schema = _delivered(source)
    feed = RowsFeed(frame, schema, origin, "it is a micro-batch", _numbering(table, steady=False))
    _settle(feed, table, twice=twice)
    return feed


def _numbering(table: TableSpec, steady: bool) -> Numbering:
    if table.index != IndexKind.CONTIGUOUS:
        return Numbering.NONE
    return Numbering.COUNT if steady else Numbering.KEEP


def _settle(feed: RowsFeed, table: TableSpec, *, twice: bool) -> None:
    """Hold the rows that are read ``twice``; number them, unless they are first brought into another order."""
    if twice:
        feed.keep()
    elif not table.partition_by:
        feed.number()


def origin_of(table: TableSpec, secrets: Mapping[SecretText, str]) -> Origin:
    """The table's source, for messages."""
    return Origin(table.id, _what(table.read), tuple(secrets.values()))


def _load(session: SparkSession, read: Read, secrets: dict[SecretText, str]) -> DataFrame:
    if read.sql is not None:
        for name, view in read.views.items():
            _load(session, view, secrets).createOrReplaceTempView(name)
        return session.sql(read.sql)
    reader = session.read
    if read.format is not None:
        reader = reader.format(read.format)
    options = {key: secrets[value] if isinstance(value, SecretText) else value for key, value in read.options.items()}
    reader = reader.options(**options)
    if read.columns is not None:
        reader = reader.schema(plain_columns(read.columns))
    return reader.load(list(read.paths)) if read.paths else reader.load()


def plain_columns(columns: str) -> str:
    """DDL without ``char`` and ``varchar``, which the readers do not take."""
    return _CHARACTERS.sub("string", columns)


def secrets_of(read: Read) -> dict[SecretText, str]:
    """The values of the secrets in a source's options."""
    found = {value: resolve(value) for value in read.options.values() if isinstance(value, SecretText)}
    for view in read.views.values():
        found.update(secrets_of(view))
    return found


def _what(read: Read) -> str:
    if read.sql is not None:
        return f"SQL over {', '.join(map(repr, read.views)) or 'no view'}"
    place = ", ".join(map(repr, read.paths)) or read.options.get("dbtable") or read.options.get("query")
    return f"{read.format} {place}" if place else str(read.format)


def _declared(source: DataFrame, table: TableSpec) -> DataFrame:
    """The source with the types that the table declares; positions stand for names, which may occur twice."""
    if not table.columns:
        return source
    names = source.columns
    types = {_known(name, names, table): _CHARACTERS.sub("string", kind) for name, kind in table.columns.items()}
    places = source.toDF(*_places(names))
    casts = [
        F.col(place).cast(types[name]) if name in types else F.col(place)
        for place, name in zip(places.columns, names, strict=True)
    ]
    return places.select(*casts).toDF(*names)


def _known(name: str, names: list[str], table: TableSpec) -> str:
    for found in (name, *[other for other in names if other.lower() == name.lower()]):
        if found in names:
            return found
    nearest = difflib.get_close_matches(name, names, 1, 0.0)
    raise SpecInvalidError(
        f"tables.{table.id}.columns names {name!r}, which the source does not have.",
        remedy=f"The nearest is {nearest[0]!r}." if nearest else "The source has no columns.",
    )


def _with_deleted(source: DataFrame, table: TableSpec, deleted_column: str) -> DataFrame:
    if table.deleted is None:
        return source
    try:
        marked = source.select("*", F.coalesce(F.expr(table.deleted), F.lit(False)).alias(deleted_column))
        kind = marked.schema[-1].dataType
    except SPARK_ERRORS as error:
        reason = useful_line(str(error))
        raise _bad_expression(table, reason) from error
    if not isinstance(kind, BooleanType):
        raise _bad_expression(table, f"it gives {kind.simpleString()}, expected boolean")
    return marked


def _bad_expression(table: TableSpec, reason: str) -> SpecInvalidError:
    return SpecInvalidError(
        f"tables.{table.id}.deleted is {table.deleted!r}, which cannot be used: {reason}",
        remedy="Give a boolean SQL expression over the source's columns, such as \"op = 'D'\".",
    )


def _delivered(source: DataFrame) -> tuple[DataFrame, pa.Schema]:
    names = source.columns
    if not names:
        raise SourceFailedError("the source has no columns.", remedy="Check its path and options.")
    places = source.toDF(*_places(names))
    columns = [
        delivered(name, F.col(field.name), field.dataType).alias(field.name)
        for name, field in zip(names, places.schema, strict=True)
    ]
    frame = places.select(*columns)
    return frame, arrow_schema(names, frame.schema)


def _places(names: list[str]) -> list[str]:
    return [f"c{index}" for index in range(len(names))]
