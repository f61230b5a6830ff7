"""Identity, role and bucket; the entries of the vendor's troubleshooting page that a case is for are named."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from lakewriter.doctor.identity import derive_session_arn
from lakewriter.spec.access import SecretText
from tests.doctor.pipeline import ROLE, checked, spec, statuses
from tests.support.call import Answer, Call
from tests.support.server import StrictAws

# Access Denied when assuming role; Invalid External ID
ROLES = [
    # registered external id and principal; configured ARN and external id; words of the message
    ((None, None, None), (ROLE, "id-1"), "not authorized to perform: sts:AssumeRole"),
    ((ROLE, "id-1", None), (ROLE, "ID-1"), "not authorized to perform: sts:AssumeRole"),
    ((ROLE, "id-1", None), (ROLE, None), "not authorized to perform: sts:AssumeRole"),
    ((ROLE, "id-1", None), (ROLE, "id-1 "), "failed to satisfy constraint"),
    ((ROLE, None, "arn:aws:iam::805595753828:root"), (ROLE, None), "not authorized to perform: sts:AssumeRole"),
    ((ROLE, None, None), ("arn:aws:iam::123456789012:role/LakeWrit", None), "not authorized to perform"),
    ((ROLE, None, None), ("LakeWriter", None), "'LakeWriter' is not the ARN of a role"),
    ((ROLE, None, None), (f"{ROLE} ", None), "is not the ARN of a role"),
]


@pytest.mark.parametrize(("registered", "configured", "words"), ROLES)
def test_role_that_cannot_be_assumed(
    aws: StrictAws, bucket: str, registered: Any, configured: tuple[str, str | None], words: str
) -> None:
    if registered[0]:
        aws.role(*registered)
    arn, external_id = configured
    findings = checked(spec(glue=True, role_arn=arn, external_id=external_id and SecretText(external_id)))
    found = findings["role"]
    assert (found.status, found.code) == ("failed", "ROLE_NOT_ASSUMABLE")
    assert words in found.message
    assert "ARN" in found.remedy
    assert findings["bucket"].status == findings["put"].status == findings["glue write nyc_public"].status == "skipped"


SESSIONS = [
    # the role's ARN, the ARN that STS gives a session of it
    (ROLE, "arn:aws:sts::123456789012:assumed-role/LakeWriter/lakewriter"),
    (
        "arn:aws:iam::123456789012:role/data/eu/LakeWriter",
        "arn:aws:sts::123456789012:assumed-role/LakeWriter/lakewriter",
    ),
    (
        "arn:aws-us-gov:iam::123456789012:role/Lake.Writer@eu",
        "arn:aws-us-gov:sts::123456789012:assumed-role/Lake.Writer@eu/lakewriter",
    ),
    ("arn:aws-cn:iam::123456789012:role/Lake", "arn:aws-cn:sts::123456789012:assumed-role/Lake/i-0abc"),
]


@pytest.mark.parametrize(("role", "session"), SESSIONS)
def test_session_of_the_role(role: str, session: str) -> None:
    found = derive_session_arn(role)
    assert found is not None
    assert session.startswith(found)


OTHERS = [
    # ARNs that are not of a session of ROLE
    "arn:aws:iam::123456789012:user/loader",
    "arn:aws:sts::123456789012:assumed-role/LakeWriterOther/lakewriter",
    "arn:aws:sts::123456789012:assumed-role/Lake/LakeWriter",
    "arn:aws:sts::210987654321:assumed-role/LakeWriter/lakewriter",
    "arn:aws-cn:sts::123456789012:assumed-role/LakeWriter/lakewriter",
]


@pytest.mark.parametrize("arn", OTHERS)
def test_another_identity_than_the_role(aws: StrictAws, bucket: str, arn: str) -> None:
    """STS answers the question who we are otherwise than it answered that for the role."""
    aws.role(ROLE)

    def answered(call: Call, proceed: Callable[[Call], Answer]) -> Answer:
        answer = proceed(call)
        if call.action != "sts:GetCallerIdentity":
            return answer
        return answer.with_body(re.sub(rb"<Arn>[^<]*", b"<Arn>" + arn.encode(), answer.body))

    aws.interceptors.append(answered)
    findings = checked(spec(role_arn=ROLE, access_key_id="AKIAGIVEN", secret_access_key="s"))
    found = findings["role"]
    assert (found.status, found.code) == ("failed", "ROLE_NOT_ASSUMABLE")
    assert f"requests are signed as {arn}, expected a session of {ROLE}" in found.message
    assert findings["put"].status == "skipped"


def test_role_beside_keys(aws: StrictAws, bucket: str) -> None:
    aws.role(ROLE, "id-1")
    keys: dict[str, Any] = {"access_key_id": "AKIAGIVEN", "secret_access_key": "s"}
    findings = checked(spec(role_arn=ROLE, external_id=SecretText("id-1"), **keys))
    assert findings["role"].status == "ok"
    assert "arn:aws:sts::123456789012:assumed-role/LakeWriter/lakewriter" in findings["role"].message
    given = {call.action for call, _ in aws.history if call.access_key == "AKIAGIVEN"}
    assert given == {"sts:GetCallerIdentity", "sts:AssumeRole"}


def test_space_around_the_external_id(aws: StrictAws, bucket: str) -> None:
    found = checked(spec(role_arn=ROLE, external_id=SecretText(" id-1")))["external id"]
    assert (found.status, found.code) == ("warning", "ROLE_NOT_ASSUMABLE")
    assert found.remedy == "Remove the space from external_id, or from the secret it refers to."


def test_external_id_that_is_nowhere(aws: StrictAws, bucket: str) -> None:
    findings = checked(spec(role_arn=ROLE, external_id=SecretText("${env:NO_SUCH_VARIABLE}")))
    assert (findings["external id"].status, findings["external id"].code) == ("failed", "SECRET_UNRESOLVED")
    assert findings["role"].status == "skipped"


def test_a_wrong_secret_is_told_with_the_bucket(aws: StrictAws, bucket: str) -> None:
    """A refused HEAD has no body; nothing else is asked then."""
    aws.fail(lambda call: call.action == "s3:ListBucket", status=403, code="SignatureDoesNotMatch", times=2)
    findings = checked(spec())
    assert (findings["bucket"].status, findings["bucket"].code) == ("failed", "CREDENTIALS_INVALID")
    assert {findings[name].status for name in ("clock", "requester pays", "list", "put", "delete")} == {"skipped"}


# Invalid External ID: "The security token included in the request is invalid"
@pytest.mark.parametrize("role", [None, ROLE])
def test_invalid_security_token(aws: StrictAws, bucket: str, role: str | None) -> None:
    message = "The security token included in the request is invalid"
    aws.fail(lambda call: call.service == "sts", status=403, code="InvalidClientTokenId", message=message, times=9)
    found = checked(spec(role_arn=role))["identity"]
    assert (found.status, found.code) == ("failed", "CREDENTIALS_INVALID")
    assert message in found.message
    assert found.remedy.startswith("Check the credentials of the profile")


# Access Denied on S3 operations: "Bucket does not exist"
def test_bucket_that_does_not_exist(aws: StrictAws) -> None:
    findings = checked(spec())
    found = findings["bucket"]
    assert (found.status, found.code) == ("failed", "BUCKET_NOT_FOUND")
    assert "'acme-lake' does not exist" in found.message
    assert found.remedy.startswith("Check s3_bucket_name")
    assert statuses(findings, "ok") == ["identity", "source files"]


# Access Denied on S3 operations: "Ensure bucket exists in the specified region"
@pytest.mark.parametrize("denied", [False, True])
def test_bucket_in_another_region(aws: StrictAws, denied: bool) -> None:
    where = {"LocationConstraint": "eu-west-1"}
    aws.client("s3", "eu-west-1").create_bucket(Bucket="acme-lake", CreateBucketConfiguration=where)
    if denied:
        aws.deny("s3:ListBucket")
    found = checked(spec())["bucket"]
    assert (found.status, found.code) == ("failed", "BUCKET_REGION_MISMATCH")
    assert (found.message, found.remedy) == (
        "bucket 'acme-lake' is in 'eu-west-1', not in 'us-east-1'.",
        "Set bucket_region to eu-west-1.",
    )


# Connection timeout
@pytest.mark.parametrize("role", [None, ROLE])
def test_no_answer(aws: StrictAws, bucket: str, role: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    aws.fail(lambda call: True, times=1000)
    findings = checked(spec(glue=True, role_arn=role))
    found = findings["identity" if role else "bucket"]
    assert (found.status, found.code) == ("failed", "TIMEOUT")
    assert found.remedy == "Check bucket_region and the network path, and try again."
    assert findings["put"].status == "skipped"


def test_no_answer_from_sts_where_no_role_needs_it(
    aws: StrictAws, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    aws.fail(lambda call: call.service == "sts", times=1000)
    findings = checked(spec())
    assert (findings["identity"].status, findings["identity"].code) == ("warning", "TIMEOUT")
    assert findings["put"].status == "ok"


@pytest.mark.parametrize(("minutes", "status"), [(4, "ok"), (6, "warning"), (-6, "warning")])
def test_clock(aws: StrictAws, bucket: str, minutes: int, status: str) -> None:
    aws.skew = timedelta(minutes=minutes)
    assert checked(spec())["clock"].status == status
