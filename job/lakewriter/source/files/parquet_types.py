"""Map the columns of a Parquet file to exact types by its footer, or refuse them by name.

See: https://github.com/apache/parquet-format/blob/master/LogicalTypes.md
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from lakewriter.column_types import UTC_MICROS, make_list
from lakewriter.source.files.columnar import BY_SPARK, MOST_DIGITS
from lakewriter.source.files.file_reader import Fault
from lakewriter.source.files.julian_calendar import Calendar
from lakewriter.source.files.stored_values import (
    BEYOND,
    MICROS,
    Conversion,
    Convert,
    Converted,
    as_numbers,
    judge_rest,
    take_millis,
    take_nanos,
    take_text,
    write_intervals,
    write_times,
    write_uuids,
)

_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_VARIANT: Final = re.compile(
    r"(?:^|group field_id=-?\d+ )((?:(?!group field_id=).)*) \(Variant\(\d+\)\) \{$", re.MULTILINE
)
_SIGNED: Final = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_UNSIGNED: Final = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}
_BARE: Final = {
    "BOOLEAN": pa.bool_(), "INT32": pa.int32(), "INT64": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(),
    "BYTE_ARRAY": pa.binary(), "FIXED_LEN_BYTE_ARRAY": pa.binary(),
}  # fmt: skip
_OF_KIND: Final[Mapping[str, Conversion]] = {
    "String": Conversion(pa.string(), take_text),
    "Enum": Conversion(pa.string(), take_text),
    "JSON": Conversion(pa.string(), take_text),
    "BSON": Conversion(pa.binary()),
    "UUID": Conversion(pa.string(), write_uuids),
    "Float16": Conversion(pa.float32()),
    "Interval": Conversion(pa.string(), write_intervals),
    "Time": Conversion(pa.string(), write_times),
    "Null": Conversion(pa.null()),
}
"""The logical types without parameters."""


class UnreadTypeError(Exception):
    """A column of a type that is not read; ``remedy`` is the way out."""

    def __init__(self, column: str, kind: str, remedy: str = BY_SPARK) -> None:
        super().__init__(f"column {column!r} is {kind}, which is not read")
        self.remedy = remedy


@dataclass(frozen=True)
class StoredColumn:
    """A column of a file, the paths of its leaves, and the conversion of its values.

    ``has_int96`` is true if it contains timestamps of 96 bits, which need three readings.
    """

    name: str
    leaves: tuple[str, ...]
    conversion: Conversion
    has_int96: bool = False


def list_columns(footer: pq.FileMetaData, *, truncates: bool) -> list[StoredColumn]:
    """Return a file's columns. Raise ``UnreadTypeError`` for a column that is not read."""
    notes = footer.metadata or {}
    if variant := _VARIANT.search(str(footer.schema)):
        raise UnreadTypeError(variant[1], "a variant")
    _require_read(notes)
    calendar = Calendar.read(notes)
    leaves = iter([footer.schema.column(index) for index in range(footer.num_columns)])
    columns = []
    for column in footer.schema.to_arrow_schema():
        walk = _Leaves(leaves, calendar, truncates, column.name)
        conversion = walk.convert(column.type)
        columns.append(StoredColumn(column.name, tuple(walk.paths), conversion, walk.has_int96))
    return columns


def _require_read(notes: Mapping[bytes, bytes]) -> None:
    """Refuse types that Spark notes and that the file itself stores as whole numbers or bytes."""
    try:
        noted = json.loads(notes.get(_SPARK_SCHEMA, b"{}"))
    except ValueError:
        return
    for column in noted.get("fields", []) if isinstance(noted, dict) else []:
        if kind := _find_spark_type(column.get("type")):
            remedy = "Write it as text where the file is written, or let Spark read the file: read: {engine: spark}."
            raise UnreadTypeError(str(column.get("name")), f"Spark's {kind}", remedy)


def _find_spark_type(kind: Any) -> str:
    """Return the first of Spark's special types in a type as Spark notes it; blank for none."""
    if isinstance(kind, str):
        return kind if kind.startswith(("interval", "calendarinterval", "variant", "geometry", "geography")) else ""
    if isinstance(kind, dict):
        parts = [kind.get(name) for name in ("elementType", "keyType", "valueType", "sqlType")]
        fields = kind.get("fields")
        parts += [part.get("type") for part in fields if isinstance(part, dict)] if isinstance(fields, list) else []
        return next(filter(None, map(_find_spark_type, parts)), "")
    return ""


