"""``lakewriter compact``: an Iceberg table has the same rows in fewer files, whoever comes between or dies."""

import json
from contextlib import suppress
from datetime import timedelta
from unittest.mock import patch

import botocore.client
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit import attempt as attempts
from lakewriter.commit.iceberg import compact_groups
from lakewriter.commit.recover import recover
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import ORDINAL
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.repair import change_over, reset_cursor
from lakewriter.operate.undo_plan import UndoPlan
from lakewriter.receipt import Batch
from lakewriter.report import DeletedRows
from lakewriter.run.kinds import MicroBatch
from lakewriter.run.loader import load as run_load
from lakewriter.source.feed import open_feed
from tests.commit.edits import Edit
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.load.test_merged import CALL, TOTALS, Killed, load, make, rows
from tests.operate import tampered

GIB = 2**30


def make_appended(tmp_path, aws, **changes):
    return Refreshed(tmp_path, aws, "iceberg", **({"mode": "append"} | changes))


def compact(users, budget=GIB):
    table, *_ = users.spec.tables
    return Compaction(users.pipeline, table, budget)


def totals(users):
    summary = users.iceberg().current_snapshot().summary.additional_properties
    return tuple(int(summary.get(f"total-{name}", 0)) for name in TOTALS)


def ids(users):
    return sorted(users.iceberg().scan().to_arrow()["id"].to_pylist())


def append(users, loads=5):
    for number in range(loads):
        users.load(f"job-{number}", id=[number], v=["a"])


def test_small_files_become_one(tmp_path, aws, bucket):
    users = make_appended(tmp_path, aws)
    append(users)
    plan = compact(users).plan()
    assert [(len(group.files), group.deletes, group.directory) for group in plan.groups] == [(5, (), "")]
    report = compact(users).run()
    assert (report.job_id, report.rows, report.files) == ("compact.crm.users.6", 0, 1)
    assert (report.compacted.files, report.compacted.files_after, report.compacted.rows) == (5, 1, 5)
    snapshot = users.iceberg().current_snapshot()
    assert (snapshot.summary.operation.value, totals(users)) == ("replace", (1, 5, 0, 0))
    assert ids(users) == [0, 1, 2, 3, 4]
    assert users.differences() == []
    state = users.state
    assert (state.committed, state.compactions, state.last_job, state.pending) == (6, 1, "job-4", None)
    # Nothing is left to do, and loads go on.
    assert compact(users).run() is None
    users.load("after", id=[9], v=["b"])
    assert ids(users) == [0, 1, 2, 3, 4, 9]
    assert users.differences() == []


def test_deletes_leave_with_the_rows_that_they_deleted(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "b"), (3, 1, "b"))
    load(users, "c", (1, 3, "c"))
    before = rows(users)
    assert totals(users) == (3, 5, 2, 2)
    report = compact(users).run()
    assert (report.compacted.deletes, report.compacted.delete_files, report.compacted.rows) == (2, 2, 3)
    assert totals(users) == (1, 3, 0, 0)
    assert rows(users) == before == [(1, 3, "c"), (2, 1, "a"), (3, 1, "b")]
    load(users, "d", (1, 2, "late"), (2, 5, "d"))
    assert rows(users) == [(1, 3, "c"), (2, 5, "d"), (3, 1, "b")]
    assert users.differences() == []


