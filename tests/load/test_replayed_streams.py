"""Replays of streams of messages, of tables in Airbyte's form, and of those that a continuous run loads."""

import io
import json
import time
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.repair import change_over
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.records.sync_records import SyncState
from lakewriter.run.loader import load
from lakewriter.run.replay import Chosen, Replay, find_files, require_replayable
from tests.load.lakes import Lake, read_quarantine, table
from tests.load.materializations import Materialization, binding
from tests.load.syncs import SyncLake, catalog, record, state, status, stream
from tests.load.test_quarantine import RULE, list_differences
from tests.support.narrow import need

pytestmark = pytest.mark.spark

SCHEMA = {"properties": {"id": {"type": "integer"}, "amount": {"type": ["null", "integer"]}}}
MOST = RULE | {"at_most": 0.9}


def positive(least: int = 0) -> dict[str, Any]:
    return {"range": {"column": "amount", "at_least": least}, "on_violation": "quarantine"}


def replay(lake: Lake | SyncLake, table_id: str) -> Any:
    spec, chosen = lake.spec, Chosen()
    [own] = [each for each in spec.tables if each.id == table_id]
    require_replayable(spec, own)
    control = lake.control(table_id)
    planned = Replay(spec, own, find_files(control, own, chosen), chosen)
    only, kind = planned.make_spec(), planned.make_kind(control)
    report = load(only, job_id=planned.job_id, clients=Clients(spec.access), spark=lambda: lake._spark, kind=kind)
    return report.tables[0]


def read_rows(body: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(io.BytesIO(body)).to_pylist()
    return rows


def write_users(lake: SyncLake, least: int, format_: str = "Parquet", **fields: Any) -> None:
    users = stream("users", SCHEMA, **fields)
    source = {"messages": "m.jsonl", "catalog": catalog(users, stream("cities", SCHEMA))}
    expect = [positive(least) | {"tables": ["users"]}]
    lake.write({"format": {"format_type": format_}}, expect=expect, on_bad_row=MOST, source=source)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("format_", ["Parquet", "JSONL"])
def test_records_of_a_stream(tmp_path, aws, bucket, spark, format_):
    """What their messages say of them comes back; what the last sync said of the source stays."""
    lake = SyncLake(tmp_path, aws, spark)
    write_users(lake, 0, format_)
    changed = {"changes": [{"field": "name", "change": "NULLED", "reason": "SOURCE_FIELD_SIZE_LIMITATION"}]}
    line = json.dumps(record("users", {"id": 9})).replace('{"id": 9}', "[9]")
    lake.messages(
        record("users", {"id": 1, "amount": 5}),
        record("users", {"id": 2, "amount": -1}, at=1700000000123, meta=changed),
        record("users", {"id": 3, "amount": -7}),
        line,
        record("cities", {"id": 4, "amount": 1}),
        state("users", 1), status("users", "COMPLETE"), status("cities", "COMPLETE"),
    )  # fmt: skip
    results = {result.table: result for result in lake.load("a").tables}
    assert (results["users"].rows, need(results["users"].set_aside).rows) == (1, 3)
    before = lake.control("public.users").state.read().sync
    assert [row["_lake_message"] for row in read_quarantine(lake.aws) if row["_lake_row"]] == [
        '{"emitted_at":1700000000123,"changes":' + json.dumps(changed["changes"]) + "}",
        '{"emitted_at":1622135805000}',
    ]
    write_users(lake, -5, format_)
    result = replay(lake, "public.users")
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 1, 2), result.message
    [row] = [row for row in lake.rows("data/public/users/") if read_id(row) == 2]
    assert seconds(row["_airbyte_extracted_at"]) == 1700000000.123
    meta = row["_airbyte_meta"] if isinstance(row["_airbyte_meta"], dict) else json.loads(row["_airbyte_meta"])
    # A replay is a sync of its own.
    assert meta == {"sync_id": 2, "changes": changed["changes"]}
    after = lake.control("public.users").state.read().sync
    assert (after.source, after.unfinished, after.generation_id) == (before.source, False, 0)
    assert after.source is not None
    assert after.sync_id == 2
    kept = {row["_lake_check"]: (row["_lake_row"], row["_lake_line"]) for row in read_quarantine(lake.aws)}
    assert kept == {"on_bad_row": (None, line), "range.amount": ('{"id": 3, "amount": -7}', None)}
    assert list_differences(lake, "a") == []


def read_id(row: dict[str, Any]) -> int:
    """Of a record in columns, or in one."""
    return int(row["id"] if "id" in row else row["_airbyte_data"]["id"])


