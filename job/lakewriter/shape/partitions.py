"""Iceberg's partition transforms over Arrow batches, by PyIceberg's own functions, and keys that group rows by them.

A file's partition is a tuple of values in the form of https://iceberg.apache.org/spec/#json-single-value-serialization.
"""

import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyiceberg.conversions import from_bytes, from_json, to_bytes, to_json
from pyiceberg.transforms import Transform, parse_transform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from lakewriter.errors import SpecInvalidError, ValueUnrepresentableError
from lakewriter.naming import describe_unfit_segment
from lakewriter.shape.conversion import convert
from lakewriter.shape.table import ColumnPlan, ShapePlan
from lakewriter.spec.table_spec import PartitionField

Values = tuple[str | int | bool | None, ...]
"""The values of a partition, one for each of its fields."""

MAX_VALUE_CHARACTERS: Final = 100
"""A value in an object's key is cut to so many characters: the key has 1024 bytes in all."""

_HALF_ESCAPE: Final = re.compile(r"%.?$")


@dataclass(frozen=True)
class Column:
    """One partition field over a written column."""

    field: PartitionField
    type: PrimitiveType
    transform: Transform[Any, Any]

    @property
    def result(self) -> PrimitiveType:
        """The type of its values."""
        result = self.transform.result_type(self.type)
        assert isinstance(result, PrimitiveType)
        return result

    def compute_values(self, array: pa.Array) -> tuple[pa.Array, list[str | int | bool | None]]:
        """Return the distinct values, and for every row the index of its value among them."""
        encoded = _floor_to_hour(array, self.field).dictionary_encode(null_encoding="encode")
        transform, result = self.transform.transform(self.type), self.result
        partitions: dict[str | int | bool | None, int] = {}
        indices = []
        for index, value in enumerate(_to_plain_values(encoded.dictionary)):
            try:
                partition = None if value is None else to_json(result, transform(value))
                if partition not in partitions:
                    # What has no text, or does not fit the field's type, is refused here, with its value at hand.
                    self.name_directory(partition)
                    partitions[partition] = len(partitions)
            except (ValueError, OverflowError, struct.error) as error:
                raise self._make_error(encoded.dictionary.slice(index, 1), error) from error
            indices.append(partitions[partition])
        return pa.array(indices, pa.int32()).take(encoded.indices), list(partitions)

    def _make_error(self, value: pa.Array, error: Exception) -> ValueUnrepresentableError:
        # Arrow's own text: Python's dates end with the year 9999.
        shown = " ".join(value.to_string().split()).removeprefix("[ ").removesuffix(" ]")
        return ValueUnrepresentableError(
            f"partition_by {self.field}: {shown} in column {self.field.column!r} has no partition ({error}).",
            remedy="Leave such rows out, or clear the value, in the source: partitions lie in the years 1 to 9999, and "
            "a truncated number is of its column's type.",
        )

    def name_directory(self, value: str | int | bool | None) -> str:
        """Return ``{field}={value}``, long values cut short."""
        text = self.transform.to_human_string(self.result, to_manifest_value(value, self.result))
        short = _escape(text[:MAX_VALUE_CHARACTERS])[:MAX_VALUE_CHARACTERS]
        return f"{_escape(self.field.name)}={_HALF_ESCAPE.sub('', short)}"


@dataclass(frozen=True)
class Transforms:
    """Transforms of partition fields, which assign each row to its partition; picklable."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, fields: Sequence[PartitionField], schema: pa.Schema) -> "Transforms":
        """Return the transforms of written columns; ``SPEC_INVALID`` where a type has none."""
        return cls(tuple(_make_column(field, schema.field(field.column).type) for field in fields))

    def split_by_partition(self, batch: pa.RecordBatch) -> Iterator[tuple[Values, pa.RecordBatch]]:
        """Yield each partition with its neighbouring rows."""
        computed = [column.compute_values(batch.column(column.field.column)) for column in self.columns]
        starts = _find_run_starts([indices for indices, _ in computed], batch.num_rows)
        for start, end in pairwise([*starts, batch.num_rows]):
            partition = tuple(values[indices[start].as_py()] for indices, values in computed)
            yield partition, batch.slice(start, end - start)

    def write_keys(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """Return a text for each row, equal only for rows of one partition; ``arrays`` are the fields' columns."""
        texts = []
        for column, array in zip(self.columns, arrays, strict=True):
            indices, values = column.compute_values(array)
            texts.append(pa.array([json.dumps(value) for value in values], pa.string()).take(indices))
        return pc.binary_join_element_wise(*texts, ",")

    def name_directory(self, partition: Values) -> str:
        """Return the partition's directory under the table's data."""
        return "/".join(column.name_directory(value) for column, value in zip(self.columns, partition, strict=True))


