"""Continuous runs: batches are loads, a restart repeats and loses nothing, a backlog comes in bounded pieces."""

import json
import os
import shutil
import signal
import threading
import time
from typing import Any

import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.resets import begin_backfill
from lakewriter.errors import SourceFailedError
from lakewriter.naming import ControlKeys
from lakewriter.operate.upkeep import BETWEEN_BATCHES
from lakewriter.receipt import Batch
from lakewriter.run import continuous_table
from lakewriter.run.continuous import run_continuously
from lakewriter.run.kinds import MicroBatch
from lakewriter.run.loader import load
from lakewriter.run.stop import Stopped
from lakewriter.source import streams
from lakewriter.source.feed import open_feed
from lakewriter.source.stream_checkpoint import read_offsets
from tests.iceberg.tables import ICEBERG, IcebergLake
from tests.load.lakes import BUCKET, PREFIX, Lake, completes, read_quarantine
from tests.load.materializations import Materialization, Running, UnderPrefix, binding
from tests.support import sessions

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


@pytest.mark.exhaustive
def test_small_batches_wait_for_more(wiki):
    """Whose interval may grow; the run stops in the middle of a wait, and nothing is lost."""
    text = yaml.safe_load(wiki.file.read_text("utf-8")) | {"interval": {"least_seconds": 1, "most_seconds": 300}}
    wiki.file.write_text(yaml.safe_dump(text), "utf-8")
    arrive(wiki, 0)
    with wiki.running() as run:
        wiki.until(0, "changes")
        # The interval after the first small batch is two seconds, after the second four.
        began = time.monotonic()
        arrive(wiki, 1)
        wiki.until(1, "changes")
        arrive(wiki, 2)
        wiki.until(2, "changes")
        assert time.monotonic() - began > 3
    status, error = run.ended
    assert error is None
    table = status.tables["changes"]
    assert (table.interval_seconds, table.failures, table.state) == (8.0, 0, "stopped")
    assert table.files_a_day is not None
    assert ids(wiki) == list(range(30))


def test_what_a_schema_does_not_name_is_noted_once(wiki):
    wiki.documents("in/0.jsonl", [{"id": 1, "vip": True, "_meta": {"op": "c"}}])
    with wiki.running() as run:
        wiki.until(0, "changes")
        wiki.documents("in/1.jsonl", [{"id": 2, "vip": True}, {"id": 3, "vip": False, "age": 7, "gone": None}])
        wiki.until(1, "changes")
    notes = [step for step in run.steps if step.startswith("note")]
    assert notes == [
        "note: values of 'vip' are left out: the table has no column for them",
        "note: values of 'age' are left out: the table has no column for them",
    ]
    # A batch that found nothing new is known to be fresh from then on.
    assert run.ended[0].tables["changes"].fresh_at is not None
    assert [each.undeclared for each in run.batches] == [{"vip": 1}, {"vip": 2, "age": 1}]
    (last,) = run.minutes
    assert (last.rows, last.batches, last.failures, last.state) == (3, 2, 0, "stopped")
    assert last.freshness_seconds < 60


def test_a_signal_while_spark_starts_ends_the_run(wiki):
    def start():
        raise Stopped("SIGTERM")

    watch, stop = Running(wiki.spec, wiki._spark), threading.Event()
    clients = Clients(wiki.spec.access)
    status, error = run_continuously(
        wiki.spec, clients=clients, spark=start, watch=watch, stop=stop, upkeep=BETWEEN_BATCHES
    )
    assert (status.state, status.tables["changes"].failures, error) == ("stopped", 0, None)


def test_a_single_load_says_which_options_it_does_not_follow(wiki):
    arrive(wiki, 0)
    (table,) = wiki.load("a").tables
    notes = [note for note in table.notes if "without effect in a single load" in note]
    assert ["'maxFilesPerTrigger'" in note for note in notes] == [True]


