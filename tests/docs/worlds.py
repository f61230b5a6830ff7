"""What the blocks of the pages find before they run: files, buckets, loads."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.errors import SpecInvalidError
from lakewriter.local_server.server import LocalServer, find_program
from tests.docs.fences import list_fences
from tests.docs.terminal import Terminal
from tests.load.lakes import BUCKET, ROOT, Lake, completes, table
from tests.support.server import StrictAws

ORDERS: Final = "order_id,updated_at\n1,2026-01-01T10:00:00Z\n2,2026-01-02T10:00:00Z\n"
DOCUMENT: Final = {"bot": False, "meta": {"id": "a"}}
AT: Final = "2021_01_01_1609459200000_"


class World:
    """What a block may need: a folder, the embedded AWS, a Spark, and the end of what it starts."""

    def __init__(self, folder: Path, aws: StrictAws, spark: SparkSession) -> None:
        self.folder, self.aws, self.spark = folder, aws, spark

    def write(self, name: str, text: str) -> None:
        """A file in the folder, and its folders."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, "utf-8")

    def write_page_yaml(self, page: str, name: str = "lake.yaml") -> None:
        """The first lake.yaml of a page, as it is printed."""
        self.write(name, find_yaml(page))

    def make_bucket(self, name: str) -> None:
        """A bucket of the embedded AWS."""
        self.aws.client("s3").create_bucket(Bucket=name)

    def load(self, *job_ids: str) -> None:
        """Loads of the folder's lake.yaml, which are done."""
        lake = Lake(self.folder, self.aws, self.spark)
        for job_id in job_ids:
            assert lake.load(job_id).status == "done"


def find_yaml(page: str) -> str:
    """The first whole lake.yaml of a page."""
    fences = (fence for fence in list_fences() if fence.page == page and fence.language == "yaml")
    return next(fence.code for fence in fences if fence.code.startswith("pipeline:"))


def require_local() -> None:
    """Skip where no S3 server of --local can be had."""
    try:
        find_program()
    except SpecInvalidError as error:
        pytest.skip(str(error))


def data_folder(world: World) -> Terminal:
    """A folder with a table of files."""
    require_local()
    world.write("data/orders.csv", ORDERS)
    return Terminal(world.folder, elsewhere=["scripts/setup"])


def estuary_documents(world: World) -> Terminal:
    """A Flow specification and a folder of documents; Ctrl-C comes with the first file."""
    require_local()
    world.write("recentchange/1.jsonl", json.dumps(DOCUMENT) + "\n")
    (binding,) = yaml.safe_load(find_yaml("docs/quickstarts/estuary.md"))["tables"]
    endpoint = {"bucket": "my-bucket", "region": "us-east-1", "uploadIntervalInSeconds": 300,
                "awsAccessKeyId": "${env:KEY_ID}", "awsSecretAccessKey": "${env:SECRET}"}  # fmt: skip
    image = "ghcr.io/estuary/materialize-s3-parquet:v1"
    bindings = [{"source": binding["source"], "resource": binding["resource"]}]
    wiki = {"endpoint": {"connector": {"image": image, "config": endpoint}}, "bindings": bindings}
    flow = {"collections": {binding["source"]: binding["collection"]}, "materializations": {"acme/wiki": wiki}}
    world.write("flow.yaml", yaml.safe_dump(flow))
    begin = "lakewriter run"
    press = _press_ctrl_c_when_written(world.folder / "lake.yaml", "my-bucket", "recentchanges/")
    return Terminal(world.folder, beside={begin: press})


def _press_ctrl_c_when_written(lake: Path, bucket: str, prefix: str) -> Callable[[], None]:
    def wait() -> None:
        s3 = Clients(LocalServer.beside(lake).start().make_access(bucket)).s3
        while not s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("KeyCount"):
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    return lambda: threading.Thread(target=wait, daemon=True).start()


def airbyte_connection(world: World) -> Terminal:
    """Airbyte's files, and an object that its connector has left."""
    for name in ("destination.json", "configured_catalog.json", "messages.jsonl"):
        world.write(name, (ROOT / "examples" / "airbyte" / name).read_text("utf-8"))
    destination = json.loads((world.folder / "destination.json").read_text("utf-8"))
    world.aws.role(destination["role_arn"])
    world.make_bucket(destination["s3_bucket_name"])
    key = f"{destination['s3_bucket_path']}/public/users/{AT}0.avro"
    world.aws.client("s3").put_object(
        Bucket=destination["s3_bucket_name"], Key=key, Body=b"", Metadata={"ab-generation-id": "7"}
    )
    messages = (world.folder / "messages.jsonl").read_text("utf-8")
    world.write("messages", messages)
    return Terminal(world.folder, piped=messages)


def airbyte_pipeline(world: World) -> Terminal:
    """The same, with the page's lake.yaml."""
    terminal = airbyte_connection(world)
    world.write_page_yaml("docs/quickstarts/airbyte.md")
    return terminal


