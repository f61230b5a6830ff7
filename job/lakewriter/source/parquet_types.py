"""Which Parquet files the tasks may read themselves: those that pyarrow and Spark understand alike."""

import json
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakewriter.source.arrow_types import make_nullable

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_SAME: Final = frozenset(
    {
        pa.bool_(),
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.string(),
        pa.binary(),
        pa.date32(),
    }
)
_ANNOTATIONS: Final = frozenset(["NONE", "STRING", "INT", "DECIMAL", "DATE", "TIMESTAMP"])
_UTC: Final = pa.timestamp("us", "UTC")


class NotAlike(Exception):  # noqa: N818
    """Spark would read the file in another way; the text says why."""


def to_spark_schema(footer: pq.FileMetaData) -> pa.Schema:
    """The schema Spark delivers for a file, or ``NotAlike``."""
    notes = footer.metadata or {}
    if any(key in notes for key in _LEGACY) or notes.get(_SPARK_VERSION, b"3").startswith((b"1.", b"2.")):
        raise NotAlike("it was written in Spark's legacy calendar")
    leaves = iter([footer.schema.column(index) for index in range(footer.num_columns)])
    fields = footer.schema.to_arrow_schema()
    schema = pa.schema([pa.field(field.name, _to_spark_type(field.type, leaves, field.name)) for field in fields])
    if _SPARK_SCHEMA in notes and _parse_noted_schema(notes[_SPARK_SCHEMA]) != schema:
        raise NotAlike("it holds types of Spark's own")
    return schema


def _parse_noted_schema(text: bytes) -> pa.Schema | None:
    """The schema that Spark noted in a file it wrote; None where Arrow cannot tell it."""
    try:
        noted = to_arrow_schema(StructType.fromJson(json.loads(text)))
    except (PySparkException, ValueError, KeyError):
        return None
    return pa.schema([pa.field(field.name, make_nullable(field.type)) for field in noted])


def _to_spark_type(kind: pa.DataType, leaves: Iterator[pq.ColumnSchema], column: str) -> pa.DataType:
    if pa.types.is_struct(kind) and kind.num_fields:
        if len({field.name.lower() for field in kind}) < kind.num_fields:
            raise NotAlike(f"column {column!r} has two fields of one name")
        return pa.struct([pa.field(field.name, _to_spark_type(field.type, leaves, column)) for field in kind])
    if pa.types.is_map(kind):
        key = _to_spark_type(kind.key_type, leaves, column)
        return pa.map_(key, pa.field("value", _to_spark_type(kind.item_type, leaves, column)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(pa.field("element", _to_spark_type(kind.value_type, leaves, column)))
    leaf = next(leaves, None)
    spark_type = (
        None if leaf is None or leaf.logical_type.type not in _ANNOTATIONS else _to_leaf_type(kind, leaf.physical_type)
    )
    if spark_type is None:
        raise NotAlike(f"column {column!r} has the type {kind}")
    return spark_type


def _to_leaf_type(kind: pa.DataType, physical: str) -> pa.DataType | None:
    if physical == "INT96":
        return _UTC
    if pa.types.is_timestamp(kind) and kind.unit in ("ms", "us"):
        return _UTC if kind.tz else pa.timestamp("us")
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    return kind if kind in _SAME or pa.types.is_decimal128(kind) else None
