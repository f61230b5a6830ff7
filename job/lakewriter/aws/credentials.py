"""Choose the credentials that sign: resolve secrets, use the default chain, assume the destination's role."""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
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
from botocore.loaders import Loader

from lakewriter.aws.answers import explain, explain_settings, make_credentials_remedy
from lakewriter.aws.request_hooks import watch_answers
from lakewriter.aws.required_fields import require_fields
from lakewriter.aws.vended import VendedCredentials, Vendor
from lakewriter.errors import (
    CredentialsInvalidError,
    LakeError,
    RoleNotAssumableError,
    SecretUnresolvedError,
    SpecInvalidError,
)
from lakewriter.spec.access import TRUSTED, Access, SecretText, find_origin, is_trusted

SESSION_SECONDS: Final = 3600
"""The longest a chained role's session may last."""

_ROLE_RETRY_SECONDS: Final = 5.0
_RESOLVED: Final[set[str]] = set()
"""The values of the secrets that were resolved."""
_MASKED: Final = re.compile(r"[*•●…]+|<?(redacted|masked|hidden|secret)>?", re.I)


def resolve(secret: SecretText, *, region: str | None = None) -> str:
    """Return the secret's value, which stays in memory; ``SECRET_UNRESOLVED`` names a reference that cannot be read."""
    if secret.reference is None:
        _RESOLVED.add(secret.text)
        return secret.text
    kind, name = secret.reference
    try:
        value = _RESOLVERS[kind](name, region)
    except (BotoCoreError, ClientError, LookupError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}" if kind != "env" else "the environment has no such variable"
        raise SecretUnresolvedError(f"{secret.text} cannot be resolved ({reason}).", remedy=_REMEDIES[kind]) from error
    _RESOLVED.add(value)
    return value


def resolve_all(secrets: Iterable[SecretText], *, region: str | None = None) -> dict[SecretText, str]:
    """Return the secrets' values; ``SECRET_UNRESOLVED`` names every reference that cannot be read."""
    values, missing = dict[SecretText, str](), list[SecretUnresolvedError]()
    for secret in dict.fromkeys(secrets):
        try:
            values[secret] = resolve(secret, region=region)
        except SecretUnresolvedError as error:
            missing.append(error)
    if missing:
        message = " ".join(error.message for error in missing)
        remedy = " ".join(dict.fromkeys(error.remedy for error in missing))
        raise SecretUnresolvedError(message, remedy=remedy) from missing[0]
    return values


def require_trusted(secret: SecretText, name: str, url: str) -> None:
    """Raise ``SPEC_INVALID`` for a reference whose value would be sent as it is to a server that the file names.

    A file from somebody else could send any secret of this machine to a server of that person. ``name`` is the
    secret's key in the file.
    """
    if secret.reference is None or is_trusted(url, os.environ.get(TRUSTED, "")):
        return
    raise SpecInvalidError(
        f"{name}: the value of {secret.text} would be sent to {find_origin(url)}, which this file names.",
        remedy=f"If you trust the file and the server, allow it outside the file: export {TRUSTED}={find_origin(url)}. "
        "lakewriter plan --offline asks no server.",
    )


def list_resolved() -> tuple[str, ...]:
    """List the values of all secrets that this process has resolved, to be masked in what others say."""
    return tuple(_RESOLVED)


def _read_variable(name: str, _region: str | None) -> str:
    return os.environ[name]


def _read_secret(name: str, region: str | None) -> str:
    arn, _, key = name.rpartition(":") if name.count(":") > 6 or not name.startswith("arn:") else (name, "", "")
    arn, key = (arn, key) if arn else (name, "")
    if arn.startswith("arn:"):
        region = arn.split(":")[3]
    value = make_default_client("secretsmanager", region).get_secret_value(SecretId=arn)["SecretString"]
    return str(json.loads(value)[key]) if key else value


def _read_parameter(name: str, region: str | None) -> str:
    answer = make_default_client("ssm", region).get_parameter(Name=name, WithDecryption=True)
    return str(answer["Parameter"]["Value"])


_RESOLVERS: Final[Mapping[str, Callable[[str, str | None], str]]] = {
    "env": _read_variable,
    "secret": _read_secret,
    "ssm": _read_parameter,
}
_REMEDIES: Final = {
    "env": "Export the variable, or name another one.",
    "secret": "Check the secret's ARN and JSON key, and allow secretsmanager:GetSecretValue on it.",
    "ssm": "Check the parameter's name, and allow ssm:GetParameter on it.",
}


def make_config(**options: Any) -> Config:
    """Make the configuration that all clients share."""
    return Config(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 8},
        user_agent_extra="lakewriter",
        max_pool_connections=64,
        **options,
    )


