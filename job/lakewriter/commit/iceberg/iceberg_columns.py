"""Convert columns between Arrow and Iceberg: types, field ids, and a file's statistics for its manifest entry."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import _ConvertToIcebergWithoutIDs, schema_to_pyarrow, visit_pyarrow
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from lakewriter.receipt import ColumnStatistics

FIELD_ID: Final = b"PARQUET:field_id"


def to_arrow_types(schema: Schema) -> dict[str, pa.DataType]:
    """Return the Arrow types of a table's columns, by their names in lower case."""
    return {
        field.name.lower(): shorten_offsets(field.type) for field in schema_to_pyarrow(schema, include_field_ids=False)
    }


def number_fields(schema: pa.Schema) -> Schema:
    """Return the Iceberg schema of a new table, with field ids from 1 on."""
    return assign_fresh_schema_ids(visit_pyarrow(schema, _ConvertToIcebergWithoutIDs()))


def shorten_offsets(t: pa.DataType) -> pa.DataType:
    """Return ``t`` with 32-bit offsets at every level, as the job's own batches have them."""
    if pt.is_struct(t):
        return pa.struct([field.with_type(shorten_offsets(field.type)) for field in t])
    if pt.is_map(t):
        key, item = (field.with_type(shorten_offsets(field.type)) for field in (t.key_field, t.item_field))
        return pa.map_(key, item)
    if pt.is_list(t) or pt.is_large_list(t):
        return pa.list_(t.value_field.with_type(shorten_offsets(t.value_type)))
    if pt.is_large_string(t):
        return pa.string()
    return pa.binary() if pt.is_large_binary(t) else t


def add_field_ids(schema: pa.Schema, table: Schema) -> pa.Schema:
    """Return ``schema`` with the table's field ids; columns are matched without regard to case and keep their names."""
    fields = {field.name.lower(): field for field in schema_to_pyarrow(table)}
    return pa.schema([_add_field_id(field, fields[field.name.lower()]) for field in schema])


def _add_field_id(field: pa.Field, existing: pa.Field) -> pa.Field:
    return field.with_type(_add_nested_ids(field.type, existing.type)).with_metadata(
        {FIELD_ID: existing.metadata[FIELD_ID]}
    )


def _add_nested_ids(t: pa.DataType, existing: pa.DataType) -> pa.DataType:
    if pt.is_struct(t):
        by_name = {field.name.lower(): field for field in existing}
        return pa.struct([_add_field_id(field, by_name[field.name.lower()]) for field in t])
    if pt.is_map(t):
        return pa.map_(_add_field_id(t.key_field, existing.key_field), _add_field_id(t.item_field, existing.item_field))
    if pt.is_list(t):
        return pa.list_(_add_field_id(t.value_field, existing.value_field))
    return t


@dataclass(frozen=True)
class Leaf:
    """A leaf column: its dotted path in a Parquet file; ``repeated`` is true inside a list or a map."""

    path: str
    field_id: int
    type: PrimitiveType
    repeated: bool = False


def list_leaves(schema: Schema) -> Iterator[Leaf]:
    """Yield every leaf column of a table."""
    for field in schema.fields:
        yield from _walk_leaves(field.name, field.field_id, field.field_type)


def _walk_leaves(path: str, field_id: int, t: IcebergType, repeated: bool = False) -> Iterator[Leaf]:
    if isinstance(t, StructType):
        for field in t.fields:
            yield from _walk_leaves(f"{path}.{field.name}", field.field_id, field.field_type, repeated)
    elif isinstance(t, ListType):
        yield from _walk_leaves(f"{path}.list.element", t.element_id, t.element_type, True)
    elif isinstance(t, MapType):
        yield from _walk_leaves(f"{path}.key_value.key", t.key_id, t.key_type, True)
        yield from _walk_leaves(f"{path}.key_value.value", t.value_id, t.value_type, True)
    elif isinstance(t, PrimitiveType):
        yield Leaf(path, field_id, t, repeated)


def encode_bound(text: str | None, t: PrimitiveType) -> bytes | None:
    """Encode a receipt's bound in Iceberg's binary single-value form; None where there is none, or it is NaN."""
    if text is None or type(t) not in _VALUES:
        return None
    value = _VALUES[type(t)](text)
    # NaN orders nowhere.
    return None if value != value else to_bytes(t, value)


_VALUES: Final[Mapping[type[PrimitiveType], Any]] = {
    BooleanType: lambda text: text == "True",
    IntegerType: int,
    LongType: int,
    FloatType: float,
    DoubleType: float,
    DecimalType: Decimal,
    DateType: date.fromisoformat,
    TimestampType: datetime.fromisoformat,
    TimestamptzType: datetime.fromisoformat,
    StringType: str,
    BinaryType: bytes.fromhex,
}


class ManifestStatistics:
    """Makes the statistics of manifest entries from those of receipts, for files of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._leaves = {_fold_path(leaf.path): leaf for leaf in list_leaves(schema)}

    def convert(self, columns: Mapping[str, ColumnStatistics]) -> dict[str, dict[int, Any]]:
        """Return a file's statistics as a manifest entry has them: by name, sizes, counts and bounds by field id."""
        manifest: dict[str, dict[int, Any]] = {
            name: {} for name in ("column_sizes", "value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
        }
        for leaf, statistics in self._match(columns):
            values = {
                "column_sizes": statistics.compressed_bytes,
                "value_counts": statistics.values,
                "null_value_counts": statistics.nulls,
                "lower_bounds": None if leaf.repeated else encode_bound(statistics.lower, leaf.type),
                "upper_bounds": None if leaf.repeated else encode_bound(statistics.upper, leaf.type),
            }
            for name, value in values.items():
                if value is not None:
                    manifest[name][leaf.field_id] = value
        return manifest

    def count_nulls(self, columns: Mapping[str, ColumnStatistics]) -> dict[int, int]:
        """Return a file's nulls by field id, of the columns where they were counted."""
        return {
            leaf.field_id: statistics.nulls for leaf, statistics in self._match(columns) if statistics.nulls is not None
        }

    def _match(self, columns: Mapping[str, ColumnStatistics]) -> Iterator[tuple[Leaf, ColumnStatistics]]:
        for path, statistics in columns.items():
            leaf = self._leaves.get(_fold_path(path))
            if leaf is not None:
                yield leaf, statistics


def _fold_path(path: str) -> str:
    """Fold a leaf's path: engines name the group inside a map differently, and a table may fold the case of names."""
    return path.lower().replace(".entries.", ".key_value.")
