"""Describe what a database server reads and writes: its URLs, its names, its literals, and each of its types."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Protocol

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.column_types import UTC_MICROS

MOST_DIGITS: Final = 38
STRING: Final = pa.string()
TIMESTAMP: Final = UTC_MICROS
DAY: Final = "1970-01-01"
"""The day of a time without one."""
EXPONENT: Final = re.compile("[eE]")
_NAME: Final = r"""(?:"[^"]+"|\[[^\]]+\]|`[^`]+`|[\w$#]+)"""


@dataclass(frozen=True)
class Column:
    """A column as the driver describes it; ``type_name`` is the server's own, in lower case.

    ``precision`` and ``scale`` are the driver's, 0 where there are none. ``dimensions`` are those of an array.
    """

    name: str
    type_name: str
    precision: int = 0
    scale: int = 0
    dimensions: int = 0
    code: int = 0
    """The driver's number of the type, one of java.sql.Types."""


@dataclass(frozen=True)
class Reading:
    """The way a column is read.

    sql   the expression that the server evaluates
    kind  the type to which its values are cast; None if Spark's type of the expression is the column's
    text  the server's text of a value, if ``sql`` is another, for columns declared as text
    """

    sql: str
    kind: pa.DataType | None = None
    text: str = ""


class Asked(Protocol):
    """A connection that answers a few questions."""

    def read_rows(self, sql: str, most: int = 0) -> list[tuple[str | None, ...]]:
        """Return the rows of a query, each value as its text."""

    def execute(self, sql: str) -> None:
        """Run a statement."""

    def begin_transaction(self) -> None:
        """Begin a transaction, which lasts until the connection is closed."""


@dataclass(frozen=True)
class Moment:
    """A state of the database that several connections see.

    session  a statement by which a session sees it, blank where it needs none
    suffix   what stands behind the name of a table that is read as it was
    """

    session: str = ""
    suffix: str = ""


class Server(ABC):
    """A kind of database server. Each column is read as it is, or as text that the server makes, or it is refused."""

    name: ClassVar[str]
    url: ClassVar[str]
    """The pattern that the URLs begin with."""
    driver: ClassVar[str] = ""
    """The class of the JDBC driver; blank where the user has to name it."""
    package: ClassVar[str] = ""
    """The driver's Maven coordinates."""
    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    session: ClassVar[str] = ""
    """A statement that gives a session the spelling of texts that ``read`` relies on."""
    sizes: ClassVar[str] = ""
    """A query of schema, name and estimated rows of the tables; blank where the server has no estimates."""
    shares_moments: ClassVar[bool] = False
    """True if several connections can see one moment of the database."""
    has_free_moments: ClassVar[bool] = False
    """True if a moment needs no right and no preparation, so that a read by one connection is compared in it too."""
    begins_by_lock: ClassVar[bool] = False
    """True if several connections see one moment only where the table is locked until all have begun."""

    @abstractmethod
    def read(self, column: Column, c: str) -> Reading | None:
        """Return how a column is read, of which ``c`` is the quoted name; None where it is refused."""

    @abstractmethod
    def write_value(self, column: Column, text: str) -> str:
        """Write the literal of a value of the column's own type, from a text as ``read`` makes them."""

    def explain_session(self, connection: Asked) -> str:
        """Return why a session of these options does not read values as they are; blank where it does."""
        del connection
        return ""

    def begin_moment(self, connection: Asked, source: str) -> Moment | None:
        """Return a moment that other connections can see as long as this one is open; None where the database has none.

        ``source`` is what stands behind FROM. The driver's error says that the user may not.
        """
        del connection, source
        return None

    def order(self, column: Column, c: str) -> str | None:
        """Return the expression by which the server orders a column's values as their written values are ordered.

        None where it has no such order: Spark compares the values then.
        """
        kind = self.find_kind(column)
        is_ordered = kind is not None and not (pa.types.is_nested(kind) or pa.types.is_boolean(kind))
        return c if is_ordered and kind not in (STRING, pa.binary()) and not self.is_time_of_day(column) else None

    def show_order(self, column: Column, value: str) -> str:
        """Return the expression of the text of a value of ``order``."""
        reading = self.read(column, value)
        return value if reading is None else reading.sql

    def write_sum(self, column: Column, order: str) -> str:
        """Return the expression of the text of the sum of a column of numbers, of which no type overflows."""
        del column
        return f"SUM({order})"

    def compare_bytes(self, text: str) -> str:
        """Return the expression by which a text equals itself alone."""
        return text

    def is_time_of_day(self, column: Column) -> bool:
        """Return whether the column holds times of day."""
        return column.type_name.startswith("time") and not column.type_name.startswith("timestamp")

    def find_kind(self, column: Column) -> pa.DataType | None:
        """Return the type of a column's values; None for a column that is refused."""
        reading = self.read(column, "c")
        if reading is None or reading.kind is not None:
            return None if reading is None else reading.kind
        return self.native.get(column.type_name, STRING)

    def changes_type(self, column: Column) -> bool:
        """Return whether the column's values are read as a type that is not the server's own."""
        reading = self.read(column, "c")
        kind = None if reading is None else reading.kind
        if kind is None or pt.is_date(kind):
            return False
        is_number = column.type_name.startswith(("numeric", "decimal", "number"))
        return not (is_number and pt.is_decimal(kind) and kind.precision == column.precision)

    native: ClassVar[Mapping[str, pa.DataType]] = {}
    """The types that are read as they are, by the server's name."""

    def explain_refusal(self, column: Column, c: str) -> str:
        """Return what a user can do about a column that is refused."""
        return f"Read it in a query as text, such as query: SELECT ..., CAST({c} AS VARCHAR(4000)) AS {c} FROM ...."

    def add_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options of a connection with what the server needs and they do not have."""
        return {**options, "sessionInitStatement": self.session} if self.session else dict(options)

    def quote(self, name: str) -> str:
        """Return a name as the server takes any."""
        first, last = self.quotes
        return f"{first}{name.replace(last, last * 2)}{last}"

    def write_text(self, text: str) -> str:
        """Return the literal of a text."""
        return "'" + text.replace("'", "''") + "'"


def make_decimal(precision: int, scale: int) -> pa.DataType:
    """Return a decimal with room for all digits before the point; the strict cast refuses values with others behind it.

    A negative scale means zeros before the point.
    """
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    lost = max(precision - MOST_DIGITS, 0)
    return pa.decimal128(precision - lost, max(scale - lost, 0))


def is_plain_table(source: str) -> bool:
    """Return whether what stands behind FROM is a table of this database: no query, no alias, no other database."""
    return re.fullmatch(rf"{_NAME}(?:\.{_NAME})?", source.strip()) is not None


def as_text(sql: str, kind: pa.DataType = STRING, text: str = "") -> Reading:
    """Return the reading of a text that is cast to ``kind``."""
    return Reading(sql, kind, text)


def write_number(text: str) -> str:
    """Return a number's text as a literal; ``ValueError`` for one that is none, such as NaN."""
    if not re.fullmatch(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?", text):
        raise ValueError(f"{text!r} is not a number")
    return text