def test_a_backlog_comes_in_bounded_batches_and_a_restart_goes_on(wiki):
    """What cannot be cleared away ends nothing, and a file that arrives with an old time is read."""

    def keep(call, proceed):
        prefix = call.query.get("prefix", "")
        if "/loads/stream-" not in prefix or not prefix.endswith("-"):
            return proceed(call)
        refused.append(prefix)
        return call.denied()

    refused: list[str] = []
    wiki.aws.interceptors.append(keep)
    arrive(wiki, 0, 1, 2)
    with wiki.running() as first:
        wiki.until(2, "changes")
    assert refused
    wiki.aws.interceptors.remove(keep)
    arrive(wiki, 3)
    month_ago = time.time() - 30 * 86400
    os.utime(wiki.folder / "in/3.jsonl", (month_ago, month_ago))
    with wiki.running() as second:
        wiki.until(3, "changes")
    # Spark calls a batch again whose end it did not note before the stop.
    done = [each for each in (*first.batches, *second.batches) if each.status == "done"]
    assert [(each.batch, each.rows, each.files) for each in done] == [(number, 10, 1) for number in range(4)]
    assert ids(wiki) == list(range(40))
    assert [key[-11:] for key in wiki.data()] == [f"{number:03d}.parquet" for number in range(4)]
    last, error = second.ended
    assert (last.state, last.tables["changes"].state, error) == ("stopped", "stopped", None)
    kept = status(wiki)
    assert (kept["state"], kept["tables"]["changes"]["last"]["batch"]) == ("stopped", 3)


def test_a_backlog_has_as_many_tasks_as_its_input_needs(tmp_path, aws, bucket, spark, monkeypatch):
    """Of four files at once, each of half of what one task takes."""
    monkeypatch.setattr(streams, "TASK_BYTES", 20)
    lake = Materialization(tmp_path, aws, spark)
    for number in range(4):
        lake.documents(f"in/{number}.jsonl", [{"id": number}])
    # Else Spark packs them into one partition.
    packed = spark.newSession()
    packed.conf.set("spark.sql.files.maxPartitionBytes", "10")
    lake._spark = packed
    entry = binding("changes", "in", primary_key=["id"], collection=SCHEMA)
    lake.write(entry, checkpoint="checkpoint")
    with lake.running() as run:
        lake.until(0, "changes")
    assert [(each.rows, each.files) for each in run.batches if each.status == "done"] == [(4, 2)]


def test_bad_documents_are_in_the_quarantine_with_their_file(wiki, monkeypatch):
    """Ten of them in a batch whatever their share; one more and the table ends, and its message shows one."""
    monkeypatch.setattr(continuous_table, "restart_pause", lambda restarts: 0.05)
    lake = wiki
    entry = binding("changes", "in", primary_key=["id"], collection=SCHEMA, on_bad_row="quarantine")
    entry["read"] |= ONE_FILE
    lake.write(entry, checkpoint="checkpoint")
    lake.documents("in/0.jsonl", [{"id": 0}, *({"id": f"x{number}"} for number in range(9)), [1], {"id": 1}])
    with lake.running() as run:
        lake.until(0, "changes")
        assert lake.rows("SELECT id FROM t ORDER BY id", "changes") == [(0,), (1,)]
        lake.documents("in/1.jsonl", [{"id": f"x{number}"} for number in range(11)])
        until(lambda: any("failed: SOURCE_FAILED" in step for step in run.steps))
    (metrics,) = [each for each in run.batches if each.status == "done"]
    assert (metrics.rows, metrics.rows_set_aside) == (2, 10)
    assert "11 of 11 rows cannot be loaded" in str(run.ended[1])
    found = read_quarantine(lake.aws)
    assert [each["_lake_source"].rpartition("/")[2] for each in found] == ["0.jsonl"] * 10
    assert json.loads(found[0]["_lake_row"]) == {"value": '{"id": "x0"}'}


def test_a_bad_document_that_ends_a_table_is_shown(wiki):
    wiki.documents("in/0.jsonl", [{"id": 0}, {"id": "x", "name": "the one"}])
    with wiki.running() as run:
        until(lambda: any("failed" in step for step in run.steps))
    assert 'The document is {"id": "x", "name": "the one"}.' in str(run.ended[1])


