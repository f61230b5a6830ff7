"""Read the types of SQL Server."""

from collections.abc import Mapping
from typing import ClassVar

import pyarrow as pa

from lakewriter.source.databases.database_server import (
    DAY,
    STRING,
    TIMESTAMP,
    Column,
    Moment,
    QueryRunner,
    Reading,
    Server,
    as_text,
    is_plain_table,
    make_decimal,
    write_number,
)


class Sqlserver(Server):
    """SQL Server and Azure SQL. Style 121 of CONVERT is ISO's spelling."""

    name = "SQL Server"
    url = "jdbc:sqlserver:"
    driver = "com.microsoft.sqlserver.jdbc.SQLServerDriver"
    package = "com.microsoft.sqlserver:mssql-jdbc:12.10.0.jre11"
    quotes = ("[", "]")
    shares_moments = True
    sizes = (
        "SELECT s.name, t.name, SUM(p.rows) FROM sys.tables t JOIN sys.schemas s ON s.schema_id = t.schema_id JOIN "
        "sys.partitions p ON p.object_id = t.object_id AND p.index_id IN (0, 1) GROUP BY s.name, t.name"
    )
    native: ClassVar[Mapping[str, pa.DataType]] = {
        "bit": pa.bool_(),
        "tinyint": pa.int16(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "real": pa.float32(),
        "float": pa.float64(),
        **dict.fromkeys(("char", "varchar", "text", "nchar", "nvarchar", "ntext", "sysname"), STRING),
        # A rowversion is eight bytes, whose other name is timestamp.
        **dict.fromkeys(("binary", "varbinary", "image", "timestamp", "rowversion"), pa.binary()),
    }

    def read(self, column: Column, c: str) -> Reading | None:
        # The driver adds this to the type of an identity column.
        kind = column.type_name.removesuffix(" identity").removesuffix("()")
        if kind in self.native:
            return Reading(c, text=f"CONVERT(nvarchar(max), {c})")
        if kind in ("decimal", "numeric"):
            return Reading(c, make_decimal(column.precision, column.scale), f"CONVERT(varchar(41), {c})")
        clock = f"CONVERT(varchar(16), {c}, 121)"
        utc = f"CONVERT(varchar(33), CAST(SWITCHOFFSET({c}, '+00:00') AS datetime2(7)), 121)"
        readings = {
            # Style 2 keeps the four places of money.
            "money": as_text(f"CONVERT(varchar(41), {c}, 2)", pa.decimal128(19, 4)),
            "smallmoney": as_text(f"CONVERT(varchar(41), {c}, 2)", pa.decimal128(10, 4)),
            "date": as_text(f"CONVERT(varchar(10), {c}, 23)", pa.date32()),
            **dict.fromkeys(
                ("datetime", "datetime2", "smalldatetime"), as_text(f"CONVERT(varchar(33), {c}, 121)", TIMESTAMP)
            ),
            "datetimeoffset": as_text(utc, TIMESTAMP),
            "time": as_text(f"'{DAY} ' + {clock}", TIMESTAMP, clock),
            "uniqueidentifier": as_text(f"CONVERT(char(36), {c})"),
            "xml": as_text(f"CONVERT(nvarchar(max), {c})"),
            "json": as_text(f"CONVERT(nvarchar(max), {c})"),
        }
        return readings.get(kind)

    def begin_moment(self, connection: QueryRunner, source: str) -> Moment | None:
        """Return the moment of a database that nobody writes to, such as a snapshot of another.

        SQL Server's isolation SNAPSHOT begins in each connection by itself.
        """
        if not is_plain_table(source):
            return None
        ((still,),) = connection.read_rows(
            "SELECT CASE WHEN source_database_id IS NULL AND is_read_only = 0 THEN 0 ELSE 1 END FROM sys.databases "
            "WHERE database_id = DB_ID()"
        )
        return Moment() if still == "1" else None

    def write_sum(self, column: Column, order: str) -> str:
        # A sum of integers is an integer, which overflows.
        whole = column.type_name.split(" ")[0] in ("tinyint", "smallint", "int", "bigint")
        return f"SUM(CAST({order} AS decimal(38, 0)))" if whole else f"SUM({order})"

    def write_value(self, column: Column, text: str) -> str:
        kind, moment = column.type_name, f"'{text.replace(' ', 'T')}'"
        if kind in ("datetime", "smalldatetime"):
            return f"CAST(CAST({moment} AS datetime2(7)) AS {kind})"
        if kind in ("date", "datetime2", "time"):
            return f"CAST({moment} AS {kind})"
        if kind == "datetimeoffset":
            return f"CAST('{text.replace(' ', 'T')}+00:00' AS datetimeoffset(7))"
        number = write_number(text)
        return f"CAST({number} AS {kind})" if kind in ("real", "float") else number

    def explain_refusal(self, column: Column, c: str) -> str:
        texts = {
            "sql_variant": f"CAST({c} AS nvarchar(4000))",
            "hierarchyid": f"{c}.ToString()",
            "geometry": f"{c}.STAsText()",
            "geography": f"{c}.STAsText()",
        }
        text = texts.get(column.type_name, f"CONVERT(nvarchar(max), {c})")
        return f"Read it in a query as text, such as query: SELECT ..., {text} AS {c} FROM ...."
