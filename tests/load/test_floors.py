"""Truncates and whole snapshots in files of Debezium's events: rows go by their order, and late ones stay out."""

import json
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.rebuild import ask_catalog, rebuild
from lakewriter.operate.repair import abandon
from lakewriter.receipt import Batch, Floor
from lakewriter.report import TableResult
from lakewriter.run.kinds import MicroBatch
from lakewriter.run.loader import load
from lakewriter.source.feed import open_feed
from tests.load.lakes import BUCKET
from tests.load.test_abandoned_refreshes import is_report
from tests.load.test_change_events import SOURCE, Topic

pytestmark = pytest.mark.spark

USERS = SOURCE | {"db": "shop", "schema": "public", "table": "users"}
GUESTS = USERS | {"table": "guests"}
TRUNCATED = Floor(source="shop.public.users", order=("0", "1", "60", "0"))


def change(op: str, lsn: int, key: int | None = None, source: dict[str, Any] = USERS, **more: Any) -> dict[str, Any]:
    row = None if key is None else {"id": key, "name": f"{op}{lsn}"}
    before, after = (row, None) if op == "d" else (None, row)
    return {"op": op, "before": before, "after": after, "source": source | {"lsn": lsn} | more, "ts_ms": 1767600000001}


def read(key: int, snapshot: str, at: int, source: dict[str, Any] = USERS) -> dict[str, Any]:
    return change("r", 0, key, source, snapshot=snapshot, ts_ms=at)


@pytest.fixture
def topic(tmp_path, aws, bucket, spark):
    return Topic(tmp_path, aws, spark)


def remembered(topic: Topic) -> list[Floor]:
    keys = topic.users.state.deleted_keys
    return [] if keys is None else [floor.model_copy(update={"until": None}) for floor in keys.floors]


def test_truncates(topic):
    topic.load("a", change("c", 50, 1), change("c", 51, 2), change("c", 52, 3, GUESTS))
    # The truncate is in the middle of what came before and after it, as from several partitions.
    table = topic.load("b", change("c", 70, 2), change("t", 60), change("u", 55, 1), change("d", 54, 3, GUESTS))
    assert table.status == "done", table
    assert topic.rows("id", "name", "_change_source") == [(2, "c70", "shop.public.users")]
    (state,) = (topic.users.state.deleted_keys,)
    assert remembered(topic) == [TRUNCATED]
    assert state.floors[0].until == state.until
    merged = "rows merged: 1 inserted, 0 updated, 1 deleted; 0 unchanged, 1 late, 0 superseded; 2 cleared by a truncate"
    assert any(note.startswith(merged) for note in table.notes), table.notes
    assert topic.users.differences() == []
    # Late rows of the table, a row of another one, and the truncate once more.
    topic.load("c", change("c", 58, 4), change("c", 53, 5, GUESTS), change("t", 60), change("c", 61, 6))
    kept = [(2, "c70", "shop.public.users"), (5, "c53", "shop.public.guests"), (6, "c61", "shop.public.users")]
    assert topic.rows("id", "name", "_change_source") == kept
    # A load without rows: it has a report, a snapshot, and an undo.
    table = topic.load("d", change("t", 65))
    assert (table.status, table.rows, topic.rows("id")) == ("done", 0, [(2,), (5,)])
    assert topic.users.differences() == []
    topic.users.undo("d").run()
    assert (topic.rows("id"), remembered(topic)) == ([(2,), (5,), (6,)], [TRUNCATED])
    (topic.folder / "d.json").unlink()
    topic.load("e", change("c", 63, 7), change("c", 57, 8))
    assert topic.rows("id") == [(2,), (5,), (6,), (7,)]


def test_a_truncate_of_rows_that_are_deleted(topic):
    """Their files leave with it, though it takes no row out that readers have seen."""
    topic.load("a", change("c", 50, 1))
    topic.load("b", change("d", 51, 1))
    table = topic.load("c", change("t", 60))
    assert (table.status, topic.rows("id")) == ("done", [])
    assert topic.users.differences() == []


