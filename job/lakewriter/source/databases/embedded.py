"""Read the types of Derby and H2, which are written in Java, and those of other databases as Spark reads them."""

from collections.abc import Mapping
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.source.databases.database_server import (
    DAY,
    STRING,
    TIMESTAMP,
    Column,
    Reading,
    Server,
    as_text,
    make_decimal,
    write_number,
)

_NUMBERS: Final = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double": pa.float64(),
}
# The constants of java.sql.Types.
_BY_CODE: Final[Mapping[int, pa.DataType]] = {
    **dict.fromkeys((-6, 5, 4, -5), pa.int64()),
    **dict.fromkeys((2, 3), pa.decimal128(38, 18)),
    **dict.fromkeys((6, 7, 8), pa.float64()),
    91: pa.date32(),
    93: TIMESTAMP,
}

_TEXT_CODES: Final = (1, 12, -1, -15, -9, -16, 2005, 2011)


class Derby(Server):
    """Apache Derby, in the process of Spark."""

    name = "Derby"
    url = "jdbc:derby:"
    driver = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
    native: ClassVar[Mapping[str, pa.DataType]] = {
        **_NUMBERS,
        **dict.fromkeys(("char", "varchar", "long varchar", "clob"), STRING),
        **dict.fromkeys(
            ("char () for bit data", "varchar () for bit data", "long varchar for bit data", "blob"), pa.binary()
        ),
    }

    def read(self, column: Column, c: str) -> Reading | None:
        kind, text = column.type_name, f"CAST({c} AS VARCHAR(254))"
        if kind in self.native:
            return Reading(c)
        if kind in ("decimal", "numeric"):
            return Reading(c, make_decimal(column.precision, column.scale))
        readings = {
            "date": as_text(text, pa.date32()),
            "timestamp": as_text(text, TIMESTAMP),
            "time": as_text(f"'{DAY} ' || {text}", TIMESTAMP, text),
        }
        return readings.get(kind)

    def write_sum(self, column: Column, order: str) -> str:
        # A sum of integers is an integer, which overflows.
        whole = column.type_name in ("smallint", "integer", "bigint")
        return f"SUM(CAST({order} AS DECIMAL(31, 0)))" if whole else f"SUM({order})"

    def write_value(self, column: Column, text: str) -> str:
        kind = self.find_kind(column)
        if kind is not None and (pt.is_date(kind) or pt.is_timestamp(kind)):
            return f"{column.type_name.upper()}('{text}')"
        return write_number(text)

    def explain_refusal(self, column: Column, c: str) -> str:
        return f"Read it in a query as text, such as query: SELECT ..., XMLSERIALIZE({c} AS CLOB) AS {c} FROM ...."


class DerbyClient(Derby):
    """Apache Derby in a process of its own."""

    url = "jdbc:derby://"
    driver = "org.apache.derby.client.ClientAutoloadedDriver"


class H2(Server):
    """H2."""

    name = "H2"
    url = "jdbc:h2:"
    driver = "org.h2.Driver"
    package = "com.h2database:h2:2.3.232"
    native: ClassVar[Mapping[str, pa.DataType]] = {
        **_NUMBERS,
        "tinyint": pa.int16(),
        "double precision": pa.float64(),
        **dict.fromkeys(
            ("character", "character varying", "varchar", "character large object", "varchar_ignorecase"), STRING
        ),
        **dict.fromkeys(("binary", "binary varying", "binary large object"), pa.binary()),
    }

    def read(self, column: Column, c: str) -> Reading | None:
        kind, text = column.type_name, f"CAST({c} AS VARCHAR)"
        if kind in self.native:
            return Reading(c, text=text)
        if kind in ("numeric", "decimal"):
            return as_text(text, make_decimal(column.precision, column.scale))
        readings = {
            "date": as_text(text, pa.date32()),
            "timestamp": as_text(text, TIMESTAMP),
            "timestamp with time zone": as_text(f"CAST({c} AT TIME ZONE 'UTC' AS VARCHAR)", TIMESTAMP),
            "time": as_text(f"'{DAY} ' || {text}", TIMESTAMP, text),
            **dict.fromkeys(("time with time zone", "uuid", "json", "enum", "decfloat", "geometry"), as_text(text)),
        }
        return as_text(text) if kind.startswith("interval") else readings.get(kind)

    def write_value(self, column: Column, text: str) -> str:
        kind = self.find_kind(column)
        if kind is not None and (pt.is_date(kind) or pt.is_timestamp(kind)):
            is_zoned = column.type_name.endswith("zone")
            return f"{column.type_name.upper()} '{text}{'+00' if is_zoned else ''}'"
        return write_number(text)


class Other(Server):
    """A database without rules of its own: its values are those that its driver and Spark return.

    ``quote`` is the character that quotes its names: the user states it, and a probe confirms it.
    """

    name = "another database"
    url = "jdbc:"

    def __init__(self, quote: str) -> None:
        self._quote = quote

    def read(self, column: Column, c: str) -> Reading:
        return Reading(c)

    def find_kind(self, column: Column) -> pa.DataType:
        return _BY_CODE.get(column.code, STRING)

    def write_value(self, column: Column, text: str) -> str:
        kind = self.find_kind(column)
        if pt.is_date(kind) or pt.is_timestamp(kind):
            return f"{'DATE' if pt.is_date(kind) else 'TIMESTAMP'} '{text}'"
        return write_number(text)

    def order(self, column: Column, c: str) -> str | None:
        return None

    def is_text(self, column: Column) -> bool:
        return column.code in _TEXT_CODES

    def quote(self, name: str) -> str:
        closing = "]" if self._quote == "[" else self._quote
        return f"{self._quote}{name.replace(closing, closing * 2)}{closing}"
