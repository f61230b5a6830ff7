"""Files of change events are merged: the table has the rows of the database, whatever comes twice or late."""

import json
from datetime import date, datetime
from decimal import Decimal

import fastavro
import pytest

from tests.load.lakes import BUCKET, read_quarantine
from tests.load.refreshed import Refreshed

SOURCE = {"connector": "postgresql", "snapshot": "false", "ts_ms": 1767600000000}


def change(op, lsn, after=None, before=None):
    return {"op": op, "before": before, "after": after, "source": SOURCE | {"lsn": lsn}, "ts_ms": 1767600000001}


def anne(**values):
    return {"id": 1, "name": "Anne", "amount": "12.50", "at": 1767600000123456} | values


class Topic:
    """A table of change events in JSON lines, and its loads."""

    def __init__(self, folder, aws, spark, **table):
        events = {"read": {"format": "json", "path": "events", "files": "new"}, "primary_key": ["id"]}
        changes = events | {"envelope": "debezium", "mode": "merge"} | table
        destination = {"tracking": ["deleted"]}
        self.users = Refreshed(folder, aws, "iceberg", spark=spark, destination=destination, **changes)
        self.folder = folder / "events"
        self.folder.mkdir()

    def load(self, job, *lines):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (self.folder / f"{job}.json").write_text("".join(f"{text}\n" for text in texts), "utf-8")
        report = self.users.run(job)
        return report.tables[0]

    def rows(self, *names):
        rows = self.users.iceberg().scan().to_arrow().to_pylist()
        return sorted(tuple(row[name] for name in names) for row in rows)


COLUMNS = {"amount": "decimal(10,2)", "at": {"type": "timestamp", "from": "epoch_us"}}


@pytest.mark.spark
def test_a_table_follows_its_events(tmp_path, aws, bucket, spark):
    topic = Topic(tmp_path, aws, spark, columns=COLUMNS, on_bad_row={"action": "quarantine", "at_most": 1})
    bob = {"id": 2, "name": "Bob", "amount": "7", "at": 1767600000000000}
    table = topic.load("a", change("r", 50, anne()), change("r", 50, bob), '{"ts_ms": 1767600000001}', "null", "null")
    assert "events that change no row skipped: 1 heartbeat, 2 tombstones" in table.notes, table
    # A change of the key, a delete with its tombstone, a truncate of nobody knows what, and a value that does not fit.
    moved, gone = change("d", 60, before=anne()), change("c", 60, anne(id=3, amount="13.00"))
    bad = [change("t", 61), change("u", 62, bob | {"amount": "x"})]
    topic.load("b", moved, "null", gone, change("d", 59, before={"id": 2}), "null", *bad)
    assert [(id_, name, str(amount)) for id_, name, amount in topic.rows("id", "name", "amount")] == [
        (3, "Anne", "13.00")
    ]
    (at,) = topic.rows("at")
    assert at[0].isoformat() == "2026-01-05T08:00:00.123456+00:00"
    # What was deleted stays out, whatever comes late or again; what is newer comes back.
    topic.load("c", change("u", 58, bob), change("r", 70, bob), change("u", 55, anne()), gone)
    assert topic.rows("id", "_change_log", "_change_position", "_deleted") == [(3, 1, 60, False)]
    topic.load("d", change("c", 71, bob))
    assert topic.rows("id", "name") == [(2, "Bob"), (3, "Anne")]
    # A snapshot after changes that were lost: its reads outrank them, and later events of the same epoch outrank it.
    topic.users.write(envelope={"type": "debezium", "epoch": 1})
    topic.load("e", change("r", 80, bob | {"name": "Rob"}), change("r", 80, anne(id=3)), change("u", 60, anne(id=3)))
    topic.load("f", change("r", 80, anne(id=3, name="late")))
    assert topic.rows("id", "name", "_change_epoch", "_change_log") == [(2, "Rob", 1, 0), (3, "Anne", 1, 1)]
    assert topic.users.differences() == []
    reasons = [row["_lake_reasons"] for row in read_quarantine(aws)]
    assert sorted(reasons)[0][0].startswith("amount: it does not convert to decimal(10,2)")
    assert sorted(reasons)[1][0].startswith("it takes rows out of the table, and which is not known")
    (truncate,) = (row for row in read_quarantine(aws) if "takes rows out" in row["_lake_reasons"][0])
    assert json.loads(truncate["_lake_row"])["op"] == "t"
    assert truncate["_lake_source"].endswith("b.json")


@pytest.mark.spark
@pytest.mark.parametrize("columns", [{}, {"name": "string", "amount": "string", "at": "bigint", "id": "bigint"}])
def test_files_without_a_row(tmp_path, aws, bucket, spark, columns):
    topic = Topic(tmp_path, aws, spark, columns=columns)
    topic.load("a", change("c", 1, anne()), change("c", 2, anne(id=2)))
    names = topic.users.iceberg().schema().column_names
    # The tombstone of a delete may begin the next file, or be all of it.
    for job, lines in {"b": ["null"], "c": ['{"ts_ms": 5}'], "d": ["null", change("d", 3, before={"id": 2})]}.items():
        table = topic.load(job, *lines)
        assert table.status == "done", table
    assert topic.rows("id", "name") == [(1, "Anne")]
    assert topic.users.iceberg().schema().column_names == names


