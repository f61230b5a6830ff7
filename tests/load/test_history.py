"""A merged table and its history: both have a load or neither, and the history has each change once."""

import os
from functools import partial

import pyarrow as pa
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.iceberg import merge_rows
from lakewriter.errors import LakeError
from lakewriter.run.loader import load
from tests.load.refreshed import Refreshed
from tests.load.test_change_events import Topic, change
from tests.load.test_merged_streams import Merged
from tests.load.test_shared_jobs import refuse_spark

pytestmark = pytest.mark.spark

TABLES = ("users", "users_history")
ROWS = {"mode": "merge", "primary_key": ["id"], "order_by": ["at"], "history": True}


def make(tmp_path, aws, **table):
    return Refreshed(
        tmp_path, aws, "iceberg", **({"destination": {"tracking": ["deleted"]}} | ROWS | {"deleted": "gone"} | table)
    )


def read(pipeline, name, *columns):
    rows = pipeline.open_table(name).scan().to_arrow().to_pylist()
    return sorted(
        (tuple(row[column] for column in columns) for row in rows),
        key=lambda row: [(value is not None, str(value)) for value in row],
    )


def rows(*triples):
    """id, at, whether it is gone"""
    ids, at, gone = zip(*triples, strict=True)
    return {"id": pa.array(ids, pa.int64()), "at": pa.array(at, pa.int64()), "gone": pa.array(gone, pa.bool_())}


def test_each_change_is_kept_once(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, spark=spark)
    report = users.load("a", **rows((1, 10, False), (2, 10, False), (1, 11, False), (1, 11, False)))
    assert [(table.table, table.status) for table in report.tables] == [("users", "done"), ("users_history", "done")]
    users.load("b", **rows((2, 12, True), (1, 10, False), (3, 9, False), (1, 11, False)))
    assert read(users, "users", "id", "at", "_deleted") == [(1, 11, False), (3, 9, False)]
    assert read(users, "users_history", "id", "at", "_deleted") == [
        (1, 10, False), (1, 11, False), (2, 10, False), (2, 12, True), (3, 9, False),
    ]  # fmt: skip
    assert users.differences() == []
    users.undo("b").run()
    assert read(users, "users", "id", "at") == [(1, 11), (2, 10)]
    assert read(users, "users_history", "id", "at") == [(1, 10), (1, 11), (2, 10)]
    assert users.differences() == []


@pytest.mark.staged_by("driver")
def test_small_tables_need_no_spark(tmp_path, aws, bucket):
    """A table and its history are staged in the driver, one after the other: both have row ids."""
    users = make(tmp_path, aws, deleted=None, destination={"tracking": ["row_id"]})
    users.write_rows(**rows((1, 10, False), (2, 11, False)))
    spec = users.spec
    report = load(spec, job_id="a", clients=Clients(spec.access), spark=refuse_spark)
    assert [(table.status, table.rows) for table in report.tables] == [("done", 2), ("done", 2)]
    assert read(users, "users", "id", "_row_id") == read(users, "users_history", "id", "_row_id")


def test_changes_without_an_order(tmp_path, aws, bucket, monkeypatch):
    """A null is an order of its own, the lowest; also where the rows of a load are divided."""
    monkeypatch.setattr(merge_rows, "PART", 2)
    users = make(tmp_path, aws, deleted=None)
    users.load("a", **rows((1, None, False), (2, None, False), (3, 4, False), (4, 4, False), (5, 4, False)))
    again = ((1, None, False), (2, 3, False), (3, None, False), (4, 4, False), (6, None, False), (5, 5, False))
    users.load("b", **rows(*again))
    assert read(users, "users", "id", "at") == [(1, None), (2, 3), (3, 4), (4, 4), (5, 5), (6, None)]
    assert read(users, "users_history", "id", "at") == [
        (1, None), (2, None), (2, 3), (3, None), (3, 4), (4, 4), (5, 4), (5, 5), (6, None),
    ]  # fmt: skip
    assert users.differences() == []


NAMES = ("id", "name", "_change_epoch", "_change_position", "_change_op", "_deleted", "_change_unchanged")


def read_at(lsn, key=None, op="r", **more):
    row = None if key is None else {"id": key, "name": f"{op}{lsn}"}
    event = change(op, lsn, row)
    event["source"] |= {"db": "shop", "schema": "public", "table": "users", "ts_ms": 1767600000000 + lsn} | more
    return event


