"""The highest value of a cursor column: found per batch, compared, and put into SQL."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.documents.values_to_text import render_text
from lakewriter.errors import SchemaIncompatibleError, SpecInvalidError, ValueUnrepresentableError
from lakewriter.receipt import Cursor
from lakewriter.shape.text_shapes import find_shapes, join_shapes

_DATE: Final = r"(-?\d{4,})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_TIME: Final = r"T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)\.(\d{6})"
_ISO_TEXT: Final = re.compile(r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(?![0-9])")
_DECIMAL: Final = re.compile(r"decimal128\((\d+), (\d+)\)")
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "'": "\\'", "$": "\\u0024"})
"""Spark's parser would take ``${...}`` for one of its variables, even within a literal."""

Comparable = int | Decimal | float | str | tuple[int, ...]


def find_highest(array: pa.Array, column: str, first_index: int) -> Cursor | None:
    """Return the maximum of a written column, None when all is null; NaN is ``VALUE_UNREPRESENTABLE``, as it has no
    order.

    A text has the shapes of all texts, by which ``source.text_order`` tells whether their order is that of what they
    spell.
    """
    if pt.is_floating(array.type):
        _refuse_nan(array, column, first_index)
    top = pc.max(array)
    if not top.is_valid:
        return None
    shapes = find_shapes(array) if pt.is_string(array.type) else None
    return Cursor(type=str(array.type), text=render_text(pa.repeat(top, 1))[0].as_py(), shapes=shapes)


def choose_higher(a: Cursor | None, b: Cursor | None) -> Cursor | None:
    """Return the higher of two by value; ``SCHEMA_INCOMPATIBLE`` for types without a common order."""
    if a is None or b is None:
        return a or b
    (kind_a, value_a), (kind_b, value_b) = to_comparable(a), to_comparable(b)
    if kind_a != kind_b:
        raise SchemaIncompatibleError(
            f"cursor {a.text!r} of type {a.type!r} cannot be compared with {b.text!r} of type {b.type!r}.",
            remedy="Declare the cursor column's former type under columns:, or reset the table's cursor.",
        )
    higher = b if value_b > value_a else a  # type: ignore[operator]
    shapes = join_shapes(a.shapes, b.shapes)
    return higher if shapes == higher.shapes else higher.model_copy(update={"shapes": shapes})


def choose_lower(a: Cursor | None, b: Cursor | None) -> Cursor | None:
    """Return the lower of two, as ``choose_higher`` compares them."""
    if a is None or b is None:
        return a or b
    higher = choose_higher(a, b)
    return b if higher is not None and higher.text == a.text else a


def describe_future(c: Cursor | None, column: str, now: datetime) -> str | None:
    """Say that a cursor is a date or a time that is still to come, so that no row of today is above it; None for
    others."""
    if c is None:
        return None
    # A day more, for times of any zone and dates of today.
    latest = now.astimezone(UTC) + timedelta(days=1)
    _, value = to_comparable(c)
    fields = (latest.year, latest.month, latest.day, latest.hour, latest.minute, latest.second, latest.microsecond)
    if isinstance(value, tuple):
        is_future = value > fields[: len(value)]
    else:
        is_future = isinstance(value, str) and bool(_ISO_TEXT.match(value)) and value[:10] > f"{latest:%Y-%m-%d}"
    if not is_future:
        return None
    return f"cursor {column!r} is at {c.text}, in the future: later loads leave out rows of today, which are below it"


def write_spark_literal(c: Cursor) -> str:
    """Return Spark SQL for the cursor's exact value and type."""
    kind, value = to_comparable(c)
    if kind == "string":
        return f"'{c.text.translate(_ESCAPES)}'"
    if kind == "date":
        return f"DATE '{c.text}'"
    if kind == "timestamp":
        return f"TIMESTAMP_NTZ '{c.text.replace('T', ' ')}'"
    if kind == "timestamp with zone":
        return f"TIMESTAMP '{c.text.replace('T', ' ').replace('Z', '+00:00')}'"
    if isinstance(value, float):
        return f"CAST('{c.text}' AS {c.type.upper()})"
    if decimal := _DECIMAL.fullmatch(c.type):
        return f"CAST('{c.text}' AS DECIMAL({decimal[1]},{decimal[2]}))"
    return f"{c.text}L"


def parse_cursor(kind: str, text: str) -> Cursor:
    """Parse a cursor that a person typed; ``SPEC_INVALID`` when the text is none of this type."""
    cursor = Cursor(type=kind, text=text)
    try:
        to_comparable(cursor)
    except SchemaIncompatibleError as error:
        raise SpecInvalidError(
            f"cursor {text!r} is not of type {kind!r}.",
            remedy="Give a value as `lakewriter status` shows them, such as 42 or 2024-01-15T10:30:00.000000Z.",
        ) from error
    return cursor


def _refuse_nan(array: pa.Array, column: str, first_index: int) -> None:
    row = pc.index(pc.is_nan(array), value=True).as_py()
    if row >= 0:
        raise ValueUnrepresentableError(
            f"cursor column {column!r} is NaN in row {first_index + row}, which has no order.",
            remedy="Filter such rows, or use another cursor column.",
            column=column,
        )


def to_comparable(c: Cursor) -> tuple[str, Comparable]:
    """Return a value that Python orders, and the kind of values it may be compared with."""
    for kind, type_pattern, text_pattern, value in _KINDS:
        if re.fullmatch(type_pattern, c.type):
            match = re.fullmatch(text_pattern, c.text, re.ASCII | re.DOTALL)
            if not match:
                break
            return kind, value(match)
    raise SchemaIncompatibleError(f"cursor {c.text!r} of type {c.type!r} has no order here.")


def _parse_integers(match: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(part) for part in match.groups())


_KINDS: Final[tuple[tuple[str, str, str, Callable[[re.Match[str]], Comparable]], ...]] = (
    ("number", r"int\d+", r"-?\d+", lambda match: int(match[0])),
    ("number", r"decimal128\(.*\)", r"-?\d+(\.\d+)?", lambda match: Decimal(match[0])),
    ("number", r"float|double", r"-?(\d+(\.\d+)?(e[+-]?\d+)?|inf)", lambda match: float(match[0])),
    ("string", r"string", r".*", lambda match: match[0]),
    ("date", r"date32\[day\]", _DATE, _parse_integers),
    ("timestamp", r"timestamp\[us\]", _DATE + _TIME, _parse_integers),
    ("timestamp with zone", r"timestamp\[us, tz=UTC\]", _DATE + _TIME + "Z", _parse_integers),
)
