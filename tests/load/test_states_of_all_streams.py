"""Syncs of a connector whose states are of all streams: no record twice, none lost, whatever dies when."""

import json
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import S3AccessDeniedError, SourceFailedError, SpecInvalidError
from lakewriter.operate.repair import reset_cursor
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from tests.load.change_log import ChangeLog
from tests.load.syncs import BUCKET, SyncLake, catalog, stream
from tests.support.narrow import need
from tests.support.s3_rules import moto_bucket

pytestmark = pytest.mark.spark

PARQUET = {"format": {"format_type": "Parquet"}}
LOG = [("users", 1), ("orders", 2), ("users", 3), ("orders", 4), ("orders", 5), ("orders", 6), ("users", 7),
       ("orders", 8), ("users", 9), ("orders", 10)]  # fmt: skip


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


@pytest.fixture
def source(lake):
    found = ChangeLog(lake.folder, LOG)
    write(lake, found)
    return found


def write(lake: SyncLake, source: ChangeLog, *streams: dict[str, Any]) -> None:
    configured = streams or (stream("users"), stream("orders"))
    lake.write(PARQUET, source={"command": source.command, "catalog": catalog(*configured), "statuses": "reported"})


def ids(lake: SyncLake, name: str) -> list[int]:
    return sorted(row["user_id"] for row in lake.rows(f"data/public/{name}/"))


def expect(upto: int) -> tuple[list[int], list[int]]:
    """The users and orders of the log's first changes."""
    return ([number for name, number in LOG[:upto] if name == "users"],
            [number for name, number in LOG[:upto] if name == "orders"])  # fmt: skip


def loaded(lake: SyncLake) -> tuple[list[int], list[int]]:
    return ids(lake, "users"), ids(lake, "orders")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["GLOBAL", "LEGACY", "STREAM"])
def test_stream_that_ended_before_its_source_died(lake, source, kind):
    """The users are complete when the source dies; the same job id ends the load, and the next one goes on."""
    source.script(kind=kind, upto=6, dies=5, early=["users"])
    source.script(kind=kind, upto=6)
    source.script(kind=kind, upto=8)
    ends = []
    for job_id in ("a", "a", "b"):
        ends.append((lake.load(job_id).status, loaded(lake)))
    assert ends == [("failed", expect(4)), ("done", expect(6)), ("done", expect(8))]


def play(lake: SyncLake, *jobs: str) -> list[tuple[str, tuple[list[int], list[int]]]]:
    """Load each job; how it ended, and the users and orders then."""
    return [(lake.load(job_id).status, loaded(lake)) for job_id in jobs]


DEATHS = [
    # The runs of a source that dies, up to which change each commits, and how the next load goes on.
    pytest.param([{"dies": 5, "early": ["orders", "users"]}, {"dies": 7, "shift": 1}, {}], [4, 7, 10], id="thrice"),
    pytest.param([{"dies": 1}, {}], [0, 10], id="before its first state"),
    pytest.param([{"dies": 9, "every": 20, "early": ["users"]}, {}], [0, 10], id="a stream ended, and no state"),
    pytest.param([{"exit": 3, "early": ["users"]}], [10], id="after all have ended"),
    pytest.param([{"dies": 5}, {"dies": 2, "every": 20}, {}], [4, 4, 10], id="nothing new"),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("runs", "committed"), DEATHS)
def test_source_that_dies(lake, source, runs, committed):
    for run in runs:
        source.script(upto=10, **run)
    source.script(upto=10)
    ends = play(lake, *["a"] * len(runs), "b")
    assert [rows for _, rows in ends] == [expect(upto) for upto in (*committed, 10)]
    assert [status for status, _ in ends] == [*["failed"] * (len(runs) - 1), "done", "done"]


def test_no_stream_is_done_before_the_others(lake, source):
    """Nor does its report say so."""
    source.script(upto=6, dies=5, early=["users"])
    report = lake.load("a")
    assert [(table.table, table.status, table.code) for table in report.tables] == [
        ("users", "failed", "SOURCE_FAILED"), ("orders", "failed", "SOURCE_FAILED"),
    ]  # fmt: skip
    assert "the source has one state for all streams" in report.tables[0].message
    assert [lake.control(f"public.{name}").read_report("a") for name in ("users", "orders")] == [None, None]


