"""Full refreshes of tables of every kind: what readers see after each, and after each undo."""

import json
import re
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyiceberg.exceptions import CommitFailedException

from lakewriter import write
from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt, bind, register
from lakewriter.commit.committed_loads import read_table_loads
from lakewriter.commit.deferred_deletions import retire_due
from lakewriter.commit.recover import recover
from lakewriter.errors import ConcurrentLoadError, LakeError, SpecInvalidError
from lakewriter.operate.as_of import find_as_of
from lakewriter.operate.catalogue import describe_tables
from lakewriter.operate.planning import plan
from lakewriter.operate.queries import write_as_of, write_queries
from lakewriter.operate.rebuild import ask_catalog, rebuild
from lakewriter.operate.repair import abandon
from lakewriter.operate.sql_text import Engine
from lakewriter.operate.undo import Undo
from lakewriter.run.judging import list_departures
from lakewriter.run.loader import load
from tests.load.lakes import BUCKET
from tests.load.refreshed import FOLDER, Refreshed
from tests.support.local_tasks import local_session
from tests.support.sample import in_turn


@pytest.fixture(params=in_turn("iceberg", "glue", "none"))
def users(request, tmp_path, aws, bucket):
    return Refreshed(tmp_path, aws, request.param)


@pytest.fixture
def glue_users(tmp_path, aws, bucket):
    return Refreshed(tmp_path, aws, "glue")


def test_readers_see_the_last_refresh(users):
    users.load("a", id=[1, 2])
    users.load("b", id=[3])
    assert users.ids() == [3]
    assert users.differences() == []
    users.load("b", id=[4])
    assert users.ids() == [3], "job b is done already"
    users.load("c", id=[5, 6])
    assert users.ids() == [5, 6]
    assert users.differences() == []
    assert [(each.number, each.job_id) for each in users.state.generations] == [(1, "a"), (2, "b"), (3, "c")]


def test_a_refresh_without_rows_empties_the_table(users):
    users.load("a", id=[1, 2])
    users.load("b", id=pa.array([], pa.int64()))
    assert users.ids() == []
    assert users.differences() == []
    users.load("c", id=[3])
    assert users.ids() == [3]


def test_the_first_refresh_may_be_without_rows(users):
    users.load("a", id=pa.array([], pa.int64()))
    assert users.ids() == []
    users.load("b", id=[1])
    assert users.ids() == [1]
    assert users.differences() == []


def test_an_undo_shows_the_refresh_before_it(users):
    users.load("a", id=[1, 2])
    users.load("b", id=[3])
    view = "snapshot" if users.catalog == "iceberg" else "switch"
    assert [each.plan.view for each in users.undo("b").plan()] == [view]
    users.undo("b").run()
    assert users.ids() == [1, 2]
    assert users.differences() == []
    assert users.undo("b").run()[0].plan is None, "undone already"
    users.load("c", id=[7])
    assert users.ids() == [7]
    assert users.differences() == []
    users.undo("c").run()
    assert users.ids() == [1, 2]
    assert users.state.generation == 4 - 1


def test_an_undo_of_the_first_refresh_leaves_an_empty_table(users):
    users.load("a", id=[1, 2])
    users.undo("a").run()
    assert users.ids() == []
    assert users.differences() == []
    users.load("a.r2", id=[3])
    assert users.ids() == [3]


def test_an_undo_of_a_first_refresh_without_rows(users):
    """Iceberg made no snapshot for it."""
    users.load("a", id=pa.array([], pa.int64()))
    users.undo("a").run()
    assert users.ids() == []
    users.load("a.r2", id=[1])
    assert users.ids() == [1]
    assert users.differences() == []


def test_a_replaced_refresh_is_not_undone_alone(users):
    users.load("a", id=[1])
    users.load("b", id=[2])
    with pytest.raises(SpecInvalidError, match="cannot be undone"):
        users.undo("a").plan()
    assert users.ids() == [2]


