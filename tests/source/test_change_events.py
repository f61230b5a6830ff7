"""Change events become rows: recorded envelopes, each with the rows, the order and the reason that follow from it."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import DELETED
from lakewriter.receipt import Floor
from lakewriter.source.bad_rows import BAD, FIELDS, FLOOR, SKIPPED, Marked, join_marks, mark_schema
from lakewriter.source.change_events.connect_schemas import read_row_types
from lakewriter.source.change_events.unfolding import plan_events, unfold_batch
from lakewriter.spec.change_events import CHANGE_ORDER, CHANGE_SOURCE, ChangeEvents
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.table_spec import ColumnType, Mode, Read, TableSource

# Versions, times and fields that nothing here reads are left out of the recorded events. The pages are those of
# https://debezium.io/documentation/reference/3.2/connectors/ and, of DMS,
# https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.S3.html
ANNE = {"id": 1, "first_name": "Anne", "email": "annek@noanswer.org"}
MARIE = ANNE | {"first_name": "Anne Marie"}


def make_table(events, **source):
    names = {"source_table": "t", "read": Read(format="json", path="x"), "mode": Mode.MERGE, "envelope": events}
    order = {"order_by": events.order, "primary_key": ("id",)}
    layout = Layout("t", Template.parse("{seq}"))
    return TableSource(**names | order | source).make_table(schema_name="", name="t", layout=layout, path="t")


def unfold(given, events=None, files=None, **source):
    """Return what becomes of events: the row, with its order as a tuple; or why it is bad; or what was skipped."""
    events = events or ChangeEvents(form="debezium")
    batch = pa.RecordBatch.from_struct_array(pa.array([event or {} for event in given]))
    count = len(given)
    marks = {name: pa.nulls(count, pa.int64() if name == "offset" else pa.string()) for name in FIELDS}
    marks["file"] = pa.array(files or ["a.json"] * count)
    marks["value"] = pa.array(["null" if event is None else None for event in given], pa.string())
    marks["reason"] = pa.array(["it is null" if event is None else None for event in given], pa.string())
    table = make_table(events, **source)
    plan = plan_events(batch.schema, table, events)
    schema = mark_schema(batch.schema)
    marked = pa.RecordBatch.from_arrays([*batch.columns, join_marks(marks)], schema=schema)
    return [describe(row, table.order_by) for row in unfold_batch(plan, Marked(marked)).to_pylist()]


def describe(row, order_by):
    mark, is_deleted, _ = row.pop(BAD), row.pop(DELETED), row.pop(CHANGE_SOURCE, None)
    if mark["column"] == FLOOR:
        return json.loads(mark["value"])
    if mark["reason"] is not None:
        return f"skipped: {mark['reason']}" if mark["column"] == SKIPPED else f"bad: {mark['reason']}"
    order = tuple(row.pop(name) for name in order_by)
    if mark["column"] is not None:
        return ("upsert", row, order, mark["column"])
    return ("delete" if is_deleted else "upsert", row, order)


def event(op, after, source, before=None, **more):
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1559033904863} | more


POSTGRESQL = {"connector": "postgresql", "ts_ms": 1559033904863, "snapshot": "false", "lsn": 24023128}
LATER = POSTGRESQL | {"lsn": 46523128}
MYSQL = {"connector": "mysql", "ts_ms": 1465581029000, "file": "mysql-bin.000003", "pos": 154, "row": 0}
SQLSERVER = {
    "connector": "sqlserver",
    "ts_ms": 1559729468470,
    "change_lsn": "00000027:00000758:0003",
    "commit_lsn": "00000027:00000758:0005",
    "event_serial_no": "1",
}
ORACLE = {
    "connector": "oracle",
    "ts_ms": 1520085154000,
    "scn": "2122185",
    "commit_scn": "2122185",
    "rs_id": "001234.00012345.0124",
    "ssn": 1,
}
FIRST = 0x001234_00012345_0124 * 10**10 + 1
LSN = 0x00000027_00000758_0003

# The event, and what becomes of it: postgresql.html#postgresql-create-events and what follows there, and so on.
EVENTS = {
    "postgresql, c": (event("c", ANNE, POSTGRESQL), ("upsert", ANNE, (0, 1, 24023128, 0))),
    "postgresql, u": (event("u", MARIE, POSTGRESQL, {"id": 1}), ("upsert", MARIE, (0, 1, 24023128, 0))),
    "postgresql, d": (
        event("d", None, LATER, {"id": 1}),
        ("delete", {"id": 1, "first_name": None, "email": None}, (0, 1, 46523128, 0)),
    ),
    # What a snapshot reads is below all that is streamed: a transaction that was open then has lower LSNs.
    "postgresql, r": (event("r", ANNE, POSTGRESQL), ("upsert", ANNE, (0, 0, 1559033904863, 0))),
    # PostgresSourceInfoStructMaker.java gives incremental snapshots no lsn.
    "postgresql, r of an incremental snapshot": (
        event("r", ANNE, {"connector": "postgresql", "snapshot": "incremental", "ts_ms": 1559033904863, "lsn": None}),
        ("upsert", ANNE, (0, 0, 1559033904863, 0)),
    ),
    "postgresql, t": (
        event("t", None, POSTGRESQL),
        "bad: it takes rows out of the table, and which is not known: expected the table's name in source.table",
    ),
    "postgresql, m": (event("m", None, POSTGRESQL, message={"prefix": "foo", "content": "Ymfy"}), "skipped: message"),
    "postgresql, without an LSN": (
        event("c", ANNE, POSTGRESQL | {"lsn": None}),
        "bad: its order is not known: expected a number in source.lsn (in source.ts_ms of a snapshot's read)",
    ),
    "mysql, c": (event("c", ANNE, MYSQL), ("upsert", ANNE, (0, 3, 154, 0))),
    "mysql, u": (event("u", MARIE, MYSQL | {"pos": 484, "row": 2}, ANNE), ("upsert", MARIE, (0, 3, 484, 2))),
    "mysql, r": (event("r", ANNE, MYSQL), ("upsert", ANNE, (0, 3, 154, 0))),
    "mysql, d": (event("d", None, MYSQL | {"pos": 805}, ANNE), ("delete", ANNE, (0, 3, 805, 0))),
    "mariadb, c": (event("c", ANNE, MYSQL | {"connector": "mariadb"}), ("upsert", ANNE, (0, 3, 154, 0))),
    "mysql, the millionth file": (
        event("c", ANNE, MYSQL | {"file": "mysql-bin.1000000"}),
        ("upsert", ANNE, (0, 1000000, 154, 0)),
    ),
    "mysql, without a file": (
        event("c", ANNE, MYSQL | {"file": ""}),
        "bad: its order is not known: expected a binlog file such as 'binlog.000003' in source.file, numbers in pos "
        "and row",
    ),
    "sqlserver, c": (event("c", ANNE, SQLSERVER), ("upsert", ANNE, (0, 1, LSN, 1))),
    "sqlserver, u": (event("u", MARIE, SQLSERVER | {"event_serial_no": "2"}, ANNE), ("upsert", MARIE, (0, 1, LSN, 2))),
    "sqlserver, r": (
        event("r", ANNE, SQLSERVER | {"change_lsn": None, "event_serial_no": None}),
        ("upsert", ANNE, (0, 0, 1559729468470, 0)),
    ),
    "sqlserver, without a change's LSN": (
        event("c", ANNE, SQLSERVER | {"change_lsn": None}),
        "bad: its order is not known: expected change_lsn and event_serial_no in source (source.ts_ms of a snapshot's "
        "read)",
    ),
    "oracle, c": (event("c", ANNE, ORACLE), ("upsert", ANNE, (0, 1, 2122185, FIRST))),
    # XStream and OpenLogReplicator have no record set.
    "oracle, without a record set": (
        event("c", ANNE, ORACLE | {"rs_id": None, "ssn": 0}),
        ("upsert", ANNE, (0, 1, 2122185, 0)),
    ),
    "oracle, r": (event("r", ANNE, ORACLE), ("upsert", ANNE, (0, 0, 1520085154000, 0))),
    "oracle, as its page has it": (
        event("c", ANNE, {key: value for key, value in ORACLE.items() if key != "connector"}),
        "bad: its order is not known: expected the connector's name in source.connector",
    ),
    "db2": (
        event("c", ANNE, {"connector": "db2"}),
        "bad: its order is not known: of connector 'db2', expected one of postgresql, mysql, mariadb, sqlserver, "
        "oracle",
    ),
    "a tombstone": (None, "skipped: tombstone"),
    "a tombstone as columns": ({"op": None}, "skipped: tombstone"),
    "a heartbeat": ({"ts_ms": 1559033904863}, "skipped: heartbeat"),
    "a transaction begins": ({"status": "BEGIN", "id": "571:53195829", "ts_ms": 1486500577125}, "skipped: transaction"),
    "a transaction ends": (
        {"status": "END", "id": "571:53195832", "ts_ms": 1486500577691, "event_count": 2},
        "skipped: transaction",
    ),
    "mysql, a schema change": (
        {"source": MYSQL, "ts_ms": 1, "databaseName": "inventory", "ddl": "ALTER TABLE customers ADD x INT"},
        "skipped: schema change",
    ),
    "sqlserver, a schema change": (
        {"source": SQLSERVER, "ts_ms": 1, "databaseName": "testDB", "ddl": None, "tableChanges": [{"type": "CREATE"}]},
        "skipped: schema change",
    ),
    "something else": ({"key": 5, "ts_ms": 1}, "bad: it has no 'op', and is no change event"),
    "another operation": (event("x", ANNE, POSTGRESQL), "bad: its op is 'x', expected one of c, r, u, d, t, m"),
    "a delete without a key": (
        event("d", None, POSTGRESQL),
        "bad: it deletes a row and has no 'before', so that its key is not known",
    ),
    "a change without a row": (event("u", None, POSTGRESQL, ANNE), "bad: it has no 'after'"),
    # UnchangedToastedReplicationMessageColumn.java: the forms that the placeholder has.
    "an unchanged value": (
        event("u", ANNE | {"email": "__debezium_unavailable_value"}, POSTGRESQL),
        ("upsert", ANNE | {"email": None}, (0, 1, 24023128, 0), '[false,"email"]'),
    ),
    "unchanged values after a change of the key": (
        event("c", ANNE | {"email": "__debezium_unavailable_value"}, POSTGRESQL),
        ("upsert", ANNE | {"email": None}, (0, 1, 24023128, 0), '[true,"email"]'),
    ),
    # Its LOBs are left out when they change, too: oracle.html#oracle-property-lob-enabled
    "oracle, a value that is left out": (
        event("u", ANNE | {"email": "__debezium_unavailable_value"}, ORACLE),
        "bad: column 'email' has '__debezium_unavailable_value': the database left an unchanged value out, which no "
        "earlier row can give for certain: it is of a key, of partition_by, checked, inside another value, or not "
        "PostgreSQL's. Have the connector send whole rows: REPLICA IDENTITY FULL for PostgreSQL, lob.enabled: true for "
        "Oracle",
    ),
}


@pytest.mark.parametrize("wrapped", [False, True])
def test_recorded_events(wrapped):
    # With the first two each batch has the columns of all events.
    given = [event("c", ANNE, POSTGRESQL, ANNE), event("c", ANNE, SQLSERVER), *(one for one, _ in EVENTS.values())]
    events = [one if one is None or not wrapped else {"schema": {"type": "struct"}, "payload": one} for one in given]
    found = dict(zip(EVENTS, unfold(events)[2:], strict=True))
    expected = {name: result for name, (_, result) in EVENTS.items()}
    if wrapped:
        expected["a tombstone as columns"] = "skipped: tombstone"
    assert found == expected


def test_a_batch_of_one_kind():
    # Only deletes, and only reads: the members that no event has are of no type.
    assert unfold([event("d", None, LATER, {"id": 1})]) == [("delete", {"id": 1}, (0, 1, 46523128, 0))]
    assert unfold([event("r", ANNE, POSTGRESQL)]) == [("upsert", ANNE, (0, 0, 1559033904863, 0))]


@pytest.mark.parametrize("wraps", [False, True])
def test_declared_columns_that_no_event_has(wraps):
    """Deletes with the key alone, and events that change no row, may be all of a batch; a row has every column."""
    columns = {"ID": ColumnType(type="bigint"), "email": ColumnType(type="string")}
    batches = [
        ([event("d", None, LATER, {"id": 1})], ("delete", {"id": 1, "email": None}, (0, 1, 46523128, 0))),
        ([{"ts_ms": 1559033904863}], "skipped: heartbeat"),
        ([{"source": MYSQL, "ts_ms": 1, "databaseName": "inventory", "ddl": "DROP TABLE x"}], "skipped: schema change"),
    ]
    for given, expected in batches:
        assert unfold([{"payload": one} if wraps else one for one in given], columns=columns) == [expected]
    assert unfold([event("r", {"id": 1}, POSTGRESQL)], columns=columns)[0][1] == {"id": 1}


def test_a_change_of_the_key_is_two_events():
    # First the old key is deleted, then the new one is created. See postgresql.html#postgresql-primary-key-updates
    gone, created = event("d", None, LATER, ANNE), event("c", ANNE | {"id": 2}, LATER)
    assert unfold([gone, created]) == [
        ("delete", ANNE, (0, 1, 46523128, 0)),
        ("upsert", ANNE | {"id": 2}, (0, 1, 46523128, 0)),
    ]


def test_an_epoch_outranks_what_is_below_it():
    (row,) = unfold([event("r", ANNE, POSTGRESQL)], ChangeEvents(form="debezium", epoch=2))
    assert row == ("upsert", ANNE, (2, 0, 1559033904863, 0))
    assert CHANGE_ORDER[0] == "_change_epoch"


PG = POSTGRESQL | {"db": "shop", "schema": "public", "table": "users"}
READ = PG | {"lsn": None}
# The event in epoch 2, and what becomes of it; a floor is [source table, order]. The truncates are those of
# postgresql.html#postgresql-truncate-events, mysql.html#mysql-truncate-events and oracle.html#oracle-truncate-events;
# the last read of a snapshot is that of SnapshotRecord.java.
FLOORS: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "postgresql, t": (event("t", None, PG), [["shop.public.users", "2", "1", "24023128", "0"]]),
    "mysql, t": (
        event("t", None, MYSQL | {"db": "shop", "table": "users", "pos": 805}),
        [["shop.users", "2", "3", "805", "0"]],
    ),
    "oracle, t": (
        event("t", None, ORACLE | {"db": "ORCLPDB1", "schema": "SHOP", "table": "USERS"}),
        [["ORCLPDB1.SHOP.USERS", "2", "1", "2122185", str(FIRST)]],
    ),
    "sqlserver, 38 digits": (
        event("t", None, SQLSERVER | {"db": "shop", "schema": "dbo", "table": "t", "event_serial_no": "9" * 38}),
        [["shop.dbo.t", "2", "1", str(LSN), "9" * 38]],
    ),
    "t without its table": (
        event("t", None, POSTGRESQL),
        ["bad: it takes rows out of the table, and which is not known: expected the table's name in source.table"],
    ),
    "t without its order": (
        event("t", None, PG | {"lsn": None}),
        ["bad: its order is not known: expected a number in source.lsn (in source.ts_ms of a snapshot's read)"],
    ),
    "the snapshot's last read": (
        event("r", ANNE, READ | {"snapshot": "last"}),
        [("upsert", ANNE, (2, 0, 1559033904863, 0)), ["shop.public.users", "2", "0", "0", "0"]],
    ),
    "the last read of the table": (
        event("r", ANNE, READ | {"snapshot": "last_in_data_collection"}),
        [("upsert", ANNE, (2, 0, 1559033904863, 0)), ["shop.public.users", "2", "0", "0", "0"]],
    ),
    "another read": (event("r", ANNE, READ | {"snapshot": "first"}), [("upsert", ANNE, (2, 0, 1559033904863, 0))]),
    "a read of an incremental snapshot": (
        event("r", ANNE, READ | {"snapshot": "incremental"}),
        [("upsert", ANNE, (2, 0, 1559033904863, 0))],
    ),
    "streamed after the snapshot": (event("c", ANNE, PG), [("upsert", ANNE, (2, 1, 24023128, 0))]),
}


def test_floors():
    """All of them in one batch, as the last reads of a batch come behind its events."""
    found = unfold([one for one, _ in FLOORS.values()], ChangeEvents(form="debezium", epoch=2))
    shown = [[one["source"], *one["order"]] if isinstance(one, dict) else one for one in found]
    rows, ends = shown[: len(FLOORS)], shown[len(FLOORS) :]
    assert rows == [results[0] for _, results in FLOORS.values()]
    assert ends == [floor for _, results in FLOORS.values() for floor in results[1:]]


def test_the_first_snapshot_takes_no_rows_out():
    ends = event("r", ANNE, READ | {"snapshot": "last"})
    assert unfold([ends]) == [("upsert", ANNE, (0, 0, 1559033904863, 0))]


def test_no_floor_where_deleted_rows_stay():
    events = ChangeEvents(form="debezium", epoch=1)
    given = [event("t", None, PG), event("r", ANNE, READ | {"snapshot": "last"})]
    bad, row = unfold(given, events, keep_deleted=True)
    assert bad.startswith("bad: it truncates the table, whose deleted rows stay by keep_deleted: true")
    assert row == ("upsert", ANNE, (1, 0, 1559033904863, 0))


def test_the_highest_floor_of_each_source():
    def floor(source, *order, until=None):
        return Floor(source=source, order=tuple(map(str, order)), until=until)

    early, late = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
    assert Floor.join([floor("a", 0, 9), floor("a", 0, 10), floor("b", 0, 1)]) == (floor("a", 0, 10), floor("b", 0, 1))
    # A lower one counts where it lasts longer.
    kept = (floor("a", 0, 9, until=late), floor("a", 0, 10, until=early))
    assert Floor.join(kept) == Floor.join(reversed(kept)) == kept
    assert Floor.join([*kept, floor("a", 1, 0, until=late)]) == (floor("a", 1, 0, until=late),)


def test_a_bad_event_is_kept_whole():
    given = event("x", ANNE, POSTGRESQL)
    batch = pa.RecordBatch.from_pylist([given])
    marks = join_marks({n: pa.nulls(1, pa.int64() if n == "offset" else pa.string()) for n in FIELDS})
    events = ChangeEvents(form="debezium")
    plan = plan_events(batch.schema, make_table(events), events)
    marked = pa.RecordBatch.from_arrays([*batch.columns, marks], schema=mark_schema(batch.schema))
    (row,) = unfold_batch(plan, Marked(marked)).to_pylist()
    assert json.loads(row[BAD]["row"]) == {key: value for key, value in given.items() if value is not None}


REFUSED = {
    # MongoDB's are texts as well, and its source has an ord.
    "texts": (
        [{"op": "c", "after": '{"id": 1004}', "source": {"connector": "postgresql", "lsn": 31}}],
        "table 't': 'after' of its change events is string, expected an object with the row's columns.",
    ),
    "flattened events": (
        [{"id": 1, "__op": "c"}],
        "table 't' has envelope: debezium, and its source has the columns id, __op: expected 'op', 'before', 'after' "
        "and 'source', as they are or in 'payload'.",
    ),
    "types that do not fit": (
        [event("u", {"id": "x"}, POSTGRESQL, {"id": 1})],
        "table 't': column 'id' is string in 'after' and bigint in 'before'.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_sources(case):
    given, message = REFUSED[case]
    with pytest.raises(SpecInvalidError) as refused:
        unfold(given)
    assert refused.value.message == message


def test_types_of_both_images_are_joined():
    given = [
        event("u", {"id": 1, "v": 1.5, "w": [{"a": 3}]}, POSTGRESQL),
        event("d", None, LATER, {"id": 1, "v": 2, "w": [{"b": 4}, None], "x": "y"}),
        event("d", None, LATER, {"id": 1, "v": 2**53 + 1}),
    ]
    *rows, bad = unfold(given)
    assert [row for _, row, _ in rows] == [
        {"id": 1, "v": 1.5, "w": [{"a": 3, "b": None}], "x": None},
        {"id": 1, "v": 2.0, "w": [{"a": None, "b": 4}, None], "x": "y"},
    ]
    assert bad == "bad: its value of column 'v' has more digits than double"


def schema_of(*fields):
    """The schema of an event, as Kafka Connect's converter writes it, with these columns."""
    image = {"type": "struct", "fields": list(fields), "optional": True, "field": "after"}
    return json.dumps({"type": "struct", "fields": [image, {"type": "string", "field": "op"}], "name": "t.Envelope"})


