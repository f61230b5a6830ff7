"""The tables of a database, as its driver tells them; Derby comes with Spark."""

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.init.databases import LARGE
from lakewriter.init.draft import write_draft
from lakewriter.init.start import Wishes, make_draft
from lakewriter.source.databases.database_tables import DatabaseTable

pytestmark = pytest.mark.spark

URL = "jdbc:derby:memory:init"

STATEMENTS = [
    "CREATE TABLE ORDERS (ORDER_ID BIGINT NOT NULL, LINE INT NOT NULL, AMOUNT DECIMAL(9, 2), "
    "UPDATED_AT TIMESTAMP NOT NULL, PRIMARY KEY (LINE, ORDER_ID))",
    'CREATE TABLE "Order lines" (ID INT NOT NULL PRIMARY KEY, MODIFIED TIMESTAMP)',
    "CREATE VIEW RECENT AS SELECT ORDER_ID FROM ORDERS",
    "CREATE TABLE DAYS (ID INT NOT NULL PRIMARY KEY, UPDATED_ON DATE NOT NULL)",
    "CREATE TABLE LOOSE (N INT, UPDATED_AT TIMESTAMP NOT NULL)",
    "CREATE SCHEMA SALES",
    "CREATE TABLE SALES.ORDERS (ID INT)",
    "INSERT INTO ORDERS VALUES (1, 1, 2.50, TIMESTAMP('2026-01-01 10:00:00'))",
]


@pytest.fixture(scope="module")
def database(spark):
    connection = spark._jvm.java.sql.DriverManager.getConnection(f"{URL};create=true")
    statement = connection.createStatement()
    for sql in STATEMENTS:
        statement.execute(sql)
    connection.close()
    return URL


def draft(spark, folder, url, **wishes):
    return make_draft([url], Wishes(folder, spark=lambda: spark, **wishes)).draft


def test_tables_with_their_keys_and_cursors(spark, database, tmp_path):
    drafted = draft(spark, tmp_path, database)
    assert drafted.pipeline == "init"
    assert {
        (table.schema, table.name): (table.read["options"]["dbtable"], table.key, table.cursor, table.lag, table.is_off)
        for table in drafted.tables
    } == {
        ("APP", "ORDERS"): (
            '"APP"."ORDERS"',
            (("LINE", "ORDER_ID"), "the database's own primary key", True),
            ("UPDATED_AT", "TIMESTAMP, never null", True),
            "10 minutes",
            False,
        ),
        ("APP", "DAYS"): (
            '"APP"."DAYS"',
            (("ID",), "the database's own primary key", True),
            ("UPDATED_ON", "DATE, never null", True),
            "1 day",
            False,
        ),
        ("APP", "LOOSE"): (
            '"APP"."LOOSE"',
            ((), "the table has no primary key", False),
            ("UPDATED_AT", "TIMESTAMP, never null", True),
            None,
            False,
        ),
        ("APP", "Order lines"): (
            '"APP"."Order lines"',
            (("ID",), "the database's own primary key", True),
            ("MODIFIED", "TIMESTAMP, may be null, and such rows no later load would read", False),
            "10 minutes",
            False,
        ),
        ("APP", "RECENT"): ('"APP"."RECENT"', ((), "the view has no primary key", False), None, None, True),
        ("SALES", "ORDERS"): ('"SALES"."ORDERS"', ((), "the table has no primary key", False), None, None, False),
    }


def test_the_draft_loads_and_spark_reads_its_tables(spark, database, tmp_path):
    lake = tmp_path / "lake.yaml"
    lake.write_text(write_draft(draft(spark, tmp_path, database), "lakewriter init"), "utf-8")
    reads = {(table.source_schema, table.source_table): table.read for table in load(lake).spec.tables}
    options = {key: str(value) for key, value in reads[("APP", "ORDERS")].options.items()}
    assert [row["AMOUNT"] for row in spark.read.format("jdbc").options(**options).load().collect()] == [2.5]


def test_lines_of_the_draft(spark, database, tmp_path):
    text = write_draft(draft(spark, tmp_path, database), "lakewriter init")
    for line in (
        "    cursor_lag: 10 minutes",
        "    # cursor_lag: 10 minutes",
        "    mode: refresh  # each load replaces the table whole; no column says what is new, and it is small",
        "    mode: refresh  # each load replaces the table whole; no column surely says what is new, and it is small",
        "  # - table: RECENT",
        "    # schema: APP",
        "    # read: {format: jdbc",
    ):
        assert f"\n{line}" in text


LARGE_TABLES = [
    # columns, primary key, estimated rows: how it is cut
    ({"id": ("bigint", False)}, ("id",), LARGE, {"column": "id", "count": 8}),
    ({"id": ("int8", False)}, ("id",), LARGE - 1, None),
    ({"id": ("uuid", False)}, ("id",), LARGE, None),
    ({"a": ("int4", False), "b": ("int4", False)}, ("a", "b"), LARGE, None),
    ({"id": ("bigserial", False)}, ("id",), None, None),
]


@pytest.mark.parametrize(("columns", "key", "rows", "partition"), LARGE_TABLES)
def test_large_tables_are_read_by_several_connections(spark, tmp_path, monkeypatch, columns, key, rows, partition):
    table = DatabaseTable("public", "t", False, columns, key, "public.t", rows)
    monkeypatch.setattr("lakewriter.source.databases.database_tables.list_database_tables", lambda *_: [table])
    (drafted,) = draft(spark, tmp_path, URL).tables
    assert drafted.read.get("partition") == partition
    assert ("about 5,000,000 rows" in drafted.seen) == (rows == LARGE)


def test_scheme_that_is_none(spark, tmp_path):
    with pytest.raises(SpecInvalidError, match="did you mean 'jdbc:postgresql:'"):
        draft(spark, tmp_path, "jdbc:postgres://localhost/shop")


def test_one_schema_only(spark, database, tmp_path):
    assert [table.schema for table in draft(spark, tmp_path, database, schemas=("sales",)).tables] == ["SALES"]
    with pytest.raises(SourceFailedError) as raised:
        draft(spark, tmp_path, database, schemas=("none",))
    assert raised.value.message == "the database has no table of the schemas none that this user may see."


SECRETS = [
    # URL, environment, the URL that is kept, user and password in the file
    ("jdbc:derby:memory:init;user=me;password=p", {}, "jdbc:derby:memory:init", True),
    ("jdbc:derby:memory:init", {"DB_USER": "me", "DB_PASSWORD": "p"}, "jdbc:derby:memory:init", True),
    ("jdbc:derby:memory:init", {}, "jdbc:derby:memory:init", False),
]


@pytest.mark.parametrize(("url", "environment", "kept", "named"), SECRETS)
def test_no_password_is_written(spark, database, tmp_path, monkeypatch, url, environment, kept, named):
    for name in ("DB_USER", "DB_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    options = draft(spark, tmp_path, url).tables[0].read["options"]
    expected = {"user": "${env:DB_USER}", "password": "${env:DB_PASSWORD}"} if named else {}
    assert {key: value for key, value in options.items() if key != "dbtable"} == {"url": kept, **expected}


def test_a_driver_that_is_not_there(spark, tmp_path):
    with pytest.raises(SourceFailedError) as raised:
        draft(spark, tmp_path, "jdbc:postgresql://localhost/shop?user=me&password=secret")
    assert raised.value.message.startswith("jdbc:postgresql://localhost/shop cannot be read: ")
    assert "secret" not in str(raised.value)
    assert raised.value.remedy.startswith("Give the database's JDBC driver, such as PYSPARK_SUBMIT_ARGS=")
