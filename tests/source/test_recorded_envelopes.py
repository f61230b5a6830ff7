"""Whole events as their vendors' pages have them, a batch each, with the row, the order or the skip that follows.

``test_change_events.py`` has what is odd about events, with the fields alone that decide it; here are all fields of an
envelope that its page shows, but for the copies of times in other units and texts of statements.
"""

from typing import Any, Final

import pytest

from lakewriter.spec.change_events import ChangeEvents
from tests.source.test_change_events import FIRST, LSN, unfold

# https://debezium.io/documentation/reference/3.2/connectors/NAME.html
ANNE: Final = {"id": 1004, "first_name": "Anne", "last_name": "Kretchmar", "email": "annek@noanswer.org"}
MARIE: Final = ANNE | {"first_name": "Anne Marie"}
JOHN: Final = {"id": 1005, "first_name": "john", "last_name": "doe", "email": "john.doe@example.org"}
NOREPLY: Final = JOHN | {"email": "noreply@example.org"}
OF_ORACLE: Final = {"ID": 1004, "FIRST_NAME": "Anne", "LAST_NAME": "Kretchmar", "EMAIL": "annek@noanswer.org"}
MOVED: Final = OF_ORACLE | {"EMAIL": "anne@example.com"}

POSTGRESQL: Final = {
    "version": "3.2.0.Final", "connector": "postgresql", "name": "PostgreSQL_server", "ts_ms": 1559033904863,
    "snapshot": False, "db": "postgres", "schema": "public", "table": "customers", "txId": 556, "lsn": 46523128,
    "xmin": None,
}  # fmt: skip
MYSQL: Final = {
    "version": "3.2.0.Final", "connector": "mysql", "name": "mysql-server-1", "ts_ms": 1465581029100, "snapshot": False,
    "db": "inventory", "table": "customers", "server_id": 223344, "gtid": None, "file": "mysql-bin.000003", "pos": 484,
    "row": 0, "thread": 7, "query": "UPDATE customers SET first_name='Anne Marie' WHERE id=1004",
}  # fmt: skip
SQLSERVER: Final = {
    "version": "3.2.0.Final", "connector": "sqlserver", "name": "server1", "ts_ms": 1559729468470, "snapshot": False,
    "db": "testDB", "schema": "dbo", "table": "customers", "change_lsn": "00000027:00000758:0003",
    "commit_lsn": "00000027:00000758:0005", "event_serial_no": "1",
}  # fmt: skip
# Its events of rows have no connector on the page, and those of truncates do: AbstractSourceInfo.java always gives it.
ORACLE: Final = {
    "version": "3.2.0.Final", "connector": "oracle", "name": "server1", "ts_ms": 1520085154000, "txId": "6.28.807",
    "scn": "2122185", "commit_scn": "2122185", "rs_id": "001234.00012345.0124", "ssn": 1, "redo_thread": 1,
    "user_name": "user", "snapshot": False, "row_id": "AAASgjAAMAAAACnAAA", "commit_ts_ms": 1520085154000,
    "start_scn": "2122185", "start_ts_ms": 1520085154000,
}  # fmt: skip
BLOCK: Final = {"id": "571:53195832", "total_order": "1", "data_collection_order": "1"}


def change(op: str, after: object, before: object, source: object, **more: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1465581902461} | more


def end(number: str, *names: str) -> dict[str, Any]:
    counts = [{"data_collection": name, "event_count": 1} for name in names]
    return {"status": "END", "id": number, "ts_ms": 1486500577691, "event_count": 2, "data_collections": counts}


def begin(number: str) -> dict[str, Any]:
    nothing = {"event_count": None, "data_collections": None}
    return {"status": "BEGIN", "id": number, "ts_ms": 1486500577125} | nothing


def alter(source: object, database: str, ddl: str | None, key: str, **more: Any) -> dict[str, Any]:
    columns = [{"name": key, "jdbcType": 4, "typeName": "INTEGER", "position": 1, "optional": False}]
    table = {"defaultCharsetName": None, "primaryKeyColumnNames": [key], "columns": columns}
    tables = [{"type": "CREATE", "id": f'"{database}"."customers"', "table": table}]
    return {
        "source": source,
        "ts_ms": 1588252618953,
        "databaseName": database,
        "ddl": ddl,
        "tableChanges": tables,
    } | more