def test_a_snapshot_in_a_higher_epoch(topic):
    topic.load("a", read(1, "first", 1), read(2, "true", 1), read(3, "last", 1), read(9, "true", 1, GUESTS))
    assert (len(topic.rows("id")), remembered(topic)) == (4, [])
    topic.users.write(envelope={"type": "debezium", "epoch": 1})
    # Its end comes before its other rows, from another partition; rows of the other table stay until its own end.
    topic.load("b", read(2, "last_in_data_collection", 2), change("c", 5, 4))
    assert topic.rows("id", "_change_epoch") == [(2, 1), (4, 1), (9, 0)]
    topic.load("c", read(1, "true", 2))
    assert topic.rows("id", "_change_epoch") == [(1, 1), (2, 1), (4, 1), (9, 0)]
    assert remembered(topic) == [Floor(source="shop.public.users", order=("1", "0", "0", "0"))]
    # An incremental snapshot of some rows ends nothing.
    topic.users.write(envelope={"type": "debezium", "epoch": 2})
    topic.load("d", read(1, "incremental", 3))
    assert topic.rows("id", "_change_epoch") == [(1, 2), (2, 1), (4, 1), (9, 0)]
    # What was read with a lower epoch is late.
    topic.users.write(envelope={"type": "debezium", "epoch": 0})
    topic.load("e", change("c", 90, 7), change("c", 91, 8, GUESTS))
    assert topic.rows("id", "_change_epoch") == [(1, 2), (2, 1), (4, 1), (8, 0), (9, 0)]


def recover(topic: Topic) -> None:
    """The catalog is away when the truncate is committed; the next load ends what was begun."""
    topic.users.aws.deny("glue:UpdateTable")
    assert topic.load("b", change("t", 60)).status == "failed"
    topic.users.aws.allow_everything()
    assert topic.users.run("b").tables[0].status in ("done", "already_done")


def read_all_but_the_truncate(topic: Topic) -> None:
    """Which files were read is not known any more: the rows from before it come again."""
    (topic.folder / "b.json").unlink()
    topic.users.write(read={"format": "json", "path": "events"})


def lose_the_state(topic: Topic) -> None:
    topic.load("b", change("t", 60))
    control, (table,) = topic.users.pipeline.first_control, topic.users.spec.tables
    topic.users.aws.client("s3").delete_object(Bucket=BUCKET, Key=control.keys.state(control.table_id))
    catalog = ask_catalog(topic.users.spec, table, topic.users.pipeline.clients)
    rebuild(control, table, catalog, "a drill", None, from_start=True)
    read_all_but_the_truncate(topic)


def load_between(topic: Topic) -> None:
    """A floor lives on while loads fold the objects of deleted keys."""
    topic.load("b", change("t", 60))
    for number in range(5):
        topic.load(f"b{number}", change("d", 70 + number, 10 + number))


def undo_and_load_again(topic: Topic) -> None:
    topic.load("b", change("t", 60))
    topic.users.undo("b").run()
    assert (topic.rows("id"), remembered(topic)) == ([(1,), (2,)], [])
    topic.users.run("b.2")


def cut_off(topic: Topic) -> None:
    """Load the truncate, whose report can no longer be written: readers see it already."""

    def refuse(call: Any, proceed: Any) -> Any:
        return call.denied() if is_report(call) else proceed(call)

    aws = topic.users.aws
    aws.interceptors.append(refuse)
    assert topic.load("b", change("t", 60)).status == "failed"
    aws.interceptors.remove(refuse)
    assert topic.rows("id") == []


def give_up(topic: Topic) -> None:
    cut_off(topic)
    pipeline = topic.users.pipeline
    said = abandon(pipeline.controls, "b", "a drill", pipeline.clients)["crm.users"]
    assert said.startswith("closed as it is"), said


def lose_the_intent(topic: Topic) -> None:
    cut_off(topic)
    control, pending = topic.users.pipeline.first_control, topic.users.state.pending
    key = control.keys.intent("b", pending.attempt, control.table_id)
    topic.users.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    abandon_without_intent(topic.users.pipeline.controls, "b", "a drill")
    read_all_but_the_truncate(topic)


WAYS = [recover, lose_the_state, load_between, undo_and_load_again, give_up, lose_the_intent]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", WAYS)
def test_ways_to_the_same_end(topic, way):
    topic.load("a", change("c", 50, 1), change("c", 51, 2))
    way(topic)
    table = topic.load("c", change("c", 58, 3), change("c", 61, 4))
    assert table.status == "done", table
    assert (topic.rows("id"), remembered(topic)) == ([(4,)], [TRUNCATED])
    assert topic.users.differences() == []


