"""State which rows of a table are wanted, and how."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import SparkSession

from lakewriter.source.source_options import make_origin, resolve_secrets
from lakewriter.source.spark_failures import Origin
from lakewriter.spec.access import SecretText
from lakewriter.spec.table_spec import TableSpec

SparkFactory = Callable[[], SparkSession]


@dataclass(frozen=True)
class RowsRequest:
    """A request for the rows of one table."""

    spark: SparkFactory
    """Starts Spark, or returns the session that runs."""
    table: TableSpec
    condition: str | None = None
    """SQL over the columns as declared. A database translates a ``CursorCondition`` into its SQL."""
    twice: bool = False
    """True if the feed is run two times and has to give the same rows."""
    single: bool = False
    """True if all rows go into one partition."""
    first: int | None = None
    """The number of rows for a look at the source, which nothing counts or holds; None for all."""

    @cached_property
    def secrets(self) -> dict[SecretText, str]:
        """The values of the secrets in the source's options."""
        return resolve_secrets(self.table.read)

    @cached_property
    def origin(self) -> Origin:
        """The table's source, for messages."""
        return make_origin(self.table, self.secrets)
