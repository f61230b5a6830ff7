"""Open the driver's connection to a database as Spark opens it: for its columns and a few values."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from lakewriter.source.databases.database_server import Column, Server
from lakewriter.source.databases.postgresql import Postgresql


class Connection:
    """A JDBC connection; ``source`` options are those of ``spark.read.format("jdbc")``."""

    def __init__(self, session: SparkSession, options: Mapping[str, str], server: Server) -> None:
        self.server = server
        self._java = open_connection(session, options)
        try:
            if statement := find_option(options, "sessioninitstatement"):
                self.execute(statement)
        except Py4JError:
            self.close()
            raise

    def describe(self, sql: str) -> list[Column]:
        """Return the columns of a query without reading a row."""
        statement = self._java.prepareStatement(sql)
        try:
            metadata = statement.getMetaData()
            if metadata is None:
                # Some drivers know the columns only once the statement has run.
                metadata = statement.executeQuery().getMetaData()
            return [self._describe_column(metadata, index) for index in range(1, metadata.getColumnCount() + 1)]
        finally:
            statement.close()

    def _describe_column(self, metadata: Any, index: int) -> Column:
        name, kind = str(metadata.getColumnLabel(index)), str(metadata.getColumnTypeName(index)).lower()
        # PostgreSQL's driver quotes the name of a type in another schema.
        dimensions = self._count_dimensions(metadata, index) if kind.startswith("_") else 0
        return Column(
            name, kind, int(metadata.getPrecision(index)), int(metadata.getScale(index)), dimensions,
            int(metadata.getColumnType(index)), self._find_origin(metadata, index),
        )  # fmt: skip

    @staticmethod
    def _find_origin(metadata: Any, index: int) -> tuple[str, str, str]:
        """Return the schema, table and column; of databases without schemas the catalog."""
        schema = metadata.getSchemaName(index) or metadata.getCatalogName(index)
        return str(schema or ""), str(metadata.getTableName(index) or ""), str(metadata.getColumnName(index) or "")

    def _count_dimensions(self, metadata: Any, index: int) -> int:
        """Return the declared dimensions of a table's array; 1 for an array of a query."""
        if not isinstance(self.server, Postgresql):
            return 1
        parts = (metadata.getBaseSchemaName(index), metadata.getBaseTableName(index), metadata.getBaseColumnName(index))
        if not all(parts):
            return 1
        schema, table, column = (self.server.write_text(str(part)) for part in parts)
        rows = self.read_rows(
            "SELECT a.attndims::text FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid JOIN pg_namespace n "
            f"ON n.oid = r.relnamespace WHERE n.nspname = {schema} AND r.relname = {table} AND a.attname = {column}"
        )
        return max(int(rows[0][0] or 1), 1) if rows else 1

    def read_rows(self, sql: str, most: int = 0) -> list[tuple[str | None, ...]]:
        """Return the rows of a query, each value as its text; ``most`` is the limit of rows, 0 for none."""
        statement = self._java.prepareStatement(sql)
        try:
            statement.setMaxRows(most)
            results = statement.executeQuery()
            count = results.getMetaData().getColumnCount()
            rows = []
            while results.next():
                rows.append(tuple(results.getString(index) for index in range(1, count + 1)))
            return rows
        finally:
            statement.close()

    def execute(self, sql: str) -> None:
        """Run a statement and discard its result."""
        statement = self._java.prepareStatement(sql)
        try:
            statement.execute()
        finally:
            statement.close()

    def begin_transaction(self) -> None:
        """Begin a transaction, which lasts until the connection is closed."""
        self._java.setAutoCommit(False)

    def roll_back(self) -> None:
        """End a failed transaction, if one has begun."""
        if not self._java.getAutoCommit():
            self._java.rollback()
            self._java.setAutoCommit(True)

    @property
    def metadata(self) -> Any:
        """The driver's java.sql.DatabaseMetaData."""
        return self._java.getMetaData()

    @property
    def catalog(self) -> str | None:
        """The default catalog of names."""
        catalog = self._java.getCatalog()
        return None if catalog is None else str(catalog)

    @property
    def version(self) -> str:
        """The name and version of the server."""
        metadata = self.metadata
        return f"{metadata.getDatabaseProductName()} {metadata.getDatabaseProductVersion()}"

    def close(self) -> None:
        """Close the connection in any state."""
        # Errors are of no use: the server ends the session when the socket closes.
        with suppress(Py4JError):
            self._java.close()


@contextmanager
def connecting(session: SparkSession, options: Mapping[str, str], server: Server) -> Iterator[Connection]:
    """Open a connection for the time of the context."""
    connection = Connection(session, options, server)
    try:
        yield connection
    finally:
        connection.close()


def open_connection(session: SparkSession, options: Mapping[str, str]) -> Any:
    """Open a connection as Spark opens it, with the drivers of ``--packages`` and ``--jars``."""
    jvm = session._jvm
    assert jvm is not None
    # Spark asks for a table or a query with the options; a connection needs neither.
    jdbc_options = _make_options(jvm, {**drop_options(options, ("dbtable", "query")), "dbtable": "none"})
    dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(find_option(options, "url"))
    return dialect.createConnectionFactory(jdbc_options).apply(-1)


def open_parts(session: SparkSession, options: Mapping[str, str], conditions: Sequence[str]) -> DataFrame:
    """Open the rows of ``dbtable`` with a partition for each condition.

    ``DataFrameReader.jdbc`` does the same, but passes property names to the driver in lower case. MySQL's driver does
    not recognise these: its sessions are then not in UTC, and not encrypted though ``sslMode`` asks for it.
    """
    jvm, gateway = session._jvm, session.sparkContext._gateway
    assert jvm is not None
    assert gateway is not None
    of_spark = jvm.org.apache.spark.sql.execution.datasources.jdbc
    parts = gateway.new_array(jvm.org.apache.spark.Partition, len(conditions))
    for index, condition in enumerate(conditions):
        parts[index] = of_spark.JDBCPartition(condition, index)
    relation = of_spark.JDBCRelation.apply(parts, _make_options(jvm, options), session._jsparkSession)
    return DataFrame(session._jsparkSession.baseRelationToDataFrame(relation), session)


def _make_options(jvm: Any, options: Mapping[str, str]) -> Any:
    given = jvm.java.util.HashMap()
    for name, value in options.items():
        given.put(name, value)
    scala_map = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given)
    return jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(scala_map)


def find_option(options: Mapping[str, str], name: str) -> str:
    """Return an option by its name in lower case; blank if it is not set."""
    return next((value for key, value in options.items() if key.lower() == name), "")


def drop_options(options: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    """Return the options without those of ``names``, which are in lower case."""
    return {name: value for name, value in options.items() if name.lower() not in names}


def write_source(options: Mapping[str, str]) -> str:
    """Return the table or query as it follows FROM."""
    return find_option(options, "dbtable") or f"({find_option(options, 'query')}) lakewriter_source"
