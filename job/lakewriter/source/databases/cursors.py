"""Select the rows of a load by its cursor, on the server: above the last value, up to a bound that is fixed before.

A state stores the keys of the rows that have a load's highest value. The next load reads the rows that later get that
very value, and reads no row twice.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.strict_cast import cast_text
from lakewriter.errors import SpecInvalidError
from lakewriter.receipt import Cursor
from lakewriter.source.databases.database_connection import Connection
from lakewriter.source.databases.database_server import STRING, Column, Server
from lakewriter.source.databases.parallel_ranges import find_column
from lakewriter.spec.table_spec import Between, Bound, TableSpec

MOST_KEYS: Final = 1000
"""The limit for rows of one value whose keys a state stores and a statement names."""


class CursorCondition(str):
    """Spark's SQL for the rows above a cursor, with the ``cursor`` itself, from which a server makes its condition."""

    __slots__ = ("cursor",)

    cursor: Cursor

    def __new__(cls, sql: str, cursor: Cursor) -> "CursorCondition":
        """Return the text with its cursor."""
        made = super().__new__(cls, sql)
        made.cursor = cursor
        return made


class RangeCondition(str):
    """Spark's SQL for the rows of a range that come again; a server makes its condition from the ``between`` itself."""

    __slots__ = ("between",)

    between: Between

    def __new__(cls, between: Between) -> "RangeCondition":
        """Return the range's SQL with the range."""
        made = super().__new__(cls, between.sql)
        made.between = between
        return made


@dataclass(frozen=True)
class Edge:
    """The highest cursor value of the rows that a load reads, as the server writes it, and the keys of its rows.

    ``keys`` are None without a primary key, and for more rows than ``MOST_KEYS``.
    """

    text: str
    kind: pa.DataType
    keys: tuple[str, ...] | None
    is_text_of_value: bool = False
    """True if the server orders values of another type, of which the text is read."""

    def mark(self, cursor: Cursor) -> Cursor:
        """Return the cursor with the keys of its rows, if its value is this edge's.

        ``cursor`` is the highest of the written values. If these are texts of values that the server orders, it is the
        highest text alone, and the edge is the cursor.
        """
        if self.is_text_of_value:
            return Cursor(type=cursor.type, text=self.text, edge=self.keys or ())
        value = cast_text(pa.array([self.text]), self.kind).values[0].as_py()
        if self.keys is None or value is None or _read(cursor, self.kind) != value:
            return cursor
        return Cursor(type=cursor.type, text=cursor.text, edge=self.keys)


@dataclass(frozen=True)
class Bounds:
    """The condition of the rows that a load reads, blank for all, and their upper edge.

    ``is_fixed`` is true if the server has compared the cursor.
    """

    condition: str = ""
    edge: Edge | None = None
    notes: tuple[str, ...] = ()
    is_fixed: bool = False


