"""What a merge reads of a table of a billion rows, and what judging its rows takes: planning by the manifests of such a
table, whose data files are not there, and judging of made rows.

PYTHONPATH=job:. python -m bench.merge_plans --files 10000 --keys 1000000
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import ManifestGroupPlanner, Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

from bench.many_files_iceberg import Folder, make_table
from lakewriter.commit.iceberg.iceberg_columns import number_fields
from lakewriter.commit.iceberg.manifests import StreamedAppend
from lakewriter.commit.iceberg.merge_keys import RowReader
from lakewriter.commit.iceberg.merge_winners import DELETED, FILE, KEY, POSITION, PRECEDENCE, judge
from lakewriter.records.facets import MergeIntent

ROWS_A_FILE: Final = 100_000
BYTES_A_ROW: Final = 16
"""Of a key and an order, both of 64 bits, before they are compressed."""
MERGE: Final = MergeIntent(keys=("id",), order_by=("at",))


def list_files(files: int, *, grows: bool) -> Iterator[DataFile]:
    """Yield files whose keys grow with time, or are all over the table in each."""
    for number in range(files):
        first = number * ROWS_A_FILE if grows else 0
        last = (number + 1) * ROWS_A_FILE - 1 if grows else files * ROWS_A_FILE - 1
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"s3://acme-lake/t/data/part-{number:06}.parquet",
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=ROWS_A_FILE,
            file_size_in_bytes=ROWS_A_FILE * 200,
            lower_bounds={1: to_bytes(LongType(), first)},
            upper_bounds={1: to_bytes(LongType(), last)},
        )
        file.spec_id = 0
        yield file


def fill(folder: Folder, files: int, *, grows: bool) -> Table:
    """Return a table with the metadata of its files."""
    schema = number_fields(pa.schema([("id", pa.int64()), ("at", pa.int64()), ("v", pa.string())]))
    table = make_table(schema, folder)
    with table.transaction() as transaction:
        StreamedAppend(transaction, table.io, lambda: list_files(files, grows=grows), {}).commit()
    return table


def plan(table: Table, keys: pa.Array) -> str:
    """Say which files a merge of the keys would read, and what it takes to find them."""
    began = time.perf_counter()
    reader = RowReader(table, table.schema(), MERGE)
    condition = reader.make_filter(pa.table({"key0": keys}))
    manifests = table.snapshots()[0].manifests(table.io)
    rows = sum(
        task.file.record_count
        for task in ManifestGroupPlanner(table.metadata, table.io, condition).plan_files(manifests)
    )
    seconds = time.perf_counter() - began
    return f"{rows // ROWS_A_FILE:,} files, {rows * BYTES_A_ROW / 2**30:.1f} GiB of keys and orders | {seconds:.1f}"


def measure_judging(keys: int) -> str:
    """Say what judging takes for a load of ``keys``, half of which the table has."""
    numbers = pa.array(range(keys), pa.int64())

    def make(order: int, count: int) -> pa.Table:
        columns = {KEY: numbers.slice(0, count).cast(pa.int32()), "order0": pa.repeat(order, count)}
        columns |= {DELETED: pa.repeat(False, count), POSITION: numbers.slice(0, count)}
        return pa.table(columns | {FILE: pa.repeat(pa.scalar(1 - order, pa.int32()), count)})

    loaded, stored = make(1, keys), make(0, keys // 2)
    loaded = loaded.append_column(PRECEDENCE, numbers)
    before, began = pa.total_allocated_bytes(), time.perf_counter()
    judged = judge(loaded, stored, ("order0",), keeps_deleted=False)
    seconds = time.perf_counter() - began
    peak = pa.default_memory_pool().max_memory() - before + loaded.nbytes + stored.nbytes
    return f"{judged.counts.describe()} | {seconds:.1f} | {peak / keys:.0f} bytes a key"


def main() -> None:
    """Print what is read, and what it takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    given = parser.parse_args()
    rows = given.files * ROWS_A_FILE
    step = rows // given.keys
    loads = {
        "the newest": pa.array(range(rows - given.keys, rows), pa.int64()),
        "all over the table": pa.array(range(0, rows, step), pa.int64()),
    }
    write = sys.stdout.write
    write(f"{measure_judging(given.keys)}\n")
    for grows, how in ((True, "grow with time"), (False, "are random")):
        with tempfile.TemporaryDirectory() as path:
            table = fill(Folder(Path(path)), given.files, grows=grows)
            for which, keys in loads.items():
                write(f"{rows:,} rows, keys {how}, {given.keys:,} merged, {which} | {plan(table, keys)}\n")


if __name__ == "__main__":
    main()
