"""``renamed_from``: a load renames its table's column in its own commit, whatever else the table's entry says."""

import json
from typing import Any
from unittest.mock import patch

import botocore.client
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.operate.planning import plan
from lakewriter.operate.rebuild import ask_catalog, rebuild
from lakewriter.run.loader import load
from lakewriter.run.replay import Chosen, Replay, find_files
from lakewriter.spec.readers import WHO_NOTICES
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.load.test_merged import CALL, DELETED, Killed
from tests.load.test_quarantine import RULE

MAIL = {"columns": {"mail": {"renamed_from": "email"}}}


def make(tmp_path: Any, aws: Any, **table: Any) -> Refreshed:
    return Refreshed(tmp_path, aws, "iceberg", **{"mode": "append"} | table)


def rows(users: Refreshed, *columns: str) -> list[tuple[Any, ...]]:
    seen = users.iceberg().scan().to_arrow().to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in seen), key=str)


MODES: list[tuple[dict[str, Any], list[tuple[Any, ...]]]] = [
    # the table's entry, its rows after the second load
    ({"mode": "append"}, [(1, "a"), (2, "b"), (2, "c"), (3, "d")]),
    ({"mode": "append", "primary_key": ["id"]}, [(1, "a"), (2, "b"), (2, "c"), (3, "d")]),
    ({"mode": "refresh"}, [(2, "c"), (3, "d")]),
    ({"mode": "merge", "primary_key": ["id"], "order_by": ["at"]}, [(1, "a"), (2, "c"), (3, "d")]),
    ({"mode": "append", "contract": {"columns": "freeze"}}, [(1, "a"), (2, "b"), (2, "c"), (3, "d")]),
    ({"mode": "append", "contract": {"columns": "discard"}}, [(1, "a"), (2, "b"), (2, "c"), (3, "d")]),
    ({"mode": "append", "expect": [{"not_null": "id"}]}, [(1, "a"), (2, "b"), (2, "c"), (3, "d")]),
]


@pytest.mark.parametrize(("entry", "expected"), MODES)
def test_modes(tmp_path, aws, bucket, entry, expected):
    users = make(tmp_path, aws, **entry)
    users.load("a", id=[1, 2], at=[1, 1], email=["a", "b"])
    users.write(**MAIL)
    users.load("b", id=[2, 3], at=[2, 2], mail=["c", "d"])
    assert rows(users, "id", "mail") == expected
    assert users.iceberg().schema().column_names[:3] == ["id", "at", "mail"]
    assert users.differences() == []
    # The line may stay, or go.
    users.load("c", id=[2, 3], at=[2, 2], mail=["c", "d"])
    users.write()
    users.load("d", id=[2, 3], at=[2, 2], mail=["c", "d"])
    assert users.iceberg().schema().column_names[:3] == ["id", "at", "mail"]
    if entry["mode"] == "append":
        return
    # An undo takes rows back; the name stays, as a column does that a load has added.
    for job in ("d", "c", "b"):
        users.undo(job).run()
    assert rows(users, "id", "mail") == [(1, "a"), (2, "b")]
    assert users.differences() == []


def test_key_and_order_of_a_merge_that_deletes(tmp_path, aws, bucket, spark):
    """Keys that are gone keep older rows out under their new names too."""
    users = make(tmp_path, aws, **DELETED, mode="merge", primary_key=["id"], order_by=["at"], spark=spark)
    users.load("a", id=[1, 2], at=[5, 1], v=["D", "a"])
    renamed = {"columns": {"number": {"renamed_from": "id"}, "seen": {"renamed_from": "at"}}}
    users.write(**renamed, primary_key=["number"], order_by=["seen"])
    users.load("b", number=[1, 2], seen=[4, 3], v=["late", "b"])
    assert rows(users, "number", "seen", "v") == [(2, 3, "b")]
    users.load("c", number=[1, 2], seen=[6, 2], v=["new", "late"])
    assert rows(users, "number", "seen", "v") == [(1, 6, "new"), (2, 3, "b")]
    assert users.differences() == []


