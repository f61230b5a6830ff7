"""Open the rows feed: ``mapInArrow`` hands the batches of any DataFrame to the tasks."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from itertools import chain
from typing import Final

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf

from lakewriter.naming import ORDINAL
from lakewriter.source.arrow_types import check_batch
from lakewriter.source.bad_rows import BAD, BAD_FIELD, CHECKS, Marked
from lakewriter.source.cursor_lag import check_lag
from lakewriter.source.databases.database_rows import DatabaseRows
from lakewriter.source.databases.figures import MARK, Depth, Figures, Meter
from lakewriter.source.declared_columns import (
    ColumnCast,
    apply_declared_types,
    cast_batch,
    cast_batches,
    declare_schema,
)
from lakewriter.source.files.file_source import has_reader
from lakewriter.source.marked_rows import add_marks, filter_rows, is_marked
from lakewriter.source.request import Body, Feed, RowsRequest
from lakewriter.source.session import isolate, rebind
from lakewriter.source.spark_failures import Origin
from lakewriter.source.table_frames import (
    Loaded,
    add_deleted_column,
    load_source,
    make_condition,
    prepare_delivery,
    unfold_events,
)
from lakewriter.spec.table_spec import IndexKind, TableSpec

Keys = Callable[[Sequence[pa.Array]], pa.Array]

_ADAPTIVE: Final = "spark.sql.adaptive.enabled"
_KEY: Final = "__lakewriter_key"
_SERIAL: Final = itertools.count()


class Numbering(Enum):
    """The work that numbers the rows without gaps."""

    NONE = auto()
    COUNT = auto()
    KEEP = auto()


class RowsFeed(Feed):
    """Batches of a DataFrame, at most 16,384 rows and about 64 MiB each."""

    kind = "rows"

    def __init__(
        self,
        frame: DataFrame,
        schema: pa.Schema,
        origin: Origin,
        reason: str,
        numbering: Numbering,
        source: Loaded | None = None,
        casts: tuple[ColumnCast, ...] = (),
    ) -> None:
        declared = declare_schema(schema, casts)
        self.schema = pa.schema([field for field in declared if field.name not in (BAD, CHECKS)])
        self._delivered = schema
        self._casts = casts
        self.notes = source.notes if source else ()
        self.inferred = source.inferred if source else ()
        self.is_untyped = source is not None and source.is_untyped
        self._checks = source.checks if source else ()
        database = (source and source.database) or DatabaseRows(frame)
        self.edge = database.edge or (source.edge if source else None)
        self._reconciliation, self.version = database.reconciliation, database.version
        self._held = [*source.held] if source else []
        self._stored_types = database.stored_types
        self.reason = reason
        self._frame = frame
        self._origin = origin
        self._numbering = numbering
        self._is_persisted = False
        # An adaptive plan decides on its partitions while it runs, too late for what is numbered by partition.
        frame.sparkSession.conf.set(_ADAPTIVE, "false")
        self.partitions = self._count_partitions()

    def read_stored_types(self) -> Mapping[str, str]:
        """Return the database's types of the columns that are read as another type."""
        return self._stored_types

    def cluster(self, positions: Sequence[int], keys: Keys, *, numbers: bool = False) -> None:
        """Bring the rows of one key together in one partition, without others in between.

        Args:
            positions: The columns that the key depends on.
            keys: Returns the key of each row, from the arrays of these columns.
            numbers: Whether each row gets its ordinal before, as a last column, and rows of one key stay in that order.
        """
        columns = self._frame.columns
        types = [self.schema.field(position).type for position in positions]

        def make_keys(*arrays: pa.Array) -> pa.Array:
            return keys([array.cast(t) for array, t in zip(arrays, types, strict=True)])

        # PySpark reads the function's annotations; its stubs do not allow that.
        key = arrow_udf(make_keys, "string")(*[F.col(columns[position]) for position in positions])  # type: ignore[call-overload]
        frame, order = self._frame.withColumn(_KEY, key), [_KEY]
        if numbers:
            frame = frame.withColumn(ORDINAL, F.monotonically_increasing_id())
            self._delivered = self._delivered.append(pa.field(ORDINAL, pa.int64()))
            order.append(ORDINAL)
        self._frame = frame.repartition(self.partitions, _KEY).sortWithinPartitions(*order).drop(_KEY)

    def number(self) -> None:
        """Count the rows. Hold them first if a second reading may differ. Do nothing if no number is needed."""
        if self.partitions == 1 or self._numbering is Numbering.NONE:
            return
        if self._numbering is Numbering.COUNT:
            self.count()
        else:
            self.keep()

    def keep(self) -> None:
        """Hold the rows on the executors' disks, so that the count and the load see the same ones, and count them."""
        self._check_source()
        settings = self._frame.sparkSession.conf
        settings.set(_ADAPTIVE, "true")
        # Spark's cache is keyed by plan: without a unique literal two tables with one plan would share an entry.
        serial = F.lit(next(_SERIAL))
        self._frame = self._frame.where(serial == serial).persist(StorageLevel.DISK_ONLY)
        self._is_persisted = True
        try:
            self.count()
        except BaseException:
            self.close()
            raise
        settings.set(_ADAPTIVE, "false")

    def count(self) -> None:
        """Count the rows of each partition; Spark reads no column for it."""
        self._check_source()
        with self._origin.explain_errors():
            counts = self._frame.select(F.spark_partition_id().alias("p")).groupBy("p").count().collect()
        self.partitions = self._count_partitions()
        rows = {row[0]: row[1] for row in counts}
        self.counts = tuple(rows.get(partition, 0) for partition in range(self.partitions))

    def _count_partitions(self) -> int:
        with self._origin.explain_errors():
            return self._frame.rdd.getNumPartitions()

    def run(self, body: Body) -> list[str]:
        """Return what ``body`` yields in the tasks, in the order of the partitions."""
        self._check_source()
        reconciliation = self._reconciliation
        with self._origin.explain_errors():
            measured = (reconciliation.depth, len(reconciliation.columns)) if reconciliation is not None else None
            task = partial(_run_task, self._delivered, self._casts, self._origin.table, measured, body)
            rows = self._frame.mapInArrow(task, "receipt string").collect()
        self._origin.require()
        texts = [str(row[0]) for row in rows]
        if reconciliation is not None:
            reconciliation.take([Figures.parse(text) for text in texts if text.startswith(MARK)])
        return [text for text in texts if not text.startswith(MARK)]

    def reconcile(self) -> None:
        """Raise ``SOURCE_DISAGREES`` if the tasks have read other rows than the source's figures say."""
        with self._origin.explain_errors():
            if self._reconciliation is not None:
                self._reconciliation.compare()

    def _check_source(self) -> None:
        """Check the files' bytes, or lock a database's table, once, before Spark reads them."""
        checks, self._checks = self._checks, ()
        for check in checks:
            with self._origin.explain_errors():
                check.require(self._frame.sparkSession, self._origin.table)

    def read_first(self, rows: int) -> pa.Table:
        """Return the first good rows in one table, under the source's names."""
        with self._origin.explain_errors():
            table = self._frame.limit(rows).toArrow()
        # The columns behind the source's are marks and results of checks.
        names = self._delivered.names
        source = table.rename_columns(names).select(range(len(self.schema)))
        if BAD in names:
            source = source.append_column(BAD_FIELD, table.column(names.index(BAD)).cast(BAD_FIELD.type))
        batch = source.combine_chunks().to_batches()[:1] or [pa.RecordBatch.from_pylist([], source.schema)]
        cast = cast_batch(batch[0], self._casts, self._origin.table, "the first rows")
        return pa.Table.from_batches([Marked(cast).good if BAD in names else cast])

    def find_repeated(self, positions: Sequence[int], shown: int) -> tuple[int, list[tuple[object, ...]]]:
        """Return how many good rows repeat the values of others in the columns at ``positions``, and the first such
        values with their counts.
        """
        names, settings = self._frame.columns, self._frame.sparkSession.conf
        frame = self._frame
        if BAD in self._delivered.names:
            frame = frame.where(F.col(names[self._delivered.names.index(BAD)]).getField("reason").isNull())
        # Nothing is numbered any more.
        settings.set(_ADAPTIVE, "true")
        try:
            with self._origin.explain_errors():
                return find_repeated(frame, [names[position] for position in positions], shown)
        finally:
            settings.set(_ADAPTIVE, "false")

    def close(self) -> None:
        """Free the disk if rows were held on it, and close connections to a database."""
        while self._held:
            self._held.pop().close()
        if self._is_persisted:
            self._frame.unpersist()
            self._is_persisted = False


