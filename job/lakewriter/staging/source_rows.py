"""The rows of a partition on their way through a task, with where they came from. Knows nothing of Spark."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.naming import ORDINAL
from lakewriter.source.bad_rows import BAD, CHECKS


@dataclass(frozen=True)
class Rows:
    """Rows of a partition, as the source has them.

    row_numbers  each row's number in the partition, from 0
    marks        where each row begins in its file, and what is wrong with it
    checks       the result of each SQL check of the table
    ordinals     each row's number in the order of the source's files, where the rows come in another one
    """

    batch: pa.RecordBatch
    row_numbers: pa.Int64Array
    marks: pa.Array | None = None
    checks: pa.Array | None = None
    ordinals: pa.Array | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch, first: int) -> "Rows":
        """Make rows of a feed's batch, whose last columns may be the rows' checks, marks and ordinals.

        ``first`` is the number of the first row.
        """
        hidden: dict[str, pa.Array] = {}
        for name in (ORDINAL, BAD, CHECKS):
            if batch.num_columns and batch.schema.names[-1] == name:
                last = batch.num_columns - 1
                hidden[name] = batch.column(last)
                batch = batch.select(range(last))
        numbers = pa.arange(first, first + batch.num_rows)
        return cls(batch, numbers, hidden.get(BAD), hidden.get(CHECKS), hidden.get(ORDINAL))

    def split(self) -> tuple["Rows", "Rows"]:
        """Split the rows into halves."""
        middle = self.batch.num_rows // 2
        return self._slice(slice(0, middle)), self._slice(slice(middle, None))

    def take(self, numbers: pa.Array) -> "Rows":
        """Return the rows with these numbers."""
        beside = (array if array is None else array.take(numbers) for array in self._list_beside())
        return Rows(self.batch.take(numbers), self.row_numbers.take(numbers), *beside)

    def _slice(self, part: slice) -> "Rows":
        start, stop, _ = part.indices(self.batch.num_rows)
        beside = (array if array is None else array[part] for array in self._list_beside())
        return Rows(self.batch.slice(start, stop - start), self.row_numbers[part], *beside)

    def _list_beside(self) -> tuple[pa.Array | None, ...]:
        return self.marks, self.checks, self.ordinals


def keep_rows(batch: pa.RecordBatch, is_kept: pa.Array) -> pa.RecordBatch:
    """Return the rows that stay. Numbers without nulls are taken by index, in a third of the time of a filter."""
    indices = pc.indices_nonzero(is_kept)
    columns = [
        column.filter(is_kept) if column.null_count or not pt.is_primitive(column.type) else column.take(indices)
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