@pytest.mark.parametrize("catalog", in_turn("glue", "none", "iceberg"))
def test_several_refreshes_are_undone_one_after_the_other(tmp_path, aws, bucket, catalog):
    users = Refreshed(tmp_path, aws, catalog)
    for number, job in enumerate("abcd"):
        users.load(job, id=[number])
    for job, left in (("d", [2]), ("c", [1]), ("b", [0])):
        users.undo(job).run()
        assert users.ids() == left
    users.load("b.r2", id=[5])
    users.undo("b.r2").run()
    assert users.ids() == [0]
    assert users.differences() == []


def test_a_refresh_is_undone_with_what_was_appended_to_it(tmp_path, aws, bucket):
    users = Refreshed(tmp_path, aws, "iceberg")
    users.load("a", id=[1])
    users.load("b", id=[2])
    users.write(mode="append")
    users.load("c", id=[3])
    users.load("d", id=[4])
    users.undo("c").run()
    assert users.ids() == [2, 4]
    with pytest.raises(SpecInvalidError, match="the table has changed since, by load 'crm/d/"):
        users.undo("b").plan()
    users.undo("b", through=True).run()
    assert users.ids() == [1]
    assert users.differences() == []


@pytest.mark.parametrize("catalog", in_turn("glue", "none", "iceberg"))
def test_several_refreshes_are_undone_together(tmp_path, aws, bucket, catalog):
    users = Refreshed(tmp_path, aws, catalog)
    for number, job in enumerate("abc"):
        users.load(job, id=[number])
    users.undo("b", through=True).run()
    assert users.ids() == [0]
    assert users.differences() == []


@pytest.mark.parametrize("catalog", in_turn("glue", "none"))
def test_files_go_when_their_time_is_over(tmp_path, aws, bucket, catalog):
    """With ``keep_days: 0`` the next load deletes what the one before it has replaced."""
    users = Refreshed(tmp_path, aws, catalog, keep_days=0)
    users.load("a", id=[1])
    users.load("b", id=[2])
    assert users.keys() == ["g0000000001/part-a-00000.parquet", "g0000000002/part-b-00000.parquet"]
    users.load("c", id=[3])
    assert users.keys() == ["g0000000002/part-b-00000.parquet", "g0000000003/part-c-00000.parquet"]
    assert [(each.generation, each.job_id) for each in users.state.retiring] == [(2, "b")]
    assert users.differences() == []
    # The files of the undone one go as well.
    users.undo("c").run()
    users.load("d", id=[4])
    assert users.keys() == ["g0000000002/part-b-00000.parquet", "g0000000004/part-d-00000.parquet"]
    assert users.ids() == [4]


def test_files_stay_while_the_clock_is_not_certain(tmp_path, aws, bucket):
    """This machine and the store are 40 days apart: which of the two is wrong, nobody knows."""
    users = Refreshed(tmp_path, aws, "glue", keep_days=0)
    users.load("a", id=[1])
    users.load("b", id=[2])
    aws.skew = timedelta(days=40)
    (table,) = users.load("c", id=[3]).tables
    assert len(users.keys()) == 3
    assert "nothing is deleted because of its age. Synchronise the clock (NTP)." in table.notes[0]
    aws.skew = timedelta(0)
    users.load("d", id=[4])
    assert users.keys()[0] == "g0000000002/part-b-00000.parquet"


@pytest.mark.parametrize("catalog", in_turn("glue", "none"))
def test_what_is_deleted_is_not_shown_again(tmp_path, aws, bucket, catalog):
    users = Refreshed(tmp_path, aws, catalog, keep_days=0)
    users.load("a", id=[1])
    users.load("b", id=[2])
    # It deletes a's files first, as every load does once their time is over, and is then refused.
    users.write(mode="append")
    assert users.try_load("c", id=[3]).tables[0].code == "SPEC_INVALID"
    users.write()
    assert users.keys() == ["g0000000002/part-b-00000.parquet"]
    with pytest.raises(SpecInvalidError, match=r"were deleted, after refresh\.keep_days"):
        users.undo("b").plan()
    assert users.ids() == [2]


