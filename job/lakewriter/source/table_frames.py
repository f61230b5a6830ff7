"""Make DataFrames as a table asks for them: typed as declared, deleted rows marked, values as Arrow takes them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, StringType

from lakewriter.column_types import is_void, note_type
from lakewriter.errors import LakeError, SourceFailedError, SpecInvalidError
from lakewriter.naming import DELETED
from lakewriter.receipt import InferredType
from lakewriter.source.arrow_types import deliver_column, make_arrow_schema
from lakewriter.source.bad_rows import BAD, Marked, mark_schema
from lakewriter.source.byte_checks import ByteCheck, plan_byte_check
from lakewriter.source.change_events.connect_schemas import read_row_types
from lakewriter.source.change_events.debezium import DebeziumPlan
from lakewriter.source.change_events.every_event import HistoryPlan
from lakewriter.source.change_events.unfolding import AnyEventPlan, plan_events, unfold_batch
from lakewriter.source.column_names import load_by_case
from lakewriter.source.databases.cursors import CursorCondition
from lakewriter.source.databases.database_connection import Connection
from lakewriter.source.databases.database_rows import DatabaseRows, is_jdbc, read_database
from lakewriter.source.databases.moments import LockedMoment
from lakewriter.source.declared_columns import cast_in_spark, list_arrow_types, number_columns, number_fields
from lakewriter.source.file_frames import FileRows, pack_rows
from lakewriter.source.file_listing import add_base_path, list_load_paths
from lakewriter.source.file_splits import make_spread
from lakewriter.source.files.file_source import has_reader, infers_types, open_files
from lakewriter.source.kafka_topics import TopicEdge, look_at_topics
from lakewriter.source.kafka_values import read_values
from lakewriter.source.marked_rows import add_marks, is_marked
from lakewriter.source.request import RowsRequest
from lakewriter.source.source_options import make_reader_options
from lakewriter.source.spark_failures import SPARK_ERRORS, find_useful_line
from lakewriter.source.sql_statements import run_statement
from lakewriter.spec.table_spec import ColumnType, Read, TableSpec

_CHARACTERS: Final = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class Loaded:
    """A frame and what its reading needs.

    ``checks`` are of files that have to be checked before the frame's rows are used. ``database`` describes the table's
    rows in a database. ``held`` are the connections that stay open until the rows are read.
    """

    frame: DataFrame
    notes: tuple[str, ...] = ()
    checks: tuple[ByteCheck | LockedMoment, ...] = ()
    database: DatabaseRows | None = None
    held: tuple[Connection | LockedMoment, ...] = ()
    inferred: tuple[InferredType, ...] = ()
    """The types of columns that follow from values."""
    is_untyped: bool = False
    """The values give columns their types, and there is no row."""
    unordered: Mapping[str, str] = field(default_factory=dict)
    """The types of a database's columns, by name, whose texts have another order than their values."""
    edge: TopicEdge | None = None
    """The topic that counts the table's cursor."""
    declared: Mapping[str, ColumnType] = field(default_factory=dict)
    """The types of columns that change events give beside their values."""

    @property
    def kinds(self) -> Mapping[int, pa.DataType]:
        """The types of the columns that come as text, by index."""
        return {} if self.database is None else self.database.kinds

    @property
    def is_bounded(self) -> bool:
        """True if the source has compared the cursor."""
        return self.database is not None and self.database.is_bounded

    @property
    def reasons(self) -> tuple[Callable[[str], LakeError | None], ...]:
        """Functions that return the error of a failed lock."""
        return tuple(check.explain for check in self.checks if isinstance(check, LockedMoment))

    def count_rows_alone(self) -> "Loaded":
        """Return the same, whose values are not compared with the source's."""
        if self.database is None or self.database.reconciliation is None:
            return self
        rows_alone = self.database.reconciliation.count_rows_alone()
        return replace(self, database=replace(self.database, reconciliation=rows_alone))

    def close(self) -> None:
        """Close the held connections."""
        for connection in self.held:
            connection.close()


