"""One table that cannot be loaded, for whatever reason, beside others: it fails alone, and says why."""

import json

import pytest

from lakewriter.errors import InternalError, PendingUnrecoverableError, StateLostError
from lakewriter.run import load as steps
from tests.load.lakes import Lake, table
from tests.load.syncs import SyncLake, catalog, record, status, stream

pytestmark = pytest.mark.spark

ITEMS = {"schema": "shop", "read": {"sql": "SELECT 1 AS user_id"}}


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    lake = Lake(tmp_path, aws, spark)
    lake.write(*(table(name, lake.csv(f"{name}.csv", "id\n1\n")) for name in ("a", "b")))
    return lake


@pytest.fixture
def syncs(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


def told(report):
    return {result.table: (result.status, result.code) for result in report.tables}


def state_key(lake, table_id):
    control = lake.control(table_id)
    return control.keys.state(control.table_id)


def spoil(lake, table_id):
    """Have the table's state need what no release knows."""
    key = state_key(lake, table_id)
    body = json.dumps(json.loads(lake.aws.objects("acme-lake")[key]) | {"needs": ["two-writers"]}).encode()
    lake.aws.client("s3").put_object(Bucket="acme-lake", Key=key, Body=body)
    return body


def test_state_that_needs_a_later_release(lake):
    assert lake.load("i").status == "done"
    spoiled = spoil(lake, "supaflow_nyc_public.a")
    assert told(lake.load("j")) == {"a": ("failed", "PENDING_UNRECOVERABLE"), "b": ("done", None)}
    assert lake.aws.objects("acme-lake")[state_key(lake, "supaflow_nyc_public.a")] == spoiled
    assert {key.split("/")[1] for key in lake.data() if "-j-" in key} == {"b"}


def test_state_that_is_lost(lake):
    assert lake.load("i").status == "done"
    lake.aws.client("s3").delete_object(Bucket="acme-lake", Key=state_key(lake, "supaflow_nyc_public.b"))
    assert told(lake.load("j")) == {"a": ("done", None), "b": ("failed", "STATE_LOST")}


def test_no_state_can_be_read(lake):
    assert lake.load("i").status == "done"
    for name in ("a", "b"):
        spoil(lake, f"supaflow_nyc_public.{name}")
    before = lake.aws.objects("acme-lake")
    with pytest.raises(
        PendingUnrecoverableError, match=r"supaflow_nyc_public\.a/state\.json cannot be used by this release"
    ):
        lake.load("j")
    assert lake.aws.objects("acme-lake") == before


@pytest.mark.parametrize(("on_failure", "other"), [("continue", "done"), ("stop", "not_run")])
def test_fault_of_the_program(lake, monkeypatch, caplog, on_failure, other):
    real = steps.stage_table

    def staged(load, table, *rest):
        if table.name == "a":
            raise ZeroDivisionError("division by zero")
        return real(load, table, *rest)

    lake.file.write_text(
        f"on_failure: {on_failure}\nlimits: {{parallel_tables: 1}}\n" + lake.file.read_text("utf-8"), "utf-8"
    )
    with monkeypatch.context() as patched:
        patched.setattr(steps, "stage_table", staged)
        report = lake.load("j")
    assert told(report) == {"a": ("failed", InternalError.code), "b": (other, None)}
    assert report.tables[0].message.startswith(
        "table supaflow_nyc_public.a: ZeroDivisionError: division by zero. This is a fault"
    )
    assert "Table supaflow_nyc_public.a of load j met a fault of the program." in caplog.text
    assert 'raise ZeroDivisionError("division by zero")' in caplog.text
    outcome = json.loads(lake.aws.objects("acme-lake")[lake.control("x").keys.outcome("j", report.attempt)])
    assert (outcome["code"], outcome["exit_code"], outcome["transient"]) == ("INTERNAL", 1, False)
    assert lake.aws.uploads("acme-lake") == []
    assert told(lake.load("j"))["a"] == ("done", None)


@pytest.mark.parametrize(("column", "code"), [("array()", "SCHEMA_INCOMPATIBLE"), ("map()", "SCHEMA_INCOMPATIBLE")])
def test_type_that_nothing_stores(lake, column, code):
    bad = {"table": "a", "schema": "public", "read": {"sql": f"SELECT {column} AS x"}}
    lake.write(bad, table("b", "b.csv"))
    assert told(lake.load("j")) == {"a": ("failed", code), "b": ("done", None)}


def test_tables_of_a_sync(syncs):
    syncs.write({"format": {"format_type": "Parquet"}}, tables=[ITEMS | {"table": name} for name in ("a", "b")])
    assert syncs.load("i").status == "done"
    spoil(syncs, "shop.a")
    assert told(syncs.load("j")) == {"a": ("failed", "PENDING_UNRECOVERABLE"), "b": ("done", None)}
    syncs.write(
        {"format": {"format_type": "Parquet"}},
        tables=[ITEMS | {"table": name} for name in ("a", "b")],
        on_failure="stop",
    )
    with pytest.raises(PendingUnrecoverableError):
        syncs.load("k")


def test_streams_of_messages(syncs):
    both = [one for name in ("users", "events") for one in (record(name, {"user_id": 1}), status(name, "COMPLETE"))]
    source = {"messages": syncs.messages(*both), "catalog": catalog(stream("users"), stream("events"))}
    syncs.write({"format": {"format_type": "Parquet"}}, source=source)
    assert syncs.load("i").status == "done"
    key = state_key(syncs, "public.users")
    syncs.aws.client("s3").delete_object(Bucket="acme-lake", Key=key)
    assert told(syncs.load("j")) == {"users": ("failed", StateLostError.code), "events": ("done", None)}
