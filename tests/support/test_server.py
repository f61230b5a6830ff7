"""Each correction of the embedded S3, shown with the SDK."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError

from tests.support.call import Call
from tests.support.sdk import refused, sdk
from tests.support.server import StrictAws


def puts(call: Call) -> bool:
    return call.action == "s3:PutObject"


def test_missing_object_is_403_and_missing_bucket_is_404(bucket: str) -> None:
    s3 = sdk("s3")
    assert refused(lambda: s3.get_object(Bucket=bucket, Key="no")) == (403, "AccessDenied")
    assert refused(lambda: s3.head_object(Bucket=bucket, Key="no")) == (403, "403")
    assert refused(lambda: s3.get_object(Bucket="no-such-bucket", Key="no")) == (404, "NoSuchBucket")


def test_missing_object_is_404_when_switched_off(aws: StrictAws, bucket: str) -> None:
    aws.hide_missing = False
    assert refused(lambda: sdk("s3").get_object(Bucket=bucket, Key="no")) == (404, "NoSuchKey")


def test_objects_are_what_was_put(aws: StrictAws, bucket: str) -> None:
    sdk("s3").put_object(Bucket=bucket, Key="a/ü b+c.txt", Body=b"x" * 100_000)
    assert aws.objects(bucket) == {"a/ü b+c.txt": b"x" * 100_000}
    assert aws.calls == [("s3:PutObject", "arn:aws:s3:::acme-lake/a/ü b+c.txt", 200)]


@pytest.mark.parametrize("condition", [{"IfNoneMatch": "*"}, {"IfMatch": '"0"'}], ids=str)
def test_conditional_put_on_an_existing_key(aws: StrictAws, bucket: str, condition: dict[str, str]) -> None:
    s3 = sdk("s3")
    s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    again = {"Bucket": bucket, "Key": "k", "Body": b"2", **condition}
    assert refused(lambda: s3.put_object(**again)) == (412, "PreconditionFailed")
    aws.conditional_writes = False
    s3.put_object(**again)
    assert aws.objects(bucket) == {"k": b"2"}


def test_one_of_many_conditional_puts_wins(aws: StrictAws, bucket: str) -> None:
    s3 = sdk("s3")

    def put(number: int) -> int:
        try:
            s3.put_object(Bucket=bucket, Key="k", Body=b"%d" % number, IfNoneMatch="*")
        except ClientError as error:
            return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
        return number

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(put, range(8)))
    (winner,) = (number for number in outcomes if number != 412)
    assert aws.objects(bucket) == {"k": b"%d" % winner}


def test_conditional_completion_of_an_existing_key(aws: StrictAws, bucket: str) -> None:
    s3 = sdk("s3")
    first, second = (staged(s3, bucket, "k") for _ in range(2))
    s3.complete_multipart_upload(**first, IfNoneMatch="*")
    assert refused(lambda: s3.complete_multipart_upload(**second, IfNoneMatch="*")) == (412, "PreconditionFailed")
    assert refused(lambda: s3.complete_multipart_upload(**first, IfNoneMatch="*")) == (412, "PreconditionFailed")
    assert aws.uploads(bucket) == [("k", second["UploadId"])]


def test_gone_upload_is_no_such_upload(bucket: str) -> None:
    s3 = sdk("s3")
    upload = staged(s3, bucket, "k")
    s3.abort_multipart_upload(Bucket=bucket, Key="k", UploadId=upload["UploadId"])
    assert refused(lambda: s3.complete_multipart_upload(**upload)) == (404, "NoSuchUpload")
    part = {"Bucket": bucket, "Key": "k", "UploadId": upload["UploadId"], "PartNumber": 2}
    assert refused(lambda: s3.upload_part(**part, Body=b"2")) == (404, "NoSuchUpload")


def staged(s3: Any, bucket: str, key: str) -> dict[str, Any]:
    """The arguments that complete an upload of one part."""
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    etag = s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=b"1")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    return {"Bucket": bucket, "Key": key, "UploadId": upload, "MultipartUpload": parts}


def test_uploads_are_listed_with_their_start(aws: StrictAws, bucket: str) -> None:
    s3 = sdk("s3")
    aws.clock = lambda: datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
    staged(s3, bucket, "a")
    aws.clock = lambda: datetime(2024, 1, 16, 10, 30, tzinfo=UTC)
    staged(s3, bucket, "b")
    listed = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert {u["Key"]: u["Initiated"].day for u in listed} == {"a": 15, "b": 16}


def test_bucket_elsewhere_is_redirected_and_its_region_named(aws: StrictAws) -> None:
    where = {"LocationConstraint": "eu-west-1"}
    aws.client("s3", "eu-west-1").create_bucket(Bucket="acme-eu", CreateBucketConfiguration=where)
    assert sdk("s3").head_bucket(Bucket="acme-eu")["BucketRegion"] == "eu-west-1"
    assert aws.calls == [("s3:ListBucket", "arn:aws:s3:::acme-eu", 301), ("s3:ListBucket", "arn:aws:s3:::acme-eu", 200)]


def test_denied_action_on_a_resource(aws: StrictAws, bucket: str) -> None:
    s3 = sdk("s3")
    aws.deny("s3:PutObject", "arn:aws:s3:::acme-lake/x/*")
    assert refused(lambda: s3.put_object(Bucket=bucket, Key="x/1", Body=b"")) == (403, "AccessDenied")
    assert refused(lambda: s3.create_multipart_upload(Bucket=bucket, Key="x/1")) == (403, "AccessDenied")
    s3.put_object(Bucket=bucket, Key="y/1", Body=b"")
    assert [status for _, _, status in aws.calls] == [403, 403, 200]
    assert list(aws.objects(bucket)) == ["y/1"]


def test_deleting_several_objects_is_denied_one_by_one(aws: StrictAws, bucket: str) -> None:
    s3 = sdk("s3")
    for key in ("a", "b"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    aws.deny("s3:DeleteObject", "arn:aws:s3:::acme-lake/b")
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a"}, {"Key": "b"}]})
    assert ([d["Key"] for d in answer["Deleted"]], [e["Key"] for e in answer["Errors"]]) == (["a"], ["b"])
    assert aws.calls[-2:] == [
        ("s3:DeleteObject", "arn:aws:s3:::acme-lake/a", 200),
        ("s3:DeleteObject", "arn:aws:s3:::acme-lake/b", 403),
    ]


S3_ACTIONS = [
    (lambda s3: s3.head_bucket(Bucket="acme-lake"), "s3:ListBucket", ""),
    (lambda s3: s3.list_objects_v2(Bucket="acme-lake", Prefix="p/"), "s3:ListBucket", ""),
    (lambda s3: s3.list_multipart_uploads(Bucket="acme-lake"), "s3:ListBucketMultipartUploads", ""),
    (lambda s3: s3.get_bucket_location(Bucket="acme-lake"), "s3:GetBucketLocation", ""),
    (lambda s3: s3.get_object(Bucket="acme-lake", Key="k"), "s3:GetObject", "/k"),
    (lambda s3: s3.head_object(Bucket="acme-lake", Key="k"), "s3:GetObject", "/k"),
    (lambda s3: s3.delete_object(Bucket="acme-lake", Key="k"), "s3:DeleteObject", "/k"),
    (lambda s3: s3.list_parts(Bucket="acme-lake", Key="k", UploadId="u"), "s3:ListMultipartUploadParts", "/k"),
    (lambda s3: s3.abort_multipart_upload(Bucket="acme-lake", Key="k", UploadId="u"), "s3:AbortMultipartUpload", "/k"),
]


@pytest.mark.parametrize(("call", "action", "path"), S3_ACTIONS)
def test_s3_requests_are_named_as_iam_does(aws: StrictAws, call: Any, action: str, path: str) -> None:
    aws.deny("*")
    assert refused(lambda: call(sdk("s3")))[0] == 403
    assert aws.calls == [(action, f"arn:aws:s3:::acme-lake{path}", 403)]


def test_copy_needs_its_source_too(aws: StrictAws, bucket: str) -> None:
    sdk("s3").put_object(Bucket=bucket, Key="a", Body=b"")
    aws.deny("s3:GetObject", "arn:aws:s3:::acme-lake/a")
    source = {"Bucket": bucket, "Key": "a"}
    assert refused(lambda: sdk("s3").copy_object(Bucket=bucket, Key="b", CopySource=source)) == (403, "AccessDenied")


def test_requester_pays(aws: StrictAws, bucket: str) -> None:
    aws.requester_pays(bucket)
    s3 = sdk("s3")
    assert refused(lambda: s3.put_object(Bucket=bucket, Key="a", Body=b"")) == (403, "AccessDenied")
    s3.put_object(Bucket=bucket, Key="a", Body=b"", RequestPayer="requester")


def test_failed_call_is_not_applied(aws: StrictAws, bucket: str) -> None:
    aws.fail(puts)
    assert refused(lambda: sdk("s3").put_object(Bucket=bucket, Key="a", Body=b"1")) == (503, "SlowDown")
    assert aws.objects(bucket) == {}
    sdk("s3").put_object(Bucket=bucket, Key="a", Body=b"2")
    assert aws.objects(bucket) == {"a": b"2"}


def test_dropped_answer_is_of_an_applied_call(aws: StrictAws, bucket: str) -> None:
    aws.drop_answer(puts)
    with pytest.raises((ConnectionClosedError, HTTPClientError)):
        sdk("s3").put_object(Bucket=bucket, Key="a", Body=b"1")
    assert aws.objects(bucket) == {"a": b"1"}


def test_date_of_a_skewed_server(aws: StrictAws, bucket: str) -> None:
    aws.skew = timedelta(hours=1)
    date = sdk("s3").head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]["date"]
    assert datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC) > datetime.now(UTC) + timedelta(
        minutes=59
    )


def test_own_client_is_neither_denied_nor_recorded(aws: StrictAws, bucket: str) -> None:
    aws.deny("*")
    aws.client("s3").put_object(Bucket=bucket, Key="a", Body=b"")
    assert aws.calls == []
