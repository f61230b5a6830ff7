"""Pipelines on the embedded AWS: a lake.yaml in a folder, loads of it, and what they left behind."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError
from lakewriter.naming import ControlKeys
from lakewriter.report import RunReport
from lakewriter.run.load import run
from lakewriter.spec.specification import Spec
from tests.faults.process import Process
from tests.support.call import Call
from tests.support.server import StrictAws

ROOT = Path(__file__).parents[2]
BUCKET = "acme-lake"
PREFIX = "data/production"


def read_quarantine(aws: StrictAws, table: str = "") -> list[dict[str, Any]]:
    """The rows of the quarantine of a table, or of all."""
    files = {key: body for key, body in aws.objects(BUCKET).items() if f"{table}__quarantine/" in key}
    return [row for _, body in sorted(files.items()) for row in pq.read_table(pa.BufferReader(body)).to_pylist()]


class Lake:
    """One pipeline of a test, its sources under ``folder``."""

    def __init__(self, folder: Path, aws: StrictAws, spark: SparkSession) -> None:
        self.folder, self.aws, self._spark = folder, aws, spark
        self.file = folder / "lake.yaml"

    def write(self, *tables: dict[str, Any], **destination: Any) -> None:
        """The lake.yaml; ``destination`` is laid over a Parquet destination with Glue."""
        base = {
            "type": "supaflow-s3-data-lake",
            "s3_bucket_name": BUCKET,
            "bucket_region": "us-east-1",
            "s3_path_prefix": PREFIX,
            "update_aws_glue_catalog": True,
            "partition_strategy": "SYNC_ID",
            "destination_prefix": "nyc",
        }
        merged = {key: value for key, value in (base | destination).items() if value is not None}
        content = {"pipeline": "flights", "destination": merged, "tables": list(tables)}
        self.file.write_text(yaml.safe_dump(content), "utf-8")

    def csv(self, name: str, text: str) -> str:
        """A CSV file among the sources."""
        (self.folder / name).write_text(text, "utf-8")
        return name

    @property
    def spec(self) -> Spec:
        return load_spec(self.file)

    def load(self, job_id: str, **options: Any) -> RunReport:
        """One load in this process."""
        spec = self.spec
        options = {"clients": Clients(spec.access)} | options
        return run(spec, job_id=job_id, spark=lambda: self._spark, **options)

    def control(self, table_id: str) -> Control:
        spec = self.spec
        return Control(S3Store(Clients(spec.access)), ControlKeys(PREFIX, spec.pipeline), table_id)

    def data(self) -> dict[str, bytes]:
        """The data objects, by key without the prefix."""
        found = self.aws.objects(BUCKET).items()
        return {key.removeprefix(f"{PREFIX}/"): body for key, body in found if "/_lakewriter/" not in key}

    def rows(self, query: str, table: str) -> list[tuple[Any, ...]]:
        """``query`` by DuckDB over ``t``, the written files of ``{schema}/{table}``."""
        copies = self.folder / "copies"
        for key, body in self.data().items():
            (copies / key).parent.mkdir(parents=True, exist_ok=True)
            (copies / key).write_bytes(body)
        files = [str(copies / key) for key in self.data() if key.startswith(f"{table}/")]
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone='UTC'")
            connection.execute(
                f"CREATE VIEW t AS SELECT * FROM read_parquet({files!r}, union_by_name=true, filename=true)"
            )
            return connection.execute(query).fetchall()

    def killed(self, job_id: str, match: Callable[[Call], bool], *, after: int = 0) -> int:
        """A load in a process of its own, killed by the matching call after ``after`` others; neither that call nor
        any that comes after it is applied."""
        with Process(self.file, job_id, self.aws.url).killed_at(match, after=after) as process:
            return process.wait()

    def cut_off(self, job_id: str, match: Callable[[Call], bool], *, after: int = 0) -> None:
        """A load in this process that AWS refuses everything from the matching call on, after ``after`` others.

        What it leaves is what a killed one leaves, without the seconds a process takes to start.
        """
        seen: list[Call] = []

        def refuse(call: Call, proceed: Callable[[Call], Any]) -> Any:
            if len(seen) <= after and match(call):
                seen.append(call)
            return proceed(call) if len(seen) <= after else call.denied()

        self.aws.interceptors.append(refuse)
        try:
            assert self.load(job_id).status == "failed"
        except LakeError:
            # Its outcome could not be written either.
            pass
        finally:
            self._wait_for_tasks()
            self.aws.interceptors.remove(refuse)
        assert len(seen) > after

    def _wait_for_tasks(self, seconds: float = 30) -> None:
        """A failed job's other tasks outlive it for a moment; in a process of its own they would have died with it."""
        tracker, end = self._spark.sparkContext._jsc.sc().statusTracker(), time.monotonic() + seconds
        while any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
            assert time.monotonic() < end, "tasks of a failed job are still running"
            time.sleep(0.02)


def table(name: str, path: str, **fields: Any) -> dict[str, Any]:
    """An entry for a CSV file with a header, in schema public."""
    read = {"format": "csv", "path": path, "options": {"header": "true", "inferSchema": "true"}}
    return {"table": name, "schema": "public", "read": read} | fields


def completes(call: Call) -> bool:
    """CompleteMultipartUpload."""
    return call.method == "POST" and "uploadId" in call.query


def creates_upload(call: Call) -> bool:
    """CreateMultipartUpload."""
    return call.method == "POST" and "uploads" in call.query


def uploads_part(call: Call) -> bool:
    """UploadPart."""
    return call.method == "PUT" and "partNumber" in call.query


def writes(ending: str) -> Callable[[Call], bool]:
    """A PutObject of the control object with this ending."""
    return lambda call: call.method == "PUT" and call.key.endswith(ending)


def calls(action: str) -> Callable[[Call], bool]:
    """A call of this action."""
    return lambda call: call.action == action


def arrow(**columns: Any) -> pa.Table:
    """A small table."""
    return pa.table(columns)