OFFSETS = [
    # a file of Spark's offset log, what it counts
    ('v1\n{"batchWatermarkMs":0}\n{"changes":{"0":12,"1":5}}', [{"changes/0": 12, "changes/1": 5}]),
    ('v1\n{"batchWatermarkMs":0}\n{"a":{"0":1}}\n{"a":{"0":2},"b":{"3":4}}', [{"a/0": 1}, {"a/0": 2, "b/3": 4}]),
    ('v1\n{"changes":{"0":3}}', [{"changes/0": 3}]),
    ('v1\n{"batchWatermarkMs":0}\n{"logOffset":3}', [{}]),
    ('v1\n{"batchWatermarkMs":0}\n7', [{}]),
    ('v1\n{"batchWatermarkMs":0}\n-', [{}]),
]  # fmt: skip


@pytest.mark.parametrize(("log", "offsets"), OFFSETS)
def test_offsets_count_rows(log, offsets):
    assert read_offsets(log.encode()) == offsets


def test_a_copy_of_the_checkpoint_that_is_overtaken_while_it_stages_is_lost(wiki, spark):
    """Both plan batch 0 under the same number, with other rows, and the other one commits it meanwhile."""
    spec = wiki.spec
    arrive(wiki, 0)

    def load_batch(offsets, progress=lambda *_: None):
        batch = MicroBatch(Batch("q1", 0, offsets), None, open_feed)
        job_id, clients = batch.batch.job_id, Clients(spec.access)
        report = load(spec, job_id=job_id, clients=clients, spark=lambda: spark, progress=progress, kind=batch)
        return report.tables[0]

    def overtake(_table, step, _detail):
        # Said before the load binds.
        if step == "committing" and not others:
            others.append("begun")
            arrive(wiki, 1)
            others.append(load_batch("other").status)

    others: list[str] = []
    result = load_batch("own", overtake)
    assert others == ["begun", "done"]
    assert (result.status, result.code) == ("failed", "CHECKPOINT_LOST")
    assert "which has planned that batch anew" in (result.message or "")
    assert ids(wiki) == list(range(20))


def test_an_older_or_a_lost_checkpoint_is_an_error_and_a_backfill_the_way_out(wiki):
    arrive(wiki, 0, 1)
    with wiki.running():
        wiki.until(1, "changes")
    forget_batch(wiki, 1)
    arrive(wiki, 2)
    # Spark plans batch 1 anew, and its report is still there.
    assert why_it_ended(wiki).startswith("CHECKPOINT_LOST: table changes: its last batch is 1 of query ")
    shutil.rmtree(wiki.folder / "checkpoint")
    assert why_it_ended(wiki).startswith("CHECKPOINT_LOST: table changes: its last batch is 1 of query ")
    assert ids(wiki) == list(range(20))
    begin_backfill(wiki.control("changes"), "a test")
    with wiki.running():
        wiki.until(2, "changes")
    assert [(key[9:19], key[-11:]) for key in sorted(wiki.data())] == [
        *(("0000000000", f"{number:03d}.parquet") for number in (0, 1)),
        *(("0000000001", f"{number:03d}.parquet") for number in (2, 3, 4)),
    ]


def test_backfill_of_the_file_begins_with_a_checkpoint_of_its_own(wiki):
    arrive(wiki, 0)
    with wiki.running():
        wiki.until(0, "changes")
    text = yaml.safe_load(wiki.file.read_text("utf-8"))
    text["tables"][0]["backfill"] = 2
    wiki.file.write_text(yaml.safe_dump(text), "utf-8")
    arrive(wiki, 1)
    with wiki.running():
        wiki.until(1, "changes")
    assert [(key[9:19], key[-11:]) for key in sorted(wiki.data())] == [
        ("0000000000", "000.parquet"),
        ("0000000002", "001.parquet"),
        ("0000000002", "002.parquet"),
    ]
    checkpoints = sorted(path.name for path in (wiki.folder / "checkpoint/wiki/changes").glob("v*"))
    assert checkpoints == ["v0000000000", "v0000000002"]