def test_state_is_kept_once(lake, source):
    source.script(upto=4)
    lake.load("a")
    states = [lake.control(f"public.{name}").state.read() for name in ("users", "orders")]
    assert [(state.sync.source.text, state.needs) for state in states] == [("", ("sync_state",))] * 2
    (record,) = {state.sync.source.record for state in states}
    decision = json.loads(lake.aws.objects(BUCKET)[f"data/_lakewriter/p/loads/{record}/sync/decision.json"])
    assert (decision["bound"], sorted(decision["tables"])) == (True, ["public.orders", "public.users"])
    assert json.loads(decision["source"]["text"])["global"]["shared_state"] == {"lsn": 4}


KILLS = [
    # the object whose writing kills the load, how many such writes pass before, what is there then
    pytest.param("/state.json", 2, 0, id="between the tables"),
    pytest.param("/sync/decision.json", 0, 0, id="before the decision"),
    pytest.param("/sync/completion.json", 0, 4, id="files complete"),
    pytest.param(".report.json", 1, 4, id="one table is closed"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("ending", "after", "visible"), KILLS)
def test_killed_load(lake, source, ending, after, visible):
    """All of its tables are committed, or none; the same job id brings them to their end."""
    source.script(upto=4)
    source.script(upto=4)
    source.script(upto=8)

    def writes(call):
        return call.method == "PUT" and call.key.endswith(ending)

    if ending == ".report.json":
        assert lake.killed("a", writes, after=after) == -9
    else:
        lake.cut_off("a", writes, after=after)
    assert loaded(lake) == expect(visible)
    assert play(lake, "a", "b") == [("done", expect(4)), ("done", expect(8 if source.runs == 3 else 4))]
    assert not lake.aws.uploads(BUCKET)


def test_table_that_cannot_be_completed_holds_back_the_others(lake, source):
    """Somebody aborts the upload of the orders' file when the load is bound."""

    def lose(call, proceed):
        if call.key.endswith("/sync/decision.json") and call.method == "PUT":
            lake.aws.interceptors.remove(lose)
            for key, upload in lake.aws.uploads(BUCKET):
                if key.startswith("data/public/orders/"):
                    del need(moto_bucket(BUCKET)).multiparts[upload]
        return proceed(call)

    lake.aws.interceptors.append(lose)
    source.script(upto=4)
    source.script(upto=6)
    report = lake.load("a")
    assert {(table.status, table.code) for table in report.tables} == {("failed", "STAGED_LOST")}
    assert not lake.data()
    assert play(lake, "a") == [("done", expect(6))]
    assert source.read_given(1) is None


@pytest.mark.parametrize("kind", ["GLOBAL", "LEGACY"])
def test_source_is_not_run_while_a_state_cannot_be_read(lake, source, kind):
    """It would go on behind rows of that stream which nobody knows to be there, and nothing of it could be loaded."""

    def deny(call, proceed):
        return call.denied() if call.key.endswith("/public.orders/state.json") else proceed(call)

    source.script(kind=kind, upto=4)
    lake.load("a")
    source.script(kind=kind, upto=8)
    lake.aws.interceptors.append(deny)
    with pytest.raises(S3AccessDeniedError, match=r"public\.orders/state\.json"):
        lake.load("b")
    lake.aws.interceptors.remove(deny)
    assert (source.runs, loaded(lake)) == (1, expect(4))
    assert play(lake, "b") == [("done", expect(8))]


CHANGES = [
    # the kinds of state that a source says from sync to sync
    ("LEGACY", "GLOBAL"), ("LEGACY", "STREAM"), ("GLOBAL", "STREAM"), ("STREAM", "GLOBAL"), ("STREAM", "LEGACY"),
]  # fmt: skip


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("first", "second"), CHANGES)
def test_source_that_changes_the_kind_of_its_states(lake, source, first, second):
    source.script(kind=first, upto=4)
    source.script(kind=second, upto=8, dies=7, early=["users"])
    source.script(kind=second, upto=8)
    source.script(kind=second, upto=10)
    ends = play(lake, "a", "b", "b", "c")
    assert [rows for _, rows in ends] == [expect(upto) for upto in (4, 6, 8, 10)]
    assert [status for status, _ in ends] == ["done", "failed", "done", "done"]


