"""JDBC reads: the driver's class, the session's time zone, and tasks that read a range of a column each."""

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DateType, DecimalType, NumericType, StructField, TimestampNTZType, TimestampType

from lakewriter.errors import SpecInvalidError
from lakewriter.source.column_names import quote_column
from lakewriter.source.postgresql_values import guard_source, is_postgresql, limit_bound, refuse_changed
from lakewriter.spec.specification import JdbcPartition, Read

# A driver that comes with --packages or --jars is not in the class loader that java.sql.DriverManager asks: without its
# class, Spark finds "No suitable driver". https://spark.apache.org/docs/4.1.1/sql-data-sources-jdbc.html
_DRIVERS: Final[Mapping[str, str]] = {
    r"jdbc:postgresql:": "org.postgresql.Driver",
    r"jdbc:mysql:": "com.mysql.cj.jdbc.Driver",
    r"jdbc:mariadb:": "org.mariadb.jdbc.Driver",
    r"jdbc:sqlserver:": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    r"jdbc:oracle:": "oracle.jdbc.OracleDriver",
    r"jdbc:derby://": "org.apache.derby.client.ClientAutoloadedDriver",
    r"jdbc:derby:": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
}

# The server converts TIMESTAMP to the session's zone, which the drivers take for Java's without asking for it.
# https://dev.mysql.com/doc/connector-j/en/connector-j-time-instants.html
_INIT_STATEMENTS: Final[Mapping[str, str]] = dict.fromkeys(
    (r"jdbc:mysql:", r"jdbc:mariadb:"), "SET time_zone = '+00:00'"
)

# The metadata of a column that JdbcUtils.getSchema found to be of java.sql.Types.TIME.
_TIME_OF_DAY: Final = "logical_time_type"

# What Spark takes a numeric without a precision for, whatever its values are.
_UNBOUNDED: Final = DecimalType(38, 18)
_MORE_DIGITS: Final = (
    " has more than 18 digits behind the point, which Spark would round. Round it in a query, or cast it to text there."
    # Spark puts a code of its own behind it.
    "\n"
)

_BOUNDED: Final = (NumericType, DateType, TimestampType, TimestampNTZType)


def is_jdbc(read: Read) -> bool:
    """Whether it reads a database."""
    return (read.format or "").lower() == "jdbc"


def load_from_database(
    session: SparkSession,
    options: Mapping[str, str],
    partition: JdbcPartition | None,
    native: Collection[str] | None = None,
    *,
    table: str,
) -> DataFrame:
    """The rows of a table or query; a time of day is that time on 1970-01-01, with its microseconds.

    Drivers give java.sql.Time, which ends at milliseconds: such columns are read as text. So are PostgreSQL's dates and
    numerics, which Java and Spark would change, but for ``native`` columns, which the database compares; None is all.
    Values of PostgreSQL's other columns that would be changed are refused, with the name of the ``table``.
    """
    options = add_bounds(session, options, partition) if partition is not None else dict(options)
    frame = session.read.format("jdbc").options(**options).load()
    as_declared = _find_option(options, "customschema") != ""
    texts = {} if as_declared else _from_texts(frame, options, native)
    source = None
    if is_postgresql(_find_option(options, "url")):
        others = [field for field in frame.schema if field.name not in texts]
        source = guard_source(_write_source(options), table, others, as_declared=as_declared)
    if source is not None:
        options = {**_drop_source(options), "dbtable": source}
    if texts:
        options = {**options, "customSchema": ", ".join(f"{quote_column(name)} STRING" for name in texts)}
    if source is None and not texts:
        return frame
    read = session.read.format("jdbc").options(**options).load()
    rows = read if source is None else refuse_changed(read)
    return rows.withColumns(texts)


def _from_texts(frame: DataFrame, options: Mapping[str, str], native: Collection[str] | None) -> dict[str, Column]:
    """The columns of a frame that are read as text, with their values from it."""
    is_exact = native is not None and is_postgresql(_find_option(options, "url"))
    compared = {name.lower() for name in [*(native or ()), _find_option(options, "partitioncolumn")]}
    return {
        field.name: value
        for field in frame.schema
        if (value := _from_text(field, exact=is_exact and field.name.lower() not in compared)) is not None
    }


