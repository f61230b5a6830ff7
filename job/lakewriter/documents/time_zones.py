"""Time zones that a timestamp names in place of an offset: ``PST``, ``Europe/Paris``."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

REGIONS: Final = {
    "EST": "America/New_York", "EDT": "America/New_York", "CST": "America/Chicago", "CDT": "America/Chicago",
    "MST": "America/Denver", "MDT": "America/Denver", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
    "AKST": "America/Juneau", "AKDT": "America/Juneau", "HST": "Pacific/Honolulu",
    "AST": "America/Halifax", "ADT": "America/Halifax", "NST": "America/St_Johns", "NDT": "America/St_Johns",
    "CET": "Europe/Paris", "CEST": "Europe/Paris", "EET": "Europe/Bucharest", "EEST": "Europe/Bucharest",
    "MSK": "Europe/Moscow", "SAST": "Africa/Johannesburg", "JST": "Asia/Tokyo", "KST": "Asia/Seoul",
    "AEST": "Australia/Sydney", "AEDT": "Australia/Sydney", "AWST": "Australia/Perth",
    "NZST": "Pacific/Auckland", "NZDT": "Pacific/Auckland",
}  # fmt: skip
"""The region that an abbreviation means, as Java's formatter of Airbyte's connector takes it: the region's rules decide
the offset, so that ``PST`` in July is -07:00. Left out are those of several meanings, such as BST and IST, of which
Java picks one that the source hardly means (BST is Bougainville)."""

_ZERO: Final = datetime(1970, 1, 1)
_FIRST_MICROS: Final = (datetime.min - _ZERO) // timedelta(microseconds=1)


@dataclass(frozen=True)
class Region:
    """A region with one clock."""

    zone: ZoneInfo

    def find_offset(self, local: int) -> int:
        """Return the microseconds east of UTC at a local time, given as microseconds since 1970.

        Of a time that the clock shows twice the first one counts. Before the year 1 it is the offset of its beginning.
        """
        moment = _ZERO + timedelta(microseconds=max(local, _FIRST_MICROS))
        return (moment.replace(tzinfo=self.zone).utcoffset() or timedelta()) // timedelta(microseconds=1)


@lru_cache(maxsize=1000)
def find_region(name: str) -> Region | None:
    """Return the region of an abbreviation or of a name such as ``Europe/Paris``, None for an offset; ``ValueError``
    for a name that does not exist."""
    key = REGIONS.get(name, name)
    if "/" not in key:
        return None
    try:
        return Region(ZoneInfo(key))
    except (KeyError, OSError) as error:
        raise ValueError(f"it names the time zone {name!r}, which does not exist") from error
