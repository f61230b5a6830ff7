"""Secrets, roles and errors, against the embedded AWS."""

import pytest

from job.aws import ClientError, Clients, explain, resolve
from job.errors import RoleNotAssumableError, SecretUnresolvedError
from job.spec import Access, SecretText

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"


def access(**fields):
    return Access(**({"bucket": "acme-lake", "region": "us-east-1", "role_wait_seconds": 0} | fields))


@pytest.fixture
def secrets(aws, monkeypatch):
    monkeypatch.setenv("LAKE_TOKEN", "from env")
    arn = aws.client("secretsmanager").create_secret(Name="lake", SecretString='{"password": "from secret"}')["ARN"]
    aws.client("ssm").put_parameter(Name="/lake/token", Value="from ssm", Type="SecureString")
    return arn


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("${env:LAKE_TOKEN}", "from env"),
        ("${ssm:/lake/token}", "from ssm"),
        ("${secret:ARN}", '{"password": "from secret"}'),
        ("${secret:ARN:password}", "from secret"),
        ("literal", "literal"),
    ],
)
def test_resolve(secrets, reference, expected):
    assert resolve(SecretText(reference.replace("ARN", secrets)), region="us-east-1") == expected


NO_SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:no-AbCdEf"
UNRESOLVED = ["${env:NOT_THERE}", "${ssm:/not/there}", "${secret:ARN:other}", f"${{secret:{NO_SECRET}}}"]


@pytest.mark.parametrize("reference", UNRESOLVED)
def test_unresolved(secrets, reference):
    text = reference.replace("ARN", secrets)
    with pytest.raises(SecretUnresolvedError) as caught:
        resolve(SecretText(text), region="us-east-1")
    assert caught.value.message.startswith(f"{text} cannot be resolved")
    assert "from secret" not in str(caught.value)


@pytest.mark.parametrize("external_id", ["right", None])
def test_role(aws, bucket, external_id):
    aws.role(ROLE, external_id)
    given = {"external_id": external_id} if external_id else {}
    assert Clients(access(role_arn=ROLE, **given)).s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


@pytest.mark.parametrize(("role", "external_id"), [(ROLE, "wrong"), (ROLE, None), (ROLE + "Other", "right")])
def test_role_that_is_refused(aws, bucket, role, external_id):
    aws.role(ROLE, "right")
    given = {"external_id": external_id} if external_id else {}
    with pytest.raises(RoleNotAssumableError) as caught:
        Clients(access(role_arn=role, **given)).s3.list_objects_v2(Bucket=bucket)
    assert role in caught.value.message
    assert "external" in caught.value.remedy


EXPLAINED = [
    # what was called, the answer's code and status, the code it ends in, whether a retry can help
    ("s3:ListBucket", "NoSuchBucket", 404, "BUCKET_NOT_FOUND", False),
    ("s3:ListBucket", "PermanentRedirect", 301, "BUCKET_REGION_MISMATCH", False),
    ("s3:PutObject", "AccessDenied", 403, "S3_ACCESS_DENIED", False),
    ("s3:PutObject", "SlowDown", 503, "TIMEOUT", True),
    ("s3:PutObject", "InternalError", 500, "TIMEOUT", True),
    ("sts:AssumeRole", "AccessDenied", 403, "ROLE_NOT_ASSUMABLE", False),
    ("sts:AssumeRole", "InvalidClientTokenId", 403, "ROLE_NOT_ASSUMABLE", False),
    ("sts:AssumeRole", "InternalFailure", 500, "TIMEOUT", True),
    ("glue:CreateTable", "AccessDeniedException", 400, "GLUE_ACCESS_DENIED", False),
    ("glue:CreateTable", "ThrottlingException", 400, "TIMEOUT", True),
]


@pytest.mark.parametrize(("doing", "code", "status", "expected", "transient"), EXPLAINED)
def test_explain(doing, code, status, expected, transient):
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error = explain(ClientError(answer, "Call"), doing=doing, access=access(role_arn=ROLE))
    assert (error.code, error.transient) == (expected, transient)
    assert str(error).startswith(f"{expected}: ")
