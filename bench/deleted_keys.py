"""Bytes of deleted keys that merges read and write: micro-batches of a table that has many of them, committed by the
real code to an Iceberg REST catalog.

PYTHONPATH=job:. python -m bench.deleted_keys --keys 1000000 --batches 300
"""

import argparse
import statistics
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from bench.iceberg import _point_at
from lakewriter.commit.iceberg.append import IcebergTables
from lakewriter.receipt import DeletedKeys
from lakewriter.records.facets import MergeIntent
from tests.commit import intents
from tests.iceberg.commits import Table
from tests.load.lakes import BUCKET
from tests.support.open_catalog import OpenCatalog
from tests.support.server import StrictAws

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("v", pa.string()), ("gone", pa.bool_())])


class Batches:
    """A table and its batches. ``bytes_read`` and ``bytes_written`` are those of objects with deleted keys."""

    def __init__(self, aws: StrictAws, catalog: OpenCatalog, *, keeps: bool) -> None:
        self.table, self.keeps = Table(aws, catalog), keeps
        self.objects: dict[str, bytes] = {}
        self.deleted: DeletedKeys | None = None
        self.number = self.bytes_read = self.bytes_written = 0

    def merge(self, ids: Any, gone: Any) -> None:
        """Merge rows of these keys, each newer than those before."""
        self.number += 1
        if not self.keeps:
            # As a process of its own for each load.
            self.table.clients.lasting = type(self.table.clients.lasting)()
        at, v = np.full(len(ids), self.number), [f"v{self.number}"] * len(ids)
        rows = pa.table([pa.array(ids), pa.array(at), pa.array(v), pa.array(gone)], schema=SCHEMA)
        job = f"j{self.number}"
        objects = self.deleted.objects if self.deleted is not None else ()
        folds, level = DeletedKeys.plan_fold(objects, len(ids))
        by = MergeIntent(
            keys=("id",), order_by=("at",), deleted="gone", deleted_keys=f"deleted/{job}.parquet", deleted_seconds=1e6,
            deleted_before=self.deleted, deleted_folds=folds, deleted_level=level,
        )  # fmt: skip
        intent = intents.recast(self.table.intent(job, rows, committed=self.number - 1), "merge", merge=by)
        intent = intent.model_copy(update={"started": datetime.now(UTC)}).reading_by(self._read)
        tables = IcebergTables(intent.catalog, self.table.clients, intent.load)
        noted = tables.note_deleted_keys(intent)
        assert noted is not None
        self.objects[noted[0]] = noted[1]
        self.bytes_written += len(noted[1])
        tables.publish(intent, self.number)
        self.deleted = intent.deleted_after

    def _read(self, key: str) -> bytes:
        self.bytes_read += len(self.objects[key])
        return self.objects[key]


def main() -> None:
    """Print a row of figures for a process that lives on, and for one a load."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--keys", type=int, default=1_000_000, help="that are deleted before the first batch")
    arguments.add_argument("--batches", type=int, default=300)
    arguments.add_argument("--rows", type=int, default=200, help="of a batch, half of which delete")
    given = arguments.parse_args()
    print("| process | KiB read a batch | at most | KiB written a batch | at most | objects | seconds a batch |")  # noqa: T201
    print("|---|---|---|---|---|---|---|")  # noqa: T201
    for name, keeps in (("a continuous run", True), ("one for each load", False)):
        with StrictAws() as aws, OpenCatalog(aws, BUCKET) as catalog:
            _point_at(aws)
            print(f"| {name} {_measure(Batches(aws, catalog, keeps=keeps), given)}", flush=True)  # noqa: T201


def _measure(batches: Batches, given: Any) -> str:
    rng = np.random.default_rng(1)
    batches.merge(rng.integers(0, 2**62, given.keys), np.full(given.keys, True))
    read, written, seconds = list[float](), list[float](), list[float]()
    for _ in range(given.batches):
        before, clock = (batches.bytes_read, batches.bytes_written), time.monotonic()
        batches.merge(rng.integers(0, 2**62, given.rows), rng.random(given.rows) < 0.5)
        seconds.append(time.monotonic() - clock)
        read.append((batches.bytes_read - before[0]) / 1024)
        written.append((batches.bytes_written - before[1]) / 1024)
    sizes = (statistics.mean(read), max(read), statistics.mean(written), max(written))
    assert batches.deleted is not None
    figures = "".join(f"| {size:,.1f} " for size in sizes)
    return f"{figures}| {len(batches.deleted.objects)} | {statistics.mean(seconds):.2f} |"


if __name__ == "__main__":
    main()
