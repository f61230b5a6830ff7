"""A pipeline to make policies for: two tables under ``data`` in the databases ``supaflow_*``."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from lakewriter.dialects.lake_yaml import Lake, load
from lakewriter.policy.arns import Arns
from lakewriter.policy.role_documents import Document, Who, make_documents
from lakewriter.spec.trust import Party
from tests.dialects import files

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
ARNS = Arns("aws", "123456789012", "us-east-1")

BUCKET = "arn:aws:s3:::acme-lake"
DATA = ["arn:aws:s3:::acme-lake/data/*"]
CATALOG = "arn:aws:glue:us-east-1:123456789012:catalog"
DATABASE = "arn:aws:glue:us-east-1:123456789012:database"
TABLE = "arn:aws:glue:us-east-1:123456789012:table"
VENDOR_TABLES = [
    "glue:GetDatabase", "glue:GetDatabases", "glue:CreateDatabase", "glue:UpdateDatabase", "glue:GetTable",
    "glue:CreateTable", "glue:UpdateTable", "glue:GetTables", "glue:GetPartition", "glue:BatchCreatePartition",
    "glue:GetPartitions", "glue:CreatePartition",
]  # fmt: skip
READ_TABLES = [
    "glue:GetDatabase", "glue:GetDatabases", "glue:GetTable", "glue:GetTables", "glue:GetPartition",
    "glue:GetPartitions", "glue:BatchGetPartition",
]  # fmt: skip
JOB_TABLES = [
    "glue:GetDatabase", "glue:CreateDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable",
    "glue:GetPartition", "glue:BatchCreatePartition", "glue:GetPartitions",
]  # fmt: skip
OWN_TABLES = [
    CATALOG,
    f"{DATABASE}/supaflow_nyc",
    f"{TABLE}/supaflow_nyc/flights",
    f"{TABLE}/supaflow_nyc/airlines",
    f"{TABLE}/supaflow_nyc/lakewriter_check_*",
]
PREFIXED_TABLES = [
    CATALOG,
    f"{DATABASE}/supaflow",
    f"{DATABASE}/supaflow_*",
    f"{TABLE}/supaflow/*",
    f"{TABLE}/supaflow_*/*",
]

DESTINATION = {
    "s3_bucket_name": "acme-lake",
    "s3_path_prefix": "data",
    "update_aws_glue_catalog": True,
    "destination_prefix": "nyc",
}
TABLES = [
    {"table": "Flights", "read": {"format": "parquet", "path": "s3://acme-landing/nyc/flights"}},
    {"table": "airlines", "read": {"format": "csv", "path": "s3://acme-landing/nyc/airlines-*/part.csv"}},
]


def lake(
    folder: Path,
    deployment: dict[str, Any] | None = None,
    tables: list[dict[str, Any]] | None = None,
    top: dict[str, Any] | None = None,
    **options: Any,
) -> Lake:
    """With ``options`` laid over its destination, and ``top`` over the file."""
    laid = {"deployment": deployment or {}, **(top or {})}
    path = files.lake(folder, tables=tables or TABLES, top=laid, **(DESTINATION | options))
    return load(path)


def statement(sid: str, actions: list[str], resources: list[str], condition: Any = None) -> dict[str, Any]:
    allowed = {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources}
    return allowed | ({"Condition": condition} if condition else {})


def denied(sid: str, actions: list[str], resources: list[str], condition: Any = None) -> dict[str, Any]:
    return {**statement(sid, actions, resources, condition), "Effect": "Deny"}


def made(folder: Path, who: Who, deployment: Any = None, tables: Any = None, **destination: Any) -> dict[str, Document]:
    """Of the first party that the file trusts; of one without a contract where it trusts nobody."""
    loaded = lake(folder, deployment, tables, **destination)
    key = KEY if loaded.deployment.encryption == "SSE-KMS" else None
    party = next((party for _, party in loaded.deployment.parties), Party())
    return make_documents(loaded.spec, loaded.deployment, who, replace(ARNS, key=key), party)