@pytest.mark.parametrize("catalog", in_turn("glue", "none"))
def test_a_rebuilt_state_goes_on_from_the_last_change(tmp_path, aws, bucket, catalog):
    """Records of earlier loads were cleared away: a change with a number that was used would be taken for done."""
    users, s3 = Refreshed(tmp_path, aws, catalog), aws.client("s3")
    for number, job in enumerate("abc"):
        users.load(job, id=[number])
    control = users.pipeline.first_control
    for key in aws.objects(BUCKET):
        if "/loads/a/" in key or "/loads/b/" in key or key == control.keys.state(control.table_id):
            s3.delete_object(Bucket=BUCKET, Key=key)
    (table,) = users.spec.tables
    catalog_says = ask_catalog(users.spec, table, users.pipeline.clients)
    rebuild(users.pipeline.first_control, table, catalog_says, "a drill", None, from_start=False)
    assert (users.state.committed, users.state.generation, users.state.shown.job_id) == (3, 3, "c")
    users.load("d", id=[7])
    assert users.ids() == [7]
    assert users.differences() == []


def test_an_undo_is_not_bound_once_the_files_are_given_up(tmp_path, aws, bucket):
    """Another process begins to delete them between the undo's registration and its point of no return."""
    users = Refreshed(tmp_path, aws, "glue", keep_days=0)
    users.load("a", id=[1])
    users.load("b", id=[2])
    (undoing,) = users.undo("b").plan()
    pipeline = users.pipeline
    control, attempt = pipeline.first_control, Attempt("crm", "undo.b", "x", datetime.now(UTC), timedelta(days=30))
    began = register(control, attempt, pipeline.open_clients)
    assert began is not None
    retire_due(users.pipeline.first_control)
    with pytest.raises(ConcurrentLoadError, match="nothing of this attempt was published"):
        bind(control, attempt, undoing.plan.make_intent(attempt, began), began, pipeline.open_clients)
    assert users.ids() == [2]


def test_an_undo_is_planned_anew_where_files_were_given_up(tmp_path, aws, bucket, monkeypatch):
    """Another process begins to delete them between the undo's plan and its registration."""
    users = Refreshed(tmp_path, aws, "glue", keep_days=0)
    users.load("a", id=[1])
    users.load("b", id=[2])
    begin = Undo._begin

    def begin_late(undo, control, job_id):
        retire_due(users.pipeline.first_control)
        return begin(undo, control, job_id)

    monkeypatch.setattr(Undo, "_begin", begin_late)
    with pytest.raises(SpecInvalidError, match="the files of the full refresh before it were deleted"):
        users.undo("b").run()
    assert users.ids() == [2]


def test_a_process_that_comes_late_changes_nothing(glue_users):
    """It has read that b is pending, and sleeps until c is what readers see."""
    users = glue_users
    users.load("a", id=[1])
    users.aws.interceptors.append(
        lambda call, proceed: call.denied() if call.action == "glue:UpdateTable" else proceed(call)
    )
    users.try_load("b", id=[2])
    users.aws.interceptors.clear()
    late = users.pipeline.first_control
    key = late.keys.state(late.table_id)
    seen = late.store.get(key)[0]
    users.load("c", id=[3])
    present, etag = late.store.get(key)
    assert late.store.replace(key, seen, etag)
    assert (late.state.read().pending.job_id, late.state.recall().pending.phase) == ("b", "uploaded")
    users.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=present)
    recover(late, users.pipeline.open_clients)
    assert users.ids() == [3]
    assert users.differences() == []


