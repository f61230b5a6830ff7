"""Undos of loads that are really there: what readers find afterwards, where the cursor is, and what is refused."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt, bind, register
from lakewriter.commit.committed_loads import read_table_loads
from lakewriter.commit.control import Control
from lakewriter.commit.decisions import read_sync_decision
from lakewriter.commit.iceberg import removal
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.errors import CommitUnknownError, ConcurrentLoadError, LakeError, LoadUndoneError, SpecInvalidError
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.loads import Loads
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.rebuild import InCatalog, ask_catalog, rebuild
from lakewriter.operate.repair import abandon, reset_cursor
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices, UndoPlanner
from lakewriter.receipt import Cursor
from lakewriter.run.loader import load
from tests.commit.edits import Edit
from tests.load.lakes import BUCKET
from tests.load.syncs import SyncLake, catalog, record, state, status, stream
from tests.operate.shop import BY_DAY, FILES, ICEBERG
from tests.operate.tampered import compact
from tests.support.local_tasks import local_session
from tests.support.narrow import need

KINDS = [
    # destination, undo in lake.yaml, how readers see it go
    (FILES, None, "files"),
    (FILES | BY_DAY, None, "files"),
    ({}, None, "files"),
    ({}, {"drop_partitions": True, "grace_minutes": 0}, "partition"),
    (BY_DAY, {"drop_partitions": True, "grace_minutes": 0}, "files"),
    (ICEBERG, None, "snapshot"),
]


NAMES = ("users", "orders")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("settings", "undo", "view"), KINDS, ids=[f"{each[2]}{at}" for at, each in enumerate(KINDS)])
def test_a_load_goes_and_comes_back(shop, settings, undo, view):
    """With a cursor: what is undone is read again by the next load, once."""
    shop = shop(settings, cursor="id", undo=undo)
    shop.load("a", "b")
    planned = shop.undo("b").plan()
    assert [(each.plan.view, each.plan.undone.rows, each.plan.undone.files) for each in planned] == [(view, 2, 1)]
    before = shop.aws.objects(BUCKET)
    assert shop.undo("b").plan() == planned
    assert shop.aws.objects(BUCKET) == before

    done = shop.undo("b").run()
    assert [(each.table_id, each.job_id, each.plan.view) for each in done] == [(shop.control.table_id, "b", view)]
    kept = shop.control.state.read()
    assert kept.cursor.text == "1"
    assert [(each.job_id, each.by, each.next, each.reason) for each in kept.undone] == [
        ("b", "undo.b", "b.r2", "a drill")
    ]
    assert kept.needs == ("changes",)
    if settings == ICEBERG:
        table = shop.iceberg()
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1]
        assert [each.summary.additional_properties.get("lakewriter.undoes") for each in table.snapshots()] == [
            None,
            None,
            "b",
        ]
        earlier = table.snapshots()[1].snapshot_id
        assert sorted(table.scan(snapshot_id=earlier).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    else:
        assert shop.ids() == [0, 1]
    assert shop.differences() == []

    # The id stays burnt; the next one reads what was undone and what is new.
    report = shop.try_load("b")
    assert report.tables[0].code == "LOAD_UNDONE"
    assert "--job-id b.r2" in report.tables[0].message
    shop.load("b.r2")
    ids = sorted(shop.iceberg().scan().to_arrow()["id"].to_pylist()) if settings == ICEBERG else shop.ids()
    # The load of b put two more rows at the source before it was refused.
    assert ids == list(range(8))
    assert shop.differences() == []
    assert [each.plan for each in shop.undo("b").run()] == [None]


def test_a_partition_goes_before_its_objects(shop, monkeypatch):
    """Queries that began before may read the objects for as long as the grace lasts; the table's next load then
    deletes them."""
    shop = shop({}, undo={"drop_partitions": True, "grace_minutes": 15})
    shop.load("a", "b")
    assert shop.partitions() == ["a", "b"]
    shop.undo("a").run()
    assert shop.partitions() == ["b"]
    assert shop.ids() == [0, 0, 1, 1, 2, 3]
    (entry,) = shop.control.state.read().retiring
    assert (entry.job_id, entry.not_before - datetime.now(UTC) > timedelta(minutes=14)) == ("undo.a", True)

    shop.load("c")
    assert len(shop.control.state.read().retiring) == 1
    control = shop.control
    past = entry.model_copy(update={"not_before": datetime.now(UTC) - timedelta(seconds=1)})
    control.state.move(Edit(retiring=(past,)))
    shop.load("d")
    assert shop.control.state.read().retiring == ()
    assert not [key for key in shop.aws.objects(BUCKET) if "/a/part-" in key]


def test_undone_objects_do_not_come_back_with_their_partition(shop):
    """A load into the partition that was dropped deletes what is left of the undone one before it adds it again."""
    shop = shop(BY_DAY, undo={"drop_partitions": True, "grace_minutes": 15})
    shop.load("a")
    shop.undo("a").run()
    assert shop.partitions() == []
    assert shop.ids() == [0, 1]
    shop.load("a.r2")
    assert len(shop.partitions()) == 1
    assert shop.ids() == [0, 1, 2, 3]
    assert not [key for key in shop.aws.objects(BUCKET) if "part-a-" in key]


def test_a_partition_stays_that_another_pipeline_may_add_again(shop):
    """The other pipeline's loads know nothing of the undo: they would show the undone rows, left for the grace."""
    shop = shop({}, undo={"drop_partitions": True, "grace_minutes": 15})
    shop.load("a")
    trains = shop.lake.spec.model_copy(update={"pipeline": "trains", "shares_tables": True})
    shop.try_load("z", spec=trains, more=False)
    (done,) = shop.undo("a").run()
    assert (done.plan.view, done.plan.notes) == (
        "files", ("another pipeline loads the table too, and may add partition a: it stays",),
    )  # fmt: skip
    assert (shop.partitions(), shop.ids()) == (["a", "z"], [0, 1])
    shop.try_load("a", spec=trains, more=False)
    assert shop.ids() == [0, 0, 1, 1]


