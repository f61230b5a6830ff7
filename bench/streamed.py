"""Airbyte messages over standard input: ``lakewriter airbyte write`` and a loop in Python, in turns."""

import json
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from bench.data import ROWS_A_FILE
from bench.message_ways import FORMS, PROPERTIES
from bench.messages import ROOT, written
from bench.sinks import BUCKET, null_sink

FORMATS: Final = ("JSONL", "Parquet")

Measured = tuple[float, float]
"""Seconds from the command to its end, and to its first STATE."""


def streaming(spark: Callable[[], SparkSession], folder: Path, copies: int, rounds: int) -> list[str]:
    """The same input through a pipe, each way; what the command takes for one record is its start."""
    records = max(copies // 4, 1) * ROWS_A_FILE
    source, one = written(folder, records), written(folder, 1)
    lines = [
        f"{records:,} records of {len(PROPERTIES)} properties, {source.stat().st_size / 1e6:,.0f} MB, on standard "
        f"input, to a server that discards the data; medians of {rounds}, in turns. The start is what `airbyte write` "
        "takes for one record: Python, Spark, and a load's own requests; the loop's start is not counted.",
        "",
        "| format | the loop | `airbyte write` | its start | first STATE | times the loop | without the start |",
        "|---|---|---|---|---|---|---|",
    ]
    with null_sink() as server:
        for form in FORMATS:
            ways: dict[str, Callable[[], Measured]] = {
                "the loop": lambda form=form: _loop(source, form, server),  # type: ignore[misc]
                "the start": lambda form=form: _write(one, form, server, folder),  # type: ignore[misc]
                "write": lambda form=form: _write(source, form, server, folder),  # type: ignore[misc]
            }
            runs = {way: list[Measured]() for way in ways}
            for _ in range(rounds):
                for way, run in ways.items():
                    runs[way].append(run())
                    print(f"  {form}, {way}: {runs[way][-1][0]:.1f} s", file=sys.stderr, flush=True)  # noqa: T201
            lines.append(f"| {form} | {_compare(runs)} |")
    return lines


def _compare(runs: dict[str, list[Measured]]) -> str:
    loop, start, whole = (statistics.median(seconds for seconds, _ in runs[way]) for way in runs)
    first = statistics.median(first for _, first in runs["write"])
    times, without = loop / whole, loop / (whole - start)
    return f"{loop:.1f} s | {whole:.1f} s | {start:.1f} s | {first:.1f} s | {times:.2f} | {without:.2f}"


def _loop(source: Path, form: str, server: str) -> Measured:
    script = "import sys; from bench.message_ways import loop; loop('/dev/stdin', *sys.argv[1:])"
    with source.open("rb") as messages:
        done = subprocess.run(
            [sys.executable, "-c", script, form, server], cwd=ROOT, stdin=messages, capture_output=True, check=True
        )
    return float(done.stdout.split()[-3]), 0.0


def _write(source: Path, form: str, server: str, folder: Path) -> Measured:
    place = {"s3_bucket_name": BUCKET, "s3_bucket_path": str(uuid.uuid4()), "s3_bucket_region": "us-east-1"}
    gzip = {"compression": {"compression_type": "GZIP"}} if form == "JSONL" else {}
    config = _put(folder / "config.json", place | {"s3_endpoint": server, "format": FORMS[form] | gzip})
    stream = {"name": "users", "json_schema": {"type": "object", "properties": PROPERTIES}}
    configured = {"stream": stream, "sync_mode": "incremental", "destination_sync_mode": "append"}
    catalog = _put(folder / "catalog.json", {"streams": [configured]})
    command = [sys.executable, "-m", "lakewriter", "airbyte", "write", "--config", config, "--catalog", catalog]
    clock, first = time.monotonic(), 0.0
    # Through cat: a source's output is a pipe.
    with (
        subprocess.Popen(["cat", str(source)], stdout=subprocess.PIPE) as messages,
        subprocess.Popen(
            [*command, "--statuses", "none"], cwd=ROOT, stdin=messages.stdout, stdout=subprocess.PIPE
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            is_state = json.loads(line)["type"] == "STATE"
            first = first or (time.monotonic() - clock if is_state else 0.0)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return time.monotonic() - clock, first


def _put(path: Path, content: dict[str, Any]) -> str:
    path.write_text(json.dumps(content), "utf-8")
    return str(path)
