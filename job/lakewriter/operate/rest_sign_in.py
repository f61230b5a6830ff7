"""Write how each query engine signs in to an Iceberg REST catalog; pure text, without the values of secrets."""

from dataclasses import dataclass
from typing import Final, Protocol

from lakewriter.operate.sql_text import Engine, quote_text, write_secret, write_value
from lakewriter.spec.catalogs import AnyRestService, OAuthService

DUCKDB_SECRET: Final = "lakewriter_catalog"


class SignIn(Protocol):
    """One way to sign in, in the settings of each engine."""

    def list_spark_settings(self) -> dict[str, str]:
        """Return Spark's settings: https://iceberg.apache.org/docs/latest/configuration/#catalog-properties"""

    def list_trino_settings(self) -> dict[str, str]:
        """Return Trino's settings: https://trino.io/docs/current/object-storage/metastores.html#iceberg-rest-catalog"""

    def list_duckdb_options(self) -> tuple[list[str], list[str]]:
        """Return the options of the secret, none without a secret, and the options of ATTACH.

        https://duckdb.org/docs/stable/core_extensions/iceberg/iceberg_rest_catalogs
        """

    def list_snowflake_options(self) -> list[str]:
        """Return the options: https://docs.snowflake.com/en/sql-reference/sql/create-catalog-integration-rest"""


@dataclass(frozen=True)
class OAuth:
    """OAuth2 client credentials."""

    service: OAuthService

    def list_spark_settings(self) -> dict[str, str]:
        """See ``SignIn``. Spark itself reads variables of the environment."""
        secret = self.service.client_secret
        text = secret.text if secret.reference and secret.reference[0] == "env" else write_secret(secret)
        return {
            "credential": f"{write_value(self.service.client_id)}:{text}",
            "scope": self.service.scope,
        }

    def list_trino_settings(self) -> dict[str, str]:
        """See ``SignIn``."""
        credential = f"{write_value(self.service.client_id)}:{write_secret(self.service.client_secret)}"
        return {
            "iceberg.rest-catalog.security": "OAUTH2",
            "iceberg.rest-catalog.oauth2.credential": credential,
            "iceberg.rest-catalog.oauth2.scope": self.service.scope,
        }

    def list_duckdb_options(self) -> tuple[list[str], list[str]]:
        """See ``SignIn``."""
        options = {
            "CLIENT_ID": write_value(self.service.client_id),
            "CLIENT_SECRET": write_secret(self.service.client_secret),
            "OAUTH2_SCOPE": self.service.scope,
            "OAUTH2_SERVER_URI": f"{self.service.uri}/v1/oauth/tokens",
        }
        secret = [f"{name} {quote_text(Engine.DUCKDB, value)}" for name, value in options.items()]
        return ["TYPE iceberg", *secret], [f"SECRET {DUCKDB_SECRET}"]

    def list_snowflake_options(self) -> list[str]:
        """See ``SignIn``."""
        options = {
            "OAUTH_CLIENT_ID": write_value(self.service.client_id),
            "OAUTH_CLIENT_SECRET": write_value(self.service.client_secret),
        }
        quoted = [f"{name} = {quote_text(Engine.SNOWFLAKE, value)}" for name, value in options.items()]
        return ["TYPE = OAUTH", *quoted, f"OAUTH_ALLOWED_SCOPES = ({quote_text(Engine.SNOWFLAKE, self.service.scope)})"]


def find_sign_in(service: AnyRestService) -> SignIn:
    """Return how one signs in to the catalog."""
    match service:
        case OAuthService():
            return OAuth(service)
