"""Timestamps of 96 bits in Parquet files: Julian days, and nanoseconds of a day.

Arrow gives them in one unit at a time, and beyond the unit's range a number that wrapped. Of three units together
nothing is lost: seconds reach over all days, microseconds are right where they have these seconds, and what
nanoseconds differ by from these is what is finer, whether they wrapped or not.
"""

import numpy as np
import pyarrow as pa

from lakewriter.source.files.file_reader import Fault
from lakewriter.source.files.stored_values import BEYOND, UTC_MICROS, Converted, as_numbers, judge_rest

UNITS = ("us", "ns", "s")
"""The units of the readings that ``take_int96`` takes."""


def take_int96(micros: pa.Array, nanos: pa.Array, seconds: pa.Array, *, truncates: bool) -> Converted:
    """Return the timestamps in microseconds of three readings."""
    whole, fine, coarse = as_numbers(micros), as_numbers(nanos), as_numbers(seconds)
    with np.errstate(over="ignore"):
        rest = fine - whole * 1000
    beyond = np.flatnonzero(whole // 1_000_000 != coarse)
    mask = micros.is_null().to_numpy(zero_copy_only=False)
    judged = judge_rest(
        pa.array(whole, pa.int64(), mask=mask), pa.array(rest, pa.int64(), mask=mask), UTC_MICROS, truncates=truncates
    )
    if not len(beyond):
        return judged
    faults = {int(place): Fault(BEYOND, f"{int(coarse[place])} s since 1970") for place in beyond}
    return Converted(judged.values, {**judged.faults, **faults}, judged.cut)