def test_a_table_without_the_column_of_source_tables(topic):
    """Another engine has dropped it: nobody could tell which rows a truncate is of."""
    topic.load("a", change("c", 50, 1))
    topic.users.aws.hide_missing = False
    with topic.users.iceberg().update_schema() as update:
        update.delete_column("_change_source")
    topic.users.aws.hide_missing = True
    topic.users.write(contract={"columns": "discard"})
    table = topic.load("b", change("t", 60), change("c", 61, 2))
    assert (table.code, topic.rows("id")) == ("SCHEMA_INCOMPATIBLE", [(1,)])
    assert "has no column '_change_source', and its events take rows of one source table out" in table.message


def test_batches_of_a_continuous_run(topic):
    """Each has its own events; one that is delivered again changes nothing."""
    topic.users.write(read={"format": "json", "path": "events"}, columns={"name": "string", "id": "int"})

    def bring(number: int, *events: dict[str, Any]) -> TableResult:
        (topic.folder / "0.json").write_text("".join(f"{json.dumps(event)}\n" for event in events), "utf-8")
        batch, spec = Batch("0d9e2c1c-5a1e-4c0e-9d0a-3b1f6a1c2d3e", number), topic.users.spec
        kind = MicroBatch(batch, topic.users.state.batch, open_feed)
        report = load(
            spec, job_id=batch.job_id, clients=Clients(spec.access), spark=lambda: topic.users.spark, kind=kind
        )
        return report.tables[0]

    assert bring(0, change("c", 50, 1), change("c", 51, 2)).status == "done"
    # One that fills a value is done once, too.
    assert [bring(1, without_name(55, 1)).status for _ in range(2)] == ["done", "already_done"]
    assert topic.rows("id", "name", "_change_position") == [(1, "c50", 55), (2, "c51", 51)]
    assert (bring(2, change("t", 60)).status, topic.rows("id")) == ("done", [])
    assert bring(2, change("t", 60)).status == "already_done"
    assert bring(3, change("c", 58, 3), change("c", 61, 4)).status == "done"
    assert (topic.rows("id"), remembered(topic)) == ([(4,)], [TRUNCATED])
    # Without a row the batch stays out, and so does the next one.
    for number in (4, 5):
        table = bring(number, without_name(70, 1), change("c", 71, 5))
        assert (table.status, table.code) == ("failed", "PENDING_UNRECOVERABLE"), table
    assert topic.rows("id", "name") == [(4, "c61")]


def without_name(lsn: int, key: int) -> dict[str, Any]:
    """An update that leaves a large value out, since it is unchanged."""
    return change("u", lsn) | {"after": {"id": key, "name": "__debezium_unavailable_value"}}


def test_a_truncate_between_a_row_and_its_update(topic):
    """The value can only be one that came after the truncate, whatever else one file has."""
    topic.users.write(columns={"name": "string", "id": "int"})
    topic.load("a", change("c", 50, 1), change("c", 51, 2))
    table = topic.load("b", change("t", 60), without_name(61, 1))
    assert table.code == "PENDING_UNRECOVERABLE"
    assert "1 row without a value in column 'name', such as that with the key 1" in table.message
    assert (topic.rows("id"), remembered(topic)) == ([(1,), (2,)], [])
    abandon(topic.users.pipeline.controls, "b", "a drill", topic.users.pipeline.clients)
    (topic.folder / "b.json").unlink()
    table = topic.load("c", without_name(63, 1), change("t", 60), without_name(55, 2), change("c", 62, 1))
    assert (table.status, table.rows) == ("done", 3), table
    assert topic.rows("id", "name", "_change_position") == [(1, "c62", 63)]
    assert topic.load("d", without_name(64, 1)).status == "done"
    assert topic.rows("id", "name", "_change_position") == [(1, "c62", 64)]
    assert topic.users.differences() == []
    topic.users.undo("d").run()
    assert topic.rows("id", "name", "_change_position") == [(1, "c62", 63)]
    topic.users.undo("c").run()
    assert (topic.rows("id", "name"), remembered(topic)) == ([(1, "c50"), (2, "c51")], [])
