"""What IAM would say to each role, asked of a simulator; every row is a call, and the statement that decides it."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.policy.bucket import make_bucket_policy
from lakewriter.policy.role_documents import Document, Who
from tests.policy.lakes import ARNS, BUCKET, CATALOG, DATABASE, KEY, TABLE, lake, made
from tests.support.iam import Decision, Policies, Request, simulate

Row = tuple[str, str, dict[str, str], str]

CREATED = {"s3:ObjectCreationOperation": "true"}
NEW = CREATED | {"s3:if-none-match": "*"}
PART = {"s3:ObjectCreationOperation": "false"}
THROUGH_S3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}
FILE = f"{BUCKET}/data/supaflow_nyc/flights/2024/part-1.gzip.parquet"
OTHERS_FILE = f"{BUCKET}/data/supaflow_crm/contact/part-1.gzip.parquet"
STATE = f"{BUCKET}/data/_lakewriter/p/tables/supaflow_nyc.flights/state.json"
ROLE = "arn:aws:iam::123456789012:role/Lake"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:db-AbCdEf"
PARAMETER = "arn:aws:ssm:us-east-1:123456789012:parameter/lake/id"
LANDING = "arn:aws:s3:::acme-landing"
KEY_POLICY: dict[str, Any] = {
    "Version": "2012-10-17",
    "Statement": [
        {"Sid": "Account", "Effect": "Allow", "Principal": {"AWS": ARNS.root()}, "Action": "kms:*", "Resource": "*"}
    ],
}
"""What CDK gives a key: the account's identity policies decide."""

