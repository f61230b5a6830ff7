"""Syncs that go on where one ended early, and inputs that a source wrote badly: no record is lost without a word."""

import io
import json
import sys
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.run.loader import read_saved_state
from tests.load.syncs import CONNECTOR, SyncLake, catalog, failure, record, state, status, stream

pytestmark = pytest.mark.spark

PARQUET = {"format": {"format_type": "Parquet"}}
REPLACED: dict[str, Any] = {"destination_sync_mode": "overwrite", "sync_mode": "full_refresh"}


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


def ids(lake):
    return sorted(row["user_id"] for row in lake.rows())


def user(number, **more):
    return record("users", {"user_id": number}, **more)


def printed(lake):
    """What ``lakewriter airbyte state`` prints."""
    spec = lake.spec
    found = read_saved_state(spec, Clients(spec.access))
    return found and json.loads(found)


def piped(lake, monkeypatch, job_id, *messages):
    """A load of what comes on standard input."""
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    return lake.load(job_id)


def test_unfinished_overwrite_through_a_pipe_begins_anew(lake, monkeypatch):
    lake.write(PARQUET, source={"messages": "-", "catalog": catalog(stream("users", **REPLACED))})
    piped(lake, monkeypatch, "a", user(1), state("users", 1), failure("boom"))
    assert (ids(lake), printed(lake)) == ([1], None)
    piped(lake, monkeypatch, "b", user(1), state("users", 1), user(2))
    assert ids(lake) == [1, 2]


def test_unfinished_overwrite_with_a_generation_goes_on_through_a_pipe(lake, monkeypatch):
    own = stream("users", **REPLACED, generation_id=4)
    lake.write(PARQUET, source={"messages": "-", "catalog": catalog(own)})
    piped(lake, monkeypatch, "a", user(1), state("users", 1), failure("boom"))
    assert printed(lake) == [state("users", 1)["state"]]
    piped(lake, monkeypatch, "b", user(2))
    assert ids(lake) == [1, 2]


def test_unfinished_overwrite_in_files_goes_on_under_the_same_job_id(lake):
    source = {"messages": "m.jsonl", "catalog": catalog(stream("users", **REPLACED))}
    lake.write(PARQUET, source=source)
    lake.messages(user(1), state("users", 1), user(2), failure("boom"))
    lake.load("a")
    lake.messages(user(1), state("users", 1), user(2))
    lake.load("a")
    assert (ids(lake), set(lake.generations().values())) == ([1, 2], {"1"})


def test_other_files_under_the_same_job_id_are_a_refresh_of_their_own(lake):
    source = {"messages": "m.jsonl", "catalog": catalog(stream("users", **REPLACED))}
    lake.write(PARQUET, source=source)
    lake.messages(user(1), state("users", 1), failure("boom"))
    lake.load("a")
    lake.messages(user(20), user(30), state("users", 3))
    lake.load("a")
    assert ids(lake) == [20, 30]


@pytest.mark.parametrize("mode", [{}, REPLACED])
def test_connector_that_says_the_same_state_again(lake, mode):
    (lake.folder / "source.py").write_text(CONNECTOR, "utf-8")
    source = {"command": [sys.executable, "source.py"], "catalog": catalog(stream("users", **mode))}
    lake.write(PARQUET, source=source)
    lake.messages(user(1), state("users", 5), name="0.jsonl")
    lake.messages(user(2), state("users", 5), name="1.jsonl")
    lake.messages(user(3), state("users", 5), user(4), state("users", 6), name="2.jsonl")
    statuses = [lake.load("j").status for _ in range(3)]
    assert (statuses, ids(lake)) == (["failed", "failed", "done"], [1, 2, 3, 4])
    given = [json.loads((lake.folder / f"given{number}").read_text()) for number in range(3)]
    assert given == [None, [state("users", 5)["state"]], [state("users", 5)["state"]]]


