"""Compare the bounds of a column with the limits that a file gives."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.errors import SpecInvalidError
from lakewriter.receipt import Cursor
from lakewriter.shape.cursor import Comparable, to_comparable
from lakewriter.spec.expectations import Limit


def parse_limit(t: pa.DataType, limit: Limit, what: str) -> Comparable:
    """Parse a limit into a value that compares with a column's of this type; ``SPEC_INVALID`` if none does."""
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


def parse_values(t: pa.DataType, values: Sequence[object], what: str) -> pa.Array:
    """Parse values as those of a column of this type; ``SPEC_INVALID`` for one that it cannot have."""
    return pa.array([_parse_value(t, value, what) for value in values], t)


def _parse_value(t: pa.DataType, value: Any, what: str) -> Any:
    try:
        parsed = _read_value(t, value)
        pa.array([parsed], t)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise SpecInvalidError(
            f"{what}: expected a value of a column of type {str(t)!r}, got {value!r}.",
            remedy="Give values as the column has them: numbers, true or false, text, or times such as 2020-01-31.",
        ) from error
    return parsed


def _read_value(t: pa.DataType, value: Any) -> Any:
    if pt.is_boolean(t) or isinstance(value, bool):
        if pt.is_boolean(t) != isinstance(value, bool):
            raise ValueError(value)
        return value
    if pt.is_string(t):
        return str(value)
    if pt.is_date(t):
        return date.fromisoformat(str(value))
    if pt.is_timestamp(t):
        utc = _to_utc(datetime.fromisoformat(str(value)))
        return utc if t.tz else utc.replace(tzinfo=None)
    if pt.is_floating(t):
        return float(value)
    number = Decimal(str(value))
    return number if pt.is_decimal(t) else _to_integer(number)


def _to_integer(number: Decimal) -> int:
    if number != int(number):
        raise ValueError(number)
    return int(number)


def list_parts(moment: datetime) -> tuple[int, ...]:
    """List the parts of a time in UTC, from the year to the microsecond; one without a zone is in UTC."""
    utc = _to_utc(moment)
    return (*utc.timetuple()[:6], utc.microsecond)


def _to_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def read_bound(bound: Cursor) -> Comparable:
    """Return the value of a bound, which compares with ``parse_limit`` of its column's type."""
    return to_comparable(bound)[1]


def is_below(value: Comparable, limit: Comparable) -> bool:
    """Return whether the value is lower than the limit; both are of one column's type."""
    return value < limit  # type: ignore[operator]