def _run_task(
    schema: pa.Schema,
    casts: tuple[ColumnCast, ...],
    table: str,
    measured: tuple[Depth, int] | None,
    body: Body,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("no Spark task is running")
    number = context.partitionId()
    checked = (check_batch(batch, schema, number) for batch in batches)
    meter = None if measured is None else Meter(*measured)
    typed = cast_batches(meter.count(checked) if meter else checked, casts, table, f"partition {number}")
    texts = body(number, meter.measure(typed) if meter else typed)
    for text in chain(texts, meter.report() if meter else ()):
        yield pa.RecordBatch.from_arrays([pa.array([text], pa.string())], ["receipt"])


def open_rows(request: RowsRequest, reason: str) -> RowsFeed:
    """Open the feed of a table. Its rows are numbered later if they are first brought into another order."""
    session, origin, table = isolate(request.spark()), request.origin, request.table
    with origin.explain_errors():
        loaded = load_source(session, request, table.read, aside=table.marks_rows)
    # Of a bare scan two readings agree: the files are listed once, and no row depends on the columns read.
    steady = has_reader(table.read) and request.condition is None
    feed = _make_feed(loaded, request, origin, reason, tasks=1 if request.single else None, steady=steady)
    feed.is_in_order = has_reader(table.read)
    return feed


def open_batch(loaded: Loaded, request: RowsRequest, origin: Origin, tasks: int) -> RowsFeed:
    """Open the feed of one micro-batch, in at most ``tasks`` partitions, each of which has partitions that follow each
    other."""
    feed = _make_feed(loaded, request, origin, "it is a micro-batch", tasks=tasks)
    feed.is_in_order = has_reader(request.table.read)
    return feed


def open_frame(frame: DataFrame, request: RowsRequest) -> RowsFeed:
    """Open a DataFrame with all its partitions, or in one. With a frame bound it is a ``FeedOpener``."""
    origin = Origin(request.table.id, "the DataFrame")
    with origin.explain_errors():
        rows = rebind(frame)
        marked = add_marks(rows) if request.table.marks_rows and not is_marked(rows) else rows
    return _make_feed(Loaded(marked), request, origin, "it is a DataFrame", tasks=1 if request.single else None)


def _make_feed(
    loaded: Loaded, request: RowsRequest, origin: Origin, reason: str, *, tasks: int | None, steady: bool = False
) -> RowsFeed:
    """Make the feed of planned rows, in at most ``tasks`` partitions; ``steady`` if each reading gives the same rows.
    If that fails, what the rows hold is closed."""
    table = request.table
    try:
        with origin.explain_errors():
            loaded = unfold_events(loaded, request)
            request = _take_declared(request, loaded)
            typed, casts = _declare(loaded, request)
            source = add_checks(add_deleted_column(typed, table), table)
            frame, schema = prepare_delivery(source if tasks is None else source.coalesce(tasks))
    except BaseException:
        loaded.close()
        raise
    # If Spark has cast a column, values that do not fit are null before a task reads them.
    has_nulls = table.sets_aside and len(casts) < len(loaded.kinds)
    loaded = loaded.count_rows_alone() if has_nulls else loaded
    origin = replace(origin, reasons=(*origin.reasons, *loaded.reasons))
    if request.first is not None:
        unchecked = replace(loaded, checks=())
        return RowsFeed(frame.limit(request.first), schema, origin, reason, Numbering.NONE, unchecked, casts)
    feed = RowsFeed(frame, schema, origin, reason, _choose_numbering(table, steady), loaded, casts)
    if request.twice and not steady:
        feed.keep()
    elif not table.partition_by:
        feed.number()
    return feed


def _take_declared(request: RowsRequest, loaded: Loaded) -> RowsRequest:
    """Return the request with the types that events give columns which the table does not declare."""
    if not loaded.declared:
        return request
    declared = {name.lower() for name in request.table.columns}
    given = {name: kind for name, kind in loaded.declared.items() if name.lower() not in declared}
    table = request.table.model_copy(update={"columns": {**given, **request.table.columns}})
    return replace(request, table=table)


def _declare(loaded: Loaded, request: RowsRequest) -> tuple[DataFrame, tuple[ColumnCast, ...]]:
    """Return the rows above the cursor as the table declares them, and the casts that are left to the tasks.

    Spark itself casts if it evaluates conditions on the rows or repartitions them.
    """
    table, condition = request.table, None if loaded.is_bounded else request.condition
    is_judged = bool(table.deleted or table.conditions or table.unique_checks or table.partition_by)
    compares = condition is not None and (
        bool(loaded.kinds) or str(table.cursor).lower() in map(str.lower, table.columns)
    )
    typed, casts = apply_declared_types(loaded.frame, table, in_spark=is_judged or compares, kinds=loaded.kinds)
    if table.cursor_lag is not None:
        check_lag(table, declare_schema(prepare_delivery(typed)[1], casts))
    return typed if condition is None else filter_rows(typed, table, condition), casts


def _choose_numbering(table: TableSpec, steady: bool) -> Numbering:
    if table.index != IndexKind.CONTIGUOUS:
        return Numbering.NONE
    return Numbering.COUNT if steady else Numbering.KEEP


def add_checks(source: DataFrame, table: TableSpec) -> DataFrame:
    """Add a column with the results of the table's conditions. Null counts as true, as in a SQL check."""
    if not table.conditions:
        return source
    columns = [
        make_condition(source, condition.sql, f"expectation {condition.name!r} of {table.id!r}", when_null=True)
        for condition in table.conditions
    ]
    return source.select(
        "*", F.struct(*(column.alias(f"c{index}") for index, column in enumerate(columns))).alias(CHECKS)
    )


def find_repeated(frame: DataFrame, columns: list[str], shown: int) -> tuple[int, list[tuple[object, ...]]]:
    """Return how many rows have the values of other rows in these columns, and the first such values with their counts.

    Rows with a null among the values do not count.
    """
    is_whole = F.lit(True)
    for column in columns:
        is_whole &= F.col(column).isNotNull()
    groups = frame.where(is_whole).groupBy(*columns).agg(F.count("*").alias("n")).where("n > 1")
    [total] = groups.agg(F.sum("n")).collect()
    if not total[0]:
        return 0, []
    return int(total[0]), [tuple(row) for row in groups.orderBy(F.desc("n"), *columns).limit(shown).collect()]
