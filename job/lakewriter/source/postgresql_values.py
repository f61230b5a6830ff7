"""Refuse values of PostgreSQL that its driver or Spark would change: infinities, days of October 1582, long numbers.

Once read, such a value cannot be told from others, so the server tells them: it adds a column, which is null or
names the column and the value. The source's own columns stay as they are, so predicates on them use its indexes.
"""

import re
from collections.abc import Iterable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

_REFUSED: Final = "__lakewriter_refused"
# The server and Spark put codes of their own behind a message: the line ends here.
_REMEDY: Final = " Leave the row out in a query, or cast the column to text there.\n"
_TIME_CHANGES: Final = (
    ", which Spark would change: it has no infinity, and Java's calendar has no days from 1582-10-05 to 1582-10-14."
    + _REMEDY
)
_NUMBER_CHANGES: Final = ", which Spark would change: it reads the column as {}." + _REMEDY
# In two parts: an error of Spark's that shows the statement must not be taken for one that the statement raises.
_CODE: Final = "'VALUE_UNREPRESENTABLE'"
_LONGEST: Final = 200
"""Characters of a value in a message: an array may have millions."""

_OID: Final = DecimalType(20, 0)
_TIMES: Final = (DateType, TimestampType, TimestampNTZType)
# The calendar of java.sql.Date and java.sql.Timestamp goes from 1582-10-04 to 1582-10-15, and takes days between them
# for days ten later. https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/GregorianCalendar.html
_FIRST: Final = "1582-10-05"
_AFTER: Final = "1582-10-15"
_CHANGED_TIME: Final = "'^(-?infinity$|1582-10-(0[5-9]|1[0-4])(?!.*BC))'"


def is_postgresql(url: str) -> bool:
    """Whether the URL is one of PostgreSQL's driver."""
    return re.match("jdbc:postgresql:", url, re.IGNORECASE) is not None


def guard_source(source: str, table: str, fields: Iterable[StructField], *, as_declared: bool) -> str | None:
    """SQL for the source with a column for ``refuse_changed``: null, or which value of the row would be changed.

    None where no field has a type of which values change. With ``as_declared`` the fields have types that a user gave,
    so that the database's own may be others.
    """
    numbers, times = [], []
    for field in fields:
        name, kind = _quote_identifier(field.name), field.dataType
        while isinstance(kind, ArrayType):
            kind = kind.elementType
        is_array = isinstance(field.dataType, ArrayType)
        # In Spark arrays of times of day have the type of arrays of timestamps, and an oid that of a numeric(20,0). The
        # database cannot compare those as it compares these, but their texts can be compared.
        as_text = is_array or as_declared or kind == _OID
        condition = _describe_changed("item" if is_array else name, kind, as_text=as_text)
        if condition is None:
            continue
        if is_array:
            condition = f"EXISTS (SELECT 1 FROM unnest({name}) AS items (item) WHERE {condition})"
        value = f"left({name}::text, {_LONGEST})"
        message = f"{_CODE} || {_quote_literal(f': table {table!r}, column {field.name!r}: ')} || {value}"
        if isinstance(kind, DecimalType):
            # The driver fails at NaN with a message of its own, so the server has to end the read: by a cast that fails
            # with the text.
            changes = _quote_literal(_NUMBER_CHANGES.format(kind.simpleString()))
            message = f"CAST(CAST({message} || {changes} AS integer) AS text)"
            numbers.append(f"WHEN {condition} THEN {message}")
        else:
            times.append(f"WHEN {condition} THEN {message}")
    if not numbers and not times:
        return None
    column = f'CASE {" ".join([*numbers, *times])} END AS "{_REFUSED}"'
    return f"(SELECT *, {column} FROM {source}) lakewriter_guarded"


def refuse_changed(frame: DataFrame) -> DataFrame:
    """The rows of a guarded source without the column that it adds; a row where that is not null raises what it says.

    Spark evaluates a condition that raises itself, for every row that the database returns, so it reads the column even
    if a query uses none.
    """
    refused = F.col(_REFUSED)
    ends = F.raise_error(F.concat(refused, F.lit(_TIME_CHANGES))).cast("boolean")
    return frame.where(F.when(refused.isNull(), F.lit(True)).otherwise(ends)).drop(_REFUSED)


def limit_bound(bound: str) -> str:
    """SQL for the lowest or highest value of a numeric: null for NaN, infinity and what is too long for Spark."""
    return f"CASE WHEN abs({bound}) < 1e20 THEN {bound} END"


def _describe_changed(value: str, kind: DataType, *, as_text: bool) -> str | None:
    """SQL for a value that would be changed; None for a type of which none is."""
    if isinstance(kind, DecimalType):
        # NaN is above all numbers.
        number = f"{value}::text::numeric" if as_text else value
        return f"({number} <> trunc({number}, {kind.scale}) OR abs({number}) >= 1e{kind.precision - kind.scale})"
    if not isinstance(kind, _TIMES):
        return None
    if as_text:
        return f"{value}::text ~ {_CHANGED_TIME}"
    return f"({value} IN ('infinity', '-infinity') OR {value} >= '{_FIRST}' AND {value} < '{_AFTER}')"


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