def test_a_file_without_rows_left_is_replaced_by_none(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"))
    load(users, "b", (1, 2, "b"))
    report = compact(users).run()
    assert (report.files, totals(users)) == (1, (1, 1, 0, 0))
    users.undo("b").run()
    assert rows(users) == [(1, 1, "a")]


@pytest.mark.spark
def test_partitions_are_kept_apart(tmp_path, aws, bucket, spark):
    users = make_appended(tmp_path, aws, partition_by=["v"], spark=spark)
    for number in range(5):
        users.load(f"job-{number}", id=[number, number + 10], v=["a", "b c"])
    report = compact(users).run()
    assert (report.compacted.files, report.files) == (10, 2)
    table = users.iceberg()
    files = [(task.file.partition[0], task.file.record_count) for task in table.scan().plan_files()]
    assert sorted(files) == [("a", 5), ("b c", 5)]
    assert sorted(table.scan("v = 'b c'").to_arrow()["id"].to_pylist()) == [10, 11, 12, 13, 14]
    keys = [key for key in aws.objects(BUCKET) if "compact" in key and key.endswith(".parquet")]
    assert sorted(key.rpartition("/")[0] for key in keys) == ["data/crm/users/data/v=a", "data/crm/users/data/v=b+c"]
    assert users.differences() == []


@pytest.mark.exhaustive
def test_columns_that_came_later_and_wider_types(tmp_path, aws, bucket):
    users = make_appended(tmp_path, aws)
    users.load("a", id=pa.array([1], pa.int32()))
    for number in range(4):
        users.load(f"b-{number}", id=pa.array([2**40 + number]), more=["x"])
    compact(users).run()
    found = sorted((row["id"], row["more"]) for row in users.iceberg().scan().to_arrow().to_pylist())
    assert found == [(1, None), *((2**40 + number, "x") for number in range(4))]
    assert users.differences() == []


@pytest.mark.exhaustive
def test_the_budget_is_kept(tmp_path, aws, bucket, monkeypatch):
    monkeypatch.setattr(compact_groups, "MOST_FILES", 5)
    users = make_appended(tmp_path, aws)
    append(users, 10)
    assert (len(compact(users).plan().groups), compact(users).plan().waiting) == (1, 1)
    compact(users, 1).run()
    assert totals(users)[0] == 6
    compact(users, 1).run()
    assert totals(users)[0] == 2
    assert ids(users) == list(range(10))


# What comes between the reading of five files of one group and the commit of their compaction; the groups that are left
# out, and the rows of the table after both.
FIVE = [(number, 1, "a") for number in range(5)]
BETWEEN = {
    "an append": (lambda users: as_mode(users, "append", (7, 1, "n")), (), [*FIVE, (7, 1, "n")]),
    "a batch of a continuous run": (lambda users: load_batch(users, (7, 1, "n")), (), [*FIVE, (7, 1, "n")]),
    "two batches": (lambda users: load_batches(users), (), [*FIVE, (7, 1, "n"), (8, 1, "n")]),
    "a load that moves the cursor": (lambda users: move_cursor(users, (7, 1, "n")), (), [*FIVE, (7, 1, "n")]),
    "a merge of other keys": (lambda users: load(users, "between", (7, 1, "n")), (), [*FIVE, (7, 1, "n")]),
    "a merge into its files": (
        lambda users: load(users, "between", (1, 9, "n")),
        (0,),
        sorted([*FIVE[:1], (1, 9, "n"), *FIVE[2:]]),
    ),
    "a merge that is undone": (lambda users: merge_and_undo(users), (), FIVE),
    "the undo of one of its loads": (lambda users: users.undo("job-4").run(), (0,), FIVE[:4]),
    "a refresh": (lambda users: as_mode(users, "refresh", (7, 1, "n")), (0,), [(7, 1, "n")]),
    "a refresh that is undone": (lambda users: refresh_and_undo(users), (), FIVE),
    "a merge and a compaction": (lambda users: merge_and_compact(users), (0,), [*FIVE, (7, 1, "n")]),
    "a compaction by another engine": (lambda users: compact_by_hand(users), (0,), FIVE),
}


def as_mode(users, mode, *given):
    changes = {"mode": mode, "order_by": []} if mode != "merge" else {}
    users.write(**changes)
    load(users, f"between-{mode}", *given)
    users.write()


def load_batch(users, row, number=0):
    batch = Batch("q1", number, f"offsets {number}")
    users.write_rows(**dict(zip(("id", "at", "v"), ([value] for value in row), strict=True)))
    spec = users.spec
    kind = MicroBatch(batch, users.state.batch, open_feed)
    report = run_load(spec, job_id=batch.job_id, clients=Clients(spec.access), spark=lambda: users.spark, kind=kind)
    assert report.status == "done", report.tables


def load_batches(users):
    load_batch(users, (7, 1, "n"))
    load_batch(users, (8, 1, "n"), 1)


def move_cursor(users, row):
    users.write(cursor="id")
    load(users, "between", row)
    assert users.state.cursor.text == "7"


def merge_and_undo(users):
    load(users, "between", (1, 9, "n"))
    users.undo("between").run()


def merge_and_compact(users):
    load(users, "between", (7, 1, "n"))
    assert compact(users).run().compacted.dropped == ()


def refresh_and_undo(users):
    as_mode(users, "refresh", (7, 1, "n"))
    users.undo("between-refresh").run()


def compact_by_hand(users):
    users.aws.hide_missing = False
    tampered.compact(users.iceberg())


def run_between(compaction, between):
    """Compact with ``between`` called when the files were read and their rows staged."""
    bind = Compaction._make_intent

    def meddle(self, *given):
        with patch.object(Compaction, "_make_intent", bind):
            between()
        return bind(self, *given)

    with patch.object(Compaction, "_make_intent", meddle):
        return compaction.run()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", BETWEEN)
def test_changes_between_reading_and_commit(tmp_path, aws, bucket, case):
    """The compaction is done whatever commits meanwhile, without the groups whose files have changed."""
    (between, dropped, expected), users = BETWEEN[case], make(tmp_path, aws)
    for row in FIVE:
        load(users, f"job-{row[0]}", row)
    if "batch" in case:
        change_over(users.pipeline.first_control, "a drill")
    report = run_between(compact(users), lambda: between(users))
    assert report.compacted.dropped == dropped
    assert report.files == (0 if dropped else 1)
    assert rows(users) == expected
    assert users.differences() == []
    assert (users.state.pending, users.state.running) == (None, {})
    # What was written for nothing is deleted.
    live = {task.file.file_path for task in users.iceberg().scan().plan_files()}
    named = {f"s3://{BUCKET}/{key}" for key in aws.objects(BUCKET) if "compact" in key and key.endswith(".parquet")}
    assert named <= live


def set_snapshot(users, number):
    """Make one of the table's snapshots the current one, as other engines do."""
    users.aws.hide_missing = False
    table = users.iceberg()
    table.manage_snapshots().set_current_snapshot(table.snapshots()[number].snapshot_id).commit()


# What another engine does between the binding of a compaction and its commit, and what the table has after both. Five
# loads and one that was undone came before: snapshots 0 to 4, 5 and 6.
AFTER_BINDING = {
    "nothing": (lambda users: None, (), FIVE),
    "a rollback to the load that was undone": (
        lambda users: set_snapshot(users, 5),
        (0,),
        [FIVE[0], (1, 9, "n"), *FIVE[2:]],
    ),
    "a rollback to before its files": (lambda users: set_snapshot(users, 3), (0,), FIVE[:4]),
    "a rollback to the last load": (lambda users: set_snapshot(users, 4), (), FIVE),
    "a compaction by another engine": (lambda users: compact_by_hand(users), (0,), FIVE),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("case", AFTER_BINDING)
def test_changes_between_binding_and_commit(tmp_path, aws, bucket, case):
    (between, dropped, expected), users = AFTER_BINDING[case], make(tmp_path, aws)
    for row in FIVE:
        load(users, f"job-{row[0]}", row)
    merge_and_undo(users)
    with patch.object(attempts, "settle", side_effect=Killed), suppress(Killed):
        compact(users).run()
    pending = users.state.pending
    assert pending.phase == "intended"
    between(users)
    recover(users.pipeline.first_control, users.pipeline.open_clients)
    assert users.pipeline.first_control.read_report(pending.job_id).compacted.dropped == dropped
    assert rows(users) == expected


def make_divided(tmp_path, aws, spark):
    """Five loads into two partitions, which are two groups."""
    users = make_appended(tmp_path, aws, partition_by=["v"], spark=spark)
    for number in range(5):
        users.load(f"job-{number}", id=[number, number + 10], v=["a", "b"])
    users.write(mode="replace_partitions")
    return users


@pytest.mark.spark
@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("values", "dropped", "expected"),
    [
        (["a"], (0,), [10, 11, 12, 13, 14, 99]),
        (["c"], (), [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 99]),
        (["b", "a"], (0, 1), [99, 100]),
    ],
)
def test_partitions_are_replaced_between_reading_and_commit(tmp_path, aws, bucket, spark, values, dropped, expected):
    users = make_divided(tmp_path, aws, spark)

    def replace_partitions():
        users.load("between", id=[99, 100][: len(values)], v=values)

    report = run_between(compact(users), replace_partitions)
    # What has none of the replaced files is compacted.
    assert (report.compacted.dropped, report.files) == (dropped, 2 - len(dropped))
    assert ids(users) == expected
    assert users.differences() == []
    assert (users.state.pending, users.state.running) == (None, {})
    # The load can be undone, although files of other partitions were compacted behind it.
    users.undo("between").run()
    assert ids(users) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]


