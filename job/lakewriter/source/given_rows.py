"""The rows that Spark's own writer hands to its tasks: their columns are known before, and no job reads them."""

from collections.abc import Callable, Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.types import StructType

from lakewriter.source.arrow_types import make_arrow_schema, require_stored

MOST_PARTITIONS: Final = 1_000_000
"""A writer is not told how many partitions there are, and files are numbered ``partition + rolls * partitions``."""


class GivenRows:
    """The feed of a table whose tasks Spark's writer runs."""

    kind = "rows"
    reason = "Spark hands them to the writer"
    partitions = MOST_PARTITIONS
    counts: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()

    def __init__(self, columns: StructType) -> None:
        for field in columns.fields:
            require_stored(field.name, field.dataType)
        self.schema: pa.Schema = make_arrow_schema(columns.fieldNames(), columns)

    def run(self, body: Callable[[int, Iterator[pa.RecordBatch]], Iterator[str]]) -> list[str]:
        """Refuse: these rows are there once, in tasks that are not ours to start."""
        raise RuntimeError("the tasks of these rows are Spark's")

    def close(self) -> None:
        """Nothing is held."""
