"""``mode: merge``: a table has one row of each key, the newest, whoever dies while rows are merged."""

from contextlib import suppress
from time import sleep
from typing import Any
from unittest.mock import patch

import botocore.client
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.rebuild import ask_catalog, rebuild
from lakewriter.operate.repair import abandon
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.support.narrow import need

CALL = "_make_api_call"


class Killed(BaseException):
    """The process is gone: no further call reaches a service."""


def make(tmp_path, aws, **changes):
    rules = {"primary_key": ["id"], "order_by": ["at"]} | changes
    return Refreshed(tmp_path, aws, "iceberg", mode="merge", **rules)


def rows(users) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["at"], row["v"]) for row in users.iceberg().scan().to_arrow().to_pylist())


def load(users, job, *given):
    ids, ats, values = zip(*given, strict=True)
    return users.load(job, id=list(ids), at=list(ats), v=list(values))


def test_the_newest_row_of_a_key_stays(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"), (2, 5, "b"), (2, 3, "c"))
    assert rows(users) == [(1, 1, "a"), (2, 5, "b")]
    load(users, "b", (1, 2, "new"), (2, 4, "late"), (3, 1, "first"))
    assert rows(users) == [(1, 2, "new"), (2, 5, "b"), (3, 1, "first")]
    assert users.differences() == []
    # Older rows, and the same again, change nothing.
    load(users, "c", (1, 1, "a"), (2, 5, "b"), (3, 1, "first"))
    assert rows(users) == [(1, 2, "new"), (2, 5, "b"), (3, 1, "first")]
    assert users.differences() == []


TOTALS = ("data-files", "records", "delete-files", "position-deletes")
DELETED = {"destination": {"tracking": ["deleted"]}, "deleted": "v = 'D'"}


@pytest.mark.one_in(2)
@pytest.mark.spark
@pytest.mark.parametrize("keeps", [False, True])
def test_deleted_rows(tmp_path, aws, bucket, spark, keeps):
    users = make(tmp_path, aws, **DELETED, spark=spark, **({"keep_deleted": True} if keeps else {}))
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "D"), (3, 1, "D"))
    flags = {row["id"]: row["_deleted"] for row in users.iceberg().scan().to_arrow().to_pylist()}
    assert flags == ({1: True, 2: False, 3: True} if keeps else {2: False})
    (table,) = load(users, "c", (1, 1, "a")).tables
    assert "0 inserted, 0 updated, 0 deleted; 0 unchanged, 1 late, 0 superseded" in table.notes[0]
    assert (1, 1, "a") not in rows(users)
    assert users.differences() == []


MANY: list[list[tuple[int, int, str]]] = [[(key, 1, "a")] for key in range(3, 7)]
# Loads as (job, rows), and what the table has after the last one; the text D deletes.
DELETES = {
    "an older row": ([[(1, 5, "D")], [(1, 3, "a")]], []),
    "a row of the same order": ([[(1, 5, "D")], [(1, 5, "a")]], []),
    "a newer row": ([[(1, 5, "D")], [(1, 6, "a")]], [(1, 6, "a")]),
    "two deletes, the older one last": ([[(1, 5, "D")], [(1, 3, "D")], [(1, 4, "a")]], []),
    "loads between": (
        [[(1, 5, "D")], [(2, 1, "a")], [(3, 1, "a")], [(1, 4, "a"), (2, 2, "b")]],
        [(2, 2, "b"), (3, 1, "a")],
    ),
    "so many loads between that their keys are folded together": (
        [
            [(1, 5, "D"), (2, 5, "D")],
            *MANY,
            [(2, 6, "b")],
            [(1, 4, "a"), (7, 1, "a")],
            [(2, 7, "D")],
            *MANY,
            [(1, 4, "a"), (2, 6, "b"), (8, 1, "a")],
        ],
        [*((key, 1, "a") for key in range(3, 9))],
    ),
    "a newer row that is deleted again": ([[(1, 5, "D")], [(1, 6, "a")], [(1, 8, "D")], [(1, 7, "b")]], []),
    "another key": ([[(1, 5, "D")], [(2, 3, "a")]], [(2, 3, "a")]),
    "the delivery once more": ([[(1, 4, "a"), (1, 5, "D")], [(1, 4, "a"), (1, 5, "D")]], []),
    "its own row below a later one": ([[(1, 3, "a")], [(1, 9, "b")], [(1, 5, "D")], [(1, 4, "c")]], [(1, 9, "b")]),
}


