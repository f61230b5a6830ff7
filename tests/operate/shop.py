"""A pipeline of a small shop, loaded and undone for real on the embedded AWS."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify_all
from lakewriter.run.loader import load
from tests.load.lakes import BUCKET, Lake
from tests.support.local_tasks import local_session
from tests.support.server import StrictAws

ICEBERG = {"table_format": "ICEBERG", "update_aws_glue_catalog": None, "partition_strategy": None}
FILES = {"update_aws_glue_catalog": False}
BY_DAY = {"partition_strategy": "DAY"}


class Shop:
    """A pipeline whose loads a, b and so on each bring the next two rows of ``shots``."""

    def __init__(
        self,
        folder: Path,
        aws: StrictAws,
        spark: SparkSession,
        settings: dict[str, Any],
        *,
        cursor: str | None = None,
        undo: dict[str, Any] | None = None,
        tables: tuple[str, ...] = ("shots",),
    ) -> None:
        self.lake, self.aws, self.folder, self.loaded = Lake(folder, aws, spark), aws, folder, 0
        # Only a condition on a cursor needs Spark itself.
        self.spark = spark if cursor else local_session(2)
        more = {"cursor": cursor} if cursor else {}
        entries = []
        for name in tables:
            (folder / name).mkdir()
            read = {"format": "parquet", "path": name}
            entries.append({"table": name, "schema": "public", "read": read, "primary_key": ["id"], **more})
        self.names = tables
        self.lake.write(*entries, **settings)
        content = yaml.safe_load(self.lake.file.read_text("utf-8"))
        self.lake.file.write_text(yaml.safe_dump(content | ({"undo": undo} if undo else {})), "utf-8")

    @property
    def pipeline(self):
        return Pipeline.open(self.lake.spec, Clients(self.lake.spec.access))

    @property
    def control(self):
        return self.pipeline.first_control

    def load(self, *jobs):
        for job in jobs:
            report = self.try_load(job)
            assert report.status == "done", report.tables

    def try_load(self, job, *, spec=None, more=True):
        if more:
            for name in self.names:
                rows = pa.table({"id": [self.loaded, self.loaded + 1], "text": ["x", "y"]})
                pq.write_table(rows, self.folder / name / f"{self.loaded:02}.parquet")
            self.loaded += 2
        spec = spec or self.lake.spec
        return load(spec, job_id=job, clients=Clients(spec.access), spark=lambda: self.spark)

    def undo(self, job, *, reason="a drill", through=False, tables=(), **choices):
        return Undo(self.pipeline, job, Choices(reason, **choices), tables=tables, through=through)

    def ids(self):
        """Every id in the files, as DuckDB reads them."""
        copies = self.folder / "copies"
        copies.mkdir(exist_ok=True)
        objects = self.aws.objects(BUCKET)
        keys = [key for key in objects if key.endswith(".parquet") and "_lakewriter" not in key]
        for number, key in enumerate(keys):
            (copies / f"{number}.parquet").write_bytes(objects[key])
        files = [str(copies / f"{number}.parquet") for number in range(len(keys))]
        return (
            [row[0] for row in duckdb.sql(f"SELECT id FROM read_parquet({files}) ORDER BY id").fetchall()]
            if files
            else []
        )

    def iceberg(self):
        return load_catalog(
            "own", type="glue", **{"s3.endpoint": self.aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        ).load_table(("supaflow_nyc_public", "shots"))

    def glue_partitions(self):
        answer = self.aws.client("glue").get_partitions(DatabaseName="supaflow_nyc_public", TableName="shots")
        return answer["Partitions"]

    def partitions(self):
        return sorted(each["Values"][0] for each in self.glue_partitions())

    def differences(self):
        return [
            each.message
            for load in verify_all(self.pipeline.controls, self.pipeline.clients)
            for each in load.differences
        ]