def forget_batch(lake, number):
    """The checkpoint as it was before Spark planned this batch, its last one."""
    (checkpoint,) = (lake.folder / "checkpoint/wiki/changes").glob("v*")
    for folder in ("offsets", "commits", "sources/0"):
        for name in (f"{number}", f".{number}.crc"):
            (checkpoint / folder / name).unlink(missing_ok=True)


def why_it_ended(lake):
    with lake.running() as run:
        assert run.stop.wait(240), "it goes on"
    return str(run.ended[1])


@pytest.mark.exhaustive
def test_killed_then_terminated(wiki):
    """The batch in hand is completed by the next run. SIGTERM ends a run with 0 when its batch in hand is done, and
    Ctrl-C while that one waits ends it at once."""
    arrive(wiki, 0, 1, 2)
    first = wiki.process()

    def kill(call, proceed):
        if completes(call) and first.poll() is None:
            sessions.kill(first.pid)
            return call.error(503, "SlowDown", "The caller is dead.")
        return proceed(call)

    wiki.aws.interceptors.append(kill)
    assert first.wait(180) == -signal.SIGKILL
    first.communicate()
    wiki.aws.interceptors.remove(kill)
    in_hand, go_on = threading.Event(), threading.Event()

    def hold(call, proceed):
        if go_on.is_set() or not completes(call) or not call.key.endswith("2.parquet"):
            return proceed(call)
        in_hand.set()
        return call.error(503, "SlowDown", "Not yet.")

    wiki.aws.interceptors.append(hold)
    second = wiki.process()
    assert in_hand.wait(240)
    second.send_signal(signal.SIGTERM)
    until(lambda: status(wiki)["state"] == "stopping")
    # Signals that come together are one.
    time.sleep(1)
    second.send_signal(signal.SIGINT)
    out, err = second.communicate(timeout=30)
    assert (second.returncode, out) == (130, ""), err
    in_hand.clear()
    third = wiki.process()
    assert in_hand.wait(240)
    third.send_signal(signal.SIGTERM)
    until(lambda: status(wiki)["state"] == "stopping")
    go_on.set()
    out, err = third.communicate(timeout=120)
    assert (third.returncode, json.loads(out)["state"]) == (0, "stopped"), err
    assert ids(wiki) == list(range(30))
    assert not wiki.aws.uploads(BUCKET)


NO_SESSION: Any = None
"""Where none is asked."""


def test_the_status_is_written_while_a_source_is_looked_through(tmp_path, aws, bucket):
    lake = Materialization(tmp_path, aws, NO_SESSION)
    lake.write(binding("changes", "in", primary_key=["id"]), checkpoint="checkpoint")
    run = Running(lake.spec, NO_SESSION)

    def spark():
        until(lambda: "tables" in status(lake))
        raise SourceFailedError("a test")

    clients = Clients(run.spec.access)
    ended = run_continuously(run.spec, clients=clients, spark=spark, watch=run, stop=run.stop, upkeep=BETWEEN_BATCHES)
    assert (ended[0].state, str(ended[1])) == ("failed", "SOURCE_FAILED: a test")


def status(lake):
    return json.loads(lake.aws.objects(BUCKET).get("_lakewriter/wiki/continuous.json", '{"state": "none"}'))


def until(done, seconds=60):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    """Two files of ten rows each, a batch each."""
    lake = UnderPrefix(tmp_path, aws, spark)
    arrive(lake, 0, 1)
    return lake


EVENTS = {"format": "json", "path": "in", "columns": "id BIGINT", "options": {"maxFilesPerTrigger": "1"}}
TOP = {"checkpoint": "checkpoint", "interval_seconds": 1}


def count_requests(calls, job_id):
    """The calls of a batch: the state is read, it begins, and its attempt's outcome is the last one."""
    begun = next(place for place, key in enumerate(calls) if job_id in key and key.endswith("/begin.json"))
    ended = next(place for place, key in enumerate(calls) if job_id in key and key.endswith("/outcome.json"))
    return ended - begun + 2


