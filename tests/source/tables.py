"""Tables to read and a body that brings back what the tasks were given."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from lakewriter.source.request import Feed
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.table_spec import IndexKind, Read, TableSpec


def table(*, index: IndexKind = IndexKind.CONTIGUOUS, **fields: Any) -> TableSpec:
    """A table read as ``fields`` say; those of ``Read`` are taken out of them."""
    read = Read(**{name: fields.pop(name) for name in list(fields) if name in Read.model_fields and name != "columns"})
    layout = Layout("", Template.parse("{job_id}-{seq}.parquet"))
    return TableSpec(
        source_table="t", schema_name="s", name="t", read=read, index=index, layout=layout, path="s/t", **fields
    )


def show(partition: int, batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
    """One JSON text a partition: its number and its rows."""
    rows = [
        list(row) for batch in batches for row in zip(*[column.to_pylist() for column in batch.columns], strict=True)
    ]
    yield json.dumps([partition, rows], default=str)


def partitions(feed: Feed) -> dict[int, list[list[Any]]]:
    """The rows of each partition that has any."""
    found = {number: rows for number, rows in map(json.loads, feed.run(show)) if rows}
    feed.close()
    return found


def rows(feed: Feed) -> list[list[Any]]:
    """All rows in the partitions' order."""
    return [row for _, part in sorted(partitions(feed).items()) for row in part]


def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of each batch."""
    yield from (pa.RecordBatch.from_pydict({"n": pa.array([batch.num_rows], pa.int32())}) for batch in batches)