LOADER_ROWS: list[Row] = [
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/"}, "S3/ListUnderPrefix"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/_lakewriter/p/tables/"}, "S3/ListUnderPrefix"),
    ("s3:ListBucketMultipartUploads", BUCKET, {}, "S3/InspectBucket"),
    ("s3:GetBucketLocation", BUCKET, {}, "S3/InspectBucket"),
    ("s3:GetLifecycleConfiguration", BUCKET, {}, "S3/InspectBucket"),
    ("s3:PutObject", FILE, NEW, "S3/WriteObjects"),
    ("s3:PutObject", FILE, PART, "S3/WriteObjects"),
    ("s3:PutObject", STATE, CREATED | {"s3:if-match": '"etag"'}, "S3/WriteObjects"),
    ("s3:GetObject", FILE, {}, "S3/WriteObjects"),
    ("s3:DeleteObject", FILE, {}, "S3/WriteObjects"),
    ("s3:AbortMultipartUpload", FILE, {}, "S3/WriteObjects"),
    ("s3:ListMultipartUploadParts", FILE, {}, "S3/WriteObjects"),
    ("kms:GenerateDataKey", KEY, THROUGH_S3, "Kms/UseKeyThroughS3 resource/Account"),
    ("kms:Decrypt", KEY, THROUGH_S3, "Kms/UseKeyThroughS3 resource/Account"),
    ("glue:GetDatabase", f"{DATABASE}/supaflow_nyc", {}, "Glue/WriteTables"),
    ("glue:CreateDatabase", CATALOG, {}, "Glue/WriteTables"),
    ("glue:GetTable", f"{TABLE}/supaflow_nyc/flights", {}, "Glue/WriteTables"),
    ("glue:CreateTable", f"{TABLE}/supaflow_nyc/airlines", {}, "Glue/WriteTables"),
    ("glue:UpdateTable", f"{TABLE}/supaflow_nyc/lakewriter_check_0a1b", {}, "Glue/WriteTables"),
    ("glue:BatchCreatePartition", f"{TABLE}/supaflow_nyc/flights", {}, "Glue/WriteTables"),
    # the bucket's own policy
    ("s3:PutObject", FILE, CREATED, "denied by resource/KeepObjectsOfTables"),
    ("s3:GetObject", FILE, {"aws:SecureTransport": "false"}, "denied by resource/RequireTls"),
    # other prefixes
    ("s3:GetObject", f"{BUCKET}/data-secret/x", {}, "denied"),
    ("s3:PutObject", f"{BUCKET}/data-secret/x", NEW, "denied"),
    ("s3:DeleteObject", f"{BUCKET}/other/x", {}, "denied"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data-secret/"}, "denied"),
    # listing above the prefix
    ("s3:ListBucket", BUCKET, {"s3:prefix": "dat"}, "denied"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": ""}, "denied"),
    ("s3:ListBucket", BUCKET, {}, "denied"),
    # other buckets
    ("s3:GetObject", "arn:aws:s3:::acme-lake-2/data/x", {}, "denied"),
    ("s3:ListBucket", "arn:aws:s3:::acme-lake-2", {"s3:prefix": "data/"}, "denied"),
    # other databases and tables
    ("glue:GetDatabase", f"{DATABASE}/supaflowevil", {}, "denied"),
    ("glue:GetTable", f"{TABLE}/supaflow_nycevil/flights", {}, "denied"),
    ("glue:UpdateTable", f"{TABLE}/supaflow_nyc/flights2", {}, "denied"),
    ("glue:DeleteTable", f"{TABLE}/supaflow_nyc/flights", {}, "denied"),
    # the key for another purpose, and another key
    ("kms:Decrypt", KEY, {"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com"}, "denied"),
    ("kms:Decrypt", KEY, {}, "denied"),
    ("kms:Decrypt", KEY.replace("1111-", "9999-"), THROUGH_S3, "denied"),
    # the versions that a deletion leaves, and the bucket's own settings
    ("s3:DeleteObjectVersion", FILE, {}, "denied"),
    ("s3:PutLifecycleConfiguration", BUCKET, {}, "denied"),
    ("s3:PutBucketPolicy", BUCKET, {}, "denied"),
    ("iam:PassRole", ROLE, {"iam:PassedToService": "emr-serverless.amazonaws.com"}, "denied"),
    ("sts:AssumeRole", ROLE, {}, "denied"),
]
VENDOR_ROWS: list[Row] = [
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/supaflow_crm/"}, "S3/ListUnderPrefix"),
    ("s3:GetBucketLocation", BUCKET, {}, "S3/InspectBucket"),
    ("s3:PutObject", OTHERS_FILE, CREATED, "S3/WriteObjects"),
    ("s3:GetObject", OTHERS_FILE, {}, "S3/WriteObjects"),
    # what its document lists for its own files
    ("s3:DeleteObject", OTHERS_FILE, {}, "S3/WriteObjects"),
    ("s3:PutObjectAcl", OTHERS_FILE, {}, "S3/WriteObjects"),
    ("s3:PutObjectTagging", OTHERS_FILE, {}, "S3/WriteObjects"),
    ("glue:GetCatalogImportStatus", CATALOG, {}, "Glue/ReadCatalog"),
    ("glue:CreateDatabase", f"{DATABASE}/supaflow_crm", {}, "Glue/WriteTables"),
    ("glue:GetTables", f"{TABLE}/supaflow/x", {}, "Glue/WriteTables"),
    # the job's tables: no file more, none less, none read; and what describes them
    ("s3:DeleteObject", FILE, {}, "denied by S3/KeepOutOfTables"),
    ("s3:GetObject", FILE, {}, "denied by S3/KeepOutOfTables"),
    ("s3:PutObject", FILE, NEW, "denied by S3/KeepOutOfTables"),
    ("s3:PutObject", FILE, CREATED, "denied by S3/KeepOutOfTables resource/KeepObjectsOfTables"),
    ("glue:UpdateTable", f"{TABLE}/supaflow_nyc/flights", {}, "denied by Glue/KeepOutOfJobTables"),
    ("glue:CreateTable", f"{TABLE}/supaflow_nyc/airlines", {}, "denied by Glue/KeepOutOfJobTables"),
    ("glue:BatchCreatePartition", f"{TABLE}/supaflow_nyc/flights", {}, "denied by Glue/KeepOutOfJobTables"),
    ("glue:UpdateDatabase", f"{DATABASE}/supaflow_nyc", {}, "denied by Glue/KeepOutOfJobDatabases"),
    # the job's records, by listing too
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/_lakewriter/p/"}, "denied by S3/HideControlObjects"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/crm/_lakewriter/p/"}, "denied by S3/HideControlObjects"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/"}, "denied by S3/HideControlObjectsBelow"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/_la", "s3:delimiter": "_"}, "denied by S3/HideControlObjectsBelow"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/", "s3:delimiter": "/"}, "S3/ListUnderPrefix"),
    ("s3:GetObject", f"{BUCKET}/data/crm/_lakewriter/p/state.json", {}, "denied by S3/KeepOutOfControlObjects"),
    ("s3:PutObject", STATE, NEW, "denied by S3/KeepOutOfControlObjects"),
    ("s3:GetObject", STATE, {}, "denied by S3/KeepOutOfControlObjects"),
    ("s3:DeleteObject", STATE, {}, "denied by S3/KeepOutOfControlObjects"),
    ("s3:DeleteObjectVersion", OTHERS_FILE, {}, "denied"),
    ("s3:ReplicateObject", OTHERS_FILE, {}, "denied"),
    ("glue:GetDatabase", f"{DATABASE}/supaflowevil", {}, "denied"),
    ("glue:CreateTable", f"{TABLE}/supaflowevil/x", {}, "denied"),
    ("glue:DeleteDatabase", f"{DATABASE}/supaflow_crm", {}, "denied"),
    ("sts:AssumeRole", ROLE, {}, "denied"),
]
READER_ROWS: list[Row] = [
    ("s3:GetObject", FILE, {}, "S3/ReadObjects"),
    ("s3:GetObjectVersion", FILE, {}, "S3/ReadObjects"),
    ("kms:Decrypt", KEY, THROUGH_S3, "Kms/UseKeyThroughS3 resource/Account"),
    ("glue:GetPartitions", f"{TABLE}/supaflow_nyc/flights", {}, "Glue/ReadTables"),
    ("s3:PutObject", FILE, NEW, "denied"),
    ("s3:GetObject", STATE, {}, "denied by S3/KeepOutOfControlObjects"),
    ("kms:GenerateDataKey", KEY, THROUGH_S3, "denied"),
    ("glue:UpdateTable", f"{TABLE}/supaflow_nyc/flights", {}, "denied"),
]
CATALOG_ROWS: list[Row] = [
    ("s3:PutObject", OTHERS_FILE, CREATED, "S3/WriteObjects"),
    ("s3:DeleteObject", OTHERS_FILE, {}, "S3/WriteObjects"),
    ("s3:PutObject", STATE, NEW, "denied by S3/KeepOutOfControlObjects"),
    ("glue:GetTable", f"{TABLE}/supaflow_nyc/flights", {}, "denied"),
]
JOB_ROWS: list[Row] = [
    ("sts:AssumeRole", ROLE, {}, "AssumeRole/TakeDestinationRole"),
    ("secretsmanager:GetSecretValue", SECRET, {}, "Secrets/ReadSecrets"),
    ("ssm:GetParameter", PARAMETER, {}, "Secrets/ReadParameters"),
    ("s3:ListBucket", LANDING, {"s3:prefix": "nyc/flights/"}, "Sources/ListSource1"),
    # HeadObject on a folder: 'not found' instead of 'denied'
    ("s3:ListBucket", LANDING, {}, "Sources/ListSource1"),
    ("s3:GetObject", f"{LANDING}/nyc/flights/part-0.parquet", {}, "Sources/ReadSource1"),
    ("s3:GetObject", f"{LANDING}/nyc/airlines-2/part.csv", {}, "Sources/ReadSource1"),
    ("s3:GetObject", f"{LANDING}/nyc/flightsevil/part-0.parquet", {}, "denied"),
    ("s3:ListBucket", LANDING, {"s3:prefix": "nyc/secret/"}, "denied"),
    ("s3:PutObject", f"{LANDING}/nyc/flights/x", NEW, "denied"),
    ("s3:GetObject", FILE, {}, "denied"),
    ("sts:AssumeRole", f"{ROLE}2", {}, "denied"),
    ("secretsmanager:GetSecretValue", SECRET.replace("db-", "db2-"), {}, "denied"),
    ("ssm:GetParameter", f"{PARAMETER}2", {}, "denied"),
]
ASSUMING: dict[str, Any] = {"iam_role_arn": ROLE, "external_id": "${ssm:/lake/id}"}
OPTIONS = {"url": "u", "dbtable": "t", "password": f"${{secret:{SECRET}:password}}"}
WITH_SECRET = {"table": "t", "read": {"format": "jdbc", "options": OPTIONS}}


