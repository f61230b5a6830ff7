"""The SQL that ``queries`` prints, run on what two loads have written, in every format; DuckDB reads from S3 itself."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.queries import LastLoads, write_queries, write_views
from lakewriter.operate.read_tables import find_missing
from lakewriter.operate.sql_text import Engine, Query
from lakewriter.run.load import run
from lakewriter.spec.specification import Spec
from tests.iceberg.test_readers import extension
from tests.load.lakes import BUCKET, PREFIX

pytestmark = pytest.mark.spark

FIRST = 'id,name,at\n1,it\'s,2027-01-03\n2,"a\n""b"",c",2027-01-04\n'
SECOND = "id,name,at\n1,new,2027-01-05\n3,,2027-01-05\n"
DDL = "id BIGINT, name STRING, at DATE"
TRACKING = ["loaded_at", "load_id", "row_number", "row_id", "deleted"]
EXTRA = {
    # A column that only the second load has, where a reader can tell columns by their names in each file.
    "parquet": ("id,name,at,more\n1,new,2027-01-05,x\n3,,2027-01-05,y\n", f"{DDL}, more STRING"),
}


class Orders:
    """A pipeline of one table, loaded twice."""

    def __init__(self, lake: Any) -> None:
        self.lake = lake
        self.more: dict[str, Any] = {}

    def load(self, job_id: str, rows: str, ddl: str, **destination: Any) -> Spec:
        self.lake.csv("orders.csv", rows)
        options = {"header": "true", "escape": '"', "multiLine": "true"}
        read = {"format": "csv", "path": "orders.csv", "options": options, "columns": ddl}
        entry = {"table": "Orders", "schema": "public", "read": read, "primary_key": ["id"], "deleted": "id = 3"}
        entry |= self.more
        base = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/{PREFIX}", "region": "us-east-1"}
        content = {"pipeline": "flights", "destination": base | destination, "tables": [entry]}
        self.lake.file.write_text(yaml.safe_dump(content), "utf-8")
        spec: Spec = self.lake.spec
        spark = self.lake._spark
        report = run(spec, job_id=job_id, clients=Clients(spec.access), spark=lambda: spark)
        assert [table.status for table in report.tables] == ["done"]
        return spec

    def load_twice(self, **destination: Any) -> Spec:
        rows, ddl = EXTRA.get(destination.get("format", ""), (SECOND, DDL))
        self.load("first", FIRST, DDL, tracking=TRACKING, **destination)
        return self.load("second", rows, ddl, tracking=TRACKING, **destination)


@pytest.fixture
def orders(lake) -> Orders:
    return Orders(lake)


@pytest.fixture
def connection(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with duckdb.connect() as opened:
        opened.execute("SET autoinstall_known_extensions = false; SET TimeZone = 'UTC'")
        for name in ("httpfs", "aws", "avro"):
            opened.execute(f"LOAD '{extension(name)}'")
        yield opened


def list_queries(spec: Spec, engine: Engine) -> list[Query]:
    return list(write_queries(spec, [engine], LastLoads(jobs={"public.orders": "second"})))


def count_rows(results: dict[str, list[Any]]) -> dict[str, int]:
    return {title: len(rows) for title, rows in results.items()}


COUNTS = {
    "Query a table": 4,
    "Read the rows of the last load": 2,
    "Count the rows of all loads": 2,
    # 1 in its second version, and 2; 3 is deleted
    "Read the latest version of each row": 2,
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("kind", "partition_strategy"),
    [("parquet", "day"), ("parquet", "hour"), ("parquet", "none"), ("avro", "day"), ("csv", "load"), ("jsonl", "day")],
)
def test_duckdb(orders, connection, kind, partition_strategy):
    spec = orders.load_twice(format=kind, partition_strategy=partition_strategy, endpoint=orders.lake.aws.url)
    results = {query.title: connection.execute(query.sql).fetchall() for query in list_queries(spec, Engine.DUCKDB)}
    del results["Let DuckDB read the bucket"], results["Make a view of the files"]
    assert count_rows(results) == COUNTS
    names = {(str(row[0]), row[1]) for row in results["Query a table"]}
    assert names == {("1", "it's"), ("1", "new"), ("2", 'a\n"b",c'), ("3", None)}
    assert [(row[0], row[1]) for row in results["Count the rows of all loads"]] == [("second", 2), ("first", 2)]


def test_history(orders, connection):
    """Each version from its own order to the next one; the view is made of what ``--views`` prints."""
    orders.more = {"order_by": ["at"], "deleted": "name = ''"}
    spec = orders.load_twice(endpoint=orders.lake.aws.url)
    for query in write_views(spec, Engine.DUCKDB, LastLoads()):
        connection.execute(query.sql)
    seen = connection.execute("SELECT id, name, _valid_from, _valid_to FROM public_orders_history ORDER BY 1, 3")
    assert [(row[0], row[1], str(row[2]), str(row[3])) for row in seen.fetchall()] == [
        (1, "it's", "2027-01-03", "2027-01-05"),
        (1, "new", "2027-01-05", "None"),
        (2, 'a\n"b",c', "2027-01-04", "None"),
        (3, None, "2027-01-05", "None"),
    ]


def test_order_of_an_appended_table_is_judged(orders):
    """Texts of numbers do not compare as they are meant, in a query as in a merge."""
    orders.more = {"order_by": ["name"]}
    with pytest.raises(AssertionError, match="failed"):
        orders.load("first", "id,name,at\n1,9,2027-01-03\n1,10,2027-01-04\n", DDL, tracking=TRACKING)


def load_three(lake: Any, **settings: Any) -> tuple[Spec, LastLoads]:
    """A pipeline after its first load: a table with rows, one whose source has none, and one that failed."""
    lake.csv("orders.csv", SECOND)
    lake.csv("empty.csv", "id,name,at\n")
    mode = {"mode": settings.pop("mode")} if "mode" in settings else {}
    entries = [
        {
            "table": name,
            "schema": "public",
            "primary_key": ["id"],
            **mode,
            "read": {"format": "csv", "path": f"{file}.csv", "options": {"header": "true"}, "columns": DDL},
        }
        for name, file in (("orders", "orders"), ("empty", "empty"), ("failed", "none"))
    ]
    destination = {
        "type": "lakewriter-s3",
        "location": f"s3://{BUCKET}/{PREFIX}",
        "region": "us-east-1",
        "endpoint": lake.aws.url,
        "tracking": TRACKING,
        **settings,
    }
    content = {"pipeline": "flights", "destination": destination, "tables": entries}
    lake.file.write_text(yaml.safe_dump(content), "utf-8")
    spec: Spec = lake.spec
    report = run(spec, job_id="first", clients=Clients(spec.access), spark=lambda: lake._spark)
    assert [table.status for table in report.tables] == ["done", "done", "failed"]
    controls = Pipeline.open(spec, Clients(spec.access)).controls
    states = {table_id: control.state.read() for table_id, control in controls.items()}
    return spec, replace(find_missing(spec, controls, states), jobs={"public.orders": "first"})


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "settings",
    [
        {"format": "parquet"},
        {"format": "avro"},
        {"format": "csv"},
        {"format": "jsonl"},
        {"format": "parquet", "mode": "refresh"},
    ],
    ids=lambda settings: "-".join(settings.values()),
)
def test_no_statement_fails_for_a_table_without_files(lake, connection, settings):
    """DuckDB refuses a pattern that no file matches, and runs nothing that follows it."""
    spec, last = load_three(lake, **settings)
    assert last.without_files == {"public.empty", "public.failed"}
    assert last.unloaded == {"public.failed"}
    queries = write_queries(spec, [Engine.DUCKDB], last)
    # Of a comment alone DuckDB makes no result.
    results = {(query.table, query.title): connection.execute(query.sql) and connection.fetchall() for query in queries}
    assert len(results["public.orders", "Query a table"]) == 2
    for name in ("public.empty", "public.failed"):
        assert [(query.title, query.sql) for query in queries if query.table == name] == [
            (
                "Nothing to read yet",
                f"-- {name} has no files yet. Print its queries again after a load with rows of it.",
            )
        ]
    views = write_views(spec, Engine.DUCKDB, last)
    assert [query.title for query in views if query.table == "public.orders"] == [
        query.title for query in queries if query.title.startswith("Make a view")
    ]
    with duckdb.connect() as other:
        for name in ("httpfs", "aws", "avro"):
            other.execute(f"LOAD '{extension(name)}'")
        # As one text, which ends at the first statement that fails.
        other.execute("\n\n".join(f"-- {query.title}\n{query.sql}" for query in views))
        # The page names the view.
        assert other.execute("SELECT count(*) FROM public_orders").fetchall() == [(2,)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("strategy", ["HOUR", "DAY", "SYNC_ID", "NONE"])
def test_duckdb_reads_every_folder_of_supaflow(lake, connection, strategy):
    entry = {"table": "accounts", "read": {"format": "csv", "path": lake.csv("a.csv", "1,a\n2,b\n3,c\n")}}
    lake.write(entry, partition_strategy=strategy, update_aws_glue_catalog=None, custom_s3_endpoint=lake.aws.url)
    for job_id in ("first", "second"):
        assert lake.load(job_id).tables[0].status == "done"
    for query in write_queries(lake.spec, [Engine.DUCKDB], LastLoads(jobs={"nyc.accounts": "first"})):
        rows = connection.execute(query.sql).fetchall()
        if query.title in ("Query a table", "Read the rows of the last load"):
            assert len(rows) == {"Query a table": 6, "Read the rows of the last load": 3}[query.title]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_spark(orders, kind):
    """Spark's library for S3 is not here: it reads copies of the objects."""
    spec = orders.load_twice(format=kind)
    copies = orders.lake.folder / "copies"
    for key, body in orders.lake.aws.objects(BUCKET).items():
        (copies / key).parent.mkdir(parents=True, exist_ok=True)
        (copies / key).write_bytes(body)
    spark = orders.lake._spark
    results = {}
    for query in list_queries(spec, Engine.SPARK):
        rows = spark.sql(query.sql.replace(f"s3a://{BUCKET}", str(copies)).rstrip(";")).collect()
        results[query.title] = rows
    del results["Make a view of the files"]
    assert count_rows(results) == COUNTS
    names = {(row["id"], row["name"]) for row in results["Query a table"]}
    assert names == {(1, "it's"), (1, "new"), (2, 'a\n"b",c'), (3, None)}
    spark.catalog.dropTempView("public_orders")


