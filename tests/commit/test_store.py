"""Answers of S3 that a store must not take at their word."""

from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.uploads import withdraw
from lakewriter.errors import S3AccessDeniedError
from lakewriter.receipt import Part, Receipt
from lakewriter.spec.access import Access
from tests.commit.intents import intent
from tests.support.call import Answer, Call
from tests.support.narrow import need
from tests.support.s3_rules import Proceed, moto_bucket
from tests.support.sdk import sdk
from tests.support.server import StrictAws

ACCESS = Access(bucket="acme-lake", region="us-east-1")
LOAD = Attempt("p", "a", "A1", datetime(2024, 1, 15, tzinfo=UTC), timedelta(days=30))


def removed_before(aws: StrictAws, method: str) -> None:
    """Another process deletes the object just before the store's call of this method arrives."""

    def remove(call: Call, proceed: Proceed) -> Answer:
        if call.method == method and call.key == "f":
            keys = need(moto_bucket(call.bucket)).keys
            if call.key in keys:
                keys.pop(call.key)
        return proceed(call)

    aws.interceptors.append(remove)


def refuse_deletion(aws: StrictAws, status: int, code: str) -> None:
    """S3 refuses to delete with a condition what is not there, in one of the ways that stores have."""

    def refuse(call: Call, proceed: Proceed) -> Answer:
        return call.error(status, code, "refused") if call.method == "DELETE" and call.key == "f" else proceed(call)

    aws.interceptors.append(refuse)


def test_folders(aws, bucket):
    for key in ("a/x", "a/y", "b/c/z", "d"):
        sdk("s3").put_object(Bucket=bucket, Key=f"data/_lakewriter/{key}", Body=b"")
    store = S3Store(Clients(Access(bucket=bucket, region="us-east-1")))
    assert list(store.list_folders("data/_lakewriter/")) == ["data/_lakewriter/a/", "data/_lakewriter/b/"]


def test_get_of_an_object_created_between_two_looks(aws, bucket):
    """S3 answers 403 for what is not there; that the listing shows it a moment later does not make it a refusal."""
    aws.client("s3").put_object(Bucket=bucket, Key="a", Body=b"here")
    aws.fail(
        lambda call: call.method == "GET" and call.key == "a", status=403, code="AccessDenied", message="Access Denied"
    )
    found = S3Store(Clients(Access(bucket=bucket, region="us-east-1"))).get("a")
    assert found is not None
    assert found[0] == b"here"


WITHDRAWN = [
    # Where another recoverer is quicker: the call that comes too late; whether a missing object is 403, as under a
    # policy for a prefix, or 404.
    ("HEAD", True),
    ("HEAD", False),
    ("DELETE", True),
    ("DELETE", False),
]


@pytest.mark.parametrize(("method", "hidden"), WITHDRAWN)
def test_withdrawing_what_another_recoverer_has_removed(aws, bucket, method, hidden):
    aws.hide_missing = hidden
    begun = aws.client("s3").create_multipart_upload(Bucket=bucket, Key="f", Metadata={"lakewriter-load": LOAD.load})
    where = {"Bucket": bucket, "Key": "f", "UploadId": begun["UploadId"]}
    part = aws.client("s3").upload_part(**where, PartNumber=1, Body=b"12345")
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    aws.client("s3").complete_multipart_upload(**where, MultipartUpload={"Parts": parts})
    receipt = Receipt(
        bucket=bucket, key="f", upload_id=begun["UploadId"], parts=(Part(1, part["ETag"]),), checksum_algorithm=None,
        size=5, rows=1, partition=0, seq=0, first_index=1, engine="none", row_groups=1, requests={},
    )  # fmt: skip
    removed_before(aws, method)
    withdraw(S3Store(Clients(ACCESS)), intent(LOAD, (receipt,)))
    assert aws.objects(bucket) == {}


@pytest.mark.parametrize("hidden", [True, False])
def test_look_at_an_object_deleted_after_it_was_listed(aws, bucket, hidden):
    aws.hide_missing = hidden
    aws.client("s3").put_object(Bucket=bucket, Key="f", Body=b"here")
    removed_before(aws, "HEAD")
    assert S3Store(Clients(ACCESS)).head("f") is None


REFUSED = [(403, "AccessDenied"), (404, "NotFound"), (404, "NoSuchKey"), (409, "ConditionalRequestConflict")]


@pytest.mark.parametrize(("status", "code"), REFUSED)
def test_deletion_refused_for_an_object_that_is_gone(aws, bucket, status, code):
    refuse_deletion(aws, status, code)
    S3Store(Clients(ACCESS)).delete("f", '"etag"')


def test_refusals_of_what_is_there_are_refusals(aws, bucket):
    aws.client("s3").put_object(Bucket=bucket, Key="f", Body=b"here")
    aws.deny("s3:GetObject")
    aws.deny("s3:DeleteObject")
    store = S3Store(Clients(ACCESS))
    for call in (lambda: store.find("f"), lambda: store.head("f"), lambda: store.delete("f", '"etag"')):
        with pytest.raises(S3AccessDeniedError):
            call()
    assert aws.objects(bucket) == {"f": b"here"}
