"""Request the rows of a table, and describe the feed that brings them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import pyarrow as pa
from pyspark.sql import SparkSession

from lakewriter.receipt import InferredType
from lakewriter.source.kafka_topics import AnyEdge
from lakewriter.source.source_options import make_origin, resolve_secrets
from lakewriter.source.spark_failures import Origin
from lakewriter.spec.access import SecretText
from lakewriter.spec.table_spec import TableSpec

SparkFactory = Callable[[], SparkSession]
Body = Callable[[int, Iterator[pa.RecordBatch]], Iterator[str]]
"""Work on the batches of one partition, called with its number in a task; what it yields is a text for the driver."""
Reader = Callable[[], Iterator[pa.RecordBatch]]
"""A function that reads a partition in any task; picklable."""


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


class Feed:
    """Rows of one table, in numbered partitions."""

    kind: str
    """The name of the way: ``rows`` or ``splits``."""
    reason: str
    """The reason for this kind, in words for a user."""
    schema: pa.Schema
    """The schema of every batch. Names are the source's and may occur twice."""
    partitions: int
    """The number of partitions, empty ones included."""
    counts: tuple[int, ...] | None = None
    """The rows of each partition: if the files state them, or if a contiguous index needs them, which is so with more
    than one partition."""
    notes: tuple[str, ...] = ()
    """The differences between the source's files, in words for a user."""
    inferred: tuple[InferredType, ...] = ()
    """The types of columns that follow from values, by their names in the source; none of declared ones."""
    is_untyped: bool = False
    """True if there is no row whose values would give the columns their types."""
    is_in_order: bool = False
    """True if the rows come in the order of the source's files, one partition after the other, in every attempt."""
    version: str = ""
    """The name and version of the database server; blank if there is none."""
    edge: AnyEdge | None = None
    """What the source says of the rows' cursor: a database its highest value, Kafka its topic."""

    def run(self, body: Body) -> list[str]:
        """Call ``body`` in a task for each partition. Return what it yields, in the order of the partitions."""
        raise NotImplementedError

    def read_first(self, rows: int) -> pa.Table | None:
        """Return the first good rows, under the source's names; None if only a load can read them."""
        del rows
        return None

    def read_stored_types(self) -> Mapping[str, str]:
        """Return the source's types of the columns that are read as another type."""
        return {}

    def reconcile(self) -> None:
        """Raise ``SOURCE_DISAGREES`` if the rows that were read are not those that a database counts."""

    def close(self) -> None:
        """Release what the feed holds in the cluster, if it holds anything."""


@runtime_checkable
class Shareable(Protocol):
    """A feed that tasks read themselves, so that one task may read those of several tables."""

    @property
    def input_bytes(self) -> int:
        """The size of all that its partitions read, in bytes."""

    def list_readers(self) -> list[Reader]:
        """Return the reader of each partition."""
