"""Answers with status 200 that are not the service's own, one for every call that a load makes."""

import json
import re
from typing import Any

import pytest

from lakewriter.aws import ClientError, Clients, explain, resolve
from lakewriter.aws.required_fields import FOREIGN, REQUIRED
from lakewriter.errors import RoleNotAssumableError
from lakewriter.spec.access import Access, SecretText
from tests.support.call import Answer, Call

PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title><meta></head><body><p>Please sign in</body></html>"
XHTML = b"<html><body><p>Please sign in</p></body></html>"
OTHER_JSON = b'{"status": "ok"}'
BODIES = [PAGE, XHTML, OTHER_JSON, b""]

ACCESS = Access(bucket="acme-lake", region="us-east-1", role_wait_seconds=0)
OBJECT = {"Bucket": "acme-lake", "Key": "k"}
UPLOAD = OBJECT | {"UploadId": "u"}
PARTS = {"Parts": [{"PartNumber": 1, "ETag": '"e"'}]}
TABLE = {"DatabaseName": "d", "Name": "t"}
OPTIMIZER = {"CatalogId": "123456789012", "DatabaseName": "d", "TableName": "t", "Type": "retention"}
CONFIGURED = OPTIMIZER | {"TableOptimizerConfiguration": {"enabled": True}}

CALLS: list[tuple[str, str, dict[str, Any]]] = [
    # service, operation, arguments
    ("s3", "create_multipart_upload", OBJECT),
    ("s3", "upload_part", UPLOAD | {"PartNumber": 1, "Body": b"x"}),
    ("s3", "complete_multipart_upload", UPLOAD | {"MultipartUpload": PARTS}),
    ("s3", "put_object", OBJECT | {"Body": b"x"}),
    ("s3", "get_object", OBJECT),
    ("s3", "head_object", OBJECT),
    ("s3", "list_objects_v2", {"Bucket": "acme-lake"}),
    ("s3", "list_multipart_uploads", {"Bucket": "acme-lake"}),
    ("glue", "get_table", TABLE),
    ("glue", "get_database", {"Name": "d"}),
    ("glue", "get_partition", {"DatabaseName": "d", "TableName": "t", "PartitionValues": ["1"]}),
    ("glue", "get_partitions", {"DatabaseName": "d", "TableName": "t"}),
    ("glue", "get_table_optimizer", OPTIMIZER),
    ("sts", "get_caller_identity", {}),
    ("iam", "get_role", {"RoleName": "LakeWriter"}),
]
WITHOUT_FIELDS: list[tuple[str, str, dict[str, Any]]] = [
    # Their answers hold nothing; service, operation, arguments
    ("s3", "abort_multipart_upload", UPLOAD),
    ("s3", "delete_object", OBJECT),
    ("glue", "create_table", {"DatabaseName": "d", "TableInput": {"Name": "t"}}),
    ("glue", "update_table", {"DatabaseName": "d", "TableInput": {"Name": "t"}}),
    ("glue", "create_database", {"DatabaseInput": {"Name": "d"}}),
    ("glue", "create_table_optimizer", CONFIGURED),
    ("glue", "update_table_optimizer", CONFIGURED),
    ("glue", "delete_table_optimizer", OPTIMIZER),
    ("glue", "batch_create_partition", {"DatabaseName": "d", "TableName": "t", "PartitionInputList": []}),
]


@pytest.fixture
def clients(aws, bucket, monkeypatch) -> Clients:
    monkeypatch.setattr("time.sleep", lambda _: None)
    # These calls are the tests' own, not those of a load.
    monkeypatch.setattr(aws, "observers", [])
    return Clients(ACCESS)


def answers(aws, body: bytes, **headers: str) -> list[Call]:
    """Every call is answered 200 with the body, and is not applied."""
    seen: list[Call] = []

    def answer(call: Call, _proceed: object) -> Answer:
        seen.append(call)
        return Answer(200, (("Content-Type", "text/html"), *headers.items())).with_body(body)

    aws.interceptors.append(answer)
    return seen


@pytest.mark.one_in(3)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("service", "operation", "arguments"), CALLS, ids=[call[1] for call in CALLS])
def test_foreign_answer(aws, clients, service, operation, arguments, body):
    """It is asked for again, and then an answer that says neither yes nor no."""
    seen = answers(aws, body)
    with pytest.raises(ClientError) as caught:
        getattr(getattr(clients, service), operation)(**arguments)
    # The SDK itself makes a 500 of what is no XML.
    assert caught.value.response["Error"]["Code"] in (FOREIGN, "500")
    assert len(seen) == 8
    explained = explain(caught.value, doing=f"{service}:{operation}", access=ACCESS)
    assert (explained.code, explained.transient) == ("TIMEOUT", True)


