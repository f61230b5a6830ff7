"""Materializations on the embedded AWS: a lake.yaml with bindings in a folder, and the documents they write."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.errors import LakeError
from lakewriter.naming import ControlKeys
from lakewriter.operate.planning import PlannedTable, plan
from lakewriter.operate.upkeep import BETWEEN_BATCHES
from lakewriter.records.state import ANEW
from lakewriter.run.continuous import run_continuously
from lakewriter.run.continuous_metrics import MinuteMetrics
from lakewriter.run.continuous_status import BatchMetrics, RunStatus
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec
from tests.load.lakes import BUCKET, ROOT, Lake
from tests.support.narrow import need

DESTINATION = {
    "type": "estuary-s3-parquet",
    "bucket": BUCKET,
    "region": "us-east-1",
    "uploadIntervalInSeconds": 1,
}


class Materialization(Lake):
    """One pipeline of a test; its tables lie at the root of the bucket."""

    def write(self, *tables: dict[str, Any], **top: Any) -> None:
        """The lake.yaml; ``top`` is laid over it."""
        content = {"pipeline": "wiki", "destination": DESTINATION, "tables": list(tables)}
        self.file.write_text(yaml.safe_dump(content | top), "utf-8")

    def documents(self, name: str, documents: Iterable[Any]) -> None:
        """A file of documents, one in each line, that appears whole."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("".join(json.dumps(each) + "\n" for each in documents), "utf-8")
        hidden.rename(path)

    def control(self, table_id: str) -> Control:
        spec = self.spec
        return Control(S3Store(Clients(spec.access)), ControlKeys("", spec.pipeline), table_id)

    def data(self) -> dict[str, bytes]:
        return {key: body for key, body in self.aws.objects(BUCKET).items() if not key.startswith("_lakewriter/")}

    def planned(self) -> tuple[PlannedTable, ...]:
        """What a load would do."""
        spec, spark = self.spec, self._spark
        controls = {table.id: self.control(table.id) for table in spec.tables}
        return plan(spec, job_id=None, clients=Clients(spec.access), spark=lambda: spark, controls=controls)

    @contextmanager
    def running(self) -> Iterator["Running"]:
        """A continuous run in this process, stopped and asked for its end when the block ends."""
        run = Running(self.spec, self._spark)
        thread = threading.Thread(target=run.run)
        thread.start()
        try:
            yield run
        finally:
            run.stop.set()
            thread.join()

    def process(self) -> "subprocess.Popen[str]":
        """A continuous run in a process group of its own."""
        command = [sys.executable, "-m", "lakewriter", "run", str(self.file), "--continuous", "--json"]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdout=pipe, stderr=pipe, text=True)

    def until(self, batch: int, table_id: str, seconds: float = 270) -> None:
        """Wait until the table's state has this batch."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = [body for key, body in self.aws.objects(BUCKET).items() if key.endswith(f"/{table_id}/state.json")]
            last = json.loads(found[0])["batch"] if found else None
            # A mark of a backfill is no batch.
            if last is not None and last["query"] != ANEW and last["number"] >= batch:
                return
            time.sleep(0.2)
        raise AssertionError(f"{table_id} did not reach batch {batch} in {seconds} s")


class UnderPrefix(Materialization):
    """One whose tables lie where those of a data lake do."""

    control = Lake.control
    data = Lake.data


class Running:
    """A continuous run; ``batches`` and ``minutes`` are its metrics, ``steps`` what it said, ``ended`` its end."""

    def __init__(self, spec: Spec, spark: SparkSession) -> None:
        self.spec, self._spark = spec, spark
        self.stop = threading.Event()
        self.batches: list[BatchMetrics] = []
        self.minutes: list[MinuteMetrics] = []
        self.steps: list[str] = []
        self.ended: tuple[RunStatus, LakeError | None]

    def run(self) -> None:
        clients = Clients(self.spec.access)
        spark = self._spark
        self.ended = run_continuously(
            self.spec, clients=clients, spark=lambda: spark, watch=self, stop=self.stop, upkeep=BETWEEN_BATCHES
        )

    def step(self, table: TableSpec, step: str, detail: str) -> None:
        self.steps.append(f"{step}: {detail}")

    def batch(self, table: TableSpec, metrics: BatchMetrics) -> None:
        self.batches.append(metrics)

    def minute(self, metrics: list[MinuteMetrics]) -> None:
        self.minutes += metrics


@contextmanager
def drained(process: "subprocess.Popen[str]") -> Iterator[None]:
    """The process's streams, closed at the end."""
    try:
        yield
    finally:
        for stream in (process.stdout, process.stderr):
            need(stream).close()


def binding(path: str, documents: str, **more: Any) -> dict[str, Any]:
    """A binding of JSON documents in text files."""
    read = {"format": "text", "path": documents}
    return {"source": f"acmeCo/{path}", "resource": {"pathPrefix": path}, "read": read, "documents": "value"} | more


def logged(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    """What a run logs, as it comes; lines of Java are none of it."""
    assert process.stderr is not None
    return (json.loads(line) for line in process.stderr if line.startswith("{"))
