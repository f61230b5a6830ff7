"""Requests that come too late, keys that cannot be keys, endpoints that never answer; nothing leaves the process."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import EndpointConnectionError

from lakewriter.aws import BotoCoreError, ClientError, Clients, explain
from lakewriter.aws.request_hooks import ServiceClock
from lakewriter.aws.vended import Vended
from lakewriter.errors import CredentialsInvalidError, EndpointUnreachableError
from lakewriter.spec.access import Access, KeyNames

ACCESS = Access(bucket="acme-lake", region="us-east-1", role_wait_seconds=0)
LISTING = (
    b"<ListBucketResult><Name>acme-lake</Name><IsTruncated>false</IsTruncated><KeyCount>0</KeyCount></ListBucketResult>"
)


def dead() -> Exception:
    return EndpointConnectionError(endpoint_url="https://user:hush@s3.nowhere.example")


class Body:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def stream(self, **_: object) -> list[bytes]:
        return [self.content]


class Vendor:
    """Gives out a new session at each call."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self) -> Vended:
        self.given += 1
        return Vended(f"AKIA{self.given}", "secret", "token", datetime.now(UTC) + timedelta(hours=1))


def refused(code: str) -> tuple[int, bytes]:
    return 400, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()


def s3(clients: Clients, *answers: tuple[int, bytes] | Exception) -> tuple[Any, list[str]]:
    """The client with its answers, and the access keys that requests were signed with."""
    left, signers = list(answers), []

    def answer(request, **_):
        signers.append(str(request.headers["Authorization"]).partition("Credential=")[2].partition("/")[0])
        given = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(given, Exception):
            raise given
        return AWSResponse(request.url, given[0], HTTPHeaders(), Body(given[1]))

    clients.s3.meta.events.register("before-send.s3", answer)
    return clients.s3, signers


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda _: None)
    for name, value in {"AWS_ACCESS_KEY_ID": "AKIA0", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}.items():
        monkeypatch.setenv(name, value)


LATE = [
    # what the answers say, whether a session can be renewed, who signs; a good answer comes last
    (["ExpiredToken"], True, ["AKIA1", "AKIA2"]),
    (["ExpiredTokenException"], True, ["AKIA1", "AKIA2"]),
    (["RequestTimeTooSkewed"], True, ["AKIA1", "AKIA1"]),
    (["RequestTimeTooSkewed"], False, ["AKIA0", "AKIA0"]),
]


@pytest.mark.parametrize(("codes", "renewed", "signers"), LATE)
def test_late_request_is_signed_again(codes, renewed, signers):
    client, seen = s3(Clients(ACCESS, Vendor() if renewed else None), *map(refused, codes), (200, LISTING))
    assert client.list_objects_v2(Bucket="acme-lake")["KeyCount"] == 0
    assert seen == signers


ENDS = [
    # the code, whether a session can be renewed, requests, words of the message
    ("ExpiredToken", True, 2, "the credentials have expired (ExpiredToken: no). Renew the session"),
    ("ExpiredToken", False, 1, "the credentials have expired (ExpiredToken: no). Renew the session"),
    ("RequestTimeTooSkewed", False, 2, "the clock of this machine and the service's differ too much"),
]


@pytest.mark.parametrize(("code", "renewed", "requests", "words"), ENDS)
def test_late_request_is_signed_again_once(code, renewed, requests, words):
    client, seen = s3(Clients(ACCESS, Vendor() if renewed else None), refused(code))
    with pytest.raises(ClientError) as caught:
        client.list_objects_v2(Bucket="acme-lake")
    error = explain(caught.value, doing="s3:ListBucket", access=ACCESS)
    assert (len(seen), error.code, error.transient) == (requests, "TIMEOUT", True)
    assert words in str(error)


