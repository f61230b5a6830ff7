"""Policies of ``lakewriter-s3``: its location's prefix, and the databases that ``database`` begins."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError
from lakewriter.policy.role_documents import Who, make_documents
from tests.dialects.test_lakewriter_s3 import lake
from tests.policy.lakes import ARNS, BUCKET, statement

GLUE = "arn:aws:glue:us-east-1:123456789012"
WRITTEN = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:DeleteObject"]
TABLES = [
    "glue:GetDatabase", "glue:CreateDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable",
    "glue:GetPartition", "glue:BatchCreatePartition", "glue:GetPartitions",
]  # fmt: skip


def by_sid(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["Sid"]: each for each in document["Statement"]}


def test_job_writes_its_own_table(tmp_path: Path) -> None:
    whole = load(lake(tmp_path, catalog="glue", database="Sales"))
    found = make_documents(whole.spec, whole.deployment, Who.JOB, ARNS)
    own = ("sales_public/orders", "_lakewriter/orders", "_lakewriter/_writers")
    assert by_sid(found["S3"])["WriteObjects"] == statement(
        "WriteObjects", WRITTEN, [f"{BUCKET}/production/{folder}/*" for folder in own]
    )
    assert by_sid(found["S3"])["ListUnderPrefix"] == statement(
        "ListUnderPrefix", ["s3:ListBucket"], [BUCKET],
        {"StringLike": {"s3:prefix": ["production", "production/", "production/*"]}},
    )  # fmt: skip
    assert found["Glue"]["Statement"] == [
        statement("WriteTables", TABLES, [
            f"{GLUE}:catalog", f"{GLUE}:database/sales_public", f"{GLUE}:table/sales_public/orders",
            f"{GLUE}:table/sales_public/lakewriter_check_*",
        ])
    ]  # fmt: skip


@pytest.mark.parametrize(("catalog", "partitions"), [("glue", TABLES[5:]), ("iceberg", [])])
def test_job_writes_the_quarantine_of_its_table(tmp_path: Path, catalog: str, partitions: list[str]) -> None:
    whole = load(lake(tmp_path, catalog=catalog, database="Sales", top={"on_bad_row": "quarantine"}))
    found = by_sid(make_documents(whole.spec, whole.deployment, Who.JOB, ARNS)["Glue"])["WriteTables"]
    assert found == statement("WriteTables", [*TABLES[:5], *partitions], [
        f"{GLUE}:catalog", f"{GLUE}:database/sales_public", f"{GLUE}:table/sales_public/orders",
        f"{GLUE}:table/sales_public/orders__quarantine", f"{GLUE}:table/sales_public/lakewriter_check_*",
    ])  # fmt: skip


def test_reader_reads_databases_that_begin_alike(tmp_path: Path) -> None:
    whole = load(lake(tmp_path, catalog="glue", database="Sales"))
    (tables,) = make_documents(whole.spec, whole.deployment, Who.READER, ARNS)["Glue"]["Statement"]
    assert tables["Resource"] == [
        f"{GLUE}:catalog", f"{GLUE}:database/sales", f"{GLUE}:database/sales_*", f"{GLUE}:table/sales/*",
        f"{GLUE}:table/sales_*/*",
    ]  # fmt: skip


def test_files_need_no_glue(tmp_path: Path) -> None:
    whole = load(lake(tmp_path, format="csv"))
    assert list(make_documents(whole.spec, whole.deployment, Who.JOB, ARNS)) == ["S3"]


def test_nobody_documents_a_policy(tmp_path: Path) -> None:
    whole = load(lake(tmp_path, top={"deployment": {"vendor_verbatim": True}}))
    with pytest.raises(
        SpecInvalidError, match="expected a destination whose vendor publishes a policy, got 'lakewriter-s3'"
    ):
        make_documents(whole.spec, whole.deployment, Who.VENDOR, ARNS)
