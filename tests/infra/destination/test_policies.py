"""What is attached to whom; the documents themselves are tested where they are made."""

import json
from typing import Any

import pytest

from infra.destination.policies import find_wildcards
from infra.reasons import find_wildcard_reason
from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import TABLES, attached, lake, of_type

pytestmark = pytest.mark.synth

HIDDEN = ["KeepOutOfControlObjects", "HideControlObjects", "HideControlObjectsBelow"]
LOADS = {
    "S3": ["ListUnderPrefix", "InspectBucket", "WriteObjects"],
    "Glue": ["WriteTables", "AskLakeFormation"],
    "Kms": ["UseKeyThroughS3"],
}
WRITES = {
    "S3": ["ListUnderPrefix", "InspectBucket", "WriteObjects", *HIDDEN, "KeepOutOfTables"],
    "Glue": [
        "ReadCatalog",
        "WriteTables",
        "ResetTables",
        "KeepOutOfJobTables",
        "KeepOutOfJobDatabases",
        "AskLakeFormation",
    ],
    "Kms": ["UseKeyThroughS3"],
}
READS = {
    "S3": ["ListUnderPrefix", "InspectBucket", "ReadObjects", *HIDDEN],
    "Glue": ["ReadTables", "AskLakeFormation"],
    "Kms": ["UseKeyThroughS3"],
}  # fmt: skip
# Snowflake lists whole locations.
SNOWFLAKE_S3 = ["ListUnderPrefix", "InspectBucket", "ReadObjects", "KeepOutOfControlObjects"]
CATALOG_S3 = ["ListUnderPrefix", "InspectBucket", "WriteObjects", "KeepOutOfControlObjects"]


def test_each_consumer_has_its_own_permissions(full: dict[str, Any]) -> None:
    assert attached(full) == {
        "JobRole": {**LOADS, "Sources": ["ListSource1", "ReadSource1"]},
        "SupaflowConsumerRole": WRITES,
        "Second131b00396ConsumerRole": READS,
        "LaptopConsumerRole": LOADS,
        "SnowflakeCatalogConsumerRole": {"S3": CATALOG_S3, "Kms": WRITES["Kms"]},
        "SnowflakeComputeConsumerRole": {**READS, "S3": SNOWFLAKE_S3},
        "VendorUser": WRITES,
    }


def test_documents_reach_the_template_whole(plain: dict[str, Any]) -> None:
    """As CDK writes them: lists of one as their only member, actions in the order of the alphabet."""
    policies = of_type(plain, "IAM::ManagedPolicy").values()
    (s3,) = (each for each in policies if each["Description"].endswith("S3 for supaflow"))
    own = {statement["Sid"]: statement for statement in s3["PolicyDocument"]["Statement"]}
    assert own["ListUnderPrefix"] == {
        "Sid": "ListUnderPrefix",
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": "arn:aws:s3:::acme-lake",
        "Condition": {"StringLike": {"s3:prefix": ["data/production", "data/production/", "data/production/*"]}},
    }
    assert own["WriteObjects"] == {
        "Sid": "WriteObjects",
        "Effect": "Allow",
        "Action": [
            "s3:AbortMultipartUpload",
            "s3:DeleteObject",
            "s3:DeleteObjectTagging",
            "s3:GetObject",
            "s3:GetObjectAcl",
            "s3:ListMultipartUploadParts",
            "s3:PutObject",
            "s3:PutObjectAcl",
            "s3:PutObjectTagging",
        ],
        "Resource": "arn:aws:s3:::acme-lake/data/production/*",
    }
    assert own["KeepOutOfTables"] == {
        "Sid": "KeepOutOfTables",
        "Effect": "Deny",
        "Action": "s3:*",
        "Resource": "arn:aws:s3:::acme-lake/data/production/supaflow_nyc_public/flights/*",
    }


def test_job_that_takes_a_role_has_nothing_at_the_destination(synthesise: Synthesise) -> None:
    role = "arn:aws:iam::123456789012:role/LakeWriter"
    found = synthesise(lake(iam_role_arn=role))
    assert attached(found.template)["JobRole"] == {
        "AssumeRole": ["TakeDestinationRole"],
        "Sources": ["ListSource1", "ReadSource1"],
    }
    (warning,) = found.warnings
    assert role in warning


def test_policy_too_long_for_iam_is_several(synthesise: Synthesise) -> None:
    far_apart = [
        {"table": f"t{number}", "schema": "public", "read": {"format": "parquet", "path": f"s3://source-{number}/a"}}
        for number in range(100)
    ]
    template = synthesise({**lake(), "tables": [*TABLES, *far_apart]}).template
    names = list(attached(template)["JobRole"])
    assert names == ["S3", "Glue", "Sources", *(f"Sources{number}" for number in range(2, len(names) - 1))]
    assert 3 < len(names) < 10
    sizes = [len(json.dumps(each["PolicyDocument"])) for each in of_type(template, "IAM::ManagedPolicy").values()]
    assert max(sizes) < 2 * 6144  # with white space, and references in place of the account


def test_wildcards_are_spelt_as_cdk_nag_does() -> None:
    statement = {"Sid": "ReadSource2", "Effect": "Allow", "Action": ["s3:GetObject"]}
    denied = {**statement, "Effect": "Deny", "Resource": ["*"]}
    allowed = {**statement, "Resource": ["arn:aws:s3:::raw/odd${*}name", "arn:aws:s3:::raw/exact"]}
    found = dict(find_wildcards({"Version": "2012-10-17", "Statement": [denied, allowed]}))
    assert found == {"IAM5[Resource::arn:aws:s3:::raw/odd<*>name]": find_wildcard_reason("ReadSource2")}
