"""Airbyte messages to each format: this job, a loop with the libraries at hand, dlt; and inputs that are long.

Each way is a process of its own, so that its memory is its own, and prints three numbers at its end.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from bench.data import ROWS_A_FILE
from bench.message_ways import FORMS, PROPERTIES
from bench.sinks import BUCKET, null_sink, real_server

SparkFactory = Callable[[], SparkSession]

ROOT: Final = Path(__file__).resolve().parents[1]
DLT_FORMATS: Final = {"CSV": "csv", "JSONL": "jsonl", "Parquet": "parquet"}
STATE_EVERY: Final = 10_000
LONGER: Final = 10


def formats(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """The same input to each format, each way."""
    records = _few(copies)
    source = written(folder, records)
    lines = [
        f"{records:,} records of {len(PROPERTIES)} properties, {source.stat().st_size / 1e6:,.0f} MB, to SeaweedFS on "
        "the same machine. MiB is the sum of the peaks of all Python processes, without Spark's Java. Ways outside "
        "Spark ran one round; dlt writes no Avro.",
        "",
        "| format | way | seconds | records a second | MB | MiB |",
        "|---|---|---|---|---|---|",
    ]
    with real_server(folder / "server") as server:
        for form in FORMS:
            ways = {"Lakewriter": [_printed(form, _way("lakewriter", source, form, server)) for _ in range(rounds)]}
            ways["a loop in Python"] = [_printed(form, _way("loop", source, form, server))]
            if form in DLT_FORMATS:
                ways["dlt"] = [_printed(form, _dlt(source, DLT_FORMATS[form], server))]
            for way, runs in ways.items():
                seconds, size, mib = (statistics.median(column) for column in zip(*runs, strict=True))
                numbers = f"{seconds:.1f} | {records / seconds:,.0f} | {size / 1e6:.1f} | {mib:,.0f}"
                lines.append(f"| {form} | {way} | {numbers} |")
    return lines


def lengths(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """An input, and one that is much longer: what a process holds must stay."""
    lines = [
        f"To a server that discards the data, with a STATE every {STATE_EVERY:,} records; one round each. The driver's "
        "MiB is that of Python, without Spark's Java.",
        "",
        "| records | format | seconds | records a second | MiB of the driver | MiB of a worker |",
        "|---|---|---|---|---|---|",
    ]
    for records in (_few(copies), LONGER * _few(copies)):
        source = written(folder, records)
        for form in ("JSONL", "Parquet"):
            with null_sink() as server:
                seconds, driver, worker = _printed(f"{records:,} to {form}", _way("alone", source, form, server))
            numbers = f"{seconds:.1f} | {records / seconds:,.0f} | {driver:,.0f} | {worker:,.0f}"
            lines.append(f"| {records:,} | {form} | {numbers} |")
        source.unlink()
    return lines


def make_user(number: int) -> dict[str, Any]:
    """Return the data of one record."""
    return {
        "id": number,
        "email": f"user{number * 7919 % 1_000_003}@example.com",
        "score": number * 0.37 % 100,
        "active": number % 3 == 0,
        "created_at": f"2024-{number % 12 + 1:02d}-{number % 28 + 1:02d}T{number % 24:02d}:00:00Z",
        "address": {"street": f"{number % 500} Main Street", "city": f"City {number % 97}"},
        "tags": [f"tag{number % 11}", f"tag{number % 7}"],
    }


def written(folder: Path, records: int) -> Path:
    """The input: records of one stream, with a STATE now and then and at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{records}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(records):
            record = {"stream": "users", "data": make_user(number), "emitted_at": 1_700_000_000_000 + number}
            file.write(json.dumps({"type": "RECORD", "record": record}, separators=(",", ":")) + "\n")
            if (number + 1) % STATE_EVERY == 0 or number + 1 == records:
                own = {"stream_descriptor": {"name": "users"}, "stream_state": {"id": number}}
                file.write(json.dumps({"type": "STATE", "state": {"type": "STREAM", "stream": own}}) + "\n")
    return path


def _few(copies: int) -> int:
    return max(copies // 4, 1) * ROWS_A_FILE


def _way(name: str, source: Path, form: str, server: str) -> list[str]:
    script = f"import sys; from bench.message_ways import {name}; {name}(*sys.argv[1:])"
    return [sys.executable, "-c", script, str(source), form, server]


def _dlt(source: Path, form: str, server: str) -> list[str]:
    requirements, script = str(ROOT / "bench" / "requirements-dlt.txt"), str(ROOT / "bench" / "dlt_messages.py")
    uv = [str(Path(sys.executable).parent / "uv"), "run", "--quiet", "--no-project", "--with-requirements"]
    return [*uv, requirements, "python", script, str(source), form, server, BUCKET]


def _printed(what: str, command: list[str]) -> tuple[float, float, float]:
    """The three numbers at the end of what a command prints, of which the first are its seconds."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr[-3000:]}")
    first, second, third = map(float, done.stdout.split()[-3:])
    print(f"  messages, {what}: {first:.1f} s", file=sys.stderr, flush=True)  # noqa: T201
    return first, second, third
