"""Credentials that a catalog gives out for one table's files, renewed before they expire."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from botocore.credentials import CredentialProvider, RefreshableCredentials

from lakewriter.errors import CatalogUnauthorizedError

SHORTEST: Final = timedelta(minutes=15)
"""No session of AWS is shorter; taken where a catalog does not tell."""

RENEWED_SECONDS_BEFORE: Final = 300
REFUSED_SECONDS_BEFORE: Final = 60
"""Nearer to their end credentials are not used: whoever gets no new ones fails."""


@dataclass(frozen=True)
class Vended:
    """Keys of a session; without ``expires`` nobody told."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(repr=False)
    expires: datetime | None = None


class Vendor(Hashable, Protocol):
    """Whoever is asked for credentials, by each process for itself: picklable, and without a secret."""

    def __call__(self) -> Vended | None:
        """New ones; None where there are none to be had."""


class VendedCredentials(CredentialProvider):
    """What a vendor gives. Where it gives nothing at first, the next provider is asked."""

    METHOD = "lakewriter-vended"
    CANONICAL_NAME = "LakewriterVended"

    def __init__(self, vendor: Vendor) -> None:
        super().__init__()
        self._vendor = vendor

    def load(self) -> RefreshableCredentials | None:
        """See ``CredentialProvider``."""
        first = self._vendor()
        if first is None:
            return None
        return RefreshableCredentials.create_from_metadata(
            _metadata(first),
            refresh_using=self._renewed,
            method=self.METHOD,
            advisory_timeout=RENEWED_SECONDS_BEFORE,
            mandatory_timeout=REFUSED_SECONDS_BEFORE,
        )

    def _renewed(self) -> dict[str, Any]:
        found = self._vendor()
        if found is None:
            raise CatalogUnauthorizedError(
                f"{self._vendor} gave credentials for the table's files, and gives none any more.",
                remedy="Let the catalog vend credentials again, or name iam_role_arn or keys in lake.yaml.",
            )
        return _metadata(found)


def _metadata(found: Vended) -> dict[str, Any]:
    expires = found.expires or datetime.now(UTC) + SHORTEST
    keys = {"access_key": found.access_key, "secret_key": found.secret_key, "token": found.token}
    return {**keys, "expiry_time": expires.isoformat()}
