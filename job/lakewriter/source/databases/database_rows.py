"""Read a table or query of a database, with one expression for each column, as its server's types ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from lakewriter.cast.sql_types import parse_columns, parse_type
from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError
from lakewriter.source.databases.cursors import (
    Bounds,
    CursorCondition,
    CursorQuery,
    Edge,
    RangeCondition,
    require_order,
)
from lakewriter.source.databases.database_connection import (
    Connection,
    drop_options,
    find_option,
    open_parts,
    write_source,
)
from lakewriter.source.databases.database_server import STRING, Column, Moment, Server
from lakewriter.source.databases.embedded import Other
from lakewriter.source.databases.moments import LockedMoment, begin_moment, begin_sessions, plan_lock
from lakewriter.source.databases.parallel_ranges import Partition, cut_ranges, find_column, require_range_column
from lakewriter.source.databases.reconciliation import Reconciliation
from lakewriter.source.databases.servers import find_server
from lakewriter.source.request import RowsRequest
from lakewriter.spec.table_spec import JdbcPartition, Read, TableSpec

_FETCHED: Final = "10000"
"""The rows that a driver holds at a time. Without a limit, PostgreSQL's and MySQL's drivers hold all."""
_RANGE: Final = "lakewriter_range"
_ABSENT: Final = "lakewriter_absent"
_OF_SPARK: Final = ("dbtable", "query", "partitioncolumn", "lowerbound", "upperbound", "numpartitions", "customschema")


@dataclass(frozen=True)
class DatabaseRows:
    """A frame under the source's names, and the types to which its text columns are cast, by index.

    ``is_bounded`` is true if the server compares the cursor; ``edge`` is then the highest value of the rows.
    """

    frame: DataFrame
    kinds: Mapping[int, pa.DataType] = field(default_factory=dict)
    is_bounded: bool = False
    edge: Edge | None = None
    notes: tuple[str, ...] = ()
    version: str = ""
    """The server's name and version."""
    held: tuple[Connection | LockedMoment, ...] = ()
    """Connections and locks that stay open until the rows are read."""
    locks: tuple[LockedMoment, ...] = ()
    """Locks that are taken before the first task begins."""
    reconciliation: Reconciliation | None = None
    stored_types: Mapping[str, str] = field(default_factory=dict)
    """The database's types of the columns that are read as another type."""
    unordered: Mapping[str, str] = field(default_factory=dict)
    """The database's types of a view's columns that are texts in another order, under names that the table compares."""


def is_jdbc(read: Read) -> bool:
    """Return True if a read is of a database."""
    return read.kind.name == "jdbc"


def complete_options(options: Mapping[str, str], server: Server) -> dict[str, str]:
    """Return the options with the driver's class, the fetch size, and the settings of the server's sessions."""
    given = {name.lower() for name in options}
    # A driver that comes with --packages or --jars is not in the class loader that java.sql.DriverManager asks: without
    # its class, Spark finds "No suitable driver". https://spark.apache.org/docs/4.1.1/sql-data-sources-jdbc.html
    added = {"driver": server.driver, "fetchsize": _FETCHED}
    added = {name: value for name, value in added.items() if value and name not in given}
    return server.add_options({**options, **added})


def read_database(session: SparkSession, options: Mapping[str, str], request: RowsRequest, read: Read) -> DatabaseRows:
    """Plan the rows of a table or query; only those of the request's condition if the server compares the cursor.

    The database is asked for its columns, for the bounds of a partition, and for the highest value of the cursor. First
    rows alone are read in no snapshot.
    """
    table, is_sample = request.table, request.first is not None
    server = find_server(find_option(options, "url"), read.jdbc.quote, table.id)
    options = complete_options(options, server)
    connection = Connection(session, options, server)
    try:
        _require_session(connection, server, table.id)
        moment, notes = None, tuple[str, ...]()
        if not is_sample:
            moment, notes = begin_moment(connection, server, options, read, is_own=read is table.read)
        suffix = "" if moment is None else moment.suffix
        statement = Statement.plan(connection, options, read, table, suffix)
        unordered = statement.require_orders()
        statement, bounds = statement.fix_cursor(request.condition, in_snapshot=moment is not None)
        ranges = statement.list_ranges(options)
        lock = _plan_lock(session, options, statement, len(ranges[1]))
        is_fixed = moment is not None or lock is not None
        if ranges[1] and not (is_fixed or (is_sample and server.shares_moments)):
            notes = (*notes, f"its {len(ranges[1])} connections do not see one moment of the database")
        version = connection.version
        frame = statement.open(session, _join(options, moment, lock), ranges)
        reconciliation = None
        if statement.is_own and (bounds.is_fixed or request.condition is None) and not is_sample:
            reconciliation = statement.plan_reconciliation(bounds, is_fixed=is_fixed)
    except BaseException:
        connection.close()
        raise
    locks = () if lock is None else (lock,)
    held = _hold(connection, locks, is_needed=is_fixed or reconciliation is not None)
    stored = {c.name: c.type_name for c in statement.columns if server.changes_type(c)}
    return DatabaseRows(
        frame, statement.kinds, bounds.is_fixed, bounds.edge, (*notes, *bounds.notes), version, held, locks,
        reconciliation, stored, unordered,
    )  # fmt: skip


