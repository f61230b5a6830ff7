"""Send HTTP requests to a REST catalog with time-outs. A 200 counts only with the fields that the call must return."""

import json
import re
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import requests
import requests.adapters
from urllib3.util.retry import Retry

TIMEOUT_SECONDS: Final = (10, 60)
"""The limits for connecting, and between two bytes."""
RETRIES: Final = 3
LONGEST_WAIT_SECONDS: Final = 10
"""A catalog may ask for more in ``Retry-After``."""

# https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
_REQUIRED: Final = (
    # method, path, fields; the first that fits
    ("POST", re.compile(r".*/oauth/tokens"), {"access_token", "token_type"}),
    ("GET", re.compile(r".*/config"), {"defaults", "overrides"}),
    ("POST", re.compile(r".*/namespaces/[^/]+/tables/[^/]+"), {"metadata", "metadata-location"}),
    ("GET", re.compile(r".*/namespaces/[^/]+/tables/[^/]+"), {"metadata", "metadata-location"}),
    ("POST", re.compile(r".*/namespaces/[^/]+/tables"), {"metadata", "metadata-location"}),
    ("GET", re.compile(r".*/namespaces/[^/]+"), {"namespace"}),
    ("POST", re.compile(r".*/namespaces"), {"namespace"}),
)


_KEEP_THE_METHOD: Final = (307, 308)
"""After these redirects a POST is sent again as it was; after others it would become a GET."""


class ForeignAnswer(requests.ConnectionError):
    """Something else answered in the catalog's place, so the catalog's answer is not known."""


class CatalogAdapter(requests.adapters.HTTPAdapter):
    """Sets time-outs, repeats reads that a busy catalog refuses, and rejects answers that are not the catalog's own."""

    def __init__(self) -> None:
        # Only reads are repeated, and only after an answer: a catalog that does not answer is reported at once.
        super().__init__(
            max_retries=Retry(
                total=None,
                connect=0,
                read=0,
                redirect=0,
                other=0,
                status=RETRIES,
                status_forcelist=(429, 502, 503, 504),
                allowed_methods=("GET", "HEAD"),
                backoff_factor=0.5,
                retry_after_max=LONGEST_WAIT_SECONDS,
                raise_on_status=False,
            )
        )

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """See ``HTTPAdapter``."""
        response = super().send(request, *args, **(options | {"timeout": TIMEOUT_SECONDS}))
        if response.is_redirect and not _leads_to_the_same_call(request, response):
            target = urlsplit(response.headers["Location"]).path
            raise ForeignAnswer(
                f"{request.method} {request.path_url}: HTTP {response.status_code} leads to {target}: something else "
                "answered in the catalog's place",
                request=request,
            )
        missing = _find_missing_fields(request, response)
        if missing:
            raise ForeignAnswer(
                f"{request.method} {request.path_url}: HTTP {response.status_code} without {', '.join(missing)}: "
                "something else answered in the catalog's place",
                request=request,
            )
        return response


_THROTTLED: Final = frozenset(
    {"Throttling", "ThrottlingException", "ThrottledException", "RequestLimitExceeded", "TooManyRequestsException"}
)
_PAUSE_SECONDS: Final = 0.5
_SIGNED: Final = ("content-type", "x-iceberg-access-delegation")
"""Proxies may change other headers on their way."""


class SigningAdapter(CatalogAdapter):
    """Signs each request when it is sent, once more after a redirect: ``sign`` asks for credentials that it keeps
    renewed. See ``aws.Clients.sign``."""

    def __init__(self, sign: Callable[..., dict[str, str]]) -> None:
        super().__init__()
        self._sign = sign

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """See ``HTTPAdapter``. A throttled request was not carried out: it is sent again, whatever its method."""
        body = request.body or b""
        headers = {name: value for name, value in request.headers.items() if name.lower() in _SIGNED}
        for number in range(RETRIES + 1):
            signed = self._sign(request.method, request.url, headers, body.encode() if isinstance(body, str) else body)
            request.headers.update(signed)
            response = super().send(request, *args, **options)
            if not _is_throttled(response):
                break
            # What the specification says, and what the library tells apart.
            response.status_code = int(HTTPStatus.TOO_MANY_REQUESTS)
            if number < RETRIES:
                time.sleep(_PAUSE_SECONDS * 2**number)
        return response


def _is_throttled(response: requests.Response) -> bool:
    """Return whether AWS has refused a request because there are too many: Glue answers 400, not 429.

    https://github.com/apache/iceberg/issues/17824
    """
    kind = response.headers.get("x-amzn-ErrorType", "").partition(":")[0].rpartition("#")[2]
    return response.status_code == requests.codes.bad_request and kind in _THROTTLED


def _leads_to_the_same_call(request: requests.PreparedRequest, response: requests.Response) -> bool:
    """Return True if a redirect leads to another address of this call, not to a page or to another call.

    A proxy may redirect to HTTPS, to another host, to a path with a prefix or with a slash at its end.
    """
    if request.method not in ("GET", "HEAD") and response.status_code not in _KEEP_THE_METHOD:
        return False
    call, target = (
        urlsplit(str(url)).path.rstrip("/").rpartition("/v1/")[2] for url in (request.url, response.headers["Location"])
    )
    return call == target


def _find_missing_fields(request: requests.PreparedRequest, response: requests.Response) -> list[str]:
    if not 200 <= response.status_code < 300 or response.status_code == requests.codes.no_content:
        return []
    path = request.path_url.partition("?")[0]
    fields = next(
        (names for method, form, names in _REQUIRED if method == request.method and form.fullmatch(path)), None
    )
    if fields is None:
        return []
    try:
        answer = json.loads(response.content)
    except ValueError:
        answer = None
    return sorted(fields - set(answer)) if isinstance(answer, dict) else ["a JSON object"]
