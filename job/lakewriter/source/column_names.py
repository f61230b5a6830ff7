"""Read columns under the source's names, where Spark would rename or refuse names that differ by case alone or not at
all.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakewriter.errors import SchemaIncompatibleError

_CASE: Final = "spark.sql.caseSensitive"
_TWICE: Final = "COLUMN_ALREADY_EXISTS"

Result = TypeVar("Result")


def quote_column(name: str) -> str:
    """Return a column's name in backticks, as Spark's SQL takes any name."""
    return f"`{name.replace('`', '``')}`"


def load_by_case(session: SparkSession, load: Callable[[], Result]) -> Result:
    """Return the result of ``load``. If columns differ by case alone, make the session case-sensitive from here on.

    Raise ``SCHEMA_INCOMPATIBLE`` for columns of one name: Spark reads no column of such a file.
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
