"""Answers of S3 that a store must not take at their word."""

from lakewriter.aws import Clients
from lakewriter.commit.s3_store import S3Store
from lakewriter.spec.access import Access


def test_get_of_an_object_created_between_two_looks(aws, bucket):
    """S3 answers 403 for what is not there; that the listing shows it a moment later does not make it a refusal."""
    aws.client("s3").put_object(Bucket=bucket, Key="a", Body=b"here")
    aws.fail(
        lambda call: call.method == "GET" and call.key == "a", status=403, code="AccessDenied", message="Access Denied"
    )
    found = S3Store(Clients(Access(bucket=bucket, region="us-east-1"))).get("a")
    assert found is not None
    assert found[0] == b"here"
