"""The source's own column names, where Spark would rename or refuse those that differ by case alone, or not at all."""

from collections.abc import Callable
from typing import Final, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakewriter.errors import SchemaIncompatibleError

_CASE: Final = "spark.sql.caseSensitive"
_TWICE: Final = "COLUMN_ALREADY_EXISTS"

Found = TypeVar("Found")


def quote_column(name: str) -> str:
    """A column's name as Spark's SQL takes any."""
    return f"`{name.replace('`', '``')}`"


def load_by_case(session: SparkSession, load: Callable[[], Found]) -> Found:
    """What ``load`` gives; where columns differ by case alone, the session goes by case from here on.

    ``SCHEMA_INCOMPATIBLE`` for columns whose names do not differ at all: Spark reads none of a file that has them.
    """
    try:
        return load()
    except AnalysisException as error:
        if _TWICE not in str(error):
            raise
    session.conf.set(_CASE, "true")
    try:
        return load()
    except AnalysisException as error:
        if _TWICE not in str(error):
            raise
        name = (error.getMessageParameters() or {}).get("columnName", "of one name")
        raise SchemaIncompatibleError(
            f"a file of the source has several columns {name}, which Spark does not read.",
            remedy="Rename them where the file is written. Parquet that is read without engine: spark, deleted or a "
            "cursor has them all.",
        ) from error