CURSORS = [
    # loads, undos in order with their options, rows left, cursor, what is refused
    ("abc", [("c", {})], [0, 1, 2, 3], "3", None),
    ("abc", [("c", {}), ("b", {}), ("a", {})], [], None, None),
    ("abc", [("a", {"through": True})], [], None, None),
    ("abc", [("b", {"through": True})], [0, 1], "1", None),
    ("abc", [("b", {"keep_cursor": True})], [0, 1, 4, 5], "5", None),
    ("abc", [("c", {"keep_cursor": True})], [0, 1, 2, 3], "5", None),
    (
        "abc", [("b", {})], [0, 1, 2, 3, 4, 5], "5",
        "load 'b' of nyc_public.shots cannot be undone: load c went on from its cursor. "
        "Undo those as well: --through; or leave its rows out of the table: --keep-cursor",
    ),
    (
        "abc", [("a", {})], [0, 1, 2, 3, 4, 5], "5",
        "load 'a' of nyc_public.shots cannot be undone: loads b, c went on from its cursor. "
        "Undo those as well: --through; or leave its rows out of the table: --keep-cursor",
    ),
    (
        "a", [("x", {})], [0, 1], "1",
        "load 'x' is committed in no table of this pipeline. lakewriter history LAKE lists its loads.",
    ),
    (
        "a", [("a", {}), ("undo.a", {})], [], None,
        "load 'undo.a' is committed in no table of this pipeline. lakewriter history LAKE lists its loads.",
    ),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("loads", "undos", "ids", "cursor", "refused"), CURSORS)
