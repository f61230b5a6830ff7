"""How each type of each database is read: the expression that the server evaluates, and the type of its values."""

import pytest
import sqlglot

from lakewriter.column_types import name_type
from lakewriter.source.databases.database_server import Column
from lakewriter.source.databases.servers import SERVERS

BY_NAME = {server.name: server for server in SERVERS if server.name != "Derby"} | {"Derby": SERVERS[6]}
DIALECTS = {"PostgreSQL": "postgres", "MySQL": "mysql", "SQL Server": "tsql", "Oracle": "oracle"}

IT = "c"
PG_TEXTS = ["interval", "json", "jsonb", "uuid", "inet", "money", "varbit", "int4range", "point", "mood", "tsvector"]
TYPES = [
    # database, type, precision, scale; the expression, the type it is cast to, None where Spark's is taken
    *[
        ("PostgreSQL", kind, 0, 0, IT, None)
        for kind in ("bool", "int2", "int4", "int8", "serial", "float4", "float8", "text", "bpchar", "bytea")
    ],
    *[("PostgreSQL", kind, 0, 0, "c::text", "string") for kind in PG_TEXTS],
    ("PostgreSQL", "numeric", 0, 0, "c::text", "decimal(38,18)"),
    ("PostgreSQL", "numeric", 10, 2, "c::text", "decimal(10,2)"),
    ("PostgreSQL", "numeric", 50, 40, "c::text", "decimal(38,28)"),
    ("PostgreSQL", "numeric", 5, 2046, "c::text", "decimal(7,0)"),
    ("PostgreSQL", "numeric", 3, 5, "c::text", "decimal(5,5)"),
    ("PostgreSQL", "oid", 0, 0, "c::text", "decimal(20,0)"),
    ("PostgreSQL", "bit", 1, 0, "c::text", "boolean"),
    ("PostgreSQL", "bit", 3, 0, "c::text", "string"),
    ("PostgreSQL", "date", 0, 0, "c::text", "date"),
    ("PostgreSQL", "timestamp", 0, 0, "c::text", "timestamp"),
    ("PostgreSQL", "timestamptz", 0, 0, "(c AT TIME ZONE 'UTC')::text", "timestamp"),
    ("PostgreSQL", "time", 0, 0, "'1970-01-01 ' || c::text", "timestamp"),
    ("PostgreSQL", "timetz", 0, 0, "c::text", "string"),
    ("PostgreSQL", "_int4", 0, 0, "to_json(c::text[])::text", "array<int>"),
    ("PostgreSQL", "_numeric", 9, 2, "to_json(c::text[])::text", "array<decimal(9,2)>"),
    ("PostgreSQL", "_bpchar", 0, 0, "to_json(c)::text", "array<string>"),
    ("PostgreSQL", "_time", 0, 0, "to_json(c::text[])::text", "array<string>"),
    ("PostgreSQL", "_bytea", 0, 0, IT, None),
    *[
        ("MySQL", kind, 0, 0, IT, None)
        for kind in ("tinyint", "smallint", "mediumint", "int", "bigint", "double", "varchar", "text", "blob", "binary")
    ],
    *[("MySQL", kind, 0, 0, "CAST(c AS CHAR)", "string") for kind in ("char", "json", "uuid")],
    ("MySQL", "tinyint unsigned", 0, 0, "CAST(c + 0 AS CHAR)", "smallint"),
    ("MySQL", "int unsigned", 0, 0, "CAST(c + 0 AS CHAR)", "bigint"),
    ("MySQL", "integer unsigned", 0, 0, "CAST(c + 0 AS CHAR)", "bigint"),
    ("MySQL", "bigint unsigned", 0, 0, "CAST(c + 0 AS CHAR)", "decimal(20,0)"),
    ("MySQL", "boolean", 1, 0, "CAST(c + 0 AS CHAR)", "boolean"),
    ("MySQL", "bit", 1, 0, "CAST(c + 0 AS CHAR)", "boolean"),
    ("MySQL", "bit", 63, 0, "CAST(c + 0 AS CHAR)", "bigint"),
    ("MySQL", "bit", 64, 0, "CAST(c + 0 AS CHAR)", "decimal(20,0)"),
    ("MySQL", "decimal", 10, 2, IT, "decimal(10,2)"),
    ("MySQL", "decimal unsigned", 10, 2, IT, "decimal(10,2)"),
    ("MySQL", "decimal", 65, 30, "CAST(c AS CHAR)", "decimal(38,3)"),
    ("MySQL", "float", 12, 31, "c * 1e0", "float"),
    ("MySQL", "year", 4, 0, "CAST(c + 0 AS CHAR)", "int"),
    ("MySQL", "date", 10, 0, "CAST(c AS CHAR)", "date"),
    ("MySQL", "datetime", 26, 6, "CAST(c AS CHAR)", "timestamp"),
    ("MySQL", "timestamp", 26, 6, "CAST(c AS CHAR)", "timestamp"),
    ("MySQL", "time", 17, 6, "CONCAT('1970-01-01 ', CAST(c AS CHAR))", "timestamp"),
    ("MySQL", "geometry", 0, 0, IT, None),
    *[
        ("SQL Server", kind, 0, 0, IT, None)
        for kind in ("bit", "tinyint", "int identity", "bigint", "real", "float", "nchar", "nvarchar", "timestamp")
    ],
    ("SQL Server", "decimal", 38, 10, IT, "decimal(38,10)"),
    ("SQL Server", "numeric() identity", 18, 0, IT, "decimal(18,0)"),
    ("SQL Server", "money", 19, 4, "CONVERT(varchar(41), c, 2)", "decimal(19,4)"),
    ("SQL Server", "date", 0, 0, "CONVERT(varchar(10), c, 23)", "date"),
    ("SQL Server", "datetime", 0, 0, "CONVERT(varchar(33), c, 121)", "timestamp"),
    ("SQL Server", "datetime2", 27, 7, "CONVERT(varchar(33), c, 121)", "timestamp"),
    (
        "SQL Server",
        "datetimeoffset",
        34,
        7,
        "CONVERT(varchar(33), CAST(SWITCHOFFSET(c, '+00:00') AS datetime2(7)), 121)",
        "timestamp",
    ),
    ("SQL Server", "time", 16, 7, "'1970-01-01 ' + CONVERT(varchar(16), c, 121)", "timestamp"),
    ("SQL Server", "uniqueidentifier", 36, 0, "CONVERT(char(36), c)", "string"),
    ("SQL Server", "xml", 0, 0, "CONVERT(nvarchar(max), c)", "string"),
    *[
        ("Oracle", kind, 0, 0, IT, None)
        for kind in ("char", "nchar", "varchar2", "clob", "raw", "blob", "binary_float", "binary_double")
    ],
    ("Oracle", "number", 0, -127, "TO_CHAR(c, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')", "decimal(38,10)"),
    ("Oracle", "number", 10, 2, "TO_CHAR(c, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')", "decimal(10,2)"),
    ("Oracle", "number", 5, -2, "TO_CHAR(c, 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''')", "decimal(7,0)"),
    ("Oracle", "date", 7, 0, "TRIM(TO_CHAR(c, 'SYYYY-MM-DD HH24:MI:SS'))", "timestamp"),
    ("Oracle", "timestamp(6)", 0, 6, "TRIM(TO_CHAR(c, 'SYYYY-MM-DD HH24:MI:SS.FF9'))", "timestamp"),
    (
        "Oracle",
        "timestamp(9) with time zone",
        0,
        9,
        "TRIM(TO_CHAR(SYS_EXTRACT_UTC(c), 'SYYYY-MM-DD HH24:MI:SS.FF9'))",
        "timestamp",
    ),
    (
        "Oracle",
        "timestamp(6) with local time zone",
        0,
        6,
        "TRIM(TO_CHAR(SYS_EXTRACT_UTC(c), 'SYYYY-MM-DD HH24:MI:SS.FF9'))",
        "timestamp",
    ),
    ("Oracle", "intervalds", 0, 0, "TO_CHAR(c)", "string"),
    ("Oracle", "rowid", 0, 0, "ROWIDTOCHAR(c)", "string"),
    ("Derby", "date", 0, 0, "CAST(c AS VARCHAR(254))", "date"),
    ("Derby", "decimal", 9, 3, IT, "decimal(9,3)"),
    ("Derby", "time", 0, 0, "'1970-01-01 ' || CAST(c AS VARCHAR(254))", "timestamp"),
    ("H2", "timestamp with time zone", 0, 0, "CAST(c AT TIME ZONE 'UTC' AS VARCHAR)", "timestamp"),
    ("H2", "interval year", 0, 0, "CAST(c AS VARCHAR)", "string"),
]


