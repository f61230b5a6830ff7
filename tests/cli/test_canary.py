"""``run --canary``: one row into a table of its own, in each layout. The sources of the file are asked, and need not be
there; none of their rows is read."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from lakewriter.cli.main import main

pytestmark = pytest.mark.spark

READ = {"format": "csv", "path": "s3://acme-landing/not-there-yet"}
SUPAFLOW = {
    "type": "supaflow-s3-data-lake",
    "s3_bucket_name": "acme-lake",
    "bucket_region": "us-east-1",
    "s3_path_prefix": "data/production",
    "destination_prefix": "nyc",
}
OWN = {"type": "lakewriter-s3", "location": "s3://acme-lake/data", "region": "us-east-1"}
LAKES: dict[str, dict[str, Any]] = {
    "supaflow": {"destination": SUPAFLOW | {"update_aws_glue_catalog": True}},
    "iceberg": {"destination": SUPAFLOW | {"table_format": "ICEBERG", "iceberg_catalog": "GLUE"}},
    "lakewriter": {"destination": OWN},
    "refreshed": {
        "destination": OWN,
        "tables": [{"table": "users", "schema": "crm", "read": READ, "mode": "refresh"}],
    },
    "refreshed-glue": {
        "destination": OWN | {"catalog": "glue"},
        "tables": [{"table": "users", "schema": "crm", "read": READ, "mode": "refresh"}],
    },
    "airbyte": {
        "destination": {
            "type": "airbyte-s3",
            "s3_bucket_name": "acme-lake",
            "s3_bucket_path": "data",
            "s3_bucket_region": "us-east-1",
            "format": {"format_type": "JSONL"},
        }
    },
    "estuary": {
        "destination": {
            "type": "estuary-s3-parquet",
            "bucket": "acme-lake",
            "region": "us-east-1",
            "uploadIntervalInSeconds": 300,
        },
        "tables": [
            {"source": "acme/orders", "resource": {"pathPrefix": "/orders"}, "read": READ, "primary_key": ["id"]}
        ],
    },
}
TABLES = [{"table": "flights", "schema": "public", "read": READ, "primary_key": ["flight_id"], "cursor": "updated_at"}]


def run(folder: Path, lake: dict[str, Any], *options: str) -> dict[str, Any]:
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "flights", "tables": TABLES, **lake}), "utf-8")
    done = CliRunner().invoke(main, ["run", str(path), "--json", *options])
    assert done.exit_code == 0, done.output
    return dict(json.loads(done.stdout))


def list_canaries(aws) -> list[str]:
    return [key for key in aws.objects("acme-lake") if "/canary/" in key]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", LAKES)
def test_canary(tmp_path, aws, bucket, spark, name):
    lake = dict(LAKES[name])
    if name == "airbyte":
        lake["tables"] = [{key: TABLES[0][key] for key in ("table", "schema", "read")}]
    report = run(tmp_path, lake, "--canary", "nightly", "--outcome", "attempt-1")
    [table] = report["tables"]
    assert (report["job_id"], report["status"], table["table"], table["rows"]) == (
        "nightly",
        "done",
        "lakewriter_check_canary",
        1,
    )
    # Among the pipeline's own records, which readers leave out.
    assert ["/_lakewriter/flights/canary/" in f"/{key}" for key in table["keys"]] == [True]
    outside = [key for key in aws.objects("acme-lake") if "_lakewriter/flights/" not in key]
    assert outside == []
    [outcome] = [key for key in aws.objects("acme-lake") if key.endswith("/runs/attempt-1.json")]
    body = aws.client("s3").get_object(Bucket="acme-lake", Key=outcome)["Body"].read()
    assert json.loads(body)["rows"] == 1
    files = list_canaries(aws)
    run(tmp_path, lake, "--canary", "nightly")
    assert list_canaries(aws) == files
    assert run(tmp_path, lake, "--canary", "tomorrow")["status"] == "done"


def test_canary_is_no_load_of_the_tables(tmp_path, aws, bucket):
    path = tmp_path / "lake.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "flights", "tables": TABLES, **LAKES["supaflow"]}), "utf-8")
    done = CliRunner().invoke(main, ["run", str(path), "--canary", "x", "--job-id", "y"])
    assert done.exit_code == 2
    assert "--job-id is for a load of the file's tables" in done.stderr


DERBY = "jdbc:derby:memory:canary"


@pytest.fixture(scope="module")
def database(spark):
    """A table of three rows, one of which cannot be read: its column divides by zero."""
    connection = spark._jvm.java.sql.DriverManager.getConnection(f"{DERBY};create=true")
    statement = connection.createStatement()
    for sql in ("CREATE TABLE N (ID INT)", "INSERT INTO N VALUES 0", "CREATE VIEW V AS SELECT 1/ID AS ID FROM N"):
        statement.execute(sql)
    connection.close()
    return spark


def table(name: str, **read: Any) -> dict[str, Any]:
    return {"table": name, "schema": "public", "read": read}


def jdbc(name: str, url: str = DERBY, source: str = "V") -> dict[str, Any]:
    return table(name, format="jdbc", options={"url": url, "dbtable": source})


def ask(folder: Path, tables: list[dict[str, Any]], **top: Any) -> tuple[int, str, list[str]]:
    """The exit code, what is printed on standard error, and the notes of the report."""
    path = folder / "lake.yaml"
    content = {"pipeline": "flights", "tables": tables, **LAKES["supaflow"], **top}
    path.write_text(yaml.safe_dump({key: value for key, value in content.items() if value}), "utf-8")
    done = CliRunner().invoke(main, ["run", str(path), "--json", "--canary", "x"])
    report = json.loads(done.stdout)
    return done.exit_code, done.stderr, report.get("notes", [])


def test_a_canary_asks_each_source_and_reads_no_row(tmp_path, aws, bucket, database):
    """A file that is no CSV, and a view whose row ends in an error, would end a load."""
    aws.client("s3").create_bucket(Bucket="acme-landing")
    aws.client("s3").put_object(Bucket="acme-landing", Key="a/1.csv", Body=b"\x00\x00 no csv")
    landed = table("landed", format="csv", path="s3://acme-landing/a")
    joined = {"table": "joined", "schema": "public", "read": {
        "sql": "SELECT * FROM v JOIN f ON v.id = f.id",
        "views": {"v": jdbc("v")["read"], "f": landed["read"]},
    }}  # fmt: skip
    tables = [landed, jdbc("view"), table("later", **READ), joined]
    code, _, notes = ask(tmp_path, tables)
    said = [note for note in notes if note.startswith("source ")]
    assert code == 0
    assert said[:2] == [
        "source supaflow_nyc_public.landed: 1 file may be read.",
        "source supaflow_nyc_public.view: the database lets this process in, and has 1 column.",
    ]
    assert "not-there-yet" in said[2]
    assert [note.partition(": ")[2] for note in said[3:]] == [
        "1 file may be read.",
        "the database lets this process in, and has 1 column.",
    ]


REFUSED = [
    # the tables; the code and a part of what is said
    ([jdbc("closed", "jdbc:derby:memory:nowhere")], "SOURCE_FAILED", "nowhere"),
    ([jdbc("gone", source="GONE")], "SOURCE_FAILED", "GONE"),
]


@pytest.mark.parametrize(("tables", "code", "said"), REFUSED)
def test_a_canary_fails_where_a_source_lets_it_not_in(tmp_path, aws, bucket, database, tables, code, said):
    """Its row is loaded, so that the deployment is known to work but for the source."""
    exit_code, shown, _ = ask(tmp_path, [table("later", **READ), *tables])
    assert exit_code == 1
    assert code in shown
    assert said in shown
    assert "failed in the canary, whose row is loaded" in shown
    assert list_canaries(aws) != []


@pytest.mark.parametrize("action", ["s3:ListBucket", "s3:GetObject"])
def test_files_that_may_not_be_read(tmp_path, aws, bucket, spark, action):
    aws.client("s3").create_bucket(Bucket="acme-landing")
    aws.client("s3").put_object(Bucket="acme-landing", Key="a/1.csv", Body=b"id\n1\n")
    aws.deny(action, "arn:aws:s3:::acme-landing*")
    exit_code, shown, _ = ask(tmp_path, [table("landed", format="csv", path="s3://acme-landing/a")])
    assert (exit_code, "SOURCE_FAILED" in shown) == (1, True), shown


def test_a_connector_is_not_run(tmp_path, aws, bucket, spark):
    """Nor is its state written: the program is only looked up."""
    ran = tmp_path / "ran"
    connector = tmp_path / "source-shop"
    connector.write_text(f"#!/bin/sh\ntouch {ran}\n", "utf-8")
    connector.chmod(0o755)
    stream = {"name": "orders", "json_schema": {"properties": {"id": {"type": "integer"}}},
              "supported_sync_modes": ["full_refresh"]}  # fmt: skip
    catalog = {"streams": [{"stream": stream, "sync_mode": "full_refresh", "destination_sync_mode": "append"}]}
    (tmp_path / "catalog.json").write_text(json.dumps(catalog), "utf-8")
    source = {"command": [str(connector), "read"], "catalog": "catalog.json"}
    code, _, notes = ask(tmp_path, [], **LAKES["airbyte"], source=source)
    assert (code, ran.exists()) == (0, False)
    assert f"messages: the connector is {connector}." in notes