@pytest.mark.spark
@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_late", [False, True], ids=["by the load", "by its own process as well"])
def test_partitions_are_replaced_between_binding_and_commit(tmp_path, aws, bucket, spark, is_late):
    """The load first finishes the compaction that is bound; a process that comes late with it commits nothing more."""
    users, settle = make_divided(tmp_path, aws, spark), attempts.settle

    def come_late(*given):
        with patch.object(attempts, "settle", settle):
            users.load("between", id=[99], v=["a"])
        if not is_late:
            raise Killed
        return settle(*given)

    with patch.object(attempts, "settle", come_late), suppress(Killed):
        compact(users).run()
    report = users.pipeline.first_control.read_report("compact.crm.users.6")
    assert (report.compacted.dropped, report.files) == ((), 2)
    assert ids(users) == [10, 11, 12, 13, 14, 99]
    assert users.differences() == []
    assert (users.state.committed, users.state.compactions, users.state.pending) == (7, 1, None)


def test_a_load_of_all_tables_runs_beside_a_compaction(tmp_path, aws, bucket):
    """Between the reading and the commit of one of its tables, in tasks that the tables share."""
    users = make_appended(tmp_path, aws)
    append(users)
    document = yaml.safe_load((tmp_path / "lake.yaml").read_text("utf-8"))
    document["tables"] += [document["tables"][0] | {"table": name} for name in ("orders", "shots")]
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(document), "utf-8")
    results = []

    def load_all():
        users.write_rows(id=[9], v=["b"])
        results.extend(users.run("all").tables)

    report = run_between(compact(users), load_all)
    assert [(one.table, one.status, one.rows) for one in results] == [
        (name, "done", 1) for name in ("users", "orders", "shots")
    ]  # fmt: skip
    assert (report.compacted.dropped, report.files, totals(users)) == ((), 1, (2, 6, 0, 0))
    assert ids(users) == [0, 1, 2, 3, 4, 9]
    assert users.differences() == []


