"""Read the types of MySQL and MariaDB.

Their drivers make true of any ``tinyint(1)``, a date of a year, and do not distinguish an ENUM from a CHAR. These types
come as texts that the server makes.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.source.databases.database_server import (
    DAY,
    EXPONENT,
    MOST_DIGITS,
    STRING,
    TIMESTAMP,
    Column,
    QueryRunner,
    Reading,
    Server,
    as_text,
    make_decimal,
    write_number,
)

_UNSIGNED: Final = " unsigned"
_LONG_BITS: Final = 63
_BINARY: Final = (
    *("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector"),
    # Their bytes are an SRID and WKB.
    *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
    *("geometrycollection", "geomcollection"),
)
_LIKE_CHAR: Final = ("char", "enum", "set", "uuid", "inet4", "inet6")
"""The names that drivers give to a CHAR and to the types that they take for one."""
_UNKNOWN: Final = "char, enum or set"
_UTC: Final = "time_zone='+00:00'"


class Mysql(Server):
    """MySQL with the driver Connector/J."""

    name = "MySQL"
    url = "jdbc:mysql:"
    driver = "com.mysql.cj.jdbc.Driver"
    package = "com.mysql:mysql-connector-j:9.3.0"
    quotes = ("`", "`")
    begins_by_lock = True
    sizes = "SELECT '', table_name, table_rows FROM information_schema.tables WHERE table_schema = DATABASE()"
    native: ClassVar[Mapping[str, pa.DataType]] = {
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "mediumint": pa.int32(),
        "int": pa.int32(),
        "integer": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        **dict.fromkeys(("varchar", "tinytext", "text", "mediumtext", "longtext"), STRING),
        **dict.fromkeys(_BINARY, pa.binary()),
    }

    def read(self, column: Column, c: str) -> Reading | None:
        kind, text = column.type_name, f"CAST({c} AS CHAR)"
        number = f"CAST({c} + 0 AS CHAR)"
        if kind in self.native:
            return Reading(c, text=text)
        if kind.startswith("decimal"):
            decimal = make_decimal(column.precision, column.scale)
            return as_text(text, decimal) if column.precision > MOST_DIGITS else Reading(c, decimal, text)
        if kind.endswith(_UNSIGNED) and kind.removesuffix(_UNSIGNED) in self.native:
            return as_text(number, _UNSIGNED_KINDS[kind.removesuffix(_UNSIGNED)])
        # CHAR is an ENUM's and a SET's too. What a client gets of a FLOAT has six digits, of a DOUBLE all.
        readings = {
            "float": Reading(f"{c} * 1e0", pa.float32()),
            "float unsigned": Reading(f"{c} * 1e0", pa.float32()),
            "double unsigned": Reading(c, pa.float64()),
            "boolean": as_text(number, pa.bool_()),
            "bit": as_text(number, _choose_bits(column.precision)),
            "year": as_text(number, pa.int32()),
            "date": as_text(text, pa.date32()),
            "datetime": as_text(text, TIMESTAMP),
            "timestamp": as_text(text, TIMESTAMP),
            "time": as_text(f"CONCAT('{DAY} ', {text})", TIMESTAMP, text),
            **dict.fromkeys(("char", "enum", "set", "json", "uuid", "inet4", "inet6"), as_text(text)),
        }
        return readings.get(kind)

    own_orders = frozenset(("uuid", "inet4", "inet6"))

    def ask_type(self, connection: QueryRunner, column: Column, source: str) -> Column:
        if column.type_name not in _LIKE_CHAR:
            return column
        schema, table, name = map(self.write_text, column.origin)
        rows = connection.read_rows(
            "SELECT DATA_TYPE FROM information_schema.COLUMNS "
            f"WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {table} AND COLUMN_NAME = {name}"
        )
        return replace(column, type_name=str(rows[0][0]).lower() if rows else _UNKNOWN)

    def is_text(self, column: Column) -> bool:
        return super().is_text(column) or column.type_name == "char"

    def loses_order(self, column: Column) -> bool:
        return column.type_name == _UNKNOWN or super().loses_order(column)

    def write_ordered(self, column: Column, c: str) -> str:
        # A SET's and an ENUM's numbers are those by which the server sorts them.
        if column.type_name == "inet4":
            return f"INET_ATON({c})"
        if column.type_name == "json":
            return f"CAST(JSON_VALUE({c}, '$.updated_at') AS DATETIME(6))"
        return f"{c} + 0" if column.type_name in ("enum", "set") else f"CAST({c} AS CHAR)"

    def explain_session(self, connection: QueryRunner) -> str:
        ((zone,),) = connection.read_rows("SELECT @@session.time_zone")
        if str(zone).upper() in ("+00:00", "UTC"):
            return ""
        return f"its sessions have time_zone={zone!r}, in which a TIMESTAMP is not an instant; expected {_UTC}"

    def order(self, column: Column, c: str) -> str | None:
        kind = self.find_kind(column)
        if kind is not None and pt.is_string(kind):
            return self.compare_bytes(c)
        if column.type_name.startswith("float"):
            return f"{c} * 1e0"
        return f"{c} + 0" if column.type_name == "bit" and kind != pa.bool_() else super().order(column, c)

    def show_order(self, column: Column, value: str) -> str:
        kind = self.find_kind(column)
        if kind is not None and pt.is_string(kind):
            return f"CONVERT({value} USING utf8mb4)"
        return value if column.type_name.startswith("float") else super().show_order(column, value)

    def write_sum(self, column: Column, order: str) -> str:
        return f"CAST(SUM({order}) AS CHAR)"

    def compare_bytes(self, text: str) -> str:
        return f"CAST(CONVERT({text} USING utf8mb4) AS BINARY)"

    def write_value(self, column: Column, text: str) -> str:
        kind = self.find_kind(column)
        if kind is not None and pt.is_string(kind):
            return self.compare_bytes(self.write_text(text))
        if kind is not None and pt.is_date(kind):
            return f"DATE{self.write_text(text)}"
        if kind is not None and pt.is_timestamp(kind):
            return f"TIMESTAMP{self.write_text(text)}"
        number = write_number(text)
        is_exponential = kind is not None and pt.is_floating(kind) and not EXPONENT.search(number)
        return f"{number}e0" if is_exponential else number

    def write_text(self, text: str) -> str:
        # A backslash begins an escape unless the session says otherwise; digits of hexadecimal are the same in any.
        if "\\" in text:
            return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"
        return super().write_text(text)

    def explain_refusal(self, column: Column, c: str) -> str:
        return f"Read it in a query as text, such as query: SELECT ..., CAST({c} AS CHAR) AS {c} FROM ...."

    def add_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options with the session in UTC, to which the server converts a TIMESTAMP.

        https://dev.mysql.com/doc/connector-j/en/connector-j-time-instants.html
        """
        names = {name.lower(): name for name in options}
        url = options.get(names.get("url", ""), "")
        added = {"useCursorFetch": "true"} if "usecursorfetch" not in names and "useCursorFetch" not in url else {}
        if "sessionvariables" in names:
            variables = options[names["sessionvariables"]]
            return {**options, **added, names["sessionvariables"]: f"{_UTC},{variables}"}
        if "sessionVariables=" not in url:
            return {**options, **added, "sessionVariables": _UTC}
        if "sessioninitstatement" not in names:
            added["sessionInitStatement"] = f"SET {_UTC}"
        return {**options, **added}