def _require_session(connection: Connection, server: Server, table: str) -> None:
    """Raise ``SPEC_INVALID`` if the options give sessions that read other values than the server has."""
    if problem := server.explain_session(connection):
        raise SpecInvalidError(
            f"table {table!r}: {problem}.",
            remedy="Leave it out of sessionInitStatement and sessionVariables, or set it so there.",
        )


def _plan_lock(
    session: SparkSession, options: Mapping[str, str], statement: "Statement", count: int
) -> LockedMoment | None:
    """Return the lock by which ``count`` connections see one moment, if the file asks for it."""
    if not (statement.read.jdbc.lock and count):
        return None
    server = statement.server
    connect = partial(Connection, session, options, server)
    return plan_lock(session, connect, statement.connection, server, statement.source, count, statement.table.id)


def _hold(
    connection: Connection, locks: tuple[LockedMoment, ...], *, is_needed: bool
) -> tuple[Connection | LockedMoment, ...]:
    """Return what has to stay open until the rows are read; close the connection if it is not needed."""
    if not is_needed:
        connection.close()
        return ()
    return (connection, *locks)


def _join(options: Mapping[str, str], moment: Moment | None, lock: LockedMoment | None) -> dict[str, str]:
    """Return the options by which each connection of a task sees the moment."""
    if lock is not None:
        return {**begin_sessions(options, lock.session), "allowMultiQueries": "true"}
    return begin_sessions(options, "" if moment is None else moment.session)


