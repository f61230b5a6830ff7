"""Write how each query engine signs in to an Iceberg REST catalog; pure text, without the values of secrets."""

from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlsplit

from lakewriter.operate.sql_text import Engine, quote_text, write_secret, write_value
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

DUCKDB_SECRET: Final = "lakewriter_catalog"
DUCKDB_S3_SECRET: Final = "lakewriter_s3"


class SignIn(Protocol):
    """One way to sign in, in the settings of each engine."""

    def list_spark_settings(self, region: str) -> dict[str, str]:
        """Return Spark's settings: https://iceberg.apache.org/docs/latest/configuration/#catalog-properties"""

    def list_trino_settings(self) -> dict[str, str]:
        """Return Trino's settings: https://trino.io/docs/current/object-storage/metastores.html#iceberg-rest-catalog"""

    def list_duckdb_options(self) -> tuple[list[str], list[str]]:
        """Return the options of the secret, none without a secret, and the options of ATTACH.

        https://duckdb.org/docs/stable/core_extensions/iceberg/iceberg_rest_catalogs
        """


@dataclass(frozen=True)
class OAuth:
    """OAuth2 client credentials."""

    service: PolarisService | OAuthService

    def list_spark_settings(self, region: str) -> dict[str, str]:
        """See ``SignIn``."""
        return {
            "credential": f"{write_value(self.service.client_id)}:{_write_for_spark(self.service.client_secret)}",
            "scope": self.service.scope,
            **self._list_server("oauth2-server-uri"),
        }

    def list_trino_settings(self) -> dict[str, str]:
        """See ``SignIn``."""
        credential = f"{write_value(self.service.client_id)}:{write_secret(self.service.client_secret)}"
        return {
            "iceberg.rest-catalog.security": "OAUTH2",
            "iceberg.rest-catalog.oauth2.credential": credential,
            "iceberg.rest-catalog.oauth2.scope": self.service.scope,
            **self._list_server("iceberg.rest-catalog.oauth2.server-uri"),
        }

    def list_duckdb_options(self) -> tuple[list[str], list[str]]:
        """See ``SignIn``."""
        options = {
            "CLIENT_ID": write_value(self.service.client_id),
            "CLIENT_SECRET": write_secret(self.service.client_secret),
            "OAUTH2_SCOPE": self.service.scope,
            "OAUTH2_SERVER_URI": self.service.token_server,
        }
        return _make_duckdb_secret(self.service, options)

    def _list_server(self, key: str) -> dict[str, str]:
        """Return the setting of another token server than the one that clients ask by themselves."""
        server = self.service.token_server
        return {} if server == f"{self.service.uri}/v1/oauth/tokens" else {key: server}


@dataclass(frozen=True)
class Token:
    """A bearer token."""

    service: TokenService

    def list_spark_settings(self, region: str) -> dict[str, str]:
        """See ``SignIn``."""
        return {"token": _write_for_spark(self.service.token)}

    def list_trino_settings(self) -> dict[str, str]:
        """See ``SignIn``."""
        token = write_secret(self.service.token)
        return {"iceberg.rest-catalog.security": "OAUTH2", "iceberg.rest-catalog.oauth2.token": token}

    def list_duckdb_options(self) -> tuple[list[str], list[str]]:
        """See ``SignIn``."""
        return _make_duckdb_secret(self.service, {"TOKEN": write_secret(self.service.token)})


@dataclass(frozen=True)
class Open:
    """Nothing at all."""

    service: OpenService

    def list_spark_settings(self, region: str) -> dict[str, str]:
        """See ``SignIn``."""
        return {"rest.auth.type": "none"}

    def list_trino_settings(self) -> dict[str, str]:
        """See ``SignIn``."""
        return {"iceberg.rest-catalog.security": "NONE"}

    def list_duckdb_options(self) -> tuple[list[str], list[str]]:
        """See ``SignIn``."""
        return [], [_write_endpoint(self.service.uri), "AUTHORIZATION_TYPE 'none'"]


@dataclass(frozen=True)
class Signed:
    """SigV4, with the credentials that the engine has itself."""

    service: SignedService | GlueRestService | S3TablesService

    def list_spark_settings(self, region: str) -> dict[str, str]:
        """See ``SignIn``."""
        return {
            "rest.sigv4-enabled": "true",
            "rest.signing-name": self.service.signing_name,
            "rest.signing-region": region,
        }

    def list_trino_settings(self) -> dict[str, str]:
        """See ``SignIn``. The region is that of ``s3.region``."""
        return {
            "iceberg.rest-catalog.security": "SIGV4",
            "iceberg.rest-catalog.signing-name": self.service.signing_name,
        }

    def list_duckdb_options(self) -> tuple[list[str], list[str]]:
        """See ``SignIn``. The endpoint begins with the host, in which DuckDB looks for service and region."""
        endpoint = _write_endpoint(self.service.uri.partition("://")[2])
        return [], [endpoint, "AUTHORIZATION_TYPE 'sigv4'", f"SECRET {DUCKDB_S3_SECRET}"]


def describe_unsigned_by_duckdb(service: AnyRestService, region: str) -> str:
    """Return why DuckDB cannot sign for the catalog; blank if it can, or need not.

    It takes service and region from the host: github.com/duckdb/duckdb-iceberg, src/storage/authorization/sigv4.cpp
    """
    if not isinstance(service, SignedService | S3TablesService):
        return ""
    host = urlsplit(service.uri).hostname or ""
    if f".{service.signing_name}.{region}." in f".{host}":
        return ""
    return f"DuckDB signs for the service and region in the host's name, and {host!r} has none; Spark and Trino read it"


def find_sign_in(service: AnyRestService) -> SignIn:
    """Return how one signs in to the catalog."""
    match service:
        case PolarisService() | OAuthService():
            return OAuth(service)
        case TokenService():
            return Token(service)
        case OpenService():
            return Open(service)
        case SignedService() | GlueRestService() | S3TablesService():
            return Signed(service)


def _write_for_spark(secret: SecretText) -> str:
    """Return a secret for Spark's settings: Spark itself reads variables of the environment."""
    return secret.text if secret.reference and secret.reference[0] == "env" else write_secret(secret)


def _make_duckdb_secret(service: AnyRestService, options: dict[str, str]) -> tuple[list[str], list[str]]:
    secret = [f"{name} {quote_text(Engine.DUCKDB, value)}" for name, value in options.items()]
    return ["TYPE iceberg", *secret], [_write_endpoint(service.uri), f"SECRET {DUCKDB_SECRET}"]


def _write_endpoint(text: str) -> str:
    return f"ENDPOINT {quote_text(Engine.DUCKDB, text)}"
