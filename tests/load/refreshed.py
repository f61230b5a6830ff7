"""A pipeline with one table that is refreshed, loaded and undone for real on the embedded AWS."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyiceberg.catalog import load_catalog

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify_all
from lakewriter.run.loader import load
from tests.load.lakes import BUCKET
from tests.support.local_tasks import local_session

FOLDER = "data/crm/users/"
LATEST = f"{FOLDER}_latest/files.json"


class Refreshed:
    """A pipeline with one table, ``users``, each of whose loads brings the rows given."""

    def __init__(self, folder, aws, catalog, keep_days=3, grace_minutes=0, destination=None, spark=None, **table):
        self.folder, self.aws, self.catalog = folder, aws, catalog
        self.name = "crm"
        # Only a table with partitions needs Spark itself.
        self.spark = spark or local_session(2)
        self.rules = {"refresh": {"keep_days": keep_days}, "undo": {"grace_minutes": grace_minutes}}
        self.table, self.destination = table, destination or {}
        self.write()

    def write(self, **changes):
        destination = {
            "type": "lakewriter-s3",
            "location": f"s3://{BUCKET}/data",
            "region": "us-east-1",
            "catalog": self.catalog,
            **self.destination,
        }
        table = {"table": "users", "schema": "crm", "read": {"format": "parquet", "path": "users"}, "mode": "refresh"}
        content = {
            "pipeline": self.name,
            "destination": destination,
            "tables": [table | self.table | changes],
            **self.rules,
        }
        (self.folder / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")

    def hand_over(self, name, **rules):
        """Let another pipeline write the table from now on, with these keys in its file."""
        self.name = name
        self.rules = self.rules | rules
        self.write()

    @property
    def spec(self):
        return load_spec(self.folder / "lake.yaml")

    @property
    def pipeline(self):
        return Pipeline.open(self.spec, Clients(self.spec.access))

    @property
    def state(self):
        return self.pipeline.first_control.state.read()

    def write_rows(self, **columns):
        """What the next load reads."""
        (self.folder / "users").mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), self.folder / "users" / "0.parquet")

    def try_load(self, job, **columns):
        self.write_rows(**columns)
        return self.run(job)

    def run(self, job):
        """A load of the files that are there."""
        spec = self.spec
        return load(spec, job_id=job, clients=Clients(spec.access), spark=lambda: self.spark)

    def load(self, job, **columns):
        report = self.try_load(job, **columns)
        assert report.status == "done", report.tables
        return report

    def undo(self, job, **choices):
        return Undo(self.pipeline, job, Choices("a drill"), **choices)

    def keys(self):
        """Of the data files, below the table's folder."""
        return sorted(
            key.removeprefix(FOLDER)
            for key in self.aws.objects(BUCKET)
            if key.endswith(".parquet") and "/_lakewriter/" not in f"/{key}"
        )

    @property
    def latest(self):
        """The object that names the files."""
        return json.loads(self.aws.objects(BUCKET)[LATEST])

    def glue_table(self):
        return self.aws.client("glue").get_table(DatabaseName="crm", Name="users")["Table"]

    def ids(self):
        """As readers see them: by Iceberg's current snapshot, Glue's location, or the object that names the files."""
        if self.catalog == "iceberg":
            return sorted(self.iceberg().scan().to_arrow()["id"].to_pylist())
        objects = self.aws.objects(BUCKET)
        if self.catalog == "glue":
            prefix = self.glue_table()["StorageDescriptor"]["Location"].removeprefix(f"s3://{BUCKET}/") + "/"
            keys = [key for key in objects if key.startswith(prefix)]
        else:
            keys = [uri.removeprefix(f"s3://{BUCKET}/") for uri in self.latest["files"]]
        tables = [pq.read_table(pa.BufferReader(objects[key])) for key in keys]
        return sorted(value for table in tables for value in table["id"].to_pylist())

    def iceberg(self):
        return self.open_table("users")

    def open_table(self, name):
        settings = {"s3.endpoint": self.aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        return load_catalog("own", type="glue", **settings).load_table(("crm", name))

    def differences(self):
        pipeline = self.pipeline
        return [each.message for one in verify_all(pipeline.controls, pipeline.clients) for each in one.differences]
