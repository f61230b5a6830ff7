"""Requests of this process to its embedded AWS without a connection, which takes most of a request's time.

Processes that tests start are connected, as are clients to other servers.
"""

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from email.utils import format_datetime
from io import BytesIO
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError
from botocore.httpsession import URLLib3Session
from urllib3 import HTTPHeaderDict, HTTPResponse

from tests.support.faults import ConnectionDroppedError
from tests.support.server import StrictAws


class _Connection:
    def shutdown(self, _: int) -> None:
        """Do nothing: who called learns of a lost answer by the error."""


@contextmanager
def direct_requests(server: StrictAws) -> Iterator[None]:
    """Let the SDK's clients of this process call ``server``."""
    process, send, describe = os.getpid(), URLLib3Session.send, SigV4Auth.canonical_request

    def send_directly(session: Any, request: AWSPreparedRequest) -> AWSResponse:
        is_here = os.getpid() == process and request.url.startswith(f"{server.url}/")
        return _call(server, request) if is_here else send(session, request)

    def describe_for_others(signer: SigV4Auth, request: AWSRequest) -> str:
        return "" if str(request.url).startswith(f"{server.url}/") else describe(signer, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(URLLib3Session, "send", send_directly)
        # The embedded AWS reads who signed a request, and checks no signature; catalogs of tests do.
        patch.setattr(SigV4Auth, "canonical_request", describe_for_others)
        yield


def _call(server: StrictAws, request: AWSPreparedRequest) -> AWSResponse:
    status, headers = "500 _", [("Content-Length", "0")]

    def start(given: str, pairs: list[tuple[str, str]]) -> None:
        nonlocal status, headers
        status, headers = given, pairs

    environ = _make_environ(request)
    try:
        body = b"".join(server(environ, start))
    except ConnectionDroppedError as error:
        raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
    except Exception:  # noqa: BLE001 - as the server does, which prints what went wrong and answers 500
        sys.excepthook(*sys.exc_info())
        body = b""
    headers = [*headers, ("Date", format_datetime(server.now(), usegmt=True))]
    body = b"" if request.method == "HEAD" else body
    raw: Any = HTTPResponse(
        BytesIO(body),
        HTTPHeaderDict(headers),
        int(status[:3]),
        preload_content=False,
        decode_content=False,
        request_method=request.method,
        enforce_content_length=False,
    )
    answer = AWSResponse(request.url, raw.status, raw.headers, raw)
    if not request.stream_output:
        _ = answer.content
    return answer


def _read_body(body: Any) -> bytes:
    data = body.read() if hasattr(body, "read") else body
    return data.encode() if isinstance(data, str) else bytes(data)


def _make_environ(request: AWSPreparedRequest) -> dict[str, Any]:
    """As werkzeug makes it of a request that comes by a connection."""
    url, content = urlsplit(request.url), _read_body(request.body or b"")
    target = url.path + (f"?{url.query}" if url.query else "")
    environ: MutableMapping[str, Any] = {
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": url.scheme,
        "wsgi.input": BytesIO(content),
        "wsgi.errors": sys.stderr,
        "werkzeug.socket": _Connection(),
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(url.path).encode().decode("latin-1"),
        "QUERY_STRING": url.query,
        "REQUEST_URI": target,
        "RAW_URI": target,
        "REMOTE_ADDR": "127.0.0.1",
        "SERVER_NAME": url.hostname,
        "SERVER_PORT": str(url.port),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": url.netloc,
        "CONTENT_LENGTH": str(len(content)),
    }
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
        if key == "CONTENT_TYPE":
            environ[key] = text
        elif key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            environ[f"HTTP_{key}"] = text
    return dict(environ)
