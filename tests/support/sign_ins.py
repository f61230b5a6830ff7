"""Iceberg REST catalogs with other sign-ins than Polaris has: nothing gets in without theirs."""

import hmac
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from werkzeug.wrappers import Request, Response

from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import (
    AnyRestService,
    GlueRestService,
    OAuthService,
    OpenService,
    SignedService,
    TokenService,
)
from tests.support.call import ACCOUNT, Call, make_glue_call
from tests.support.open_catalog import CLIENT_ID, OpenCatalog, Refusal
from tests.support.server import StrictAws

_TOKEN: Final = "a-personal:access/token"
_SKEW: Final = timedelta(minutes=5)
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html"""


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
class SignedCatalog(OpenCatalog):
    """As behind Amazon API Gateway: each request is signed, and the signature is made again by botocore's signer."""

    service: ClassVar[str] = "execute-api"
    keys: list[str] = field(default_factory=list)
    """The access key of each request that was let in."""

    def make_service(self, **other: str) -> AnyRestService:
        """See ``OpenCatalog``."""
        named = {"uri": self.url, "warehouse": self.warehouse, "signing_name": self.service}
        return SignedService.model_validate({**named, **other})

    def make_settings(self) -> dict[str, str]:
        """See ``OpenCatalog``."""
        place = {"catalog": "rest", "uri": self.url, "warehouse": self.warehouse}
        return place | {"auth": "sigv4", "signing_name": self.service}

    def make_options(self) -> dict[str, Any]:
        """See ``OpenCatalog``. PyIceberg's own signer."""
        signed = {"rest.sigv4-enabled": "true", "rest.signing-name": self.service, "rest.signing-region": "us-east-1"}
        return {"type": "rest", "uri": self.url, "warehouse": self.warehouse, **signed}

    def _admit(self, request: Request) -> None:
        key, why = check_signature(request, self.service, self.region, self.aws)
        if why:
            raise Refusal(403, "InvalidSignatureException", why)
        self.keys.append(key)


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


def check_signature(request: Request, service: str, region: str, aws: StrictAws) -> tuple[str, str]:
    """Return the access key, and what is wrong with the signature, blank if it is as botocore makes it."""
    kind, _, rest = request.headers.get("Authorization", "").partition(" ")
    if kind != "AWS4-HMAC-SHA256":
        return "", "Missing Authentication Token"
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    key, day, *scope = parts["Credential"].split("/")
    if scope != [region, service, "aws4_request"]:
        return key, f"Credential should be scoped to {region}/{service}, not {'/'.join(scope)}"
    secret, token = aws.find_secret(key) or ("testing", "")
    if key.startswith("ASIA") and not token:
        return key, "The security token included in the request is expired"
    if request.headers.get("X-Amz-Security-Token", "") != token:
        return key, "The security token included in the request is invalid"
    stamp = request.headers["X-Amz-Date"]
    sent = datetime.strptime(f"{stamp}+0000", "%Y%m%dT%H%M%SZ%z")
    if abs(aws.now() - sent) > _SKEW or not stamp.startswith(day):
        return key, f"Signature expired: {stamp}"
    names = parts["SignedHeaders"].split(";")
    if not {"host", "x-amz-date", *(["x-amz-security-token"] if token else [])} <= set(names):
        return key, f"These headers must be signed too: {names}"
    url = f"{request.host_url.rstrip('/')}{request.environ['RAW_URI']}"
    given = {name: request.headers[name] for name in names}
    signed = AWSRequest(request.method, url, given, request.get_data())
    signed.context["timestamp"] = stamp
    signer = SigV4Auth(Credentials(key, secret, token or None), service, region)
    expected = signer.signature(signer.string_to_sign(signed, signer.canonical_request(signed)), signed)
    fits = hmac.compare_digest(expected, parts["Signature"])
    return key, "" if fits else "The request signature we calculated does not match the signature you provided"


SIGN_INS: Final = {
    "polaris": OpenCatalog,
    "oauth": OAuthCatalog,
    "token": TokenCatalog,
    "none": PlainCatalog,
    "sigv4": SignedCatalog,
    "glue_rest": GlueCatalog,
}
"""A catalog for each way to sign in."""
