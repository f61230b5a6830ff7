"""Continuous runs: batches are loads, a restart repeats and loses nothing, a backlog comes in bounded pieces."""

import json
import os
import shutil
import signal

import pytest
import yaml

from job.aws import Clients
from job.commit.control import Control
from job.commit.s3_store import S3Store
from job.naming import ControlKeys
from job.repair import begin_backfill
from tests.iceberg.tables import ICEBERG, IcebergLake
from tests.load.lakes import BUCKET, PREFIX, Lake, completes
from tests.load.materializations import Materialization, binding

pytestmark = pytest.mark.spark

SCHEMA = {"schema": {"properties": {"id": {"type": "integer"}}}}
ONE_FILE = {"options": {"maxFilesPerTrigger": "1"}}


@pytest.fixture
def wiki(tmp_path, aws, bucket, spark):
    """A binding whose source grows, one file a batch."""
    lake = Materialization(tmp_path, aws, spark)
    (tmp_path / "in").mkdir()
    entry = binding("changes", "in", primary_key=["id"], collection=SCHEMA)
    entry["read"] |= ONE_FILE
    lake.write(entry, checkpoint="checkpoint")
    return lake


def arrive(lake, *numbers):
    for number in numbers:
        lake.documents(f"in/{number}.jsonl", [{"id": number * 10 + place} for place in range(10)])


def ids(lake):
    return [row[0] for row in lake.rows("SELECT id FROM t ORDER BY id", "changes")]


def test_a_backlog_comes_in_bounded_batches_and_a_restart_goes_on(wiki):
    arrive(wiki, 0, 1, 2)
    with wiki.running() as first:
        wiki.until(2, "changes")
    arrive(wiki, 3)
    with wiki.running() as second:
        wiki.until(3, "changes")
    # Spark calls a batch again whose end it did not note before the stop.
    done = [each for each in (*first.batches, *second.batches) if each.status == "done"]
    assert [(each.batch, each.rows, each.files) for each in done] == [(number, 10, 1) for number in range(4)]
    assert ids(wiki) == list(range(40))
    assert [key[-11:] for key in wiki.data()] == [f"{number:03d}.parquet" for number in range(4)]
    status, error = second.ended
    assert (status.state, status.tables["changes"].state, error) == ("stopped", "stopped", None)
    kept = json.loads(wiki.aws.objects(BUCKET)["_lakewriter/wiki/continuous.json"])
    assert (kept["state"], kept["tables"]["changes"]["last"]["batch"]) == ("stopped", 3)


def test_a_lost_checkpoint_is_an_error_and_a_backfill_the_way_out(wiki):
    arrive(wiki, 0)
    with wiki.running():
        wiki.until(0, "changes")
    shutil.rmtree(wiki.folder / "checkpoint")
    wiki.documents("in/1.jsonl", [{"id": 10}])
    with wiki.running() as run:
        while run.stop.wait(0.2) is False:
            pass
    assert run.ended[1].code == "CHECKPOINT_LOST"
    assert ids(wiki) == list(range(10))
    begin_backfill(wiki.control("changes"), "a test")
    with wiki.running():
        wiki.until(1, "changes")
    assert sorted(wiki.data()) == [
        "changes/v0000000000/00000000000000000000.parquet",
        "changes/v0000000001/00000000000000000001.parquet",
        "changes/v0000000001/00000000000000000002.parquet",
    ]


def test_killed_then_terminated(wiki):
    """The batch in hand is completed by the next run; SIGTERM ends that one with 0."""
    arrive(wiki, 0, 1, 2)
    first = wiki.process()

    def kill(call, proceed):
        if completes(call) and first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
            return call.error(503, "SlowDown", "The caller is dead.")
        return proceed(call)

    wiki.aws.interceptors.append(kill)
    assert first.wait(180) == -signal.SIGKILL
    first.communicate()
    wiki.aws.interceptors.remove(kill)
    second = wiki.process()
    wiki.until(2, "changes")
    second.send_signal(signal.SIGTERM)
    out, _ = second.communicate(timeout=120)
    assert (second.returncode, json.loads(out)["state"]) == (0, "stopped")
    assert ids(wiki) == list(range(30))
    assert not wiki.aws.uploads(BUCKET)


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    """Two files of ten rows each, a batch each."""
    lake = Materialization(tmp_path, aws, spark)
    lake.control = lambda table_id: Lake.control(lake, table_id)
    lake.data = lambda: Lake.data(lake)
    arrive(lake, 0, 1)
    return lake


EVENTS = {"format": "json", "path": "in", "columns": "id BIGINT", "options": {"maxFilesPerTrigger": "1"}}
TOP = {"checkpoint": "checkpoint", "interval_seconds": 1}


def test_supaflow_runs_continuously(lake, aws):
    Lake.write(lake, {"table": "events", "schema": "public", "read": EVENTS})
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(TOP), "utf-8")
    schema = "supaflow_nyc_public"
    with lake.running() as run:
        lake.until(1, f"{schema}.events")
    assert [(each.status, each.rows) for each in run.batches] == [("done", 10)] * 2
    query = "SELECT _supa_job_id, min(_supa_index), max(_supa_index), count(*) FROM t GROUP BY ALL ORDER BY ALL"
    assert lake.rows(query, f"{schema}/events") == [(each.job_id, 1, 10, 10) for each in run.batches]
    assert len(aws.client("glue").get_partitions(DatabaseName=schema, TableName="events")["Partitions"]) == 2
    assert f"{PREFIX}/_lakewriter/flights/continuous.json" in aws.objects(BUCKET)


def test_iceberg_runs_continuously(lake):
    """A snapshot a batch, the rows of each partition in files of their own."""
    table = {"table": "events", "schema": "public", "read": EVENTS, "partition_by": ["bucket(2, id)"]}
    Lake.write(lake, table, **ICEBERG)
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(TOP), "utf-8")
    name = "supaflow_nyc_public.events"
    with lake.running() as run:
        lake.until(1, name)
    assert [(each.status, each.rows, each.files) for each in run.batches] == [("done", 10, 2)] * 2
    iceberg = IcebergLake(lake.folder, lake.aws, lake._spark).table("events")
    assert iceberg.properties["lakewriter.flights"] == "2"
    assert sorted(iceberg.scan().to_arrow()["id"].to_pylist()) == list(range(20))
    assert len(iceberg.inspect.files()) == 4


def test_airbyte_runs_continuously(lake):
    """Every batch is a sync of its own number."""
    form = {"type": "airbyte-s3", "s3_bucket_name": BUCKET, "s3_bucket_path": "data", "s3_bucket_region": "us-east-1"}
    destination = form | {"format": {"format_type": "JSONL", "compression": {"compression_type": "No Compression"}}}
    content = {"pipeline": "flights", "destination": destination, "tables": [{"table": "events", "read": EVENTS}]}
    lake.file.write_text(yaml.safe_dump(content | TOP), "utf-8")
    spec = lake.spec
    lake.control = lambda table_id: Control(S3Store(Clients(spec.access)), ControlKeys("data", "flights"), table_id)
    with lake.running() as run:
        lake.until(1, "events")
    assert [(each.status, each.rows) for each in run.batches] == [("done", 10)] * 2
    rows = [json.loads(line) for key, body in sorted(lake.aws.objects(BUCKET).items()) for line in body.splitlines()
            if key.endswith(".jsonl")]  # fmt: skip
    assert sorted(row["_airbyte_data"]["id"] for row in rows) == list(range(20))
    assert sorted({row["_airbyte_meta"]["sync_id"] for row in rows}) == [1, 2]
    assert lake.control("events").state.read().sync.sync_id == 2
