"""Sessions, roles, endpoints and clients: the only door to the AWS SDK."""

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import boto3
import botocore.session
from botocore.client import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    CredentialProvider,
    DeferredRefreshableCredentials,
)
from botocore.exceptions import BotoCoreError, ClientError

from job.aws_errors import ELSEWHERE, explain
from job.aws_vended import VendedCredentials, Vendor
from job.errors import LakeError, RoleNotAssumableError, SecretUnresolvedError
from job.spec import Access, SecretText

__all__ = ["BotoCoreError", "ClientError", "Clients", "code_of", "explain", "read_object", "resolve", "status_of"]

SESSION_SECONDS: Final = 3600
"""The longest a chained role's session may last."""

_ROLE_RETRY_SECONDS: Final = 5.0
_BROKEN_ANSWERS: Final = 5


def code_of(error: ClientError) -> str:
    """The service's error code."""
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    """The HTTP status of an error answer."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def resolve(secret: SecretText, *, region: str | None = None) -> str:
    """The secret's value; it stays in memory. ``SECRET_UNRESOLVED`` names the reference that led nowhere."""
    if secret.reference is None:
        return secret.text
    kind, name = secret.reference
    try:
        return _RESOLVERS[kind](name, region)
    except (BotoCoreError, ClientError, LookupError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}" if kind != "env" else "the environment has no such variable"
        raise SecretUnresolvedError(f"{secret.text} cannot be resolved ({reason}).", remedy=_REMEDIES[kind]) from error


def _from_env(name: str, _region: str | None) -> str:
    return os.environ[name]


def _from_secrets_manager(name: str, region: str | None) -> str:
    arn, _, key = name.rpartition(":") if name.count(":") > 6 or not name.startswith("arn:") else (name, "", "")
    arn, key = (arn, key) if arn else (name, "")
    if arn.startswith("arn:"):
        region = arn.split(":")[3]
    value = _own_client("secretsmanager", region).get_secret_value(SecretId=arn)["SecretString"]
    return str(json.loads(value)[key]) if key else value


def _from_parameter_store(name: str, region: str | None) -> str:
    answer = _own_client("ssm", region).get_parameter(Name=name, WithDecryption=True)
    return str(answer["Parameter"]["Value"])


_RESOLVERS: Final[Mapping[str, Callable[[str, str | None], str]]] = {
    "env": _from_env,
    "secret": _from_secrets_manager,
    "ssm": _from_parameter_store,
}
_REMEDIES: Final = {
    "env": "Export the variable, or name another one.",
    "secret": "Check the secret's ARN and JSON key, and allow secretsmanager:GetSecretValue on it.",
    "ssm": "Check the parameter's name, and allow ssm:GetParameter on it.",
}


def bucket_region(bucket: str) -> str:
    """The region a source's bucket says it is in, even to those it refuses; us-east-1 where a store names none."""
    try:
        answer: Mapping[str, Any] = _own_client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        answer = error.response
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    return str(headers.get("x-amz-bucket-region") or boto3.Session().region_name or "us-east-1")


def list_objects(bucket: str, prefix: str) -> tuple[list[tuple[str, int]], list[str]]:
    """Of a source's bucket the keys and sizes right under a prefix, in the keys' order, and the folders there."""
    pages = _own_client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
    keys: list[tuple[str, int]] = []
    folders: list[str] = []
    for page in pages:
        keys += [(item["Key"], item["Size"]) for item in page.get("Contents", [])]
        folders += [item["Prefix"] for item in page.get("CommonPrefixes", [])]
    return keys, folders


def _own_client(service: str, region: str | None = None) -> Any:
    """A client with the default chain's credentials, for what is not at the destination."""
    return boto3.client(service, region_name=region, config=_config())  # type: ignore[call-overload]


def default_keys() -> dict[str, str]:
    """The default chain's keys under pyarrow's names, for reading a source; none: to read without a signature."""
    credentials = boto3.Session().get_credentials()
    if credentials is None:
        return {}
    keys = credentials.get_frozen_credentials()
    named = {"access_key": keys.access_key, "secret_key": keys.secret_key, "session_token": keys.token}
    return {name: value for name, value in named.items() if value}


def read_object(client: Any, **arguments: Any) -> tuple[bytes, str]:
    """An object's content, or its ``Range``, and its etag.

    The SDK asks again until an answer begins; one that breaks off is asked for again here.
    """
    for _ in range(_BROKEN_ANSWERS):
        answer = client.get_object(**arguments)
        try:
            return answer["Body"].read(), str(answer["ETag"])
        except BotoCoreError as error:
            broken = error
    raise broken


