"""What ``check`` says of a table in a database: the server, the cursor's order, the types. Derby comes with Spark."""

import pytest

from lakewriter.doctor.probe import run_probes
from lakewriter.doctor.source_access import SourceProbes
from lakewriter.spec.table_spec import JdbcPartition, Read
from tests.doctor.pipeline import spec

pytestmark = pytest.mark.spark

URL = "jdbc:derby:memory:check"
STATEMENTS = [
    "CREATE TABLE ORDERS (ID INT NOT NULL PRIMARY KEY, CHANGED_AT TIMESTAMP, T VARCHAR(9))",
    "INSERT INTO ORDERS VALUES (1, TIMESTAMP('2026-01-01 10:00:00'), 'a'), (2, NULL, 'b'), (3, NULL, 'c')",
]
FLIGHTS = "table 'nyc_public.flights'"
LATE = (
    "cursor 'CHANGED_AT' of 'nyc_public.flights' is a time: rows that a transaction commits late, with a time "
    "below the highest one loaded, are not read."
)
LATE_NUMBER = LATE.replace("CHANGED_AT", "ID").replace("time", "number")
NULLS = "cursor 'CHANGED_AT' of 'nyc_public.flights' is null in 2 of 3 rows looked at."
FOUND = [
    # the table in the database, keys of the table, keys of the read: statuses and messages behind the server's version
    ("ORDERS", {}, {}, [("ok", ", 3 columns: ID int, CHANGED_AT timestamp, T string (3 rows looked at).")]),
    (
        "ORDERS",
        {"cursor": "CHANGED_AT"},
        {},
        [("ok", "(3 rows looked at)."), ("warning", LATE), ("warning", NULLS)],
    ),
    ("ORDERS", {"cursor": "CHANGED_AT", "cursor_lag": "10 minutes"}, {}, [("ok", "looked at)."), ("warning", NULLS)]),
    ("ORDERS", {"cursor": "ID"}, {}, [("ok", "looked at)."), ("warning", LATE_NUMBER)]),
    ("ORDERS", {"cursor": "ID", "cursor_lag": "10"}, {}, [("ok", "looked at).")]),
    (
        "ORDERS",
        {"cursor": "T"},
        {},
        [
            ("ok", "looked at)."),
            (
                "warning",
                f"{FLIGHTS}: Spark compares cursor 'T', after it has read all rows: Derby does not order varchar as "
                "the values are ordered.",
            ),
        ],
    ),
    (
        "ORDERS",
        {},
        {"partition": JdbcPartition(column="ID", count=2)},
        [
            ("ok", "looked at)."),
            ("warning", f"{FLIGHTS}: its 2 connections do not see one moment of the database."),
        ],
    ),
]


@pytest.fixture(scope="module")
def database(spark):
    connection = spark._jvm.java.sql.DriverManager.getConnection(f"{URL};create=true")
    statement = connection.createStatement()
    for sql in STATEMENTS:
        statement.execute(sql)
    connection.close()
    return spark


@pytest.mark.parametrize(("name", "keys", "how", "expected"), FOUND)
def test_what_is_said_of_a_database(database, name, keys, how, expected):
    made = spec()
    read = Read(format="jdbc", options={"url": URL, "dbtable": name}, **how)
    table = made.tables[0].model_copy(update={"primary_key": (), **keys, "read": read})
    probes = SourceProbes(made.model_copy(update={"tables": (table,)}), None, lambda: database)
    found = list(run_probes(probes.list_probes()))
    assert [finding.status for finding in found] == [status for status, _ in expected]
    for finding, (status, message) in zip(found, expected, strict=True):
        assert finding.message.endswith(message)
        assert status != "ok" or finding.message.startswith("jdbc, Apache Derby 10.")
