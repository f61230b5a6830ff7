"""A task's plan for a small table."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lakewriter.receipt import Receipt
from lakewriter.shape.table import plan_shape
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Limits, Spec, Tracking, TrackingColumn
from lakewriter.spec.table_spec import Read, TableSpec
from lakewriter.staging import task
from lakewriter.staging.task import TaskPlan

START = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
ACCESS = Access(bucket="acme-lake", region="us-east-1")
SOURCE = pa.schema([("id", pa.int64()), ("name", pa.string()), ("changed", pa.timestamp("us", "UTC"))])
LAYOUT = Layout("lake/crm/accounts", Template.parse("{date:%Y/%m/%d}/part-{job_id}-{seq}.parquet"))
TABLE = TableSpec(
    source_table="accounts",
    schema_name="crm",
    name="accounts",
    read=Read(format="parquet", path="in"),
    cursor="changed",
    layout=LAYOUT,
    path="lake/crm/accounts",
)
SPEC = Spec(
    pipeline="crm",
    dialect="test",
    access=ACCESS,
    catalog=NoCatalog(),
    tracking=(
        TrackingColumn(name="_index", holds=Tracking.INDEX),
        TrackingColumn(name="_job_id", holds=Tracking.JOB_ID),
    ),
    tables=(TABLE,),
)


def task_plan(
    *,
    limits: Limits | None = None,
    encoding: ParquetEncoding | None = None,
    first_indexes: tuple[int, ...] = (1,),
    counts: tuple[int, ...] | None = None,
    access: Access = ACCESS,
    source: pa.Schema = SOURCE,
) -> TaskPlan:
    """The plan of job ``j1``; as many partitions as there are first indexes."""
    return TaskPlan(
        access=access,
        names=LAYOUT.bind(job_id="j1", attempt="a1", start=START),
        shape=plan_shape(source, SPEC, TABLE),
        encoding=encoding or ParquetEncoding(),
        limits=limits or Limits(),
        load="crm/j1/a1",
        job_id="j1",
        start=START,
        partition_count=len(first_indexes),
        first_indexes=first_indexes,
        counts=counts,
    )


def source_table(rows: int) -> pa.Table:
    """``rows`` rows; the last ``changed`` is that many seconds after 1970, every tenth one is null."""
    changed = [None if i % 10 == 9 else (i + 1) * 1_000_000 for i in range(rows)]
    columns = [range(rows), [f"name-{i % 97}" for i in range(rows)], changed]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SOURCE, strict=True)], schema=SOURCE)


def source_rows(rows: int, batch: int = 10_000) -> Iterator[pa.RecordBatch]:
    """The same in batches."""
    return iter(source_table(rows).to_batches(max_chunksize=batch))


def write_partition(plan: TaskPlan, partition: int, batches: Iterator[pa.RecordBatch], **how: Any) -> Iterator[Receipt]:
    """The receipts of a task, none of them packed."""
    return task.write_partition(plan, partition, batches, iter, **how)