@pytest.mark.spark
def test_tombstones_before_the_first_event(tmp_path, aws, bucket, spark):
    """As at the beginning of a compacted topic: they make no table, whose key has no type yet."""
    topic = Topic(tmp_path, aws, spark)
    table = topic.load("a", "null", "null")
    assert (table.status, table.rows) == ("done", 0), table
    topic.load("b", change("c", 1, anne()))
    assert topic.rows("id", "name") == [(1, "Anne")]


def wrap(event, *fields):
    """An event beside its schema, as Kafka Connect's converter writes both."""
    image = {"type": "struct", "fields": list(fields), "optional": True, "field": "after"}
    return {"schema": {"type": "struct", "fields": [image], "optional": False}, "payload": event}


@pytest.mark.spark
def test_types_by_the_schemas_of_events(tmp_path, aws, bucket, spark):
    topic = Topic(tmp_path, aws, spark, columns={"name": "string"})
    fields = [
        {"type": "int32", "optional": False, "default": 0, "field": "id"},
        {"type": "string", "optional": True, "default": "nobody", "field": "name"},
        {
            "type": "bytes",
            "optional": True,
            "name": "org.apache.kafka.connect.data.Decimal",
            "version": 1,
            "parameters": {"scale": "2", "connect.decimal.precision": "10"},
            "field": "amount",
        },
        {"type": "int64", "optional": True, "name": "io.debezium.time.MicroTimestamp", "version": 1, "field": "at"},
        {"type": "int32", "optional": True, "name": "io.debezium.time.Date", "version": 1, "field": "day"},
        {"type": "double", "optional": True, "field": "share"},
    ]
    row = anne(amount="BNI=", day=17000, share=1, nothing=None)
    events = [wrap(change("c", 1, row), *fields), wrap(change("c", 2, row | {"id": 2, "amount": None}), *fields)]
    table = topic.load("a", *events, "null", {"schema": None, "payload": None})
    assert "events that change no row skipped: 2 tombstones" in table.notes, table
    assert topic.rows("id", "amount", "at", "day", "share") == [
        (1, Decimal("12.34"), datetime(2026, 1, 5, 8, 0, 0, 123456), date(2016, 7, 18), 1.0),
        (2, None, datetime(2026, 1, 5, 8, 0, 0, 123456), date(2016, 7, 18), 1.0),
    ]
    assert str(topic.users.iceberg().schema().find_type("id")) == "int"


@pytest.mark.spark
def test_a_bad_event_fails_the_load(tmp_path, aws, bucket, spark):
    topic = Topic(tmp_path, aws, spark, columns=COLUMNS)
    for job, line, says in (
        ("a", change("t", 61), "a.json, offset 0: it takes rows out of the table, and which is not known"),
        (
            "b",
            change("c", 61, anne(amount="x")),
            "b.json, offset 0, column 'amount': it does not convert to decimal(10,2)",
        ),
        ("c", "{", "c.json, offset 0: "),
        ("d", change("c", 61, {"name": "nobody"}), "id"),
    ):
        table = topic.load(job, line, change("c", 62, anne()))
        assert says in table.message, table
        (topic.folder / f"{job}.json").unlink()
    assert not [key for key in aws.objects(BUCKET) if key.endswith(".parquet")]


@pytest.mark.spark
def test_partitions_and_rows_that_stay_flagged(tmp_path, aws, bucket, spark):
    topic = Topic(tmp_path, aws, spark, partition_by=["name"], keep_deleted=True)
    topic.load("a", change("c", 1, anne()), "null", change("c", 2, anne(id=2, name="Bob")))
    topic.load("b", change("u", 4, anne(name="Bob")), change("d", 5, before=anne(id=2, name="Bob")))
    assert topic.rows("id", "name", "_deleted") == [(1, "Bob", False), (2, "Bob", True)]


