"""The customer-managed key and what its policy lets services do."""

from typing import Any

import pytest

from tests.infra.destination.lakes import of_type

pytestmark = pytest.mark.synth

ACCOUNT = {"aws:SourceAccount": "123456789012"}
LOG_GROUPS = "arn:aws:logs:us-east-1:123456789012:log-group:*"
TOPICS = "arn:aws:sns:us-east-1:123456789012:lakewriter-flights-prod-pipeline-*"
APPLICATIONS = "arn:aws:emr-serverless:us-east-1:123456789012:/applications/*"


def _service(sid: str, name: str, actions: list[str], condition: dict[str, Any]) -> dict[str, Any]:
    return {
        "Sid": sid,
        "Effect": "Allow",
        "Principal": {"Service": name},
        "Action": actions,
        "Resource": "*",
        "Condition": condition,
    }


def test_no_key_by_default(plain: dict[str, Any]) -> None:
    assert of_type(plain, "KMS::Key") == {}


def test_key_rotates(full: dict[str, Any]) -> None:
    assert of_type(full, "KMS::Key")["Key"]["EnableKeyRotation"] is True


def test_key_serves_this_accounts_logs_workers_and_alarms(full: dict[str, Any]) -> None:
    own, logs, workers, alarms, failures, *_ = of_type(full, "KMS::Key")["Key"]["KeyPolicy"]["Statement"]
    assert (own["Action"], own["Principal"]) == ("kms:*", {"AWS": "arn:aws:iam::123456789012:root"})
    assert logs == _service(
        "EncryptLogGroups",
        "logs.us-east-1.amazonaws.com",
        ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
        {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": LOG_GROUPS}},
    )
    assert workers == _service(
        "EncryptJobLogs",
        "emr-serverless.amazonaws.com",
        ["kms:Decrypt", "kms:GenerateDataKey"],
        {"StringEquals": ACCOUNT, "ArnLike": {"aws:SourceArn": APPLICATIONS}},
    )
    actions = ["kms:Decrypt", "kms:GenerateDataKey*"]
    assert alarms == _service("NotifyOfAlarms", "cloudwatch.amazonaws.com", actions, {"StringEquals": ACCOUNT})
    # docs.aws.amazon.com/sns/latest/dg/sns-key-management.html: no aws:SourceAccount, aws:SourceArn or aws:SourceOrgID
    assert failures == _service(
        "NotifyOfFailedLoads",
        "events.amazonaws.com",
        actions,
        {"ArnLike": {"kms:EncryptionContext:aws:sns:topicArn": [TOPICS]}},
    )