def test_events(tmp_path, aws, bucket, spark):
    topic = Topic(tmp_path, aws, spark, history=True)
    moved = change("d", 60, before={"id": 1}), read_at(60, 3, "c")
    left_out = read_at(55, 1, "u")
    left_out["after"]["name"] = "__debezium_unavailable_value"
    table = topic.load("a", read_at(50, 1), read_at(51, 2, "c"), left_out, *moved, "null")
    assert table.status == "done", table
    assert topic.rows("id", "name") == [(2, "c51"), (3, "c60")]
    history = read(topic.users, "users_history", *NAMES)
    assert history == [
        (1, None, 0, 55, "u", False, '["name"]'),
        (1, None, 0, 60, "d", True, None),
        (1, "r50", 0, 1767600000050, "r", False, None),
        (2, "c51", 0, 51, "c", False, None),
        (3, "c60", 0, 60, "c", False, None),
    ]
    # A truncate, the events before it once more, and a snapshot that brings one row.
    topic.load("b", read_at(70, op="t"), left_out, read_at(71, 4, "c"))
    assert topic.rows("id") == [(4,)]
    topic.users.write(envelope={"type": "debezium", "epoch": 1})
    topic.load("c", read_at(80, 5, snapshot="last"))
    assert topic.rows("id") == [(5,)]
    added = [
        row
        for row in topic.users.open_table("users_history").scan().to_arrow().to_pylist()
        if row["id"] not in (1, 2, 3)
    ]
    names = (
        "id",
        "_change_epoch",
        "_change_log",
        "_change_position",
        "_change_op",
        "_deleted",
        "_change_source",
        "name",
    )
    assert [tuple(row[name] for name in names) for row in sorted(added, key=lambda row: row["_change_time"])] == [
        (None, 0, 1, 70, "t", True, "shop.public.users", None),
        (4, 0, 1, 71, "c", False, "shop.public.users", "c71"),
        (5, 1, 0, 1767600000080, "r", False, "shop.public.users", "r80"),
        (None, 1, 0, 0, "s", True, "shop.public.users", None),
    ]
    assert topic.users.differences() == []


def test_changes_of_the_whole_table_are_kept_once(tmp_path, aws, bucket, spark):
    """Truncates and snapshots that are delivered again, and those of two source tables at one place."""
    topic = Topic(tmp_path, aws, spark, history=True)
    both = read_at(70, op="t"), read_at(70, op="t", table="guests")
    topic.load("a", read_at(60, 1, "c"), *both)
    topic.load("b", *both, read_at(71, 2, "c"))
    topic.users.write(envelope={"type": "debezium", "epoch": 1})
    snapshot = read_at(80, 3, snapshot="last"), read_at(80, 3, table="guests", snapshot="last")
    topic.load("c", *snapshot)
    topic.load("d", *snapshot, both[0])
    history = read(topic.users, "users_history", "id", "_change_epoch", "_change_position", "_change_source")
    users, guests = "shop.public.users", "shop.public.guests"
    read_at_80 = 1767600000080
    assert history == [
        (None, 0, 70, guests), (None, 0, 70, users), (None, 1, 0, guests), (None, 1, 0, users), (None, 1, 70, users),
        (1, 0, 60, users), (2, 0, 71, users), (3, 1, read_at_80, guests), (3, 1, read_at_80, users),
    ]  # fmt: skip
    assert topic.users.differences() == []


def cut_off(users, work, after):
    """Work that AWS refuses everything after so many calls; False if it made fewer."""
    seen = []

    def refuse(call, proceed):
        seen.append(call)
        return proceed(call) if len(seen) <= after else call.denied()

    users.aws.interceptors.append(refuse)
    try:
        work()
    except LakeError:
        # Its outcome could not be written either.
        pass
    finally:
        users.aws.interceptors.remove(refuse)
    return len(seen) > after


@pytest.mark.parametrize("first", range(2))
def test_both_have_a_load_or_neither(tmp_path, aws, bucket, first):
    """Wherever it dies: the next load brings both tables to the same end."""
    users = make(tmp_path, aws, deleted=None)
    users.load("a", **rows((1, 10, False)))
    sides = set()
    for after in range(first, 1000, 2 if os.environ.get("LAKEWRITER_FAULTS") == "all" else 9):
        users.write_rows(**rows((1000 + after, 10, False), (1, 11 + after, False)))
        if not cut_off(users, partial(users.run, f"b{after}"), after):
            break
        users.load(f"c{after}", **rows((2000 + after, 10, False)))
        ids, kept = (set(users.open_table(name).scan().to_arrow()["id"].to_pylist()) for name in TABLES)
        assert ids == kept, after
        assert {1, 2000 + after} <= ids
        sides.add(1000 + after in ids)
    assert sides == {True, False}
    newest: dict[int, int] = {}
    for key, at in (
        users.open_table("users_history").scan().to_arrow().select(["id", "at"]).to_pandas().itertuples(False)
    ):
        newest[key] = max(at, newest.get(key, at))
    assert newest == dict(read(users, "users", "id", "at"))
    assert users.differences() == []


