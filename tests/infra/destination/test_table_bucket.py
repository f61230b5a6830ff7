"""The table bucket of Amazon S3 Tables: made with its namespaces, or asked of its owner.

Properties: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-s3tables-tablebucket.html;
the key's policy: https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-kms-permissions.html
"""

import json
from typing import Any

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import attached, of_type

pytestmark = pytest.mark.synth

ARN = "arn:aws:s3tables:us-east-1:123456789012:bucket/acme-tables"
ELSEWHERE = ARN.replace("123456789012", "999999999999")
READ = {"format": "csv", "path": "s3://acme-landing/t.csv"}
ANALYSTS = {
    "principal": "arn:aws:iam::210987654321:role/Analysts", "name": "analysts", "external_id": "acme-1",
    "access": "read",
}  # fmt: skip


def lake(deployment: dict[str, Any] | None = None, arn: str = ARN) -> dict[str, Any]:
    """Two schemas in a table bucket, read by a party."""
    return {
        "pipeline": "shop",
        "destination": {
            "type": "lakewriter-s3", "location": "s3://acme-lake/production", "region": "us-east-1",
            "catalog": "s3_tables", "table_bucket_arn": arn, "database": "shop",
        },
        "tables": [{"table": "orders", "read": READ}, {"table": "leads", "schema": "crm", "read": READ}],
        "deployment": {"account": "123456789012", "trust": [ANALYSTS], **(deployment or {})},
    }  # fmt: skip


@pytest.fixture(scope="module")
def keyed(synthesise: Synthesise) -> dict[str, Any]:
    return synthesise(lake({"encryption": "SSE-KMS"})).template


def test_table_bucket_and_namespaces(keyed: dict[str, Any]) -> None:
    key = {"Fn::GetAtt": ["Key", "Arn"]}
    assert of_type(keyed, "S3Tables::TableBucket") == {
        "TableBucket": {
            "TableBucketName": "acme-tables",
            "EncryptionConfiguration": {"KMSKeyArn": key, "SSEAlgorithm": "aws:kms"},
            # the 30 days of abort_incomplete_uploads_days and one more; noncurrent as long as versions of the bucket
            "UnreferencedFileRemoval": {"Status": "Enabled", "UnreferencedDays": 31, "NoncurrentDays": 30},
        }
    }
    made = {"Fn::GetAtt": ["TableBucket", "TableBucketARN"]}
    assert of_type(keyed, "S3Tables::Namespace") == {
        "NamespaceShop": {"Namespace": "shop", "TableBucketARN": made},
        "NamespaceShopCrm": {"Namespace": "shop_crm", "TableBucketARN": made},
    }
    kept = [keyed["Resources"][name]["DeletionPolicy"] for name in ("Bucket", "TableBucket", "NamespaceShop")]
    assert kept == ["RetainExceptOnCreate"] * 3


def test_the_service_may_use_the_key_for_these_tables(keyed: dict[str, Any]) -> None:
    policy = keyed["Resources"]["Key"]["Properties"]["KeyPolicy"]["Statement"]
    assert [each for each in policy if each.get("Sid") == "KeepTables"] == [
        {
            "Sid": "KeepTables",
            "Effect": "Allow",
            "Principal": {"Service": "maintenance.s3tables.amazonaws.com"},
            "Action": ["kms:Decrypt", "kms:GenerateDataKey"],
            "Resource": "*",
            "Condition": {"StringLike": {"kms:EncryptionContext:aws:s3:arn": [f"{ARN}/*"]}},
        }
    ]


EXISTING: list[tuple[dict[str, Any], str, bool]] = [
    # what the file says of a table bucket that is there; True where its policy has to grant the roles their access
    ({"existing": {"table_bucket": True}}, ARN, False),
    ({}, ELSEWHERE, True),
]


@pytest.mark.parametrize(("deployment", "arn", "granted"), EXISTING)
def test_a_table_bucket_that_is_there(
    synthesise: Synthesise, deployment: dict[str, Any], arn: str, granted: bool
) -> None:
    found = synthesise(lake(deployment, arn))
    assert of_type(found.template, "S3Tables::TableBucket") == of_type(found.template, "S3Tables::Namespace") == {}
    (warning,) = (each for each in found.warnings if each.startswith("Table bucket"))
    assert f"{arn} is used as it is. Have its owner set icebergUnreferencedFileRemoval" in warning
    assert "31 or more unreferencedDays" in warning
    grants = json.JSONDecoder().raw_decode(warning[warning.index("[{") :])[0] if granted else []
    assert {each["Principal"]["AWS"] for each in grants} == (
        {"<JobRole.Arn>", "<AnalystsConsumerRole.Arn>"} if granted else set()
    )
    assert {action.partition(":")[0] for each in grants for action in each["Action"]} <= {"s3tables"}
    assert {"S3Tables"} <= set(attached(found.template)["JobRole"])


def test_readers_have_no_objects_of_the_bucket(keyed: dict[str, Any]) -> None:
    assert list(attached(keyed)["AnalystsConsumerRole"]) == ["S3Tables", "Kms"]