@pytest.mark.parametrize(("database", "kind", "precision", "scale", "sql", "read_as"), TYPES)
def test_reading_of_a_type(database, kind, precision, scale, sql, read_as):
    column = Column("c", kind, precision, scale)
    reading = BY_NAME[database].read(column, "c")
    assert reading is not None
    assert (reading.sql, reading.kind and name_type(reading.kind)) == (sql, read_as)
    if database in DIALECTS:
        for text in (reading.sql, reading.text):
            sqlglot.parse_one(f"SELECT {text or 'c'} AS c0 FROM t", dialect=DIALECTS[database])


REFUSED = [
    ("SQL Server", "sql_variant", "CAST(c AS nvarchar(4000)) AS c"),
    ("SQL Server", "geography", "c.STAsText() AS c"),
    ("SQL Server", "hierarchyid", "c.ToString() AS c"),
    ("Oracle", "bfile", "the file's content as BLOB from c"),
    ("Oracle", "long", "TO_LOB(c)"),
    ("Oracle", "sys.xmltype", "XMLSERIALIZE(CONTENT c AS CLOB) AS c"),
    ("Derby", "xml", "XMLSERIALIZE(c AS CLOB) AS c"),
    ("MySQL", "null", "CAST(c AS CHAR) AS c"),
]