# The section of the connector's page, the event, and what becomes of it.
EVENTS: Final[dict[str, tuple[dict[str, Any], Any]]] = {
    "postgresql-create-events": (
        # Its op decides, whatever source.snapshot is.
        change("c", ANNE, None, POSTGRESQL | {"snapshot": True, "sequence": '["24023119"]', "lsn": 24023128}),
        ("upsert", ANNE, (0, 1, 24023128, 0)),
    ),
    "postgresql-update-events": (
        change("u", MARIE, {"id": 1004}, POSTGRESQL | {"lsn": 24023128}),
        ("upsert", MARIE, (0, 1, 24023128, 0)),
    ),
    "postgresql-delete-events": (
        change("d", None, {"id": 1004}, POSTGRESQL),
        ("delete", {"id": 1004}, (0, 1, 46523128, 0)),
    ),
    # debezium#7764: the sequence of a snapshot's read begins with null.
    "postgresql-snapshots": (
        change("r", ANNE, None, POSTGRESQL | {"snapshot": "first", "sequence": '[null,"46523128"]', "txId": 571}),
        ("upsert", ANNE, (0, 0, 1559033904863, 0)),
    ),
    "postgresql-message-events, in a transaction": (
        {"source": POSTGRESQL | {"schema": "", "table": ""}, "op": "m", "ts_ms": 1559033904961,
         "message": {"prefix": "foo", "content": "Ymfy"}},
        "skipped: message",
    ),
    "postgresql-message-events, in none": (
        {"source": {k: v for k, v in POSTGRESQL.items() if k != "txId"}, "op": "m", "ts_ms": 1559033904961,
         "message": {"prefix": "foo", "content": "Ymfy"}},
        "skipped: message",
    ),
    "postgresql-transaction-metadata, begin": (begin("571:53195829"), "skipped: transaction"),
    "postgresql-transaction-metadata, end": (end("571:53195832", "s1.a", "s2.a"), "skipped: transaction"),
    "postgresql-transaction-metadata, an event of one": (
        change("c", ANNE, None, POSTGRESQL, transaction=BLOCK),
        ("upsert", ANNE, (0, 1, 46523128, 0)),
    ),
    "mysql-create-events": (
        change("c", ANNE, None, MYSQL | {"ts_ms": 0, "server_id": 0, "pos": 154}),
        ("upsert", ANNE, (0, 3, 154, 0)),
    ),
    "mysql-update-events": (change("u", MARIE, ANNE, MYSQL), ("upsert", MARIE, (0, 3, 484, 0))),
    "mysql-primary-key-updates, the old key": (
        change("d", None, ANNE, MYSQL),
        ("delete", ANNE, (0, 3, 484, 0)),
    ),
    "mysql-primary-key-updates, the new key": (
        change("c", ANNE | {"id": 1005}, None, MYSQL),
        ("upsert", ANNE | {"id": 1005}, (0, 3, 484, 0)),
    ),
    "mysql-delete-events": (
        change("d", None, MARIE, MYSQL | {"ts_ms": 1465581902300, "pos": 805}),
        ("delete", MARIE, (0, 3, 805, 0)),
    ),
    # With gtids, and in a transaction whose rows share one event of the log.
    "mysql-update-events, the second row of an event": (
        change("u", MARIE, ANNE, MYSQL | {"gtid": "0e4d5dcd-a33b-11ea-80f1-02010a22a99e:10", "row": 1}),
        ("upsert", MARIE, (0, 3, 484, 1)),
    ),
    "mysql-snapshots": (
        change("r", ANNE, None, MYSQL | {"snapshot": "last", "pos": 154, "thread": None, "query": None}),
        ("upsert", ANNE, (0, 3, 154, 0)),
    ),
    "mysql-schema-change-topic": (
        alter(MYSQL | {"pos": 570}, "inventory", "ALTER TABLE customers ADD middle_name varchar(255)", "id",
              schemaName=None),
        "skipped: schema change",
    ),
    "mysql-transaction-metadata, end": (
        end("0e4d5dcd-a33b-11ea-80f1-02010a22a99e:10", "s1.a", "s2.a"), "skipped: transaction"
    ),
    # mariadb.html: the same, and its gtids are domain-server-sequence.
    "mariadb-create-events": (
        change("c", ANNE, None, MYSQL | {"connector": "mariadb", "file": "mariadb-bin.000003", "gtid": "0-1-570"}),
        ("upsert", ANNE, (0, 3, 484, 0)),
    ),
    "sqlserver-create-events": (change("c", JOHN, None, SQLSERVER), ("upsert", JOHN, (0, 1, LSN, 1))),
    "sqlserver-update-events": (
        change("u", NOREPLY, JOHN, SQLSERVER | {"change_lsn": "00000027:00000ac0:0002", "event_serial_no": "2"}),
        ("upsert", NOREPLY, (0, 1, 0x0000002700000AC00002, 2)),
    ),
    "sqlserver-delete-events": (
        change("d", None, NOREPLY, SQLSERVER | {"change_lsn": "00000027:00000db0:0005"}),
        ("delete", NOREPLY, (0, 1, 0x0000002700000DB00005, 1)),
    ),
    # A change of a key is a delete and a create with one LSN: event_serial_no tells them apart.
    "sqlserver-primary-key-updates, the new key": (
        change("c", JOHN | {"id": 1006}, None, SQLSERVER | {"event_serial_no": "2"}),
        ("upsert", JOHN | {"id": 1006}, (0, 1, LSN, 2)),
    ),
    "sqlserver-snapshots": (
        change("r", JOHN, None, SQLSERVER | {"snapshot": "true", "change_lsn": None, "event_serial_no": None,
                                             "commit_lsn": "00000025:00000d98:00a2"}),
        ("upsert", JOHN, (0, 0, 1559729468470, 0)),
    ),
    "sqlserver-schema-change-topic": (
        alter(SQLSERVER | {"ts_ms": 0, "snapshot": "true", "change_lsn": None, "event_serial_no": None}, "testDB", None,
              "id", schemaName="dbo"),
        "skipped: schema change",
    ),
    "sqlserver-transaction-metadata, begin": (begin("00000025:00000d08:0025"), "skipped: transaction"),
    "sqlserver-transaction-metadata, end": (
        end("00000025:00000d08:0025", "testDB.dbo.testDB.tablea", "testDB.dbo.testDB.tableb"), "skipped: transaction"
    ),
    "sqlserver-transaction-metadata, an event of one": (
        change("c", JOHN, None, SQLSERVER, transaction=BLOCK | {"id": "00000025:00000d08:0025"}),
        ("upsert", JOHN, (0, 1, LSN, 1)),
    ),
    "oracle-create-events": (
        change("c", OF_ORACLE, None, ORACLE),
        ("upsert", OF_ORACLE, (0, 1, 2122185, FIRST)),
    ),
    "oracle-update-events": (
        change("u", MOVED, OF_ORACLE, ORACLE | {"scn": "2125544", "commit_scn": "2125544", "txId": "6.9.809"}),
        ("upsert", MOVED, (0, 1, 2125544, FIRST)),
    ),
    "oracle-delete-events": (
        change("d", None, MOVED, ORACLE | {"scn": "2122184", "commit_scn": "2122184"}),
        ("delete", MOVED, (0, 1, 2122184, FIRST)),
    ),
    "oracle-snapshots": (
        change("r", OF_ORACLE, None, ORACLE | {"snapshot": "true", "scn": "1513734", "rs_id": None, "ssn": 0}),
        ("upsert", OF_ORACLE, (0, 0, 1520085154000, 0)),
    ),
    "oracle-schema-change-topic": (
        alter(ORACLE | {"snapshot": "true", "scn": "1513734", "lcr_position": None}, "ORCLPDB1",
              'CREATE TABLE "DEBEZIUM"."CUSTOMERS" ("ID" NUMBER(9,0))', "ID", schemaName="DEBEZIUM"),
        "skipped: schema change",
    ),
    "oracle-transaction-metadata, begin": (begin("5.6.641"), "skipped: transaction"),
    "oracle-transaction-metadata, end": (
        end("5.6.641", "ORCLPDB1.DEBEZIUM.CUSTOMER", "ORCLPDB1.DEBEZIUM.ORDER"), "skipped: transaction"
    ),
    # HeartbeatImpl.java: the server's name is in the key, and the value has the time alone.
    "heartbeat": ({"ts_ms": 1559033904863}, "skipped: heartbeat"),
    # configuration/signalling.html: a signal is a row of a table of its own; in the topic of another one it is none.
    "signalling, a message to Kafka": (
        {"type": "execute-snapshot", "data": {"data-collections": ["public.MyFirstTable"], "type": "INCREMENTAL"}},
        "bad: it has no 'op', and is no change event",
    ),
    "signalling, a row of the signal table": (
        change("c", {"id": "d139b9b7-7777-4547-917d-e1775ea61d41", "type": "snapshot-window-open", "data": None}, None,
               POSTGRESQL),
        ("upsert", {"id": "d139b9b7-7777-4547-917d-e1775ea61d41", "type": "snapshot-window-open", "data": None},
         (0, 1, 46523128, 0)),
    ),
    # configuration/notification.html: notifications have a topic of their own.
    "notification": (
        {"id": "f2ba0e90", "aggregate_type": "Initial Snapshot", "type": "COMPLETED", "additional_data": {}},
        "bad: it has no 'op', and is no change event",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wraps", [False, True])
@pytest.mark.parametrize("section", EVENTS)
def test_recorded_events_by_themselves(section, wraps):
    """No other event of the batch gives the members a type."""
    given, expected = EVENTS[section]
    key = "ID" if section.startswith("oracle") else "id"
    # What is no event has nothing to make a plan of: an event goes before it.
    before = [] if isinstance(expected, tuple) or not expected.startswith("bad") else [EVENTS["mysql-create-events"][0]]
    events = [{"schema": {"type": "struct"}, "payload": one} if wraps else one for one in (*before, given)]
    assert unfold(events, primary_key=(key,))[len(before) :] == [expected]


# https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.S3.html: the first lines of the page's file of changes,
# with a column of $AR_H_CHANGE_SEQ behind them.
NAMES: Final = ("Op", "empno", "last", "first", "hired", "office", "seq")
OF_DMS: Final = [
    ("I,101,Smith,Bob,4-Jun-14,New York,20150104103000120000000000000000101", "upsert"),
    ("U,101,Smith,Bob,8-Oct-15,Los Angeles,20150104103000120000000000000000102", "upsert"),
    ("U,101,Smith,Bob,13-Mar-17,Dallas,20150104103000120000000000000000103", "upsert"),
    ("D,101,Smith,Bob,13-Mar-17,Dallas,20150104103000120000000000000000104", "delete"),
]


def test_lines_of_dms():
    rows = [dict(zip(NAMES, line.split(","), strict=True)) for line, _ in OF_DMS]
    files = ["20141029-1134010000.csv"] * len(rows)
    found = unfold(rows, ChangeEvents(form="dms"), files, order_by=("seq",), primary_key=("empno",))
    assert found == [
        (kind, {name: row[name] for name in NAMES[1:-1]}, (int(row["seq"]),))
        for row, (_, kind) in zip(rows, OF_DMS, strict=True)
    ]


def test_lines_of_dms_whose_load_has_no_operations():
    """IncludeOpForFullLoad is false: the page's file of a full load begins with the first column of the table."""
    rows = [{"empno": "101", "last": "Smith", "first": "Bob", "hired": "4-Jun-14", "office": "New York", "seq": None}]
    found = unfold(
        rows,
        ChangeEvents(form="dms", full_load="LOAD*"),
        ["LOAD00000001.csv"],
        order_by=("seq",),
        primary_key=("empno",),
    )
    assert found == [("upsert", {name: value for name, value in rows[0].items() if name != "seq"}, (None,))]
