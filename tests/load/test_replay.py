"""Replays of quarantines: what is loaded leaves them, what is still bad stays, and no row is loaded twice."""

import json
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.errors import S3AccessDeniedError, SpecInvalidError
from lakewriter.operate import repair
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify
from lakewriter.receipt import Cursor
from lakewriter.run import replay as replaying
from lakewriter.run.loader import load
from lakewriter.run.replay import Chosen, Replay, find_files, require_replayable
from lakewriter.source.quarantined import drop_text
from tests.load.lakes import BUCKET, Lake, table
from tests.load.test_quarantine import RULE, is_write, list_differences, list_quarantined
from tests.support.call import Call

pytestmark = pytest.mark.spark

TABLE = "supaflow_nyc_public.sums"
PLACE = "supaflow_nyc_public/sums"
TEXT = "id,amount,kind\n1,5,a\n2,x,a\n3,7\n4,-1,b\n5,8,c\n"
POSITIVE = {"range": {"column": "amount", "at_least": 0}, "on_violation": "quarantine"}


def write_sums(lake: Lake, text: str = TEXT, **fields: Any) -> None:
    own = {"columns": {"id": "int", "amount": "int"}, "on_bad_row": RULE | {"at_most": 0.9}, "expect": [POSITIVE]}
    lake.write(table("sums", lake.csv("sums.csv", text), primary_key=["id"]) | own | fields)


def plan(lake: Lake, check: str | None = None) -> Replay:
    spec, chosen = lake.spec, Chosen(check)
    [own] = spec.tables
    return Replay(spec, own, find_files(lake.control(TABLE), own, chosen), chosen)


def replay(lake: Lake, check: str | None = None, planned: Replay | None = None) -> Any:
    planned = planned or plan(lake, check)
    spec, kind = planned.make_spec(), planned.make_kind(lake.control(TABLE))
    report = load(spec, job_id=planned.job_id, clients=Clients(spec.access), spark=lambda: lake._spark, kind=kind)
    [result] = report.tables
    return result


def ids(lake: Lake) -> list[int]:
    return [row[0] for row in lake.rows("SELECT id FROM t ORDER BY 1", PLACE)]


def bad(lake: Lake) -> list[tuple[str, str]]:
    files = [pq.read_table(pa.BufferReader(lake.aws.objects(BUCKET)[key])) for key in list_quarantined(lake.aws)]
    rows = [row for each in files for row in each.to_pylist()]
    return sorted((row["_lake_check"], row["_lake_row"] or row["_lake_line"]) for row in rows)


def test_what_fits_the_present_columns_is_loaded_and_the_rest_stays(lake):
    write_sums(lake)
    assert lake.load("a").tables[0].set_aside.rows == 3
    assert bad(lake) == [
        ("on_bad_row", "3,7"), ("on_bad_row", '{"id":2,"kind":"a","amount":"x"}'),
        ("range.amount", '{"id":4,"amount":-1,"kind":"b"}'),
    ]  # fmt: skip
    # Nothing has changed: what is bad is bad still, whatever the share.
    result = replay(lake)
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 0, 3), result.message
    assert [text for _, text in bad(lake)] == [
        "3,7", '{"id":2,"kind":"a","amount":"x"}', '{"id":4,"amount":-1,"kind":"b"}',
    ]  # fmt: skip
    # Amounts are text now, and none is too small.
    write_sums(lake, columns={"id": "int"}, expect=[])
    lake.write(table("other", "sums.csv"))
    write_sums(lake, columns={"id": "int", "amount": "bigint"}, expect=[])
    result = replay(lake)
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 1, 2), result.message
    assert ids(lake) == [1, 4, 5]
    assert [text for _, text in bad(lake)] == ["3,7", '{"id":2,"kind":"a","amount":"x"}']
    assert list_differences(lake, "a") == []
    assert lake.rows("SELECT amount, kind, _supa_job_id LIKE 'replay.%' FROM t WHERE id = 4", PLACE) == [
        (-1, "b", True)
    ]


def test_the_active_session_stays_the_callers(lake, spark):
    """Spark finds data sources that a program has registered, such as lakewriter, in the active session alone."""
    jvm = spark._jvm.SparkSession
    jvm.setActiveSession(spark._jsparkSession)
    write_sums(lake)
    lake.load("a")
    replay(lake)
    (lake.folder / "a.csv").write_text("id,amount\n1,2\n", "utf-8")
    (lake.folder / "b.csv").write_text("amount,id\n1,2\n", "utf-8")
    read = {"format": "csv", "path": str(lake.folder / "[ab].csv"), "options": {"header": "true"}}
    lake.write({"table": "two", "schema": "public", "read": read | {"columns": "id BIGINT, amount BIGINT"}})
    assert lake.load("b").tables[0].rows == 2
    assert jvm.getActiveSession().get().equals(spark._jsparkSession)


