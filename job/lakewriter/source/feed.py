"""Open the feed that brings a table's rows into Spark's tasks as Arrow batches, in one of two ways with equal results.

``rows`` reads any DataFrame through ``mapInArrow``; ``splits`` is for files, which the tasks read themselves.
"""

from collections.abc import Callable
from typing import Literal

from lakewriter.errors import SpecInvalidError
from lakewriter.source.arrow_conditions import may_translate
from lakewriter.source.cursor_lag import check_lag
from lakewriter.source.file_splits import open_file_splits
from lakewriter.source.files.file_source import has_reader
from lakewriter.source.request import Feed, RowsRequest
from lakewriter.source.spark_rows import open_rows
from lakewriter.source.storage import detect_table_format
from lakewriter.spec.given import require_read
from lakewriter.spec.table_spec import Read, TableSpec

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
        "its rows are change events": table.envelope is not None,
        "it has a deleted expression": table.deleted is not None,
        "its rows are judged by SQL": bool(table.conditions),
        "its rows are looked at for repeated values": bool(table.unique_checks),
        "its rows are brought together by partition": bool(table.partition_by),
        "only rows above the cursor are read": condition is not None,
    }
    return next((reason for reason, applies in needs.items() if applies), None)


def refuse_table_folders(read: Read, table: str) -> None:
    """Raise ``SPEC_INVALID`` for files of a table format: only its metadata says which of them to read."""
    for view in read.views.values():
        refuse_table_folders(view, table)
    if read.kind.types != "stored":
        return
    for path in read.paths:
        kind = detect_table_format(path)
        if kind is not None:
            raise SpecInvalidError(
                f"table {table!r}: {path!r} is the folder of a table in the {kind} format; read as "
                f"{read.format}, rows that it has deleted or replaced would come back.",
                remedy=f"Read it with format: {kind}, with its package in spark.jars.packages.",
            )
