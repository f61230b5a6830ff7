"""What is brought is used as it is, and its owner told what a stack cannot do."""

import json
from typing import Any

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import SUPAFLOW, attached, lake, of_type

pytestmark = pytest.mark.synth

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROLE = "arn:aws:iam::123456789012:role/team/Job"


def _brought(synthesise: Synthesise, **existing: Any) -> tuple[dict[str, Any], str]:
    found = synthesise(lake({"trust": [SUPAFLOW], "existing": existing}))
    return found.template, " ".join(found.warnings)


def test_bucket(synthesise: Synthesise) -> None:
    template, warning = _brought(synthesise, bucket=True)
    assert of_type(template, "S3::Bucket") == of_type(template, "S3::BucketPolicy") == {}
    policy = json.loads(warning[warning.index(" [{") : warning.rindex("}]") + 2])
    assert [statement["Sid"] for statement in policy] == [
        "RequireTls",
        "KeepObjectsOfTables",
        "KeepOutOfControlObjects",
    ]
    assert policy[0]["Resource"] == ["arn:aws:s3:::acme-lake", "arn:aws:s3:::acme-lake/*"]
    assert policy[2]["Condition"]["ArnEquals"]["aws:PrincipalArn"] == ["<SupaflowConsumerRole.Arn>"]


def test_databases(synthesise: Synthesise) -> None:
    found = synthesise(lake({"existing": {"databases": True}}))
    assert of_type(found.template, "Glue::Database") == {}
    assert found.warnings == []


def test_job_role(synthesise: Synthesise) -> None:
    template, warning = _brought(synthesise, job_role_arn=ROLE)
    assert list(of_type(template, "IAM::Role")) == list(attached(template)) == ["SupaflowConsumerRole"]
    assert template["Outputs"]["JobRoleARN"]["Value"] == ROLE
    assert f"Role {ROLE} is used as it is" in warning


def test_key(synthesise: Synthesise) -> None:
    template, warning = _brought(synthesise, kms_key_arn=KEY)
    assert of_type(template, "KMS::Key") == {}
    (rule,) = of_type(template, "S3::Bucket")["Bucket"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"KMSMasterKeyID": KEY, "SSEAlgorithm": "aws:kms"}
    assert "Kms" in attached(template)["SupaflowConsumerRole"]
    assert KEY in warning
    assert "arn:aws:logs:us-east-1:<AWS::AccountId>:log-group:*" in warning


def test_log_bucket(synthesise: Synthesise) -> None:
    template, warning = _brought(synthesise, log_bucket="acme-logs")
    assert of_type(template, "S3::Bucket")["Bucket"]["LoggingConfiguration"] == {
        "DestinationBucketName": "acme-logs",
        "LogFilePrefix": "acme-lake/",
    }
    assert json.loads(warning[warning.index("{") : warning.rindex("}") + 1]) == {
        "Effect": "Allow",
        "Principal": {"Service": "logging.s3.amazonaws.com"},
        "Action": "s3:PutObject",
        "Resource": "arn:aws:s3:::acme-logs/acme-lake/*",
        "Condition": {
            "ArnLike": {"aws:SourceArn": "arn:aws:s3:::acme-lake"},
            "StringEquals": {"aws:SourceAccount": "<AWS::AccountId>"},
        },
    }


def test_store_with_an_endpoint_of_its_own(synthesise: Synthesise) -> None:
    store: dict[str, Any] = {"custom_s3_endpoint": "https://s3.example.com", "bucket_region": "nyc3"}
    found = synthesise(lake(**store))
    assert of_type(found.template, "S3::Bucket") == {}
    assert found.stack.region != "nyc3"
