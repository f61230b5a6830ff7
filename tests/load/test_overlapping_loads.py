"""Two loads of one table at once: what a load goes by holds when the load registers, and still when it binds."""

import sys
import threading
import time
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.report import RunReport
from lakewriter.run.loader import load
from tests.load.syncs import SyncLake, catalog, record, state, status, stream

pytestmark = pytest.mark.spark

PARQUET = {"format": {"format_type": "Parquet"}}
WAITING_CONNECTOR = """
import json, pathlib, sys, time
given = json.loads(pathlib.Path(sys.argv[sys.argv.index("--state") + 1]).read_text()) if "--state" in sys.argv else []
first = given[0]["stream"]["stream_state"]["cursor"] if given else 0
if pathlib.Path("hold").exists():
    pathlib.Path("held").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.02)
for number in range(first + 1, first + 4):
    own = {"stream": "users", "namespace": "public", "data": {"user_id": number}, "emitted_at": 0}
    print(json.dumps({"type": "RECORD", "record": own}))
own = {"stream_descriptor": {"name": "users", "namespace": "public"}, "stream_state": {"cursor": first + 3}}
print(json.dumps({"type": "STATE", "state": {"type": "STREAM", "stream": own}}))
"""


@pytest.fixture
def syncs(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


def before_registering(load):
    """A progress that runs ``load`` when a table begins, which it says before it registers."""
    ran: list[Any] = []

    def progress(_table, step, _detail):
        if step == "beginning" and not ran:
            ran.append(step)
            ran.append(load())

    return progress, ran


def ids(syncs):
    return sorted(row["user_id"] for row in syncs.rows())


def test_connectors_of_two_syncs_at_once(syncs):
    (syncs.folder / "source.py").write_text(WAITING_CONNECTOR, "utf-8")
    syncs.write(PARQUET, source={"command": [sys.executable, "source.py"], "catalog": catalog(stream("users"))})
    (syncs.folder / "hold").touch()
    reports: dict[str, RunReport] = {}
    first = threading.Thread(target=lambda: reports.update(a=syncs.load("a")))
    first.start()
    while not (syncs.folder / "held").exists():
        time.sleep(0.02)
    (syncs.folder / "hold").unlink()
    assert syncs.load("b").status == "done"
    (syncs.folder / "go").touch()
    first.join()
    assert (reports["a"].tables[0].code, ids(syncs)) == ("CONCURRENT_LOAD", [1, 2, 3])
    assert (syncs.load("a").status, ids(syncs)) == ("done", [1, 2, 3, 4, 5, 6])


def test_messages_with_a_state_twice_at_once(syncs):
    name = syncs.messages(record("users", {"user_id": 1}), state("users", 1), status("users", "COMPLETE"))
    syncs.write(PARQUET, source={"messages": name, "catalog": catalog(stream("users"))})
    progress, ran = before_registering(lambda: syncs.load("b").status)
    report = syncs.load("a", progress=progress)
    assert (ran[1], report.tables[0].code, ids(syncs)) == ("done", "CONCURRENT_LOAD", [1])


def test_full_refreshes_of_messages_at_once(syncs):
    name = syncs.messages(record("users", {"user_id": 1}), status("users", "COMPLETE"))
    overwrite = stream("users", sync_mode="full_refresh", destination_sync_mode="overwrite")
    syncs.write(PARQUET, source={"messages": name, "catalog": catalog(overwrite)})
    progress, ran = before_registering(lambda: syncs.load("b").status)
    report = syncs.load("a", progress=progress)
    assert (ran[1], report.tables[0].code, ids(syncs)) == ("done", "CONCURRENT_LOAD", [1])
    assert (syncs.load("a").status, ids(syncs), set(syncs.generations().values())) == ("done", [1], {"2"})


ITEMS = {"table": "items", "schema": "shop", "read": {"sql": "SELECT 1 AS user_id"}}


def test_full_refreshes_of_tables_at_once(syncs):
    syncs.write(PARQUET, tables=[ITEMS | {"mode": "overwrite"}])
    progress, ran = before_registering(lambda: syncs.load("b").status)
    assert (syncs.load("a", progress=progress).status, ran[1]) == ("done", "done")
    assert (ids(syncs), set(syncs.generations().values())) == ([1], {"2"})


def test_appends_at_once_have_numbers_of_their_own(syncs):
    syncs.write(PARQUET, tables=[ITEMS])
    progress, ran = before_registering(lambda: syncs.load("b").tables[0].sync_id)
    report = syncs.load("a", progress=progress)
    assert (report.status, sorted([report.tables[0].sync_id, ran[1]])) == ("done", [1, 2])


def test_number_is_kept_by_the_same_job(syncs):
    syncs.write(PARQUET, tables=[ITEMS | {"read": {"sql": "SELECT raise_error('no')"}}])
    assert syncs.load("a").status == "failed"
    syncs.write(PARQUET, tables=[ITEMS])
    assert [syncs.load(job).tables[0].sync_id for job in ("b", "a", "c")] == [2, 1, 3]


def test_a_load_that_registers_after_anothers_commit_is_later(lake):
    lake.write({"table": "items", "schema": "s", "read": {"sql": "SELECT 1 AS n"}})
    progress, ran = before_registering(lambda: lake.load("b").status)
    assert (lake.load("a", progress=progress).status, ran[1]) == ("done", "done")
    times = lake.rows("SELECT _supa_job_id FROM t ORDER BY _supa_synced", "supaflow_nyc_s/items")
    assert times == [("b",), ("a",)]
    assert [key.split("/")[-1] for key in lake.aws.objects("acme-lake") if "/begin/" in key] == [
        "supaflow_nyc_s.items.json"
    ]


def cut_short(syncs, *, ends: bool):
    """Users 1 and 2 with a STATE between them, of a source that came to its end or did not."""
    messages = [record("users", {"user_id": 1}), state("users", 1), record("users", {"user_id": 2})]
    syncs.messages(*messages, status("users", "COMPLETE" if ends else "INCOMPLETE"))


def test_a_job_that_is_done_loads_nothing_of_a_shorter_input(syncs):
    syncs.write(PARQUET, source={"messages": "m.jsonl", "catalog": catalog(stream("users"))})
    cut_short(syncs, ends=True)
    assert syncs.load("a").status == "done"
    cut_short(syncs, ends=False)
    assert [table.status for table in syncs.load("a").tables] == ["already_done"]
    assert ids(syncs) == [1, 2]


def test_a_job_that_is_done_starts_no_spark(syncs):
    syncs.write(PARQUET, source={"messages": "m.jsonl", "catalog": catalog(stream("users"))})
    cut_short(syncs, ends=True)
    syncs.load("a")
    report = load(syncs.spec, job_id="a", clients=Clients(syncs.spec.access), spark=lambda: pytest.fail("Spark starts"))
    assert [table.status for table in report.tables] == ["already_done"]


@pytest.mark.parametrize("generation", [{}, {"generation_id": 2, "minimum_generation_id": 2}])
def test_the_rest_of_a_load_after_another_one(syncs, generation):
    """Also of a generation that has replaced others: its rows stay."""
    syncs.write(PARQUET, source={"messages": "m.jsonl", "catalog": catalog(stream("users", **generation))})
    cut_short(syncs, ends=False)
    assert (syncs.load("a").tables[0].code, ids(syncs)) == ("SOURCE_FAILED", [1])
    syncs.messages(record("users", {"user_id": 3}), state("users", 3), status("users", "COMPLETE"))
    assert syncs.load("b").status == "done"
    cut_short(syncs, ends=True)
    (table,) = syncs.load("a").tables
    assert table.code == "SOURCE_FAILED"
    assert "load 'b' has committed since this one did, up to its STATE at byte " in str(table.message)
    assert "of input file 1; give what follows that to a load of its own" in str(table.message)
    assert ids(syncs) == [1, 3]