def supaflow_account(world: World) -> Terminal:
    """Bucket, role, secret and source of the page's lake.yaml."""
    page = find_yaml("docs/quickstarts/supaflow.md")
    world.write("lake.yaml", page)
    destination = yaml.safe_load(page)["destination"]
    world.make_bucket(destination["s3_bucket_name"])
    world.aws.role(destination["iam_role_arn"], "acme-2f61c7d0")
    world.aws.client("secretsmanager").create_secret(Name="lake/external-id", SecretString="acme-2f61c7d0")
    world.make_bucket("acme-landing")
    rows = pa.BufferOutputStream()
    pq.write_table(pa.table({"flight_id": [1, 2]}), rows)
    body = rows.getvalue().to_pybytes()
    world.aws.client("s3").put_object(Bucket="acme-landing", Key="flights/1.parquet", Body=body)
    return Terminal(world.folder)


def flights(world: World, *, text: str = "id,carrier,distance\n1,AA,10\n2,UA,20\n", **fields: Any) -> Terminal:
    """A table public.flights of a Supaflow destination, not loaded yet."""
    world.make_bucket(BUCKET)
    lake = Lake(world.folder, world.aws, world.spark)
    lake.write(table("flights", lake.csv("flights.csv", text), **fields))
    return Terminal(world.folder, words={"JOB": "first", "JOB.r2": "first.r2", "$RUN_ID": "scheduled__2026-01-01"})


def unknown_carrier(world: World) -> Terminal:
    """A table whose load fails an expectation."""
    return flights(world, text="id,carrier\n1,AA\n2,\n", expect=[{"not_null": "carrier"}])


def loaded_flights(world: World) -> Terminal:
    """A table with one load."""
    terminal = flights(world)
    world.load("first")
    return terminal


def quarantined_flights(world: World) -> Terminal:
    """A table with a row in its quarantine."""
    check = {"range": {"column": "distance", "at_least": 15}, "on_violation": "quarantine"}
    terminal = flights(world, expect=[check], on_bad_row={"action": "quarantine", "at_most": 0.5})
    world.load("first")
    return terminal


def accounts(world: World) -> Terminal:
    """A table ``accounts`` with a cursor and one load."""
    world.make_bucket(BUCKET)
    lake = Lake(world.folder, world.aws, world.spark)
    path = lake.csv("accounts.csv", "id,changed\n1,2024-01-15T00:00:00Z\n")
    lake.write(table("accounts", path, cursor="changed", columns={"changed": "timestamp"}))
    content = yaml.safe_load(lake.file.read_text("utf-8"))
    world.load("first")
    (entry,) = content["tables"]
    (spec,) = lake.spec.tables
    return Terminal(world.folder, words={entry["table"]: spec.id, "JOB": "second"})


def accounts_without_state(world: World) -> Terminal:
    """The same, whose state is gone."""
    terminal = accounts(world)
    (key,) = [key for key in world.aws.objects(BUCKET) if key.endswith("/state.json")]
    world.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    return terminal


def pending_load(world: World) -> Terminal:
    """A load that was bound and not finished."""
    terminal = accounts(world)
    lake = Lake(world.folder, world.aws, world.spark)
    lake.csv("accounts.csv", "id,changed\n2,2024-01-16T00:00:00Z\n")
    lake.cut_off("second", completes)
    return terminal


def iceberg_flights(world: World) -> Terminal:
    """An Iceberg table of six small files."""
    world.make_bucket(BUCKET)
    rows = "id\n1\n"
    world.write("flights.csv", rows)
    destination = {"type": "supaflow-s3-data-lake", "s3_bucket_name": BUCKET, "bucket_region": "us-east-1",
                   "s3_path_prefix": "data", "table_format": "ICEBERG"}  # fmt: skip
    world.write("lake.yaml", yaml.safe_dump({"pipeline": "nyc", "destination": destination,
                "tables": [table("flights", "flights.csv") | {"schema": "nyc"}]}))  # fmt: skip
    world.load(*"abcdef")
    (spec,) = Lake(world.folder, world.aws, world.spark).spec.tables
    return Terminal(world.folder, words={"nyc.flights": spec.id})


def derby(world: World) -> Terminal:
    """A database of this process in place of the page's, whose driver comes with Spark; the first lake.yaml of the page
    is about the same table."""
    require_local()
    url = f"jdbc:derby:memory:docs{world.folder.name}"
    gateway: Any = world.spark._jvm
    connection = gateway.java.sql.DriverManager.getConnection(f"{url};create=true")
    connection.createStatement().execute(
        "CREATE TABLE APP.ORDERS (ORDER_ID BIGINT NOT NULL PRIMARY KEY, UPDATED_AT TIMESTAMP NOT NULL)"
    )
    connection.close()
    return Terminal(world.folder, words={"jdbc:postgresql://db.example.com:5432/shop": url})


def estuary_bucket(world: World) -> Terminal:
    """Files that Estuary's task has left."""
    page = yaml.safe_load(find_yaml("docs/quickstarts/estuary.md"))
    del page["checkpoint"]
    page["tables"][0]["cursor"] = "seen"
    world.write("lake.yaml", yaml.safe_dump(page))
    world.make_bucket("my-bucket")
    key = "recentchanges/v0000000001/00000000000000000007.parquet"
    world.aws.client("s3").put_object(Bucket="my-bucket", Key=key, Body=b"")
    return Terminal(world.folder)


def schema_only(world: World) -> Terminal:
    """Nothing."""
    return Terminal(world.folder)