@dataclass
class _Leaves:
    """A walk through the types of one column, and through the leaves that the footer describes."""

    leaves: Iterator[pq.ColumnSchema]
    calendar: Calendar
    truncates: bool
    column: str
    has_int96: bool = False
    paths: list[str] = field(default_factory=list)

    def convert(self, kind: pa.DataType) -> Conversion:
        """Return the conversion of the values of an Arrow type."""
        if isinstance(kind, pa.BaseExtensionType) and pt.is_nested(kind.storage_type):
            # A tensor is a list to every other engine.
            kind = kind.storage_type
        if pt.is_struct(kind) and kind.num_fields:
            names = [field.name for field in kind]
            if len(set(names)) < len(names):
                raise UnreadTypeError(self.column, "a struct with two fields of one name")
            inside = tuple(self.convert(field.type) for field in kind)
            fields = [pa.field(name, child.kind) for name, child in zip(names, inside, strict=True)]
            return Conversion(pa.struct(fields), inside=inside)
        if pt.is_map(kind):
            key, item = self.convert(kind.key_type), self.convert(kind.item_type)
            return Conversion(pa.map_(key.kind, pa.field("value", item.kind)), inside=(key, item))
        if pt.is_nested(kind) and not pt.is_struct(kind):
            child = self.convert(kind.value_type)
            return Conversion(make_list(child.kind), inside=(child,))
        leaf = next(self.leaves, None)
        if leaf is None:
            raise UnreadTypeError(self.column, f"of the type {kind}")
        self.paths.append(leaf.path)
        return self._convert_leaf(leaf)

    def _convert_leaf(self, leaf: pq.ColumnSchema) -> Conversion:
        logical = json.loads(leaf.logical_type.to_json())
        name = logical["Type"]
        if leaf.physical_type == "INT96":
            self.has_int96 = True
            return Conversion(UTC_MICROS, self.calendar.take_int96(partial(take_int96, truncates=self.truncates)))
        if name == "Null" and leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
            # Java's library describes intervals so, and Arrow reads their values as nulls.
            raise UnreadTypeError(self.column, "an interval of Java's", "Write it as text, or leave it out.")
        if name == "None":
            return Conversion(_BARE[leaf.physical_type])
        return _OF_KIND[name] if name in _OF_KIND else self._convert_logical(name, logical)

    def _convert_logical(self, name: str, logical: Mapping[str, Any]) -> Conversion:
        """Return the conversion of the values of a logical type with parameters."""
        if name == "Int":
            widths = _SIGNED if logical["isSigned"] else _UNSIGNED
            return Conversion(widths[logical["bitWidth"]])
        if name == "Decimal":
            return Conversion(self._make_decimal(logical["precision"], logical["scale"]))
        if name == "Date":
            return Conversion(pa.date32(), self.calendar.take_dates())
        if name == "Timestamp":
            return self._take_timestamp(logical)
        described = {"Geometry": "a geometry", "Geography": "a geography", "Variant": "a variant"}
        raise UnreadTypeError(self.column, described.get(name, "of a logical type that is not known"))

    def _make_decimal(self, precision: int, scale: int) -> pa.DataType:
        if precision > MOST_DIGITS or not 0 <= scale <= precision:
            raise UnreadTypeError(
                self.column,
                f"decimal({precision},{scale}), beyond {MOST_DIGITS} digits",
                f"Write it with {MOST_DIGITS} digits at most, or as text.",
            )
        return pa.decimal128(precision, scale)

    def _take_timestamp(self, logical: Mapping[str, Any]) -> Conversion:
        nanos: Convert = partial(take_nanos, truncates=self.truncates)
        convert = {"milliseconds": take_millis, "nanoseconds": nanos}.get(logical["timeUnit"])
        if not logical["isAdjustedToUTC"]:
            return Conversion(MICROS, convert)
        return Conversion(UTC_MICROS, self.calendar.take_times(convert))


UNITS = ("us", "ns", "s")
"""The units of the arguments of ``take_int96``."""


def take_int96(micros: pa.Array, nanos: pa.Array, seconds: pa.Array, *, truncates: bool) -> Converted:
    """Convert timestamps of 96 bits, Julian days and nanoseconds of a day, to microseconds from three readings.

    Arrow returns them in one unit at a time, and a number that wrapped beyond the unit's range. Three units together
    lose nothing: seconds cover all days, and microseconds are right if they are of these seconds. The difference
    between nanoseconds and these microseconds is the finer part, even if the nanoseconds wrapped.
    """
    whole, fine, coarse = as_numbers(micros), as_numbers(nanos), as_numbers(seconds)
    with np.errstate(over="ignore"):
        rest = fine - whole * 1000
    beyond = np.flatnonzero(whole // 1_000_000 != coarse)
    mask = micros.is_null().to_numpy(zero_copy_only=False)
    judged = judge_rest(
        pa.array(whole, pa.int64(), mask=mask), pa.array(rest, pa.int64(), mask=mask), UTC_MICROS, truncates=truncates
    )
    if not len(beyond):
        return judged
    faults = {int(row): Fault(BEYOND, f"{int(coarse[row])} s since 1970") for row in beyond}
    return Converted(judged.values, {**judged.faults, **faults}, judged.cut)
