"""Make the clients of a destination's services, and read regions and objects of any bucket."""

import copy
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.client import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ResponseStreamingError
from urllib3.exceptions import HTTPError as TransportError

from lakewriter.aws.answers import explain, explain_settings
from lakewriter.aws.credentials import (
    choose_addressing,
    make_config,
    make_default_client,
    make_default_session,
    make_session,
)
from lakewriter.aws.error_codes import ELSEWHERE
from lakewriter.aws.request_hooks import ServiceClock, name_catalog, set_clock, watch_answers
from lakewriter.aws.required_fields import require_fields
from lakewriter.aws.vended import VendedCredentials, Vendor
from lakewriter.errors import LakeError
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import EVERYTHING, Abilities

_STREAM_PART: Final = 64 * 1024 * 1024
"""Bytes of a part of ``upload_stream``: S3 takes 10,000 of them."""
BROKEN_ANSWERS: Final = 5
"""An answer that breaks off so many times fails the read."""
_METADATA_BYTES: Final = 64 * 1024 * 1024
"""So many bytes of Iceberg's metadata are held: a table's manifests are read several times in a load."""
_PARTS_BYTES: Final = 32 * 1024 * 1024
"""So many bytes of small parts of data files are held: batches of a continuous run read those of the ones before."""


def read_error_code(error: ClientError) -> str:
    """Read the service's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def ask(request: Callable[[], Any], *, doing: str, access: Access, absent: Collection[str] = ()) -> Any:
    """Make one AWS call and return its answer, None for an error code in ``absent``; ``doing`` is as in ``explain``."""
    try:
        return request()
    except (ClientError, BotoCoreError) as error:
        if isinstance(error, ClientError) and read_error_code(error) in absent:
            return None
        raise explain(error, doing=doing, access=access) from error


def read_status(error: ClientError) -> int:
    """Read the HTTP status of an error response."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def find_bucket_region(bucket: str) -> str:
    """Find the region of a source's bucket by HEAD, even if it is refused; us-east-1 if the store names none."""
    try:
        answer: Mapping[str, Any] = make_default_client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        answer = error.response
    return _read_bucket_region(answer) or make_default_session().region_name or "us-east-1"


def _read_bucket_region(answer: Mapping[str, Any]) -> str | None:
    """Return the bucket's region by an answer, which S3 sends with a refusal too; None if it has none."""
    region: str | None = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("x-amz-bucket-region")
    return region


def fill_region(access: Access) -> Access:
    """Return ``access`` with the bucket's own region filled in, unless a region is given."""
    if access.region:
        return access
    guess = access.model_copy(update={"region": make_default_session().region_name or "us-east-1"})
    try:
        answer: Mapping[str, Any] = Clients(guess).s3.head_bucket(Bucket=access.bucket)
    except (ClientError, BotoCoreError) as error:
        answer = error.response if isinstance(error, ClientError) else {}
        if _read_bucket_region(answer) is None:
            raise explain(error, doing=f"s3:ListBucket on s3://{access.bucket}", access=guess) from error
    return guess.model_copy(update={"region": _read_bucket_region(answer) or guess.region})


def read_default_keys() -> dict[str, str]:
    """Read the default chain's keys under pyarrow's names; empty if there are none: then sources are read unsigned."""
    return _read_keys(make_default_session())


def _read_keys(session: boto3.Session) -> dict[str, str]:
    credentials = session.get_credentials()
    if credentials is None:
        return {}
    keys = credentials.get_frozen_credentials()
    named = {"access_key": keys.access_key, "secret_key": keys.secret_key, "session_token": keys.token}
    return {name: value for name, value in named.items() if value}


def read_object(client: Any, **arguments: Any) -> tuple[bytes, str]:
    """Read an object's content, or its ``Range``, and its etag; see ``read_answer``."""
    body, answer = read_answer(client, **arguments)
    return body, str(answer["ETag"])


