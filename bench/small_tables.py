"""Measure a load of many small tables, ``parallel_tables`` at a time, against a sink that keeps nothing of the uploads.

CPU is that of each kind of process, in ms a table, and beside it that of its requests: as many of the SDK, measured in
the same process with the same sink.

PYTHONPATH=job:. python -m bench.small_tables --tables 100 500 --parallel 2 32 auto
"""

import argparse
import logging
import sys
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any, Final

import boto3
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from bench.processes import measure_by_kind
from bench.sinks import BUCKET, credentials, null_sink
from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.report import RunReport
from lakewriter.run.load import run
from lakewriter.source.session import open_spark_session

ROWS: Final = 1000


def make_sources(folder: Path, form: str, tables: int) -> None:
    """A file of so many rows for each table."""
    rows = pa.table(
        {
            "id": range(ROWS),
            "name": [f"customer {number}" for number in range(ROWS)],
            "amount": [number / 100 for number in range(ROWS)],
        }
    )
    for number in range(tables):
        path = folder / f"t{number:04d}.{form}"
        if form == "parquet":
            pq.write_table(rows, path)
        else:
            pyarrow.csv.write_csv(rows, path)


def load_all(spark: SparkSession, folder: Path, server: str, form: str, tables: int, parallel: str) -> RunReport:
    """Load all tables once, as a pipeline of its own."""
    options: dict[str, Any] = {} if form == "parquet" else {"options": {"header": "true", "inferSchema": "true"}}
    content: dict[str, Any] = {
        "pipeline": f"bench-{uuid.uuid4().hex[:8]}",
        "destination": {
            "type": "lakewriter-s3", "location": f"s3://{BUCKET}/data", "region": "us-east-1", "endpoint": server,
        },
        "tables": [
            {
                "table": f"t{number:04d}",
                "read": {"format": form, "path": str(folder / f"t{number:04d}.{form}"), **options},
            }
            for number in range(tables)
        ],
    }  # fmt: skip
    if parallel != "auto":
        content["limits"] = {"parallel_tables": int(parallel)}
    (folder / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    spec = load_spec(folder / "lake.yaml")
    report = run(spec, job_id="j", clients=Clients(spec.access), spark=lambda: spark)
    if report.status != "done":
        raise SystemExit(next(result.message for result in report.tables if result.message))
    return report


def measure_request(server: str, times: int = 500) -> float:
    """CPU seconds that one request takes, of the one who asks and of the sink; half put a record, half read it."""
    client = boto3.client("s3", endpoint_url=server)
    before = measure_by_kind()
    for _ in range(times // 2):
        client.put_object(Bucket=BUCKET, Key="record", Body=bytes(2000))
        client.get_object(Bucket=BUCKET, Key="record")["Body"].read()
    after = measure_by_kind()
    return sum(after[kind] - before[kind] for kind in ("driver", "sink")) / times


def measure_load(spark: SparkSession, folder: Path, server: str, form: str, tables: int, parallel: str) -> str:
    """One load, and a line that tells of it."""
    request, before, began = measure_request(server), measure_by_kind(), time.monotonic()
    report = load_all(spark, folder, server, form, tables, parallel)
    seconds, after = time.monotonic() - began, measure_by_kind()
    taken = {kind: 1000 * (after[kind] - before[kind]) / tables for kind in after}
    requests = sum(Counter(report.requests).values()) / tables
    parts = ", ".join(f"{kind} {ms:.0f}" for kind, ms in taken.items())
    asked, whole = 1000 * requests * request, sum(taken.values())
    return (
        f"{form} {tables} tables, parallel {parallel}: {seconds:.1f} s, {requests:.1f} requests a table; "
        f"CPU in ms a table: {parts}, together {whole:.0f}, of which requests {asked:.0f}, the rest {whole - asked:.0f}"
    )


def main() -> None:
    """Print a line for each way, in turns; the first round is a warm-up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, nargs="+", default=[100])
    parser.add_argument("--parallel", nargs="+", default=["2", "32", "auto"])
    parser.add_argument("--format", choices=["parquet", "csv"], default="parquet")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    logging.getLogger("botocore").setLevel(logging.ERROR)
    credentials()
    spark = open_spark_session("bench")
    with tempfile.TemporaryDirectory() as name, null_sink() as server:
        folder = Path(name)
        make_sources(folder, given.format, max(given.tables))
        load_all(spark, folder, server, given.format, 8, "2")
        for number in range(given.rounds):
            for tables in given.tables:
                for parallel in given.parallel:
                    line = measure_load(spark, folder, server, given.format, tables, parallel)
                    sys.stdout.write(f"{number} {line}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    main()