def to_manifest_value(value: str | int | bool | None, t: PrimitiveType) -> Any:
    """Return a partition's value as manifests have it: dates and timestamps are numbers."""
    return None if value is None else from_bytes(t, to_bytes(t, from_json(t, value)))


def _escape(text: str) -> str:
    """Return ``text`` as Java's URLEncoder, and so Iceberg's library, escapes it."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def _make_column(field: PartitionField, t: pa.DataType) -> Column:
    source_type, transform = _to_iceberg_type(t), parse_transform(field.transform)
    if source_type is None or not transform.can_transform(source_type):
        raise SpecInvalidError(
            f"partition_by {field}: column {field.column!r} is written as {str(t)!r}, which it does not take.",
            remedy="Days and hours go with dates and timestamps, truncate with whole numbers, decimals, strings and "
            "binaries, bucket with these and dates and timestamps; fractional and nested values have no partitions.",
        )
    folder = f"{_escape(field.name)}="
    if fault := describe_unfit_segment(folder):
        raise SpecInvalidError(
            f"partition_by {field}: folders would be named {folder!r}: the name {fault}.",
            remedy="Rename the column with an sql: read.",
        )
    return Column(field, source_type, transform)


def _to_iceberg_type(t: pa.DataType) -> PrimitiveType | None:
    """Return the Iceberg type of a written column; None for those that partition nothing."""
    if pt.is_decimal(t):
        return DecimalType(t.precision, t.scale)
    if pt.is_timestamp(t):
        return TimestamptzType() if t.tz else TimestampType()
    types: dict[pa.DataType, PrimitiveType] = {
        pa.bool_(): BooleanType(),
        pa.int32(): IntegerType(),
        pa.int64(): LongType(),
        pa.date32(): DateType(),
        pa.string(): StringType(),
        pa.binary(): BinaryType(),
    }
    return types.get(t)


def _floor_to_hour(array: pa.Array, field: PartitionField) -> pa.Array:
    """Cut timestamps to the hour for transforms that see no more, which leaves few distinct values."""
    if not pt.is_timestamp(array.type):
        return array
    plain = array.view(pa.timestamp(array.type.unit))
    return pc.floor_temporal(plain, unit="hour") if field.of_time else plain


def _to_plain_values(array: pa.Array) -> list[Any]:
    """Return values as PyIceberg's transforms take them: dates and timestamps as numbers."""
    if pt.is_timestamp(array.type):
        return list(array.view(pa.int64()).to_pylist())
    return list((array.view(pa.int32()) if pt.is_date32(array.type) else array).to_pylist())


def _find_run_starts(arrays: Sequence[pa.Array], rows: int) -> list[int]:
    """Return the indexes at which runs of equal values begin."""
    if rows == 0:
        return []
    changes = pa.array([True, *[False] * (rows - 1)])
    for array in arrays:
        changed = pc.not_equal(array.slice(1), array.slice(0, rows - 1))
        changes = pc.or_(changes, pa.concat_arrays([pa.array([False]), changed]))
    return list(pc.indices_nonzero(changes).to_pylist())


@dataclass(frozen=True)
class Grouping:
    """The source's columns that partitions depend on, and the transforms that make a key for each row of them."""

    columns: tuple[ColumnPlan, ...]
    transforms: Transforms

    @property
    def positions(self) -> tuple[int, ...]:
        """Places of the columns in the source."""
        return tuple(column.position for column in self.columns)

    def write_keys(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """Return the keys of rows whose columns are ``arrays``; null where a value cannot be written."""
        try:
            return self.transforms.write_keys(
                [convert(array, column.conversion) for array, column in zip(arrays, self.columns, strict=True)]
            )
        except (pa.ArrowInvalid, ValueUnrepresentableError):
            # The rows go on to a task, which names the value.
            return pa.nulls(len(arrays[0]), pa.string())


def make_grouping(shape: ShapePlan) -> Grouping | None:
    """Return the grouping, None if a load has one partition in all; ``SPEC_INVALID`` if a column's type has no such
    transform.
    """
    transforms = Transforms.of(shape.partition, shape.schema)
    columns = {column.name: column for column in shape.columns}
    fields = [column for column in transforms.columns if column.field.column in columns]
    if not fields:
        return None
    return Grouping(tuple(columns[column.field.column] for column in fields), Transforms(tuple(fields)))
