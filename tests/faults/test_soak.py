"""A thousand batches of a continuous run in each layout, with kills: every row once, and memory that stays."""

import json
import os
import random
import signal
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.iceberg.tables import ICEBERG, IcebergLake
from tests.load.lakes import BUCKET, Lake
from tests.load.materializations import Materialization, UnderPrefix, binding, drained, logged
from tests.support import sessions

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(14_400)]

BATCHES = int(os.environ.get("LAKEWRITER_SOAK", "1000"))
SEED = os.environ.get("LAKEWRITER_FAULTS_SEED", "1")
KILLS = 3
SETTLED = 100
"""Batches after which a process holds as much as it will."""
GROWTH = 1.1
ROWS = 100
READ = {"format": "json", "path": "in", "columns": "id BIGINT", "options": {"maxFilesPerTrigger": "1"}}
TOP = {"checkpoint": "checkpoint", "interval_seconds": 1}
SCHEMA = {"schema": {"properties": {"id": {"type": "integer"}}}}


def write_supaflow(lake: Materialization) -> None:
    Lake.write(lake, {"table": "events", "schema": "public", "read": READ})
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(TOP), "utf-8")


def write_iceberg(lake: Materialization) -> None:
    Lake.write(lake, {"table": "events", "schema": "public", "read": READ}, **ICEBERG)
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(TOP), "utf-8")


def write_airbyte(lake: Materialization) -> None:
    form = {"type": "airbyte-s3", "s3_bucket_name": BUCKET, "s3_bucket_path": "data", "s3_bucket_region": "us-east-1"}
    destination = form | {"format": {"format_type": "JSONL", "compression": {"compression_type": "No Compression"}}}
    content = {"pipeline": "flights", "destination": destination, "tables": [{"table": "events", "read": READ}]}
    lake.file.write_text(yaml.safe_dump(content | TOP), "utf-8")


def write_estuary(lake: Materialization) -> None:
    entry = binding("changes", "in", primary_key=["id"], collection=SCHEMA)
    entry["read"] |= {"options": READ["options"]}
    lake.write(entry, checkpoint="checkpoint")


def read_parquet(lake: Materialization) -> list[int]:
    found = [body for key, body in lake.data().items() if key.endswith(".parquet")]
    return [number for body in found for number in read_ids(lake, body)]


def read_ids(lake: Materialization, body: bytes) -> list[int]:
    file = lake.folder / "one.parquet"
    file.write_bytes(body)
    numbers: list[int] = pq.read_table(file, columns=["id"])["id"].to_pylist()
    return numbers


def read_iceberg(lake: Materialization) -> list[int]:
    numbers: list[int] = IcebergLake(lake.folder, lake.aws, lake._spark).scan("events")["id"].to_pylist()
    return numbers


def read_airbyte(lake: Materialization) -> list[int]:
    found = [body for key, body in lake.aws.objects(BUCKET).items() if key.endswith(".jsonl")]
    return [json.loads(line)["_airbyte_data"]["id"] for body in found for line in body.splitlines()]


LAYOUTS: dict[str, tuple[Callable[[Any], None], Callable[[Any], list[int]]]] = {
    "supaflow-parquet": (write_supaflow, read_parquet),
    "iceberg": (write_iceberg, read_iceberg),
    "airbyte-append": (write_airbyte, read_airbyte),
    "estuary": (write_estuary, read_parquet),
}


@dataclass
class Life:
    """A process until it is killed or stopped: what was held after each batch, in bytes by kind of process."""

    held: list[dict[str, int]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def grown(self, kind: str) -> float | None:
        """The most held by the last batches for each byte that was held once the process had settled."""
        values = [each.get(kind, 0) for each in self.held[SETTLED:]]
        if len(values) < SETTLED:
            return None
        part = len(values) // 3
        return max(values[-part:]) / max(values[:part])


def live(lake: Materialization, *, batches: int, ends: signal.Signals) -> Life:
    """Run so many batches, then end the process."""
    process, life = lake.process(), Life()
    with drained(process):
        for line in logged(process):
            if line["step"] in ("restarting", "failed"):
                raise AssertionError(line)
            if line["step"] == "batch" and line["status"] == "done":
                life.held.append(measure_memory(process.pid))
                life.seconds.append(line["seconds"])
            if len(life.seconds) >= batches:
                break
        if ends is signal.SIGKILL:
            time.sleep(random.Random(f"{SEED}/{batches}").uniform(0, 3))
            sessions.kill(process.pid)
            process.wait()
        else:
            process.send_signal(ends)
            assert process.wait(300) == 0
    return life


def measure_memory(session: int) -> dict[str, int]:
    """Bytes that the driver, the JVM and Spark's Python workers hold."""
    held: dict[str, int] = {}
    for pid in sessions.members(session):
        try:
            name = Path(f"/proc/{pid}/comm").read_text()
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        kind = "driver" if pid == session else "jvm" if "java" in name else "workers"
        held[kind] = held.get(kind, 0) + pages * os.sysconf("SC_PAGE_SIZE")
    return held


@pytest.mark.parametrize("layout", LAYOUTS)
def test_soak(layout, tmp_path, aws, bucket, spark):
    lake = (Materialization if layout == "estuary" else UnderPrefix)(tmp_path, aws, spark)
    write, read = LAYOUTS[layout]
    for number in range(BATCHES):
        lake.documents(f"in/{number:06d}.jsonl", [{"id": number * ROWS + place} for place in range(ROWS)])
    write(lake)
    calls: list[str] = []
    aws.observers.append(lambda call, answer: calls.append(call.action))
    # The last life is the longest one: what grows, grows in it.
    lengths = [max(1, BATCHES // 20)] * KILLS
    lives = [live(lake, batches=each, ends=signal.SIGKILL) for each in lengths]
    done = sum(len(each.seconds) for each in lives)
    lives.append(live(lake, batches=BATCHES - done - KILLS, ends=signal.SIGTERM))
    # A batch that was committed when its process died is not told again.
    finish(lake, read)
    assert sorted(read(lake)) == list(range(BATCHES * ROWS))
    assert not aws.uploads(BUCKET)
    seconds = [each for life in lives for each in life.seconds]
    grown = {kind: lives[-1].grown(kind) for kind in ("driver", "jvm", "workers")}
    figures = {
        "layout": layout,
        "batches": BATCHES,
        "kills": KILLS,
        "seconds, median": round(statistics.median(seconds), 2),
        "seconds, 99 of 100": round(statistics.quantiles(seconds, n=100)[98], 2),
        "requests a batch": round(len(calls) / BATCHES, 1),
        "MiB at the end": {kind: round(size / 2**20) for kind, size in lives[-1].held[-1].items()},
        "grown": {kind: value and round(value, 3) for kind, value in grown.items()},
    }
    print(f"figures: {json.dumps(figures)}")
    assert all(value is None or value < GROWTH for value in grown.values()), figures


def finish(lake: Materialization, read: Callable[[Any], list[int]]) -> None:
    """What is left of the input, by one run more."""
    if len(set(read(lake))) < BATCHES * ROWS:
        process = lake.process()
        end = time.monotonic() + 600
        while len(set(read(lake))) < BATCHES * ROWS:
            assert time.monotonic() < end, "the rest does not come"
            time.sleep(2)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
        assert process.returncode == 0