@pytest.mark.exhaustive
def test_supaflow_runs_continuously(lake, aws):
    calls = []
    aws.observers.append(lambda call, answer: calls.append(call.key or ""))
    Lake.write(lake, {"table": "events", "schema": "public", "read": EVENTS})
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(TOP), "utf-8")
    schema = "supaflow_nyc_public"
    with lake.running() as run:
        lake.until(1, f"{schema}.events")
    assert [(each.status, each.rows) for each in run.batches] == [("done", 10)] * 2
    assert count_requests(calls, run.batches[1].job_id) <= 25
    query = "SELECT _supa_job_id, min(_supa_index), max(_supa_index), count(*) FROM t GROUP BY ALL ORDER BY ALL"
    assert lake.rows(query, f"{schema}/events") == [(each.job_id, 1, 10, 10) for each in run.batches]
    assert len(aws.client("glue").get_partitions(DatabaseName=schema, TableName="events")["Partitions"]) == 2
    assert f"{PREFIX}/_lakewriter/flights/continuous.json" in aws.objects(BUCKET)


def test_bad_rows_of_files_are_in_the_quarantine(lake):
    """As by a single load, with file and byte; the run goes on."""
    read = {"format": "csv", "path": "rows", "options": {"header": "true", "maxFilesPerTrigger": "1"}}
    entry = {"table": "rows", "schema": "public", "read": read, "columns": {"id": "int"}, "on_bad_row": "quarantine"}
    Lake.write(lake, entry)
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(TOP), "utf-8")
    (lake.folder / "rows").mkdir()
    (lake.folder / "rows/0.csv").write_text("id,t\n1,a\n2\nx,c\n", "utf-8")
    with lake.running() as run:
        lake.until(0, "supaflow_nyc_public.rows")
        (lake.folder / "rows/1.csv").write_text("id,t,new\n3,d,e\n", "utf-8")
        lake.until(1, "supaflow_nyc_public.rows")
    assert [(each.status, each.rows, each.rows_set_aside) for each in run.batches] == [("done", 1, 2), ("done", 1, 0)]
    found = [(each["_lake_source"].rpartition("/")[2], each["_lake_offset"]) for each in read_quarantine(lake.aws)]
    assert found == [("0.csv", 9), ("0.csv", 11)]
    query = "SELECT id, t, new FROM t ORDER BY id"
    assert lake.rows(query, "supaflow_nyc_public/rows") == [(1, "a", None), (3, "d", "e")]


def test_plan_says_who_reads_the_files_below_sql(lake):
    views = {"v": EVENTS, "w": EVENTS | {"engine": "spark"}}
    read = {"sql": "SELECT v.id FROM v JOIN w USING (id)", "views": views}
    Lake.write(lake, {"table": "events", "schema": "public", "read": read})
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(TOP), "utf-8")
    [planned] = lake.planned()
    assert planned.warnings == (
        "below sql: a continuous run reads the files of v with Spark's own readers, and a single load does not",
    )


def test_iceberg_runs_continuously(lake):
    """A snapshot a batch, the rows of each partition in files of their own."""
    table = {"table": "events", "schema": "public", "read": EVENTS, "partition_by": ["bucket(2, id)"]}
    Lake.write(lake, table, **ICEBERG)
    lake.file.write_text(lake.file.read_text("utf-8") + yaml.safe_dump(TOP), "utf-8")
    name = "supaflow_nyc_public.events"
    calls = []
    lake.aws.observers.append(lambda call, answer: calls.append(call.key or ""))
    with lake.running() as run:
        lake.until(1, name)
    assert count_requests(calls, run.batches[1].job_id) <= 40
    assert [(each.status, each.rows, each.files) for each in run.batches] == [("done", 10, 2)] * 2
    iceberg = IcebergLake(lake.folder, lake.aws, lake._spark).table("events")
    assert iceberg.properties["lakewriter.flights"] == "2"
    assert sorted(iceberg.scan().to_arrow()["id"].to_pylist()) == list(range(20))
    assert len(iceberg.inspect.files()) == 4


@pytest.mark.exhaustive
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