@dataclass(frozen=True)
class CursorQuery:
    """A table's cursor as its server compares it: ``order`` is the expression, ``source`` follows FROM."""

    server: Server
    column: Column
    order: str
    kind: pa.DataType
    source: str
    prepared: str
    keys: Sequence[Column]
    lag: str | None
    is_text_of_value: bool = False

    @classmethod
    def plan(
        cls,
        server: Server,
        columns: Sequence[Column],
        source: str,
        prepared: str,
        table: TableSpec,
        declared: pa.DataType | None = None,
    ) -> "CursorQuery | str":
        """Return the query, or the reason why Spark has to compare the values.

        ``declared`` is the type that the file gives to the cursor. Raise ``SPEC_INVALID`` if the values lose their
        order as they are read, and the server has none either.
        """
        name = str(table.cursor)
        column = find_column(columns, name)
        if column is None:
            return f"the source has no column {name!r}"
        keys = [key_column for key in table.primary_key if (key_column := find_column(columns, key)) is not None]
        is_whole = len(keys) == len(table.primary_key)
        rest = (source, prepared, keys if is_whole else (), table.cursor_lag)
        is_read_as_text = server.find_kind(column) == STRING and declared in (None, STRING)
        if is_read_as_text and column.type_name in server.own_orders:
            return cls(server, column, server.quote(column.name), STRING, *rest, is_text_of_value=True)
        require_order(server, column, declared, table.id, "cursor")
        order, kind = server.order(column, server.quote(column.name)), server.find_kind(column)
        if order is None or kind is None:
            return f"{server.name} does not order {column.type_name} as the values are ordered"
        if declared is not None and not declared == kind == STRING:
            return "its type is declared"
        return cls(server, column, order, kind, *rest)

    def fix(self, connection: Connection, since: Cursor | None, *, in_snapshot: bool) -> Bounds | str:
        """Ask for the highest value. Return the condition, or the reason why Spark has to compare the values."""
        if since is not None and not _is_of(since, self.kind):
            return f"the cursor has type {since.type}, and the column {self.kind}"
        lower = "" if since is None else self.write_lower(since)
        top = self.ask_highest(connection, lower)
        if top is None:
            # A text that only the server orders stays the cursor.
            stays = since is not None and self.is_text_of_value
            edge = Edge(since.text, self.kind, since.edge, is_text_of_value=True) if since and stays else None
            return Bounds("1 = 0" if lower else "", edge, self._list_notes(), is_fixed=True)
        try:
            value = self._write(top)
        except ValueError as error:
            return f"its highest value is none that a statement can name ({error})"
        keys = None if self.lag is not None else self.ask_keys(connection, top)
        upper = f"{self.order} <= {value}"
        if keys is not None and not in_snapshot:
            # The next load reads the rows that get this value during the load.
            upper = f"({self.order} < {value} OR ({self.order} = {value} AND {self._match(keys)}))"
        edge = Edge(top, self.kind, keys, self.is_text_of_value)
        if not lower:
            # No later load reads a row whose cursor is null.
            every = f"({upper} OR {self.server.quote(self.column.name)} IS NULL)"
            return Bounds(every, edge, self._list_notes(), is_fixed=True)
        return Bounds(f"{lower} AND {upper}", edge, self._list_notes(), is_fixed=True)

    def fix_range(self, between: Between) -> Bounds | str:
        """Return the condition of the rows of a range, or the reason why Spark has to compare the values."""
        if pt.is_string(self.kind) != (between.kind == "string"):
            return f"the range is of type {between.kind}, and the column {self.kind}"
        try:
            first, end = (self._write(_spell_bound(bound, self.kind)) for bound in (between.first, between.end))
        except ValueError as error:
            return str(error)
        return Bounds(f"{self.order} >= {first} AND {self.order} < {end}", None, self._list_notes(), is_fixed=True)

    def write_lower(self, since: Cursor) -> str:
        """Return the condition of the rows that no earlier load has read."""
        text = spell(since, self.kind, self.lag)
        value = self._write(text)
        if since.edge and self.lag is None and self.keys:
            has_key = self._match(since.edge)
            return f"({self.order} > {value} OR ({self.order} = {value} AND CASE WHEN {has_key} THEN 1 ELSE 0 END = 0))"
        return f"{self.order} > {value}"

    def ask_highest(self, connection: Connection, lower: str) -> str | None:
        """Return the text of the present highest value."""
        highest = self.server.quote("highest")
        if self.is_text_of_value:
            # Not every release has MAX for these types. PostgreSQL sorts nulls first.
            rows = f"{self.order} IS NOT NULL{f' AND {lower}' if lower else ''}"
            inner = (
                f"SELECT {self.order} AS {highest} FROM {self.source} WHERE {rows} ORDER BY {self.order} DESC LIMIT 1"
            )
            reading = self.server.read(self.column, highest)
            shown = highest if reading is None else reading.sql
            tops = connection.read_rows(f"{self.prepared} SELECT {shown} FROM ({inner}) lakewriter_highest")
            return tops[0][0] if tops else None
        where = f" WHERE {lower}" if lower else ""
        inner = f"SELECT MAX({self.order}) AS {highest} FROM {self.source}{where}"
        shown = self.server.show_order(self.column, highest)
        ((top,),) = connection.read_rows(f"{self.prepared} SELECT {shown} FROM ({inner}) lakewriter_highest")
        return top

    def ask_keys(self, connection: Connection, top: str) -> tuple[str, ...] | None:
        """Return the keys of the rows that have the highest value; None if there are too many, or no key."""
        if not self.keys:
            return None
        texts = ", ".join(self._show(key) for key in self.keys)
        value = self._write(top)
        asked = f"{self.prepared} SELECT {texts} FROM {self.source} WHERE {self.order} = {value}"
        rows = connection.read_rows(asked, MOST_KEYS + 1)
        if len(rows) > MOST_KEYS or any(None in row for row in rows):
            return None
        return tuple(sorted(json.dumps(row, ensure_ascii=False) for row in rows))

    def _write(self, text: str) -> str:
        # A server takes a text that it compares with a value for one of the value's type.
        return self.server.write_text(text) if self.is_text_of_value else self.server.write_value(self.column, text)

    def _show(self, key: Column) -> str:
        reading = self.server.read(key, self.server.quote(key.name))
        return self.server.quote(key.name) if reading is None else reading.text or reading.sql

    def _match(self, keys: Sequence[str]) -> str:
        """Return the condition of the rows that have one of the keys."""
        if not keys:
            return "1 = 0"
        alternatives = []
        for key in keys:
            pairs = zip(map(self._show, self.keys), map(self.server.write_text, json.loads(key)), strict=True)
            parts = [f"{self.server.compare_bytes(a)} = {self.server.compare_bytes(b)}" for a, b in pairs]
            alternatives.append(" AND ".join(parts))
        return f"({' OR '.join(f'({alternative})' for alternative in alternatives)})"

    def _list_notes(self) -> tuple[str, ...]:
        if self.order == self.server.quote(self.column.name):
            return ()
        return (f"the database compares cursor {self.column.name!r} by {self.order}, for which it may have no index",)


