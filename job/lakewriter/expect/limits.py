"""Compare the bounds of a column with the limits that a file gives."""

from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.errors import SpecInvalidError
from lakewriter.receipt import Cursor
from lakewriter.shape.cursor import Comparable, to_comparable
from lakewriter.spec.expectations import Limit


def parse_limit(t: pa.DataType, limit: Limit, what: str) -> Comparable:
    """The limit as a value that compares with a column's of this type; ``SPEC_INVALID`` for one that does not."""
    try:
        if pt.is_string(t):
            return str(limit)
        if pt.is_floating(t):
            return float(limit)
        if pt.is_date(t):
            return date.fromisoformat(str(limit)).timetuple()[:3]
        if pt.is_timestamp(t):
            return list_parts(datetime.fromisoformat(str(limit)))
        return Decimal(str(limit))
    except (ValueError, InvalidOperation) as error:
        raise SpecInvalidError(
            f"{what}: the limit {limit!r} does not compare with a column of type {str(t)!r}.",
            remedy="Give a number for numbers, such as 0.5, and text for times, such as 2020-01-31 or "
            "2020-01-31T06:00:00Z.",
        ) from error


def list_parts(moment: datetime) -> tuple[int, ...]:
    """The parts of a time in UTC, from the year to the microsecond; one without a zone is in UTC."""
    utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return (*utc.timetuple()[:6], utc.microsecond)


def read_bound(bound: Cursor) -> Comparable:
    """The value of a bound, which compares with ``parse_limit`` of its column's type."""
    return to_comparable(bound)[1]


def is_below(value: Comparable, limit: Comparable) -> bool:
    """Whether the value is lower than the limit; both are of one column's type."""
    return value < limit  # type: ignore[operator]
