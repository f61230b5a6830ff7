"""Ways to write Airbyte messages, each called in a process of its own: this job, and what a person would write.

The loop takes the libraries at hand, one record at a time: json, csv, fastavro, pyarrow; then it uploads its file.
"""

import csv
import datetime
import gzip
import json
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import boto3
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from bench.measure import high_water, worker_peak
from bench.sinks import BUCKET
from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.run.loader import load
from lakewriter.source.session import open_spark_session

FORMS: Final[dict[str, dict[str, Any]]] = {
    "CSV": {"format_type": "CSV", "flattening": "Root level flattening"},
    "JSONL": {"format_type": "JSONL", "flattening": "Root level flattening"},
    "Avro": {"format_type": "Avro", "compression_codec": {"codec": "Deflate", "compression_level": 6}},
    "Parquet": {"format_type": "Parquet", "compression_codec": "GZIP"},
}
PROPERTIES: Final[dict[str, Any]] = {
    "id": {"type": "integer"},
    "email": {"type": "string"},
    "score": {"type": "number"},
    "active": {"type": "boolean"},
    "created_at": {"type": "string", "format": "date-time"},
    "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}},
    "tags": {"type": "array", "items": {"type": "string"}},
}
WARM_UP: Final = 20_000
"""Lines that a Spark session has loaded before its load is timed."""
ROW_GROUP: Final = 50_000

Rows = Iterator[dict[str, Any]]


def lakewriter(source: str, form: str, server: str) -> None:
    """Prints seconds and bytes of a load, Spark being warm, and the MiB of this process and of each worker."""
    spark = open_spark_session("bench")
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder, "few.jsonl")
        with open(source, "rb") as lines:  # noqa: PTH123 - only its first lines are wanted
            few.write_bytes(b"".join(next(lines) for _ in range(WARM_UP)))
        _load(spark, few, form, server)
    with worker_peak() as peak:
        clock = time.monotonic()
        size = _load(spark, Path(source), form, server)
        seconds = time.monotonic() - clock
    print(seconds, size, high_water(os.getpid()) + sum(peak.seen.values()))  # noqa: T201


def alone(source: str, form: str, server: str) -> None:
    """Prints the seconds of a load, the MiB of this process, and those of its largest worker."""
    spark = open_spark_session("bench")
    with worker_peak() as peak:
        clock = time.monotonic()
        _load(spark, Path(source), form, server)
        seconds = time.monotonic() - clock
    print(seconds, high_water(os.getpid()), peak.mib)  # noqa: T201


def _load(spark: SparkSession, source: Path, form: str, server: str) -> int:
    """The bytes of one load into a place of its own."""
    destination = {"s3_bucket_name": BUCKET, "s3_bucket_path": str(uuid.uuid4()), "s3_bucket_region": "us-east-1"}
    schema = {"type": "object", "properties": PROPERTIES}
    stream = {"stream": {"name": "users", "json_schema": schema}, "sync_mode": "incremental"}
    content = {
        "pipeline": "bench",
        "destination": {"type": "airbyte-s3", "s3_endpoint": server, "format": FORMS[form]} | destination,
        "source": {"messages": str(source), "statuses": "none", "catalog": {"streams": [stream]}},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lake.yaml")
        file.write_text(yaml.safe_dump(content), "utf-8")
        spec = load_spec(file)
    report = load(spec, job_id=str(uuid.uuid4()), clients=Clients(spec.access), spark=lambda: spark)
    if report.status != "done":
        raise SystemExit(report.tables[0].message)
    return report.tables[0].bytes


def loop(source: str, form: str, server: str) -> None:
    """Prints seconds and bytes of the loop, and the MiB of this process."""
    writers: dict[str, Callable[[Path, Rows], None]] = {
        "CSV": _csv, "JSONL": _jsonl, "Avro": _avro, "Parquet": _parquet,
    }  # fmt: skip
    clock = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        writers[form](out, _enveloped(Path(source)))
        boto3.client("s3", endpoint_url=server).upload_file(str(out), BUCKET, f"loop/{uuid.uuid4()}")
        size = out.stat().st_size
    print(time.monotonic() - clock, size, high_water(os.getpid()))  # noqa: T201


def _enveloped(source: Path) -> Rows:
    with source.open("rb") as file:
        for line in file:
            message = json.loads(line)
            if message["type"] == "RECORD":
                yield {
                    "_airbyte_raw_id": str(uuid.uuid4()),
                    "_airbyte_extracted_at": message["record"]["emitted_at"],
                    "_airbyte_meta": {"sync_id": 1, "changes": []},
                    "_airbyte_generation_id": 0,
                } | message["record"]["data"]


def _csv(out: Path, rows: Rows) -> None:
    with gzip.open(out, "wt", compresslevel=6, encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        for number, row in enumerate(rows):
            if not number:
                writer.writerow(row)
            writer.writerow([json.dumps(v) if isinstance(v, dict | list) else v for v in row.values()])


def _jsonl(out: Path, rows: Rows) -> None:
    with gzip.open(out, "wt", compresslevel=6, encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def _avro(out: Path, rows: Rows) -> None:
    address = {"type": "record", "name": "address", "fields": [
        {"name": name, "type": ["null", "string"]} for name in ("street", "city")]}  # fmt: skip
    change = {"type": "record", "name": "change", "fields": []}
    meta = {"type": "record", "name": "meta", "fields": [
        {"name": "sync_id", "type": "long"},
        {"name": "changes", "type": {"type": "array", "items": change}}]}  # fmt: skip
    types = {
        "_airbyte_raw_id": "string", "_airbyte_extracted_at": "long", "_airbyte_meta": meta,
        "_airbyte_generation_id": "long", "id": ["null", "long"], "email": ["null", "string"],
        "score": ["null", "double"], "active": ["null", "boolean"], "created_at": ["null", "long"],
        "address": ["null", address], "tags": ["null", {"type": "array", "items": ["null", "string"]}],
    }  # fmt: skip
    fields = [{"name": name, "type": own} for name, own in types.items()]
    schema = fastavro.parse_schema({"type": "record", "name": "users", "fields": fields})
    with out.open("wb") as file:
        fastavro.writer(file, schema, map(_with_micros, rows), codec="deflate", codec_compression_level=6)


def _parquet(out: Path, rows: Rows) -> None:
    schema, held = None, []
    writer: pq.ParquetWriter | None = None
    for row in rows:
        row["_airbyte_meta"] = json.dumps(row["_airbyte_meta"])
        held.append(_with_micros(row))
        if len(held) == ROW_GROUP:
            table = pa.Table.from_pylist(held, schema=schema)
            schema = table.schema
            writer = writer or pq.ParquetWriter(out, schema, compression="gzip")
            writer.write_table(table)
            held = []
    table = pa.Table.from_pylist(held, schema=schema)
    writer = writer or pq.ParquetWriter(out, table.schema, compression="gzip")
    writer.write_table(table)
    writer.close()


def _with_micros(row: dict[str, Any]) -> dict[str, Any]:
    # fromisoformat takes the Z since Python 3.11.
    at = datetime.datetime.fromisoformat(row["created_at"])
    return row | {"created_at": int(at.timestamp() * 1_000_000)}
