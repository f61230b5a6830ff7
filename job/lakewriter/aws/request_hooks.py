"""What is decided at each answer, or lack of one: whether to sign again, and whether the endpoint has ever answered."""

from datetime import UTC, datetime
from typing import Any, Final

from botocore.credentials import RefreshableCredentials

from lakewriter.aws.error_codes import Meaning, meaning_of

_SIGNED_AGAIN: Final = "lakewriter_signed_again"
_NEVER_ANSWERED: Final = "lakewriter_never_answered"


def watch_answers(client: Any, reached: set[str]) -> None:
    """Have ``client`` sign a request that came too late once more, and note in ``reached`` what has answered."""
    service = client.meta.service_model.service_id.hyphenize()

    def decide(response: Any, request_dict: Any, caught_exception: Any, **_: Any) -> int | None:
        if response is None:
            if service not in reached and caught_exception is not None:
                setattr(caught_exception, _NEVER_ANSWERED, True)
            return None
        reached.add(service)
        return 0 if _signs_again(client, response[1], request_dict["context"]) else None

    client.meta.events.register_first(f"needs-retry.{service}.*", decide)


def never_answered(error: Exception) -> bool:
    """Whether a call failed for want of an answer at an endpoint that has never given any."""
    return bool(getattr(error, _NEVER_ANSWERED, False))


def _signs_again(client: Any, parsed: Any, context: dict[str, Any]) -> bool:
    """Whether a request that was refused as too late goes out again: once, with a new time and a new session."""
    error = parsed.get("Error", {})
    status = parsed.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    meaning = meaning_of(str(error.get("Code", "")), int(status), str(error.get("Message", "")))
    if meaning not in (Meaning.EXPIRED, Meaning.CLOCK) or context.get(_SIGNED_AGAIN):
        return False
    context[_SIGNED_AGAIN] = True
    # A machine that slept between signing and sending is late by the clock too: signing anew is enough there.
    return meaning is Meaning.CLOCK or _expire(client._get_credentials())


def _expire(credentials: Any) -> bool:
    """Whether the credentials are fetched anew for the next request; those given as they are cannot be."""
    if not isinstance(credentials, RefreshableCredentials):
        return False
    # The SDK has no call for it: it only goes by the time that the credentials came with.
    credentials._expiry_time = datetime.now(UTC)  # type: ignore[attr-defined]
    return True
