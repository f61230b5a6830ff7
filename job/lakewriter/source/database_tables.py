"""List a database's tables with their columns and primary keys, as its JDBC driver tells them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakewriter.errors import SourceFailedError
from lakewriter.source.jdbc import add_driver

_SYSTEM: Final = (
    # Schemas of the databases' own; drivers list them beside the user's.
    "information_schema", "pg_catalog", "sys", "mysql", "performance_schema", "sysibm", "syscat", "syscs_diag",
    "syscs_util", "sysfun", "sysproc", "sysstat", "nullid", "sqlj", "outln", "xdb", "ctxsys", "mdsys", "wmsys",
)  # fmt: skip


@dataclass(frozen=True)
class DatabaseTable:
    """A table or view; ``columns`` has the database's own type and whether null is allowed, by name."""

    schema: str
    name: str
    is_view: bool
    columns: Mapping[str, tuple[str, bool]]
    primary_key: tuple[str, ...]
    dbtable: str
    """The name quoted as the database quotes, for the option ``dbtable``."""


def list_database_tables(
    spark: SparkSession, options: Mapping[str, str], schemas: tuple[str, ...] = ()
) -> list[DatabaseTable]:
    """List the tables and views of a database, of ``schemas`` where some are named.

    ``options`` are those of ``spark.read.format("jdbc")``. ``SOURCE_FAILED`` where the database cannot be asked.
    """
    try:
        connection = _connect(spark, add_driver(options))
        try:
            return _read_tables(connection, {schema.lower() for schema in schemas})
        finally:
            connection.close()
    except Py4JJavaError as error:
        reason = str(error.java_exception.toString())
        raise SourceFailedError(
            f"{_hide(options['url'])} cannot be read: {reason}.", remedy=_explain(reason)
        ) from error


def _connect(spark: SparkSession, options: Mapping[str, str]) -> Any:
    """A connection as Spark opens it, with the drivers of ``--packages`` and ``--jars``."""
    jvm = spark._jvm
    assert jvm is not None
    # Spark asks for a table or a query with the options; the metadata need neither.
    given = jvm.java.util.HashMap()
    for key, value in {**options, "dbtable": "none"}.items():
        given.put(key, value)
    scala_map = jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given)
    jdbc_options = jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(scala_map)
    dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(options["url"])
    return dialect.createConnectionFactory(jdbc_options).apply(-1)


def _read_tables(connection: Any, schemas: set[str]) -> list[DatabaseTable]:
    metadata = connection.getMetaData()
    quote = str(metadata.getIdentifierQuoteString()).strip()
    # MySQL's and MariaDB's databases are catalogs, and they have no schemas.
    own = connection.getCatalog()
    tables = []
    for catalog, schema, name, kind in _read_rows(
        metadata.getTables(own, None, "%", None), ("TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE")
    ):
        space = schema or ""
        if str(kind) not in ("TABLE", "BASE TABLE", "VIEW", "PARTITIONED TABLE", "MATERIALIZED VIEW"):
            continue
        if space.lower() in _SYSTEM or (schemas and (space or catalog or "").lower() not in schemas):
            continue
        columns = _read_rows(
            metadata.getColumns(catalog, schema, _escape(name, metadata), "%"), ("COLUMN_NAME", "TYPE_NAME", "NULLABLE")
        )
        key = _read_rows(metadata.getPrimaryKeys(catalog, schema, name), ("COLUMN_NAME", "KEY_SEQ"))
        tables.append(
            DatabaseTable(
                schema=space,
                name=name,
                is_view="VIEW" in str(kind),
                columns={column: (type_name, nullable != "0") for column, type_name, nullable in columns},
                primary_key=tuple(column for column, _ in sorted(key, key=lambda row: int(row[1]))),
                dbtable=".".join(_quote(part, quote) for part in (space, name) if part),
            )
        )
    return tables


def _read_rows(results: Any, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows = []
    while results.next():
        rows.append(tuple(results.getString(name) for name in names))
    results.close()
    return rows


def _escape(name: str, metadata: Any) -> str:
    """A name as a pattern that fits it alone."""
    escape = str(metadata.getSearchStringEscape() or "")
    return "".join(f"{escape}{letter}" if letter in "%_" and escape else letter for letter in name)


def _quote(name: str, quote: str) -> str:
    return name if not quote or (name.isidentifier() and name.islower()) else f"{quote}{name}{quote}"


def _hide(url: str) -> str:
    """The URL without what may hold a password."""
    return url.partition("?")[0].partition(";")[0]


def _explain(reason: str) -> str:
    if "ClassNotFound" in reason or "No suitable driver" in reason:
        return (
            "Give the database's JDBC driver, such as PYSPARK_SUBMIT_ARGS='--packages org.postgresql:postgresql:42.7.7 "
            "pyspark-shell'."
        )
    return "Check the URL, the network path, the user and the password."
