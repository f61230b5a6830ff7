"""Who signs: secrets by their references, the default chain, and the role of a destination."""

import json
import os
import re
import time
from collections.abc import Callable, Mapping
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

from lakewriter.aws.answers import credentials_remedy, explain
from lakewriter.aws.request_hooks import watch_answers
from lakewriter.aws.required_fields import require_fields
from lakewriter.aws.vended import VendedCredentials, Vendor
from lakewriter.errors import CredentialsInvalidError, LakeError, RoleNotAssumableError, SecretUnresolvedError
from lakewriter.spec.access import Access, SecretText

SESSION_SECONDS: Final = 3600
"""The longest a chained role's session may last."""

_ROLE_RETRY_SECONDS: Final = 5.0
_MASKED: Final = re.compile(r"[*•●…]+|<?(redacted|masked|hidden|secret)>?", re.I)


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
    value = own_client("secretsmanager", region).get_secret_value(SecretId=arn)["SecretString"]
    return str(json.loads(value)[key]) if key else value


def _from_parameter_store(name: str, region: str | None) -> str:
    answer = own_client("ssm", region).get_parameter(Name=name, WithDecryption=True)
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


def config(**options: Any) -> Config:
    """What every client has in common."""
    return Config(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 8},
        user_agent_extra="lakewriter",
        max_pool_connections=32,
        **options,
    )


def own_client(service: str, region: str | None = None) -> Any:
    """A client with the default chain's credentials, for what is not at the destination."""
    client = boto3.client(service, region_name=region, config=config())  # type: ignore[call-overload]
    require_fields(client)
    watch_answers(client, set())
    return client


def session(access: Access, vendor: Vendor | None = None) -> botocore.session.Session:
    """A session that signs by the first that is named: the role, the keys, the vendor, the default chain."""
    if not access.role_arn and access.access_key_id:
        return _base_session(access)
    session = _empty_session(access)
    providers = session.get_component("credential_provider")
    if access.role_arn:
        # Never in a session with the keys: credentials that are set hide every provider.
        providers.insert_before("env", _AssumedRole(access))
    elif vendor is not None:
        providers.insert_before("env", VendedCredentials(vendor))
    return session


def _empty_session(access: Access) -> botocore.session.Session:
    session = botocore.session.Session()
    session.set_config_variable("region", access.region)
    return session


def _base_session(access: Access) -> botocore.session.Session:
    """A session with the keys given, else with the default chain's credentials: what a role is assumed with."""
    session = _empty_session(access)
    if access.access_key_id and access.secret_access_key:
        names = access.key_names
        key_id = _usable_key(access.access_key_id, names.access_key_id, access)
        session.set_credentials(key_id, _usable_key(access.secret_access_key, names.secret_access_key, access))
    return session


def _usable_key(secret: SecretText, name: str, access: Access) -> str:
    """The key's value; ``CREDENTIALS_INVALID`` for one that cannot be a key, such as what a form shows in its place."""
    value = resolve(secret, region=access.region)
    why = (
        "is blank" if not value
        else "is masked (****)" if _MASKED.fullmatch(value)
        else "begins or ends with a space, or holds a line's end" if value != value.strip() or not value.isprintable()
        else ""
    )  # fmt: skip
    if why:
        raise CredentialsInvalidError(f"the value of {name} {why}.", remedy=credentials_remedy(access))
    return value


class _AssumedRole(CredentialProvider):
    """Credentials of the destination's role, signed for with the keys given or the default chain's."""

    METHOD = "lakewriter-assumed-role"
    CANONICAL_NAME = "LakewriterAssumedRole"

    def __init__(self, access: Access) -> None:
        super().__init__()
        self._access = access
        self._reached: set[str] = set()

    def load(self) -> DeferredRefreshableCredentials:
        """Credentials that are fetched at their first use."""
        return DeferredRefreshableCredentials(method=self.METHOD, refresh_using=self._fetch)

    def _fetch(self) -> Any:
        base = _base_session(self._access)
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
            client = base.create_client(service, region_name=self._access.region, config=config(), **options)
            require_fields(client)
            watch_answers(client, self._reached)
            return client

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