# Every other row: an older and a newer row, loads between, another key, and a later delete are among them.
@pytest.mark.spark
@pytest.mark.one_in(6)
@pytest.mark.parametrize("case", DELETES)
def test_deleted_keys_keep_older_rows_out(tmp_path, aws, bucket, spark, case):
    users, (loads, expected) = make(tmp_path, aws, **DELETED, spark=spark), DELETES[case]
    load(users, "first", (9, 1, "x"))
    for number, given in enumerate(loads):
        load(users, f"job-{number}", *given)
    assert rows(users) == [*expected, (9, 1, "x")]
    assert users.differences() == []


@pytest.mark.one_in(3)
@pytest.mark.spark
@pytest.mark.parametrize(("time", "expected"), [("0 days", [(1, 3, "a")]), ("1 second", [(1, 3, "a")]), ("1 day", [])])
def test_deleted_keys_are_forgotten(tmp_path, aws, bucket, spark, time, expected):
    users = make(tmp_path, aws, **DELETED, deleted_for=time, spark=spark)
    load(users, "a", (1, 5, "D"))
    assert (users.state.deleted_keys is None) == (time == "0 days")
    sleep(1.1)
    load(users, "b", (1, 3, "a"))
    assert rows(users) == expected


@pytest.mark.spark
def test_keys_are_deleted_as_before_where_the_delete_is_undone(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, **DELETED, spark=spark)
    load(users, "a", (1, 2, "D"), (2, 1, "x"))
    before = users.state.deleted_keys
    load(users, "b", (1, 5, "D"))
    assert users.state.deleted_keys != before
    users.undo("b").run()
    assert users.state.deleted_keys == before
    load(users, "c", (1, 3, "a"))
    load(users, "d", (1, 1, "old"))
    assert rows(users) == [(1, 3, "a"), (2, 1, "x")]


def test_a_compaction_without_its_snapshot_or_its_intent(tmp_path, aws, bucket):
    """Readers see the same rows before it, so it is no difference that they do not see it; a lost state that is rebuilt
    without its intent counts it as before."""
    users = make(tmp_path, aws)
    for number in range(2):
        load(users, f"job-{number}", (1, number, "a"))
    (table,), control, before = users.spec.tables, users.pipeline.first_control, users.iceberg().current_snapshot()
    report = need(Compaction(users.pipeline, table, 2**30).run())
    aws.hide_missing = False
    users.iceberg().manage_snapshots().set_current_snapshot(before.snapshot_id).commit()
    assert (rows(users), users.differences()) == ([(1, 1, "a")], [])
    assert (users.state.compactions, users.state.last_job) == (1, "job-1")
    for key in (
        control.keys.state(control.table_id),
        control.keys.intent(report.job_id, report.attempt, control.table_id),
    ):
        aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    rebuild(control, table, ask_catalog(users.spec, table, users.pipeline.clients), "a drill", None, from_start=True)
    assert (users.state.compactions, users.state.last_job) == (1, "job-1")


@pytest.mark.spark
def test_deleted_keys_of_a_lost_state_are_found_again(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, **DELETED, spark=spark)
    load(users, "a", (1, 5, "D"), (2, 1, "x"))
    before, control = users.state.deleted_keys, users.pipeline.first_control
    aws.client("s3").delete_object(Bucket=BUCKET, Key=control.keys.state(control.table_id))
    (table,) = users.spec.tables
    rebuild(control, table, ask_catalog(users.spec, table, users.pipeline.clients), "a drill", None, from_start=True)
    assert users.state.deleted_keys == before
    load(users, "b", (1, 3, "a"))
    assert rows(users) == [(2, 1, "x")]


