"""Airbyte pipelines on the embedded AWS: messages, catalogs, and what a sync left behind."""

import csv
import gzip
import io
import json
import random
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq
import yaml
from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.naming import ControlKeys
from lakewriter.operate.planning import PlannedTable, plan
from lakewriter.report import RunReport
from lakewriter.run.loader import load
from lakewriter.spec.specification import Spec
from tests.load.lakes import Lake
from tests.support.server import StrictAws

BUCKET = "acme-lake"
USERS = {
    "type": "object",
    "properties": {
        "user_id": {"type": "integer"},
        "name": {"type": "object", "properties": {"first": {"type": "string"}, "last": {"type": "string"}}},
    },
}


class SyncLake:
    """One pipeline of a test."""

    killed = Lake.killed
    cut_off = Lake.cut_off
    _wait_for_tasks = Lake._wait_for_tasks

    def __init__(self, folder: Path, aws: StrictAws, spark: SparkSession) -> None:
        self.folder, self.aws, self._spark = folder, aws, spark
        self.file = folder / "lake.yaml"

    def write(self, form: dict[str, Any], *, kind: str = "airbyte-s3", **top: Any) -> None:
        """The lake.yaml; ``form`` is the vendor's configuration but for the bucket."""
        if "source" in top:
            # Few of these messages carry statuses; tests of statuses say that they are reported.
            top["source"] = {"statuses": "none"} | top["source"]
        base = {"type": kind, "s3_bucket_name": BUCKET, "s3_bucket_path": "data", "s3_bucket_region": "us-east-1"}
        self.file.write_text(
            yaml.safe_dump({"pipeline": "p", "destination": base | form} | top, sort_keys=False), "utf-8"
        )

    def messages(self, *messages: dict[str, Any] | str, name: str = "m.jsonl") -> str:
        """A file of messages; a text is a line as it is."""
        lines = [each if isinstance(each, str) else json.dumps(each) for each in messages]
        (self.folder / name).write_text("".join(line + "\n" for line in lines), "utf-8")
        return name

    @property
    def spec(self) -> Spec:
        return load_spec(self.file)

    def load(self, job_id: str, **options: Any) -> RunReport:
        """One load in this process."""
        spec = self.spec
        return load(spec, job_id=job_id, clients=Clients(spec.access), spark=lambda: self._spark, **options)

    def plan(self) -> tuple[PlannedTable, ...]:
        """What a load would do."""
        spec = self.spec
        pipeline = Pipeline.open(spec, Clients(spec.access))
        return plan(spec, job_id=None, clients=pipeline.clients, spark=lambda: self._spark, controls=pipeline.controls)

    def control(self, table_id: str) -> Control:
        spec = self.spec
        return Control(S3Store(Clients(spec.access)), ControlKeys(spec.access.prefix, spec.pipeline), table_id)

    def data(self) -> dict[str, bytes]:
        """The data objects by key."""
        return {key: body for key, body in self.aws.objects(BUCKET).items() if "/_lakewriter/" not in key}

    def generations(self) -> dict[str, str]:
        """The generation that each data object carries."""
        s3 = self.aws.client("s3")
        heads = {key: s3.head_object(Bucket=BUCKET, Key=key)["Metadata"] for key in self.data()}
        return {key: found.get("ab-generation-id", "") for key, found in heads.items()}

    def rows(self, under: str = "data/") -> list[dict[str, Any]]:
        """The rows of all data objects, read by what did not write them."""
        return [row for key, body in self.data().items() if key.startswith(under) for row in read(key, body)]


def read(key: str, body: bytes) -> list[dict[str, Any]]:
    """The rows of one object."""
    plain = gzip.decompress(body) if key.endswith(".gz") else body
    name = key.removesuffix(".gz")
    if name.endswith(".avro"):
        records: list[Any] = list(fastavro.reader(io.BytesIO(body)))
        return records
    if name.endswith(".parquet"):
        rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(body)).to_pylist()
        return rows
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in plain.splitlines()]
    return list(csv.DictReader(io.StringIO(plain.decode(), newline="")))


def catalog(*streams: dict[str, Any]) -> dict[str, Any]:
    """A configured catalog."""
    return {"streams": list(streams)}


def stream(name: str, schema: dict[str, Any] | None = None, **settings: Any) -> dict[str, Any]:
    """A configured stream in namespace public; appended to unless it says otherwise."""
    found = {"name": name, "namespace": "public", "json_schema": schema or USERS}
    return {"stream": found, "sync_mode": "incremental", "destination_sync_mode": "append"} | settings


def record(name: str, data: Any, at: int = 1622135805000, **more: Any) -> dict[str, Any]:
    """A RECORD."""
    return {
        "type": "RECORD",
        "record": {"stream": name, "namespace": "public", "data": data, "emitted_at": at} | more,
    }


# Of a bulky record's field; 128 KiB otherwise.
csv.field_size_limit(1024 * 1024)

TWO_FILES: Final = {"target_file_mb": 1}
"""Limits by which ten bulky records fill two files."""


def bulky(number: int) -> dict[str, Any]:
    """A user whose name is long and does not compress below half."""
    return {"user_id": number, "name": {"first": random.Random(number).randbytes(110_000).hex()}}


def state(name: str, cursor: Any) -> dict[str, Any]:
    """A STATE of one stream."""
    own = {"stream_descriptor": {"name": name, "namespace": "public"}, "stream_state": {"cursor": cursor}}
    return {"type": "STATE", "state": {"type": "STREAM", "stream": own}}


def status(name: str, text: str) -> dict[str, Any]:
    """A TRACE with a stream's status."""
    own = {"stream_descriptor": {"name": name, "namespace": "public"}, "status": text}
    return {"type": "TRACE", "trace": {"type": "STREAM_STATUS", "emitted_at": 1.0, "stream_status": own}}


def failure(message: str) -> dict[str, Any]:
    """A TRACE with an error."""
    return {"type": "TRACE", "trace": {"type": "ERROR", "emitted_at": 1.0, "error": {"message": message}}}


CONNECTOR = """
import pathlib, sys
runs = pathlib.Path("runs")
number = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (number + 1))
given = pathlib.Path(sys.argv[sys.argv.index("--state") + 1]).read_text() if "--state" in sys.argv else "null"
pathlib.Path(f"given{number}").write_text(given)
sys.stdout.write(pathlib.Path(f"{number}.jsonl").read_text())
sys.exit(number < 2)
"""
"""Prints one file after the other, a run each, notes the state that it is given, and fails twice."""
