"""Loads of three kinds, made once and put back for every case: in Glue, as an Iceberg table, in the bucket alone."""

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from moto.glue.models import glue_backends
from moto.s3.models import FakeKey, s3_backends
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control, open_control
from lakewriter.naming import LOAD_METADATA, ControlKeys
from lakewriter.operate.row_counts import Counting
from lakewriter.operate.verification import Verified, verify
from lakewriter.run.loader import load
from lakewriter.spec.specification import Spec
from tests.load.lakes import BUCKET, Lake
from tests.load.syncs import SyncLake, catalog, record, state, stream
from tests.support.local_tasks import local_session
from tests.support.server import StrictAws

ACCOUNT: Final = "123456789012"
GLUE, ICEBERG, STREAM = "glue", "iceberg", "stream"
SHOTS: Final = {
    "table": "shots",
    "schema": "public",
    "read": {"format": "parquet", "path": "shots"},
    "primary_key": ["id"],
}


class Loaded:
    """One pipeline with the loads ``a`` and ``b`` of one table."""

    def __init__(self, aws: StrictAws, lake: Lake | SyncLake) -> None:
        self.aws, self.lake = aws, lake
        for job_id in "ab":
            assert load(self.spec, job_id=job_id, clients=self.clients, spark=lambda: local_session(2)).status == "done"
        (self.table_id,) = self.controls
        self.first = self.read(self.report_key("a"))

    @cached_property
    def spec(self) -> Spec:
        return self.lake.spec

    @cached_property
    def clients(self) -> Clients:
        return Clients(self.spec.access)

    @cached_property
    def controls(self) -> dict[str, Control]:
        spec = self.spec
        return {table.id: open_control(spec, table, S3Store(self.clients)) for table in spec.tables}

    @property
    def keys(self) -> ControlKeys:
        return ControlKeys(self.spec.access.prefix, self.spec.pipeline)

    def report_key(self, job_id: str) -> str:
        return self.keys.report(job_id, self.table_id)

    @property
    def state_key(self) -> str:
        return self.keys.state(self.table_id)

    @property
    def intent_key(self) -> str:
        """Of load a."""
        return self.keys.intent("a", self.first["attempt"], self.table_id)

    @property
    def file(self) -> str:
        """The first file of load a."""
        return str(self.first["keys"][0])

    def read(self, key: str) -> Any:
        return json.loads(self.aws.objects(BUCKET)[key])

    def change(self, key: str, **fields: Any) -> None:
        """Other fields in a control object."""
        self.put(key, json.dumps(self.read(key) | fields).encode())

    def put(self, key: str, body: bytes, *, load: str | None = None) -> None:
        """An object as somebody puts it there, with the metadata of a load."""
        metadata = {} if load is None else {LOAD_METADATA: load}
        self.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body, Metadata=metadata)

    @property
    def load_of_a(self) -> str:
        return f"{self.spec.pipeline}/a/{self.first['attempt']}"

    def verify(self, job_id: str = "a", *, rows: bool = False) -> Verified:
        """What ``verify`` finds."""
        return verify(self.controls, job_id, self.clients, Counting.of(self.spec) if rows else None)

    def iceberg(self) -> Table:
        """The table as PyIceberg finds it by itself."""
        return load_catalog(
            "own", type="glue", **{"s3.endpoint": self.aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        ).load_table(("supaflow_ice_public", "shots"))


def make(aws: StrictAws, folder: Path) -> dict[str, Loaded]:
    """The three pipelines, each loaded twice."""
    aws.client("s3").create_bucket(Bucket=BUCKET)
    found = {}
    iceberg = {"table_format": "ICEBERG", "update_aws_glue_catalog": None, "partition_strategy": None}
    for kind, settings in (
        (GLUE, {}),
        (ICEBERG, iceberg | {"s3_path_prefix": "data/ice", "destination_prefix": "ice"}),
    ):
        (folder / kind / "shots").mkdir(parents=True)
        for half in (0, 1):
            rows = pa.table({"id": [half * 2, half * 2 + 1], "text": ["x", "y"]})
            pq.write_table(rows, folder / kind / "shots" / f"{half}.parquet")
        lake = Lake(folder / kind, aws, local_session(2))
        lake.write(SHOTS, **settings)
        found[kind] = Loaded(aws, lake)
    found[STREAM] = Loaded(aws, _stream(aws, folder / STREAM))
    return found


def _stream(aws: StrictAws, folder: Path) -> SyncLake:
    folder.mkdir()
    lake = SyncLake(folder, aws, local_session(1))
    path = lake.messages(*(record("users", {"user_id": number}) for number in range(3)), state("users", 3))
    source = {"messages": path, "catalog": catalog(stream("users"))}
    lake.write({"format": {"format_type": "JSONL"}, "s3_bucket_path": "messages"}, source=source)
    return lake


@contextmanager
def put_back() -> Iterator[None]:
    """Whatever is done to objects and to Glue's tables meanwhile is undone at the end."""
    bucket, glue = s3_backends[ACCOUNT]["aws"].buckets[BUCKET], glue_backends[ACCOUNT]["us-east-1"]
    objects, databases = bucket.keys, copy.deepcopy(glue.databases)
    bucket.keys = type(objects)()
    for key in list(objects):
        bucket.keys[key] = objects[key]
    # What is deleted is closed, and could not be put back.
    with patch.object(FakeKey, "dispose", lambda *_, **__: None):
        try:
            yield
        finally:
            bucket.keys, glue.databases = objects, databases


def compact(table: Table) -> None:
    """Every file of the table written anew, with the same rows, as Iceberg's engines do it."""
    files = [task.file for task in table.scan().plan_files()]
    written = _dataframe_to_data_files(table.metadata, table.scan().to_arrow(), table.io)
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as change:
        for file in files:
            change.delete_data_file(file)
        for file in written:
            change.append_data_file(file)