def test_replay_of_one_check_leaves_the_others(lake):
    write_sums(lake)
    lake.load("a")
    write_sums(lake, expect=[])
    assert plan(lake, "range.other").files == ()
    result = replay(lake, "range.amount")
    assert (result.status, result.rows, result.set_aside) == ("done", 1, None), result.message
    assert (ids(lake), [check for check, _ in bad(lake)]) == ([1, 4, 5], ["on_bad_row", "on_bad_row"])


def test_rows_of_every_type_come_back_as_they_were(lake):
    """The quarantine has them as JSON: no digit, zone or byte is lost."""
    types = {
        "id": "int", "huge": "decimal(38,10)", "ratio": "double", "at": "timestamp", "local": "timestamp_ntz",
        "day": "date", "raw": "binary", "many": "array<struct<a:bigint,b:string>>", "map": "map<string,double>",
    }  # fmt: skip
    query = """
        SELECT 1 AS id, CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38,10)) AS huge,
            CAST('NaN' AS DOUBLE) AS ratio, TIMESTAMP '2024-02-29 23:59:59.123456+02:00' AS at,
            TIMESTAMP_NTZ '1969-12-31 23:59:59.000001' AS local, DATE '0001-01-01' AS day, X'00ff80' AS raw,
            array(named_struct('a', 9223372036854775807, 'b', 'é"\\n'), null) AS many,
            map('k', CAST('-Infinity' AS DOUBLE), 'n', null) AS map
        UNION ALL SELECT 2, null, null, null, null, null, null, null, null
    """
    lake._spark.sql(query).write.parquet(str(lake.folder / "in"))
    fails = [{"sql": "false", "name": "never", "on_violation": "quarantine"}]
    entry = {"table": "sums", "schema": "public", "read": {"format": "parquet", "path": "in"}}
    lake.write(entry | {"on_bad_row": RULE | {"at_most": 1}, "expect": fails})
    assert lake.load("a").tables[0].set_aside.rows == 2
    lake.write(entry | {"on_bad_row": RULE})
    assert replay(lake).rows == 2
    lake.load("b")
    columns = ", ".join(f'"{name}"' for name in types)
    rows = lake.rows(f"SELECT {columns}, _supa_job_id = 'b' AS own FROM t ORDER BY id, own", PLACE)
    assert [repr(row[:-1]) for row in rows[::2]] == [repr(row[:-1]) for row in rows[1::2]]
    assert "Decimal('1234567890123456789012345678.0123456789')" in repr(rows[0])
    assert bad(lake) == []


def test_files_that_changed_since_keep_a_replay_from_being_bound(lake):
    """Two replays at once: the second one's files are not those that it was planned with."""
    write_sums(lake)
    lake.load("a")
    write_sums(lake, expect=[])
    every = plan(lake)
    assert replay(lake, "range.amount").rows == 1
    result = replay(lake, planned=every)
    assert (result.status, result.code) == ("failed", "CONCURRENT_LOAD")
    assert "another load changed its quarantine" in result.message
    assert ids(lake) == [1, 4, 5]
    assert not lake.aws.uploads(BUCKET)


def test_lines_that_every_load_reads_again_are_loaded_once(lake):
    """A line that cannot be read has no cursor."""
    write_sums(lake, "id,amount,kind\n1,5,a\n3,7\n", cursor="id", expect=[], on_bad_row=RULE | {"at_most": 1})
    lake.load("a")
    lake.load("b")
    assert [text for _, text in bad(lake)] == ["3,7", "3,7"]
    (lake.folder / "sums.csv").write_text("id,amount\n1,5\n3,7\n", "utf-8")
    result = replay(lake)
    assert (result.status, result.rows) == ("done", 1), result.message
    assert (ids(lake), bad(lake)) == ([1, 3], [])
    # The cursor stays where it was, or goes on: nothing is read again that is loaded.
    assert lake.load("c").tables[0].rows == 0