def test_glue_columns_are_those_of_the_last_refresh(glue_users):
    """A type may narrow, a column go: no file before is left."""
    users = glue_users
    users.load("a", id=[1], amount=["x"], note=["y"])
    users.load("b", id=[2], amount=pa.array([7], pa.int32()))
    columns = [(each["Name"], each["Type"]) for each in users.glue_table()["StorageDescriptor"]["Columns"]]
    assert columns == [("id", "bigint"), ("amount", "int"), ("_loaded_at", "timestamp"), ("_load_id", "string")]
    users.undo("b").run()
    columns = [(each["Name"], each["Type"]) for each in users.glue_table()["StorageDescriptor"]["Columns"]]
    assert columns[:3] == [("id", "bigint"), ("amount", "string"), ("note", "string")]
    assert users.differences() == []


def test_one_call_switches_on_the_version_that_was_read(glue_users):
    """Location, columns and the number of the change together; Glue archives no version of each load."""
    users, calls = glue_users, []

    def note(call, proceed):
        calls.extend([call.document] if call.action == "glue:UpdateTable" else [])
        return proceed(call)

    users.load("a", id=[1])
    users.aws.interceptors.append(note)
    users.load("b", id=["x"])
    (call,) = calls
    assert (call["VersionId"], call["SkipArchive"]) == ("1", True)
    given = call["TableInput"]
    assert given["StorageDescriptor"]["Location"] == f"s3://{BUCKET}/data/crm/users/g0000000002"
    assert given["StorageDescriptor"]["Columns"][0] == {"Name": "id", "Type": "string"}
    assert given["Parameters"]["lakewriter.crm"] == "2"


def test_glue_keeps_what_people_note_on_columns(glue_users):
    users, glue = glue_users, glue_users.aws.client("glue")
    users.load("a", id=[1], note=["x"])
    table = users.glue_table()
    noted = [
        column | ({"Comment": "from the CRM"} if column["Name"] == "id" else {})
        for column in table["StorageDescriptor"]["Columns"]
    ]
    kept = {key: table[key] for key in ("Name", "TableType", "Parameters", "PartitionKeys")}
    storage = table["StorageDescriptor"] | {"Columns": noted}
    glue.update_table(DatabaseName="crm", TableInput=kept | {"StorageDescriptor": storage, "Description": "Our users"})
    users.load("b", id=["y"])
    table = users.glue_table()
    assert table["StorageDescriptor"]["Columns"][0] == {"Name": "id", "Type": "string", "Comment": "from the CRM"}
    assert table["Description"] == "Our users"


def test_glue_has_one_table_without_partitions(glue_users):
    users = glue_users
    users.load("a", id=[1])
    table = users.glue_table()
    assert table["PartitionKeys"] == []
    assert table["StorageDescriptor"]["Location"] == f"s3://{BUCKET}/data/crm/users/g0000000001"
    assert table["Parameters"]["lakewriter.crm"] == "1"


def test_a_table_that_somebody_moved_is_left_alone(glue_users):
    users = glue_users
    users.load("a", id=[1])
    table = users.glue_table()
    storage = table["StorageDescriptor"] | {"Location": f"s3://{BUCKET}/elsewhere"}
    moved = {"Name": "users", "StorageDescriptor": storage, "TableType": "EXTERNAL_TABLE"}
    users.aws.client("glue").update_table(DatabaseName="crm", TableInput=moved)
    report = users.try_load("b", id=[2])
    assert [each.code for each in report.tables] == ["SCHEMA_INCOMPATIBLE"]
    assert "expected 's3://acme-lake/data/crm/users/g##########'" in report.tables[0].message
    assert users.glue_table()["StorageDescriptor"]["Location"] == f"s3://{BUCKET}/elsewhere"


