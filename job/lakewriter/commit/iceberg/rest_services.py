"""Let PyIceberg sign in to each kind of Iceberg REST catalog, and say what to do about its refusals."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewriter import aws
from lakewriter.commit.iceberg.rest_session import CatalogAdapter, SigningAdapter
from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import (
    AnyRestService,
    GlueRestService,
    OAuthService,
    OpenService,
    PolarisService,
    S3TablesService,
    SignedService,
    TokenService,
)


@dataclass(frozen=True)
class SignIn:
    """The properties and the adapter by which PyIceberg signs in to a catalog."""

    properties: Mapping[str, str]
    """The library's own, see https://py.iceberg.apache.org/configuration/#rest-catalog"""
    make_adapter: Callable[[], CatalogAdapter] = CatalogAdapter
    """Makes the adapter that sends a session's requests, including the request for a token, and may sign them."""


def make_sign_in(service: AnyRestService, clients: aws.Clients) -> SignIn:
    """Resolve the catalog's secrets, and return how one signs in with them."""
    region = clients.access.region
    match service:
        case PolarisService() | OAuthService():
            parts = (SecretText.parse(service.client_id), service.client_secret)
            for name, part in zip(("client_id", "client_secret"), parts, strict=True):
                aws.require_trusted(part, name, service.token_server)
            properties = {
                "oauth2-server-uri": service.token_server,
                "credential": ":".join(aws.resolve(part, region=region) for part in parts),
                "scope": service.scope,
            }
            return SignIn(properties)
        case TokenService():
            aws.require_trusted(service.token, "token", service.uri)
            return SignIn({"token": aws.resolve(service.token, region=region)})
        case SignedService() | GlueRestService() | S3TablesService():
            return SignIn({}, partial(SigningAdapter, partial(clients.sign, service.signing_name)))
        case OpenService():
            return SignIn({})


@dataclass(frozen=True)
class Remedies:
    """What to do about an answer that depends on how one signs in to the catalog."""

    secret: str
    role: str
    name: str
    forbidden: tuple[tuple[re.Pattern[str], str], ...] = ()
    """Patterns of the text of a 403 answer, each with its remedy; other 403 answers have the remedy ``role``."""
    endpoint: str = "uri"
    """The key of the catalog's URL in the user's file."""


_POLARIS: Final = Remedies(
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
    endpoint="catalog_endpoint",
)
_NAME: Final = (
    "Check that uri is the catalog's Iceberg REST endpoint, the part before /v1/config, and that warehouse is a name "
    "that it knows."
)
_OAUTH: Final = Remedies(
    secret="Check that client_id and client_secret are correct, that they have not been rotated or revoked, and that "
    "oauth2_server_uri is the catalog's token server: without it {uri}/v1/oauth/tokens is asked.",
    role="Check scope ({scope!r}), and that the catalog lets this client create and write tables in the warehouse.",
    name=_NAME,
)
_TOKEN: Final = Remedies(
    secret="Check that token refers to a bearer token of this catalog that has not expired.",
    role="Check that the catalog lets the token's owner create and write tables in the warehouse.",
    name=_NAME,
)
_OPEN: Final = Remedies(
    secret="The catalog asks who calls it: set auth to oauth, sigv4 or token.",
    role="The catalog asks who calls it: set auth to oauth, sigv4 or token.",
    name=_NAME,
)
_SIGNED: Final = Remedies(
    secret="The catalog takes no signature: check auth, and that signing_name {signing_name!r} is the name that it "
    "expects.",
    role="Allow the identity that signs, the destination's role or the job's own, the action that the catalog names; "
    "'lakewriter policy' prints what the job needs of AWS's own. Check that signing_name {signing_name!r} and the "
    "destination's region are those that the catalog expects, and that this machine's clock is right.",
    name=_NAME,
)


def find_remedies(service: AnyRestService) -> Remedies:
    """Return what to do about the catalog's refusals; the texts have fields for those of the service."""
    match service:
        case PolarisService():
            return _POLARIS
        case OAuthService():
            return _OAUTH
        case TokenService():
            return _TOKEN
        case SignedService() | GlueRestService() | S3TablesService():
            return _SIGNED
        case OpenService():
            return _OPEN