def column(name, kind, logical=None, **parameters):
    given = {"name": logical, "version": 1} if logical else {}
    return {"type": kind, "optional": True, "field": name} | given | ({"parameters": parameters} if parameters else {})


CONNECT, TIME = "org.apache.kafka.connect.data", "io.debezium.time"
# The type of each field by postgresql.html#postgresql-data-types; a time of day stays a number.
LOGICAL = {
    "boolean": (column("v", "boolean"), ColumnType(type="boolean")),
    "smallint": (column("v", "int16"), ColumnType(type="int")),
    "bigint": (column("v", "int64"), ColumnType(type="bigint")),
    "real": (column("v", "float"), ColumnType(type="float")),
    "double": (column("v", "double"), ColumnType(type="double")),
    "text": (column("v", "string"), ColumnType(type="string")),
    "uuid": (column("v", "string", "io.debezium.data.Uuid"), ColumnType(type="string")),
    "bytea": (column("v", "bytes"), ColumnType(type="binary", unit="base64")),
    "date": (column("v", "int32", f"{TIME}.Date"), ColumnType(type="date", unit="epoch_days")),
    "date, connect": (column("v", "int32", f"{CONNECT}.Date"), ColumnType(type="date", unit="epoch_days")),
    "time": (column("v", "int64", f"{TIME}.MicroTime"), ColumnType(type="bigint")),
    "timestamp(3)": (column("v", "int64", f"{TIME}.Timestamp"), ColumnType(type="timestamp_ntz", unit="epoch_ms")),
    "timestamp": (column("v", "int64", f"{TIME}.MicroTimestamp"), ColumnType(type="timestamp_ntz", unit="epoch_us")),
    "datetime2(7)": (column("v", "int64", f"{TIME}.NanoTimestamp"), ColumnType(type="timestamp_ntz", unit="epoch_ns")),
    "timestamp, connect": (
        column("v", "int64", f"{CONNECT}.Timestamp"),
        ColumnType(type="timestamp_ntz", unit="epoch_ms"),
    ),
    "timestamptz": (column("v", "string", f"{TIME}.ZonedTimestamp"), ColumnType(type="timestamp")),
    "numeric(10,2)": (
        column("v", "bytes", f"{CONNECT}.Decimal", scale="2", **{"connect.decimal.precision": "10"}),
        ColumnType(type="decimal(10,2)", unit="base64"),
    ),
    "numeric, its precision unknown": (
        column("v", "bytes", f"{CONNECT}.Decimal", scale="2"),
        ColumnType(type="decimal(38,2)", unit="base64"),
    ),
    "numeric without a scale": (column("v", "struct", "io.debezium.data.VariableScaleDecimal"), None),
    "text[]": ({"type": "array", "items": {"type": "string"}, "field": "v"}, None),
}