@pytest.mark.parametrize("catalog", in_turn("glue", "none"))
@pytest.mark.parametrize("first", ["append", "refresh"])
def test_files_have_one_mode(tmp_path, aws, bucket, catalog, first):
    """Readers would see the files of the other mode as well, or not those of this one."""
    users = Refreshed(tmp_path, aws, catalog)
    users.write(mode=first)
    users.load("a", id=[1])
    users.write(mode="refresh" if first == "append" else "append")
    report = users.try_load("b", id=[2])
    assert [each.code for each in report.tables] == ["SPEC_INVALID"]
    assert re.search(f"Set mode: {first} again", report.tables[0].message)


def test_iceberg_takes_turns(tmp_path, aws, bucket):
    """A refresh replaces what was appended, and an append adds to a refresh."""
    users = Refreshed(tmp_path, aws, "iceberg")
    users.write(mode="append")
    users.load("a", id=[1])
    users.load("b", id=[2])
    users.write(mode="refresh")
    users.load("c", id=[3])
    assert users.ids() == [3]
    assert users.differences() == []
    with pytest.raises(SpecInvalidError, match="load c has replaced 1 of its 1 file"):
        users.undo("b").plan()
    users.undo("c").run()
    assert users.ids() == [1, 2]
    assert users.differences() == []
    users.load("c.r2", id=[4])
    users.write(mode="append")
    users.load("d", id=[5])
    assert users.ids() == [4, 5]
    with pytest.raises(SpecInvalidError, match=r"the table has changed since, by load 'crm/d/"):
        users.undo("c.r2").plan()
    users.undo("d").run()
    assert users.ids() == [4]
    assert users.differences() == []


def test_iceberg_merges_manifests_of_what_goes(tmp_path, aws, bucket):
    """As the table asks for it; who cleans up after expired snapshots finds each file that went."""
    users = Refreshed(tmp_path, aws, "iceberg")
    users.write(mode="append")
    users.load("a", id=[1])
    aws.hide_missing = False
    with users.iceberg().transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "2"})
    aws.hide_missing = True
    users.load("b", id=[2])
    users.load("c", id=[3])
    users.write()
    users.load("d", id=[4])
    table = users.iceberg()
    (manifest,) = table.current_snapshot().manifests(table.io)
    entries = [
        (entry.status.name, entry.data_file.file_path.rpartition("/")[2])
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
    ]
    assert sorted(entries) == [
        ("ADDED", "part-d-00000.parquet"),
        *(("DELETED", f"part-{job}-00000.parquet") for job in "abc"),
    ]
    numbers = table.current_snapshot().summary.additional_properties
    assert [numbers[name] for name in ("added-records", "deleted-records", "total-records")] == ["1", "3", "1"]
    users.load("e", id=[5])
    assert users.ids() == [5]
    assert users.differences() == []


def test_who_has_read_the_table_before_a_refresh_commits_nothing_after_its_undo(tmp_path, aws, bucket):
    """The same rows are current again, in a snapshot of their own."""
    users = Refreshed(tmp_path, aws, "iceberg")
    users.load("a", id=[1])
    stale = users.iceberg()
    rows = stale.scan().to_arrow()
    users.load("b", id=[2])
    users.undo("b").run()
    transaction = stale.transaction()
    transaction.append(rows)
    with pytest.raises(CommitFailedException):
        stale.catalog.commit_table(stale, transaction._requirements, transaction._updates)
    assert users.ids() == [1]


@pytest.mark.parametrize("mode", ["refresh", "append"])
def test_an_undo_of_a_table_that_is_gone_can_be_given_up(tmp_path, aws, bucket, mode):
    users = Refreshed(tmp_path, aws, "iceberg")
    users.write(mode=mode)
    users.load("a", id=[1])
    users.load("b", id=[2])
    aws.interceptors.append(lambda call, proceed: call.denied() if call.action == "glue:UpdateTable" else proceed(call))
    with pytest.raises(LakeError):
        users.undo("b").run()
    aws.interceptors.clear()
    aws.client("glue").delete_table(DatabaseName="crm", Name="users")
    pipeline = users.pipeline
    assert abandon(pipeline.controls, "undo.b", "a drill", pipeline.clients) == {
        "crm.users": "given up: the load that it was to take out stays"
    }
    assert users.state.pending is None