@pytest.mark.spark
def test_files_of_dms(tmp_path, aws, bucket, spark):
    read = {"format": "csv", "path": "dms", "options": {"header": "true"}}
    envelope = {"type": "dms", "full_load": "LOAD*", "before": "BI_"}
    topic = Topic(tmp_path, aws, spark, read=read, envelope=envelope, order_by=["seq"], columns={"id": "bigint"})
    folder = tmp_path / "dms"
    folder.mkdir()
    header, stamp = "Op,id,name,seq,BI_id\n", "2026010510300012000000000000000012"
    (folder / "LOAD00000001.csv").write_text(f"{header}I,1,Anne,,\nI,2,Bob,,\n", "utf-8")
    first = f"U,1,Anna,{stamp}3,1\nU,5,Bob,{stamp}5,2\n"
    (folder / "20260105-103000120.csv").write_text(f"{header}{first}D,9,,{stamp}6,\n", "utf-8")
    assert topic.users.run("a").status == "done"
    assert topic.rows("id", "name") == [(1, "Anna"), (5, "Bob")]
    assert "Op" not in topic.users.iceberg().schema().column_names
    # An older change of each of them.
    (folder / "20260105-103000130.csv").write_text(f"{header}U,1,Anne,{stamp}2,\nI,2,Bob,{stamp}4,\n", "utf-8")
    assert topic.users.run("b").status == "done"
    assert topic.rows("id", "name", "_deleted") == [(1, "Anna", False), (5, "Bob", False)]


@pytest.mark.one_in(2)
@pytest.mark.spark
@pytest.mark.parametrize("way", ["a query", "avro"])
def test_other_ways_to_read_events(tmp_path, aws, bucket, spark, way):
    events = [change("c", 1, anne()), None, change("d", 2, before=anne()), change("c", 3, anne(id=2))]
    if way == "avro":
        read = write_avro(tmp_path / "events.avro", [event for event in events if event is not None])
    else:
        lines = "".join(f"{json.dumps(event)}\n" for event in events)
        (tmp_path / "events.txt").write_text(lines, "utf-8")
        row, source = "id INT, name STRING, amount STRING", "connector STRING, ts_ms BIGINT, lsn BIGINT"
        kind = f"op STRING, before STRUCT<{row}>, after STRUCT<{row}>, source STRUCT<{source}>"
        sql = f"SELECT e.* FROM (SELECT from_json(value, '{kind}') AS e FROM v)"
        read = {"sql": sql, "views": {"v": {"format": "text", "path": "events.txt"}}}
    topic = Topic(tmp_path, aws, spark, read=read, columns={"amount": "decimal(10,2)"})
    (table,) = topic.users.run("a").tables
    assert (table.status, topic.rows("id", "amount")) == ("done", [(2, Decimal("12.50"))])
    assert ("events that change no row skipped: 1 tombstone" in table.notes) == (way == "a query")


def write_avro(path, events):
    """Write the events as Kafka Connect's Avro converter names their parts."""
    row = {"type": "record", "name": "Value", "fields": [
        {"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]},
        {"name": "amount", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}},
    ]}  # fmt: skip
    source = {"type": "record", "name": "Source", "fields": [
        {"name": "connector", "type": "string"}, {"name": "ts_ms", "type": "long"},
        {"name": "lsn", "type": ["null", "long"]},
    ]}  # fmt: skip
    fields = [
        {"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Value"]},
        {"name": "source", "type": source}, {"name": "op", "type": "string"},
    ]  # fmt: skip
    with path.open("wb") as file:
        fastavro.writer(file, fastavro.parse_schema({"type": "record", "name": "Envelope", "fields": fields}), events)
    return {"format": "avro", "path": str(path)}


def change_document(op, number, document=None):
    """An event of MongoDB's connector, with its document in the strict mode."""
    source = {"connector": "mongodb", "version": "3.2.0.Final", "ts_ms": 1767600000000, "ord": number}
    return {"op": op, "before": None, "after": document and json.dumps(document), "source": source}


@pytest.mark.spark
def test_documents_of_mongodb(tmp_path, aws, bucket, spark):
    kinds = {"_id": "string", "qty": "bigint", "price": "decimal(10,2)", "at": "timestamp", "tags": "string"}
    topic = Topic(tmp_path, aws, spark, columns=kinds, primary_key=["_id"])
    table = topic.load("a", '{"ts_ms": 5}', "null")
    assert (table.status, table.rows) == ("done", 0), table
    one = {
        "_id": {"$oid": "596e275826f08b2730779e1f"},
        "qty": {"$numberLong": "5"},
        "price": {"$numberDecimal": "9.5"},
        "at": {"$date": 1767600000123},
        "tags": ["a", {"$numberLong": "1"}],
    }
    two = {"_id": "two", "qty": 2.0}
    topic.load("b", change_document("r", -1, one), change_document("c", 1, two))
    topic.load("c", change_document("u", 3, one | {"qty": 6}), change_document("u", 2, one | {"qty": 7}), "null")
    moment = datetime.fromisoformat("2026-01-05T08:00:00.123Z")
    assert topic.rows(*kinds) == [
        ("596e275826f08b2730779e1f", 6, Decimal("9.50"), moment, '["a",1]'),
        ("two", 2, None, None, None),
    ]
    assert topic.users.differences() == []
    # Files have no keys of messages: a delete needs the document before.
    gone = change_document("d", 9) | {"before": json.dumps({"_id": "two"})}
    topic.load("d", gone, "null")
    assert topic.rows("_id", "_deleted") == [("596e275826f08b2730779e1f", False)]