@pytest.mark.spark
def test_rows_that_were_numbered_for_a_merge_lose_their_numbers(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, sort_by=["v"], spark=spark)
    for number in range(5):
        load(users, f"job-{number}", (number, 1, "b"), (number, 1, "a"))
    assert [row[2] for row in rows(users)] == ["a"] * 5

    def list_columns():
        files = [task.file.file_path.removeprefix(f"s3://{BUCKET}/") for task in users.iceberg().scan().plan_files()]
        objects = aws.objects(BUCKET)
        return {tuple(pq.read_schema(pa.BufferReader(objects[key])).names) for key in files}

    columns = ("id", "at", "v", "_loaded_at", "_load_id")
    assert list_columns() == {(*columns, ORDINAL)}
    assert tuple(users.iceberg().scan().to_arrow().schema.names) == columns
    compact(users).run()
    assert list_columns() == {columns}
    assert [row[2] for row in rows(users)] == ["a"] * 5
    assert users.differences() == []


def test_a_merge_whose_deletes_were_applied_is_undone(tmp_path, aws, bucket, monkeypatch):
    """The rows that it had deleted are in the table again, and the files of the compaction lack them."""
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 9, "n"))
    # The file of the first load is a group of its own.
    monkeypatch.setattr(compact_groups, "MOST_FILES", 1)
    report = run_between(compact(users, 1), lambda: users.undo("b").run())
    assert report.compacted.dropped == (0,)
    assert rows(users) == [(1, 1, "a"), (2, 1, "a")]
    assert users.differences() == []


