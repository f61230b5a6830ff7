"""Define the description of a database server: its URLs, its names, its literals, and each of its types."""

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
"""The day of a time without a date."""
EXPONENT: Final = re.compile("[eE]")
_NAME: Final = r"""(?:"[^"]+"|\[[^\]]+\]|`[^`]+`|[\w$#]+)"""


@dataclass(frozen=True)
class Column:
    """A column as the driver describes it; ``type_name`` is the server's, in lower case.

    ``precision`` and ``scale`` are the driver's, 0 if there are none. ``dimensions`` are those of an array.
    """

    name: str
    type_name: str
    precision: int = 0
    scale: int = 0
    dimensions: int = 0
    code: int = 0
    """The driver's number of the type, one of java.sql.Types."""
    origin: tuple[str, str, str] = ("", "", "")
    """The schema, table and column that it is read from; blank for an expression."""


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


class QueryRunner(Protocol):
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

    session  a statement by which a session sees it, blank if none is needed
    suffix   the clause behind a table's name that reads the table at this moment
    """

    session: str = ""
    suffix: str = ""


class Server(ABC):
    """A kind of database server. A column is read unchanged, read as text that the server makes, or refused."""

    name: ClassVar[str]
    url: ClassVar[str]
    """The pattern that the URLs begin with."""
    driver: ClassVar[str] = ""
    """The class of the JDBC driver; blank if the user has to name it."""
    package: ClassVar[str] = ""
    """The driver's Maven coordinates."""
    quotes: ClassVar[tuple[str, str]] = ('"', '"')
    session: ClassVar[str] = ""
    """A statement that sets the spelling of texts on which ``read`` relies."""
    sizes: ClassVar[str] = ""
    """A query of schema, name and estimated rows of the tables; blank if the server has no estimates."""
    shares_moments: ClassVar[bool] = False
    """True if several connections can see one moment of the database."""
    has_free_moments: ClassVar[bool] = False
    """True if a moment needs no right and no preparation, so that the read of a single connection uses one too."""
    begins_by_lock: ClassVar[bool] = False
    """True if several connections see one moment only if the table is locked until all have begun."""

    @abstractmethod
    def read(self, column: Column, c: str) -> Reading | None:
        """Return the reading of a column with the quoted name ``c``; None if it is refused."""

    @abstractmethod
    def write_value(self, column: Column, text: str) -> str:
        """Return the literal of a value of the column's type, from a text as ``read`` makes it."""

    def explain_session(self, connection: QueryRunner) -> str:
        """Return the reason why a session of these options changes values as they are read; blank if it does not."""
        del connection
        return ""

    def begin_moment(self, connection: QueryRunner, source: str) -> Moment | None:
        """Return a moment that other connections can see while this one is open; None if the database has none.

        ``source`` follows FROM. The driver raises its error if the user has no right to it.
        """
        del connection, source
        return None

    def ask_type(self, connection: QueryRunner, column: Column, source: str) -> Column:
        """Return the column under the type that the server's catalog names, if the driver does not name it.

        ``source`` follows FROM.
        """
        del connection, source
        return column

    def is_text(self, column: Column) -> bool:
        """Return True if the values are texts on the server too, not only as they are read."""
        return column.type_name in self.native and bool(self.native[column.type_name] == STRING)

    def loses_order(self, column: Column) -> bool:
        """Return True if the values are read as texts, which compare in another order than the values do."""
        is_made_text = self.find_kind(column) == STRING and not self.is_text(column)
        return is_made_text and column.type_name not in self.sorted_texts

    sorted_texts: ClassVar[frozenset[str]] = frozenset()
    """The types that are read as text, and whose texts sort as the values do."""
    own_orders: ClassVar[frozenset[str]] = frozenset()
    """The types that are read as text, and that the server compares with ``>``, ``=`` and ORDER BY."""

    def order(self, column: Column, c: str) -> str | None:
        """Return the expression by which the server orders a column's values as their written values are ordered.

        Return None if it has no such order: Spark then compares the values.
        """
        kind = self.find_kind(column)
        is_ordered = kind is not None and not (pa.types.is_nested(kind) or pa.types.is_boolean(kind))
        return c if is_ordered and kind not in (STRING, pa.binary()) and not self.is_time_of_day(column) else None

    def show_order(self, column: Column, value: str) -> str:
        """Return the expression of the text of a value of ``order``."""
        reading = self.read(column, value)
        return value if reading is None else reading.sql

    def write_sum(self, column: Column, order: str) -> str:
        """Return the expression of the text of a sum of numbers, which does not overflow."""
        del column
        return f"SUM({order})"

    def compare_bytes(self, text: str) -> str:
        """Return the expression by which a text is equal only to itself, byte by byte."""
        return text

    def is_time_of_day(self, column: Column) -> bool:
        """Return True if the column holds times of day."""
        return column.type_name.startswith("time") and not column.type_name.startswith("timestamp")

    def find_kind(self, column: Column) -> pa.DataType | None:
        """Return the type of a column's values; None for a column that is refused."""
        reading = self.read(column, "c")
        if reading is None or reading.kind is not None:
            return None if reading is None else reading.kind
        return self.native.get(column.type_name, STRING)

    def changes_type(self, column: Column) -> bool:
        """Return True if the column's values are read as a type that is not the server's."""
        reading = self.read(column, "c")
        kind = None if reading is None else reading.kind
        if kind is None or pt.is_date(kind):
            return False
        is_number = column.type_name.startswith(("numeric", "decimal", "number"))
        return not (is_number and pt.is_decimal(kind) and kind.precision == column.precision)

    native: ClassVar[Mapping[str, pa.DataType]] = {}
    """The types that are read unchanged, by the server's name."""

    def write_ordered(self, column: Column, c: str) -> str:
        """Return an expression of a value's place in the order, for a query; blank if there is none to propose."""
        del column, c
        return ""

    def explain_refusal(self, column: Column, c: str) -> str:
        """Return the remedy for a column that is refused."""
        return f"Read it in a query as text, such as query: SELECT ..., CAST({c} AS VARCHAR(4000)) AS {c} FROM ...."

    def add_options(self, options: Mapping[str, str]) -> dict[str, str]:
        """Return the options of a connection with those that the server needs besides."""
        return {**options, "sessionInitStatement": self.session} if self.session else dict(options)

    def quote(self, name: str) -> str:
        """Return a name in the server's quotes."""
        first, last = self.quotes
        return f"{first}{name.replace(last, last * 2)}{last}"

    def write_text(self, text: str) -> str:
        """Return the literal of a text."""
        return "'" + text.replace("'", "''") + "'"


def make_decimal(precision: int, scale: int) -> pa.DataType:
    """Return a decimal with room for all digits before the point. The strict cast refuses values with more behind it.

    A negative scale means zeros before the point.
    """
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    lost = max(precision - MOST_DIGITS, 0)
    return pa.decimal128(precision - lost, max(scale - lost, 0))


def is_plain_table(source: str) -> bool:
    """Return True if the text behind FROM is a table of this database: no query, no alias, no other database."""
    return re.fullmatch(rf"{_NAME}(?:\.{_NAME})?", source.strip()) is not None


def as_text(sql: str, kind: pa.DataType = STRING, text: str = "") -> Reading:
    """Return the reading of a text that is cast to ``kind``."""
    return Reading(sql, kind, text)


def write_number(text: str) -> str:
    """Return a number's text as a literal. Raise ``ValueError`` for a text that is not a literal, such as NaN."""
    if not re.fullmatch(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?", text):
        raise ValueError(f"{text!r} is not a number")
    return text