@pytest.mark.parametrize(
    ("who", "rows"),
    [
        (Who.LOADER, LOADER_ROWS),
        (Who.VENDOR, VENDOR_ROWS),
        (Who.READER, READER_ROWS),
        (Who.CATALOG, CATALOG_ROWS),
    ],
)
def test_at_the_destination(tmp_path: Path, who: Who, rows: list[Row]) -> None:
    own = made(tmp_path, who, {"encryption": "SSE-KMS"})
    at = {"s3": make_bucket_policy(lake(tmp_path).spec, ARNS), "kms": KEY_POLICY}
    assert decided(rows, own, at) == [row[-1] for row in rows]


def test_job_that_takes_a_role(tmp_path: Path) -> None:
    sources = [{"table": f"t{n}", "read": {"format": "csv", "path": f"s3://acme-landing/nyc/{p}"}} for n, p in SOURCES]
    own = made(tmp_path, Who.JOB, tables=[*sources, WITH_SECRET], **ASSUMING)
    assert decided(JOB_ROWS, own) == [row[-1] for row in JOB_ROWS]


SOURCES = [(1, "flights"), (2, "airlines-*/part.csv")]

RESET_ROWS: list[Row] = [
    ("glue:DeleteTable", f"{TABLE}/supaflow_crm/contact", {}, "Glue/ResetTables"),
    ("glue:DeleteDatabase", f"{DATABASE}/supaflow_crm", {}, "Glue/ResetTables"),
    ("glue:DeleteTable", f"{TABLE}/supaflow_nyc/flights", {}, "denied by Glue/KeepOutOfJobTables"),
    ("glue:BatchDeleteTable", f"{TABLE}/supaflow_nyc/flights", {}, "denied by Glue/KeepOutOfJobTables"),
    ("glue:DeleteDatabase", f"{DATABASE}/supaflow_nyc", {}, "denied by Glue/KeepOutOfJobDatabases"),
    ("glue:DeleteDatabase", f"{DATABASE}/supaflowevil", {}, "denied"),
]