def test_a_table_that_is_partitioned_in_another_way_meanwhile(tmp_path, aws, bucket):
    users = make_appended(tmp_path, aws)
    append(users)

    def partition():
        users.aws.hide_missing = False
        with users.iceberg().update_spec() as update:
            update.add_identity("v")

    report = run_between(compact(users), partition)
    assert report.compacted.dropped == (0,)
    assert ids(users) == [0, 1, 2, 3, 4]


def test_a_compaction_begins_after_the_last_commit(tmp_path, aws, bucket):
    """Whatever the clock of the machine that committed."""
    users = make_appended(tmp_path, aws)
    append(users)
    ahead = users.state.last_commit + timedelta(hours=1)
    users.pipeline.first_control.state.move(Edit(last_commit=ahead))
    before = users.iceberg().current_snapshot().snapshot_id
    report = compact(users).run()
    assert report.started > ahead
    # Older snapshots have the files that were replaced.
    assert sorted(users.iceberg().scan(snapshot_id=before).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]


def kill_at(number, run, *, after):
    """Run with the process killed before or after its call of this number; return whether it came to it."""
    seen, original = [0], getattr(botocore.client.BaseClient, CALL)

    def call(client, operation, parameters):
        seen[0] += 1
        if seen[0] > number:
            raise Killed
        if seen[0] == number and not after:
            raise Killed
        answer = original(client, operation, parameters)
        if seen[0] == number:
            raise Killed
        return answer

    with patch.object(botocore.client.BaseClient, CALL, call):
        try:
            run()
        except Killed:
            return True
    return False


@pytest.mark.exhaustive
def test_a_compaction_that_is_killed_at_any_call(tmp_path, aws, bucket):
    users, number, kills = make(tmp_path, aws), 1, 0
    load(users, "first", (1, 0, "a"), (2, 1, "a"), (3, 1, "a"))
    while True:
        load(users, f"job-{kills}", (1, kills + 1, "a"))
        expected = [(1, kills + 1, "a"), (2, 1, "a"), (3, 1, "a")]
        is_killed = kill_at(number, compact(users).run, after=bool(number % 2))
        assert rows(users) == expected
        if not is_killed:
            break
        recover(users.pipeline.first_control, users.pipeline.open_clients)
        assert rows(users) == expected
        # So that the next one has as much to do.
        compact(users).run()
        assert (rows(users), totals(users)) == (expected, (1, 3, 0, 0))
        kills, number = kills + 1, number + 1
    assert kills >= 50
    assert users.differences() == []


def test_a_refusal_for_files_without_a_catalog(tmp_path, aws, bucket):
    users = Refreshed(tmp_path, aws, "none", mode="append")
    users.load("a", id=[1])
    with pytest.raises(SpecInvalidError, match="is not in an Iceberg catalog"):
        compact(users)


def test_loads_of_a_compacted_table_are_undone(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "b"))
    compact(users).run()
    with pytest.raises(SpecInvalidError, match="is a compaction, which changes no rows"):
        users.undo("compact.crm.users.3").run()
    users.undo("b").run()
    assert rows(users) == [(1, 1, "a"), (2, 1, "a")]
    assert users.differences() == []
    load(users, "c", (1, 3, "c"))
    assert rows(users) == [(1, 3, "c"), (2, 1, "a")]


def test_a_table_that_is_gone(tmp_path, aws, bucket):
    users = make_appended(tmp_path, aws)
    with pytest.raises(SpecInvalidError, match="has no load of pipeline 'crm' yet"):
        compact(users).plan()
    append(users, 1)
    aws.client("glue").delete_table(DatabaseName="crm", Name="users")
    with pytest.raises(SpecInvalidError, match="is not in its catalog: crm"):
        compact(users).plan()


def test_two_compactions_at_once(tmp_path, aws, bucket):
    """The one that comes first does the work of both."""
    users, reports = make_appended(tmp_path, aws), []
    append(users)
    name_objects = Compaction._name_objects

    def compact_first(self, *given):
        with patch.object(Compaction, "_name_objects", name_objects):
            reports.append(compact(users).run())
        return name_objects(self, *given)

    with patch.object(Compaction, "_name_objects", compact_first):
        reports.append(compact(users).run())
    assert reports[0] == reports[1]
    assert totals(users)[:2] == (1, 5)
    assert users.differences() == []


