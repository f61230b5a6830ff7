"""One table into the bucket three ways, side by side in one run: Spark's own writer, the rows feed, the splits feed.

What a user would pick instead is Spark's gzip Parquet writer with the tracking columns in SQL, a count before it for
the row index, and an upload of what it wrote. All three put the same rows into the same embedded bucket.
"""

import argparse
import logging
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from examples.demo.demo import packaged
from job.aws import Clients
from job.dialects.lake_yaml import load_spec
from job.run import run
from job.source.session import spark_session

BUCKET = "acme-lake"
KEYS = ("time_hour", "carrier", "flight")


def main() -> None:
    """Print a Markdown table of medians and ratios."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--copies", type=int, default=4, help="how often the 336,776 flights are taken")
    arguments.add_argument("--rounds", type=int, default=5)
    given = arguments.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lakewriter-bench-"))
    port = _free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _point_at(f"http://127.0.0.1:{port}")
        rows = _sources(folder, given.copies)
        spark = spark_session("bench")
        cases = {
            "Spark gzip, uploaded": lambda: _native(spark, folder),
            "rows feed": lambda: _ours(spark, folder, {"mergeSchema": "false"}),
            "splits feed": lambda: _ours(spark, folder, {}),
        }
        _table(rows, given.rounds, _measured(cases, given.rounds))
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _point_at(url: str) -> None:
    logging.getLogger("botocore").setLevel(logging.ERROR)
    os.environ.update(
        AWS_ENDPOINT_URL=url, AWS_ACCESS_KEY_ID="bench", AWS_SECRET_ACCESS_KEY="bench", AWS_REGION="us-east-1"
    )
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    for _ in range(50):
        try:
            boto3.client("s3", region_name="us-east-1").create_bucket(Bucket=BUCKET)
        except Exception:  # noqa: BLE001 - the server is still starting
            time.sleep(0.2)
        else:
            return
    raise SystemExit("The embedded server did not start.")


def _sources(folder: Path, copies: int) -> int:
    (folder / "flights").mkdir()
    flights = packaged("flights")
    place = flights.schema.get_field_index("time_hour")
    flights = flights.set_column(place, "time_hour", flights["time_hour"].cast(pa.timestamp("us", "UTC")))
    for copy in range(copies):
        pq.write_table(flights, folder / "flights" / f"{copy}.parquet")
    return int(flights.num_rows * copies)


def _native(spark: SparkSession, folder: Path) -> int:
    frame = spark.read.parquet(str(folder / "flights"))
    counts = frame.groupBy(F.spark_partition_id().alias("p")).count().collect()
    offsets, before = {}, 0
    for row in sorted(counts):
        offsets[row[0]] = before
        before += row[1]
    start = F.create_map(*(F.lit(value) for pair in offsets.items() for value in pair))
    within = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
    tracked = (
        frame.withColumn("_supa_synced", F.current_timestamp())
        .withColumn("_supa_deleted", F.lit(False))
        .withColumn("_supa_index", start[F.spark_partition_id()] + within + 1)
        .withColumn("_supa_id", F.sha2(F.concat_ws("|", *(F.col(key).cast("string") for key in KEYS)), 256))
        .withColumn("_supa_job_id", F.lit("bench"))
    )
    out = folder / f"native-{uuid.uuid4()}"
    tracked.write.option("compression", "gzip").parquet(str(out))
    client = boto3.client("s3", region_name="us-east-1")
    files = sorted(out.glob("*.parquet"))
    for file in files:
        client.upload_file(str(file), BUCKET, f"native/{out.name}/{file.name}")
    size = sum(file.stat().st_size for file in files)
    shutil.rmtree(out)
    return size


def _ours(spark: SparkSession, folder: Path, options: dict[str, str]) -> int:
    read = {"format": "parquet", "path": str(folder / "flights"), "options": options}
    content = {
        "pipeline": "bench",
        "destination": {"type": "supaflow-s3", "s3_bucket_name": BUCKET, "bucket_region": "us-east-1"},
        "tables": [{"table": "flights", "read": read, "primary_key": list(KEYS)}],
    }
    file = folder / "lake.yaml"
    file.write_text(yaml.safe_dump(content), "utf-8")
    spec = load_spec(file)
    report = run(spec, job_id=str(uuid.uuid4()), clients=Clients(spec.access), spark=lambda: spark)
    if report.status != "done":
        raise SystemExit(report.tables[0].message)
    return report.tables[0].bytes


def _measured(cases: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[tuple[float, int]]]:
    """Interleaved, so that what else the machine does falls on all alike; the first round only warms up."""
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, case in cases.items():
            clock = time.monotonic()
            size = case()
            if number:
                taken[name].append((time.monotonic() - clock, size))
    return taken


def _table(rows: int, rounds: int, taken: dict[str, list[tuple[float, int]]]) -> None:
    medians = {name: (statistics.median(s for s, _ in runs), runs[0][1]) for name, runs in taken.items()}
    base, base_size = next(iter(medians.values()))
    print(f"{rows:,} rows of 19 columns and 5 tracking columns, medians of {rounds} rounds, {os.cpu_count()} cores\n")  # noqa: T201
    print("| way | seconds | MB | time | size |\n|---|---|---|---|---|")  # noqa: T201
    for name, (seconds, size) in medians.items():
        ratios = f"{seconds / base:.2f} | {size / base_size:.2f}"
        print(f"| {name} | {seconds:.1f} | {size / 1e6:.1f} | {ratios} |")  # noqa: T201


if __name__ == "__main__":
    main()