@pytest.mark.parametrize("reached", [False, True])
def test_endpoint_that_does_not_answer(reached):
    answers = [(200, LISTING), dead()] if reached else [dead()]
    client, _ = s3(Clients(ACCESS), *answers)
    if reached:
        client.list_objects_v2(Bucket="acme-lake")
    with pytest.raises(BotoCoreError) as caught:
        client.list_objects_v2(Bucket="acme-lake")
    error = explain(caught.value, doing="s3:ListBucket", access=ACCESS)
    expected = ("TIMEOUT", 75) if reached else ("ENDPOINT_UNREACHABLE", 1)
    assert (error.code, error.exit_code) == expected
    assert "https://s3.nowhere.example" in str(error)
    assert "hush" not in str(error)


NAMES = KeyNames(region="s3_bucket_region", endpoint="s3_endpoint")
ADDRESSES = [
    # the endpoint, what the message says to check
    (None, "Check s3_bucket_region, and the network path"),
    ("https://store.example", "Check s3_endpoint, and the network path"),
]


@pytest.mark.parametrize(("endpoint", "words"), ADDRESSES)
def test_remedy_of_a_dead_endpoint_names_the_users_key(endpoint, words):
    own = ACCESS.model_copy(update={"endpoint": endpoint, "key_names": NAMES})
    client, _ = s3(Clients(own), dead())
    with pytest.raises(BotoCoreError) as caught:
        client.list_objects_v2(Bucket="acme-lake")
    error = explain(caught.value, doing="s3:ListBucket", access=own)
    assert isinstance(error, EndpointUnreachableError)
    assert words in error.remedy


KEYS = [
    # the secret key's value, what is wrong with it
    ("****", "is masked (****)"),
    ("**********", "is masked (****)"),
    ("•••••", "is masked (****)"),
    ("secret\n", "begins or ends with a space, or holds a line's end"),
    ("sec\nret", "begins or ends with a space, or holds a line's end"),
    (" secret", "begins or ends with a space, or holds a line's end"),
    ("", "is blank"),
]


@pytest.mark.parametrize("role", [None, "arn:aws:iam::123456789012:role/LakeWriter"])
@pytest.mark.parametrize(("value", "why"), KEYS)
def test_keys_that_cannot_be_keys(monkeypatch, value, why, role):
    """Before any request is sent, and without the value in the message."""
    monkeypatch.setenv("STORE_SECRET", value)
    keys = {"access_key_id": "AKIA0", "secret_access_key": "${env:STORE_SECRET}", "role_arn": role}
    names = KeyNames(secret_access_key="awsSecretAccessKey")
    with pytest.raises(CredentialsInvalidError) as caught:
        Clients(Access(**ACCESS.model_dump() | keys, key_names=names)).s3.list_objects_v2(Bucket="acme-lake")
    assert f"the value of awsSecretAccessKey {why}" in str(caught.value)


TIMES = [
    # The Date headers of answers, one each second; what the clock says ten seconds after the first one.
    # https://www.rfc-editor.org/rfc/rfc9110#name-date-time-formats
    (["Sun, 06 Nov 1994 08:49:37 GMT"], datetime(1994, 11, 6, 8, 49, 47, tzinfo=UTC)),
    (["Sun, 06 Nov 1994 08:49:37 +0100"], datetime(1994, 11, 6, 7, 49, 47, tzinfo=UTC)),
    (["Sun, 06 Nov 1994 08:49:37 GMT", "Mon, 07 Nov 1994 00:00:00 GMT"], datetime(1994, 11, 7, 0, 0, 9, tzinfo=UTC)),
    (["Sun, 06 Nov 1994 08:49:37 GMT", None, "yesterday"], datetime(1994, 11, 6, 8, 49, 47, tzinfo=UTC)),
    ([None, "", "yesterday"], None),
    ([], None),
]


@pytest.mark.parametrize(("headers", "expected"), TIMES)
def test_time_of_a_service(headers, expected):
    seconds = [0.0]
    clock = ServiceClock(lambda: seconds[0])
    for header in headers:
        clock.note(header)
        seconds[0] += 1
    seconds[0] = 10.0
    assert clock.read() == expected