def read_answer(client: Any, **arguments: Any) -> tuple[bytes, Any]:
    """Read an object's content, or its ``Range``, and the answer that has the content.

    The SDK retries only until a response begins, so a response that breaks off is requested again here. If an error
    response breaks off, the SDK raises the error of urllib3 instead of its own.
    """
    broken: BotoCoreError
    for _ in range(BROKEN_ANSWERS):
        try:
            answer = client.get_object(**arguments)
        except TransportError as error:
            broken = ResponseStreamingError(error=error)
            continue
        try:
            return answer["Body"].read(), answer
        except BotoCoreError as error:
            broken = error
    raise broken


class LastingObjects:
    """Objects that never change and that a process reads again and again, such as those of a continuous run's deleted
    keys: the ones that were used last, of so many bytes in all."""

    MOST_BYTES: ClassVar[int] = 256 * 1024**2

    def __init__(self, most_bytes: int | None = None) -> None:
        self._most = most_bytes
        self._bodies: dict[str, bytes] = {}
        self._size = 0
        self._using = threading.Lock()

    def __contains__(self, key: str) -> bool:
        return key in self._bodies

    def get(self, key: str, read: Callable[[str], bytes]) -> bytes:
        """Return an object, by ``read`` where it is not held."""
        body = self._bodies.get(key)
        if body is None:
            body = read(key)
        self.put(key, body)
        return body

    def put(self, key: str, body: bytes) -> None:
        """Hold an object as the one that was used last."""
        with self._using:
            self._size += len(body) - len(self._bodies.pop(key, b""))
            self._bodies[key] = body
            while self._size > (self._most or self.MOST_BYTES):
                self._size -= len(self._bodies.pop(next(iter(self._bodies))))

    def clear(self) -> None:
        """Hold nothing, so that each object is read again."""
        with self._using:
            self._bodies, self._size = {}, 0


