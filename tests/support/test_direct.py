"""A request without a connection has the answer of one with a connection."""

from collections.abc import Callable
from contextlib import nullcontext
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.client import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from tests.support.direct import direct_requests
from tests.support.server import StrictAws

BUCKET = "acme-lake"
KEY = "data/é ü+%20/~a&b=c"
CHANGING = {"date", "x-amzn-requestid", "x-amz-request-id", "server", "connection", "last-modified"}


def list_answer(answer: Any) -> list[Any]:
    """Return what a client sees of an answer."""
    meta = answer.pop("ResponseMetadata")
    headers = {name: value for name, value in meta["HTTPHeaders"].items() if name not in CHANGING}
    body = answer.pop("Body").read() if "Body" in answer else None
    # The objects are made one after the other.
    for entry in (answer, *answer.get("Contents", ())):
        entry.pop("LastModified", None)
    return [meta["HTTPStatusCode"], headers, body, str(answer)]


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("put_object", {"Key": KEY, "Body": b"one\r\n\x00two"}),
    ("put_object", {"Key": "stream", "Body": lambda: BytesIO(b"x" * 100_000), "ChecksumAlgorithm": "CRC32"}),
    ("get_object", {"Key": KEY}),
    ("get_object", {"Key": KEY, "Range": "bytes=1-3"}),
    ("head_object", {"Key": KEY}),
    ("head_object", {"Key": "none"}),
    ("put_object", {"Key": KEY, "Body": b"", "IfNoneMatch": "*"}),
    ("list_objects_v2", {"Prefix": "data/é ü+%20/"}),
    ("delete_objects", {"Delete": {"Objects": [{"Key": KEY}]}}),
    ("delete_object", {"Key": KEY}),
]


def play(server: StrictAws, manager: Any) -> list[Any]:
    server.reset()
    server.client("s3").create_bucket(Bucket=BUCKET)
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    session = boto3.Session("testing", "testing", region_name="us-east-1")
    s3, seen = session.client("s3", endpoint_url=server.url, config=config), list[Any]()
    with manager:
        for name, arguments in CALLS:
            seen.append(
                ask(getattr(s3, name), {key: make() if callable(make) else make for key, make in arguments.items()})
            )
    return [seen, [(call.action, call.key, status) for call, status in server.history]]


def ask(call: Callable[..., Any], arguments: dict[str, Any]) -> list[Any]:
    try:
        return list_answer(call(Bucket=BUCKET, **arguments))
    except ClientError as error:
        return list_answer(error.response)


def test_answers(aws_server: StrictAws) -> None:
    connected, direct = play(aws_server, nullcontext()), play(aws_server, direct_requests(aws_server))
    assert [answer[0] for answer in direct[0]] == [200, 200, 200, 206, 200, 403, 412, 200, 200, 204]
    assert direct == connected


def test_lost_answer(aws: StrictAws, bucket: str) -> None:
    aws.drop_answer(lambda call: call.key == "a")
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    s3 = boto3.Session().client("s3", config=config)
    with direct_requests(aws), pytest.raises(ConnectionClosedError):
        s3.put_object(Bucket=bucket, Key="a", Body=b"1")
    assert aws.objects(bucket) == {"a": b"1"}


def test_failure_of_the_server(aws: StrictAws, bucket: str) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("a rule of a test is wrong")

    aws.interceptors.append(fail)
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    s3 = boto3.Session().client("s3", config=config)
    with direct_requests(aws), pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=bucket, Key="a", Body=b"1")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
