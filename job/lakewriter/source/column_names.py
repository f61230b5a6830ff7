"""The source's own column names, where Spark would rename or refuse those that differ by case alone, or not at all."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

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
            remedy="Rename them where the file is written. A bare Parquet scan, without options, declared types, "
            "deleted or a cursor, reads them all.",
        ) from error


def apply_header_names(
    session: SparkSession, frame: DataFrame, options: Mapping[str, str], load: Callable[[Mapping[str, str]], DataFrame]
) -> DataFrame:
    """A CSV's columns under the names of its header; ``load`` reads the same files with other options.

    Spark puts the position behind a name that occurs twice: ``Name, name`` becomes ``Name0, name1``.
    """
    given = {name.lower(): value for name, value in options.items()}
    if given.get("header", "false").lower() != "true" or not _may_be_renamed(frame.columns):
        return frame
    as_rows = {name: value for name, value in options.items() if name.lower() not in ("header", "inferschema")}
    first = load(as_rows).head()
    header = list(first or ())[: len(frame.columns)]
    # Another file may have another header: then the names stay as Spark has them.
    if rename_as_spark(header, given.get("nullvalue", "")) != frame.columns[: len(header)]:
        return frame
    unnamed = (None, "", given.get("nullvalue"))
    names = [spark if own in unnamed else own for own, spark in zip(header, frame.columns, strict=False)]
    names += frame.columns[len(header) :]
    if len({name.lower() for name in names}) < len(set(names)):
        session.conf.set(_CASE, "true")
    return frame.toDF(*names)


def rename_as_spark(header: Sequence[str | None], null: str) -> list[str]:
    """The names that Spark gives to the columns of a header; see: CSVUtils.makeSafeHeader."""
    counts = Counter(name.lower() for name in header if name is not None)
    names = []
    for place, name in enumerate(header):
        if not name or name == null:
            names.append(f"_c{place}")
        else:
            names.append(f"{name}{place}" if counts[name.lower()] > 1 else name)
    return names


def _may_be_renamed(names: Sequence[str]) -> bool:
    """Whether two names become one without their own positions at their ends."""
    bare = Counter(name.removesuffix(str(i)).lower() for i, name in enumerate(names) if name.endswith(str(i)))
    return any(count > 1 for count in bare.values())