@pytest.mark.parametrize("case", LOGICAL)
def test_types_by_the_schema_of_an_event(case):
    field, kind = LOGICAL[case]
    assert read_row_types([schema_of(field)], "t").get("v") == kind


def test_types_of_several_schemas():
    one, two = schema_of(column("v", "int32")), schema_of(column("v", "int64"), column("w", "string"))
    expected = {"v": ColumnType(type="bigint"), "w": ColumnType(type="string")}
    assert read_row_types([one, two], "t") == read_row_types([two, one], "t") == expected
    wide, finer = (LOGICAL["numeric(10,2)"][0], column("v", "bytes", f"{CONNECT}.Decimal", scale="3"))
    with pytest.raises(SpecInvalidError) as refused:
        read_row_types([schema_of(wide), schema_of(finer)], "t")
    assert refused.value.message == (
        "table 't': column 'v' is decimal(10,2) (base64) in one schema of its events and decimal(38,3) (base64) in "
        "another one."
    )


DMS = ChangeEvents(form="dms", full_load="LOAD*")
SEQ = "20260105103000120000000000000000123"
ORDER = Decimal(SEQ)


def dms(op, key, v, seq, **before):
    return {"Op": op, "id": key, "v": v, "seq": seq} | before


# Op, file and what becomes of the row; AR_H_CHANGE_SEQ is 35 digits, of which 16 are a time.
# .../CHAP_Tasks.CustomizingTasks.TableMapping.SelectionTransformation.Expressions.html
CHANGES = {
    "an insert": (dms("I", 1, "a", SEQ), "20260105-103000120.parquet", ("upsert", {"id": 1, "v": "a"}, (ORDER,))),
    "an update": (dms("U", 1, "b", SEQ), "20260105-103000120.parquet", ("upsert", {"id": 1, "v": "b"}, (ORDER,))),
    "a delete": (dms("D", 1, None, SEQ), "20260105-103000120.parquet", ("delete", {"id": 1, "v": None}, (ORDER,))),
    "a full load": (dms(None, 1, "a", None), "s3://b/LOAD00000001.parquet", ("upsert", {"id": 1, "v": "a"}, (None,))),
    "a full load with Op": (dms("I", 1, "a", ""), "s3://b/LOAD0000000A.csv", ("upsert", {"id": 1, "v": "a"}, (None,))),
    "no Op in a file of changes": (
        dms(None, 1, "a", SEQ),
        "20260105-103000120.parquet",
        "bad: it has no operation in 'Op', and its file is none of a full load, which 'LOAD*' names",
    ),
    "no order": (
        dms("U", 1, "a", None),
        "20260105-103000120.parquet",
        "bad: its order is not known: expected the digits of AR_H_CHANGE_SEQ in 'seq'",
    ),
    "an order of its own making": (
        dms("U", 1, "a", "2026-01-05"),
        "LOAD1.csv",
        "bad: its order is not known: expected the digits of AR_H_CHANGE_SEQ in 'seq'",
    ),
    "another operation": (dms("X", 1, "a", SEQ), "1.csv", "bad: its operation is 'X', expected I, U or D"),
}


