"""Use credentials that a catalog vends for one table's files, and renew them before they expire."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from botocore.credentials import CredentialProvider, RefreshableCredentials

from lakewriter.errors import CatalogUnauthorizedError
from lakewriter.spec.access import KeyNames

SHORTEST: Final = timedelta(minutes=15)
"""The shortest session of AWS; assumed when a catalog does not say when its keys expire."""

RENEWED_SECONDS_BEFORE: Final = 300
REFUSED_SECONDS_BEFORE: Final = 60
"""So near to their expiry, credentials are not used any more: a request without new ones fails."""


@dataclass(frozen=True)
class Vended:
    """Keys of a session; ``expires`` is None if the catalog did not say."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(repr=False)
    expires: datetime | None = None


class Vendor(Hashable, Protocol):
    """A callable that fetches credentials. Each process calls it for itself: it is picklable and holds no secret."""

    def __call__(self) -> Vended | None:
        """Fetch new credentials; None if the catalog vends none."""


class VendedCredentials(CredentialProvider):
    """Credentials from a vendor; if its first answer is None, the SDK asks the next provider."""

    METHOD = "lakewriter-vended"
    CANONICAL_NAME = "LakewriterVended"

    def __init__(self, vendor: Vendor, key_names: KeyNames) -> None:
        super().__init__()
        self._vendor = vendor
        self._key_names = key_names

    def load(self) -> RefreshableCredentials | None:
        """See ``CredentialProvider``."""
        first = self._vendor()
        if first is None:
            return None
        return RefreshableCredentials.create_from_metadata(
            _make_metadata(first),
            refresh_using=self._renew,
            method=self.METHOD,
            advisory_timeout=RENEWED_SECONDS_BEFORE,
            mandatory_timeout=REFUSED_SECONDS_BEFORE,
        )

    def _renew(self) -> dict[str, Any]:
        vended = self._vendor()
        if vended is None:
            raise CatalogUnauthorizedError(
                f"{self._vendor} vended credentials for the table's files before, and vends none now.",
                remedy="Let the catalog vend credentials again, or give "
                f"{self._key_names.role_arn}, or {self._key_names.access_key_id} with its secret, in lake.yaml.",
            )
        return _make_metadata(vended)


def _make_metadata(vended: Vended) -> dict[str, Any]:
    expires = vended.expires or datetime.now(UTC) + SHORTEST
    keys = {"access_key": vended.access_key, "secret_key": vended.secret_key, "token": vended.token}
    return {**keys, "expiry_time": expires.isoformat()}