@pytest.mark.parametrize(("database", "kind", "remedy"), REFUSED)
def test_type_that_is_refused_and_the_sql_that_helps(database, kind, remedy):
    server, column = BY_NAME[database], Column("c", kind)
    assert server.read(column, "c") is None
    assert remedy in server.explain_refusal(column, "c")


LITERALS = [
    # database, the column's type, the text of a value: its literal
    ("PostgreSQL", "int8", "42", "CAST('42' AS int8)"),
    ("PostgreSQL", "bigserial", "42", "CAST('42' AS int8)"),
    ("PostgreSQL", "numeric", "NaN", "CAST('NaN' AS numeric)"),
    ("PostgreSQL", "timestamp", "2024-01-15 10:30:00", "CAST('2024-01-15 10:30:00' AS timestamp)"),
    ("PostgreSQL", "timestamptz", "2024-01-15 10:30:00", "CAST('2024-01-15 10:30:00+00' AS timestamptz)"),
    ("PostgreSQL", "timestamptz", "infinity", "CAST('infinity' AS timestamptz)"),
    ("PostgreSQL", "text", "o'hara", "'o''hara'"),
    ("MySQL", "bigint", "42", "42"),
    ("MySQL", "double", "0.1", "0.1e0"),
    ("MySQL", "double", "1E-7", "1E-7"),
    ("MySQL", "date", "2024-01-15", "DATE'2024-01-15'"),
    ("MySQL", "datetime", "2024-01-15 10:30:00", "TIMESTAMP'2024-01-15 10:30:00'"),
    ("MySQL", "varchar", "o'hara", "CAST(CONVERT('o''hara' USING utf8mb4) AS BINARY)"),
    ("MySQL", "varchar", "a\\b", "CAST(CONVERT(CONVERT(X'615c62' USING utf8mb4) USING utf8mb4) AS BINARY)"),
    ("SQL Server", "bigint", "42", "42"),
    (
        "SQL Server",
        "datetime",
        "2024-01-15 10:30:00.003",
        "CAST(CAST('2024-01-15T10:30:00.003' AS datetime2(7)) AS datetime)",
    ),
    ("SQL Server", "datetime2", "2024-01-15 10:30:00", "CAST('2024-01-15T10:30:00' AS datetime2)"),
    ("SQL Server", "datetimeoffset", "2024-01-15 10:30:00", "CAST('2024-01-15T10:30:00+00:00' AS datetimeoffset(7))"),
    ("Oracle", "number", "1.5", "1.5"),
    ("Oracle", "date", "2024-01-15 10:30:00", "CAST(TIMESTAMP '2024-01-15 10:30:00' AS DATE)"),
    ("Oracle", "timestamp(6)", "2024-01-15 10:30:00", "TIMESTAMP '2024-01-15 10:30:00'"),
    ("Oracle", "timestamp(6) with time zone", "2024-01-15 10:30:00", "TIMESTAMP '2024-01-15 10:30:00 +00:00'"),
    ("Oracle", "binary_double", "0.1", "TO_BINARY_DOUBLE('0.1')"),
    ("Derby", "timestamp", "2024-01-15 10:30:00", "TIMESTAMP('2024-01-15 10:30:00')"),
    ("H2", "date", "2024-01-15", "DATE '2024-01-15'"),
]


@pytest.mark.parametrize(("database", "kind", "text", "literal"), LITERALS)
def test_literal_of_a_value(database, kind, text, literal):
    assert BY_NAME[database].write_value(Column("c", kind), text) == literal
    if database in DIALECTS:
        sqlglot.parse_one(f"SELECT 1 AS c0 FROM t WHERE c > {literal}", dialect=DIALECTS[database])


ORDERS = [
    # database, the column's type: the expression that orders its values as bytes and numbers are ordered
    ("PostgreSQL", "timestamptz", "c"),
    ("PostgreSQL", "int4", "c"),
    ("PostgreSQL", "text", '(c::text) COLLATE "C"'),
    ("PostgreSQL", "uuid", '(c::text) COLLATE "C"'),
    ("PostgreSQL", "bpchar", '(concat(c)) COLLATE "C"'),
    ("PostgreSQL", "time", None),
    ("PostgreSQL", "timetz", '(c::text) COLLATE "C"'),
    ("PostgreSQL", "bool", None),
    ("PostgreSQL", "_int4", None),
    ("MySQL", "datetime", "c"),
    ("MySQL", "varchar", "CAST(CONVERT(c USING utf8mb4) AS BINARY)"),
    ("MySQL", "char", "CAST(CONVERT(c USING utf8mb4) AS BINARY)"),
    ("MySQL", "float", "c * 1e0"),
    ("MySQL", "blob", None),
    ("MySQL", "time", None),
    ("SQL Server", "datetime2", "c"),
    ("SQL Server", "nvarchar", None),
    ("SQL Server", "timestamp", None),
    ("Oracle", "date", "c"),
    ("Oracle", "varchar2", None),
    ("Derby", "varchar", None),
    ("Derby", "timestamp", "c"),
]


@pytest.mark.parametrize(("database", "kind", "order"), ORDERS)
def test_order_of_a_cursor(database, kind, order):
    assert BY_NAME[database].order(Column("c", kind), "c") == order
