"""Hooks on every request and response: name the catalog, sign late requests once more, record which services have
answered, and read their time."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final

from botocore.credentials import RefreshableCredentials

from lakewriter.aws.error_codes import Meaning, classify

_SIGNED_AGAIN: Final = "lakewriter_signed_again"
_NEVER_ANSWERED: Final = "lakewriter_never_answered"


class ServiceClock:
    """The time by a service's clock, from the ``Date`` header of its last answer and the seconds since then."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: tuple[datetime, float] | None = None

    def note(self, header: str | None) -> None:
        """Take the time of an answer; one without a valid header is left out."""
        try:
            at = parsedate_to_datetime(header or "")
        except ValueError:
            return
        self._last = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)), self._monotonic()

    def read(self) -> datetime | None:
        """Return the service's time now, to the second; None where no answer had one."""
        if self._last is None:
            return None
        at, noted = self._last
        return (at + timedelta(seconds=self._monotonic() - noted)).astimezone(UTC)


def set_clock(client: Any, clock: ServiceClock) -> None:
    """Set the ``clock`` by every answer that ``client`` gets."""

    def note(parsed: Any, **_: Any) -> None:
        clock.note(parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date"))

    client.meta.events.register("after-call", note)


def name_catalog(client: Any, account: str) -> None:
    """Name the catalog of ``account`` in every call of Glue's that can name one, from any caller."""

    def name(params: Any, model: Any, **_: Any) -> Any:
        takes_one = model.input_shape is not None and "CatalogId" in model.input_shape.members
        return {"CatalogId": account, **params} if takes_one else None

    client.meta.events.register("provide-client-params.glue", name)


def watch_answers(client: Any, reached: set[str]) -> None:
    """Make ``client`` sign a request that arrived too late once more, and add services that answer to ``reached``."""
    service = client.meta.service_model.service_id.hyphenize()

    def decide(response: Any, request_dict: Any, caught_exception: Any, **_: Any) -> int | None:
        if response is None:
            if service not in reached and caught_exception is not None:
                setattr(caught_exception, _NEVER_ANSWERED, True)
            return None
        reached.add(service)
        return 0 if _prepare_second_signing(client, response[1], request_dict["context"]) else None

    client.meta.events.register_first(f"needs-retry.{service}.*", decide)


def has_never_answered(error: Exception) -> bool:
    """Return True if the call failed without a response, at an endpoint that has never answered."""
    return bool(getattr(error, _NEVER_ANSWERED, False))


def _prepare_second_signing(client: Any, parsed: Any, context: dict[str, Any]) -> bool:
    """Renew the credentials of a request that was refused as too late; return True if it is to be sent once more."""
    error = parsed.get("Error", {})
    status = parsed.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    meaning = classify(str(error.get("Code", "")), int(status), str(error.get("Message", "")))
    if meaning not in (Meaning.EXPIRED, Meaning.CLOCK) or context.get(_SIGNED_AGAIN):
        return False
    context[_SIGNED_AGAIN] = True
    # A machine that slept between signing and sending is refused for its clock too: a new signature is enough.
    return meaning is Meaning.CLOCK or _expire(client._get_credentials())


def _expire(credentials: Any) -> bool:
    """Make the next request fetch new credentials; False for static keys, which cannot be renewed."""
    if not isinstance(credentials, RefreshableCredentials):
        return False
    # The SDK has no call for it: it renews by the expiry time alone.
    credentials._expiry_time = datetime.now(UTC)  # type: ignore[attr-defined]
    return True
