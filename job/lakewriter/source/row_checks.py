"""Evaluate a table's expectations in SQL: Spark writes each row's results into a column behind the row's own."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

from lakewriter.errors import SpecInvalidError
from lakewriter.source.bad_rows import CHECKS
from lakewriter.source.spark_failures import SPARK_ERRORS, find_useful_line
from lakewriter.spec.expectations import Condition
from lakewriter.spec.table_spec import TableSpec


def add_checks(source: DataFrame, table: TableSpec) -> DataFrame:
    """Add a column with the results of the table's conditions. Null counts as true, as in a SQL check."""
    if not table.conditions:
        return source
    columns = [
        _make_column(source, table, condition).alias(f"c{index}") for index, condition in enumerate(table.conditions)
    ]
    return source.select("*", F.struct(*columns).alias(CHECKS))


def _make_column(source: DataFrame, table: TableSpec, condition: Condition) -> Column:
    try:
        kind = source.select(F.expr(condition.sql)).schema[0].dataType
    except SPARK_ERRORS as error:
        raise _make_error(table, condition, find_useful_line(str(error))) from error
    if not isinstance(kind, BooleanType):
        raise _make_error(table, condition, f"it gives {kind.simpleString()}, expected boolean")
    return F.coalesce(F.expr(condition.sql), F.lit(True))


def _make_error(table: TableSpec, condition: Condition, reason: str) -> SpecInvalidError:
    return SpecInvalidError(
        f"expectation {condition.name!r} of {table.id!r} is {condition.sql!r}, which cannot be used: {reason}",
        remedy='Give a boolean SQL expression over the source\'s columns, such as "arr_time >= dep_time".',
    )


def find_repeated(frame: DataFrame, columns: list[str], shown: int) -> tuple[int, list[tuple[object, ...]]]:
    """Return how many rows have the values of other rows in these columns, and the first such values with their counts.

    Rows with a null among the values do not count.
    """
    is_whole = F.lit(True)
    for column in columns:
        is_whole &= F.col(column).isNotNull()
    groups = frame.where(is_whole).groupBy(*columns).agg(F.count("*").alias("n")).where("n > 1")
    [total] = groups.agg(F.sum("n")).collect()
    if not total[0]:
        return 0, []
    return int(total[0]), [tuple(row) for row in groups.orderBy(F.desc("n"), *columns).limit(shown).collect()]