def test_replay_sets_no_cursor_where_a_person_has_taken_it_away(lake):
    """All rows are to be read again, those of the quarantine are not all."""
    write_sums(lake, cursor="id")
    lake.load("a")
    repair.reset_cursor(lake.control(TABLE), None, "a drill")
    write_sums(lake, cursor="id", expect=[])
    assert replay(lake).rows == 1
    assert lake.control(TABLE).state.read().cursor is None
    lake.load("b")
    assert ids(lake) == [1, 1, 4, 4, 5, 5]


def test_replay_leaves_a_cursor_where_a_person_has_set_it(lake):
    """The rows from there on are to be read again, those of the quarantine are not all of them."""
    write_sums(lake, cursor="id")
    lake.load("a")
    repair.reset_cursor(lake.control(TABLE), Cursor("int32", "2"), "a drill")
    write_sums(lake, cursor="id", expect=[])
    assert replay(lake).rows == 1
    assert lake.control(TABLE).state.read().cursor == Cursor("int32", "2")
    lake.load("b")
    assert ids(lake) == [1, 4, 4, 5, 5]


def test_file_that_is_gone_when_a_task_reads_it(lake, monkeypatch):
    """Another load has committed since the files were looked at again."""
    write_sums(lake)
    lake.load("a")
    planned = plan(lake)
    monkeypatch.setattr(replaying, "find_files", lambda *_: planned.files)
    lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=planned.files[0].key)
    result = replay(lake, planned=planned)
    assert (result.status, result.code) == ("failed", "CONCURRENT_LOAD"), result.message
    assert "another load changed its quarantine" in result.message


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(6))
def test_replay_cut_off_anywhere_loads_each_row_once(lake, first):
    write_sums(lake)
    lake.load("a")
    write_sums(lake, expect=[])
    seen: list[Call] = []

    def note(call: Call, proceed: Any) -> Any:
        seen.extend([call] if is_write(call) else [])
        return proceed(call)

    lake.aws.interceptors.append(note)
    assert replay(lake).rows == 1
    lake.aws.interceptors.clear()
    # Every sixth, since each takes seconds; the steps are those of a load that keeps rows out.
    for after in range(first, len(seen), 6):
        text = f"id,amount,kind\n{after + 10},-1,b\n"
        write_sums(lake, text, on_bad_row=RULE | {"at_most": 1})
        assert lake.load(f"job-{after}").tables[0].set_aside.rows == 1
        write_sums(lake, text, expect=[])
        planned = plan(lake)

        def cut(call: Call, proceed: Any, count: list[int] = [after]) -> Any:  # noqa: B006 - each has its own
            count[0] -= is_write(call)
            return proceed(call) if count[0] >= 0 else call.denied()

        lake.aws.interceptors.append(cut)
        # Its outcome may be what could not be written.
        with suppress(S3AccessDeniedError):
            replay(lake, planned=planned)
        lake.aws.interceptors.clear()
        lake._wait_for_tasks()
        # The command finishes what is pending first, and then finds nothing left or the same files.
        pipeline = Pipeline.open(lake.spec, Clients(lake.spec.access))
        recover(pipeline.controls[TABLE], pipeline.open_clients)
        again = plan(lake)
        if any(f'"id":{after + 10}' in text for _, text in bad(lake)):
            assert again.job_id == planned.job_id
            assert replay(lake, planned=again).rows == 1
        assert ids(lake).count(after + 10) == 1, seen[after]
        assert not any(f'"id":{after + 10}' in text for _, text in bad(lake))
        assert not lake.aws.uploads(BUCKET)


def test_neither_a_replay_nor_what_it_has_loaded_is_undone(lake):
    write_sums(lake)
    lake.load("a")
    write_sums(lake, expect=[])
    planned = plan(lake)
    replay(lake, planned=planned)
    pipeline = Pipeline.open(lake.spec, Clients(lake.spec.access))
    for job_id, why in ((planned.job_id, "come from the quarantine"), ("a", "left the quarantine, as rows do that a")):
        with pytest.raises(SpecInvalidError, match=why):
            Undo(pipeline, job_id, Choices("a drill")).plan()