def test_changes_of_dms():
    rows, files, expected = zip(*CHANGES.values(), strict=True)
    assert unfold(list(rows), DMS, list(files), order_by=("seq",)) == list(expected)


def test_files_of_a_full_load_alone_have_no_operation():
    rows = [{"id": 1, "v": "a", "seq": None}]
    assert unfold(rows, DMS, ["s3://b/LOAD00000001.parquet"], order_by=("seq",)) == [
        ("upsert", {"id": 1, "v": "a"}, (None,))
    ]
    with pytest.raises(SpecInvalidError, match=r"envelope.op 'Op' is no column of its source"):
        unfold(rows, ChangeEvents(form="dms"), order_by=("seq",))


def test_full_loads_are_known_by_their_names_alone():
    events = ChangeEvents(form="dms")
    (bad,) = unfold([dms(None, 1, "a", SEQ), dms("I", 1, "a", SEQ)], events, ["LOAD1.csv"] * 2, order_by=("seq",))[:1]
    assert bad == "bad: it has no operation in 'Op', and its file is none of a full load: full_load names none"


def test_a_changed_key_deletes_the_old_one():
    # repost.aws/questions/QUfXtCkhI9SGepdNLbsqTzjQ: U,30004,66,11,30004,1 with column-filter pk-only.
    events = ChangeEvents(form="dms", before="BI_")
    rows = [
        {
            "Op": "I",
            "order_id": 30004,
            "product_id": 1,
            "qty": 11,
            "seq": "1",
            "BI_order_id": None,
            "BI_product_id": "",
        },
        {
            "Op": "U",
            "order_id": 30004,
            "product_id": 66,
            "qty": 11,
            "seq": "2",
            "BI_order_id": 30004,
            "BI_product_id": "1",
        },
        {
            "Op": "U",
            "order_id": 30004,
            "product_id": 66,
            "qty": 12,
            "seq": "3",
            "BI_order_id": 30004,
            "BI_product_id": "66",
        },
        {
            "Op": "U",
            "order_id": 30004,
            "product_id": 66,
            "qty": 12,
            "seq": "4",
            "BI_order_id": 30004,
            "BI_product_id": "x",
        },
    ]
    found = unfold(rows, events, order_by=("seq",), primary_key=("order_id", "product_id"))
    assert found == [
        ("upsert", {"order_id": 30004, "product_id": 1, "qty": 11}, (1,)),
        ("delete", {"order_id": 30004, "product_id": 1, "qty": None}, (2,)),
        ("upsert", {"order_id": 30004, "product_id": 66, "qty": 11}, (2,)),
        ("upsert", {"order_id": 30004, "product_id": 66, "qty": 12}, (3,)),
        "bad: 'BI_product_id' is no value of column 'product_id'",
    ]


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (ChangeEvents(form="dms", op="Operation"), "table 't': envelope.op 'Operation' is no column of its source"),
        (ChangeEvents(form="dms", before="OLD_"), "table 't': envelope.before 'OLD_id' is no column of its source"),
    ],
)
def test_columns_that_files_of_dms_do_not_have(events, message):
    with pytest.raises(SpecInvalidError) as refused:
        unfold([dms("I", 1, "a", SEQ)], events, order_by=("seq",))
    assert refused.value.message == f"{message}, which has Op, id, v, seq."
    with pytest.raises(SpecInvalidError, match="order_by 'at' is no column"):
        unfold([dms("I", 1, "a", SEQ)], ChangeEvents(form="dms"), order_by=("at",))
