"""Iceberg REST catalogs with other sign-ins than Polaris has: nothing gets in without theirs."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from werkzeug.wrappers import Request, Response

from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import (
    AnyRestService,
    GlueRestService,
    OAuthService,
    OpenService,
    TokenService,
)
from tests.support.call import ACCOUNT, Call, make_glue_call
from tests.support.open_catalog import CLIENT_ID, OpenCatalog, Refusal
from tests.support.s3_tables import S3TablesCatalog
from tests.support.signed import SignedCatalog

_TOKEN: Final = "a-personal:access/token"


@dataclass
class OAuthCatalog(OpenCatalog):
    """As Lakekeeper: tokens are another server's, at another path, with a scope of its own."""

    def make_service(self, **other: str) -> AnyRestService:
        """See ``OpenCatalog``."""
        secret = SecretText("${env:OPEN_CATALOG_SECRET}")
        named = {"uri": self.url, "warehouse": self.warehouse, "client_id": CLIENT_ID, "scope": "lakekeeper"}
        server = {"client_secret": secret, "oauth2_server_uri": f"{self.url}/realms/iceberg/token"}
        return OAuthService.model_validate({**named, **server, **other})

    def make_settings(self) -> dict[str, str]:
        """See ``OpenCatalog``."""
        return {
            "catalog": "rest",
            "uri": self.url,
            "warehouse": self.warehouse,
            "auth": "oauth",
            "client_id": CLIENT_ID,
            "client_secret": "${env:OPEN_CATALOG_SECRET}",
            "scope": "lakekeeper",
            "oauth2_server_uri": f"{self.url}/realms/iceberg/token",
        }

    def make_options(self) -> dict[str, Any]:
        """See ``OpenCatalog``."""
        server = f"{self.url}/realms/iceberg/token"
        return super().make_options() | {"scope": "lakekeeper", "oauth2-server-uri": server}

    def _answer(self, request: Request) -> Response:
        # Of Keycloak's realm; the catalog itself gives out none.
        if request.path.endswith("/realms/iceberg/token"):
            return self._token(request)
        if request.path.endswith("/oauth/tokens"):
            raise Refusal(404, "NotFoundException", request.path)
        return super()._answer(request)

    def _find_role(self, scope: str) -> str | None:
        return "ALL" if scope == "lakekeeper" else None


@dataclass
class TokenCatalog(OpenCatalog):
    """As Unity Catalog with a personal access token."""

    secret: ClassVar[tuple[str, str]] = ("CATALOG_TOKEN", _TOKEN)

    def make_service(self, **other: str) -> AnyRestService:
        """See ``OpenCatalog``."""
        named = {"uri": self.url, "warehouse": self.warehouse, "token": SecretText("${env:CATALOG_TOKEN}")}
        return TokenService.model_validate({**named, **other})

    def make_settings(self) -> dict[str, str]:
        """See ``OpenCatalog``."""
        token = {"auth": "token", "token": "${env:CATALOG_TOKEN}"}
        return {"catalog": "rest", "uri": self.url, "warehouse": self.warehouse, **token}

    def make_options(self) -> dict[str, Any]:
        """See ``OpenCatalog``."""
        return {"type": "rest", "uri": self.url, "warehouse": self.warehouse, "token": _TOKEN}

    def _admit(self, request: Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {_TOKEN}":
            raise Refusal(401, "NotAuthorizedException", "The token is not valid.")


@dataclass
class PlainCatalog(OpenCatalog):
    """As Nessie at home: it has one warehouse, without a name, and wants to know nobody."""

    warehouse: str = ""

    def make_service(self, **other: str) -> AnyRestService:
        """See ``OpenCatalog``."""
        return OpenService.model_validate({"uri": self.url, "warehouse": "", **other})

    def make_settings(self) -> dict[str, str]:
        """See ``OpenCatalog``."""
        return {"catalog": "rest", "uri": self.url, "auth": "none"}

    def make_options(self) -> dict[str, Any]:
        """See ``OpenCatalog``."""
        return {"type": "rest", "uri": self.url, "auth": {"type": "noop"}}

    def _admit(self, request: Request) -> None:
        if "Authorization" in request.headers:
            raise Refusal(400, "BadRequestException", "Who sends a secret here?")


@dataclass
class GlueCatalog(SignedCatalog):
    """Glue's Iceberg REST endpoint: it places no table, and asks IAM for each request.

    https://docs.aws.amazon.com/glue/latest/dg/iceberg-rest-apis.html
    """

    service: ClassVar[str] = "glue"
    warehouse: str = ACCOUNT
    prefix: str = f"catalogs/{ACCOUNT}"

    def make_service(self, **other: str) -> AnyRestService:
        """See ``OpenCatalog``."""
        return GlueRestService.model_validate({"uri": self.url, "warehouse": self.warehouse, **other})

    def _admit(self, request: Request) -> None:
        super()._admit(request)
        call = self._read_call(request)
        if self.aws.judge(call).status != 200:
            raise Refusal(403, "AccessDeniedException", f"User is not authorized to perform: {call.action}")

    def _read_call(self, request: Request) -> Call:
        """The request as the action of Glue that it needs."""
        path = request.path.partition("/v1/")[2].removeprefix(f"{self.prefix}/").rstrip("/").split("/")
        writes = request.method == "POST"
        match path:
            case ["config"]:
                return make_glue_call("GetCatalog", {}, self.keys[-1])
            case ["namespaces"] if writes:
                (name,) = request.get_json()["namespace"]
                return make_glue_call("CreateDatabase", {"DatabaseInput": {"Name": name}}, self.keys[-1])
            case ["namespaces", name]:
                return make_glue_call("GetDatabase", {"Name": name}, self.keys[-1])
            case ["namespaces", name, "tables"]:
                table = {"Name": request.get_json()["name"]}
                return make_glue_call("CreateTable", {"DatabaseName": name, "TableInput": table}, self.keys[-1])
            case ["namespaces", name, "tables", table] if writes:
                given = {"DatabaseName": name, "TableInput": {"Name": table}}
                return make_glue_call("UpdateTable", given, self.keys[-1])
            case ["namespaces", name, "tables", table]:
                return make_glue_call("GetTable", {"DatabaseName": name, "Name": table}, self.keys[-1])
        raise Refusal(404, "NotFoundException", "/".join(path))

    def _create(self, namespace: str, request: Request) -> Response:
        if not request.get_json().get("location"):
            raise Refusal(400, "InvalidInputException", "Cannot derive a location: the database has none")
        return super()._create(namespace, request)


SIGN_INS: Final = {
    "polaris": OpenCatalog,
    "oauth": OAuthCatalog,
    "token": TokenCatalog,
    "none": PlainCatalog,
    "sigv4": SignedCatalog,
    "glue_rest": GlueCatalog,
    "s3_tables": S3TablesCatalog,
}
"""A catalog for each way to sign in."""
