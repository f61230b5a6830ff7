"""``run --canary``: one row into a table of its own, in each layout; the sources of the file need not be there."""

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
