"""Read the types of PostgreSQL.

Spark's reader and Java's calendar change infinities, days of October 1582, years BC and long numbers. These types come
as texts that the server makes in ISO's spelling.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.column_types import make_list
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
    make_decimal,
)

_TEXTS: Final = ("text", "varchar", "bpchar")
# PostgreSQL 15 keeps a negative scale in 11 bits, which the driver takes for a positive one.
_MOST_SCALE: Final = 1000
_SCALE_BITS: Final = 2048
_OTHER_TEXTS: Final = ("name", "char", "citext")
_ENUM: Final = "enum"
"""The name here for the types that users make of labels, each of which has a name of its own."""
_ORDERED: Final = {
    "timetz": f"('{DAY} ' || {{c}})::timestamptz",
    "xid8": "{c}::text::numeric(20, 0)",
    "xid": "{c}::text::bigint",
    "pg_lsn": "{c} - '0/0'::pg_lsn",
    "money": "{c}::numeric(19, 2)",
    "interval": "EXTRACT(EPOCH FROM {c})",
    _ENUM: "array_position(enum_range({c}), {c})",
    **dict.fromkeys(("json", "jsonb"), "({c}->>'updated_at')::timestamptz"),
}
_REPEATABLE: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_UNBOUNDED: Final = pa.decimal128(38, 18)


class Postgresql(Server):
    """PostgreSQL, and servers of its protocol."""

    name = "PostgreSQL"
    url = "jdbc:postgresql:"
    driver = "org.postgresql.Driver"
    package = "org.postgresql:postgresql:42.7.7"
    shares_moments = True
    has_free_moments = True
    sizes = (
        "SELECT n.nspname, c.relname, c.reltuples::bigint FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'm')"
    )
    # The driver sets DateStyle and extra_float_digits itself.
    session = "SET TimeZone = 'UTC'; SET IntervalStyle = 'postgres'; SET bytea_output = 'hex'"
    native: ClassVar[Mapping[str, pa.DataType]] = {
        "bool": pa.bool_(),
        "int2": pa.int16(),
        "int4": pa.int32(),
        "int8": pa.int64(),
        "smallserial": pa.int16(),
        "serial": pa.int32(),
        "bigserial": pa.int64(),
        "float4": pa.float32(),
        "float8": pa.float64(),
        "bytea": pa.binary(),
        **dict.fromkeys(_TEXTS, STRING),
    }

    sorted_texts = frozenset(("uuid", "macaddr", "macaddr8", "bit"))
    own_orders = sorted_texts | {"xid8", "pg_lsn", "money", "interval", "inet", "cidr", "varbit", _ENUM}

    def read(self, column: Column, c: str) -> Reading:
        kind = column.type_name
        if kind.startswith("_"):
            return self._read_array(column, c)
        if kind in self.native:
            # The text of char(n) would lose its blanks.
            return Reading(c, text=f"concat({c})" if kind == "bpchar" else f"{c}::text")
        text = f"{c}::text"
        readings = {
            "date": as_text(text, pa.date32()),
            "timestamp": as_text(text, TIMESTAMP),
            "timestamptz": as_text(f"({c} AT TIME ZONE 'UTC')::text", TIMESTAMP),
            "time": as_text(f"'{DAY} ' || {text}", TIMESTAMP, text),
            "numeric": as_text(text, self._make_numeric(column)),
            "oid": as_text(text, pa.decimal128(20, 0)),
            "bit": as_text(text, pa.bool_() if column.precision == 1 else STRING),
        }
        return readings.get(kind, as_text(text))

    def _make_numeric(self, column: Column) -> pa.DataType:
        if not column.precision:
            return _UNBOUNDED
        scale = column.scale - _SCALE_BITS if column.scale > _MOST_SCALE else column.scale
        return make_decimal(column.precision, scale)

    def _read_array(self, column: Column, c: str) -> Reading:
        """Read an array as JSON of its elements' texts. Arrays of bytes are read as the driver returns them."""
        element = Column(column.name, column.type_name[1:], column.precision, column.scale)
        if element.type_name == "bytea":
            return Reading(c, text=f"{c}::text")
        kind = self.find_kind(element) or STRING
        if self.is_time_of_day(element):
            kind = STRING
        for _ in range(max(column.dimensions, 1)):
            kind = make_list(kind)
        items = c if element.type_name in _TEXTS else f"{c}::text[]"
        return as_text(f"to_json({items})::text", kind, f"to_json({c})::text")

    def begin_moment(self, connection: QueryRunner, source: str) -> Moment:
        # The connection is idle while the tasks read.
        connection.execute("SET idle_in_transaction_session_timeout = 0")
        connection.begin_transaction()
        connection.execute(f"{_REPEATABLE}, READ ONLY")
        ((name,),) = connection.read_rows("SELECT pg_export_snapshot()")
        return Moment(session=f"{_REPEATABLE}; SET TRANSACTION SNAPSHOT '{name}'")

    def ask_type(self, connection: QueryRunner, column: Column, source: str) -> Column:
        if not self.loses_order(column) or column.type_name in self.own_orders:
            return column
        rows = connection.read_rows(
            "SELECT typtype::text FROM pg_type "
            f"WHERE oid = pg_typeof((SELECT {self.quote(column.name)} FROM {source} LIMIT 0))::oid"
        )
        return replace(column, type_name=_ENUM) if rows == [("e",)] else column

    def is_text(self, column: Column) -> bool:
        # The driver quotes the name of a type in another schema.
        name = column.type_name.rpartition(".")[2].strip('"')
        return super().is_text(column) or name in _OTHER_TEXTS

    def write_ordered(self, column: Column, c: str) -> str:
        if column.type_name.endswith("range"):
            return f"lower({c})"
        return _ORDERED.get(column.type_name, "").format(c=c)

    def order(self, column: Column, c: str) -> str | None:
        if column.type_name in ("bytea", "bool", "bit") or column.type_name.startswith("_"):
            return None
        kind = self.find_kind(column)
        if kind is not None and pt.is_string(kind):
            return f'({self.read(column, c).text or f"{c}::text"}) COLLATE "C"'
        return super().order(column, c)

    def show_order(self, column: Column, value: str) -> str:
        kind = self.find_kind(column)
        return value if kind is not None and pt.is_string(kind) else super().show_order(column, value)

    def write_sum(self, column: Column, order: str) -> str:
        # A sum of real has six digits.
        return f"SUM({order}::float8)" if column.type_name == "float4" else f"SUM({order})::text"

    def compare_bytes(self, text: str) -> str:
        return f'{text} COLLATE "C"'

    def write_value(self, column: Column, text: str) -> str:
        kind = self.find_kind(column)
        if kind is not None and pt.is_string(kind):
            return self.write_text(text)
        name = {"serial": "int4", "bigserial": "int8", "smallserial": "int2"}.get(column.type_name, column.type_name)
        zone = "+00" if column.type_name == "timestamptz" and text[:1].isdigit() else ""
        return f"CAST({self.write_text(text + zone)} AS {name})"

    def explain_refusal(self, column: Column, c: str) -> str:
        return f"Read it in a query as text, such as query: SELECT ..., {c}::text AS {c} FROM ...."

    def add_options(self, options: Mapping[str, str]) -> dict[str, str]:
        statement = next((value for name, value in options.items() if name.lower() == "sessioninitstatement"), "")
        rest = {name: value for name, value in options.items() if name.lower() != "sessioninitstatement"}
        return {**rest, "sessionInitStatement": f"{self.session}; {statement}" if statement else self.session}
