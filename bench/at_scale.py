"""A day of many tables, and one load of many files, on the product's own code without Spark; see docs/benchmarks.md.

PYTHONPATH=job:. python -m bench.at_scale tables --tables 10000 --loads 24
PYTHONPATH=job:. python -m bench.at_scale files --files 50000
"""

import argparse
import ctypes
import gc
import hashlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from bench.simulated_lake import SimulatedLake, price
from lakewriter.cli.status_view import read_states
from lakewriter.commit.pipeline import Pipeline
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.verification import verify
from lakewriter.receipt import Part, Receipt
from lakewriter.run import table_staging
from lakewriter.run.loader import load
from lakewriter.spec.specification import MIB, Spec
from lakewriter.staging.returned import Packer, Returned
from lakewriter.staging.task import TaskPlan
from tests.simulation.bucket import Upload
from tests.simulation.simulated import SimulatedClients
from tests.simulation.source import Session, Sources
from tests.simulation.stand_ins import installed, running

HOUR: Final = 3600.0
FILE_BYTES: Final = 200 * MIB
PART_BYTES: Final = 8 * MIB
FILES_A_TASK: Final = 100
_PART_ETAG: Final = f'"{hashlib.md5(b".", usedforsecurity=False).hexdigest()}"'


def make_spec(tables: int, at_once: int) -> Spec:
    """A pipeline of so many Glue tables."""
    content = {
        "pipeline": "p",
        "destination": {
            "type": "lakewriter-s3", "location": "s3://lake/data", "region": "us-east-1", "catalog": "glue",
        },
        "limits": {"parallel_tables": at_once},
        "tables": [
            {"table": f"t{n:05d}", "schema": "s",
             "read": {"format": "csv", "path": "x.csv", "columns": "id BIGINT, nonce BIGINT, name STRING"}}
            for n in range(tables)
        ],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lake.yaml"
        file.write_text(json.dumps(content), "utf-8")
        spec = load_spec(file)
    # A file of these is one part: threads of its upload would have nothing to do.
    return spec.model_copy(update={"limits": spec.limits.model_copy(update={"upload_parallelism": 1})})


class Meter:
    """Prints what each act takes."""

    def __init__(self, lake: SimulatedLake, spec: Spec) -> None:
        self.lake, self.spec = lake, spec
        self.total = Counter[str]()

    def measure(self, name: str, act: Callable[[SimulatedClients], Any]) -> Any:
        """Do it in a process of its own; the lake's own memory is taken off the driver's."""
        self.lake.network.forget()
        _reset_peak()
        busy = time.process_time()
        answer, seconds = self.lake.run(self.spec.access, act)
        busy, peak = time.process_time() - busy, _read_status("VmHWM")
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        made, tables = self.lake.network.requests, len(self.spec.tables)
        driver, tasks = made["driver"], made["tasks"]
        for each in (driver, tasks):
            self.total.update(each)
        say(
            f"{name:22} {seconds:8.1f} s on the clock, {busy:7.1f} s of CPU, driver {driver.total() / tables:7.2f} and "
            f"tasks {tasks.total() / tables:5.2f} requests a table, ${price(driver):.4f} + ${price(tasks):.4f}, "
            f"peak {peak:,.0f} MiB, {_read_status('VmRSS'):,.0f} stay with the lake"
        )
        say(f"    driver {_describe(driver)}; tasks {_describe(tasks)}")
        return answer


def run_tables(tables: int, loads: int, at_once: int) -> None:
    """Loads hourly, then what is asked of them, then a load a month later that sweeps their records."""
    say(f"{_read_status('VmRSS'):,.0f} MiB before lake.yaml is read")
    busy = time.process_time()
    spec, lake, sources = make_spec(tables, at_once), SimulatedLake(), Sources(random.Random(0))
    say(f"{_read_status('VmRSS'):,.0f} MiB with lake.yaml, {time.process_time() - busy:.1f} s of CPU")
    meter = Meter(lake, spec)

    def load_all(job_id: str) -> None:
        report: Any = meter.measure(
            f"load {job_id}",
            lambda clients: load(spec, job_id=job_id, clients=clients, spark=_session(sources, job_id)),
        )
        assert {table.status for table in report.tables} == {"done"}

    with installed(), running(lake.simulation):
        for number in range(loads):
            lake.wait_until(number * HOUR)
            load_all(f"h{number:02d}")
        say(f"{loads} loads: {meter.total.total():,} requests, ${price(meter.total):.2f}: {_describe(meter.total)}")
        meter.measure("status", lambda clients: read_states(Pipeline.open(spec, clients).controls))
        last = f"h{loads - 1:02d}"
        verified = meter.measure(
            f"verify {last}", lambda clients: verify(Pipeline.open(spec, clients).controls, last, clients)
        )
        assert not verified.differences, verified.differences[:3]
        # Records of loads are kept for thirty days.
        lake.wait_until(40 * 24 * HOUR)
        load_all("later, with a sweep")


def run_files(files: int) -> None:
    """One load of a table of so many files."""
    say(f"{_read_status('VmRSS'):,.0f} MiB before lake.yaml is read")
    spec, lake, sources = make_spec(1, 1), SimulatedLake(), Sources(random.Random(0))
    meter = Meter(lake, spec)

    def stage(_feed: object, plan: TaskPlan, _teller: object = None) -> Returned:
        """Stands in for the tasks: uploads that are staged, counted and not timed, and their receipts."""
        texts: list[str] = []
        # Thousands of uploads have the same parts.
        parts = dict.fromkeys(range(1, FILE_BYTES // PART_BYTES + 1), (_PART_ETAG, b"."))
        tasks = lake.network.requests["tasks"]

        def write(key: str, body: bytes) -> None:
            tasks["PutObject"] += 1
            lake.bucket.put(key, body, {})

        for task in range(-(-files // FILES_A_TASK)):
            packer = Packer(plan.spill, write)
            own = range(task * FILES_A_TASK, min(files, (task + 1) * FILES_A_TASK))
            texts += packer.pack(_make_receipt(lake, plan, task, seq, parts) for seq in own)
        tasks["CreateMultipartUpload"] += files
        tasks["UploadPart"] += files * len(parts)
        return Returned.parse(texts)

    with installed(), running(lake.simulation), patch.object(table_staging, "stage", stage):
        report: Any = meter.measure(
            f"{files:,} files",
            lambda clients: load(spec, job_id="j", clients=clients, spark=_session(sources, "j")),
        )
    assert report.tables[0].files == files
    say(f"{meter.total.total():,} requests, ${price(meter.total):.2f}")


def _make_receipt(
    lake: SimulatedLake, plan: TaskPlan, task: int, seq: int, parts: dict[int, tuple[str, bytes]]
) -> Receipt:
    key = plan.names.object_key(seq)
    upload_id = lake.bucket.begin(key, {"lakewriter-load": plan.load})
    lake.bucket.uploads[upload_id] = Upload(key, {"lakewriter-load": plan.load}, seq, parts)
    return Receipt(
        bucket="lake", key=key, upload_id=upload_id, parts=tuple(Part(number, _PART_ETAG) for number in parts),
        checksum_algorithm=None, size=FILE_BYTES, rows=1_000_000, row_groups=3, partition=task, seq=seq, first_index=0,
        engine="pyarrow", requests={"POST": 1, "PUT": len(parts)},
    )  # fmt: skip


def _session(sources: Sources, job_id: str) -> Any:
    return Session(sources, "p", job_id, "p")


def _describe(requests: Counter[str]) -> str:
    return ", ".join(f"{operation} {count:,}" for operation, count in requests.most_common())


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", "ascii")


def _read_status(name: str) -> float:
    """In MiB."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def say(text: str) -> None:
    """Print a line at once: a day of ten thousand tables takes half an hour."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """One of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["tables", "files"])
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--loads", type=int, default=24)
    parser.add_argument("--at-once", type=int, default=32, help="parallel_tables")
    parser.add_argument("--files", type=int, default=50_000)
    given = parser.parse_args()
    if given.what == "tables":
        run_tables(given.tables, given.loads, given.at_once)
    else:
        run_files(given.files)


if __name__ == "__main__":
    main()
