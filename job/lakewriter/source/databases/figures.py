"""Count the rows and values of a source in the tasks that read them: numbers, bounds and sums of each column."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

MARK: Final = "figures:"
"""The prefix that distinguishes a task's figures from its receipts."""
_LOW_BITS: Final = 32
_TOLERANCE: Final = 1e-9
"""The allowed difference relative to the sum of all amounts: a server adds floats in another order."""
Depth = Literal["counts", "columns"]


@dataclass
class ColumnFigures:
    """The figures of one column: non-null ``values``, the lowest and highest as text, the sum, and the sum of all
    amounts.

    ``missing`` counts the values that do not fit the column's type.
    """

    values: int = 0
    lower: str | None = None
    upper: str | None = None
    total: str | None = None
    amounts: float = 0.0
    missing: int = 0


@dataclass
class Figures:
    """The number of rows, and the figures of their columns in order."""

    rows: int = 0
    columns: list[ColumnFigures] = field(default_factory=list)

    def write(self) -> str:
        """Return the figures as a text that a task yields."""
        return MARK + json.dumps([self.rows, [list(asdict(column).values()) for column in self.columns]])

    @classmethod
    def parse(cls, text: str) -> "Figures":
        """Parse the text that ``write`` has written."""
        rows, columns = json.loads(text.removeprefix(MARK))
        return cls(rows, [ColumnFigures(*column) for column in columns])


class Meter:
    """A counter of one task's batches; ``depth`` is ``columns`` if it measures values."""

    def __init__(self, depth: Depth, columns: int) -> None:
        self._depth, self._figures = depth, Figures(0, [ColumnFigures() for _ in range(columns)])
        self._bounds: list[list[Any]] = [[] for _ in range(columns)]
        self._sums: list[Any] = [None] * columns

    def count(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the source's types, and count their rows and values."""
        for batch in batches:
            self._figures.rows += batch.num_rows
            for column, values in zip(self._figures.columns, batch.columns, strict=False):
                column.values += len(values) - values.null_count
            yield batch

    def measure(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches in the declared types, and measure their bounds and sums."""
        for batch in batches:
            if self._depth == "columns":
                for index, values in enumerate(batch.columns[: len(self._sums)]):
                    self._figures.columns[index].missing -= len(values) - values.null_count
                    self._measure_column(index, values)
            yield batch

    def _measure_column(self, index: int, values: pa.Array) -> None:
        if not is_ordered(values.type) or values.null_count == len(values):
            return
        ends = pc.min_max(values)
        if ends["min"].is_valid:
            bounds = [*self._bounds[index], ends["min"].as_py(), ends["max"].as_py()]
            self._bounds[index] = [min(bounds), max(bounds)]
        total = add_values(values)
        if total is not None:
            before = self._sums[index]
            self._sums[index] = total if before is None else before + total
            if isinstance(total, float):
                self._figures.columns[index].amounts += pc.sum(pc.abs(values)).as_py()

    def report(self) -> Iterator[str]:
        """Yield the text of all batches' figures, once they are read."""
        yield self.conclude().write()

    def conclude(self) -> Figures:
        """Return the figures of all batches."""
        for column, bounds, total in zip(self._figures.columns, self._bounds, self._sums, strict=True):
            if self._depth == "columns":
                column.missing += column.values
            if bounds:
                column.lower, column.upper = map(write_value, bounds)
            column.total = None if total is None else str(total)
        return self._figures


def is_ordered(kind: pa.DataType) -> bool:
    """Return True if bounds of a type are compared."""
    return bool(
        pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind) or pt.is_date(kind)
        or pt.is_timestamp(kind) or pt.is_string(kind)
    )  # fmt: skip


def add_values(values: pa.Array) -> int | Decimal | float | None:
    """Return the exact sum of integers and decimals, the sum of floats, None for other types."""
    kind = values.type
    if pt.is_integer(kind):
        wide = values.cast(pa.int64())
        high = pc.sum(pc.shift_right(wide, _LOW_BITS)).as_py() or 0
        low = pc.sum(pc.bit_wise_and(wide, (1 << _LOW_BITS) - 1)).as_py() or 0
        return int(high * (1 << _LOW_BITS) + low)
    if pt.is_decimal(kind):
        total = pc.sum(values.cast(pa.decimal256(76, kind.scale))).as_py()
        return Decimal(0) if total is None else Decimal(total)
    return float(pc.sum(values).as_py() or 0.0) if pt.is_floating(kind) else None


def write_value(value: Any) -> str:
    """Return a value as a text that is equal for equal values."""
    if isinstance(value, Decimal | int | float):
        return format(Decimal(value), "f") if math.isfinite(value) else str(value)
    return value.isoformat(" ", "microseconds") if isinstance(value, datetime) else str(value)


def add_figures(parts: Sequence[Figures]) -> Figures:
    """Return the figures of several tasks together."""
    whole = Figures(sum(part.rows for part in parts))
    for columns in zip(*(part.columns for part in parts), strict=True):
        totals = [column.total for column in columns if column.total is not None]
        is_float = any(column.amounts for column in columns)
        total = None
        if totals:
            total = str(sum(map(float, totals))) if is_float else str(sum(map(Decimal, totals)))
        # Numbers have a sum; dates and times sort as their texts do.
        key = str if total is None else Decimal
        lowers = [column.lower for column in columns if column.lower is not None]
        uppers = [column.upper for column in columns if column.upper is not None]
        whole.columns.append(
            ColumnFigures(
                sum(column.values for column in columns),
                min(lowers, key=key, default=None),
                max(uppers, key=key, default=None),
                total,
                sum(column.amounts for column in columns),
                sum(column.missing for column in columns),
            )
        )
    return whole


def is_same_total(read: ColumnFigures, server_total: str) -> bool:
    """Return True if a sum equals the server's. Floats may differ by a billionth of all amounts."""
    if read.amounts or "e" in server_total.lower() or "n" in server_total.lower():
        ours, theirs = float(read.total or 0), float(server_total)
        if not (math.isfinite(ours) and math.isfinite(theirs)):
            return True
        return abs(ours - theirs) <= _TOLERANCE * max(read.amounts, abs(theirs), 1e-300)
    return Decimal(read.total or 0) == Decimal(server_total)
