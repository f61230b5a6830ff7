"""What the job does with objects; the entries of the vendor's troubleshooting page that a case is for are named."""

import pytest

from tests.doctor.pipeline import checked, spec, statuses
from tests.support.call import Answer, Call
from tests.support.faults import Proceed
from tests.support.server import StrictAws

# Access Denied on S3 operations: "Check S3 policy", "prefix matches your configuration", bucket policy
DENIED = [
    ("s3:ListBucket", "list", ["requester pays", "pending loads", "places of tables"]),
    (
        "s3:PutObject",
        "put",
        ["conditional write", "read", "multipart upload", "conditional completion", "abort upload"],
    ),
    ("s3:GetObject", "read", []),
    ("s3:ListBucketMultipartUploads", "list uploads", []),
    ("s3:AbortMultipartUpload", "abort upload", []),
    ("s3:DeleteObject", "delete", []),
]


@pytest.mark.parametrize(("action", "probe", "unasked"), DENIED)
def test_denied_s3_action(aws: StrictAws, bucket: str, action: str, probe: str, unasked: list[str]) -> None:
    aws.deny(action)
    findings = checked(spec())
    assert statuses(findings, "failed") == [probe]
    assert statuses(findings, "skipped") == unasked
    assert findings[probe].code == "S3_ACCESS_DENIED"
    assert findings[probe].message.startswith(f"{action} on s3://acme-lake/data/production/")
    assert findings[probe].remedy.startswith("Check the S3 policy of the role (bucket name and prefix in it)")


# A policy that is older than the default encryption of buckets: a put needs the header
@pytest.mark.parametrize("algorithm", ["AES256", "aws:kms"])
def test_policy_that_demands_a_header_of_encryption(aws: StrictAws, bucket: str, algorithm: str) -> None:
    def demand_header(call: Call, proceed: Proceed) -> Answer:
        sent = call.headers.get("x-amz-server-side-encryption")
        return call.denied() if call.method in ("PUT", "POST") and call.key and sent != algorithm else proceed(call)

    aws.interceptors.append(demand_header)
    findings = checked(spec())
    assert (statuses(findings, "failed"), findings["put"].code) == (["put"], "S3_ACCESS_DENIED")
    assert f"With the header 'x-amz-server-side-encryption: {algorithm}' it is allowed" in findings["put"].message
    assert '"Null": {"s3:x-amz-server-side-encryption": "false"}' in findings["put"].remedy
    assert aws.objects(bucket) == {}


def test_tables_apart_from_the_control_prefix(aws: StrictAws, bucket: str) -> None:
    apart = spec(prefix="").model_copy(update={"roots": ("changes", "shop/orders")})
    findings = checked(apart)
    assert findings["list"].message == "keys under 'changes/', 'shop/orders/' can be listed."
    assert findings["table paths"].message == "uploads can be created and aborted under 'changes/', 'shop/orders/'."
    assert (aws.objects(bucket), aws.uploads(bucket)) == ({}, [])


# Access Denied on S3 operations: "Ensure bucket is not configured for Requester Pays"
def test_requester_pays(aws: StrictAws, bucket: str) -> None:
    aws.requester_pays(bucket)
    findings = checked(spec())
    assert statuses(findings, "failed") == ["requester pays"]
    assert findings["requester pays"].code == "REQUESTER_PAYS"
    assert findings["requester pays"].remedy.startswith("Switch Requester Pays off")
    assert findings["put"].status == "skipped"


def test_requester_pays_where_listing_is_denied(aws: StrictAws, bucket: str) -> None:
    aws.requester_pays(bucket)
    aws.deny("s3:ListBucket")
    assert checked(spec())["put"].code == "REQUESTER_PAYS"
    assert aws.objects(bucket) == {}


@pytest.mark.parametrize(
    ("action", "key_action", "probe"),
    [("s3:PutObject", "kms:GenerateDataKey", "put"), ("s3:GetObject", "kms:Decrypt", "read")],
)
def test_denied_key(aws: StrictAws, bucket: str, action: str, key_action: str, probe: str) -> None:
    message = f"User: u is not authorized to perform: {key_action} on resource: arn:aws:kms:us-east-1:1:key/k"
    aws.deny(action, message=message)
    found = checked(spec())[probe]
    assert (found.status, found.code) == ("failed", "S3_ACCESS_DENIED")
    assert found.remedy == (
        f"Allow {key_action} on the bucket's KMS key, in the policy of the role and in that of the key."
    )


@pytest.mark.parametrize(("single_writer", "status"), [(False, "failed"), (True, "warning")])
def test_store_without_conditional_writes(aws: StrictAws, bucket: str, single_writer: bool, status: str) -> None:
    aws.conditional_writes = False
    findings = checked(spec(single_writer=single_writer))
    for name in ("conditional write", "conditional completion"):
        assert findings[name].status == status
        assert "If-None-Match" in findings[name].message
        assert "single_writer" in findings[name].remedy
    assert (aws.objects(bucket), aws.uploads(bucket)) == ({}, [])


def test_store_that_refuses_conditions(aws: StrictAws, bucket: str) -> None:
    def conditional(call: Call) -> bool:
        return bool({"if-none-match", "if-match"} & set(call.headers))

    aws.fail(conditional, status=501, code="NotImplemented", message="A header is not implemented.", times=9)
    findings = checked(spec(endpoint=aws.url))
    assert statuses(findings, "failed") == ["conditional write", "conditional completion"]
    assert findings["identity"].status == "skipped"


def test_a_doctor_that_could_not_delete_tries_again(aws: StrictAws, bucket: str) -> None:
    aws.fail(lambda call: call.action == "s3:DeleteObject", status=403, code="AccessDenied", times=1)
    findings = checked(spec())
    assert statuses(findings, "failed") == ["delete"]
    assert aws.objects(bucket) == {}
