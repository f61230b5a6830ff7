"""Rows merged by key into an Iceberg table in Glue, in turns in one run: ours, Spark's MERGE, PyIceberg's ``upsert``.

Each way has a table of its own with the same rows, in the same embedded bucket, and merges the same keys, half of which
are new. What readers see afterwards is compared. Spark takes part where ``--jars`` names the Iceberg runtime for Spark
and its AWS bundle.
"""

import argparse
import os
import resource
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from bench.iceberg import DATABASE, _catalog, _point_at
from bench.sinks import BUCKET
from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.run.load import run
from lakewriter.source.session import open_spark_session
from tests.support.server import StrictAws

FILES = 8


def main() -> None:
    """Print a Markdown table of medians and ratios."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000, help="of the table")
    arguments.add_argument("--share", type=float, default=0.1, help="of keys that are merged, half of them new")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--jars", default="", help="Iceberg's runtime for Spark and its AWS bundle, by commas")
    arguments.add_argument("--without-upsert", action="store_true", help="leave PyIceberg out, which takes minutes")
    given = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lakewriter-bench-"))
    if given.jars:
        extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        os.environ["PYSPARK_SUBMIT_ARGS"] = (
            f"--jars {given.jars} --conf spark.sql.extensions={extension} --driver-memory 4g pyspark-shell"
        )
    with StrictAws() as aws:
        _point_at(aws)
        bench = _Bench(aws, open_spark_session("bench"), folder, given.rows, given.share)
        cases: dict[str, Callable[[int], None]] = {"Lakewriter": bench.load}
        if given.jars:
            cases["Spark's MERGE"] = bench.merge_with_spark
        if not given.without_upsert:
            cases["PyIceberg's upsert"] = bench.upsert
        bench.make_tables(cases)
        taken = bench.measure(cases, given.rounds)
    base = statistics.median(taken["Lakewriter"][1:] or taken["Lakewriter"])
    print(f"{given.rows:,} rows in {FILES} files, {given.share:.0%} of keys, {os.cpu_count()} cores\n")  # noqa: T201
    print("| way | first | seconds | time |\n|---|---|---|---|")  # noqa: T201
    for name, (first, *seconds) in taken.items():
        middle = statistics.median(seconds or [first])
        print(f"| {name} | {first:.1f} | {middle:.1f} | {middle / base:.1f} |")  # noqa: T201
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nThis process had {peak:.0f} MiB at most, the embedded bucket included.")  # noqa: T201
    shutil.rmtree(folder, ignore_errors=True)


class _Bench:
    """The tables and what is merged into them; ``at`` grows from round to round."""

    def __init__(self, aws: StrictAws, spark: SparkSession, folder: Path, rows: int, share: float) -> None:
        self.aws, self.spark, self.folder, self.rows = aws, spark, folder, rows
        self.merged = int(rows * share)
        self.keys = set[int](range(rows))

    def make_tables(self, cases: dict[str, Any]) -> None:
        """Make a table for each way; ours by its first load."""
        per_file = self.rows // FILES
        (self.folder / "source").mkdir()
        for number in range(FILES):
            rows = self._make_rows(np.arange(number * per_file, (number + 1) * per_file), 0)
            pq.write_table(rows, self.folder / "source" / f"{number}.parquet")
        self.rows = per_file * FILES
        self.load(0)
        catalog = _catalog(self.aws)
        for name in {"Spark's MERGE": "spark", "PyIceberg's upsert": "pyiceberg"}.items():
            if name[0] in cases:
                schema = pq.read_schema(self.folder / "source" / "0.parquet")
                table = catalog.create_table((DATABASE, name[1]), schema, f"s3://{BUCKET}/{DATABASE}/{name[1]}")
                for file in sorted((self.folder / "source").iterdir()):
                    table.append(pq.read_table(file))

    def _make_rows(self, ids: Any, at: int) -> pa.Table:
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "at": pa.array(np.full(len(ids), at), pa.int64()),
                "name": pa.array([f"name-{number}" for number in ids]),
                "x": pa.array(ids * 0.5),
            }
        )

    def give(self, number: int) -> None:
        """Write what the round merges: keys all over the table, and as many new ones."""
        half = self.merged // 2
        old = np.random.default_rng(number).choice(self.rows, half, replace=False)
        first = self.rows + (number - 1) * half
        shutil.rmtree(self.folder / "source")
        (self.folder / "source").mkdir()
        rows = self._make_rows(np.concatenate([np.sort(old), np.arange(first, first + half)]), number)
        pq.write_table(rows, self.folder / "source" / "0.parquet")

    def load(self, _: int) -> None:
        """Load by the product."""
        content = {
            "pipeline": "bench",
            "destination": {
                "type": "lakewriter-s3", "location": f"s3://{BUCKET}/ours", "region": "us-east-1",
                "catalog": "iceberg", "database": DATABASE,
            },
            "tables": [
                {
                    "table": "ours", "read": {"format": "parquet", "path": str(self.folder / "source")},
                    "mode": "merge", "primary_key": ["id"], "order_by": ["at"],
                }
            ],
        }  # fmt: skip
        file = self.folder / "lake.yaml"
        file.write_text(yaml.safe_dump(content), "utf-8")
        spec = load_spec(file)
        report = run(spec, job_id=str(uuid.uuid4()), clients=Clients(spec.access), spark=lambda: self.spark)
        if report.status != "done":
            raise SystemExit(report.tables[0].message)

    def merge_with_spark(self, _: int) -> None:
        """Merge on read, as Iceberg's own runtime does it."""
        for key, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
            ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            ".warehouse": f"s3://{BUCKET}",
            ".glue.endpoint": self.aws.url,
            ".s3.endpoint": self.aws.url,
            ".s3.path-style-access": "true",
            ".client.region": "us-east-1",
        }.items():
            self.spark.conf.set(f"spark.sql.catalog.glue{key}", value)
        self.spark.read.parquet(str(self.folder / "source")).createOrReplaceTempView("changes")
        self.spark.sql(f"ALTER TABLE glue.{DATABASE}.spark SET TBLPROPERTIES ('write.merge.mode'='merge-on-read')")
        self.spark.sql(
            f"MERGE INTO glue.{DATABASE}.spark t USING changes s ON t.id = s.id "
            "WHEN MATCHED AND s.at > t.at THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def upsert(self, _: int) -> None:
        """Merge by PyIceberg, which compares all columns instead of an order."""
        table = _catalog(self.aws).load_table((DATABASE, "pyiceberg"))
        table.upsert(pq.read_table(self.folder / "source"), join_cols=["id"])

    def measure(self, cases: dict[str, Callable[[int], None]], rounds: int) -> dict[str, list[float]]:
        """Measure in turns; the first round is a session's first merge of each way."""
        taken: dict[str, list[float]] = {name: [] for name in cases}
        names = {"Lakewriter": "ours", "Spark's MERGE": "spark", "PyIceberg's upsert": "pyiceberg"}
        for number in range(1, rounds + 2):
            self.give(number)
            for name, case in cases.items():
                clock = time.monotonic()
                case(number)
                taken[name].append(time.monotonic() - clock)
            seen = {name: self._sum(names[name]) for name in cases}
            if len(set(seen.values())) != 1:
                raise SystemExit(f"round {number}: the tables differ: {seen}")
        return taken

    def _sum(self, name: str) -> tuple[int, int, int]:
        """Rows of a table, and the sums of its keys and orders."""
        rows = _catalog(self.aws).load_table((DATABASE, name)).scan(selected_fields=("id", "at")).to_arrow()
        return len(rows), pc.sum(rows["id"]).as_py(), pc.sum(rows["at"]).as_py()


if __name__ == "__main__":
    main()