@dataclass(frozen=True)
class Statement:
    """A query to the server: ``source`` follows FROM, ``selected`` are the expressions of the columns."""

    connection: Connection
    read: Read
    table: TableSpec
    source: str
    prepared: str
    columns: Sequence[Column]
    selected: Sequence[str]
    kinds: Mapping[int, pa.DataType]
    texts: Sequence[int]
    """The indexes of the columns that come as text."""
    condition: str = ""
    """The condition of the rows; blank for all."""
    custom: Mapping[str, pa.DataType] = field(default_factory=dict)
    """The types that Spark's option customSchema gives, by the columns' names in lower case."""

    @property
    def server(self) -> Server:
        """The database server."""
        return self.connection.server

    @property
    def is_own(self) -> bool:
        """True if it reads the table itself, and not a view."""
        return self.read is self.table.read

    @classmethod
    def plan(
        cls, connection: Connection, options: Mapping[str, str], read: Read, table: TableSpec, suffix: str
    ) -> "Statement":
        """Ask for the columns, and choose each one's expression. ``suffix`` follows the source."""
        server = connection.server
        source, prepared = write_source(options) + suffix, find_option(options, "preparequery")
        columns = connection.describe(f"{prepared} SELECT * FROM {source} WHERE 1 = 0")
        if isinstance(server, Other):
            _require_quote(connection, server, source, columns)
        declared = _find_declared(read, table)
        custom = {field.name.lower(): field.type for field in _parse_custom(find_option(options, "customschema"))}
        selected, kinds, texts = [], dict[int, pa.DataType](), []
        for index, column in enumerate(columns):
            name = column.name.lower()
            sql, kind, is_text = _choose_expression(server, column, custom.get(name), declared.get(name), table.id)
            selected.append(sql)
            if is_text:
                texts.append(index)
            if kind is not None and kind != STRING:
                kinds[index] = kind
        return cls(connection, read, table, source, prepared, columns, selected, kinds, texts, custom=custom)

    def plan_reconciliation(self, bounds: Bounds, *, is_fixed: bool) -> Reconciliation | None:
        """Return the query that compares the rows; None if the file turns it off or no moment is fixed."""
        is_known = is_fixed or bounds.is_fixed
        depth = self.read.jdbc.reconcile or ("counts" if is_known else "off")
        if depth == "off":
            return None
        others = self.find_declared()
        kinds = {
            index: kind
            for index, column in enumerate(self.columns)
            if column.name.lower() not in others and (kind := self.server.find_kind(column)) is not None
        }
        source = self._write_rows()
        planned = Reconciliation(
            self.table.id, self.server, depth, self.columns, kinds, source, self.prepared, self.connection, is_fixed
        )
        planned.begin()
        return planned

    def find_declared(self) -> dict[str, pa.DataType]:
        """Return the types that the file gives to columns, by their names in lower case."""
        return {**self.custom, **_find_declared(self.read, self.table)}

    def fix_cursor(self, condition: str | None, *, in_snapshot: bool) -> tuple["Statement", Bounds]:
        """Return the statement with the condition of a load's rows, if the server compares the cursor."""
        table, connection = self.table, self.connection
        between = condition.between if isinstance(condition, RangeCondition) else None
        if between is not None:
            table = table.model_copy(update={"cursor": between.column, "cursor_lag": None})
        is_ours = between is not None or condition is None or isinstance(condition, CursorCondition)
        if not self.is_own or not table.cursor or not is_ours:
            return self, Bounds()
        since = condition.cursor if isinstance(condition, CursorCondition) else None
        columns = [
            self.server.ask_type(connection, column, self.source)
            if column is find_column(self.columns, table.cursor)
            else column
            for column in self.columns
        ]
        declared = self.find_declared().get(table.cursor.lower())
        query = CursorQuery.plan(self.server, columns, self.source, self.prepared, table, declared)
        bounds: Bounds | str = query if isinstance(query, str) else ""
        if isinstance(query, CursorQuery):
            fix = partial(query.fix, connection, since, in_snapshot=in_snapshot)
            bounds = fix() if between is None else query.fix_range(between)
        if isinstance(bounds, Bounds):
            return replace(self, condition=bounds.condition), bounds
        note = f"Spark compares cursor {table.cursor!r}, after it has read all rows: {bounds}"
        return self, Bounds(notes=(note,))

    def require_orders(self) -> dict[str, str]:
        """Raise ``SPEC_INVALID`` if rows of one key would be compared by texts of values that have another order.

        Return the server's types of such columns of a view, of which a statement may make others.
        """
        table = self.table
        names = table.order_by if self.is_own or table.cursor is None else (*table.order_by, table.cursor)
        declared, unordered = self.find_declared(), {}
        for column in filter(None, (find_column(self.columns, name) for name in names)):
            asked = self.server.ask_type(self.connection, column, self.source)
            if self.is_own:
                require_order(self.server, asked, declared.get(column.name.lower()), table.id, "order_by")
            elif self.server.loses_order(asked):
                unordered[column.name.lower()] = f"{self.server.name}'s {asked.type_name}"
        return unordered

    def list_ranges(self, options: Mapping[str, str]) -> tuple[str, list[str]]:
        """Return the name of the column that is cut, and a condition for each range; none for a single range."""
        wished = _find_partition(self.read.partition, options)
        if wished is None:
            return "", []
        column = require_range_column(self.columns, wished.column, self.server)
        name = self.server.quote(column.name)
        bounds = wished.bounds or self.ask_bounds(column)
        if None in bounds:
            return name, []
        lowest, highest = map(str, bounds)
        return name, cut_ranges(self.server, column, self.server.quote(_RANGE), wished.count, lowest, highest)

    def ask_bounds(self, column: Column) -> tuple[str | None, ...]:
        """Return the texts of the lowest and the highest value of a column."""
        quote, name = self.server.quote, self.server.quote(column.name)
        ends = [self.server.read(column, quote(end)) for end in ("lowest", "highest")]
        asked = ", ".join(end.sql for end in ends if end is not None)
        inner = f"SELECT MIN({name}) AS {quote('lowest')}, MAX({name}) AS {quote('highest')} FROM {self._write_rows()}"
        (row,) = self.connection.read_rows(f"{self.prepared} SELECT {asked} FROM ({inner}) lakewriter_bounds")
        return row

    def write(self, range_column: str = "") -> str:
        """Return the statement in parentheses, with its alias. Its columns' names need no quotes."""
        quote = self.server.quote
        selected = [f"{sql} AS {quote(f'c{index}')}" for index, sql in enumerate(self.selected)]
        if range_column:
            selected.append(f"{range_column} AS {quote(_RANGE)}")
        return f"(SELECT {', '.join(selected)} FROM {self._write_rows()}) lakewriter_rows"

    def _write_rows(self) -> str:
        return f"{self.source} WHERE {self.condition}" if self.condition else self.source

    def open(self, session: SparkSession, options: Mapping[str, str], ranges: tuple[str, Sequence[str]]) -> DataFrame:
        """Open the frame under the source's names, with a partition for each range."""
        range_column, conditions = ranges
        reader_options = drop_options(options, _OF_SPARK)
        if self.texts:
            reader_options["customSchema"] = ", ".join(f"c{index} STRING" for index in self.texts)
        if conditions:
            frame = open_parts(session, {**reader_options, "dbtable": self.write(range_column)}, conditions).drop(
                _RANGE
            )
        else:
            frame = session.read.options(**reader_options).format("jdbc").option("dbtable", self.write()).load()
        return frame.toDF(*[column.name for column in self.columns])


