"""Send events by the transports of OpenLineage's client, and say in plain words why one was not sent.

Only the thread that sends imports this: see ``events``.
"""

import logging
import sys
from typing import Any, Final

import requests
from openlineage.client.transport import Transport
from openlineage.client.transport.console import ConsoleConfig, ConsoleTransport
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport, TokenProvider

from lakewriter.aws import require_trusted, resolve
from lakewriter.spec.lineage import LOG, Lineage

_ONCE: Final = {"total": 0}
"""No retries: they would multiply the time that an event may take."""


def open_transport(settings: Lineage) -> Transport:
    """Return the transport for ``lineage.to``; ``SECRET_UNRESOLVED`` where its key cannot be read."""
    if settings.to == LOG:
        return _open_log()
    if not settings.is_remote:
        return FileTransport(FileConfig(settings.to, append=True))
    if settings.api_key is not None:
        require_trusted(settings.api_key, "lineage.api_key", settings.to)
    key = resolve(settings.api_key) if settings.api_key is not None else ""
    session = requests.Session()
    # A redirected POST is sent as GET, and the server never sees the event.
    session.max_redirects = 0
    return HttpTransport(
        HttpConfig(
            url=f"{settings.to.rstrip('/')}/",
            endpoint=settings.endpoint.lstrip("/"),
            timeout=settings.timeout_seconds,
            auth=ApiKeyTokenProvider({"api_key": key}) if key else TokenProvider({}),
            retry=_ONCE,
            session=session,
        )
    )


def _open_log() -> Transport:
    """Return the client's console transport. Its lines go to standard error where the process has no handler."""
    logger = logging.getLogger(ConsoleTransport.__module__)
    if not logger.hasHandlers():
        logger.addHandler(_StandardError())
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    return ConsoleTransport(ConsoleConfig())


class _StandardError(logging.StreamHandler[Any]):
    """Writes to standard error as it is at the time: a terminal's progress puts its own in its place."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        """Standard error."""
        return sys.stderr


def explain(error: Exception, settings: Lineage) -> str:
    """Return the reason why an event was not sent, without the words of the libraries."""
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answered {error.response.status_code} {error.response.reason}".rstrip()
    if isinstance(error, requests.TooManyRedirects):
        return "the server redirects to another URL, and no event is sent there"
    if isinstance(error, requests.Timeout):
        return f"the server did not answer within {settings.timeout_seconds:g} s"
    if isinstance(error, requests.exceptions.SSLError):
        return f"the server's certificate is refused ({_find_cause(error)})"
    if isinstance(error, requests.ConnectionError):
        return f"the server cannot be reached ({_find_cause(error)})"
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    reason = cause.strerror if isinstance(cause, OSError) else None
    return reason or f"{type(error).__name__}: {error}"


def _find_cause(error: BaseException) -> str:
    """Return the innermost reason of a failed connection."""
    while True:
        inner = getattr(error, "reason", None) or error.__cause__ or error.__context__
        if not isinstance(inner, BaseException):
            break
        error = inner
    return getattr(error, "strerror", None) or str(error)