def test_refresh_of_an_appended_stream_gives_no_state_of_before(lake):
    (lake.folder / "source.py").write_text(CONNECTOR, "utf-8")
    (lake.folder / "runs").write_text("xx")
    lake.messages(user(1), state("users", 5), name="2.jsonl")
    lake.messages(user(1), user(2), state("users", 6), name="3.jsonl")
    for generation in (1, 2):
        own = stream("users", generation_id=generation, minimum_generation_id=generation)
        lake.write(PARQUET, source={"command": [sys.executable, "source.py"], "catalog": catalog(own)})
        lake.load(f"j{generation}")
    assert ((lake.folder / "given3").read_text(), ids(lake)) == ("null", [1, 2])


def test_overwrite_that_gives_only_its_generation_replaces(lake):
    for generation in (4, 5):
        own = stream("users", **REPLACED, generation_id=generation)
        lake.write(PARQUET, source={"messages": lake.messages(user(generation)), "catalog": catalog(own)})
        lake.load(f"j{generation}")
    assert ids(lake) == [5]


def test_empty_namespace_is_none(lake):
    own = stream("users", **REPLACED)
    own["stream"] = {name: value for name, value in own["stream"].items() if name != "namespace"}
    lake.write(PARQUET, source={"messages": "m.jsonl", "catalog": catalog(own)})
    for job_id, namespace in [("a", None), ("b", "")]:
        lake.messages(user(1, namespace=namespace))
        report = lake.load(job_id)
        assert (report.status, report.notes, ids(lake)) == ("done", (), [1])


def test_files_in_the_order_given(lake):
    lake.messages(user(9), state("users", 9), name="sync_9.jsonl")
    lake.messages(user(10), state("users", 10), name="sync_10.jsonl")
    paths = ["sync_9.jsonl", "sync_10.jsonl"]
    lake.write(PARQUET, source={"messages": paths, "catalog": catalog(stream("users"))})
    lake.load("a")
    assert printed(lake) == [state("users", 10)["state"]]


@pytest.mark.parametrize("form", ["Parquet", "JSONL"])
def test_half_an_emoji_costs_no_record(lake, form):
    lake.write({"format": {"format_type": form}},
               source={"messages": "m.jsonl", "catalog": catalog(stream("users"))})  # fmt: skip
    half = record("users", {"user_id": 1, "name": {"first": "Jo \ud83d", "last": None}})
    lake.messages(half, user(float("nan")), user(3, at="1622135805000"))
    report = lake.load("a")
    found = [row.get("_airbyte_data", row) for row in lake.rows()]
    assert [row["user_id"] for row in found] == [1, None, 3]
    assert found[0]["name"] == {"first": "Jo \ufffd", "last": None}
    changes = [[each["field"] for each in row["_airbyte_meta"]["changes"]] for row in lake.rows()]
    assert changes == [["name.first"], ["user_id"], []]
    assert report.notes == (
        "2 records of the input held values that JSON or Unicode has not, which were replaced, such as "
        "'users: name.first'.",
    )


def test_record_that_cannot_be_read_fails_its_stream(lake):
    streams = catalog(stream("users"), stream("orders", {"properties": {"id": {"type": "integer"}}}))
    bad = json.dumps(user(2)).replace('{"user_id": 2}', "[2]")
    lake.write(PARQUET, source={"messages": "m.jsonl", "catalog": streams})
    lake.messages(user(1), state("users", 1), record("orders", {"id": 1}), bad, state("users", 2), state("orders", 1),
                  status("users", "COMPLETE"), status("orders", "COMPLETE"))  # fmt: skip
    report = lake.load("a")
    users, orders = sorted(report.tables, key=lambda table: table.table, reverse=True)
    assert (orders.status, users.status, users.code) == ("done", "failed", "SOURCE_FAILED")
    assert "of input file 1 cannot be read: its data is not an object" in users.message
    assert len(lake.rows("data/public/users/")) == 1
    assert state("users", 1)["state"] in printed(lake)


def test_unknown_type_fails_before_another_stream_is_written(lake):
    odd = stream("orders", {"properties": {"id": {"type": "bigserial"}}})
    lake.write(PARQUET, source={"messages": lake.messages(user(1)), "catalog": catalog(stream("users"), odd)})
    with pytest.raises(SchemaIncompatibleError, match=r"public\.orders: the schema of id has type 'bigserial'"):
        lake.load("a")
    assert not lake.data()
