"""Mark bad rows of a DataFrame in a column: the offset of each row, and the reason if the row is bad."""

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from lakewriter.source.bad_rows import BAD, FIELDS
from lakewriter.source.column_names import quote_column
from lakewriter.spec.table_spec import TableSpec

IS_BAD: Final = f"`{BAD}`.reason IS NOT NULL"
"""SQL for a row that is to be set aside."""


def mark(**values: Column | str) -> Column:
    """Return the mark of a row, which is good without a ``reason``."""
    types = {name: "bigint" if name == "offset" else "string" for name in FIELDS}
    columns = {name: F.lit(values.get(name)) for name in FIELDS}
    return F.struct(*(columns[name].cast(kind).alias(name) for name, kind in types.items()))


def add_marks(frame: DataFrame) -> DataFrame:
    """Return the frame with a mark behind its columns; all rows are good."""
    names = frame.columns
    return frame.select("*", mark().alias(BAD)).toDF(*names, BAD)


def is_marked(frame: DataFrame) -> bool:
    """Return True if the frame's last column marks bad rows."""
    return frame.columns[-1:] == [BAD]


def add_misfits(marks: Column, misfits: Sequence[Column]) -> Column:
    """Return the marks with the misfits of each row that is good so far: the parts of its first misfit, and the texts
    of all if there are several.

    All columns are named in one expression: a mark made of the mark before it would double with every column.
    """
    present = F.filter(F.array(*misfits), lambda misfit: misfit.isNotNull())
    first = F.get(present, F.lit(0))
    parts = {part: first.getField(part) for part in ("column", "value", "reason")}
    texts = F.transform(present, lambda misfit: F.struct(misfit.getField("column"), misfit.getField("value")))
    several = F.when(F.size(present) > 1, F.to_json(F.map_from_entries(texts)))
    position = {part: marks.getField(part) for part in ("file", "offset")}
    is_misfit = first.isNotNull() & marks.getField("reason").isNull()
    return F.when(is_misfit, mark(**position, **parts, row=several)).otherwise(marks)


def add_fault(marks: Column, value: Column, reason: str) -> Column:
    """Return the marks with the reason against each row that is good so far and has a ``value``, which is at fault."""
    position = {part: marks.getField(part) for part in ("file", "offset")}
    is_bad = value.isNotNull() & marks.getField("reason").isNull()
    return F.when(is_bad, mark(**position, value=value, reason=F.lit(reason), row=value)).otherwise(marks)


def filter_rows(source: DataFrame, table: TableSpec, condition: str) -> DataFrame:
    """Return the rows above the cursor, and the bad rows.

    A bad row whose cursor can be read is subject to the condition too, so that the quarantine gets it once.
    """
    if not is_marked(source):
        return source.where(condition)
    once = table.quarantine is not None and table.cursor is not None
    bad = f"({IS_BAD} AND {quote_column(str(table.cursor))} IS NULL)" if once else IS_BAD
    return source.where(f"({condition}) OR {bad}")