def test_files_with_deletes_are_of_the_loads_that_have_written_them(tmp_path, aws, bucket):
    """A report names the files with rows alone."""
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"))
    load(users, "b", (1, 2, "b"))
    assert sum("/deletes-" in key for key in aws.objects(BUCKET)) == 1
    control = users.pipeline.first_control
    aws.client("s3").delete_object(Bucket=BUCKET, Key=control.keys.state(control.table_id))
    (table,) = users.spec.tables
    catalog = ask_catalog(users.spec, table, users.pipeline.clients)
    built = rebuild(control, table, catalog, "a drill", None, from_start=True)
    assert [line for line in built.unknown if "reports were cleared away" in line] == []


@pytest.mark.spark
def test_deleted_keys_are_not_compared_by_another_order(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, **DELETED, spark=spark)
    load(users, "a", (1, 5, "D"), (2, 1, "x"))
    users.write(order_by=["at", "v"])
    load(users, "b", (1, 3, "a"))
    assert rows(users) == [(1, 3, "a"), (2, 1, "x")]


@pytest.mark.spark
def test_deleted_keys_that_are_gone(tmp_path, aws, bucket, spark):
    """A load that is not bound goes without them; one that is bound says so and can be given up."""
    users = make(tmp_path, aws, **DELETED, spark=spark)
    load(users, "a", (1, 5, "D"), (2, 1, "x"))
    key = users.state.deleted_keys.key
    aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    load(users, "b", (1, 3, "a"))
    assert rows(users) == [(1, 3, "a"), (2, 1, "x")]
    key = users.state.deleted_keys.key
    aws.interceptors.append(lambda call, proceed: call.denied() if call.action == "glue:UpdateTable" else proceed(call))
    failed = users.try_load("c", id=[1], at=[9], v=["D"])
    assert failed.tables[0].status == "failed"
    aws.interceptors.clear()
    aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    (result,) = users.try_load("c", id=[1], at=[9], v=["D"]).tables
    assert (result.code, key in result.message) == ("PENDING_UNRECOVERABLE", True)
    told = abandon(users.pipeline.controls, "c", "a drill", users.pipeline.clients)
    assert list(told) == ["crm.users"]
    assert users.state.pending is None


@pytest.mark.spark
def test_keys_that_are_compared_by_other_columns(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, **DELETED, spark=spark)
    load(users, "a", (1, 5, "D"), (2, 1, "x"))
    users.write(order_by=["v"])
    load(users, "b", (1, 3, "a"))
    assert rows(users) == [(1, 3, "a"), (2, 1, "x")]


def test_a_refresh_drops_the_files_with_deletes(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "b"))
    users.write(mode="refresh", order_by=[])
    load(users, "c", (3, 1, "c"))
    table = users.iceberg()
    snapshot = table.current_snapshot()
    assert rows(users) == [(3, 1, "c")]
    totals = {name: snapshot.summary.additional_properties[f"total-{name}"] for name in TOTALS}
    assert totals == {"data-files": "1", "records": "1", "delete-files": "0", "position-deletes": "0"}
    live = [file for manifest in snapshot.manifests(table.io) for file in manifest.fetch_manifest_entry(table.io)]
    assert [entry.data_file.content.name for entry in live] == ["DATA"]
    assert users.differences() == []
    # The snapshot before has them still.
    users.undo("c").run()
    assert rows(users) == [(1, 2, "b"), (2, 1, "a")]


def test_the_report_has_what_became_of_the_rows(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 2, "a"), (2, 2, "a"))
    (table,) = load(users, "b", (1, 3, "b"), (2, 1, "b"), (3, 1, "b"), (3, 2, "b")).tables
    assert "rows merged: 1 inserted, 1 updated, 0 deleted; 0 unchanged, 1 late, 1 superseded" in table.notes