def test_the_cursor_goes_back_where_that_is_right(shop, loads, undos, ids, cursor, refused):
    shop = shop(FILES, cursor="id")
    shop.load(*loads)
    said = None
    for job, options in undos:
        try:
            shop.undo(job, **options).run()
        except SpecInvalidError as error:
            said = f"{error.message} {error.remedy}"
    assert said == refused
    assert shop.ids() == ids
    now = shop.control.state.read().cursor
    assert (now.text if now is not None else None) == cursor
    assert shop.control.state.read().running == {}


def test_an_undo_that_the_state_names_no_more_is_told_by_its_report(shop):
    """A state names the last hundred: whoever undoes many loads at once goes beyond that."""
    shop = shop(FILES)
    shop.load("a", "b")
    shop.undo("a").run()
    control = shop.control
    (entry,) = control.state.read().undone
    others = [entry.model_copy(update={"job_id": f"x{number}", "by": f"undo.x{number}"}) for number in range(100)]
    control.state.move(Edit(undone=tuple(others)))

    assert [each.plan for each in shop.undo("a").run()] == [None]
    assert shop.try_load("a", more=False).tables[0].code == "LOAD_UNDONE"
    assert [each.job_id for each in read_table_loads([shop.control])[0].loads] == ["b"]
    assert shop.differences() == []
    assert shop.try_load("a.r2", more=False).tables[0].status == "done"


def test_a_cursor_that_was_moved_by_hand_stays(shop):
    shop = shop(FILES, cursor="id")
    shop.load("a", "b")
    reset_cursor(shop.control, Cursor("int64", "100"), "a drill")
    (undoing,) = shop.undo("b").run()
    assert undoing.plan.notes == ("the cursor was moved by hand since, and stays at 100",)
    assert shop.control.state.read().cursor.text == "100"


def test_one_table_of_two(shop):
    """The load that stands for it loads the undone table alone; the other one is done."""
    shop = shop(FILES, tables=("shots", "sales"))
    shop.load("a")
    shop.undo("a", tables=["nyc_public.shots"]).run()
    assert shop.ids() == [0, 1]
    report = shop.try_load("a", more=False)
    assert [(each.table, each.status, each.code) for each in report.tables] == [
        ("shots", "failed", "LOAD_UNDONE"),
        ("sales", "already_done", None),
    ]
    report = shop.try_load("a.r2", more=False)
    assert [(each.table, each.status) for each in report.tables] == [("shots", "done"), ("sales", "already_done")]
    assert shop.ids() == [0, 0, 1, 1]
    told = {each.job_id: [table.status for table in each.tables] for each in Loads(shop.pipeline.controls).read_last(5)}
    # A table's report is all that is left where the command line has no part in it.
    assert {job: sorted(statuses) for job, statuses in told.items()} == {
        "a": ["done", "undone"], "a.r2": ["done"], "undo.a": ["done"],
    }  # fmt: skip
    # Undone again, a third id stands for both.
    shop.undo("a.r2").run()
    assert shop.try_load("a.r2", more=False).tables[0].code == "LOAD_UNDONE"
    assert [each.status for each in shop.try_load("a.r3", more=False).tables] == ["done", "already_done"]


def test_a_slow_attempt_does_not_load_beside_the_load_that_stands_for_it(shop):
    """The load failed in one table and is undone in the other: what stands for it loads both, and nothing that began
    under the old id may still bind, nor begin, in either."""
    shop = shop(FILES, tables=("shots", "sales"))
    for file in (shop.folder / "shots").iterdir():
        file.unlink()
    (shop.folder / "shots" / "bad.parquet").write_bytes(b"no Parquet")
    assert [each.status for each in shop.try_load("a").tables] == ["failed", "done"]
    (shop.folder / "shots" / "bad.parquet").unlink()

    control, open_clients = shop.control, shop.pipeline.open_clients
    slow = Attempt("flights", "a", "5107", datetime.now(UTC), timedelta(days=30))
    began = register(control, slow, open_clients)
    assert began is not None
    shop.undo("a").run()
    assert [each.status for each in shop.try_load("a.r2", more=False).tables] == ["done", "done"]

    assert [(each.job_id, each.by, each.next) for each in control.state.read().undone] == [("a", "a.r2", "a.r2")]
    intent = control.find_intent("a.r2", control.read_report("a.r2").attempt)
    with pytest.raises(ConcurrentLoadError):
        bind(control, slow, intent.model_copy(update={"job_id": "a", "attempt": "5107"}), began, open_clients)
    with pytest.raises(LoadUndoneError):
        register(control, slow, open_clients)


