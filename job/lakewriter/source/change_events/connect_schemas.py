"""Read the types of rows from the schemas that Kafka Connect's JSON converter writes beside each event.

https://debezium.io/documentation/reference/3.2/connectors/postgresql.html#postgresql-data-types
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.sql_types import parse_type
from lakewriter.column_types import can_hold, find_common_type, name_type
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.table_spec import ColumnType

_DATE: Final = ColumnType(type="date", unit="epoch_days")
_MILLIS: Final = ColumnType(type="timestamp_ntz", unit="epoch_ms")
_LOGICAL: Final[Mapping[str, ColumnType]] = {
    "io.debezium.time.Date": _DATE,
    "io.debezium.time.Timestamp": _MILLIS,
    "io.debezium.time.MicroTimestamp": ColumnType(type="timestamp_ntz", unit="epoch_us"),
    "io.debezium.time.NanoTimestamp": ColumnType(type="timestamp_ntz", unit="epoch_ns"),
    "io.debezium.time.ZonedTimestamp": ColumnType(type="timestamp"),
    "org.apache.kafka.connect.data.Date": _DATE,
    "org.apache.kafka.connect.data.Timestamp": _MILLIS,
}
"""The types of which a name says more than the type of the values. A time of day stays a number."""
_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_PLAIN: Final[Mapping[str, ColumnType]] = {
    "boolean": ColumnType(type="boolean"),
    "int8": ColumnType(type="int"),
    "int16": ColumnType(type="int"),
    "int32": ColumnType(type="int"),
    "int64": ColumnType(type="bigint"),
    "float": ColumnType(type="float"),
    "float32": ColumnType(type="float"),
    "double": ColumnType(type="double"),
    "float64": ColumnType(type="double"),
    "string": ColumnType(type="string"),
    "bytes": ColumnType(type="binary", unit="base64"),
}
"""Both spellings of a float are there: the converter's, and those of the type itself."""
_IMAGES: Final = frozenset({"after", "before"})


def read_row_types(schemas: Iterable[str], table: str) -> dict[str, ColumnType]:
    """Return the types of a table's columns by the schemas of its events, as JSON; none of nested columns.

    Raise ``SPEC_INVALID`` if two schemas give a column types that no type holds.
    """
    types = dict[str, ColumnType]()
    for text in sorted(schemas):
        event = json.loads(text)
        images = [field for field in event.get("fields") or () if field.get("field") in _IMAGES]
        for field in (field for image in images for field in image.get("fields") or ()):
            name, kind = field.get("field"), _read_type(field)
            if name is not None and kind is not None:
                types[name] = _join(table, name, types.get(name, kind), kind)
    return types


def _read_type(field: Mapping[str, Any]) -> ColumnType | None:
    if field.get("name") == _DECIMAL:
        parameters = field.get("parameters") or {}
        scale, precision = int(parameters.get("scale", 0)), int(parameters.get("connect.decimal.precision", 38))
        return ColumnType(type=f"decimal({min(precision, 38)},{scale})", unit="base64") if 0 <= scale <= 38 else None
    return _LOGICAL.get(str(field.get("name"))) or _PLAIN.get(str(field.get("type")))


def _join(table: str, name: str, one: ColumnType, other: ColumnType) -> ColumnType:
    """Return the type that holds the values of both."""
    kinds = [parse_type(one.type), parse_type(other.type)]
    # The bytes of a decimal mean another number where the scale is another one.
    scales = {kind.scale for kind in kinds if pt.is_decimal(kind)}
    common = find_common_type(kinds) if one.unit == other.unit and len(scales) < 2 else None
    if common is None or not all(kind.equals(common) or can_hold(common, kind) for kind in kinds):
        raise SpecInvalidError(
            f"table {table!r}: column {name!r} is {_describe(one)} in one schema of its events and {_describe(other)} "
            "in another one.",
            remedy=f"Load the events of each by themselves; or declare its type under columns:, such as {{{name}: "
            "string}.",
        )
    return one if common.equals(kinds[0]) else ColumnType(type=_name(common), unit=one.unit)


def _describe(kind: ColumnType) -> str:
    return kind.type if kind.unit is None else f"{kind.type} ({kind.unit})"


def _name(kind: pa.DataType) -> str:
    return f"decimal({kind.precision},{kind.scale})" if pt.is_decimal(kind) else name_type(kind)
