"""Open a table's source as a load does, and read only its first rows."""

import sys
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from lakewriter.source.cursor_lag import check_lag
from lakewriter.source.feed import explain_need_of_spark, refuse_table_folders
from lakewriter.source.file_splits import count_rows, open_own_files, read_good_rows, spread_locally
from lakewriter.source.files.file_source import OpenedFiles, has_reader
from lakewriter.source.request import Body, Feed, RowsRequest
from lakewriter.source.spark_rows import RowsFeed, open_rows

SAMPLE_ROWS: Final = 1000


class FirstRowsFeed(Feed):
    """The first rows of files that the tasks would read, read without Spark."""

    kind = "splits"
    partitions = 1

    def __init__(self, opened: OpenedFiles) -> None:
        self.schema, self.notes, self.is_untyped = opened.source.schema, opened.notes, opened.is_untyped
        self.reason = "files that the tasks read themselves"
        self._source, self._pieces = opened.source, opened.cut(sys.maxsize // 2, spread_locally)
        self.counts = count_rows([self._pieces]) if self._pieces else None

    def run(self, body: Body) -> list[str]:
        """Return what ``body`` yields for the first rows."""
        return list(body(0, iter(self.read_first(SAMPLE_ROWS).to_batches())))

    def read_first(self, rows: int) -> pa.Table:
        """Return the first rows. Leave out bad ones if the table sets them aside, else raise the first one's error."""
        return read_good_rows(self._source, self._pieces, rows)


@dataclass
class Looker:
    """An opener of tables for a look, which keeps the last feed. Its ``open`` is a ``FeedOpener``."""

    feed: FirstRowsFeed | RowsFeed | None = None

    def open(self, request: RowsRequest) -> Feed:
        """Open the source as ``open_feed`` does, for its first rows only. No row is counted or kept."""
        table = request.table
        refuse_table_folders(table.read, table.id)
        why = explain_need_of_spark(table, request.condition)
        if why is None and has_reader(table.read):
            self.feed = FirstRowsFeed(open_own_files(table, spread_locally))
            check_lag(table, self.feed.schema)
        else:
            self.feed = open_rows(replace(request, single=False, first=SAMPLE_ROWS), str(why))
        return self.feed