CATALOGS: list[dict[str, Any]] = [
    {"catalog": "glue", "database": "shop"},
    {"catalog": "iceberg", "database": "shop"},
    {"catalog": "open_catalog", "catalog_endpoint": "https://a.example.com/api", "catalog_name": "it's a lake",
     "client_id": "me", "client_secret": "${env:S}"},
    {"catalog": "rest", "uri": "https://a.example.com/v", "warehouse": "it's", "auth": "sigv4", "signing_name": "x"},
    {"format": "avro"},
    {"endpoint": "http://localhost:9000", "format": "csv"},
]  # fmt: skip


@pytest.mark.parametrize("destination", CATALOGS, ids=lambda value: json.dumps(value)[:40])
def test_spark_parses_every_statement(tmp_path, spark, destination):
    parser = spark._jsparkSession.sessionState().sqlParser()
    base = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/{PREFIX}", "region": "us-east-1"}
    table = {"table": "Order`s", "schema": "group", "read": {"format": "csv", "path": "a.csv"}}
    content = {"pipeline": "p", "destination": base | {"tracking": TRACKING} | destination, "tables": [table]}
    path = Path(tmp_path, "lake.yaml")
    path.write_text(yaml.safe_dump(content), "utf-8")
    statements = [query.sql for query in write_queries(load_spec(path), [Engine.SPARK])]
    assert len(statements) >= 4
    for statement in ";\n".join(statements).split(";\n"):
        assert parser.parsePlan(statement.rstrip(";")) is not None