def require_order(server: Server, column: Column, declared: pa.DataType | None, table: str, key: str) -> None:
    """Raise ``SPEC_INVALID`` if a column is read as text, and its values have another order than their texts.

    ``key`` is the key of the table that names the column, and ``declared`` the type that the file gives to it.
    """
    if declared not in (None, STRING):
        return
    is_made_text = declared == STRING and not server.is_text(column) and server.find_kind(column) != STRING
    if not (is_made_text or server.loses_order(column)):
        return
    name = server.quote(column.name)
    remedy = "Name a column that is a number, a date, a timestamp or a text of the server's own."
    if is_made_text:
        remedy = "Leave its type out of columns: and customSchema."
    elif ordered := server.write_ordered(column, name):
        made = server.quote(f"{column.name}_order")
        remedy = (
            f"Read it in a query, and name its place in the order: query: SELECT ..., {ordered} AS {made} FROM ...."
        )
    raise SpecInvalidError(
        f"table {table!r}: {key} names column {column.name!r} of {server.name}'s type {column.type_name}, which is "
        "read as text: its texts do not compare as its values do, as '10' comes before '9'.",
        remedy=remedy,
    )


def spell(since: Cursor, kind: pa.DataType, lag: str | None = None) -> str:
    """Return a cursor's value, less the lag, as the server writes values of its type."""
    value = _read(since, kind)
    if lag is not None:
        value = _subtract(value, lag)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _spell_bound(bound: Bound, kind: pa.DataType) -> str:
    """Return the bound of a range as the server writes values of a type; raise ``ValueError`` if it is none."""
    moment = bound.moment
    if moment is not None and pt.is_date(kind) and moment.time() != time():
        raise ValueError("the range has times within a day, and the column dates")
    if moment is not None and (pt.is_timestamp(kind) or pt.is_date(kind)):
        return str(moment.date()) if pt.is_date(kind) else str(moment.strftime("%Y-%m-%d %H:%M:%S.%f"))
    value = cast_text(pa.array([bound.text]), kind).values[0].as_py()
    if value is None:
        raise ValueError(f"expected a value of type {kind}, got {bound.text!r}")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _read(cursor: Cursor, kind: pa.DataType) -> object:
    if pt.is_float32(kind):
        # The nearest of 32 bits, with the digits that 64 bits give it.
        return struct.unpack("f", struct.pack("f", float(cursor.text)))[0]
    return cast_text(pa.array([cursor.text]), kind).values[0].as_py()


def _subtract(value: object, lag: str) -> object:
    number, _, unit = lag.partition(" ")
    if not unit:
        return _subtract_number(value, number)
    step = timedelta(**{f"{unit.removesuffix('s')}s": int(number)})
    try:
        if isinstance(value, datetime):
            return value - step
        if isinstance(value, date):
            # Of a time within a day, the rows of that whole day are read again.
            return value - timedelta(days=-((-step) // timedelta(days=1)))
    except OverflowError:
        return date.min if not isinstance(value, datetime) else datetime.min
    return value


def _subtract_number(value: object, number: str) -> object:
    if isinstance(value, int):
        # Above 7.5 are the whole numbers above 7.
        return int((value - Decimal(number)).to_integral_value("ROUND_FLOOR"))
    if isinstance(value, Decimal):
        return value - Decimal(number)
    return value - float(number) if isinstance(value, float) else value


def _is_of(cursor: Cursor, kind: pa.DataType) -> bool:
    """Return True if a cursor's values can be compared with those of a type."""

    def is_number(name: str) -> bool:
        return name.startswith(("int", "decimal", "float", "double"))

    return cursor.type == str(kind) or (is_number(cursor.type) and is_number(str(kind)))