def test_what_a_replay_has_loaded_is_told_without_its_records(lake):
    """A load that was started again later has younger records, which are kept longer."""
    write_sums(lake)
    lake.load("a")
    write_sums(lake, expect=[])
    planned = plan(lake)
    replay(lake, planned=planned)
    lake.load("b")
    for key in lake.aws.objects(BUCKET):
        if f"/loads/{planned.job_id}/" in key:
            lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    pipeline = Pipeline.open(lake.spec, Clients(lake.spec.access))
    verified = verify(pipeline.controls, "a", pipeline.clients)
    assert verified.differences == ()
    assert verified.notes == (
        f"2 files of the bad rows of load 'a' left the quarantine of {TABLE}: a replay may have loaded them, and the "
        "records of some loads are cleared away",
    )
    with pytest.raises(SpecInvalidError, match="a replay may have loaded them"):
        Undo(pipeline, "a", Choices("a drill")).plan()


def test_lines_of_a_source_that_has_none_any_more_stay(lake):
    write_sums(lake)
    lake.load("a")
    rows = pa.table({"id": pa.array([9], pa.int32()), "amount": pa.array([9], pa.int32()), "kind": ["z"]})
    pq.write_table(rows, lake.folder / "sums.parquet")
    entry = {"table": "sums", "schema": "public", "read": {"format": "parquet", "path": "sums.parquet"}}
    lake.write(entry | {"primary_key": ["id"], "on_bad_row": RULE})
    result = replay(lake)
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 1, 2), result.message
    assert bad(lake) == [("on_bad_row", "3,7"), ("on_bad_row", '{"id":2,"kind":"a","amount":"x"}')]
    assert replay(lake).set_aside.rows == 2


def test_bad_rows_that_somebody_has_deleted_keep_no_load_from_being_undone(lake):
    write_sums(lake)
    lake.load("a")
    for key in list_quarantined(lake.aws):
        lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    [undoing] = Undo(Pipeline.open(lake.spec, Clients(lake.spec.access)), "a", Choices("a drill")).plan()
    assert undoing.plan is not None
    assert undoing.plan.notes == ("gone already: 2 files of its bad rows",)


def test_job_ids_of_replays_are_theirs_alone(lake):
    write_sums(lake, "id,amount,kind\n1,5,a\n")
    with pytest.raises(SpecInvalidError, match=r"begins with 'replay\.', as those of replays do"):
        lake.load("replay.1")


HINDRANCES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"on_bad_row": "fail", "expect": []}, {}, "it has no quarantine"),
    ({"mode": "refresh"}, {"type": "lakewriter-s3"}, "a load replaces what is there"),
]


@pytest.mark.parametrize(("fields", "destination", "why"), HINDRANCES)
def test_tables_that_cannot_be_replayed(lake, fields, destination, why):
    entry = table("sums", "sums.csv", on_bad_row=RULE) | fields
    if destination:
        own = destination | {"location": f"s3://{BUCKET}/p", "region": "us-east-1"}
        lake.file.write_text(json.dumps({"pipeline": "p", "destination": own, "tables": [entry]}), "utf-8")
    else:
        lake.write(entry)
    [own_table] = lake.spec.tables
    with pytest.raises(SpecInvalidError, match=why):
        require_replayable(lake.spec, own_table)


def test_text_that_the_reader_takes_for_null_today_is_null(lake):
    write_sums(lake, "id,amount,kind\n1,5,a\n2,NA,a\n3,NA,NA\n4,x,NA\n", expect=[])
    assert lake.load("a").tables[0].set_aside.rows == 3
    read = {"format": "csv", "path": "sums.csv", "options": {"header": "true", "nullValue": "NA"}}
    write_sums(lake, expect=[], read=read)
    result = replay(lake)
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 2, 1), result.message
    assert lake.rows("SELECT id, amount, kind FROM t ORDER BY 1", PLACE) == [
        (1, 5, "a"),
        (2, None, "a"),
        (3, None, None),
    ]
    # What is bad still is as it was kept.
    assert bad(lake) == [("on_bad_row", '{"id":4,"kind":"NA","amount":"x"}')]


DROPPED = [
    ("{}", "{}"),
    ('{"a":1.50,"b":"NA"}', '{"a":1.50}'),
    ('{"b":"NA","a":123456789012345678901234567890}', '{"a":123456789012345678901234567890}'),
    ('{"b":"NA"}', "{}"),
    # Text inside another value, a name, and a part of a text.
    ('{"a":[{"b":"NA"}],"NA":"x","c":"NA,"}', '{"a":[{"b":"NA"}],"NA":"x","c":"NA,"}'),
    ('{"a\\"":"NA","b":"\\"NA"}', '{"b":"\\"NA"}'),
]


@pytest.mark.parametrize(("row", "left"), DROPPED)
def test_columns_with_a_text_are_left_out(row, left):
    assert drop_text(row, "NA") == left