def test_a_load_that_added_a_column(shop):
    """The column stays, and is null."""
    shop = shop(ICEBERG)
    shop.load("a")
    rows = pa.table({"id": [7], "text": ["z"], "colour": ["red"]})
    pq.write_table(rows, shop.folder / "shots" / "07.parquet")
    assert shop.try_load("b", more=False).status == "done"
    shop.undo("b").run()
    table = shop.iceberg()
    assert "colour" in table.schema().column_names
    assert table.scan().to_arrow().select(["id", "colour"]).to_pylist() == [
        {"id": 0, "colour": None}, {"id": 1, "colour": None},
    ]  # fmt: skip


def test_the_neighbour_of_an_undone_load(shop):
    """In the middle of others, without a cursor."""
    shop = shop(ICEBERG)
    for job in "abc":
        shop.load(job)
    shop.undo("b").run()
    shop.undo("a").run()
    # Each load reads all that is there: six rows in the third.
    assert sorted(shop.iceberg().scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    assert shop.differences() == []
    shop.undo("c").run()
    assert shop.iceberg().scan().to_arrow().num_rows == 0


@pytest.mark.usefixtures("small_files_apart")
def test_rewritten_files_are_undone_by_rows(shop):
    shop = shop(ICEBERG)
    shop.load("a", "b")
    shop.aws.hide_missing = False
    compact(shop.iceberg())
    with pytest.raises(SpecInvalidError) as refused:
        shop.undo("b").run()
    assert "compaction has 2 of its 2 files rewritten since, such as s3://acme-lake/" in refused.value.message
    assert refused.value.remedy == "Delete its rows, by _supa_job_id, from the files that have them now: --rewrite"
    (undoing,) = shop.undo("b", rewrite=True).run()
    assert undoing.plan.undone.column == "_supa_job_id"
    rows = shop.iceberg().scan().to_arrow()
    assert set(rows["_supa_job_id"].to_pylist()) == {"a"}
    assert sorted(rows["id"].to_pylist()) == [0, 1]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("through", [("b",), ("b", "a"), ("a", "b")])
@pytest.mark.usefixtures("small_files_apart")
def test_a_compaction_whose_files_an_undo_has_rewritten_is_no_difference(shop, through):
    shop = shop(ICEBERG)
    shop.load(*"abcdef")
    (table,) = shop.lake.spec.tables
    report = Compaction(shop.pipeline, table, 2**30).run()
    assert report is not None
    compacted = need(report.compacted)
    assert (compacted.files > 5, compacted.files_after) == (True, 1)
    for number, job in enumerate(through, 1):
        shop.undo(job, rewrite=True).run()
        assert shop.differences() == []
        seen = set(shop.iceberg().scan().to_arrow()["_supa_job_id"].to_pylist())
        assert seen == set("abcdef") - set(through[:number])


@pytest.mark.usefixtures("small_files_apart")
def test_a_compaction_whose_rows_another_writer_has_deleted_is_a_difference(shop):
    shop = shop(ICEBERG)
    shop.load(*"abcdef")
    Compaction(shop.pipeline, shop.lake.spec.tables[0], 2**30).run()
    shop.aws.hide_missing = False
    shop.iceberg().delete("_supa_job_id = 'c'")
    (difference,) = shop.differences()
    assert "was removed by snapshot" in difference


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("small_files_apart")
@pytest.mark.parametrize("moment", ["planned", "committing"])
def test_files_that_are_rewritten_while_they_are_undone(shop, monkeypatch, moment):
    """The undo names files that the table has no more; their rows are in others. It must not count as done."""
    shop = shop(ICEBERG)
    shop.load("a", "b")
    shop.aws.hide_missing = False
    plan = UndoPlanner._plan_snapshot

    def plan_and_compact(planner, planned):
        result = plan(planner, planned)
        compact(shop.iceberg())
        return result

    take_out = removal.take_out

    def compact_and_take_out(*given):
        monkeypatch.setattr(removal, "take_out", take_out)
        compact(shop.iceberg())
        take_out(*given)

    if moment == "planned":
        monkeypatch.setattr(UndoPlanner, "_plan_snapshot", plan_and_compact)
    else:
        monkeypatch.setattr(removal, "take_out", compact_and_take_out)
    with pytest.raises(CommitUnknownError) as refused:
        shop.undo("b").run()
    assert (
        "has 0 of the 2 files of load 'b': the others were rewritten since its undo was planned"
        in refused.value.message
    )
    assert "lakewriter abandon LAKE undo.b --reason TEXT" in refused.value.remedy
    # Each load reads all that is there.
    assert sorted(shop.iceberg().scan().to_arrow()["id"].to_pylist()) == [0, 0, 1, 1, 2, 3]

    assert abandon(shop.pipeline.controls, "undo.b", "a drill", shop.pipeline.clients) == {
        shop.control.table_id: "given up: the load that it was to take out stays"
    }
    assert (shop.control.state.read().pending, shop.control.state.read().undone) == (None, ())
    monkeypatch.setattr(UndoPlanner, "_plan_snapshot", plan)
    shop.undo("b", rewrite=True).run()
    assert sorted(shop.iceberg().scan().to_arrow()["id"].to_pylist()) == [0, 1]
    assert shop.differences() == []


def test_load_whose_snapshot_was_rolled_back_is_undone(shop):
    shop = shop(ICEBERG)
    shop.load("a", "b")
    first, _ = shop.iceberg().snapshots()
    shop.aws.hide_missing = False
    shop.iceberg().manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()
    (undoing,) = shop.undo("b").run()
    assert undoing.plan.notes == ("its snapshot was rolled back: none of its rows are in the table",)
    assert sorted(shop.iceberg().scan().to_arrow()["id"].to_pylist()) == [0, 1]
    assert [undone.job_id for undone in shop.control.state.read().undone] == ["b"]


def test_others_objects_stay(shop):
    """What was put under a key since, and what is gone, is told; the rest goes."""
    shop = shop(FILES)
    shop.load("a", "b")
    keys = sorted(key for key in shop.aws.objects(BUCKET) if "part-b-" in key and "_lakewriter" not in key)
    shop.aws.client("s3").put_object(Bucket=BUCKET, Key=keys[0], Body=b"mine")
    (undoing,) = shop.undo("b").run()
    assert undoing.plan.notes == ("left, since others wrote them: 1 object under its keys",)
    left = sorted(key for key in shop.aws.objects(BUCKET) if "part-b-" in key and "_lakewriter" not in key)
    assert left == keys[:1]


def load_messages(lake, job, streams, *messages):
    """A load of what a source sent; returns its report and the pipeline."""
    source = {"messages": lake.messages(*messages), "catalog": catalog(*streams)}
    lake.write({"format": {"format_type": "JSONL"}}, source=source)
    spec = lake.spec
    report = load(spec, job_id=job, clients=Clients(spec.access), spark=lambda: local_session(1))
    return report, Pipeline.open(spec, Clients(spec.access))


def append(name):
    return stream(name, sync_mode="incremental", destination_sync_mode="append")


def test_the_source_goes_back_to_its_state(tmp_path, aws, bucket):
    """Of an incremental stream; a full refresh that deleted what was before is not undone."""
    lake = SyncLake(tmp_path, aws, local_session(1))

    def run(job, count, mode="append"):
        streams = [stream("users", sync_mode="incremental", destination_sync_mode=mode)]
        rows = (record("users", {"user_id": number}) for number in range(3))
        report, pipeline = load_messages(lake, job, streams, *rows, state("users", count))
        assert report.status == "done", report.tables
        return pipeline

    run("a", 3)
    pipeline = run("b", 6)
    (control,) = pipeline.controls.values()
    assert json.loads(control.state.read().sync.source.text)["stream"]["stream_state"] == {"cursor": 6}
    Undo(pipeline, "b", Choices("a drill")).run()
    assert json.loads(control.state.read().sync.source.text)["stream"]["stream_state"] == {"cursor": 3}
    Undo(pipeline, "a", Choices("a drill")).run()
    assert control.state.read().sync.source is None
    run("c", 3)
    pipeline = run("d", 6, "overwrite")
    with pytest.raises(SpecInvalidError) as refused:
        Undo(pipeline, "d", Choices("a drill")).run()
    assert "it has replaced older generations" in str(refused.value)


def test_a_cut_stream_is_not_loaded_under_the_next_id_where_it_is_done(tmp_path, aws, bucket):
    """One stream of two is undone, and the source's next output ends before its streams do."""
    lake = SyncLake(tmp_path, aws, local_session(1))
    rows = [record(name, {"user_id": 1}) for name in NAMES] + [state(name, 1) for name in NAMES]
    streams = [append(name) for name in NAMES]
    report, pipeline = load_messages(lake, "a", streams, *rows, *(status(name, "COMPLETE") for name in NAMES))
    assert report.status == "done", report.tables
    Undo(pipeline, "a", Choices("a drill"), tables=["public.users"]).run()
    load_messages(lake, "a.r2", streams, *rows, status(NAMES[0], "STARTED"))
    assert [control.state.read().committed for control in pipeline.controls.values()] == [3, 1]


def test_a_state_of_all_streams_goes_back_in_all_tables(tmp_path, aws, bucket):
    """In one table alone, the source would send the rows of the others again."""
    lake = SyncLake(tmp_path, aws, local_session(1))

    def run(job, lsn):
        content = {"type": "GLOBAL", "global": {"shared_state": {"lsn": lsn}, "stream_states": []}}
        rows = [record(name, {"user_id": lsn}) for name in NAMES]
        streams = [append(name) for name in NAMES]
        report, pipeline = load_messages(lake, job, streams, *rows, {"type": "STATE", "state": content})
        assert report.status == "done", report.tables
        return pipeline

    run("a", 3)
    pipeline = run("b", 6)
    with pytest.raises(SpecInvalidError) as refused:
        Undo(pipeline, "b", Choices("a drill"), tables=["public.users"]).run()
    assert f"{refused.value.message} {refused.value.remedy}" == (
        "load 'b' of public.users cannot be undone: the state of its source is that of all streams, and other tables "
        "are left out. Undo it in all tables: leave --table out; or leave its rows out of the table: --keep-cursor"
    )
    Undo(pipeline, "b", Choices("a drill")).run()
    sources = [(control, control.state.read().sync.source) for control in pipeline.controls.values()]
    kept = [need(need(read_sync_decision(control, need(source))).source) for control, source in sources]
    assert [json.loads(each.text)["global"]["shared_state"] for each in kept] == [{"lsn": 3}] * 2


def cut_off(shop, match, job):
    """The undo of the load is refused everything from the matching call on."""
    passed = [False]

    def refuse(call, proceed):
        passed[0] = passed[0] or match(call)
        return call.denied() if passed[0] else proceed(call)

    shop.aws.interceptors.append(refuse)
    with pytest.raises(LakeError):
        shop.undo(job).run()
    shop.aws.interceptors.remove(refuse)


def deletes(call):
    return call.action == "s3:DeleteObject" and "part-" in call.key


def test_an_undo_that_is_cut_off_is_finished_by_the_next_load(shop):
    """It cannot be given up once files may be gone."""
    shop = shop(FILES, cursor="id")
    shop.load("a", "b")
    cut_off(shop, deletes, "b")
    pending = shop.control.state.read().pending
    assert (pending.job_id, pending.phase) == ("undo.b", "uploaded")
    with pytest.raises(SpecInvalidError) as refused:
        abandon(shop.pipeline.controls, "undo.b", "a drill", shop.pipeline.clients)
    assert refused.value.remedy == (
        "Let it finish: lakewriter undo LAKE b --reason TEXT. If it can never finish, end it as it is, and undo the "
        "load again once it can: lakewriter abandon LAKE undo.b --intent-lost --reason TEXT"
    )
    shop.load("c")
    assert shop.ids() == [0, 1, 2, 3, 4, 5]
    assert [each.job_id for each in shop.control.state.read().undone] == ["b"]


def test_a_late_process_drops_no_partition_that_is_there_again(shop):
    """It saw the undo pending; since then another process has ended it, and a load has added the partition."""
    shop = shop(BY_DAY, undo={"drop_partitions": True, "grace_minutes": 0})
    shop.load("a")
    cut_off(shop, lambda call: call.action == "glue:DeletePartition", "a")
    late = shop.control
    assert late.state.read().pending is not None
    shop.load("a.r2")
    assert len(shop.partitions()) == 1
    recover(late, shop.pipeline.open_clients)
    assert len(shop.partitions()) == 1
    assert shop.differences() == []


def test_a_late_process_of_a_load_adds_no_partition_that_an_undo_has_dropped(shop):
    """It saw the load pending; since then others have ended and undone it. Its objects are there for the grace."""
    shop = shop({}, undo={"drop_partitions": True, "grace_minutes": 15})
    shop.load("a")

    def refuse(call, proceed):
        return call.denied() if call.action == "glue:BatchCreatePartition" else proceed(call)

    shop.aws.interceptors.append(refuse)
    shop.try_load("b")
    shop.aws.interceptors.remove(refuse)
    late = shop.control
    assert late.state.read().pending.job_id == "b"
    shop.load("b")
    shop.undo("b").run()
    assert shop.partitions() == ["a"]
    recover(late, shop.pipeline.open_clients)
    assert shop.partitions() == ["a"]
    assert shop.differences() == []


class ReportIsWritten:
    """Matches each call after the one that writes the undo's report."""

    def __init__(self):
        self._is_written = False

    def __call__(self, call):
        was_written = self._is_written
        self._is_written |= call.action == "s3:PutObject" and call.key.endswith(".report.json")
        return was_written


@pytest.mark.parametrize("match", [deletes, ReportIsWritten()])
def test_an_undo_whose_intent_is_lost_is_undone_again(shop, match):
    """Its report alone does not make it an undo: the cursor is still that of the load."""
    shop = shop(FILES, cursor="id")
    shop.load("a", "b")
    cut_off(shop, match, "b")
    pending = shop.control.state.read().pending
    key = shop.control.keys.intent("undo.b", pending.attempt, shop.control.table_id)
    shop.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    (said,) = abandon_without_intent(shop.pipeline.controls, "undo.b", "a drill").values()
    assert said.startswith("closed as it is: what it has taken out is not known")
    (undoing,) = shop.undo("b").run()
    assert undoing.plan is not None
    assert shop.ids() == [0, 1]
    assert shop.control.state.read().cursor.text == "1"


def test_an_undo_that_another_process_completes_while_it_is_ended_keeps_its_report(shop, monkeypatch):
    """That process still has the intent in its memory."""
    shop = shop(FILES, cursor="id")
    shop.load("a", "b")
    cut_off(shop, ReportIsWritten(), "b")
    pending, client = shop.control.state.read().pending, shop.aws.client("s3")
    key = shop.control.keys.intent("undo.b", pending.attempt, shop.control.table_id)
    intent = shop.aws.objects(BUCKET)[key]
    client.delete_object(Bucket=BUCKET, Key=key)
    delete = Control.delete_report

    def complete(control, job_id):
        client.put_object(Bucket=BUCKET, Key=key, Body=intent)
        recover(shop.pipeline.first_control, shop.pipeline.open_clients)
        return delete(control, job_id)

    monkeypatch.setattr(Control, "delete_report", complete)
    (said,) = abandon_without_intent(shop.pipeline.controls, "undo.b", "a drill").values()
    assert said == "nothing: another process brought it to its end meanwhile"
    assert need(shop.control.read_report("undo.b")).undoes == "b"
    assert shop.ids() == [0, 1]
    assert shop.control.state.read().cursor.text == "1"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("keeps_intents", [True, False])
def test_a_state_is_rebuilt_with_what_was_undone(shop, keeps_intents):
    shop = shop(FILES, cursor="id")
    shop.load("a", "b")
    shop.undo("b").run()
    before, control = shop.control.state.read(), shop.control
    client = shop.aws.client("s3")
    client.delete_object(Bucket=BUCKET, Key=control.keys.state(control.table_id))
    if not keeps_intents:
        for key in shop.aws.objects(BUCKET):
            if "/tables/" in key and "/loads/" in key:
                client.delete_object(Bucket=BUCKET, Key=key)
    (table,) = shop.lake.spec.tables
    rebuild(shop.control, table, InCatalog(), "a drill", None, from_start=False)
    after = shop.control.state.read()
    assert (after.committed, after.cursor, after.last_job) == (3, before.cursor, "undo.b")
    assert [(each.job_id, each.by, each.next) for each in after.undone] == [("b", "undo.b", "b.r2")]


def test_a_state_is_rebuilt_whose_undo_had_dropped_its_partition(shop):
    """The objects are there for the grace: that readers see nothing of the load, only Glue shows."""
    shop = shop({}, undo={"drop_partitions": True, "grace_minutes": 15})
    shop.load("a", "b")
    cut_off(shop, lambda call: call.action == "glue:GetPartition", "a")
    assert shop.partitions() == ["b"]
    control = shop.control
    shop.aws.client("s3").delete_object(Bucket=BUCKET, Key=control.keys.state(control.table_id))
    (table,) = shop.lake.spec.tables
    catalog = ask_catalog(shop.lake.spec, table, shop.pipeline.clients)
    rebuild(shop.control, table, catalog, "a drill", None, from_start=False)
    shop.load("c")
    assert [each.job_id for each in shop.control.state.read().undone] == ["a"]
    assert (shop.partitions(), shop.differences()) == (["b", "c"], [])


def test_a_load_is_not_undone_from_whose_cursor_a_forgotten_one_went_on(shop):
    """Records are cleared away by their age; an earlier load that was asked for again has younger ones."""
    shop = shop(FILES, cursor="id")
    shop.load("a", "b")
    for key in shop.aws.objects(BUCKET):
        if "/loads/b/" in key:
            shop.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(SpecInvalidError) as refused:
        shop.undo("a").run()
    assert str(refused.value).removeprefix("SPEC_INVALID: ") == (
        "load 'a' of nyc_public.shots cannot be undone: its cursor has gone on since, by hand or by loads whose "
        "records are gone. Leave its rows out of the table: --keep-cursor"
    )
    assert shop.ids() == [0, 1, 2, 3]


def test_a_state_is_rebuilt_whose_only_load_was_undone(shop):
    """The undo's report tells that there is no cursor: nobody has to say so."""
    shop = shop(FILES, cursor="id")
    shop.load("a")
    shop.undo("a").run()
    control = shop.control
    shop.aws.client("s3").delete_object(Bucket=BUCKET, Key=control.keys.state(control.table_id))
    (table,) = shop.lake.spec.tables
    rebuild(shop.control, table, InCatalog(), "a drill", None, from_start=False)
    assert shop.control.state.read().cursor is None
    shop.load("a.r2")
    assert shop.ids() == [0, 1, 2, 3]