@pytest.mark.parametrize("first", range(2))
def test_both_are_undone_or_neither(tmp_path, aws, bucket, first):
    users = make(tmp_path, aws, deleted=None)
    users.load("a", **rows((1, 10, False)))
    sides = set()
    for after in range(first, 1000, 2 if os.environ.get("LAKEWRITER_FAULTS") == "all" else 9):
        job = f"b{after}"
        users.load(job, **rows((1000 + after, 10, False)))
        if not cut_off(users, users.undo(job).run, after):
            break
        users.load(f"c{after}", **rows((2000 + after, 10, False)))
        ids, kept = (set(users.open_table(name).scan().to_arrow()["id"].to_pylist()) for name in TABLES)
        assert ids == kept, after
        sides.add(1000 + after in ids)
    assert sides == {True, False}
    assert users.differences() == []


def test_a_continuous_run(tmp_path, aws, bucket, spark):
    """Both have each batch; a history that is turned on later begins with the next one."""
    lake = Merged(tmp_path, aws, spark)

    def read_changes():
        catalog = lake.open_table().catalog
        changes = catalog.load_table(("crm", "users_history")).scan().to_arrow().to_pylist()
        return sorted((row["id"], row["at"], row["v"], row["_deleted"]) for row in changes)

    lake.describe()
    lake.arrive("a", (1, 1, "a"), (2, 1, "a"))
    with lake.running() as first:
        lake.until(0, "crm.users")
    lake.describe(history=True, maintenance={"by": "run", "every": "1 second"})
    lake.arrive("b", (1, 2, "b"), (2, 2, "D"), (1, 3, "c"))
    with lake.running() as second:
        lake.until(1, "crm.users")
        lake.arrive("c", (1, 3, "c"), (3, 1, "a"), (2, 1, "a"), (4, 1, "a"))
        lake.until(2, "crm.users")
    assert [run.ended[1] for run in (first, second)] == [None, None]
    assert lake.read_rows() == [(1, 3, "c"), (3, 1, "a"), (4, 1, "a")]
    # Spark may deliver the first batch once more: the checkpoint did not record its end.
    changes = [change for change in read_changes() if change not in ((1, 1, "a", False), (2, 1, "a", False))]
    assert changes == [
        (1, 2, "b", False),
        (1, 3, "c", False),
        (2, 2, "D", True),
        (3, 1, "a", False),
        (4, 1, "a", False),
    ]
    assert set(second.ended[0].tables) == {"crm.users"}


def test_files_of_dms(tmp_path, aws, bucket, spark):
    """Rows of the full load have no order; a change of the key is in the history of both keys."""
    read_files = {"format": "csv", "path": "dms", "options": {"header": "true"}}
    envelope = {"type": "dms", "full_load": "LOAD*", "before": "BI_"}
    events = {"read": read_files, "envelope": envelope, "order_by": ["seq"], "columns": {"id": "bigint"}}
    topic = Topic(tmp_path, aws, spark, history=True, **events)
    folder = tmp_path / "dms"
    folder.mkdir()
    header, stamp = "Op,id,name,seq,BI_id\n", "2026010510300012000000000000000012"
    (folder / "LOAD00000001.csv").write_text(f"{header}I,1,Anne,,\nI,2,Bob,,\n", "utf-8")
    changes = f"U,1,Anna,{stamp}3,1\nU,5,Bob,{stamp}5,2\nD,9,,{stamp}6,\n"
    (folder / "20260105-103000120.csv").write_text(f"{header}{changes}", "utf-8")
    # The second load reads all files again.
    for job in ("a", "b"):
        assert topic.users.run(job).status == "done"
    assert topic.rows("id", "name") == [(1, "Anna"), (5, "Bob")]
    found = read(topic.users, "users_history", "id", "name", "seq", "_deleted")
    assert [(key, name, seq and str(seq)[-1], gone) for key, name, seq, gone in found] == [
        (1, "Anna", "3", False),
        (1, "Anne", None, False),
        (2, None, "5", True),
        (2, "Bob", None, False),
        (5, "Bob", "5", False),
        (9, None, "6", True),
    ]
