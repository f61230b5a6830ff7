"""Convert timestamps of 96 bits in Parquet files: Julian days, and nanoseconds of a day.

Arrow returns them in one unit at a time, and a number that wrapped beyond the unit's range. Three units together lose
nothing: seconds cover all days, and microseconds are right if they are of these seconds. The difference between
nanoseconds and these microseconds is the finer part, even if the nanoseconds wrapped.
"""

import numpy as np
import pyarrow as pa

from lakewriter.source.files.file_reader import Fault
from lakewriter.source.files.stored_values import BEYOND, UTC_MICROS, Converted, as_numbers, judge_rest

UNITS = ("us", "ns", "s")
"""The units of the arguments of ``take_int96``."""


def take_int96(micros: pa.Array, nanos: pa.Array, seconds: pa.Array, *, truncates: bool) -> Converted:
    """Return the timestamps in microseconds from three readings."""
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
    faults = {int(row): Fault(BEYOND, f"{int(coarse[row])} s since 1970") for row in beyond}
    return Converted(judged.values, {**judged.faults, **faults}, judged.cut)
