"""The key ``lineage``: where OpenLineage events go."""

import re
from typing import Final
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from lakewriter.dialects.common.places import require_tls
from lakewriter.dialects.common.read_keys import make_absolute
from lakewriter.spec.access import SecretText
from lakewriter.spec.lineage import LOG, Lineage, is_url
from lakewriter.spec.model import FileModel

ENDPOINT: Final = "api/v1/lineage"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


class LineageEntry(FileModel):
    """OpenLineage events: what each table is made from, sent when its load begins and when it ends."""

    to: str = Field(min_length=1)
    """Where events go: ``log``, a file, or the URL of a server such as ``https://marquez.example.com``. A relative path
    starts at the folder of this file."""
    endpoint: str | None = Field(None, min_length=1)
    """The path at the server that takes events. By default ``api/v1/lineage``. Only for a URL."""
    namespace: str = Field("lakewriter", min_length=1)
    """The namespace of the pipeline's jobs. Give each stage its own, so that their runs are apart."""
    api_key: SecretText | None = None
    """The server's key or token, sent as ``Authorization: Bearer``: a reference such as ``${secret:ARN}``. Only for a
    URL."""
    allow_insecure: bool = False
    """Sends events, and the key if there is one, to a server that has no TLS. Only for a URL."""
    timeout_seconds: float = Field(5.0, ge=1, le=60)
    """How long an event may take, and how long the end of a load waits for the events that are not sent yet."""

    @field_validator("to")
    @classmethod
    def _to(cls, value: str) -> str:
        if not is_url(value):
            if _SCHEME.match(value):
                raise ValueError(
                    "expected 'log', a path on this machine, or a URL that begins with https:// or http://"
                )
            return value
        parts = urlsplit(value)
        if "@" in parts.netloc:
            raise ValueError("expected a URL without user and password; give the server's key as 'api_key'")
        if not parts.hostname or parts.query or parts.fragment:
            raise ValueError("expected a URL such as 'https://marquez.example.com', and nothing behind its path")
        return value

    @model_validator(mode="after")
    def _keys_of_a_server(self) -> "LineageEntry":
        given = {"endpoint": self.endpoint, "api_key": self.api_key, "allow_insecure": self.allow_insecure or None}
        for key in (key for key, value in given.items() if value is not None and not is_url(self.to)):
            raise ValueError(f"{key!r} is only for a URL; 'to' is {self.to!r}")
        return self

    def make_lineage(self, folder: str) -> Lineage:
        """Return the neutral form; ``TLS_REQUIRED`` for a server without TLS that is not on this machine."""
        remote = is_url(self.to)
        if remote:
            require_tls(self.to, ("lineage", "to"), allow_insecure=self.allow_insecure)
        return Lineage(
            to=self.to if remote or self.to == LOG else make_absolute(self.to, folder),
            endpoint=(self.endpoint or ENDPOINT) if remote else "",
            namespace=self.namespace,
            api_key=self.api_key,
            timeout_seconds=self.timeout_seconds,
        )