def _from_text(field: StructField, *, exact: bool) -> Column | None:
    """The value of a column that is read as text; None for one that is not. ``exact`` allows no change of a value."""
    text = F.col(quote_column(field.name))
    if field.metadata.get(_TIME_OF_DAY):
        return F.concat(F.lit("1970-01-01 "), text).cast("timestamp")
    if exact and field.dataType == DateType():
        return text.cast("date")
    if exact and field.dataType == _UNBOUNDED:
        digits = F.length(F.regexp_extract(text, r"\.(\d*?)0*$", 1))
        what = F.concat(F.lit(f"VALUE_UNREPRESENTABLE: column {field.name!r}: "), text, F.lit(_MORE_DIGITS))
        return F.when(digits > _UNBOUNDED.scale, F.raise_error(what)).otherwise(text.cast(_UNBOUNDED))
    return None


def add_driver(options: Mapping[str, str]) -> dict[str, str]:
    """The options with the driver's class and a statement that sets the zone, where they name none themselves."""
    url, given = _find_option(options, "url"), {name.lower() for name in options}
    added = {"driver": _find_for_url(url, _DRIVERS), "sessionInitStatement": _find_for_url(url, _INIT_STATEMENTS)}
    return {**options, **{name: value for name, value in added.items() if value and name.lower() not in given}}


def add_bounds(session: SparkSession, options: Mapping[str, str], partition: JdbcPartition) -> dict[str, str]:
    """The options with the lowest and the highest value of the column, for which the database is asked.

    They cut the table into tasks and leave out no row: the first task reads nulls and what is below, the last one what
    is above. A table without rows, with nulls alone, or with a NaN or an infinity of PostgreSQL, is read by one task.
    """
    source, plain = _write_source(options), _drop_source(options)
    whole = {**plain, "dbtable": source}
    field = _find_field(list(session.read.format("jdbc").options(**whole).load().schema), partition.column)
    jvm = session._jvm
    assert jvm is not None
    name = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(_find_option(options, "url")).quoteIdentifier(field.name)
    lowest, highest = f"MIN({name})", f"MAX({name})"
    if is_postgresql(_find_option(options, "url")) and isinstance(field.dataType, DecimalType):
        lowest, highest = limit_bound(lowest), limit_bound(highest)
    bounds = f"(SELECT {lowest} AS lowest, {highest} AS highest FROM {source}) lakewriter_bounds"
    found = session.read.format("jdbc").options(**{**plain, "dbtable": bounds}).load().toDF("lowest", "highest")
    ends = [F.col("lowest"), F.col("highest")]
    if isinstance(field.dataType, NumericType):
        # Spark takes whole numbers of 64 bits only.
        ends = [F.floor(ends[0]).cast("bigint"), F.ceil(ends[1]).cast("bigint")]
    (row,) = found.select(*[end.cast("string") for end in ends]).collect()
    # A Row looks for names among its fields.
    if None in tuple(row):
        return whole
    return {
        **whole,
        "partitionColumn": field.name,
        "lowerBound": row[0],
        "upperBound": row[1],
        "numPartitions": str(partition.count),
    }


def _write_source(options: Mapping[str, str]) -> str:
    """The table or query, as it stands behind FROM."""
    return _find_option(options, "dbtable") or f"({_find_option(options, 'query')}) lakewriter_source"


def _drop_source(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if name.lower() not in ("dbtable", "query")}


def _find_option(options: Mapping[str, str], name: str) -> str:
    return next((value for key, value in options.items() if key.lower() == name), "")


def _find_for_url(url: str, values: Mapping[str, str]) -> str | None:
    return next((value for start, value in values.items() if re.match(start, url, re.IGNORECASE)), None)


def _find_field(fields: list[StructField], wanted: str) -> StructField:
    names = [field.name for field in fields]
    matches = [f for f in fields if f.name == wanted] or [f for f in fields if f.name.lower() == wanted.lower()]
    if not matches:
        nearest = difflib.get_close_matches(wanted, names, 1, 0.0)
        raise SpecInvalidError(
            f"read.partition names column {wanted!r}, which the source does not have.",
            remedy=f"The nearest is {nearest[0]!r}." if nearest else "",
        )
    if not isinstance(matches[0].dataType, _BOUNDED):
        raise SpecInvalidError(
            f"read.partition names column {wanted!r} of type {matches[0].dataType.simpleString()}, expected a number, "
            "a date or a timestamp.",
            remedy="Name another column.",
        )
    return matches[0]