@pytest.mark.parametrize("after", [False, True], ids=["before the commit", "after it"])
def test_finished_by_another_process(tmp_path, aws, bucket, after):
    """The rename is in the intent."""
    users = make(tmp_path, aws)
    users.load("a", id=[1], email=["a"])
    users.write(**MAIL)
    call, commits = getattr(botocore.client.BaseClient, CALL), list[Any]()

    def die(client: Any, operation: str, arguments: Any) -> Any:
        if operation == "UpdateTable":
            if after and not commits:
                commits.append(call(client, operation, arguments))
            raise Killed
        return call(client, operation, arguments)

    with patch.object(botocore.client.BaseClient, CALL, die), pytest.raises(Killed):
        users.try_load("b", id=[2], mail=["b"])
    assert users.run("c").status == "done"
    assert rows(users, "mail") == [("a",), ("b",), ("b",)]
    assert [field.name for field in users.iceberg().schema().fields[:2]] == ["id", "mail"]
    assert users.differences() == []


def read_json(users: Refreshed, *lines: dict[str, Any], **entry: Any) -> None:
    path = users.folder / "users.json"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    users.write(read={"format": "json", "path": str(path)}, **entry)


def test_types_and_names_go_with_the_column(tmp_path, aws, bucket):
    """What a value is follows from the table's column, as before; fields of a struct keep the names they were given."""
    users = make(tmp_path, aws)
    read_json(users, {"id": 1, "email": "a", "who": {"Full Name": "x"}})
    users.run("a")
    columns = {"mail": {"renamed_from": "email"}, "person": {"renamed_from": "who"}}
    read_json(users, {"id": 2, "mail": 5, "person": {"Full-Name": "n", "Full Name": "y"}}, columns=columns)
    assert users.run("b").status == "done"
    assert rows(users, "mail") == [("5",), ("a",)]
    assert sorted(row["person"]["Full_Name"] for row in users.iceberg().scan().to_arrow().to_pylist()) == ["x", "y"]
    # A file without the column renames nothing.
    read_json(users, {"id": 3}, columns=columns)
    assert users.run("c").status == "done"
    assert len(rows(users, "mail")) == 3


REFUSED = [
    # the source's columns, words of the message
    ({"email": ["b"]}, "'mail' was renamed from 'email', and the source has a column 'email'"),
    ({"email": ["b"], "mail": ["c"]}, "the source has a column 'email'"),
    ({"post": ["b"]}, "the source has no column 'mail'"),
]


@pytest.mark.parametrize(("columns", "said"), REFUSED)
def test_source_that_does_not_fit(tmp_path, aws, bucket, columns, said):
    users = make(tmp_path, aws)
    users.load("a", id=[1], email=["a"])
    users.write(**MAIL)
    users.write_rows(id=[2], **columns)
    (failed,) = users.run("b").tables
    assert (failed.code, said in str(failed.message)) == ("SPEC_INVALID", True)
    assert users.iceberg().schema().column_names[:2] == ["id", "email"]


def test_new_files(tmp_path, aws, bucket):
    """A load without new files has the columns of old ones, and renames nothing."""
    users = make(tmp_path, aws)
    users.table["read"] = {"format": "parquet", "path": "users", "files": "new"}
    users.write()
    users.load("a", id=[1], email=["a"])
    users.write(**MAIL)
    assert users.run("b").status == "done"
    assert users.iceberg().schema().column_names[:2] == ["id", "email"]
    pq.write_table(pa.table({"id": [2], "mail": ["b"]}), tmp_path / "users" / "1.parquet")
    (failed,) = users.run("c").tables
    assert (failed.status, failed.rows) == ("done", 1), failed.message
    assert rows(users, "id", "mail") == [(1, "a"), (2, "b")]