def load_source(session: SparkSession, request: RowsRequest, read: Read, *, aside: bool) -> Loaded:
    """Return the rows that there are now, under the source's names; register views in the session.

    ``read`` is the table's own or a view's. A database that compares the cursor itself is asked for the rows of the
    request's condition alone. A view's columns have the names that Spark gives them, which a statement can distinguish.
    With ``aside`` bad rows are included, marked in a last column.
    """
    if has_reader(read):
        rows = _open_rows(session, request, read, aside=aside)
        opened = rows.opened
        return Loaded(rows.make_frame(), opened.notes, inferred=opened.inferred, is_untyped=opened.is_untyped)

    loaded = load_by_case(session, lambda: _load(session, request, read, aside=aside))
    marked = replace(loaded, frame=add_marks(loaded.frame)) if aside and not is_marked(loaded.frame) else loaded
    if read is request.table.read and infers_types(read):
        marked = replace(marked, inferred=_note_types(loaded.frame, request.table))
    return replace(marked, frame=marked.frame.limit(0), checks=()) if read.is_empty else marked


def _note_types(frame: DataFrame, table: TableSpec) -> tuple[InferredType, ...]:
    """Return the types of a frame's columns that are not declared."""
    declared = {name.lower() for name in table.columns} | {BAD}
    kinds = zip(frame.columns, list_arrow_types(frame), strict=True)
    noted = (note_type(name, kind) for name, kind in kinds if kind is not None and name.lower() not in declared)
    return tuple(column for column in noted if column is not None)


def _open_rows(session: SparkSession, request: RowsRequest, read: Read, *, aside: bool) -> FileRows:
    """Look at files that the tasks read. The table's types apply to its columns, not to those of a view."""
    options, table = make_reader_options(read, request.secrets), request.table
    typed = table if read is table.read else table.model_copy(update={"columns": {}})
    spread = make_spread(lambda: session, request.origin)
    return pack_rows(session, open_files(typed, read, options, spread, aside=aside), spread)


def _load(session: SparkSession, request: RowsRequest, read: Read, *, aside: bool) -> Loaded:
    if read.sql is not None:
        return _load_statement(session, request, read, aside=aside)
    options = add_base_path(read, make_reader_options(read, request.secrets))
    if is_jdbc(read) and read.columns is None:
        rows = read_database(session, options, request, read)
        if read is request.table.read:
            return Loaded(rows.frame, rows.notes, rows.locks, database=rows, held=rows.held)
        frame = cast_in_spark(rows.frame, rows.kinds, request.table)
        return Loaded(frame, rows.notes, rows.locks, held=rows.held, unordered=rows.unordered)
    reader = session.read.options(**options)
    if read.format is not None:
        reader = reader.format(read.format)
    if read.columns is not None:
        reader = reader.schema(replace_char_types(read.columns))
    frame = reader.load(list_load_paths(read)) if read.paths else reader.load()
    if read.kind.name == "kafka":
        since = request.condition.cursor if isinstance(request.condition, CursorCondition) else None
        edge, notes = look_at_topics(session, options, request.table, since)
        return Loaded(frame, notes, edge=edge)
    if not read.paths or not read.kind.is_text:
        return Loaded(frame)
    byte_check, unseen = plan_byte_check(frame.inputFiles(), read)
    return Loaded(frame, unseen, () if byte_check is None else (byte_check,))


def _load_statement(session: SparkSession, request: RowsRequest, read: Read, *, aside: bool) -> Loaded:
    notes: list[str] = []
    checks: list[ByteCheck | LockedMoment] = []
    files: dict[str, FileRows] = {}
    others: dict[str, DataFrame] = {}
    held: list[Connection | LockedMoment] = []
    unordered: dict[str, str] = {}
    edge: TopicEdge | None = None
    for name, view in read.views.items():
        if has_reader(view):
            files[name] = _open_rows(session, request, view, aside=aside)
            noted = files[name].opened.notes
        else:
            loaded = load_source(session, request, view, aside=aside and view.sql is not None)
            others[name] = loaded.frame
            noted = loaded.notes
            checks += loaded.checks
            held += loaded.held
            unordered |= loaded.unordered
            edge = edge or loaded.edge
        notes += (f"view {name!r}: {note}" for note in noted)
    frame = run_statement(session, str(read.sql), files, others, request.table.id)
    loaded = Loaded(frame, tuple(notes), tuple(checks), held=tuple(held), unordered=unordered, edge=edge)
    if read is request.table.read:
        try:
            _require_orders(loaded, request.table)
        except SpecInvalidError:
            loaded.close()
            raise
    return loaded


def _require_orders(loaded: Loaded, table: TableSpec) -> None:
    """Raise ``SPEC_INVALID`` if a statement passes on texts that are compared, of values with another order."""
    for column in loaded.frame.schema:
        if column.name.lower() in loaded.unordered and isinstance(column.dataType, StringType):
            raise SpecInvalidError(
                f"table {table.id!r}: rows are compared by {column.name!r}, which a view reads as the text of "
                f"{loaded.unordered[column.name.lower()]}: its texts do not compare as its values do.",
                remedy="Make a number, a date or a timestamp of it in the view's query, or give the column another "
                "name there if the text is meant.",
            )


