"""Define where a pipeline's OpenLineage events go."""

from datetime import datetime
from typing import Final

from lakewriter.spec.access import SecretText
from lakewriter.spec.model import Model

LOG: Final = "log"
"""The value of ``to`` that writes events to the log."""


class Lineage(Model):
    """``to`` is ``log``, an absolute path, or a URL without user and password, at which ``endpoint`` takes events.

    ``nominal_time`` is when a load was scheduled, where that is known; no lake.yaml has it.
    """

    to: str
    endpoint: str = ""
    namespace: str
    api_key: SecretText | None = None
    timeout_seconds: float = 5.0
    nominal_time: datetime | None = None

    @property
    def is_remote(self) -> bool:
        """Return whether events leave this machine."""
        return is_url(self.to)


def is_url(to: str) -> bool:
    """Return whether ``to`` is a server's URL."""
    return to.lower().startswith(("http://", "https://"))