class Clients:
    """The clients of one destination; credentials of a role or of a vendor are renewed before they expire.

    ``requests`` counts the HTTP requests sent, by method, retries included. A ``vendor`` is asked before the default
    chain, not where ``access`` names a role or keys.
    """

    def __init__(self, access: Access, vendor: Vendor | None = None) -> None:
        self.access = access
        self.requests: Counter[str] = Counter()
        self._counting = threading.Lock()
        self._session = boto3.Session(botocore_session=_session(access, vendor), region_name=access.region)
        self._made: dict[str, Any] = {}
        self._making = threading.Lock()
        self._by: dict[Vendor, Clients] = {}

    def by(self, vendor: Vendor) -> "Clients":
        """The clients of the same destination with the vendor's credentials; what they send is counted here."""
        with self._making:
            if vendor not in self._by:
                clients = self._by[vendor] = Clients(self.access, vendor)
                clients.requests, clients._counting = self.requests, self._counting
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
        return self._client("glue", config=_config())

    @property
    def sts(self) -> Any:
        """STS with the destination's own credentials."""
        return self._client("sts", config=_config())

    @property
    def iam(self) -> Any:
        """IAM, which has no regions."""
        return self._client("iam", config=_config())

    def _client(self, service: str, **options: Any) -> Any:
        with self._making:
            if service not in self._made:
                client = self._session.client(service, **options)  # type: ignore[call-overload]
                client.meta.events.register_first("needs-retry.s3", _refuse_redirect)
                client.meta.events.register("before-send", self._count)
                self._made[service] = client
            return self._made[service]

    def _count(self, request: Any, **_: Any) -> None:
        with self._counting:
            self.requests[request.method] += 1


def _refuse_redirect(response: Any, operation: Any, **_: Any) -> None:
    """Raise what the SDK would otherwise follow: data must not go to a region nobody named."""
    parsed: Any = response[1] if response else {}
    if str(parsed.get("Error", {}).get("Code", "")) in ELSEWHERE:
        raise ClientError(parsed, operation.name)


@lru_cache(maxsize=32)
def shared_clients(access: Access, vendor: Vendor | None = None) -> Clients:
    """One set of clients per destination, vendor and process: Spark's Python workers live for many tasks."""
    return Clients(access, vendor)


def _config(**options: Any) -> Config:
    return Config(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 8},
        user_agent_extra="lakewriter",
        max_pool_connections=32,
        **options,
    )


def _s3_config(access: Access) -> Config:
    path_style = access.endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    checksums = "when_required" if access.checksum_algorithm is None else "when_supported"
    return _config(
        s3={"addressing_style": "path" if path_style else "auto"},
        request_checksum_calculation=checksums,
        response_checksum_validation=checksums,
    )


def _session(access: Access, vendor: Vendor | None) -> botocore.session.Session:
    session = _own_session(access)
    providers = session.get_component("credential_provider")
    if access.role_arn:
        providers.insert_before("env", _AssumedRole(access))
    elif vendor is not None:
        providers.insert_before("env", VendedCredentials(vendor))
    return session


def _own_session(access: Access) -> botocore.session.Session:
    """A session with the keys given, else with the default chain's credentials."""
    session = botocore.session.Session()
    session.set_config_variable("region", access.region)
    if access.access_key_id and access.secret_access_key:
        key_id = resolve(access.access_key_id, region=access.region)
        session.set_credentials(key_id, resolve(access.secret_access_key, region=access.region))
    return session


class _AssumedRole(CredentialProvider):
    """Credentials of the destination's role, signed for with the default chain's."""

    METHOD = "lakewriter-assumed-role"
    CANONICAL_NAME = "LakewriterAssumedRole"

    def __init__(self, access: Access) -> None:
        super().__init__()
        self._access = access

    def load(self) -> DeferredRefreshableCredentials:
        """Credentials that are fetched at their first use."""
        return DeferredRefreshableCredentials(method=self.METHOD, refresh_using=self._fetch)

    def _fetch(self) -> Any:
        base = _own_session(self._access)
        credentials = base.get_credentials()
        if credentials is None:
            raise RoleNotAssumableError(
                f"no AWS credentials to assume {self._access.role_arn} with.",
                remedy="Configure credentials: a profile, environment variables, or the job's role.",
            )
        arguments: dict[str, Any] = {"RoleSessionName": "lakewriter", "DurationSeconds": SESSION_SECONDS}
        if self._access.external_id is not None:
            arguments["ExternalId"] = resolve(self._access.external_id, region=self._access.region)

        def create(service: str, **options: Any) -> Any:
            return base.create_client(service, region_name=self._access.region, config=_config(), **options)

        fetcher = AssumeRoleCredentialFetcher(create, credentials, str(self._access.role_arn), extra_args=arguments)
        return self._insist(fetcher.fetch_credentials)

    def _insist(self, fetch: Callable[[], Any]) -> Any:
        """A role made a moment ago is refused for up to a minute, so a refusal is asked again until then."""
        end = time.monotonic() + self._access.role_wait_seconds
        while True:
            try:
                return fetch()
            except (ClientError, BotoCoreError) as error:
                failure: LakeError = explain(error, doing="sts:AssumeRole", access=self._access)
                refused = isinstance(failure, RoleNotAssumableError) and isinstance(error, ClientError)
                if not refused or time.monotonic() >= end:
                    raise failure from error
                time.sleep(min(_ROLE_RETRY_SECONDS, max(0.0, end - time.monotonic())))
