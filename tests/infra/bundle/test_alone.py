"""The bundle on a machine that has nothing but Python 3.11, Java and PySpark."""

import io
import platform
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from infra.bundle.archive import write_archive
from infra.pipeline.artifact import render_lake_file
from lakewriter.dialects.lake_yaml import load
from tests.support.bundles import SparkMachine
from tests.support.server import StrictAws

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"


@pytest.fixture
def machine(tmp_path: Path, bundle: Path) -> SparkMachine:
    """The dependencies unpacked in an otherwise empty working folder."""
    machine = SparkMachine(tmp_path)
    machine.unpack(bundle / f"dependencies-{platform.machine()}.zip", "dependencies")
    return machine


def lake(folder: Path) -> dict[str, Any]:
    """A table that the tasks read themselves from S3, and one that Spark reads, its file beside the job."""
    return {
        "pipeline": "flights",
        "destination": {
            "type": "supaflow-s3-data-lake",
            "s3_bucket_name": "acme-lake",
            "bucket_region": "us-east-1",
            "s3_path_prefix": "data/production",
            "iam_role_arn": ROLE,
            "external_id": "${ssm:/lake/external-id}",
            "update_aws_glue_catalog": True,
        },
        "tables": [
            {"table": "flights", "schema": "nyc", "read": {"format": "parquet", "path": "s3://acme-landing/flights"}},
            {
                "table": "airlines",
                "schema": "nyc",
                "primary_key": ["carrier"],
                "read": {"format": "csv", "path": str(folder / "airlines.csv"), "options": {"header": True}},
            },
        ],
        "deployment": {"account": "123456789012"},
    }


def prepare(machine: SparkMachine, aws: StrictAws) -> None:
    """The sources, the secret, the role, and the unpacked lake.zip."""
    s3, parquet = aws.client("s3"), io.BytesIO()
    pq.write_table(pa.table({"flight": pa.array(range(1000), pa.int64())}), parquet)
    s3.create_bucket(Bucket="acme-landing")
    s3.put_object(Bucket="acme-landing", Key="flights/1.parquet", Body=parquet.getvalue())
    (machine.work / "airlines.csv").write_text("carrier,name\nAA,American\nUA,United\n", "utf-8")
    aws.client("ssm").put_parameter(Name="/lake/external-id", Value="spf-12345", Type="String")
    aws.role(ROLE, external_id="spf-12345")
    file = machine.work.parent / "lake.yaml"
    file.write_text(yaml.safe_dump(lake(machine.work)), "utf-8")
    write_archive(machine.work.parent / "lake.zip", {"lake.yaml": render_lake_file(load(file)).encode()})
    machine.unpack(machine.work.parent / "lake.zip", "lake")


def rows(aws: StrictAws) -> dict[str, int]:
    """What lies in the lake, by table."""
    found = {key: body for key, body in aws.objects("acme-lake").items() if key.endswith(".parquet")}
    return {key.split("/")[3]: pq.ParquetFile(io.BytesIO(body)).metadata.num_rows for key, body in found.items()}


def aws_environment(aws: StrictAws) -> dict[str, str]:
    """What leads the SDKs to the embedded AWS."""
    return {
        "AWS_ENDPOINT_URL": aws.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@pytest.mark.spark
@pytest.mark.usefixtures("bucket")
@pytest.mark.exhaustive
def test_load_from_the_bundle_alone(machine: SparkMachine, bundle: Path, aws: StrictAws) -> None:
    prepare(machine, aws)
    done = machine.submit(bundle, "run", "lake/lake.yaml", "--job-id", "first", **aws_environment(aws))
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows(aws) == {"flights": 1000, "airlines": 2}
    assert sorted(re.findall(r'"table": "(\S+)", "step": "writing", "detail": "(\d task)"', done.stdout)) == [
        ("supaflow_nyc.airlines", "1 task"),
        ("supaflow_nyc.flights", "1 task"),
    ]
    tables = aws.client("glue").get_tables(DatabaseName="supaflow_nyc")["TableList"]
    assert {each["Name"] for each in tables} == {"airlines", "flights"}
