"""Whole documents as they are attached; the vendor's own are those of its set-up page, placeholders filled in."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.policy.role_documents import Who, make_documents
from tests.policy.lakes import (
    ARNS,
    BUCKET,
    CATALOG,
    DATA,
    DATABASE,
    JOB_TABLES,
    OWN_TABLES,
    PREFIXED_TABLES,
    READ_TABLES,
    TABLE,
    VENDOR_TABLES,
    denied,
    lake,
    made,
    statement,
)

LIST = statement(
    "ListUnderPrefix", ["s3:ListBucket"], [BUCKET], {"StringLike": {"s3:prefix": ["data", "data/", "data/*"]}}
)
KEEP_OUT = {
    "Sid": "KeepOutOfControlObjects",
    "Effect": "Deny",
    "Action": ["s3:*"],
    "Resource": ["arn:aws:s3:::acme-lake/data/_lakewriter/*", "arn:aws:s3:::acme-lake/*/_lakewriter/*"],
}
LISTINGS = ["s3:ListBucket", "s3:ListBucketVersions"]
HIDE = denied(
    "HideControlObjects", LISTINGS, [BUCKET], {"StringLike": {"s3:prefix": ["_lakewriter*", "*/_lakewriter*"]}}
)
ABOVE = [
    "data", "data/", "data/_", "data/_l", "data/_la", "data/_lak", "data/_lake", "data/_lakew", "data/_lakewr",
    "data/_lakewri", "data/_lakewrit", "data/_lakewrite",
]  # fmt: skip
HIDE_BELOW = denied(
    "HideControlObjectsBelow",
    LISTINGS,
    [BUCKET],
    {"StringEquals": {"s3:prefix": ABOVE}, "StringNotEquals": {"s3:delimiter": "/"}},
)
OF_THE_JOB = [f"{BUCKET}/data/supaflow_nyc/{table}/*" for table in ("flights", "airlines")]
RECORDS = [f"{BUCKET}/data/_lakewriter/{folder}/*" for folder in ("p", "_writers")]
KEEP_FILES = denied("KeepOutOfTables", ["s3:*"], OF_THE_JOB)
KEEP_TABLES = [
    denied(
        "KeepOutOfJobTables",
        ["glue:Create*", "glue:Update*", "glue:Delete*", "glue:BatchCreate*", "glue:BatchUpdate*", "glue:BatchDelete*"],
        [f"{TABLE}/supaflow_nyc/{table}" for table in ("flights", "airlines", "lakewriter_check_*")],
    ),
    denied("KeepOutOfJobDatabases", ["glue:UpdateDatabase", "glue:DeleteDatabase"], [f"{DATABASE}/supaflow_nyc"]),
]
JOBS = [KEEP_OUT, HIDE, HIDE_BELOW, KEEP_FILES]
# Of the documents' actions on objects, without those that S3 alone uses or that delete what versioning keeps.
DOCUMENTED = [
    "s3:DeleteObject", "s3:DeleteObjectTagging", "s3:GetObjectAcl", "s3:PutObjectTagging", "s3:PutObjectAcl",
]  # fmt: skip
WRITE = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]
INSPECT = ["s3:GetBucketLocation", "s3:ListBucketMultipartUploads"]
LOADER_S3 = [
    LIST,
    statement("InspectBucket", [*INSPECT, "s3:GetLifecycleConfiguration"], [BUCKET]),
    statement("WriteObjects", [*WRITE, "s3:DeleteObject"], [*OF_THE_JOB, *RECORDS]),
]
VENDOR_S3 = [
    LIST,
    statement("InspectBucket", INSPECT, [BUCKET]),
    statement("WriteObjects", [*WRITE, *DOCUMENTED], DATA),
    *JOBS,
]
READER_S3 = [
    LIST,
    statement("InspectBucket", ["s3:GetBucketLocation"], [BUCKET]),
    statement("ReadObjects", ["s3:GetObject", "s3:GetObjectVersion"], DATA),
    KEEP_OUT,
    HIDE,
    HIDE_BELOW,
]
CATALOG_S3 = [
    LIST,
    statement("InspectBucket", ["s3:GetBucketLocation"], [BUCKET]),
    statement("WriteObjects", ["s3:GetObject", "s3:GetObjectVersion", "s3:PutObject", "s3:DeleteObject"], DATA),
    KEEP_OUT,
]
SOURCES = [
    statement(
        "ListSource1",
        ["s3:ListBucket"],
        ["arn:aws:s3:::acme-landing"],
        {
            "StringLikeIfExists": {
                "s3:prefix": ["nyc/flights", "nyc/flights/", "nyc/flights/*", "nyc/", "nyc/airlines-*"]
            }
        },
    ),
    statement(
        "ReadSource1",
        ["s3:GetObject"],
        [
            "arn:aws:s3:::acme-landing/nyc/flights",
            "arn:aws:s3:::acme-landing/nyc/flights/*",
            "arn:aws:s3:::acme-landing/nyc/airlines-*",
        ],
    ),
]
VENDOR_GLUE = [
    statement("ReadCatalog", ["glue:GetCatalog", "glue:GetCatalogs", "glue:GetCatalogImportStatus"], [CATALOG]),
    statement("WriteTables", VENDOR_TABLES, PREFIXED_TABLES),
    *KEEP_TABLES,
]

PLAIN: dict[Who, dict[str, list[dict[str, Any]]]] = {
    Who.JOB: {"S3": LOADER_S3, "Glue": [statement("WriteTables", JOB_TABLES, OWN_TABLES)], "Sources": SOURCES},
    Who.LOADER: {"S3": LOADER_S3, "Glue": [statement("WriteTables", JOB_TABLES, OWN_TABLES)]},
    Who.VENDOR: {"S3": VENDOR_S3, "Glue": VENDOR_GLUE},
    Who.CATALOG: {"S3": CATALOG_S3},
    Who.READER: {"S3": READER_S3, "Glue": [statement("ReadTables", READ_TABLES, PREFIXED_TABLES)]},
}


@pytest.mark.parametrize("who", PLAIN)
def test_plain_lake(tmp_path: Path, who: Who) -> None:
    found = made(tmp_path, who)
    assert list(found) == list(PLAIN[who])
    assert found == {name: {"Version": "2012-10-17", "Statement": those} for name, those in PLAIN[who].items()}


# The set-up pages of both connectors, steps 1 and 2; reset included. They differ in what may be read of the catalog.
CATALOG_READS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "supaflow-s3": (
        {"update_aws_glue_catalog": None, "sync_schema_with_aws_glue_catalog": True},
        ["glue:GetCatalogImportStatus"],
    ),
    "supaflow-s3-data-lake": ({}, ["glue:GetCatalog", "glue:GetCatalogs", "glue:GetCatalogImportStatus"]),
}
VERBATIM: dict[str, list[dict[str, Any]]] = {
    "S3": [
        statement(
            "AllowBucketListForPrefix",
            ["s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"],
            [BUCKET],
            {"StringLike": {"s3:prefix": ["data/*"]}},
        ),
        statement(
            "AllowObjectReadWriteInPrefix",
            [
                "s3:DeleteObjectTagging", "s3:ReplicateObject", "s3:PutObject", "s3:GetObjectAcl", "s3:GetObject",
                "s3:DeleteObjectVersion", "s3:PutObjectTagging", "s3:DeleteObject", "s3:PutObjectAcl",
                "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts",
            ],
            DATA,
        ),
    ],
    "Control": [*JOBS, *KEEP_TABLES],
    "Glue": [
        statement(
            "AllowDbAndTableReadWriteForSupaflowPrefix",
            [
                "glue:GetDatabase", "glue:GetDatabases", "glue:CreateDatabase", "glue:UpdateDatabase",
                "glue:GetTable", "glue:GetTables", "glue:CreateTable", "glue:UpdateTable", "glue:GetPartition",
                "glue:GetPartitions", "glue:CreatePartition", "glue:BatchCreatePartition",
            ],
            [CATALOG, f"{DATABASE}/supaflow*", f"{TABLE}/supaflow*/*"],
        ),
        statement(
            "AllowResetOperationsForSupaflowPrefix",
            ["glue:DeleteTable", "glue:BatchDeleteTable", "glue:DeleteDatabase"],
            [CATALOG, f"{DATABASE}/supaflow*", f"{TABLE}/supaflow*/*"],
        ),
    ],
}  # fmt: skip


@pytest.mark.parametrize("dialect", CATALOG_READS)
def test_vendor_verbatim(tmp_path: Path, dialect: str) -> None:
    settings, reads = CATALOG_READS[dialect]
    found = made(tmp_path, Who.VENDOR, {"vendor_verbatim": True}, type=dialect, **settings)
    assert list(found) == list(VERBATIM)
    reading = statement("AllowCatalogRead", reads, [CATALOG])
    assert {name: document["Statement"] for name, document in found.items()} == {
        **VERBATIM,
        "Glue": [reading, *VERBATIM["Glue"]],
    }


def test_verbatim_is_for_known_vendors(tmp_path: Path) -> None:
    loaded = lake(tmp_path, {"vendor_verbatim": True})
    other = loaded.spec.model_copy(update={"dialect": "other", "vendor": None})
    with pytest.raises(SpecInvalidError, match="whose vendor publishes a policy, got 'other'"):
        make_documents(other, loaded.deployment, Who.VENDOR, ARNS)