def test_an_undo_that_another_writer_has_overtaken_can_be_given_up(tmp_path, aws, bucket):
    """It would take back what the other one has added; none of its rows are in the table, and it holds the table."""
    users = Refreshed(tmp_path, aws, "iceberg")
    users.load("a", id=[1])
    users.load("b", id=[2])
    aws.interceptors.append(lambda call, proceed: call.denied() if call.action == "glue:UpdateTable" else proceed(call))
    with pytest.raises(LakeError):
        users.undo("b").run()
    aws.interceptors.clear()
    table = users.iceberg()
    aws.hide_missing = False
    table.append(table.scan().to_arrow())
    aws.hide_missing = True
    (refused,) = users.try_load("c", id=[3]).tables
    assert (refused.code, "whose undo would take that back as well" in refused.message) == ("COMMIT_UNKNOWN", True)
    pipeline = users.pipeline
    assert abandon(pipeline.controls, "undo.b", "a drill", pipeline.clients) == {
        "crm.users": "given up: the load that it was to take out stays"
    }
    assert users.ids() == [2, 2]
    assert (users.state.pending, users.state.shown.job_id) == (None, "b")
    users.load("c", id=[3])
    assert users.ids() == [3]
    assert users.differences() == []


def test_iceberg_replaces_what_others_appended(tmp_path, aws, bucket):
    users = Refreshed(tmp_path, aws, "iceberg")
    users.load("a", id=[1])
    table = users.iceberg()
    aws.hide_missing = False
    table.append(table.scan().to_arrow())
    aws.hide_missing = True
    users.load("b", id=[2])
    assert users.ids() == [2]
    summary = users.iceberg().current_snapshot().summary
    numbers = {key: summary.additional_properties[key] for key in ("deleted-data-files", "deleted-records")}
    assert (summary.operation.value, numbers) == ("overwrite", {"deleted-data-files": "2", "deleted-records": "2"})


def in_copy(users, sql):
    """The statement over a copy of the bucket."""
    root = users.folder / "copy"
    for key, body in users.aws.objects(BUCKET).items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_bytes(body)
    for scheme in ("s3a", "s3"):
        sql = sql.replace(f"{scheme}://{BUCKET}/", f"{root}/")
    for path in root.rglob("_latest/files.json"):
        path.write_text(path.read_text("utf-8").replace(f"s3://{BUCKET}/", f"{root}/"), "utf-8")
    return sql


@pytest.mark.parametrize("catalog", in_turn("glue", "none"))
def test_duckdb_reads_the_last_refresh(tmp_path, aws, bucket, catalog):
    users = Refreshed(tmp_path, aws, catalog)
    users.load("a", id=[1, 2], note=["x", "y"])
    users.load("b", id=[3], note=[7])
    _, variable, read, *_ = [query.sql for query in write_queries(users.spec, [Engine.DUCKDB])]
    with duckdb.connect() as connection:
        connection.execute(in_copy(users, variable))
        assert connection.sql(in_copy(users, read)).select("id, note, _load_id").fetchall() == [(3, 7, "b")]


def test_spark_reads_the_last_refresh(tmp_path, aws, bucket, spark):
    users = Refreshed(tmp_path, aws, "none")
    users.load("a", id=[1, 2], note=["x", "y"])
    users.load("b", id=[3], note=[7])
    view, read, *_ = [query.sql for query in write_queries(users.spec, [Engine.SPARK])]
    for statement in in_copy(users, view).split(";\n"):
        spark.sql(statement.rstrip(";"))
    rows = spark.sql(read.rstrip(";")).collect()
    assert [(row["id"], row["note"], row["_load_id"]) for row in rows] == [(3, 7, "b")]


