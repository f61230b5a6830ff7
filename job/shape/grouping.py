"""The key by which Spark brings together the rows of one Iceberg partition; pure and picklable."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from job.errors import ValueUnrepresentableError
from job.shape.conversion import convert
from job.shape.plan import ColumnPlan, ShapePlan
from job.transforms import Transforms


@dataclass(frozen=True)
class Grouping:
    """The source's columns that partitions depend on, a key for each row made of them."""

    columns: tuple[ColumnPlan, ...]
    transforms: Transforms

    @property
    def positions(self) -> tuple[int, ...]:
        """Places of the columns in the source."""
        return tuple(column.position for column in self.columns)

    def keys(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """The keys of rows whose columns are ``arrays``; null where a value cannot be written."""
        try:
            return self.transforms.keys(
                [convert(array, column.conversion) for array, column in zip(arrays, self.columns, strict=True)]
            )
        except (pa.ArrowInvalid, ValueUnrepresentableError):
            # The rows go on to a task, which names the value.
            return pa.nulls(len(arrays[0]), pa.string())


def grouping(shape: ShapePlan) -> Grouping | None:
    """None where a load has one partition in all; ``SPEC_INVALID`` where a column's type has no such transform."""
    transforms = Transforms.of(shape.partition, shape.schema)
    columns = {column.name: column for column in shape.columns}
    fields = [each for each in transforms.columns if each.field.column in columns]
    if not fields:
        return None
    return Grouping(tuple(columns[each.field.column] for each in fields), Transforms(tuple(fields)))
