"""One JSON message stream to each format, side by side in one run: this job, a plain Python loop, dlt.

The plain loop uses the same libraries a user would reach for: json, csv, fastavro, pyarrow. dlt writes to a folder,
which spares it the upload; give its interpreter by --dlt, as it is no dependency of ours. It has no Avro.
"""

import argparse
import csv
import datetime
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from bench.side_by_side import BUCKET, _free_port, _point_at
from pyspark.sql import SparkSession

from job.aws import Clients
from job.dialects.lake_yaml import load_spec
from job.load import load
from job.source.session import spark_session

FORMS = {
    "CSV": {"format_type": "CSV", "flattening": "Root level flattening"},
    "JSONL": {"format_type": "JSONL", "flattening": "Root level flattening"},
    "Avro": {"format_type": "Avro", "compression_codec": {"codec": "Deflate", "compression_level": 6}},
    "Parquet": {"format_type": "Parquet", "compression_codec": "GZIP"},
}
PROPERTIES = {
    "id": {"type": "integer"},
    "email": {"type": "string"},
    "score": {"type": "number"},
    "active": {"type": "boolean"},
    "created_at": {"type": "string", "format": "date-time"},
    "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}},
    "tags": {"type": "array", "items": {"type": "string"}},
}
DLT = """
import json, sys, dlt
source, folder, form = sys.argv[1:]
@dlt.resource(name="users", max_table_nesting=0)
def users():
    with open(source, "rb") as file:
        for line in file:
            message = json.loads(line)
            if message["type"] == "RECORD":
                yield message["record"]["data"]
own = dlt.destinations.filesystem(bucket_url="file://" + folder)
line = dlt.pipeline("bench", destination=own, dataset_name="d", pipelines_dir=folder + "/p")
line.run(users(), loader_file_format=form)
"""