def test_vendor_that_resets(tmp_path: Path) -> None:
    own = made(tmp_path, Who.VENDOR, {"allow_reset": True})
    assert decided(RESET_ROWS, own) == [row[-1] for row in RESET_ROWS]


# The vendor's text denies what it means to allow, and allows the databases of others.
VERBATIM_ROWS: list[Row] = [
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/x"}, "S3/AllowBucketListForPrefix"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data"}, "denied by Control/HideControlObjectsBelow"),
    ("s3:GetBucketLocation", BUCKET, {}, "denied"),
    ("s3:ListBucketMultipartUploads", BUCKET, {}, "denied"),
    ("glue:GetDatabase", f"{DATABASE}/supaflowevil", {}, "Glue/AllowDbAndTableReadWriteForSupaflowPrefix"),
    ("s3:PutObject", STATE, NEW, "denied by Control/KeepOutOfControlObjects"),
]


def test_vendor_verbatim(tmp_path: Path) -> None:
    own = made(tmp_path, Who.VENDOR, {"vendor_verbatim": True})
    assert decided(VERBATIM_ROWS, own) == [row[-1] for row in VERBATIM_ROWS]


def decided(rows: list[Row], own: dict[str, Document], at: dict[str, Document] | None = None) -> list[str]:
    """``at`` holds the resources' own policies by service."""
    requests = [Request(action, resource, context) for action, resource, context, _ in rows]
    under = {service: Policies(own, policy) for service, policy in (at or {}).items()}
    alone = Policies(own)
    found = simulate(requests, [under.get(action.partition(":")[0], alone) for action, *_ in rows])
    return [_said(decision) for decision in found]


def _said(decision: Decision) -> str:
    by = " ".join(decision.sids)
    return by if decision.allowed else f"denied by {by}" if by else "denied"