def test_quiet_stream_takes_its_state_out_of_a_legacy_one(lake, source):
    """The orders say nothing when the source has begun to say states of each stream."""
    source.script(kind="LEGACY", upto=6)
    source.script(kind="STREAM", upto=7, says=["users"])
    source.script(kind="STREAM", upto=10)
    assert play(lake, "a", "b", "c") == [("done", expect(6)), ("done", expect(7)), ("done", expect(10))]
    starts = [own["stream"]["stream_state"]["lsn"] for own in source.read_given(2)]
    assert starts == [7, 6]


def test_quiet_stream_without_a_part_of_a_global_state_ends_no_sync(lake, source):
    source.script(upto=6)
    source.script(kind="STREAM", upto=7, says=["users"])
    source.script(kind="STREAM", upto=8)
    assert [lake.load(job_id).status for job_id in ("a", "b")] == ["done", "failed"]
    assert loaded(lake) == expect(6)
    assert play(lake, "b") == [("done", expect(8))]


def test_stream_that_is_added(lake, source):
    write(lake, source, stream("users"))
    source.script(upto=4, streams=["users"])
    source.script(upto=8)
    lake.load("a")
    write(lake, source)
    assert play(lake, "b") == [("done", expect(8))]


def test_stream_that_was_left_out_meanwhile_is_read_anew_by_order_alone(lake, source):
    source.script(upto=4)
    source.script(upto=6, streams=["users"])
    source.script(upto=8)
    lake.load("a")
    write(lake, source, stream("users"))
    lake.load("b")
    write(lake, source)
    with pytest.raises(SourceFailedError, match="the streams are not at the same one") as failed:
        lake.load("c")
    assert "--no-cursor" in failed.value.remedy
    assert (source.runs, loaded(lake)) == (2, (expect(6)[0], expect(4)[1]))
    reset_cursor(lake.control("public.orders"), None, "it was left out")
    assert lake.load("c").status == "done"
    assert loaded(lake) == (expect(8)[0], sorted(expect(4)[1] + expect(8)[1]))
    assert [own["stream_descriptor"]["name"] for own in source.read_given(2)[0]["global"]["stream_states"]] == ["users"]


def test_full_refresh_among_incremental_streams(lake, source):
    """It is read from its beginning by every sync, and replaces what it had."""
    whole = stream("orders", sync_mode="full_refresh", destination_sync_mode="overwrite")
    write(lake, source, stream("users"), whole)
    source.script(upto=4)
    source.script(upto=8, dies=7, early=["users"])
    source.script(upto=8)
    source.script(upto=10)
    statuses = [lake.load(job_id).status for job_id in ("a", "b", "b", "c")]
    assert (statuses, loaded(lake)) == (["done", "failed", "done", "done"], expect(10))


def test_undo(lake, source):
    """Of one table the undo is refused: the source would send the rows of the other again."""
    for upto in (4, 8, 8):
        source.script(upto=upto)
    lake.load("a")
    lake.load("b")
    pipeline = Pipeline.open(lake.spec, Clients(lake.spec.access))
    with pytest.raises(SpecInvalidError, match="the state of its source is that of all streams"):
        Undo(pipeline, "b", Choices("a drill"), tables=["public.users"]).run()
    Undo(pipeline, "b", Choices("a drill")).run()
    assert loaded(lake) == expect(4)
    assert play(lake, "b.r2") == [("done", expect(8))]
    assert source.read_given(2)[0]["global"]["shared_state"] == {"lsn": 4}


def test_states_of_an_earlier_release(lake, source):
    """Each table had the text itself."""
    source.script(upto=4)
    source.script(upto=8)
    lake.load("a")
    for name in ("users", "orders"):
        key = f"data/_lakewriter/p/tables/public.{name}/state.json"
        content = json.loads(lake.aws.objects(BUCKET)[key])
        record = content["sync"]["source"].pop("record")
        decision = json.loads(lake.aws.objects(BUCKET)[f"data/_lakewriter/p/loads/{record}/sync/decision.json"])
        content["sync"]["source"]["text"] = decision["source"]["text"]
        lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=json.dumps(content | {"needs": []}).encode())
    assert play(lake, "b") == [("done", expect(8))]
