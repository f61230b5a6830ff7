"""Convert dates and times of files whose writer counted days before 15 October 1582 by the Julian calendar, as Java
once did.

The day that such a file calls 1500-01-01 becomes the day that ISO 8601 calls so.

See: org.apache.spark.sql.catalyst.util.RebaseDateTime
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.source.files.file_reader import Fault
from lakewriter.source.files.stored_values import Convert, Converted, as_numbers

Days = npt.NDArray[np.int64]

_VERSION: Final = b"org.apache.spark.version"
_ZONE: Final = b"org.apache.spark.timeZone"
_LEGACY_TIMES: Final = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96: Final = b"org.apache.spark.legacyINT96"

FIRST_GREGORIAN: Final = -141_427
"""15 October 1582, in days since 1970: before it the calendars differ."""
_FIRST_CIVIL_MICROS: Final = -2_208_988_800_000_000
"""1900: before it Java's old and new classes have other offsets for time zones."""
_DAY_MICROS: Final = 86_400_000_000
_NO_DAY: Final = "it is a 29th of February that only the Julian calendar has"
_NO_ZONE: Final = "it is before 1900, in the calendar and the time zone that Java once had"
UTC_NAMES: Final = frozenset({"utc", "etc/utc", "gmt", "z", "zulu", "etc/gmt", "etc/uct", "uct", "+00:00", ""})


@dataclass(frozen=True)
class Calendar:
    """The calendar and the time zone by which a file's writer counted days."""

    zone: str = "UTC"
    is_julian: bool = False
    is_julian_in_int96: bool = False

    @classmethod
    def read(cls, notes: Mapping[bytes, bytes]) -> "Calendar":
        """Read Spark's notes in its files. Without notes days are those of ISO 8601."""
        version = notes.get(_VERSION, b"9").decode(errors="replace")
        is_old = version.startswith(("1.", "2."))
        return cls(
            notes.get(_ZONE, b"UTC").decode(errors="replace"),
            is_old or _LEGACY_TIMES in notes,
            is_old or version.startswith("3.0.") or _LEGACY_INT96 in notes,
        )

    def take_dates(self, convert: Convert | None = None) -> Convert | None:
        """Return the conversion of dates; ``convert`` is that of days of ISO 8601."""
        return partial(_take_dates, convert) if self.is_julian else convert

    def take_times(self, convert: Convert | None) -> Convert | None:
        """Return the conversion of points in time; ``convert`` is that of days of ISO 8601.

        Spark has never counted times without a zone by the Julian calendar.
        """
        return partial(_take_times, convert, self.zone) if self.is_julian else convert

    def take_int96(self, convert: Convert) -> Convert:
        """Return the conversion of timestamps of 96 bits."""
        return partial(_take_times, convert, self.zone) if self.is_julian_in_int96 else convert


def _take_dates(convert: Convert | None, values: pa.Array) -> Converted:
    return rebase_dates(values if convert is None else convert(values).values)


def _take_times(convert: Convert | None, zone: str, *readings: pa.Array) -> Converted:
    taken = Converted(readings[0]) if convert is None else convert(*readings)
    rebased = rebase_times(taken.values, zone)
    return Converted(rebased.values, {**rebased.faults, **taken.faults}, taken.cut)


def rebase_days(days: Days) -> tuple[Days, npt.NDArray[np.bool_]]:
    """Return the ISO 8601 days of the same names as these Julian days, and a mask of days that ISO 8601 lacks."""
    # Years begin in March, so that a leap day is the last of its year.
    number = days + 719_468 + 2
    era, day_of_era = np.divmod(number, 1461)
    year_of_era = np.minimum(day_of_era // 365, 3)
    day_of_year = day_of_era - 365 * year_of_era
    year = 4 * era + year_of_era
    gregorian = 365 * year + year // 4 - year // 100 + year // 400 + day_of_year - 719_468
    has_leap_day = (year + 1) % 100 != 0
    has_leap_day |= (year + 1) % 400 == 0
    return gregorian, (day_of_year == 365) & ~has_leap_day


def rebase_dates(values: pa.Array) -> Converted:
    """Rebase dates."""
    days = as_numbers(values).copy()
    early = np.flatnonzero(days < FIRST_GREGORIAN)
    if not len(early):
        return Converted(values)
    rebased, is_missing = rebase_days(days[early])
    days[early] = rebased
    faults = {int(row): Fault(_NO_DAY, f"{int(days[row])} days since 1970") for row in early[is_missing]}
    return Converted(pc.if_else(values.is_valid(), pa.array(days.astype(np.int32)).view(pa.date32()), None), faults)


def rebase_times(values: pa.Array, zone: str) -> Converted:
    """Rebase timestamps of microseconds that were counted in a time zone."""
    micros = as_numbers(values).copy()
    is_utc = zone.lower() in UTC_NAMES
    early = np.flatnonzero(micros < (FIRST_GREGORIAN * _DAY_MICROS if is_utc else _FIRST_CIVIL_MICROS))
    if not len(early):
        return Converted(values)
    if not is_utc:
        texts = values.cast(pa.timestamp("us")).cast(pa.string())
        return Converted(values, {int(row): Fault(_NO_ZONE, texts[int(row)].as_py()) for row in early})
    days = micros[early] // _DAY_MICROS
    rebased, is_missing = rebase_days(days)
    micros[early] += (rebased - days) * _DAY_MICROS
    faults = {int(row): Fault(_NO_DAY, f"{int(micros[row])} us since 1970") for row in early[is_missing]}
    return Converted(pc.if_else(values.is_valid(), pa.array(micros).view(values.type), None), faults)