@pytest.mark.parametrize("catalog", in_turn("glue", "none"))
def test_a_refresh_that_was_replaced_is_read_by_its_files(tmp_path, aws, bucket, catalog):
    users = Refreshed(tmp_path, aws, catalog)
    users.load("a", id=[1, 2])
    users.load("b", id=[3])
    pipeline = users.pipeline
    found = find_as_of(users.spec, read_table_loads(list(pipeline.controls.values())), "a", pipeline.clients)
    statements = {query.engine: query.sql for query in write_as_of(users.spec, list(Engine), found)}
    assert sorted(duckdb.sql(in_copy(users, statements[Engine.DUCKDB])).project("id").fetchall()) == [(1,), (2,)]
    if catalog == "glue":
        assert statements[Engine.ATHENA].startswith("-- athena reads the table's folder in Glue")


def test_a_refresh_is_read_by_its_files_when_records_before_it_are_gone(tmp_path, aws, bucket):
    """It replaced all of them."""
    users = Refreshed(tmp_path, aws, "none")
    for number, job in enumerate("abc"):
        users.load(job, id=[number])
    for key in aws.objects(BUCKET):
        if "/loads/a/" in key:
            aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    pipeline = users.pipeline
    found = find_as_of(users.spec, read_table_loads(list(pipeline.controls.values())), "b", pipeline.clients)
    assert found["crm.users"].keys == (f"{FOLDER}g0000000002/part-b-00000.parquet",)


def test_each_table_has_a_variable_of_its_own(tmp_path, aws, bucket):
    """Of two tables whose names are one as an identifier."""
    users = Refreshed(tmp_path, aws, "none")
    content = yaml.safe_load((tmp_path / "lake.yaml").read_text("utf-8"))
    (entry,) = content["tables"]
    content["tables"] = [entry | {"schema": "a", "table": "b_c"}, entry | {"schema": "a_b", "table": "c"}]
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    statements = [query.sql for query in write_queries(users.spec, [Engine.DUCKDB])]
    assert [sql.partition(" = ")[0] for sql in statements if sql.startswith("SET")] == [
        'SET VARIABLE "a.b_c_files"',
        'SET VARIABLE "a_b.c_files"',
    ]


def test_two_pipelines_do_not_refresh_one_table(tmp_path, aws, bucket):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = (Refreshed(tmp_path / name, aws, "none") for name in ("one", "two"))
    one.load("a", id=[1])
    text = (two.folder / "lake.yaml").read_text("utf-8").replace("pipeline: crm", "pipeline: other")
    (two.folder / "lake.yaml").write_text(text, "utf-8")
    assert [each.code for each in two.try_load("b", id=[2]).tables] == ["NAME_COLLISION"]
    assert one.ids() == [1]


def test_a_folder_with_files_is_not_used(tmp_path, aws, bucket):
    """Of another pipeline, which handed the table over: readers of the folder would see them as well."""
    users = Refreshed(tmp_path, aws, "glue")
    aws.client("s3").put_object(Bucket=BUCKET, Key=f"{FOLDER}g0000000041/part-z-00000.parquet", Body=b"PAR1")
    users.load("a", id=[1])
    assert users.keys() == ["g0000000041/part-z-00000.parquet", "g0000000042/part-a-00000.parquet"]
    assert users.ids() == [1]
    assert [(each.number, each.job_id) for each in users.state.generations] == [(42, "a")]


@pytest.mark.parametrize("catalog", in_turn("glue", "none", "iceberg"))
def test_a_program_refreshes_a_table(tmp_path, aws, bucket, catalog, spark):
    users = Refreshed(tmp_path, aws, catalog)
    for job, ids in (("a", [1, 2]), ("b", [3])):
        rows = spark.createDataFrame([(each,) for each in ids], "id BIGINT")
        report = write(rows, lake=tmp_path / "lake.yaml", table="crm.users", job_id=job)
        assert report.status == "done"
    assert users.ids() == [3]
    assert users.differences() == []


