"""Answers of S3 that a store must not take at their word."""

from job.aws import Clients
from job.commit.store import S3Store
from job.spec import Access


def test_get_of_an_object_created_between_two_looks(aws, bucket):
    """S3 answers 403 for what is not there; that the listing shows it a moment later does not make it a refusal."""
    refused = []

    def create_behind(call, proceed):
        answer = proceed(call)
        if call.method == "GET" and call.key == "a" and not refused:
            refused.append(answer)
            aws.client("s3").put_object(Bucket=bucket, Key="a", Body=b"here")
        return answer

    aws.interceptors.append(create_behind)
    found = S3Store(Clients(Access(bucket=bucket, region="us-east-1"))).get("a")
    aws.interceptors.remove(create_behind)
    assert (len(refused), found and found[0]) == (1, b"here")