def _find_declared(read: Read, table: TableSpec) -> dict[str, pa.DataType]:
    """Return the types that a table declares for the columns of its source."""
    if read is not table.read:
        return {}
    return {name.lower(): parse_type(column.type) for name, column in table.columns.items()}


def _parse_custom(text: str) -> pa.Schema:
    """Return the types of Spark's option customSchema, to which the strict cast converts."""
    try:
        return parse_columns(text) if text else pa.schema([])
    except ValueError as error:
        raise SpecInvalidError(f"read.options.customSchema is {text!r}: {error}") from error


def _choose_expression(
    server: Server, column: Column, custom: pa.DataType | None, declared: pa.DataType | None, table: str
) -> tuple[str, pa.DataType | None, bool]:
    """Return a column's expression, the type it is cast to before its declared one, and True if it comes as text."""
    name = server.quote(column.name)
    reading = server.read(column, name)
    if reading is None:
        raise SchemaIncompatibleError(
            f"table {table!r}: column {column.name!r} has {server.name}'s type {column.type_name}, whose values "
            "neither come as they are nor have one text.",
            remedy=server.explain_refusal(column, name),
        )
    is_text = reading.kind is not None and reading.sql != name and not pa.types.is_floating(reading.kind)
    wished = custom if declared is None else declared
    if wished == STRING and is_text:
        return reading.text or reading.sql, None, True
    # Declared types are cast together with those of other sources.
    return reading.sql, None if declared is not None else custom or reading.kind, is_text


def _require_quote(connection: Connection, server: Server, source: str, columns: Sequence[Column]) -> None:
    """Raise ``SPEC_INVALID`` unless a quoted name is a column: if the server reads it as a text, any name is
    accepted.
    """
    names = {column.name.lower() for column in columns}
    absent = next(name for name in (_ABSENT, *(f"{_ABSENT}{n}" for n in range(len(names)))) if name not in names)
    try:
        connection.read_rows(f"SELECT {server.quote(columns[0].name)} FROM {source}", 1)
    except Py4JJavaError as error:
        reason = f"{server.quote(columns[0].name)} is not column {columns[0].name!r}: {error.java_exception}"
    else:
        try:
            connection.read_rows(f"SELECT {server.quote(absent)} FROM {source}", 1)
        except Py4JJavaError:
            return
        reason = f"the database has no column {absent}, and returned a text for {server.quote(absent)}"
    raise SpecInvalidError(
        f"read.jdbc.quote is not what this database quotes names with: {reason}.",
        remedy="Set it to what its SQL quotes names with, such as '`' or '['.",
    )


def _find_partition(partition: JdbcPartition | None, options: Mapping[str, str]) -> Partition | None:
    """Return the partition of the rows: that of ``partition:``, or of Spark's options with their bounds."""
    if partition is not None:
        return Partition(partition.column, partition.count)
    column, count = find_option(options, "partitioncolumn"), find_option(options, "numpartitions")
    if not column:
        return None
    bounds = (find_option(options, "lowerbound"), find_option(options, "upperbound"))
    if not (all(bounds) and count.isdigit() and int(count)):
        raise SpecInvalidError(
            "read.options has partitionColumn, which needs lowerBound, upperBound and numPartitions beside it.",
            remedy=f"Or use read.partition: {{column: {column}, count: 8}}, which finds the bounds itself.",
        )
    return Partition(column, int(count), bounds)
