"""Find the rows that checks keep out of their table, among the typed rows of a task."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.expect.limits import parse_limit, parse_values
from lakewriter.expect.words import describe_expectation
from lakewriter.spec.expectations import AcceptedValues, Condition, NullShare, Range

RowCheck = NullShare | Range | AcceptedValues | Condition
"""Every row by itself meets or fails these expectations."""


@dataclass(frozen=True)
class RowRule:
    """One check of rows; picklable.

    name      the check's
    reason    what a row must be, in words
    column    the written column; None for a condition, and for a column without values
    kind      the check's kind
    values    the accepted values, or the lower and the upper bound as arrays of one value, or of none
    position  of a condition among those that Spark has looked at
    """

    name: str
    reason: str
    column: str | None
    kind: str
    values: tuple[pa.Array, ...] = ()
    position: int = 0

    def mask_failing(self, typed: pa.RecordBatch, checks: pa.Array | None) -> pa.Array:
        """Return for each row whether it fails: true or false."""
        if self.kind == "sql":
            assert checks is not None
            return pc.invert(checks.field(self.position))
        if self.column is None:
            # All its values are null: they fail a check for nulls, and no other.
            return pa.repeat(self.kind == "null_share", typed.num_rows)
        array = typed.column(self.column)
        if self.kind == "null_share":
            return array.is_null()
        if self.kind == "accepted_values":
            return pc.and_(array.is_valid(), pc.invert(pc.is_in(array, value_set=self.values[0])))
        return pc.fill_null(self._is_outside(array), False)

    def _is_outside(self, array: pa.Array) -> pa.Array:
        low, high = self.values
        outside = pc.is_nan(array) if pt.is_floating(array.type) else pa.repeat(False, len(array))
        if len(low):
            outside = pc.or_(outside, pc.less(array, low[0]))
        return pc.or_(outside, pc.greater(array, high[0])) if len(high) else outside


def make_rule(check: RowCheck, column: pa.Field | None, position: int, what: str) -> RowRule:
    """Return the rule of a check on a written ``column`` of a type that it compares.

    ``SPEC_INVALID`` for a value or a limit that the column cannot have.
    """
    name, reason = check.name, describe_expectation(check.model_copy(update={"on_violation": "fail"}))
    if column is None or pt.is_null(column.type):
        return RowRule(name, reason, None, check.kind, position=position)
    values: tuple[pa.Array, ...] = ()
    if isinstance(check, AcceptedValues):
        values = (parse_values(column.type, check.values, what),)
    elif isinstance(check, Range):
        values = (
            _make_bound(column.type, check.at_least, what),
            _make_bound(column.type, check.at_most, what, up=False),
        )
    return RowRule(name, reason, column.name, check.kind, values)


def _make_bound(t: pa.DataType, limit: Any, what: str, *, up: bool = True) -> pa.Array:
    """Return the bound as a value of the column's type, or the next value inside the range if the type lacks it."""
    if limit is None:
        return pa.array([], t)
    parsed = parse_limit(t, limit, what)
    if not isinstance(parsed, Decimal):
        return parse_values(t, [limit], what)
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    if pt.is_decimal(t):
        # One digit more than any value of the column has, so that a limit beyond them fits.
        wide = pa.decimal256(76, t.scale)
        return pa.array([parsed.quantize(Decimal(1).scaleb(-t.scale), rounding)], wide)
    whole = int(parsed.to_integral_value(rounding))
    fits = -(2 ** (t.bit_width - 1)) <= whole < 2 ** (t.bit_width - 1)
    # A bound beyond the type's values has all of them inside, or none.
    return pa.array([whole], t if fits else pa.decimal256(76, 0))


@dataclass(frozen=True)
class Failing:
    """The rows of a batch that fail one check: true or false for each."""

    rule: RowRule
    mask: pa.Array


def find_failing(rules: Sequence[RowRule], typed: pa.RecordBatch, checks: pa.Array | None) -> list[Failing]:
    """Return the checks that rows of the batch fail."""
    results = [Failing(rule, rule.mask_failing(typed, checks)) for rule in rules]
    return [result for result in results if pc.any(result.mask).as_py()]
