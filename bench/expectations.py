"""Seconds that expectations add to a million rows, for each kind of column and of file; no S3, no Spark.

PYTHONPATH=job:. python -m bench.expectations --rows 4000000
"""

import argparse
import io
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewriter.expect.observing import Observer
from lakewriter.expect.watching import Watch, Watched

BATCH = 8192
ROUNDS = 5


def make_columns(rows: int) -> pa.Table:
    """A column of each kind, a tenth of it null."""
    numbers = pa.array(range(rows), pa.int64())
    kept = pc.not_equal(pc.subtract(numbers, pc.multiply(pc.divide(numbers, 10), 10)), 0)
    texts = pc.binary_join_element_wise("name-", numbers.cast(pa.string()), "")
    columns = {
        "int64": numbers,
        "double": numbers.cast(pa.float64()),
        "decimal": numbers.cast(pa.decimal128(20, 0)),
        "string": texts,
        "timestamp": numbers.cast(pa.timestamp("us", "UTC")),
    }
    return pa.table({name: pc.if_else(kept, column, None) for name, column in columns.items()})


def measure(work: Callable[[], object]) -> float:
    """The median seconds of a few rounds, after a first one."""
    seconds = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return sorted(seconds[1:])[ROUNDS // 2]


def main() -> None:
    """Print a line for each kind of column."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    rows = parser.parse_args().rows
    table, at = make_columns(rows), datetime.now(UTC)
    batches, sink = table.to_batches(max_chunksize=BATCH), io.BytesIO()
    pq.write_table(table, sink, row_group_size=1_000_000)
    footer = pq.read_metadata(io.BytesIO(sink.getvalue()))
    sys.stdout.write(f"{at:%Y-%m-%d}, {rows:,} rows in batches of {BATCH:,}; milliseconds for a million rows\n")
    for field in table.schema:
        counted = Watch(field.name, field.type, bounds=True)
        times = {
            "nulls": measure(partial(observe, replace(counted, bounds=False), batches)),
            "nulls and bounds": measure(partial(observe, counted, batches)),
            "by the footer": measure(partial(read, replace(counted, in_footer=True), rows, footer)),
        }
        shown = ", ".join(f"{name} {1e9 * seconds / rows:.2f}" for name, seconds in times.items())
        sys.stdout.write(f"{field.name:10} {shown}\n")


def observe(watch: Watch, batches: list[pa.RecordBatch]) -> None:
    """Look at all rows as a task does."""
    observer = Observer(Watched({watch.name: watch}))
    for batch in batches:
        observer.observe(batch)
    observer.take(0, None)


def read(watch: Watch, rows: int, footer: pq.FileMetaData) -> None:
    """Take what a footer says of a file."""
    Observer(Watched({watch.name: watch})).take(rows, footer)


if __name__ == "__main__":
    main()