def test_the_first_load_is_not_undone_once_its_files_were_rewritten(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "b"))
    compact(users).run()
    with pytest.raises(SpecInvalidError, match="its files were rewritten since, and the table had no snapshot before"):
        users.undo("a", through=True).run()
    assert rows(users) == [(1, 2, "b"), (2, 1, "a")]


def test_the_share_of_deleted_rows_is_told(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    (table,) = load(users, "b", (1, 2, "b")).tables
    assert table.notes[1:] == ("33% of its rows are deleted by 1 file until they are rewritten",)
    assert users.state.deletes == DeletedRows(files=1, rows=1, of=3)
    compact(users).run()
    assert users.state.deletes is None


def run_command(users, *options):
    done = CliRunner().invoke(main, ["compact", str(users.folder / "lake.yaml"), "users", *options])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_command(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "b"))
    planned = run_command(users, "--plan").splitlines()
    assert planned[0].startswith("crm.users: 2 files (")
    assert planned[0].endswith(") would be replaced, by about 1, with the deletes of 1 file")
    assert planned[1:] == ["Nothing was changed: without --plan it is done."]
    done = json.loads(run_command(users, "--json"))
    expected = {"table": "crm.users", "status": "done", "job_id": "compact.crm.users.3", "files": 2, "files_after": 1}
    assert expected.items() <= done.items()
    assert (done["deletes"], done["delete_files"], done["error"]) == (1, 1, None)
    assert run_command(users) == "crm.users: no files are worth replacing\n"
    history = CliRunner().invoke(main, ["history", str(users.folder / "lake.yaml")]).stdout.splitlines()[1:]
    assert sorted(line.split()[0] for line in history) == ["a", "b", "compact.crm.users.3"]


@pytest.mark.exhaustive
def test_an_undo_that_a_compaction_overtakes(tmp_path, aws, bucket):
    """It is planned anew, and says that its files were rewritten."""
    users = make_appended(tmp_path, aws)
    append(users)
    make_intent = UndoPlan.make_intent

    def compact_first(self, *given):
        compact(users).run()
        return make_intent(self, *given)

    with patch.object(UndoPlan, "make_intent", compact_first), pytest.raises(SpecInvalidError, match="rewritten since"):
        users.undo("job-4").run()
    assert (ids(users), users.state.pending) == ([0, 1, 2, 3, 4], None)
    assert users.differences() == []


def test_deletes_of_files_that_are_left(tmp_path, aws, bucket, monkeypatch):
    """A file with deletes for files of two groups stays while one of these is left."""
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (3, 1, "a"), (4, 1, "a"))
    load(users, "c", (1, 2, "c"), (3, 2, "c"))
    assert totals(users) == (3, 6, 1, 2)
    monkeypatch.setattr(compact_groups, "MOST_FILES", 1)
    report = compact(users, 1).run()
    assert (report.compacted.files, report.compacted.delete_files) == (1, 0)
    assert rows(users) == [(1, 2, "c"), (2, 1, "a"), (3, 2, "c"), (4, 1, "a")]
    report = compact(users, 1).run()
    assert (report.compacted.files, report.compacted.delete_files) == (1, 1)
    assert rows(users) == [(1, 2, "c"), (2, 1, "a"), (3, 2, "c"), (4, 1, "a")]
    assert totals(users)[2:] == (0, 0)


@pytest.mark.exhaustive
@pytest.mark.spark
def test_a_cursor_that_was_reset_before(tmp_path, aws, bucket, spark):
    """The compaction is no load that would have moved the cursor."""
    users = make_appended(tmp_path, aws, cursor="id", spark=spark)
    append(users)
    control = users.pipeline.first_control
    assert control.state.read().cursor.text == "4"
    reset_cursor(control, None, "a drill")
    compact(users).run()
    assert users.state.cursor is None
    assert users.differences() == []
