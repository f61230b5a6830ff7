"""Roles and their credentials in the embedded STS."""

from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError

from tests.support.sdk import refused, sdk
from tests.support.server import StrictAws

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"

TRUST = [
    # registered external id, given external id, registered principal, assumable
    ("id-1", {"ExternalId": "id-1"}, None, True),
    ("id-1", {"ExternalId": "ID-1"}, None, False),
    ("id-1", {}, None, False),
    (None, {}, None, True),
    (None, {}, "arn:aws:iam::123456789012:root", True),
    (None, {}, "arn:aws:iam::210987654321:root", False),
    (None, {}, "arn:aws:sts::123456789012:user/moto", True),
    (None, {}, "arn:aws:iam::123456789012:role/Other", False),
]


@pytest.mark.parametrize(("registered", "given", "principal", "assumable"), TRUST)
def test_role_is_assumed_by_whom_it_trusts(
    aws: StrictAws, registered: str | None, given: dict[str, str], principal: str | None, assumable: bool
) -> None:
    aws.role(ROLE, registered, principal)
    request = {"RoleArn": ROLE, "RoleSessionName": "session", **given}
    if assumable:
        assert (
            sdk("sts").assume_role(**request)["AssumedRoleUser"]["Arn"]
            == "arn:aws:sts::123456789012:assumed-role/LakeWriter/session"
        )
    else:
        assert refused(lambda: sdk("sts").assume_role(**request)) == (403, "AccessDenied")


def test_unknown_role_is_refused_in_words(aws: StrictAws) -> None:
    with pytest.raises(ClientError, match="not authorized to perform: sts:AssumeRole on resource: " + ROLE):
        sdk("sts").assume_role(RoleArn=ROLE, RoleSessionName="session")


@pytest.mark.parametrize(
    ("arn", "external_id"), [(ROLE, "id-1 "), ("arn:aws:iam::123456789012:user/LakeWriter", "id-1")]
)
def test_malformed_request_is_a_validation_error(aws: StrictAws, arn: str, external_id: str) -> None:
    aws.role(ROLE, "id-1")
    request = {"RoleArn": arn, "RoleSessionName": "session", "ExternalId": external_id}
    assert refused(lambda: sdk("sts").assume_role(**request)) == (400, "ValidationError")


def test_session_expires(aws: StrictAws, bucket: str) -> None:
    aws.role(ROLE)
    aws.session_seconds(60)
    given = sdk("sts").assume_role(RoleArn=ROLE, RoleSessionName="session")["Credentials"]
    assert given["Expiration"] < datetime.now(UTC) + timedelta(seconds=61)
    keys = {"aws_access_key_id": given["AccessKeyId"], "aws_secret_access_key": given["SecretAccessKey"]}
    s3 = sdk("s3", **keys, aws_session_token=given["SessionToken"])
    s3.head_bucket(Bucket=bucket)
    aws.clock = lambda: datetime.now(UTC) + timedelta(seconds=61)
    assert refused(lambda: s3.put_object(Bucket=bucket, Key="a", Body=b"")) == (400, "ExpiredToken")
