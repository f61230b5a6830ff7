"""List a database's tables with their columns and primary keys, as its JDBC driver returns them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakewriter.column_types import name_type
from lakewriter.errors import SourceFailedError
from lakewriter.source.databases.database_connection import Connection, connecting
from lakewriter.source.databases.database_rows import complete_options
from lakewriter.source.databases.database_server import Column, Server
from lakewriter.source.databases.servers import find_server

_SYSTEM: Final = (
    # Schemas of the databases' own; drivers list them beside the user's.
    "information_schema", "pg_catalog", "sys", "mysql", "performance_schema", "sysibm", "syscat", "syscs_diag",
    "syscs_util", "sysfun", "sysproc", "sysstat", "nullid", "sqlj", "outln", "xdb", "ctxsys", "mdsys", "wmsys",
)  # fmt: skip


@dataclass(frozen=True)
class DatabaseTable:
    """A table or view; ``columns`` has the database's type and True if null is allowed, by name."""

    schema: str
    name: str
    is_view: bool
    columns: Mapping[str, tuple[str, bool]]
    primary_key: tuple[str, ...]
    dbtable: str
    """The name quoted as the database quotes, for the option ``dbtable``."""
    rows: int | None = None
    """The number of rows that the database estimates."""
    retyped: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The database's type and the other one, for columns that are read as another type."""


def list_database_tables(
    spark: SparkSession, options: Mapping[str, str], schemas: tuple[str, ...] = ()
) -> list[DatabaseTable]:
    """List the tables and views of a database, only those of ``schemas`` if some are named.

    ``options`` are those of ``spark.read.format("jdbc")``. Raise ``SOURCE_FAILED`` if the database cannot be queried.
    """
    server = find_server(options["url"])
    try:
        with connecting(spark, complete_options(options, server), server) as connection:
            rows = _estimate_rows(connection, server)
            return _read_tables(connection, server, {schema.lower() for schema in schemas}, rows)
    except Py4JJavaError as error:
        reason = str(error.java_exception.toString())
        raise SourceFailedError(
            f"{_hide(options['url'])} cannot be read: {reason}.", remedy=_explain(reason, server)
        ) from error


def _estimate_rows(connection: Connection, server: Server) -> dict[tuple[str, str], int]:
    """Return the rows of tables by schema and name, as far as the user may see them."""
    try:
        estimates = connection.read_rows(server.sizes) if server.sizes else []
    except Py4JJavaError:
        # Only a proposal depends on it.
        return {}
    return {
        (schema or "", name): int(rows) for schema, name, rows in estimates if name is not None and rows is not None
    }


def _read_tables(
    connection: Connection, server: Server, schemas: set[str], rows: Mapping[tuple[str, str], int]
) -> list[DatabaseTable]:
    metadata = connection.metadata
    quote = str(metadata.getIdentifierQuoteString()).strip()
    # MySQL's and MariaDB's databases are catalogs, and they have no schemas.
    default_catalog = connection.catalog
    tables = []
    for catalog, schema, name, kind in _read_rows(
        metadata.getTables(default_catalog, None, "%", None), ("TABLE_CAT", "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE")
    ):
        space = schema or ""
        if str(kind) not in ("TABLE", "BASE TABLE", "VIEW", "PARTITIONED TABLE", "MATERIALIZED VIEW"):
            continue
        if space.lower() in _SYSTEM or (schemas and (space or catalog or "").lower() not in schemas):
            continue
        columns = _read_rows(
            metadata.getColumns(catalog, schema, _escape(name, metadata), "%"),
            ("COLUMN_NAME", "TYPE_NAME", "NULLABLE", "COLUMN_SIZE", "DECIMAL_DIGITS", "DATA_TYPE"),
        )
        key = _read_rows(metadata.getPrimaryKeys(catalog, schema, name), ("COLUMN_NAME", "KEY_SEQ"))
        tables.append(
            DatabaseTable(
                schema=space,
                name=name,
                is_view="VIEW" in str(kind),
                columns={column: (type_name, nullable != "0") for column, type_name, nullable, *_ in columns},
                primary_key=tuple(column for column, _ in sorted(key, key=lambda row: int(row[1]))),
                dbtable=".".join(_quote(part, quote) for part in (space, name) if part),
                rows=rows.get((space, name)),
                retyped=dict(_list_retyped(columns, server)),
            )
        )
    return tables


def _list_retyped(columns: list[tuple[Any, ...]], server: Server) -> Iterator[tuple[str, tuple[str, str]]]:
    for name, type_name, _, precision, scale, code in columns:
        column = Column(name, type_name.lower(), int(precision or 0), int(scale or 0), code=int(code))
        kind = server.find_kind(column)
        if kind is not None and server.changes_type(column) and type_name.lower() != name_type(kind):
            yield name, (type_name, name_type(kind))


def _read_rows(results: Any, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows = []
    while results.next():
        rows.append(tuple(results.getString(name) for name in names))
    results.close()
    return rows


def _escape(name: str, metadata: Any) -> str:
    """Return a name as a pattern that matches only that name."""
    escape = str(metadata.getSearchStringEscape() or "")
    return "".join(f"{escape}{letter}" if letter in "%_" and escape else letter for letter in name)


def _quote(name: str, quote: str) -> str:
    return name if not quote or (name.isidentifier() and name.islower()) else f"{quote}{name}{quote}"


def _hide(url: str) -> str:
    """Return the URL without the parts that may hold a password."""
    return url.partition("?")[0].partition(";")[0]


def _explain(reason: str, server: Server) -> str:
    if "ClassNotFound" in reason or "No suitable driver" in reason:
        return (
            f"Give the database's JDBC driver, such as PYSPARK_SUBMIT_ARGS='--packages {server.package} pyspark-shell'."
        )
    return "Check the URL, the network path, the user and the password."