def test_rows_of_the_quarantine(tmp_path, aws, bucket, spark):
    """Rows that were set aside under the old name are loaded under the new one, and their load renames the column."""
    at_least = {"range": {"column": "id", "at_least": 0}, "on_violation": "quarantine"}
    users = make(tmp_path, aws, expect=[at_least], on_bad_row=RULE | {"at_most": 0.9}, spark=spark)
    users.load("a", id=[1, -1], email=["a", "b"])
    users.write(**MAIL, expect=[])
    users.write_rows(id=[2], mail=["c"])
    spec, control = users.spec, users.pipeline.first_control
    replay = Replay(spec, spec.tables[0], find_files(control, spec.tables[0], Chosen()), Chosen())
    (result,) = load(
        replay.make_spec(),
        job_id=replay.job_id,
        clients=users.pipeline.clients,
        spark=lambda: spark,
        kind=replay.make_kind(control),
    ).tables
    assert (result.status, result.rows) == ("done", 1), result.message
    assert rows(users, "id", "mail") == [(-1, "b"), (1, "a")]


def test_partitions_that_are_replaced(tmp_path, aws, bucket, spark):
    """The column of the partitions and the one of the sort order within files are renamed."""
    entry = {"mode": "replace_partitions", "partition_by": ["day"], "sort_by": ["email"]}
    users = make(tmp_path, aws, **entry, spark=spark)
    users.load("a", id=[1, 2], day=["x", "y"], email=["a", "b"])
    columns = {"date": {"renamed_from": "day"}, **MAIL["columns"]}
    users.write(columns=columns, partition_by=["date"], sort_by=["mail"])
    users.load("b", id=[3], date=["y"], mail=["c"])
    assert rows(users, "id", "date", "mail") == [(1, "x", "a"), (3, "y", "c")]
    assert users.differences() == []


def test_cursor(tmp_path, aws, bucket, spark):
    """What is above the cursor goes on under the cursor's new name."""
    users = make(tmp_path, aws, cursor="id", spark=spark)
    users.load("a", id=[1, 2], v=["a", "b"])
    users.write(columns={"number": {"type": "bigint", "renamed_from": "id"}}, cursor="number")
    users.load("b", number=[2, 3], v=["c", "d"])
    assert rows(users, "number", "v") == [(1, "a"), (2, "b"), (3, "d")]


def test_lost_state(tmp_path, aws, bucket):
    """The catalog has the names where no record has them."""
    users = make(tmp_path, aws)
    users.load("a", id=[1], email=["a"])
    users.write(**MAIL)
    users.load("b", id=[2], mail=["b"])
    control = users.pipeline.first_control
    aws.client("s3").delete_object(Bucket=BUCKET, Key=control.keys.state(control.table_id))
    (table,) = users.spec.tables
    rebuild(control, table, ask_catalog(users.spec, table, users.pipeline.clients), "a drill", None, from_start=True)
    users.load("c", id=[3], mail=["c"])
    assert rows(users, "id", "mail") == [(1, "a"), (2, "b"), (3, "c")]


def test_plan_says_who_notices(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    users.load("a", id=[1], email=["a"])
    users.write(**MAIL)
    users.write_rows(id=[2], mail=["b"])
    assert "was 'email' before: the next load renames" in " ".join(users.spec.warnings)
    spec, pipeline = users.spec, users.pipeline
    (planned,) = plan(spec, job_id="p", clients=pipeline.clients, spark=lambda: users.spark, controls=pipeline.controls)
    assert planned.error is None, planned.error
    (change,) = planned.changes
    assert (change.text, change.effect, change.breaks) == ("! email -> mail", WHO_NOTICES, True)
    assert planned.catalog[0].startswith("rename column email of crm.users to mail")


def test_plain_files_are_refused(tmp_path, aws):
    users = Refreshed(tmp_path, aws, "glue", mode="append", **MAIL)
    with pytest.raises(SpecInvalidError, match="only Iceberg tables have"):
        _ = users.spec
