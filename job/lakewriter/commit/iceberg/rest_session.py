"""Talk HTTP with a REST catalog: with time-outs, and a 200 counts only with the fields that the call must answer."""

import json
import re
from typing import Any, Final

import requests
import requests.adapters

TIMEOUT_SECONDS: Final = (10, 60)
"""For connecting, and between two bytes."""

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


class ForeignAnswer(requests.ConnectionError):
    """Something else answered in the catalog's place, so the catalog's answer is not known."""


class CatalogAdapter(requests.adapters.HTTPAdapter):
    """Sets time-outs, and refuses answers that are not the catalog's own."""

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        """See ``HTTPAdapter``."""
        response = super().send(request, *args, **(options | {"timeout": TIMEOUT_SECONDS}))
        missing = _find_missing_fields(request, response)
        if missing:
            raise ForeignAnswer(
                f"{request.method} {request.path_url}: HTTP {response.status_code} without {', '.join(missing)}: "
                "something else answered in the catalog's place",
                request=request,
            )
        return response


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