def test_a_row_without_a_key_is_a_bad_row(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    report = users.try_load("a", id=[1, None], at=[1, 1], v=["a", "a"])
    assert report.tables[0].code == "EXPECTATION_FAILED"
    users.write(on_bad_row={"action": "quarantine", "at_most": 1.0})
    load(users, "b", (1, 1, "a"), (None, 1, "a"))
    assert rows(users) == [(1, 1, "a")]


def test_rows_are_not_merged_by_floats(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    report = users.try_load("a", id=[1.0], at=[1], v=["a"])
    assert report.tables[0].code == "SPEC_INVALID"
    assert "primary_key of 'crm.users': column 'id' has type 'double'" in report.tables[0].message


def test_a_load_that_appended_is_not_undone_behind_a_merge(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    users.write(mode="append", order_by=[])
    load(users, "a", (1, 1, "a"))
    users.write()
    load(users, "b", (1, 2, "b"))
    with pytest.raises(SpecInvalidError, match="load b has merged rows into the table since"):
        users.undo("a").plan()


def test_an_undo_shows_the_rows_before_again(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "b"))
    load(users, "c", (2, 2, "c"))
    with pytest.raises(SpecInvalidError, match="the table has changed since"):
        users.undo("b").plan()
    users.undo("c").run()
    assert rows(users) == [(1, 2, "b"), (2, 1, "a")]
    users.undo("b").run()
    assert rows(users) == [(1, 1, "a"), (2, 1, "a")]
    assert users.differences() == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(15))
def test_kills_at_every_call(tmp_path, aws, bucket, first):
    """A process dies at every fifteenth call; the next load ends what was begun, or it has not happened."""
    users, is_killed, number, ends = make(tmp_path, aws), True, first, set()
    while is_killed:
        begin_anew(aws)
        load(users, "a", (1, 1, "a"), (2, 1, "a"), (3, 1, "a"))
        is_killed = kill(users, number, (1, 2, "b"), (3, 2, "b"), (4, 2, "b"))
        load(users, "c", (1, 3, "c"), (5, 3, "c"))
        before = ((2, 1, "a"), (3, 1, "a"))
        after = ((2, 1, "a"), (3, 2, "b"), (4, 2, "b"))
        seen = rows(users)
        assert seen in ([(1, 3, "c"), *rest, (5, 3, "c")] for rest in (before, after))
        assert users.differences() == []
        ends.add(len(seen))
        number += 15
    assert ends == {4, 5}


def begin_anew(aws) -> None:
    glue, s3 = aws.client("glue"), aws.client("s3")
    for key in aws.objects(BUCKET):
        s3.delete_object(Bucket=BUCKET, Key=key)
    with suppress(glue.exceptions.EntityNotFoundException):
        glue.delete_table(DatabaseName="crm", Name="users")


def kill(users, number: int, *given) -> bool:
    """A load whose process dies at a call; False where it had fewer calls."""
    calls, call = 0, getattr(botocore.client.BaseClient, CALL)

    def counted(client, operation, arguments):
        nonlocal calls
        calls += 1
        if calls > number:
            raise Killed
        return call(client, operation, arguments)

    with patch.object(botocore.client.BaseClient, CALL, counted):
        try:
            load(users, "b", *given)
        except Killed:
            return True
    return False


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("fields", "is_refused"), [(["id"], False), (["id", "v"], True)])
def test_identifier_fields(tmp_path, aws, bucket, fields, is_refused):
    """Those that are keys: a row without a key is a bad one."""
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    users.aws.hide_missing = False
    with users.iceberg().update_schema(allow_incompatible_changes=True) as update:
        for name in fields:
            update.update_column(name, required=True)
        update.set_identifier_fields(*fields)
    users.write_rows(id=[1, 3], at=[2, 1], v=["b", "c"])
    (table,) = users.try_load("b", id=[1, 3], at=[2, 1], v=["b", "c"]).tables
    if is_refused:
        assert table.message is not None
        assert "has identifier fields (v), which allow no null" in table.message
        return
    assert (table.status, rows(users)) == ("done", [(1, 2, "b"), (2, 1, "a"), (3, 1, "c")])
    assert users.iceberg().schema().identifier_field_names() == {"id"}
    (table,) = users.try_load("c", id=pa.array([None], pa.int64()), at=[9], v=["x"]).tables
    assert table.status == "failed"
    assert users.differences() == []


