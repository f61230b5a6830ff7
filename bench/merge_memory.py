"""Peak memory and CPU of the process that publishes one merge of random keys, which touch every file of their table.

Bucket and catalog are served by this process, the merge is committed by the real code in a process of its own.

PYTHONPATH=job:. python -m bench.merge_memory --files 1000 --rows 20000 --keys 10000000
"""

import argparse
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bench.iceberg import _point_at
from lakewriter.aws import Clients
from lakewriter.commit.iceberg.append import IcebergTables
from lakewriter.records.facets import MergeIntent
from tests.commit import intents
from tests.iceberg.commits import ACCESS, Table, intent
from tests.load.lakes import BUCKET
from tests.support.open_catalog import OpenCatalog
from tests.support.server import StrictAws

FILES_OF_LOAD: Final = 16
MERGE: Final = MergeIntent(
    keys=("id",), order_by=("at",), deleted="gone", deleted_keys="deleted/1.parquet", deleted_seconds=1e6
)


def make_keys(numbers: Any, *, text: bool) -> pa.Array:
    """Return a key for each number, in no order: of 64 bits, or the 36 characters of a UUID."""
    mixed = [_mix(numbers.astype(np.uint64) + np.uint64(seed << 40)) for seed in (1, 2)]
    if not text:
        return pa.array(mixed[0].view(np.int64))
    halves = np.stack(mixed, axis=1).view(np.uint8)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    letters = np.stack([digits[halves >> 4], digits[halves & 15]], axis=2).reshape(len(numbers), 32)
    letters = np.ascontiguousarray(np.insert(letters, (8, 12, 16, 20), ord("-"), axis=1))
    whole = pa.Array.from_buffers(pa.binary(36), len(numbers), [None, pa.py_buffer(letters)])
    return whole.cast(pa.binary()).cast(pa.string())


def _mix(numbers: Any) -> Any:
    """Return the outputs of SplitMix64, which differ for different numbers."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def make_rows(numbers: Any, at: int, *, text: bool) -> pa.Table:
    """Return rows of five columns; of a load, one of ten deletes."""
    count = len(numbers)
    return pa.table(
        {
            "id": make_keys(numbers, text=text),
            "at": pa.array(np.full(count, at)),
            "name": pa.array(numbers % 1000).cast(pa.string()),
            "x": pa.array(numbers * 0.5),
            "gone": pa.array((numbers % 10 == 0) & (at > 0)),
        }
    )


def commit(table: Table, job: str, number: int, parts: Any, by: MergeIntent | None = None) -> Any:
    """Put a load's files into the bucket, and return its intent."""
    receipts, action, schema = [], None, None
    for seq, rows in enumerate(parts):
        if action is None:
            action, schema = table.ready(job, rows.schema, number - 1)
        receipt = table.write(action, f"part-{job}-{seq:05}.parquet", rows.cast(schema))
        receipts.append(receipt.model_copy(update={"seq": seq}))
    assert action is not None
    load = intent(job, action, *receipts)
    return load if by is None else intents.recast(load, "merge", merge=by)


def publish(file: str) -> None:
    """Publish the merge whose intent a file has, and print what it took."""
    load = pickle.loads(Path(file).read_bytes())
    before, clock = time.process_time(), time.monotonic()
    start = _read_peak()
    tables = IcebergTables(load.catalog, Clients(ACCESS), load.load)
    tables.note_deleted_keys(load)
    tables.publish(load, 2)
    tables.read_back(load)
    cpu, seconds = time.process_time() - before, time.monotonic() - clock
    counts = getattr(tables.counts, "describe", lambda: tables.counts)()
    print(f"{start:,.0f} | {_read_peak():,.0f} | {cpu:.2f} | {seconds:.1f} | {counts} |")  # noqa: T201


def _read_peak() -> float:
    """Return the greatest resident size that this process has had, in MiB."""
    [size] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    return int(size) / 1024


def main() -> None:
    """Print a row of figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--files", type=int, default=1000, help="of the table")
    arguments.add_argument("--rows", type=int, default=20_000, help="of each file")
    arguments.add_argument("--keys", type=int, default=10_000_000, help="that are changed")
    arguments.add_argument("--new", type=float, default=0.0, help="share of keys that the table has not")
    arguments.add_argument("--text", action="store_true", help="keys are UUIDs as text")
    arguments.add_argument("--times", type=int, default=1, help="processes that publish the same merge of tables")
    arguments.add_argument("--publish", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.publish:
        publish(given.publish)
        return
    print("| keys | MiB before | MiB at most | CPU seconds | seconds | merged |\n|---|---|---|---|---|---|")  # noqa: T201
    with StrictAws() as aws, OpenCatalog(aws, BUCKET) as catalog, tempfile.TemporaryDirectory() as folder:
        _point_at(aws)
        for time_ in range(given.times):
            _measure(Table(aws, catalog, f"t{time_}"), given, Path(folder) / "intent")


def _measure(table: Table, given: argparse.Namespace, file: Path) -> None:
    total = given.files * given.rows
    parts = (
        make_rows(np.arange(start, start + given.rows), 0, text=given.text) for start in range(0, total, given.rows)
    )
    table.publish(commit(table, "j1", 1, parts), 1)
    first = int(given.keys * given.new)
    old = np.random.default_rng(1).choice(total, given.keys - first, replace=False)
    numbers = np.concatenate([old, np.arange(total, total + first)])
    parts = (make_rows(part, 1, text=given.text) for part in np.array_split(numbers, FILES_OF_LOAD))
    load = commit(table, "j2", 2, parts, MERGE)
    load = load.model_copy(update={"started": datetime.now(UTC)})
    file.write_bytes(pickle.dumps(load))
    command = [sys.executable, "-m", "bench.merge_memory", "--publish", str(file)]
    name = f"{given.keys:,} {'UUIDs' if given.text else 'numbers'} of {total:,} in {given.files:,} files"
    print(f"| {name} | ", end="", flush=True)  # noqa: T201
    subprocess.run(command, check=True, env=dict(os.environ))


if __name__ == "__main__":
    main()
