"""One table as Iceberg in Glue several ways, side by side in one run: ours, PyIceberg's own ``append``, Spark.

All put the same rows with the same tracking columns into the same embedded bucket. PyIceberg appends from this process;
Spark takes part where ``--jars`` names the Iceberg runtime for Spark and its AWS bundle.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from bench.data import KEYS, sources
from bench.sinks import BUCKET
from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.run.load import run
from lakewriter.source.session import open_spark_session
from tests.support.server import StrictAws

DATABASE = "bench"


@dataclass(frozen=True)
class Taken:
    """One append: seconds, requests to AWS, files in the table's newest snapshot, and their bytes."""

    seconds: float
    requests: int
    files: int
    size: int


def main() -> None:
    """Print a Markdown table of medians and ratios."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--copies", type=int, default=2, help="how often the 336,776 flights are taken")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--jars", default="", help="Iceberg's runtime for Spark and its AWS bundle, by commas")
    given = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lakewriter-bench-"))
    if given.jars:
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {given.jars} pyspark-shell"
    with StrictAws() as aws:
        _point_at(aws)
        rows = sources(folder / "flights", given.copies)
        spark = open_spark_session("bench")
        cases: dict[str, Callable[[], str]] = {
            "Lakewriter": lambda: _ours(spark, folder),
            "PyIceberg append": lambda: _pyiceberg(aws, folder),
        }
        if given.jars:
            cases["Spark with Iceberg"] = lambda: _spark(spark, aws, folder)
        _table(rows, given.rounds, _measured(aws, cases, given.rounds))
    shutil.rmtree(folder, ignore_errors=True)


def _point_at(aws: StrictAws) -> None:
    os.environ.update(
        AWS_ENDPOINT_URL=aws.url,
        AWS_ACCESS_KEY_ID="bench",
        AWS_SECRET_ACCESS_KEY="bench",
        AWS_REGION="us-east-1",
        AWS_EC2_METADATA_DISABLED="true",
    )
    # The others look for objects by HEAD, and take 403 for an error.
    aws.hide_missing = False
    aws.client("s3").create_bucket(Bucket=BUCKET)


def _ours(spark: SparkSession, folder: Path) -> str:
    destination = {"s3_bucket_name": BUCKET, "bucket_region": "us-east-1", "table_format": "ICEBERG"}
    read = {"format": "parquet", "path": str(folder / "flights")}
    content = {
        "pipeline": "bench",
        "destination": {"type": "supaflow-s3-data-lake", "glue_database_prefix": DATABASE} | destination,
        "tables": [{"table": "ours", "read": read, "primary_key": list(KEYS)}],
    }
    file = folder / "lake.yaml"
    file.write_text(yaml.safe_dump(content), "utf-8")
    spec = load_spec(file)
    report = run(spec, job_id=str(uuid.uuid4()), clients=Clients(spec.access), spark=lambda: spark)
    if report.status != "done":
        raise SystemExit(report.tables[0].message)
    return "ours"


def _pyiceberg(aws: StrictAws, folder: Path) -> str:
    rows = pq.read_table(folder / "flights")
    texts = " || '|' || ".join(f"CAST({key} AS VARCHAR)" for key in KEYS)
    context = datafusion.SessionContext()
    context.from_arrow(rows, name="t")
    ids = context.sql(f"SELECT encode(sha256({texts}), 'hex') AS id FROM t").to_arrow_table()["id"]
    count = rows.num_rows
    tracked: dict[str, Any] = {
        "_supa_synced": pa.array([datetime.now(UTC)] * count, pa.timestamp("us", "UTC")),
        "_supa_deleted": pa.array([False] * count),
        "_supa_index": pa.array(range(1, count + 1)),
        "_supa_id": ids,
        "_supa_job_id": pa.array(["bench"] * count),
    }
    for name, values in tracked.items():
        rows = rows.append_column(name, values)
    catalog = _catalog(aws)
    catalog.create_namespace_if_not_exists(DATABASE)
    location = f"s3://{BUCKET}/{DATABASE}/pyiceberg"
    catalog.create_table_if_not_exists((DATABASE, "pyiceberg"), rows.schema, location).append(rows)
    return "pyiceberg"


def _spark(spark: SparkSession, aws: StrictAws, folder: Path) -> str:
    for key, value in {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        ".warehouse": f"s3://{BUCKET}",
        ".glue.endpoint": aws.url,
        ".s3.endpoint": aws.url,
        ".s3.path-style-access": "true",
        ".client.region": "us-east-1",
    }.items():
        spark.conf.set(f"spark.sql.catalog.glue{key}", value)
    frame = spark.read.parquet(str(folder / "flights"))
    tracked = (
        frame.withColumn("_supa_synced", F.current_timestamp())
        .withColumn("_supa_deleted", F.lit(False))
        .withColumn("_supa_index", F.monotonically_increasing_id())
        .withColumn("_supa_id", F.sha2(F.concat_ws("|", *(F.col(key).cast("string") for key in KEYS)), 256))
        .withColumn("_supa_job_id", F.lit("bench"))
    )
    if spark.catalog.tableExists(f"glue.{DATABASE}.spark"):
        tracked.writeTo(f"glue.{DATABASE}.spark").append()
    else:
        tracked.writeTo(f"glue.{DATABASE}.spark").using("iceberg").create()
    return "spark"


def _catalog(aws: StrictAws) -> Any:
    return load_catalog("glue", **{"type": "glue", "s3.endpoint": aws.url, "client.region": "us-east-1"})


def _measured(aws: StrictAws, cases: dict[str, Callable[[], str]], rounds: int) -> dict[str, list[Taken]]:
    """Interleaved, so that what else the machine does falls on all alike; the first round only warms up."""
    taken: dict[str, list[Taken]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, case in cases.items():
            before, clock = len(aws.history), time.monotonic()
            table = case()
            seconds, requests = time.monotonic() - clock, len(aws.history) - before
            summary = _catalog(aws).load_table((DATABASE, table)).current_snapshot().summary
            if number:
                files, size = int(summary["added-data-files"]), int(summary["added-files-size"])
                taken[name].append(Taken(seconds, requests, files, size))
    return taken


def _table(rows: int, rounds: int, taken: dict[str, list[Taken]]) -> None:
    base = statistics.median(each.seconds for each in taken["PyIceberg append"])
    print(f"{rows:,} rows of 19 columns and 5 tracking columns, medians of {rounds} rounds, {os.cpu_count()} cores\n")  # noqa: T201
    print("| way | seconds | time | requests | files | MB |\n|---|---|---|---|---|---|")  # noqa: T201
    for name, runs in taken.items():
        seconds = statistics.median(each.seconds for each in runs)
        requests = statistics.median(each.requests for each in runs)
        last = runs[-1]
        print(  # noqa: T201
            f"| {name} | {seconds:.1f} | {seconds / base:.2f} | {requests:.0f} | {last.files} | {last.size / 1e6:.1f} |"
        )


if __name__ == "__main__":
    main()