def main() -> None:
    """Print a Markdown table of records a second and of memory."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--records", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=1)
    arguments.add_argument("--dlt", help="a Python interpreter that has dlt")
    arguments.add_argument("--only", nargs="*", default=list(FORMS))
    arguments.add_argument("--ours-only", action="store_true")
    given = arguments.parse_args()
    folder, port = Path(tempfile.mkdtemp(prefix="lakewriter-bench-")), _free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _point_at(f"http://127.0.0.1:{port}")
        source = _source(folder, given.records)
        spark = spark_session("bench")
        print(f"{given.records:,} records, {source.stat().st_size / 1e6:.0f} MB of messages, {os.cpu_count()} cores\n")  # noqa: T201
        print("| format | way | records/s | MB written | MB of memory |\n|---|---|---|---|---|")  # noqa: T201
        for form in given.only:
            ways: dict[str, Callable[[], tuple[int, float]]] = {
                "this job": lambda form=form: _ours(spark, folder, source, form)
            }  # type: ignore[misc]
            if not given.ours_only:
                ways["plain loop"] = lambda form=form: _child("plain", source, folder, form)  # type: ignore[misc]
            if given.dlt and form != "Avro" and not given.ours_only:
                ways["dlt"] = lambda form=form: _dlt(given.dlt, source, folder, form)  # type: ignore[misc]
            for name, way in ways.items():
                _measure(form, name, way, given.records, given.rounds)
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _measure(form: str, name: str, way: Callable[[], tuple[int, float]], records: int, rounds: int) -> None:
    seconds, size, memory = [], 0, 0.0
    for _ in range(rounds):
        clock = time.monotonic()
        size, memory = way()
        seconds.append(time.monotonic() - clock)
    rate = records / statistics.median(seconds)
    print(f"| {form} | {name} | {rate:,.0f} | {size / 1e6:.1f} | {memory:,.0f} |", flush=True)  # noqa: T201


def _source(folder: Path, records: int) -> Path:
    path = folder / "messages.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(records):
            data = {
                "id": number,
                "email": f"user{number * 7919 % 1_000_003}@example.com",
                "score": number * 0.37 % 100,
                "active": number % 3 == 0,
                "created_at": f"2024-{number % 12 + 1:02d}-{number % 28 + 1:02d}T{number % 24:02d}:00:00Z",
                "address": {"street": f"{number % 500} Main Street", "city": f"City {number % 97}"},
                "tags": [f"tag{number % 11}", f"tag{number % 7}"],
            }
            own = {"stream": "users", "data": data, "emitted_at": 1_700_000_000_000 + number}
            file.write(json.dumps({"type": "RECORD", "record": own}, separators=(",", ":")) + "\n")
    return path


def _ours(spark: SparkSession, folder: Path, source: Path, form: str) -> tuple[int, float]:
    schema = {"type": "object", "properties": PROPERTIES}
    content = {
        "pipeline": "bench",
        "destination": {
            "type": "airbyte-s3", "s3_bucket_name": BUCKET, "s3_bucket_path": "bench", "s3_bucket_region": "us-east-1",
            "format": FORMS[form],
        },
        "source": {
            "messages": str(source), "catalog": {"streams": [{"stream": {"name": "users", "json_schema": schema}}]},
        },
    }  # fmt: skip
    file = folder / "lake.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
    spec = load_spec(file)
    with _Memory() as memory:
        report = load(spec, job_id=str(uuid.uuid4()), clients=Clients(spec.access), spark=lambda: spark)
    if report.status != "done":
        raise SystemExit(report.tables[0].message)
    return report.tables[0].bytes, memory.peak / 1e6


class _Memory:
    """The peak of what this process and its Python workers hold at once, looked at every tenth of a second."""

    def __enter__(self) -> "_Memory":
        self.peak, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.1):
            self.peak = max(self.peak, sum(_workers()))


def _workers() -> Iterator[int]:
    """What each Python process below this one holds of its own, and this one; the embedded server is not counted."""
    page, own = os.sysconf("SC_PAGE_SIZE"), {os.getpid()}
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda entry: int(entry.name)):
        try:
            command = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in own or int(entry.name) in own:
                own.add(int(entry.name))
                held = (entry / "statm").read_text().split()
                python = b"java" not in command.split(b"\0")[0] and b"moto" not in command
                yield (int(held[1]) - int(held[2])) * page if python else 0
        except (OSError, ValueError):
            continue


def _child(way: str, source: Path, folder: Path, form: str) -> tuple[int, float]:
    """The plain loop in a process of its own, whose memory the system tells."""
    out = folder / f"{way}-{uuid.uuid4()}"
    code = f"from bench.messages import plain; plain({str(source)!r}, {str(out)!r}, {form!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    size = out.stat().st_size
    out.unlink()
    return size, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000


def _dlt(python: str, source: Path, folder: Path, form: str) -> tuple[int, float]:
    out = folder / f"dlt-{uuid.uuid4()}"
    out.mkdir()
    command = [python, "-c", DLT, str(source), str(out), form.lower()]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    size = sum(file.stat().st_size for file in (out / "d" / "users").rglob("*") if file.is_file())
    shutil.rmtree(out)
    return size, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000


def plain(source: str, out: str, form: str) -> None:
    """What a person would write in an hour: one record at a time, then an upload."""
    writers: dict[str, Callable[[Path, Iterator[dict[str, Any]]], None]] = {
        "CSV": _plain_csv, "JSONL": _plain_jsonl, "Avro": _plain_avro, "Parquet": _plain_parquet,
    }  # fmt: skip
    writers[form](Path(out), _enveloped(Path(source)))
    boto3.client("s3", region_name="us-east-1").upload_file(out, BUCKET, f"plain/{uuid.uuid4()}")


def _enveloped(source: Path) -> Iterator[dict[str, Any]]:
    with source.open("rb") as file:
        for line in file:
            record = json.loads(line)["record"]
            yield {
                "_airbyte_raw_id": str(uuid.uuid4()),
                "_airbyte_extracted_at": record["emitted_at"],
                "_airbyte_meta": {"sync_id": 1, "changes": []},
                "_airbyte_generation_id": 0,
            } | record["data"]


def _plain_csv(out: Path, rows: Iterator[dict[str, Any]]) -> None:
    with gzip.open(out, "wt", compresslevel=6, encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        for number, row in enumerate(rows):
            if not number:
                writer.writerow(row)
            writer.writerow([json.dumps(v) if isinstance(v, dict | list) else v for v in row.values()])


def _plain_jsonl(out: Path, rows: Iterator[dict[str, Any]]) -> None:
    with gzip.open(out, "wt", compresslevel=6, encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def _plain_avro(out: Path, rows: Iterator[dict[str, Any]]) -> None:
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


def _plain_parquet(out: Path, rows: Iterator[dict[str, Any]]) -> None:
    writer, held = None, []
    for row in rows:
        row["_airbyte_meta"] = json.dumps(row["_airbyte_meta"])
        held.append(_with_micros(row))
        if len(held) == 50_000:
            table = pa.Table.from_pylist(held)
            writer = writer or pq.ParquetWriter(out, table.schema, compression="gzip")
            writer.write_table(table)
            held = []
    if held:
        table = pa.Table.from_pylist(held)
        writer = writer or pq.ParquetWriter(out, table.schema, compression="gzip")
        writer.write_table(table)
    if writer:
        writer.close()


def _with_micros(row: dict[str, Any]) -> dict[str, Any]:
    # fromisoformat takes the Z since Python 3.11.
    at = datetime.datetime.fromisoformat(row["created_at"])
    return row | {"created_at": int(at.timestamp() * 1_000_000)}


if __name__ == "__main__":
    main()