def replace_char_types(columns: str) -> str:
    """Replace ``char`` and ``varchar`` in DDL, which the readers do not take."""
    return _CHARACTERS.sub("string", columns)


def unfold_events(loaded: Loaded, request: RowsRequest) -> Loaded:
    """Return the rows of change events, each with what says whether it is deleted, and with a mark; other rows as they
    are."""
    table, first = request.table, request.first
    if table.envelope is None:
        return loaded
    marked = loaded.frame if is_marked(loaded.frame) else add_marks(loaded.frame)
    declared: Mapping[str, ColumnType] = {}
    if table.envelope.has_rows_inside and table.read.kind.name == "kafka":
        read = read_values(marked, request)
        marked, declared = read.frame, read.declared
    events = make_arrow_schema(marked.columns[:-1], marked.select(*marked.columns[:-1]).schema)
    plan = plan_events(events, table, table.envelope)
    fields = [*plan.fields, pa.field(DELETED, pa.bool_())]
    names = [field.name for field in fields]
    kind = from_arrow_schema(mark_schema(number_fields(fields)), prefer_timestamp_ntz=True)
    rows = marked.mapInArrow(partial(_unfold_all, plan, mark_schema(events)), kind).toDF(*names, BAD)
    of_events = plan.plan if isinstance(plan, HistoryPlan) else plan
    if isinstance(of_events, DebeziumPlan) and of_events.has_schema:
        looked_at = marked if first is None else marked.limit(first)
        schemas = looked_at.select(F.to_json("schema").alias("schema")).where("schema IS NOT NULL").distinct().collect()
        declared = read_row_types((row[0] for row in schemas), table.id)
    declared = {name: kind for name, kind in declared.items() if name in names}
    # The types that values give are those of events, which the table has not.
    is_untyped = all(is_void(column.type) for column in of_events.rows)
    return replace(loaded, frame=rows, inferred=(), declared=declared, is_untyped=is_untyped)


def _unfold_all(plan: AnyEventPlan, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        arrays = [column.cast(kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
        yield unfold_batch(plan, Marked(pa.RecordBatch.from_arrays(arrays, schema=schema)))


def add_deleted_column(source: DataFrame, table: TableSpec) -> DataFrame:
    """Add a column that is true for deleted rows, if the table has an expression for it."""
    if table.deleted is None:
        return source
    is_deleted = make_condition(source, table.deleted, f"tables.{table.id}.deleted", when_null=False)
    return source.select("*", is_deleted.alias(DELETED))


def make_condition(source: DataFrame, sql: str, subject: str, *, when_null: bool) -> Column:
    """Return the column of a boolean expression. Raise ``SPEC_INVALID`` for one that the source's columns do not give.

    Args:
        source: The frame whose columns the expression is over.
        sql: The expression.
        subject: The name of the expression in lake.yaml, for the message.
        when_null: The value for rows for which the expression is null.
    """
    reason = ""
    try:
        kind = source.select(F.expr(sql)).schema[0].dataType
        reason = "" if isinstance(kind, BooleanType) else f"it gives {kind.simpleString()}, expected boolean"
    except SPARK_ERRORS as error:
        reason = find_useful_line(str(error))
    if reason:
        raise SpecInvalidError(
            f"{subject} is {sql!r}, which cannot be used: {reason}",
            remedy="Give a boolean SQL expression over the source's columns, such as \"op = 'D'\".",
        )
    return F.coalesce(F.expr(sql), F.lit(when_null))


def prepare_delivery(source: DataFrame) -> tuple[DataFrame, pa.Schema]:
    """Return the source as it goes to Arrow, with marks as the last column, and the schema under the source's names."""
    names = source.columns
    if not names or names == [BAD]:
        raise SourceFailedError("the source has no columns.", remedy="Check its path and options.")
    numbered = source.toDF(*number_columns(names))
    columns = [
        deliver_column(name, F.col(field.name), field.dataType).alias(field.name)
        for name, field in zip(names, numbered.schema, strict=True)
    ]
    if BAD in names:
        index = names.index(BAD)
        names = [*names[:index], *names[index + 1 :], BAD]
        columns = [*columns[:index], *columns[index + 1 :], columns[index]]
    frame = numbered.select(*columns)
    return frame, make_arrow_schema(names, frame.schema)