def find_endpoint() -> str | None:
    """Return the endpoint of S3 that the environment names; None for AWS's own."""
    return os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")


def choose_addressing(endpoint: str | None) -> dict[str, str]:
    """Choose how S3's clients name a bucket: in the path at an endpoint beside AWS's, whose DNS may not have it."""
    return {"addressing_style": "path" if endpoint or find_endpoint() else "auto"}


def make_default_client(service: str, region: str | None = None) -> Any:
    """Make a client with the default chain's credentials, for sources and secrets."""
    with explain_settings():
        client = boto3.client(service, region_name=region, config=make_config())  # type: ignore[call-overload]
    require_fields(client)
    watch_answers(client, set())
    return client


def make_default_session() -> boto3.Session:
    """Make a session of the default chain, for sources and for the region where the file gives none."""
    with explain_settings():
        return boto3.Session()


def make_session(access: Access, vendor: Vendor | None = None) -> botocore.session.Session:
    """Make a session that signs with the first of these that is given: role, keys, vendor, default chain."""
    if not access.role_arn and access.access_key_id:
        return _make_base_session(access)
    session = _make_empty_session(access)
    providers = session.get_component("credential_provider")
    if access.role_arn:
        # Not in a session that has the keys: set_credentials makes botocore skip every provider.
        providers.insert_before("env", _AssumedRole(access))
    elif vendor is not None:
        providers.insert_before("env", VendedCredentials(vendor, access.key_names))
    return session


def _make_empty_session(access: Access) -> botocore.session.Session:
    session = botocore.session.Session()
    session.set_config_variable("region", access.region)
    with explain_settings():
        # As botocore itself reads AWS_DATA_PATH.
        folders = str(session.get_config_variable("data_path") or "").split(os.pathsep)
    extra = tuple(str(Path(os.path.expandvars(folder)).expanduser()) for folder in folders if folder)
    session.register_component("data_loader", _make_loader(extra))
    return session


@cache
def _make_loader(extra: tuple[str, ...]) -> Loader:
    """Make the loader of the services' models, one in a process: every load has a session of its own, which would list
    and parse them again, and that takes longer than all else that makes a client.

    Clients do not change what they are given of a model.
    """
    return Loader(extra_search_paths=list(extra))


def _make_base_session(access: Access) -> botocore.session.Session:
    """Make the session that assumes the role: with the given keys, else with the default chain."""
    session = _make_empty_session(access)
    if access.access_key_id and access.secret_access_key:
        names = access.key_names
        if access.endpoint and not access.role_arn and not access.is_approved:
            # Each request carries the key id as it is. With a role, only STS is sent it.
            require_trusted(access.access_key_id, names.access_key_id, access.endpoint)
        resolve_all((access.access_key_id, access.secret_access_key), region=access.region)
        key_id = _require_usable_key(access.access_key_id, names.access_key_id, access)
        session.set_credentials(key_id, _require_usable_key(access.secret_access_key, names.secret_access_key, access))
    return session


def _require_usable_key(secret: SecretText, name: str, access: Access) -> str:
    """Return the key's value; ``CREDENTIALS_INVALID`` if it cannot be a key, such as the mask that a form shows."""
    value = resolve(secret, region=access.region)
    why = (
        "is blank" if not value
        else "is masked (****)" if _MASKED.fullmatch(value)
        else "begins or ends with a space, or holds a line's end" if value != value.strip() or not value.isprintable()
        else ""
    )  # fmt: skip
    if why:
        raise CredentialsInvalidError(f"the value of {name} {why}.", remedy=make_credentials_remedy(access))
    return value


class _AssumedRole(CredentialProvider):
    """Assumes the destination's role with the given keys or the default chain's."""

    METHOD = "lakewriter-assumed-role"
    CANONICAL_NAME = "LakewriterAssumedRole"

    def __init__(self, access: Access) -> None:
        super().__init__()
        self._access = access
        self._reached: set[str] = set()

    def load(self) -> DeferredRefreshableCredentials:
        """Return credentials that are fetched at their first use."""
        return DeferredRefreshableCredentials(method=self.METHOD, refresh_using=self._fetch)

    def _fetch(self) -> Any:
        base = _make_base_session(self._access)
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
            client = base.create_client(service, region_name=self._access.region, config=make_config(), **options)
            require_fields(client)
            watch_answers(client, self._reached)
            return client

        fetcher = AssumeRoleCredentialFetcher(create, credentials, str(self._access.role_arn), extra_args=arguments)
        return self._retry_refusals(fetcher.fetch_credentials)

    def _retry_refusals(self, fetch: Callable[[], Any]) -> Any:
        """Retry a refusal for ``role_wait_seconds``: IAM refuses a new role for up to a minute."""
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