class Clients:
    """The clients of one destination; credentials of a role or of a vendor are renewed before they expire.

    ``requests`` counts the HTTP requests sent, by method, retries included. If ``access`` names neither a role nor
    keys, the ``vendor`` is asked for credentials before the default chain. ``reached`` names the services that have
    answered at least once: a service outside it that does not answer is unreachable, one in it is busy. ``clock`` is
    S3's. ``lasting`` holds objects of the bucket, ``metadata`` Iceberg's files by location, ``parts`` small parts of
    data files, ``catalogs`` the sign-ins to REST catalogs. ``abilities`` are those of the bucket.
    """

    abilities: Abilities = EVERYTHING

    def __init__(self, access: Access, vendor: Vendor | None = None, reached: Iterable[str] = ()) -> None:
        self.access = access
        self.reached = set(reached)
        self.requests: Counter[str] = Counter()
        self.clock = ServiceClock()
        self.lasting = LastingObjects()
        self.metadata, self.parts = LastingObjects(_METADATA_BYTES), LastingObjects(_PARTS_BYTES)
        self.catalogs: dict[Hashable, Any] = {}
        self._counting = threading.Lock()
        self._session = boto3.Session(botocore_session=make_session(access, vendor), region_name=access.region)
        self._made: dict[str, Any] = {}
        self._making = threading.Lock()
        self._vended: dict[Vendor, Clients] = {}
        self._unvended = self

    def with_vendor(self, vendor: Vendor) -> "Clients":
        """Return the clients of the same destination with the vendor's credentials; they share this ``requests``."""
        with self._making:
            if vendor not in self._vended:
                clients = self._vended[vendor] = Clients(self.access, vendor)
                clients.requests, clients._counting = self.requests, self._counting
                clients.reached, clients.clock = self.reached, self.clock
                clients.metadata, clients.parts, clients.catalogs = self.metadata, self.parts, self.catalogs
                clients._unvended = self._unvended
            return self._vended[vendor]

    def at(self, bucket: str, abilities: Abilities) -> "Clients":
        """Return these clients for another bucket of the destination, or one of other abilities."""
        if (bucket, abilities) == (self.access.bucket, self.abilities):
            return self
        clients = copy.copy(self)
        clients.access, clients.abilities = self.access.model_copy(update={"bucket": bucket}), abilities
        return clients

    @property
    def is_vended(self) -> bool:
        """True if the vendor gives credentials; the first use asks it."""
        credentials = self._session.get_credentials()
        return credentials is not None and credentials.method == VendedCredentials.METHOD

    @property
    def s3(self) -> Any:
        """S3 in the bucket's region, at the custom endpoint if there is one."""
        return self._get_client("s3", endpoint_url=self.access.endpoint, config=_make_s3_config(self.access))

    @property
    def glue(self) -> Any:
        """Glue in the bucket's region; every call names the catalog's account, where it is another one."""
        return self._get_client("glue", config=make_config())

    @property
    def s3tables(self) -> Any:
        """S3 Tables in the bucket's region, whose Iceberg endpoint is another one."""
        return self._get_client("s3tables", config=make_config())

    @property
    def sts(self) -> Any:
        """STS with the destination's own credentials."""
        return self._get_client("sts", config=make_config())

    @property
    def iam(self) -> Any:
        """IAM, which has no regions."""
        return self._get_client("iam", config=make_config())

    def read_keys(self) -> dict[str, str]:
        """Read the destination's keys under pyarrow's names."""
        return _read_keys(self._session)

    def sign(self, service: str, method: str, url: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers that sign a request to a ``service`` of the bucket's region by SigV4, ``headers`` too.

        The credentials are the destination's own, never a vendor's, and are asked for each time: they are renewed.
        """
        credentials = self._unvended._session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        request = AWSRequest(method=method, url=url, data=body, headers=dict(headers))
        SigV4Auth(credentials.get_frozen_credentials(), service, self.access.region).add_auth(request)
        return dict(request.headers.items())

    def upload_stream(self, stream: Any, key: str) -> int:
        """Upload a stream of up to 640 GB as one object and return its size."""
        counted = _Counted(stream)
        self.s3.upload_fileobj(
            counted, self.access.bucket, key, Config=TransferConfig(multipart_chunksize=_STREAM_PART)
        )
        return counted.size

    def _get_client(self, service: str, **options: Any) -> Any:
        with self._making:
            if service not in self._made:
                with explain_settings():
                    client = self._session.client(service, **options)  # type: ignore[call-overload]
                client.meta.events.register_first("needs-retry.s3", _refuse_redirect)
                client.meta.events.register("before-send", self._count)
                require_fields(client)
                watch_answers(client, self.reached)
                if service == "glue" and self.access.catalog_account:
                    name_catalog(client, self.access.catalog_account)
                if service == "s3":
                    _keep_pace(client, Pace())
                    set_clock(client, self.clock)
                self._made[service] = client
            return self._made[service]

    def _count(self, request: Any, **_: Any) -> None:
        with self._counting:
            self.requests[request.method] += 1


class _Counted:
    """A stream that counts the bytes read from it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.size = 0

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._stream.read(size)
        self.size += len(data)
        return data


def _refuse_redirect(response: Any, operation: Any, **_: Any) -> None:
    """Raise a redirect instead of following it: data must not go to a region that the file does not name."""
    parsed: Any = response[1] if response else {}
    if str(parsed.get("Error", {}).get("Code", "")) in ELSEWHERE:
        raise ClientError(parsed, operation.name)


@lru_cache(maxsize=32)
def get_shared_clients(access: Access, vendor: Vendor | None = None) -> Clients:
    """Return this process's clients of a destination and vendor: Spark's Python workers live for many tasks.

    They count as reached, since the driver has called the services before it starts tasks.
    """
    return Clients(access, vendor, reached=("s3", "sts", "glue"))


def _make_s3_config(access: Access) -> Config:
    checksums = "when_required" if access.checksum_algorithm is None else "when_supported"
    return make_config(
        s3=choose_addressing(access.endpoint),
        request_checksum_calculation=checksums,
        response_checksum_validation=checksums,
    )


def find_account(access: Access) -> str | None:
    """Find the account of the catalog, by default that of the destination's credentials; None where STS does not say
    it within seconds."""
    if access.catalog_account:
        return access.catalog_account
    if access.role_arn:
        return access.role_arn.split(":")[4]
    session = boto3.Session(botocore_session=make_session(access), region_name=access.region)
    config = Config(connect_timeout=2, read_timeout=2, retries={"total_max_attempts": 1}, user_agent_extra="lakewriter")
    try:
        return str(session.client("sts", config=config).get_caller_identity()["Account"])
    except (BotoCoreError, ClientError, LakeError, KeyError):
        return None


THROTTLED: Final = frozenset({"RequestLimitExceeded", "SlowDown", "SlowDownRead", "SlowDownWrite", "TooManyRequests"})
"""Codes with which S3 and stores like it say that requests are too many. A 503 alone may be any fault."""
SLOWEST: Final = 5.0
"""Requests a second that are always sent."""
TRIES: Final = 40
"""A request that is refused each time is sent so often: for about a minute and a half."""
_LONGEST: Final = 5.0
_SLOWER: Final = 0.7
_FASTER: Final = 1.05
_SECONDS: Final = 1.0
"""The pace changes at most so often: requests under way when it became slower say nothing of the new pace."""


class Pace:
    """No limit until a service throttles; then 0.7 of what it answered in the last second, and 5 % more each second.

    The SDK's own ``adaptive`` mode goes down with every single refusal: with 64 threads it reaches a fifteenth of what
    the service allows.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock, self._sleep, self._lock = clock, sleep, threading.Lock()
        self._rate: float | None = None
        self._next = self._changed = self._counted_from = clock()
        self._answered, self._last = 0, 0.0

    def wait(self) -> None:
        """Wait for the turn of one request."""
        with self._lock:
            now = self._clock()
            if self._rate is None:
                return
            if now - self._changed >= _SECONDS:
                self._rate, self._changed = self._rate * _FASTER, now
            turn = max(self._next, now)
            self._next = turn + 1 / self._rate
        if turn > now:
            self._sleep(turn - now)

    def note(self, *, is_throttled: bool) -> None:
        """Note an answer."""
        with self._lock:
            now = self._clock()
            if is_throttled:
                self._slow_down(now)
                return
            if now - self._counted_from >= _SECONDS:
                self._last, self._answered, self._counted_from = self._answered / (now - self._counted_from), 0, now
            self._answered += 1

    def _slow_down(self, now: float) -> None:
        if self._rate is not None and now - self._changed < _SECONDS:
            return
        seen = max(self._last, self._answered / max(now - self._counted_from, _SECONDS))
        self._rate = max(SLOWEST, _SLOWER * min(seen, self._rate or seen))
        self._changed = self._next = now


def _keep_pace(client: Any, pace: Pace) -> None:
    """Delay the client's requests as ``pace`` says."""
    service = client.meta.service_model.service_id.hyphenize()

    def note(response: Any, attempts: int, **_: Any) -> float | None:
        """Note the answer; the seconds until a refused request is sent again, as its turn comes."""
        if response is None:
            return None
        is_throttled = str(response[1].get("Error", {}).get("Code", "")) in THROTTLED
        pace.note(is_throttled=is_throttled)
        # The SDK has a budget of some hundred repetitions, which is spent before the pace is found.
        return random.uniform(0, min(_LONGEST, 0.1 * attempts)) if is_throttled and attempts < TRIES else None

    client.meta.events.register_first(f"needs-retry.{service}.*", note)
    client.meta.events.register_first(f"before-send.{service}", lambda **_: pace.wait())