def seconds(at: Any) -> float:
    return at / 1000 if isinstance(at, int) else at.timestamp()


def test_table_in_airbytes_form(tmp_path, aws, bucket, spark):
    lake = SyncLake(tmp_path, aws, spark)
    (tmp_path / "cities.csv").write_text("id,amount\n1,5\n2,-1\n3\n", "utf-8")
    entry = table("cities", "cities.csv", on_bad_row=MOST)
    lake.write({"format": {"format_type": "Parquet"}}, tables=[entry | {"expect": [positive()]}])
    [result] = lake.load("a").tables
    assert (result.status, result.rows, need(result.set_aside).rows) == ("done", 1, 2), result.message
    lake.write({"format": {"format_type": "Parquet"}}, tables=[entry])
    result = replay(lake, "public.cities")
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 1, 1), result.message
    assert sorted((row["id"], row["_airbyte_meta"]["sync_id"]) for row in lake.rows("data/public/cities/")) == [
        (1, 1), (2, 2),
    ]  # fmt: skip


def test_stream_that_the_catalog_refreshes_is_not_replayed(tmp_path, aws, bucket, spark):
    """Its older generations would go with the replay."""
    lake = SyncLake(tmp_path, aws, spark)
    write_users(lake, 0, generation_id=2, minimum_generation_id=2, sync_id=7)
    users = lake.spec.tables[0]
    with pytest.raises(SpecInvalidError, match="a load replaces what is there"):
        require_replayable(lake.spec, users)


def test_undo_of_a_sync_behind_a_replay(tmp_path, aws, bucket, spark):
    """The replay has not gone on from the state of the source that the sync has left."""
    lake = SyncLake(tmp_path, aws, spark)
    write_users(lake, 0)
    bad, good = record("users", {"id": 2, "amount": -1}), record("users", {"id": 1, "amount": 1})
    lake.messages(bad, good, state("users", 1), status("users", "COMPLETE"))
    lake.load("a")
    lake.messages(record("users", {"id": 3, "amount": 1}), state("users", 2), status("users", "COMPLETE"))
    lake.load("b")
    write_users(lake, -5)
    assert replay(lake, "public.users").rows == 1
    Undo(Pipeline.open(lake.spec, Clients(lake.spec.access)), "b", Choices("a drill"), tables=["public.users"]).run()
    sync: SyncState = lake.control("public.users").state.read().sync
    assert sync.source is not None
    assert '"cursor": 1' in sync.source.text


def write_changes(lake: Materialization, least: int) -> None:
    kinds = {"id": "integer", "amount": ["null", "integer"]}
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}
    entry = binding("changes", "in", collection={"schema": schema, "key": ["/id"]}, on_bad_row=MOST)
    lake.write(entry | {"expect": [positive(least)]}, checkpoint="checkpoint")


def read_ids(lake: Materialization) -> list[int]:
    files = [key for key in lake.data() if "__quarantine/" not in key]
    return sorted(row["id"] for key in files for row in read_rows(lake.data()[key]))


def wait_for(is_there: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not is_there() and time.monotonic() < end:
        time.sleep(0.2)


def test_table_of_a_continuous_run(tmp_path, aws, bucket, spark):
    """A run goes on from its last batch behind a replay, which has read nothing of its source."""
    lake = Materialization(tmp_path, aws, spark)
    write_changes(lake, 0)
    lake.documents("in/0.jsonl", [{"id": 1, "amount": 5}, {"id": 2, "amount": -1}, {"id": 3, "amount": -7}])
    with lake.running():
        lake.until(0, "changes")
    write_changes(lake, -5)
    result = replay(lake, "changes")
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 1, 1), result.message
    state = lake.control("changes").state.read()
    assert (state.committed, state.last_job) == (2, state.batch and state.batch.job_id)
    lake.documents("in/1.jsonl", [{"id": 4, "amount": 5}])
    with lake.running() as run:
        lake.until(1, "changes")
    assert run.ended[1] is None
    assert read_ids(lake) == [1, 2, 4]
    # Where a run may begin on top of the loads that are there, it may behind a replay of them.
    control = lake.control("changes")
    change_over(control, "a drill")
    write_changes(lake, -9)
    assert replay(lake, "changes").rows == 1
    lake.documents("in/2.jsonl", [{"id": 5, "amount": 5}])
    with lake.running() as run:
        wait_for(lambda: len(read_ids(lake)) == 5)
    assert run.ended[1] is None
    assert read_ids(lake) == [1, 2, 3, 4, 5]
