"""Clients for a destination's services, and the region and objects of any bucket."""

import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError, ResponseStreamingError
from urllib3.exceptions import HTTPError as TransportError

from lakewriter.aws.answers import explain
from lakewriter.aws.credentials import config, own_client, session
from lakewriter.aws.error_codes import ELSEWHERE
from lakewriter.aws.request_hooks import watch_answers
from lakewriter.aws.required_fields import require_fields
from lakewriter.aws.vended import VendedCredentials, Vendor
from lakewriter.spec.access import Access

_STREAM_PART: Final = 64 * 1024 * 1024
_BROKEN_ANSWERS: Final = 5


def code_of(error: ClientError) -> str:
    """The service's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    """The HTTP status of an error answer."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def bucket_region(bucket: str) -> str:
    """The region a source's bucket says it is in, even to those it refuses; us-east-1 where a store names none."""
    try:
        answer: Mapping[str, Any] = own_client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        answer = error.response
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return str(headers.get("x-amz-bucket-region") or boto3.Session().region_name or "us-east-1")


def located(access: Access) -> Access:
    """``access`` with the region that the bucket itself says it is in, where none is given."""
    if access.region:
        return access
    guess = access.model_copy(update={"region": boto3.Session().region_name or "us-east-1"})
    try:
        answer: Mapping[str, Any] = Clients(guess).s3.head_bucket(Bucket=access.bucket)
    except ClientError as error:
        answer = error.response
        if "x-amz-bucket-region" not in answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}):
            raise explain(error, doing=f"s3:ListBucket on s3://{access.bucket}", access=guess) from error
    except BotoCoreError as error:
        raise explain(error, doing=f"s3:ListBucket on s3://{access.bucket}", access=guess) from error
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return guess.model_copy(update={"region": headers.get("x-amz-bucket-region") or guess.region})


def list_objects(bucket: str, prefix: str) -> tuple[list[tuple[str, int]], list[str]]:
    """Of a source's bucket the keys and sizes right under a prefix, in the keys' order, and the folders there."""
    pages = own_client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    keys: list[tuple[str, int]] = []
    folders: list[str] = []
    for page in pages:
        keys += [(item["Key"], item["Size"]) for item in page.get("Contents", [])]
        folders += [item["Prefix"] for item in page.get("CommonPrefixes", [])]
    return keys, folders


def default_keys() -> dict[str, str]:
    """The default chain's keys under pyarrow's names, for reading a source; none: to read without a signature."""
    return _named_keys(boto3.Session())


def _named_keys(session: boto3.Session) -> dict[str, str]:
    credentials = session.get_credentials()
    if credentials is None:
        return {}
    keys = credentials.get_frozen_credentials()
    named = {"access_key": keys.access_key, "secret_key": keys.secret_key, "session_token": keys.token}
    return {name: value for name, value in named.items() if value}


def read_object(client: Any, **arguments: Any) -> tuple[bytes, str]:
    """An object's content, or its ``Range``, and its etag.

    The SDK asks again until an answer begins; one that breaks off is asked for again here. Where that is an answer
    that says no, the SDK lets the transport's own error out.
    """
    broken: BotoCoreError
    for _ in range(_BROKEN_ANSWERS):
        try:
            answer = client.get_object(**arguments)
        except TransportError as error:
            broken = ResponseStreamingError(error=error)
            continue
        try:
            return answer["Body"].read(), str(answer["ETag"])
        except BotoCoreError as error:
            broken = error
    raise broken


class Clients:
    """The clients of one destination; credentials of a role or of a vendor are renewed before they expire.

    ``requests`` counts the HTTP requests sent, by method, retries included. A ``vendor`` is asked before the default
    chain, not where ``access`` names a role or keys. ``reached`` are services that are known to answer: others that do
    not are told apart from those that are busy.
    """

    def __init__(self, access: Access, vendor: Vendor | None = None, reached: Iterable[str] = ()) -> None:
        self.access = access
        self.reached = set(reached)
        self.requests: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._session = boto3.Session(botocore_session=session(access, vendor), region_name=access.region)
        self._made: dict[str, Any] = {}
        self._making = threading.Lock()
        self._by: dict[Vendor, Clients] = {}

    def by(self, vendor: Vendor) -> "Clients":
        """The clients of the same destination with the vendor's credentials; what they send is counted here."""
        with self._making:
            if vendor not in self._by:
                clients = self._by[vendor] = Clients(self.access, vendor)
                clients.requests, clients._counting = self.requests, self._counting
                clients.reached = self.reached
            return self._by[vendor]

    @property
    def vended(self) -> bool:
        """Whether the vendor has given credentials; it is asked now if it has not been before."""
        credentials = self._session.get_credentials()
        return credentials is not None and credentials.method == VendedCredentials.METHOD

    @property
    def s3(self) -> Any:
        """S3 in the bucket's region, at the custom endpoint if there is one."""
        return self._client("s3", endpoint_url=self.access.endpoint, config=_s3_config(self.access))

    @property
    def glue(self) -> Any:
        """Glue in the bucket's region."""
        return self._client("glue", config=config())

    @property
    def sts(self) -> Any:
        """STS with the destination's own credentials."""
        return self._client("sts", config=config())

    @property
    def iam(self) -> Any:
        """IAM, which has no regions."""
        return self._client("iam", config=config())

    def keys(self) -> dict[str, str]:
        """The destination's keys under pyarrow's names."""
        return _named_keys(self._session)

    def upload_stream(self, stream: Any, key: str) -> int:
        """An object of all that a stream gives, up to 640 GB; its size."""
        counted = _Counted(stream)
        self.s3.upload_fileobj(
            counted, self.access.bucket, key, Config=TransferConfig(multipart_chunksize=_STREAM_PART)
        )
        return counted.size

    def _client(self, service: str, **options: Any) -> Any:
        with self._making:
            if service not in self._made:
                client = self._session.client(service, **options)  # type: ignore[call-overload]
                client.meta.events.register_first("needs-retry.s3", _refuse_redirect)
                client.meta.events.register("before-send", self._count)
                require_fields(client)
                watch_answers(client, self.reached)
                self._made[service] = client
            return self._made[service]

    def _count(self, request: Any, **_: Any) -> None:
        with self._counting:
            self.requests[request.method] += 1


class _Counted:
    """A stream that knows how much was read of it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.size = 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size)
        self.size += len(data)
        return data


def _refuse_redirect(response: Any, operation: Any, **_: Any) -> None:
    """Raise what the SDK would otherwise follow: data must not go to a region nobody named."""
    parsed: Any = response[1] if response else {}
    if str(parsed.get("Error", {}).get("Code", "")) in ELSEWHERE:
        raise ClientError(parsed, operation.name)


@lru_cache(maxsize=32)
def shared_clients(access: Access, vendor: Vendor | None = None) -> Clients:
    """One set of clients per destination, vendor and process: Spark's Python workers live for many tasks.

    The driver has reached the services before there are tasks.
    """
    return Clients(access, vendor, reached=("s3", "sts", "glue"))


def _s3_config(access: Access) -> Config:
    path_style = access.endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    checksums = "when_required" if access.checksum_algorithm is None else "when_supported"
    return config(
        s3={"addressing_style": "path" if path_style else "auto"},
        request_checksum_calculation=checksums,
        response_checksum_validation=checksums,
    )
