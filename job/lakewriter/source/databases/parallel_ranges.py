"""Cut a table into ranges of a column's values, each of which one task reads over a connection of its own."""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Final

import pyarrow.types as pt

from lakewriter.errors import SpecInvalidError
from lakewriter.source.databases.database_server import Column, Server

_FRACTION: Final = re.compile(r"(\.\d{6})\d+")
_EPOCH: Final = datetime(1970, 1, 1)
_MICRO: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Partition:
    """A column and the number of ranges; without bounds the database is asked for the lowest and highest value."""

    column: str
    count: int
    bounds: tuple[str, str] | None = None


def find_column(columns: Sequence[Column], wanted: str) -> Column | None:
    """Return the column of a name, in any case; an exact match comes first."""
    names = [column for column in columns if column.name == wanted]
    names += [column for column in columns if column.name.lower() == wanted.lower()]
    return names[0] if names else None


def require_range_column(columns: Sequence[Column], wanted: str, server: Server) -> Column:
    """Return the column of a partition. Raise ``SPEC_INVALID`` if it does not exist or its values have no ranges."""
    column = find_column(columns, wanted)
    if column is None:
        nearest = difflib.get_close_matches(wanted, [column.name for column in columns], 1, 0.0)
        raise SpecInvalidError(
            f"read.partition names column {wanted!r}, which the source does not have.",
            remedy=f"The nearest is {nearest[0]!r}." if nearest else "",
        )
    kind = server.find_kind(column)
    is_range = kind is not None and not server.is_time_of_day(column) and (
        pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_date(kind) or pt.is_timestamp(kind)
    )  # fmt: skip
    if not is_range:
        raise SpecInvalidError(
            f"read.partition names column {wanted!r} of type {column.type_name}, expected a number, a date or a "
            "timestamp.",
            remedy="Name another column.",
        )
    return column


def cut_ranges(server: Server, column: Column, c: str, count: int, lowest: str, highest: str) -> list[str]:
    """Return a condition for each range; together they cover every row.

    The first range includes nulls and values below the lowest, the last one values above the highest. There is a single
    range if a bound is not a number, or no time of the years 0001 to 9999, such as NaN and infinity.
    """
    kind = server.find_kind(column)
    read: Callable[[str], int | None] = _read_number
    write: Callable[[int], str] = str
    if kind is not None and pt.is_date(kind):
        read, write = _read_day, lambda days: str(_EPOCH.date() + timedelta(days))
    elif kind is not None and pt.is_timestamp(kind):
        read, write = _read_micros, lambda micros: str(_EPOCH + timedelta(microseconds=micros))
    first, last = read(lowest), read(highest)
    if first is None or last is None:
        return []
    cuts = sorted({first + (last - first) * step // count for step in range(1, count)} - {first})
    literals = [server.write_value(column, write(cut)) for cut in cuts]
    if not literals:
        return []
    middle = [f"{c} >= {low} AND {c} < {high}" for low, high in pairwise(literals)]
    return [f"{c} < {literals[0]} OR {c} IS NULL", *middle, f"{c} >= {literals[-1]}"]


def _read_number(text: str) -> int | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return int(number.to_integral_value("ROUND_FLOOR")) if number.is_finite() else None


def _read_day(text: str) -> int | None:
    try:
        return (date.fromisoformat(text.strip()[:10]) - _EPOCH.date()).days if " BC" not in text else None
    except ValueError:
        return None


def _read_micros(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(_FRACTION.sub(r"\1", text.strip()))
    except ValueError:
        return None
    return (moment.replace(tzinfo=None) - _EPOCH) // _MICRO