def drop(users, name: str, *given) -> None:
    """A file that a later load is the first to read."""
    ids, ats, values = zip(*given, strict=True)
    (users.folder / "users").mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": ids, "at": ats, "v": values}), users.folder / "users" / name)


def go(users, job):
    (result,) = users.run(job).tables
    assert result.status == "done", (result.code, result.message)
    return result


NEW = {"read": {"format": "parquet", "path": "users", "files": "new"}}


def test_new_files_are_merged_once(tmp_path, aws, bucket):
    users = make(tmp_path, aws, **NEW)
    drop(users, "1.parquet", (1, 1, "a"), (2, 1, "a"))
    assert go(users, "a").rows == 2
    # Another engine deletes a row, which no new file has.
    aws.hide_missing = False
    users.iceberg().delete("id = 1")
    aws.hide_missing = True
    drop(users, "2.parquet", (2, 2, "b"), (3, 1, "a"))
    result = go(users, "b")
    assert (result.rows, result.repeated.model_dump(exclude_defaults=True)) == (2, {"files": 1, "left_out": 1})
    assert rows(users) == [(2, 2, "b"), (3, 1, "a")]
    assert go(users, "c").rows == 0
    assert rows(users) == [(2, 2, "b"), (3, 1, "a")]
    drop(users, "3.parquet", (2, 1, "late"))
    # The one row is late.
    assert (go(users, "d").rows, rows(users)) == (1, [(2, 2, "b"), (3, 1, "a")])


def test_a_merge_that_may_read_no_file_again(tmp_path, aws, bucket):
    """A row that somebody has deleted does not come back with the file that has it."""
    users = make(tmp_path, aws, repeated="fail")
    drop(users, "1.parquet", (1, 1, "a"), (2, 1, "a"))
    go(users, "a")
    aws.hide_missing = False
    users.iceberg().delete("id = 1")
    aws.hide_missing = True
    drop(users, "2.parquet", (2, 2, "b"))
    (result,) = users.run("b").tables
    assert (result.code, rows(users)) == ("INPUT_REPEATED", [(2, 1, "a")])
    (users.folder / "users" / "1.parquet").unlink()
    assert not any("appended" in note for note in go(users, "c").notes)
    assert rows(users) == [(2, 2, "b")]
    users.write(repeated="warn")
    drop(users, "1.parquet", (1, 1, "a"), (2, 1, "a"))
    go(users, "d")
    assert rows(users) == [(1, 1, "a"), (2, 2, "b")]
    # Nobody has noted what that load has read.
    users.write()
    (result,) = users.run("e").tables
    assert result.code == "SPEC_INVALID"
    assert "has repeated: fail, and nobody has noted all files" in result.message


def test_new_files_of_an_undone_merge_are_read_again(tmp_path, aws, bucket):
    users = make(tmp_path, aws, **NEW)
    drop(users, "1.parquet", (1, 1, "a"))
    go(users, "a")
    drop(users, "2.parquet", (1, 2, "b"), (2, 1, "b"))
    go(users, "b")
    users.undo("b").run()
    assert rows(users) == [(1, 1, "a")]
    assert go(users, "c").rows == 2
    assert rows(users) == [(1, 2, "b"), (2, 1, "b")]


def test_a_merged_file_that_changed_is_refused_or_comes_whole(tmp_path, aws, bucket):
    users = make(tmp_path, aws, **NEW)
    drop(users, "1.parquet", (1, 1, "a"))
    go(users, "a")
    drop(users, "1.parquet", (1, 1, "a"), (2, 1, "b"))
    (result,) = users.run("b").tables
    assert (result.code, rows(users)) == ("INPUT_REPEATED", [(1, 1, "a")])
    users.write(repeated="warn")
    assert go(users, "c").repeated.changed == 1
    assert rows(users) == [(1, 1, "a"), (2, 1, "b")]


def test_new_files_after_loads_that_merged_all(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"))
    users.write(**NEW)
    (result,) = users.run("b").tables
    assert (result.code, "nobody has noted all files" in result.message) == ("SPEC_INVALID", True)
