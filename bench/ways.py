"""The ways to write one table, each a function from a sink's address to the bytes it wrote.

What a user would pick instead of ours is Spark's gzip Parquet writer with the tracking columns in SQL, a count before
it for the row index, and an upload of what it wrote. Libraries outside Spark are in ``bench.outside_ways``.
"""

import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from bench.data import KEYS
from bench.sinks import BUCKET
from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.report import RunReport
from lakewriter.run.load import run

Way = Callable[[str | None], int]
"""Writes to the S3 server at the address, or to nowhere."""


def spark_native(spark: SparkSession, folder: Path) -> Way:
    """Spark's writer to a local folder, and where there is a server an upload of each file."""

    def write(server: str | None) -> int:
        out = folder / f"native-{uuid.uuid4()}"
        add_tracking(spark.read.parquet(str(folder / "flights"))).write.option("compression", "gzip").parquet(str(out))
        files = sorted(out.glob("*.parquet"))
        if server:
            client = boto3.client("s3", endpoint_url=server)
            for file in files:
                client.upload_file(str(file), BUCKET, f"native/{out.name}/{file.name}")
        size = sum(file.stat().st_size for file in files)
        shutil.rmtree(out)
        return size

    return write


def add_tracking(frame: DataFrame) -> DataFrame:
    """The five tracking columns by Spark's own functions; the rows are counted first, for the index."""
    counts = frame.groupBy(F.spark_partition_id().alias("p")).count().collect()
    offsets, before = {}, 0
    for row in sorted(counts):
        offsets[row[0]] = before
        before += row[1]
    start = F.create_map(*(F.lit(value) for pair in offsets.items() for value in pair))
    within = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
    return (
        frame.withColumn("_supa_synced", F.current_timestamp())
        .withColumn("_supa_deleted", F.lit(False))
        .withColumn("_supa_index", start[F.spark_partition_id()] + within + 1)
        .withColumn("_supa_id", F.sha2(F.concat_ws("|", *(F.col(key).cast("string") for key in KEYS)), 256))
        .withColumn("_supa_job_id", F.lit("bench"))
    )


def lakewriter(spark: SparkSession, folder: Path, server: str, *, delta: bool = False, **options: str) -> RunReport:
    """One load with Spark's reader ``options``; ``mergeSchema`` makes it the rows feed, none the splits feed."""
    return load_file(spark, lake_file(folder, server, options, delta=delta))


def load_file(spark: SparkSession, lake_yaml: Path) -> RunReport:
    """One load; its error ends the benchmark."""
    spec = load_spec(lake_yaml)
    report = run(spec, job_id=str(uuid.uuid4()), clients=Clients(spec.access), spark=lambda: spark)
    if report.status != "done":
        raise SystemExit(report.tables[0].message)
    return report


def lake_file(folder: Path, server: str, options: dict[str, str], *, delta: bool = False) -> Path:
    """A lake.yaml beside the Parquet sources, of a pipeline of its own."""
    read: dict[str, Any] = {"format": "parquet", "path": str(folder / "flights"), "options": options}
    table = {"table": "flights", "read": read, "primary_key": list(KEYS)}
    return lake_file_of(folder, server, table, delta_encodings=delta)


def lake_file_of(folder: Path, server: str, table: dict[str, Any], **keys: Any) -> Path:
    """A lake.yaml with one table, of a pipeline of its own; ``keys`` are its keys at the top."""
    destination = {"s3_bucket_name": BUCKET, "bucket_region": "us-east-1", "custom_s3_endpoint": server}
    content = {
        "pipeline": f"bench-{uuid.uuid4().hex[:8]}",
        "destination": {"type": "supaflow-s3"} | destination,
        "tables": [table],
        # Each load is of a pipeline of its own.
        "shares_tables": True,
    } | keys
    file = folder / "lake.yaml"
    file.write_text(yaml.safe_dump(content), "utf-8")
    return file
