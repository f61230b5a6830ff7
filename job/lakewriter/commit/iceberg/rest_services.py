"""Let PyIceberg sign in to each kind of Iceberg REST catalog, and say what to do about its refusals."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from lakewriter import aws
from lakewriter.commit.iceberg.rest_session import CatalogAdapter
from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import AnyRestService, OAuthService


@dataclass(frozen=True)
class SignIn:
    """The properties and the adapter by which PyIceberg signs in to a catalog."""

    properties: Mapping[str, str]
    """The library's own, see https://py.iceberg.apache.org/configuration/#rest-catalog"""
    make_adapter: Callable[[], CatalogAdapter]
    """Makes the adapter that sends a session's requests, including the request for a token. A subclass may sign
    them."""


def make_sign_in(service: AnyRestService, clients: aws.Clients) -> SignIn:
    """Resolve the catalog's secrets, and return how one signs in with them."""
    match service:
        case OAuthService():
            parts = (SecretText.parse(service.client_id), service.client_secret)
            for name, part in zip(("client_id", "client_secret"), parts, strict=True):
                aws.require_trusted(part, name, service.uri)
            properties = {
                "oauth2-server-uri": f"{service.uri}/v1/oauth/tokens",
                "credential": ":".join(aws.resolve(part, region=clients.access.region) for part in parts),
                "scope": service.scope,
            }
            return SignIn(properties, CatalogAdapter)


@dataclass(frozen=True)
class Remedies:
    """What to do about an answer that depends on how one signs in to the catalog."""

    secret: str
    role: str
    name: str
    forbidden: tuple[tuple[re.Pattern[str], str], ...]
    """Patterns of the text of a 403 answer, each with its remedy; other 403 answers have the remedy ``role``."""


_OAUTH: Final = Remedies(
    secret="Check that client_id and client_secret are correct, and that they have not been rotated or revoked in the "
    "catalog that {catalog} chooses.",
    role="Check principal_role (scope {scope!r}): that the role exists, that it is granted to this client, and that a "
    "catalog role granted to it may create and write tables in this catalog.",
    name="Check that catalog_endpoint is the REST endpoint of the catalog that {catalog} chooses, such as "
    "https://org-account.snowflakecomputing.com/polaris/api/catalog, and that catalog_name is the name of a catalog "
    "there.",
    forbidden=(
        # Polaris reports S3 errors, since it reaches S3 through a role of its own; Snowflake reports network errors.
        (
            re.compile(r"sts:AssumeRole|subscoped credentials|AssumeRole", re.IGNORECASE),
            "Have the IAM role of the catalog's storage configuration trust the catalog's IAM user with its external "
            "id, and allow what 'lakewriter policy --who catalog' prints.",
        ),
        (
            re.compile(r"\blocations?\b", re.IGNORECASE),
            "Add the table's location to the allowed locations of the catalog's storage configuration, or choose "
            "another catalog_name.",
        ),
        (
            re.compile(r"\bIP\b|network policy", re.IGNORECASE),
            "Allow the addresses from which the job reaches the catalog in the network policy of the account behind "
            "catalog_endpoint.",
        ),
    ),
)


def find_remedies(service: AnyRestService) -> Remedies:
    """Return what to do about the catalog's refusals; the texts have fields for those of the service."""
    match service:
        case OAuthService():
            return _OAUTH