class Mariadb(Mysql):
    """MariaDB with its own driver. Spark has a dialect only for MySQL's URLs, which the driver accepts too."""

    name = "MariaDB"
    url = "jdbc:mariadb:"
    driver = "org.mariadb.jdbc.Driver"
    package = "org.mariadb.jdbc:mariadb-java-client:3.5.3"

    def add_options(self, options: Mapping[str, str]) -> dict[str, str]:
        added = super().add_options(options)
        # A driver of MariaDB's streams results by the fetch size alone.
        added.pop("useCursorFetch", None)
        name = next(name for name in added if name.lower() == "url")
        url = re.sub("(?i)^jdbc:mariadb:", "jdbc:mysql:", added[name])
        joint = "&" if "?" in url else "?"
        return {**added, name: f"{url}{joint}permitMysqlScheme=true"}


_UNSIGNED_KINDS: Final = {
    "tinyint": pa.int16(),
    "smallint": pa.int32(),
    "mediumint": pa.int32(),
    "int": pa.int64(),
    "integer": pa.int64(),
    "bigint": pa.decimal128(20, 0),
    "double": pa.float64(),
}


def _choose_bits(bits: int) -> pa.DataType:
    if bits <= 1:
        return pa.bool_()
    return pa.int64() if bits <= _LONG_BITS else pa.decimal128(20, 0)
