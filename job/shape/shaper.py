"""Batches of the source become batches of the file; pure: no Spark, no files."""

from datetime import datetime

import pyarrow as pa

from job.errors import SourceFailedError, ValueUnrepresentableError
from job.receipt import Cursor
from job.shape.conversion import convert
from job.shape.cursor import highest, highest_in
from job.shape.findings import Findings
from job.shape.plan import ColumnPlan, ShapePlan
from job.shape.tracking import TrackingValues
from job.types import rebuilt

_SHOWN = 80
"""Characters of a value that a message shows."""


class Shaper:
    """Shapes the batches of one task in order; ``first_index`` is the tracking index of its first row."""

    def __init__(self, plan: ShapePlan, *, job_id: str, start: datetime, first_index: int) -> None:
        self.plan = plan
        self.rows = 0
        self.cursor: Cursor | None = None
        self.cursor_nulls = 0
        self._first_index = first_index
        self._tracking = TrackingValues(job_id=job_id, start=start)
        self._checked: pa.Schema | None = None

    def shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """``batch`` with exactly the plan's schema.

        ``SOURCE_FAILED`` when it is not of the plan's source schema, ``VALUE_UNREPRESENTABLE`` for a value that
        does not fit its column.
        """
        self._check(batch.schema)
        index = self._first_index + self.rows
        data = {column.name: _column(column, batch.column(column.position), index) for column in self.plan.columns}
        keys = [data[name] for name in self.plan.keys]
        deleted = batch.column(batch.num_columns - 1) if self.plan.deleted else None
        tracking = [
            self._tracking.column(column.holds, index, batch.num_rows, keys, deleted) for column in self.plan.tracking
        ]
        shaped = pa.RecordBatch.from_arrays([*data.values(), *tracking], schema=self.plan.schema)
        if self.plan.cursor is not None:
            self._follow(self.plan.cursor, data[self.plan.cursor], index)
        self.rows += batch.num_rows
        return shaped

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """The highest cursor and the number of null ones since the last call; both start anew."""
        taken = self.cursor, self.cursor_nulls
        self.cursor, self.cursor_nulls = None, 0
        return taken

    def take_findings(self) -> Findings:
        """None: a value that does not fit fails the load."""
        return Findings()

    def _follow(self, column: str, values: pa.Array, index: int) -> None:
        self.cursor = highest(self.cursor, highest_in(values, column, index))
        self.cursor_nulls += values.null_count

    def _check(self, schema: pa.Schema) -> None:
        if self._checked is not None and schema.equals(self._checked):
            return
        expected = self.plan.source_schema
        if schema.names != expected.names:
            raise SourceFailedError(
                f"a batch has the columns {schema.names!r}, expected {expected.names!r}.",
                remedy="The source changed while it was read; run the load again.",
            )
        for found, planned in zip(schema, expected, strict=True):
            if _plain(found.type) != _plain(planned.type):
                raise SourceFailedError(
                    f"column {found.name!r} of a batch is {str(found.type)!r}, expected {str(planned.type)!r}.",
                    remedy="The source changed while it was read; run the load again, or declare the type under"
                    " columns:.",
                )
        self._checked = schema


def _plain(t: pa.DataType) -> pa.DataType:
    """A type without what readers vary from batch to batch: nullability and metadata inside, dictionaries."""
    return rebuilt(t, list)


def _column(column: ColumnPlan, array: pa.Array, index: int) -> pa.Array:
    try:
        return convert(array, column.conversion)
    except pa.ArrowInvalid as exc:
        place = _first_bad(column, array)
        shown = _shown(array.slice(place, 1))
        raise ValueUnrepresentableError(
            f"column {column.source!r}, row {index + place}: value {shown!r} of type {str(array.type)!r} cannot be"
            f" written as {str(column.type)!r} without loss.",
            remedy=f"Convert it in the source, or declare its type, for example columns: {{{column.source}: string}}.",
        ) from exc


def _shown(value: pa.Array) -> str:
    # Arrow's own text: Python's datetime has neither nanoseconds nor the years that overflow.
    text = " ".join(value.to_string().split()).removeprefix("[ ").removesuffix(" ]")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _first_bad(column: ColumnPlan, array: pa.Array) -> int:
    """The place of the first value that fails; halves what must contain it."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(array.slice(low, middle - low), column.conversion)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low