@pytest.mark.parametrize("settings", [{"format": "csv"}, {"format": "jsonl"}, {"format": "avro"}])
def test_every_format_is_refreshed(tmp_path, aws, bucket, settings):
    users = Refreshed(tmp_path, aws, "none", destination=settings)
    users.load("a", id=[1, 2])
    users.load("b", id=[3])
    (file,) = json.loads(aws.objects(BUCKET)[f"{FOLDER}_latest/files.json"])["files"]
    assert file.startswith(f"s3://{BUCKET}/{FOLDER}g0000000002/part-b-00000.")
    assert users.differences() == []
    users.undo("b").run()
    assert json.loads(aws.objects(BUCKET)[f"{FOLDER}_latest/files.json"])["job_id"] == "a"


def test_a_plan_compares_with_what_readers_see(tmp_path, aws, bucket):
    """After an undo that is the load before it, whatever lies in the table's folder."""
    users = Refreshed(tmp_path, aws, "none")
    users.load("a", id=[1])
    users.load("b", id=["x"])
    users.undo("b").run()
    spec, pipeline = users.spec, users.pipeline
    (planned,) = plan(
        spec, job_id="c", clients=pipeline.clients, spark=lambda: local_session(2), controls=pipeline.controls
    )
    assert planned.key == f"s3://{BUCKET}/{FOLDER}g0000000003/part-c-00000.parquet"
    assert [change.text for change in planned.changes] == ["! id bigint -> string"]
    assert planned.catalog == ("name the new files, instead of those before, in data/crm/users/_latest/files.json",)


def test_a_catalogue_counts_what_readers_see(tmp_path, aws, bucket):
    users = Refreshed(tmp_path, aws, "none")
    users.load("a", id=[1])
    users.load("b", id=[2])
    pipeline = users.pipeline
    (table,) = describe_tables(users.spec, pipeline.controls, {"crm.users": users.state}, pipeline.clients, ())
    assert table.files == 1


REPEATED_KEYS = [
    # the form and fields of the table, its rows, the files of the source, what the load says
    ({}, [1, 2, 2, 2], 1, "3 of the 4 rows with the key of another, such as 2 (3 times), expected each id once"),
    ({}, [3, 3, 1, 2, None, None], 2,
     "2 of the 6 rows with the key of another, such as 3 (2 times), expected each id once"),
    ({"primary_key": ["id", "name"]}, [1, 1, 2], 1,
     "2 of the 3 rows with the key of another, such as 1, n1 (2 times), expected each id, name once"),
    ({}, [1, 2, 3], 3, None),
    # Changes of one row have one key. A check that asks for the same speaks for itself.
    ({"mode": "append"}, [1, 1], 1, None),
    ({"expect": [{"unique": "id"}], "on_violation": "warn"}, [1, 1, 2], 1, None),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", ["parquet", "jsonl"])
@pytest.mark.parametrize(("fields", "ids", "files", "said"), REPEATED_KEYS, ids=range(len(REPEATED_KEYS)))
def test_rows_with_one_primary_key_are_counted(request, tmp_path, aws, bucket, form, fields, ids, files, said):
    spark = request.getfixturevalue("spark") if "expect" in fields else None
    lake = Refreshed(
        tmp_path, aws, "none", spark=spark, destination={"format": form}, **{"primary_key": ["id"]} | fields
    )
    (tmp_path / "users").mkdir()
    for number in range(files):
        rows = ids[number::files]
        table = pa.table({"id": pa.array(rows, pa.int64()), "name": [f"n{row}" for row in rows]})
        pq.write_table(table, tmp_path / f"users/{number}.parquet")
    report = load(lake.spec, job_id="a", clients=Clients(lake.spec.access), spark=lambda: lake.spark)
    assert report.status == "done", report.tables
    told = [f"crm.users: primary_key found {said}; it is not met"] if said else []
    assert [line for line in list_departures(report) if "primary_key" in line] == told