@pytest.mark.parametrize("body", [PAGE, XHTML])
@pytest.mark.parametrize(
    ("service", "operation", "arguments"), WITHOUT_FIELDS, ids=[call[1] for call in WITHOUT_FIELDS]
)
def test_foreign_answer_where_none_has_fields(aws, clients, service, operation, arguments, body):
    answers(aws, body)
    with pytest.raises(ClientError, match=rf"{FOREIGN}|\(500\)"):
        getattr(getattr(clients, service), operation)(**arguments)


def test_every_operation_with_fields_has_its_case():
    asked = {operation.replace("_", "") for _, operation, _ in CALLS}
    listed = {name.partition(".")[2].lower() for name, fields in REQUIRED.items() if fields}
    # Those of IAM are alike; those below have tests of their own.
    assert {name for name in listed - asked if "polic" not in name} == {"assumerole", "getsecretvalue", "getparameter"}


LISTING = "<ListBucketResult><Name>acme-lake</Name>{}</ListBucketResult>"
ENTRY = "<Contents><Key>k</Key><LastModified>2024-01-15T00:00:00.000Z</LastModified>{}</Contents>"
UPLOADS = "<ListMultipartUploadsResult><Bucket>acme-lake</Bucket>{}</ListMultipartUploadsResult>"
ETAG = {"ETag": '"e"'}
PARTLY: list[tuple[str, dict[str, Any], str, dict[str, str], str]] = [
    # operation, more arguments, body, headers, what is missed
    ("list_objects_v2", {}, LISTING.format(""), {}, "IsTruncated"),
    ("list_objects_v2", {}, LISTING.format("<IsTruncated>true</IsTruncated>"), {}, "NextContinuationToken"),
    (
        "list_objects_v2",
        {},
        LISTING.format("<IsTruncated>false</IsTruncated>" + ENTRY.format("")),
        {},
        "Contents[].ETag",
    ),
    (
        "list_multipart_uploads",
        {},
        UPLOADS.format("<MaxUploads>1</MaxUploads><IsTruncated>true</IsTruncated>"),
        {},
        "NextKeyMarker",
    ),
    ("get_object", {"Key": "k", "Range": "bytes=0-1"}, "whole", ETAG, "ContentRange"),
    ("put_object", {"Key": "k", "Body": b"x"}, "<html/>", ETAG, "an empty body"),
    (
        "complete_multipart_upload",
        UPLOAD | {"MultipartUpload": PARTS},
        "<CompleteMultipartUploadResult><Key>k</Key></CompleteMultipartUploadResult>",
        {},
        "ETag",
    ),
]


@pytest.mark.parametrize(("operation", "arguments", "body", "headers", "missed"), PARTLY)
def test_answer_without_some(aws, clients, operation, arguments, body, headers, missed):
    answers(aws, body.encode(), **headers)
    with pytest.raises(ClientError, match=re.escape(f"HTTP 200 without {missed}: something else")):
        getattr(clients.s3, operation)(**({"Bucket": "acme-lake"} | arguments))


def test_error_in_the_body_of_a_completion_keeps_its_code(aws, clients):
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html"""
    seen = answers(
        aws, b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>"
    )
    with pytest.raises(ClientError) as caught:
        clients.s3.complete_multipart_upload(**UPLOAD, MultipartUpload=PARTS)
    assert (caught.value.response["Error"]["Code"], len(seen)) == ("InternalError", 8)


@pytest.mark.parametrize("body", BODIES)
def test_role_that_something_else_hands_out(aws, clients, body):
    answers(aws, body)
    with pytest.raises(Exception, match=FOREIGN) as caught:
        Clients(ACCESS.model_copy(update={"role_arn": "arn:aws:iam::123456789012:role/L"})).s3.list_buckets()
    assert not isinstance(caught.value, RoleNotAssumableError)


@pytest.mark.parametrize("reference", ["${ssm:/lake}", "${secret:lake}"])
def test_secret_that_something_else_gives(aws, clients, reference):
    answers(aws, json.dumps({"status": "ok"}).encode())
    with pytest.raises(Exception, match=FOREIGN):
        resolve(SecretText(reference), region="us-east-1")


def test_the_next_answer_is_the_services_own(aws, clients):
    aws.client("s3").put_object(Bucket="acme-lake", Key="k", Body=b"here")
    left = [PAGE, XHTML, b""]

    def answer(call: Call, proceed: Any) -> Answer:
        return Answer(200).with_body(left.pop()) if left else proceed(call)

    aws.interceptors.append(answer)
    assert clients.s3.get_object(Bucket="acme-lake", Key="k")["Body"].read() == b"here"
