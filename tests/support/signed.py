"""Iceberg REST catalogs whose requests are signed by SigV4: each signature is made again by botocore's own signer."""

import hmac
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from werkzeug.wrappers import Request

from lakewriter.spec.catalogs import AnyRestService, SignedService
from tests.support.open_catalog import OpenCatalog, Refusal
from tests.support.server import StrictAws

_SKEW: Final = timedelta(minutes=5)
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html"""


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
