"""List the Arrow types in which Spark delivers its columns, and bring a column to one of them."""

from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    YearMonthIntervalType,
)

from lakewriter.errors import SchemaIncompatibleError, ValueUnrepresentableError

_STORED: Final = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)
_INTERVALS: Final = (CalendarIntervalType, DayTimeIntervalType, YearMonthIntervalType)


def list_children(kind: DataType) -> tuple[DataType, ...]:
    """Return the types inside a nested type; none for a leaf."""
    if isinstance(kind, StructType):
        return tuple(field.dataType for field in kind.fields)
    if isinstance(kind, MapType):
        return (kind.keyType, kind.valueType)
    return (kind.elementType,) if isinstance(kind, ArrayType) else ()


def deliver_column(name: str, column: Column, kind: DataType) -> Column:
    """Return the column as the tasks get it: intervals and variants, and what holds any of them, as JSON text.

    An interval's JSON text is the string that ``to_json`` gives: ``"INTERVAL '1' DAY"`` with its quotes.
    """
    if isinstance(kind, _INTERVALS):
        item = F.regexp_replace(F.to_json(F.array(column)), r"^\[|\]$", "")
        return F.when(column.isNotNull(), item)
    if _has_json(kind):
        return F.to_json(column, {"ignoreNullFields": "false"})
    _require_arrow(name, kind)
    return column


def require_stored(name: str, kind: DataType) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` for a column that does not go to the tasks unchanged."""
    if _has_json(kind):
        raise SchemaIncompatibleError(
            f"column {name!r} has the type {kind.simpleString()}, which Spark's writer does not hand on as JSON text.",
            remedy="Convert it by to_json, or cast it; or use lakewriter.write(df, ...).",
        )
    _require_arrow(name, kind)


def _require_arrow(name: str, kind: DataType) -> None:
    refused = _find_refused(kind)
    if refused is not None:
        raise SchemaIncompatibleError(
            f"column {name!r} has the type {refused.simpleString()}, which no file format here stores.",
            remedy=f"Declare a type it converts to: columns: {{{name}: string}}.",
        )


def _has_json(kind: DataType) -> bool:
    return isinstance(kind, (*_INTERVALS, VariantType)) or any(_has_json(child) for child in list_children(kind))


def _find_refused(kind: DataType) -> DataType | None:
    """Return the first inner type that cannot go to the tasks.

    Types that are empty by definition are among them, such as the element of ``array()`` and the key of ``map()``:
    Arrow has no type that has neither values nor nulls.
    """
    if _is_empty(kind):
        return kind
    inside = list_children(kind)
    if not inside and not (isinstance(kind, _STORED) and type(kind).__module__ == StringType.__module__):
        return kind
    return next((refused for child in inside if (refused := _find_refused(child)) is not None), None)


def _is_empty(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return isinstance(kind.elementType, NullType) and not kind.containsNull
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, NullType)
    fields = kind.fields if isinstance(kind, StructType) else []
    return any(isinstance(field.dataType, NullType) and not field.nullable for field in fields)


def make_arrow_schema(names: list[str], schema: StructType) -> pa.Schema:
    """Return the Arrow schema of a DataFrame's batches under other names, with every field nullable."""
    try:
        typed = to_arrow_schema(schema, error_on_duplicated_field_names_in_struct=True)
    except PySparkException as error:
        raise SchemaIncompatibleError(
            f"a struct among {names!r} has two fields of one name: {error}",
            remedy="Rename one of them with an sql: read.",
        ) from error
    return pa.schema([pa.field(name, make_nullable(field.type)) for name, field in zip(names, typed, strict=True)])


def make_nullable(kind: pa.DataType) -> pa.DataType:
    """Return the type with every nested field nullable and named as Spark names it. Keys of maps stay as they are."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, make_nullable(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(make_nullable(kind.key_type), pa.field("value", make_nullable(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", make_nullable(kind.value_type)))
    return kind


def require_utf8(batch: pa.RecordBatch, where: str) -> None:
    """Raise ``VALUE_UNREPRESENTABLE`` for text whose bytes are not UTF-8, which columnar files may hold."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            if "UTF8" not in str(error):
                raise
            raise ValueUnrepresentableError(
                f"{where}: text of column {field.name!r} is not UTF-8 ({error}).",
                remedy=f"Correct the file, or load the bytes: sql: SELECT CAST({field.name} AS BINARY) ...",
            ) from error


def match_by_position(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the batch's columns in the schema's names and types, matched by position."""
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def check_batch(batch: pa.RecordBatch, schema: pa.Schema, partition: int) -> pa.RecordBatch:
    """Return the batch in the feed's schema, and raise if its text is not UTF-8: Spark checks neither the bytes that it
    casts to strings nor the strings of files.
    """
    taken = match_by_position(batch, schema)
    require_utf8(taken, f"partition {partition}")
    return taken
