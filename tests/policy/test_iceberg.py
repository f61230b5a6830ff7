"""What Iceberg changes: no partitions to write in Glue, the catalog itself to look at, files that engines replace."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.policy.bucket import deny_replacement
from lakewriter.policy.role_documents import Who
from lakewriter.policy.roles import list_roles
from tests.policy.lakes import ARNS, CATALOG, OWN_TABLES, PREFIXED_TABLES, lake, made, statement
from tests.policy.test_documents import KEEP_TABLES

GLUE: dict[str, Any] = {"table_format": "ICEBERG", "update_aws_glue_catalog": None}
OPEN_CATALOG = GLUE | {
    "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
    "catalog_endpoint": "https://acme-lake.snowflakecomputing.com/polaris/api/catalog",
    "catalog_name": "lake",
    "client_id": "${ssm:/lake/client-id}",
    "client_secret": "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:open-catalog-AbCdEf}",
}
JOB_TABLES = ["glue:GetDatabase", "glue:CreateDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable"]
VENDOR_TABLES = [
    "glue:GetDatabase", "glue:GetDatabases", "glue:CreateDatabase", "glue:UpdateDatabase", "glue:GetTable",
    "glue:CreateTable", "glue:UpdateTable", "glue:GetTables",
]  # fmt: skip
DOCUMENTS: list[tuple[Who, list[dict[str, Any]]]] = [
    (
        Who.JOB,
        [statement("ReadCatalog", ["glue:GetCatalog"], [CATALOG]), statement("WriteTables", JOB_TABLES, OWN_TABLES)],
    ),
    (
        # the vendor's page: "GetCatalog" and "GetCatalogs" for Iceberg
        Who.VENDOR,
        [
            statement("ReadCatalog", ["glue:GetCatalog", "glue:GetCatalogs", "glue:GetCatalogImportStatus"], [CATALOG]),
            statement("WriteTables", VENDOR_TABLES, PREFIXED_TABLES),
            *KEEP_TABLES,
        ],
    ),
]


@pytest.mark.parametrize(("who", "expected"), DOCUMENTS)
def test_glue(tmp_path: Path, who: Who, expected: list[dict[str, Any]]) -> None:
    assert made(tmp_path, who, **GLUE)["Glue"]["Statement"] == expected


def test_open_catalog(tmp_path: Path) -> None:
    found = lake(tmp_path, **OPEN_CATALOG)
    documents = made(tmp_path, Who.JOB, **OPEN_CATALOG)
    assert list(documents) == ["S3", "Secrets", "Sources"]
    assert [(each["Action"], each["Resource"]) for each in documents["Secrets"]["Statement"]] == [
        (
            ["secretsmanager:GetSecretValue"],
            ["arn:aws:secretsmanager:us-east-1:123456789012:secret:open-catalog-AbCdEf"],
        ),
        (["ssm:GetParameter"], ["arn:aws:ssm:us-east-1:123456789012:parameter/lake/client-id"]),
    ]
    assert [role.name for role in list_roles(found.spec, found.deployment, ARNS)] == [
        "job",
        "snowflake-catalog",
        "snowflake-compute",
    ]


@pytest.mark.parametrize("destination", [GLUE, OPEN_CATALOG])
def test_engines_may_replace_files(tmp_path: Path, destination: dict[str, Any]) -> None:
    found = lake(tmp_path, **destination)
    assert deny_replacement(found.spec, ARNS) == []
    (write,) = (
        each for each in made(tmp_path, Who.VENDOR, **destination)["S3"]["Statement"] if each["Sid"] == "WriteObjects"
    )
    assert "s3:DeleteObject" in write["Action"]
