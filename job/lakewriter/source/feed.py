"""Open the feed that brings a table's rows into Spark's tasks as Arrow batches, in one of two ways with equal results.

``rows`` reads any DataFrame through ``mapInArrow``; ``splits`` is for files, which the tasks read themselves.
"""

from collections.abc import Callable, Iterator
from typing import Literal, Protocol, runtime_checkable

import pyarrow as pa

from lakewriter.errors import SpecInvalidError
from lakewriter.receipt import InferredType
from lakewriter.source.arrow_conditions import may_translate
from lakewriter.source.cursor_lag import check_lag
from lakewriter.source.databases.cursors import Edge
from lakewriter.source.file_splits import open_file_splits
from lakewriter.source.files.file_source import has_reader
from lakewriter.source.request import RowsRequest
from lakewriter.source.spark_rows import open_rows
from lakewriter.source.table_folders import refuse_table_folders
from lakewriter.spec.given import require_read
from lakewriter.spec.table_spec import TableSpec


class Feed(Protocol):
    """Rows of one table, in numbered partitions.

    ``reason`` says why this kind was chosen. ``counts`` are the rows of each partition. They are given if the files
    state them, or if a contiguous index needs them, which is so with more than one partition.
    """

    @property
    def kind(self) -> str:
        """The name of the way: ``rows`` or ``splits``."""

    @property
    def reason(self) -> str:
        """The reason for this kind, in words for a user."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch. Names are the source's and may occur twice."""

    @property
    def partitions(self) -> int:
        """The number of partitions, empty ones included."""

    @property
    def counts(self) -> tuple[int, ...] | None:
        """The rows of each partition; None if they are not counted."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The differences between the source's files, in words for a user."""

    def run(self, body: Callable[[int, Iterator[pa.RecordBatch]], Iterator[str]]) -> list[str]:
        """Call ``body`` in a task for each partition. Return what it yields, in the order of the partitions."""

    def close(self) -> None:
        """Release what the feed holds in the cluster."""


Reader = Callable[[], Iterator[pa.RecordBatch]]
"""A function that reads a partition in any task; picklable."""


@runtime_checkable
class Shareable(Protocol):
    """A feed that tasks read themselves, so that one task may read those of several tables."""

    @property
    def input_bytes(self) -> int:
        """The size of all that its partitions read, in bytes."""

    def list_readers(self) -> list[Reader]:
        """Return the reader of each partition."""


@runtime_checkable
class Bounded(Protocol):
    """A feed of a source that compares values itself, as a database does."""

    @property
    def version(self) -> str:
        """The name and version of the source's server; blank if there is none."""

    @property
    def edge(self) -> Edge | None:
        """The highest value of the cursor among the rows; None if the source has not compared it."""

    def reconcile(self) -> None:
        """Raise ``SOURCE_DISAGREES`` if the rows that were read are not those that the source counts."""


@runtime_checkable
class Inferring(Protocol):
    """A feed of a source whose values decide the types of columns."""

    @property
    def inferred(self) -> tuple[InferredType, ...]:
        """The types of columns that follow from values, by their names in the source; none of declared ones."""

    @property
    def is_untyped(self) -> bool:
        """True if there is no row whose values would give the columns their types."""


FeedOpener = Callable[[RowsRequest], Feed]
"""A function that opens the feed of a table; ``open_feed`` is one."""


def open_feed(request: RowsRequest, prefer: Literal["auto", "rows", "splits"] = "auto") -> Feed:
    """Open the feed of a table; ``prefer`` names its kind, which ``auto`` chooses."""
    table = request.table
    require_read(table)
    refuse_table_folders(table.read, table.id)
    why = explain_need_of_spark(table, request.condition) or ("rows are asked for" if prefer == "rows" else None)
    if has_reader(table.read) and prefer != "rows" and may_read_splits(request):
        feed = open_file_splits(request)
        if feed is not None:
            check_lag(table, feed.schema)
            return feed
    if prefer == "splits":
        raise SpecInvalidError(f"table {table.id!r} cannot be read by splits: {why}.", remedy="Leave the choice open.")
    return open_rows(request, f"{why}, so Spark reads")


def may_read_splits(request: RowsRequest) -> bool:
    """Return False if the tasks cannot do what a table needs, judged without its columns."""
    table = request.table
    if explain_need_of_spark(table.model_copy(update={"deleted": None})) is not None:
        return False
    conditions = [sql for sql in (request.condition, table.deleted) if sql is not None]
    return all(may_translate(request.spark(), sql) for sql in conditions)


def explain_need_of_spark(table: TableSpec, condition: str | None = None) -> str | None:
    """Return the part of a table that only Spark can do; None if the tasks can do all."""
    read = table.read
    needs = {
        "it is a query": read.sql is not None,
        f"its engine is {read.engine}": read.engine is not None,
        f"its format is {read.format}": not has_reader(read),
        "it has a deleted expression": table.deleted is not None,
        "its rows are judged by SQL": bool(table.conditions),
        "its rows are looked at for repeated values": bool(table.unique_checks),
        "its rows are brought together by partition": bool(table.partition_by),
        "only rows above the cursor are read": condition is not None,
    }
    return next((reason for reason, applies in needs.items() if applies), None)
