"""Check the keys of Iceberg REST catalogs, and make the catalog that they describe."""

import re
from collections.abc import Mapping, Set
from typing import Any, Final
from urllib.parse import urlsplit

from lakewriter.dialects.common.destination import Destination
from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.iceberg import OPEN_CATALOG_KEYS, OPEN_CATALOG_ONLY, find_missing_keys
from lakewriter.dialects.common.source_files import Location
from lakewriter.spec.catalogs import (
    AnyRestService,
    GlueRestService,
    OAuthService,
    OpenService,
    SignedService,
    TokenService,
)
from lakewriter.spec.table_spec import TableSpec

Choice = tuple[str, str | None]
"""The values of ``catalog`` and ``auth``."""

_KEYS: Final[Mapping[Choice, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    # the keys that it needs, and those that it may have beside
    ("open_catalog", None): (OPEN_CATALOG_KEYS, ("principal_role", "catalog_base_location")),
    ("rest", "oauth"): (("uri", "client_id", "client_secret"), ("scope", "oauth2_server_uri", "catalog_base_location")),
    ("rest", "sigv4"): (("uri",), ("signing_name", "catalog_base_location")),
    ("rest", "token"): (("uri", "token"), ("catalog_base_location",)),
    ("rest", "none"): (("uri",), ("catalog_base_location",)),
    ("s3_tables", None): (("table_bucket_arn",), ("uri",)),
}
_OF_REST: Final = ("auth", "warehouse")
_ALL: Final = tuple(
    dict.fromkeys([*OPEN_CATALOG_ONLY, *_OF_REST, *(k for keys in _KEYS.values() for k in sum(keys, ()))])
)

_OF_AWS: Final = re.compile(
    r"(?:.+\.)?(?P<service>[a-z0-9-]+?)(?:-fips)?\.(?P<region>[a-z]{2,4}(?:-[a-z]+)+-\d{1,2})\.(?:vpce\.)?"
    r"(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
_S3_TABLES_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9_]{0,253}[a-z0-9])?")
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-buckets-naming.html"""
_ACCOUNT: Final = re.compile(r"\d{12}")


def check_catalog_keys(form: Destination, in_file: Set[str]) -> None:
    """Raise ``ValueError`` for a key of another catalog or sign-in, and for one that is missing; ``in_file`` are the
    keys in the file."""
    catalog, auth = form.read_key("catalog"), form.read_key("auth")
    if catalog == "rest" and auth is None:
        raise ValueError("'catalog' 'rest' needs 'uri' and 'auth': expected 'oauth', 'sigv4', 'token' or 'none'")
    needed, others = _KEYS.get((catalog, auth), ((), ()))
    common = _OF_REST if catalog == "rest" else ()
    for key in _ALL:
        if key in in_file and key not in (*needed, *others, *common):
            raise ValueError(f"{key!r} is only for {_list_choices(key)}")
    missing = find_missing_keys(form, needed)
    if missing:
        choice = f"'auth' {auth!r}" if auth else f"'catalog' {catalog!r}"
        raise ValueError(f"{choice} needs {', '.join(map(repr, missing))}")


def _list_choices(key: str) -> str:
    """Return the choices that have a key, as the file writes them."""
    choices = [choice for choice, keys in _KEYS.items() if key in sum(keys, ())]
    auths = [auth for _, auth in choices if auth]
    texts = [f"'catalog: {catalog}'" for catalog, auth in choices if not auth]
    if key in _OF_REST or len(auths) == len([auth for _, auth in _KEYS if auth]):
        texts.append("'catalog: rest'")
    else:
        texts += [f"'auth: {auth}'" for auth in auths]
    return " and ".join(texts)


def make_rest_service(form: Destination) -> AnyRestService:
    """Make the catalog of a destination with ``catalog: rest``."""
    form.require_tls("uri")
    auth = form.read_key("auth")
    named: dict[str, Any] = {"uri": form.read_key("uri"), "warehouse": form.read_key("warehouse")}
    if auth == "oauth":
        if form.read_key("oauth2_server_uri"):
            form.require_tls("oauth2_server_uri")
        names = ("client_secret", "scope", "oauth2_server_uri")
        client = {name: form.read_key(name) for name in names}
        return OAuthService.model_validate(named | client | {"client_id": form.read_key("client_id").text})
    if auth == "token":
        return TokenService.model_validate(named | {"token": form.read_key("token")})
    return _make_signed(form, named) if auth == "sigv4" else OpenService.model_validate(named)


def require_s3_tables_names(table: TableSpec, location: Location) -> None:
    """Raise ``FaultError`` for a namespace or table whose name Amazon S3 Tables does not take."""
    for kind, name in (("schema", table.schema_name), ("table", table.name)):
        if not _S3_TABLES_NAME.fullmatch(name) or (kind == "schema" and name.startswith("aws")):
            raise FaultError(
                location, f"the {kind} would be {name!r}, and 'catalog: s3_tables' takes lower-case letters, "
                "digits and '_', with '_' neither first nor last, and no schema that begins with 'aws'.",
                remedy=f"Give the table another {'schema' if kind == 'schema' else 'name'}.",
            )  # fmt: skip


def _make_signed(form: Destination, named: dict[str, Any]) -> SignedService | GlueRestService:
    of_aws = _OF_AWS.fullmatch(urlsplit(named["uri"]).hostname or "")
    region = form.read_key("region")
    if of_aws and of_aws["region"] != region:
        raise FaultError(
            ("destination", "uri"), f"its requests are signed for {region!r}, and it is in {of_aws['region']!r}.",
            remedy="Set region to that of the catalog: tables and catalog are in one region.",
        )  # fmt: skip
    name = form.read_key("signing_name") or (of_aws["service"] if of_aws else None)
    if name is None:
        raise FaultError(
            ("destination", "uri"), f"{named['uri']!r} does not say which service its requests are signed for.",
            remedy="Set signing_name, such as execute-api for Amazon API Gateway.",
        )  # fmt: skip
    if name == "s3tables" and of_aws:
        raise FaultError(
            ("destination", "uri"), "it is Amazon S3 Tables, whose objects can be neither listed nor deleted.",
            remedy="Set 'catalog: s3_tables' and table_bucket_arn.",
        )  # fmt: skip
    if name != "glue":
        return SignedService.model_validate(named | {"signing_name": name})
    if not _ACCOUNT.fullmatch(named["warehouse"]):
        raise FaultError(
            ("destination", "warehouse"), f"{named['warehouse']!r} is no account of a Glue Data Catalog, and catalogs "
            "within one, such as that of S3 Tables, are not written.", remedy="Set it to the account's 12 digits.",
        )  # fmt: skip
    if form.read_key("catalog_base_location"):
        raise FaultError(
            ("destination", "catalog_base_location"), "tables of the Glue Data Catalog lie where 'location' says.",
            remedy="Leave it out.",
        )  # fmt: skip
    return GlueRestService.model_validate(named)
