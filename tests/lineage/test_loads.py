"""The events of whole loads, for each destination and source: what a table is made from, and what became of it."""

import json

import pytest
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.run.load import run
from lakewriter.run.loader import load as run_load
from lakewriter.run.stop import Stop
from lakewriter.spec.canary import make_canary
from tests.iceberg.tables import IcebergLake
from tests.lineage.events import shorten
from tests.load.lakes import BUCKET, Lake, completes, table
from tests.load.materializations import Materialization, binding
from tests.load.syncs import SyncLake, catalog, record, stream

pytestmark = pytest.mark.spark

ORDERS = "Order ID,amount\n1,1.5\n2,2.5\n"
SCHEMA = "supaflow_nyc_public"
OUT = f"s3://{BUCKET} data/production/{SCHEMA}"
GLUE = "arn:aws:glue:us-east-1:123456789012 table"


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return Lake(tmp_path, aws, spark)


def of(lake, *names):
    """The names of the sources' files, as datasets."""
    return [f"file {lake.folder}/{name}" for name in names]


def test_parquet_in_glue(lake, follow):
    lake.write(table("orders", lake.csv("orders.csv", ORDERS)))
    events = follow(lake, lambda: lake.load("j1"))
    load, begun, done, loaded = map(shorten, events)
    columns = {
        "Order_ID": "int",
        "amount": "double",
        "_supa_synced": "timestamp",
        "_supa_deleted": "boolean",
        "_supa_index": "bigint",
        "_supa_id": "string",
        "_supa_job_id": "string",
        # Of Glue's partitions, not of the files.
        "_supa_partition": "string",
    }
    assert load == {"type": "START", "job": "flights", "in": [], "out": []}
    base = {"job": "flights.supaflow_nyc_public.orders", "in": of(lake, "orders.csv"), "out": [f"{OUT}/orders"]}
    link = {"symlink": f"{GLUE}/{SCHEMA}/orders"}
    assert begun == base | link | {"type": "START"}
    assert done == base | link | {
        "type": "COMPLETE",
        "columns": columns,
        # A name is normalised; what the load adds comes from nowhere.
        "from": {"Order_ID": [("Order ID", "IDENTITY")], "amount": [("amount", "IDENTITY")]},
        "rows": 2,
        "files": 1,
    }
    assert loaded == load | {"type": "COMPLETE"}
    first, _, last, _ = events
    assert last["run"]["facets"]["parent"] == {
        "_producer": first["producer"],
        "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/ParentRunFacet.json#/$defs/ParentRunFacet",
        "run": {"runId": first["run"]["runId"], "facets": {}},
        "job": {"namespace": "shop-dev", "name": "flights", "facets": {}},
    }
    source = last["inputs"][0]["facets"]["schema"]["fields"]
    assert [(field["name"], field["type"]) for field in source] == [("Order ID", "int"), ("amount", "double")]
    assert last["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    assert last["run"]["facets"]["processing_engine"]["version"] == "4.1.1"


def test_runs_are_told_apart(lake, follow):
    """START and COMPLETE are of one run; another table, and another attempt at the same load, are others."""
    names = ("a", "b")
    lake.write(*(table(name, lake.csv(f"{name}.csv", ORDERS)) for name in names))
    events = follow(lake, lambda: lake.load("j1"))
    runs: dict[str, list[tuple[str, str]]] = {}
    for event in events:
        runs.setdefault(event["job"]["name"], []).append((event["run"]["runId"], event["eventType"]))
    assert sorted(runs) == ["flights", f"flights.{SCHEMA}.a", f"flights.{SCHEMA}.b"]
    for told in runs.values():
        (first, start), (second, end) = told
        assert (first == second, start, end) == (True, "START", "COMPLETE")
    assert len({told[0][0] for told in runs.values()}) == 3
    # The same job id again writes nothing, and says nothing.
    assert follow(lake, lambda: lake.load("j1")) == []
    again = follow(lake, lambda: lake.load("j2"))
    assert not {event["run"]["runId"] for event in again} & {run for told in runs.values() for run, _ in told}


@pytest.mark.exhaustive
def test_load_that_dies_and_is_run_again(lake, follow):
    """The run that died says nothing more; the attempt that finishes its intent loads nothing itself."""
    lake.write(table("orders", lake.csv("orders.csv", ORDERS)))
    events = follow(lake, lambda: lake.killed("j1", completes))
    assert [event["eventType"] for event in events] == ["START", "START"]
    assert follow(lake, lambda: lake.load("j1")) == []


def test_time_of_the_schedule(lake, follow):
    lake.write(table("orders", lake.csv("orders.csv", ORDERS)))

    def load():
        done = CliRunner().invoke(
            main, ["run", str(lake.file), "--quiet", "--scheduled-at", "2026-01-31T07:00:00+01:00"]
        )
        assert done.exit_code == 0, done.output

    events = follow(lake, load)
    times = [event["run"]["facets"]["nominalTime"]["nominalStartTime"] for event in events]
    assert times == ["2026-01-31T07:00:00.000+01:00"] * 4


def test_table_that_fails(lake, follow):
    lake.write(
        table("orders", lake.csv("orders.csv", ORDERS)),
        {"table": "gone", "schema": "public", "read": {"format": "csv", "path": "gone.csv"}},
    )
    events = [shorten(event) for event in follow(lake, lambda: lake.load("j1"))]
    (failed,) = [event for event in events if event["job"].endswith(".gone") and event["type"] != "START"]
    path = lake.folder / "gone.csv"
    error = f"SOURCE_FAILED: table '{SCHEMA}.gone': there is no '{path}'. Did you mean '{lake.folder / 'orders.csv'}'?"
    assert (failed["type"], failed["in"], failed["error"]) == ("FAIL", of(lake, "gone.csv"), error)
    assert events[-1] == {"type": "FAIL", "job": "flights", "in": [], "out": [], "error": error}


def test_password_in_a_url_does_not_leave(lake, follow):
    url = "jdbc:postgresql://me:hush@127.0.0.1:1/shop"
    read = {"format": "jdbc", "options": {"url": url, "dbtable": "orders", "user": "me", "password": "hush"}}
    lake.write({"table": "orders", "schema": "public", "read": read})
    events = follow(lake, lambda: lake.load("j1"))
    assert "hush" not in json.dumps(events)
    assert [shorten(event)["in"] for event in events[1:3]] == [["postgres://127.0.0.1:1 shop.public.orders"]] * 2
    assert [event["eventType"] for event in events] == ["START", "START", "FAIL", "FAIL"]


def test_load_that_is_stopped(lake, follow):
    lake.write(table("orders", lake.csv("orders.csv", ORDERS)), table("next", lake.csv("next.csv", ORDERS)))
    stop = Stop()

    def progress(table, step, detail):
        if step == "writing":
            stop.ask("SIGTERM")

    def load():
        assert lake.load("j1", progress=progress, stop=stop).stopped == "SIGTERM"

    ends = [(event["eventType"], event["job"]["name"]) for event in follow(lake, load) if event["eventType"] != "START"]
    assert ("ABORT", f"flights.{SCHEMA}.orders") in ends
    assert ends[-1] == ("ABORT", "flights")
    assert {kind for kind, _ in ends} == {"ABORT"}


def test_sql_has_several_inputs_and_no_fields(lake, follow):
    read = {
        "sql": "SELECT o.amount FROM o JOIN u USING (amount)",
        "views": {
            name: {"format": "csv", "path": lake.csv(f"{name}.csv", "amount\n1\n"), "options": {"header": "true"}}
            for name in ("o", "u")
        },
    }
    lake.write({"table": "orders", "schema": "public", "read": read, "columns": {"amount": "int"}})
    done = shorten(follow(lake, lambda: lake.load("j1"))[2])
    assert (done["type"], done["in"]) == ("COMPLETE", of(lake, "o.csv", "u.csv"))
    assert done["columns"]["amount"] == "int"
    assert "from" not in done


def test_target_that_fails_is_a_note(lake, follow):
    lake.write(table("orders", lake.csv("orders.csv", ORDERS)))
    reports = []
    to = str(lake.folder / "gone" / "events.jsonl")
    assert follow(lake, lambda: reports.append(lake.load("j1")), to=to) == []
    (report,) = reports
    assert (report.status, report.tables[0].rows) == ("done", 2)
    assert report.notes == (
        f"lineage.to: 4 OpenLineage events were not sent to {to!r}: No such file or directory. The load is not "
        "affected.",
    )


def test_off_unless_the_file_has_it(lake, follow):
    lake.write(table("orders", lake.csv("orders.csv", ORDERS)))
    assert lake.spec.lineage is None
    lake.load("j1")
    assert not (lake.folder / "events.jsonl").exists()
    assert follow(lake, lambda: None) == []
    assert lake.spec.lineage is not None
    # The canary's table is nobody's.
    assert make_canary(lake.spec).lineage is None


def test_iceberg_in_glue(tmp_path, aws, bucket, spark, follow):
    lake = IcebergLake(tmp_path, aws, spark)
    lake.write(table("orders", lake.csv("orders.csv", ORDERS)))
    done = shorten(follow(lake, lambda: lake.load("j1"))[2])
    assert done["out"] == [f"{OUT}/orders"]
    assert (done["symlink"], done["storage"]) == (f"{GLUE}/{SCHEMA}/orders", "iceberg")
    (snapshot,) = lake.table("orders").snapshots()
    assert done["version"] == str(snapshot.snapshot_id)
    assert done["columns"]["Order_ID"] == "int"
    assert done["from"]["Order_ID"] == [("Order ID", "IDENTITY")]


@pytest.mark.parametrize("format_", ["parquet", "avro", "csv", "jsonl"])
def test_files_without_a_vendor(lake, follow, format_):
    lake.write(
        table("orders", lake.csv("orders.csv", ORDERS)),
        type="lakewriter-s3", location=f"s3://{BUCKET}/lake", region="us-east-1", format=format_,
        s3_bucket_name=None, bucket_region=None, s3_path_prefix=None, update_aws_glue_catalog=None,
        partition_strategy=None, destination_prefix=None,
    )  # fmt: skip

    def load():
        spec = lake.spec
        report = run_load(spec, job_id="j1", clients=Clients(spec.access), spark=lambda: lake._spark)
        assert report.status == "done"

    done = shorten(follow(lake, load)[2])
    assert done["out"] == [f"s3://{BUCKET} lake/public/orders"]
    text = format_ in ("csv", "jsonl")
    assert done["columns"] == {
        "Order_ID": "string" if text else "int",
        "amount": "string" if text else "double",
        "_loaded_at": "string" if text else "timestamp",
        "_load_id": "string",
    }
    assert done["from"] == {"Order_ID": [("Order ID", "IDENTITY")], "amount": [("amount", "IDENTITY")]}
    assert "symlink" not in done


FORMATS = [
    # the vendor's format, the columns of a record, and where they come from
    (
        {"format_type": "Avro", "compression_codec": {"codec": "no compression"}},
        {"user_id": [("user_id", "IDENTITY")], "name": [("name", "IDENTITY")]},
    ),
    (
        {
            "format_type": "CSV",
            "flattening": "Root level flattening",
            "compression": {"compression_type": "No Compression"},
        },
        {"user_id": [("user_id", "IDENTITY")], "name": [("name", "IDENTITY")]},
    ),
    # One column holds the whole record.
    ({"format_type": "CSV", "compression": {"compression_type": "No Compression"}}, None),
]


@pytest.mark.parametrize(("format_", "origins"), FORMATS)
def test_streams_of_messages(tmp_path, aws, bucket, spark, follow, format_, origins):
    lake = SyncLake(tmp_path, aws, spark)
    name = lake.messages(record("users", {"user_id": 1, "name": {"first": "A"}}))
    lake.write({"format": format_}, source={"messages": name, "catalog": catalog(stream("users"))})
    events = follow(lake, lambda: lake.load("j1"))
    done = shorten(events[2])
    assert (done["type"], done["job"], done["rows"]) == ("COMPLETE", "p.public.users", 1)
    assert done["in"] == ["airbyte://p public.users", f"file {tmp_path}/m.jsonl"]
    assert done.get("from") == (origins and {
        column: [pair for pair in pairs for _ in done["in"]] for column, pairs in origins.items()
    })  # fmt: skip


def test_stream_that_is_not_complete(tmp_path, aws, bucket, spark, follow):
    """It has not begun: its failure is a run of its own."""
    lake = SyncLake(tmp_path, aws, spark)
    name = lake.messages(record("users", {"user_id": 1}))
    source = {"messages": name, "catalog": catalog(stream("users")), "statuses": "reported"}
    lake.write({"format": FORMATS[0][0]}, source=source)
    events = [shorten(event) for event in follow(lake, lambda: lake.load("j1"))]
    assert [(event["type"], event["job"]) for event in events] == [
        ("START", "p"), ("START", "p.public.users"), ("FAIL", "p.public.users"), ("FAIL", "p"),
    ]  # fmt: skip
    assert "SOURCE_FAILED: stream 'users' is not complete" in events[2]["error"]


def test_documents(tmp_path, aws, bucket, spark, follow):
    lake = Materialization(tmp_path, aws, spark)
    lake.documents("in/1.jsonl", [{"id": 1, "at": {"city": "Oslo"}}])
    lake.write(binding("changes", "in", primary_key=["id"]))

    def load():
        spec = lake.spec
        run(spec, job_id="j1", clients=Clients(spec.access), spark=lambda: spark)

    done = shorten(follow(lake, load)[2])
    assert (done["in"], done["out"]) == (of(lake, "in"), [f"s3://{BUCKET} changes"])
    assert done["from"]["id"] == [("value.id", "TRANSFORMATION")]
    assert done["from"]["at/city"] == [("value.at.city", "TRANSFORMATION")]


def test_continuous_run_is_one_run(tmp_path, aws, bucket, spark, follow):
    lake = Materialization(tmp_path, aws, spark)
    lake.write(binding("changes", "in", primary_key=["id"],
                       collection={"schema": {"properties": {"id": {"type": "integer"}}}}),
               checkpoint="checkpoint")  # fmt: skip
    lake.documents("in/1.jsonl", [{"id": 1}])

    def load():
        with lake.running():
            lake.until(0, "changes")
            lake.documents("in/2.jsonl", [{"id": 2}, {"id": 3}])
            lake.until(1, "changes")

    events = follow(lake, load)
    assert len({event["run"]["runId"] for event in events}) == 1
    short = [shorten(event) for event in events]
    # The second batch came within a minute of the first one.
    assert [(event["type"], event.get("rows")) for event in short] == [
        ("START", None), ("RUNNING", 1), ("COMPLETE", 3),
    ]  # fmt: skip
    assert short[2]["from"] == {"id": [("value.id", "TRANSFORMATION")]}
    assert events[0]["job"]["facets"]["jobType"]["processingType"] == "STREAMING"
