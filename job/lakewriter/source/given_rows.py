"""Feed the rows that Spark's writer hands to its tasks: their columns are given, and no job reads them."""

from typing import Final

from pyspark.sql.types import StructType

from lakewriter.source.arrow_types import make_arrow_schema, require_stored
from lakewriter.source.request import Body, Feed

MOST_PARTITIONS: Final = 1_000_000
"""A limit, since Spark does not give a writer the number of partitions: a file's number is
``partition + rolls * partitions``."""


class GivenRows(Feed):
    """The feed of a table whose tasks Spark's writer runs."""

    kind = "rows"
    reason = "Spark hands them to the writer"
    partitions = MOST_PARTITIONS

    def __init__(self, columns: StructType) -> None:
        for field in columns.fields:
            require_stored(field.name, field.dataType)
        self.schema = make_arrow_schema(columns.fieldNames(), columns)

    def run(self, body: Body) -> list[str]:
        """Refuse to run: these rows exist once, in tasks that Spark starts."""
        raise RuntimeError("the tasks of these rows are Spark's")
