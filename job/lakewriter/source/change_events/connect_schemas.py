"""Read the types of rows from the schemas of events: those that Kafka Connect's JSON converter writes beside each one,
and those of Avro.

https://debezium.io/documentation/reference/3.2/connectors/postgresql.html#postgresql-data-types
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.sql_types import parse_type
from lakewriter.column_types import can_hold, find_common_type, name_type
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.table_spec import ColumnType

_DATE: Final = ColumnType(type="date", unit="epoch_days")
_MILLIS: Final = ColumnType(type="timestamp_ntz", unit="epoch_ms")
_AVRO_UNITS: Final[Mapping[str, Literal["epoch_ms", "epoch_us", "epoch_ns"]]] = {
    "millis": "epoch_ms",
    "micros": "epoch_us",
    "nanos": "epoch_ns",
}
_LOGICAL: Final[Mapping[str, ColumnType]] = {
    "io.debezium.time.Date": _DATE,
    "io.debezium.time.Timestamp": _MILLIS,
    "io.debezium.time.MicroTimestamp": ColumnType(type="timestamp_ntz", unit="epoch_us"),
    "io.debezium.time.NanoTimestamp": ColumnType(type="timestamp_ntz", unit="epoch_ns"),
    "io.debezium.time.ZonedTimestamp": ColumnType(type="timestamp"),
    "org.apache.kafka.connect.data.Date": _DATE,
    "org.apache.kafka.connect.data.Timestamp": _MILLIS,
    "date": _DATE,
    **{
        f"{prefix}timestamp-{name}": ColumnType(type=kind, unit=unit)
        for prefix, kind in (("", "timestamp"), ("local-", "timestamp_ntz"))
        for name, unit in _AVRO_UNITS.items()
    },
}
"""The types of which a name says more than the type of the values: Debezium's names, Connect's, and those of Avro's
logical types, which schemas have that no converter made. A time of day stays a number."""
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


_AVRO: Final[Mapping[str, str]] = {
    "null": "string", "boolean": "boolean", "int": "int32", "long": "int64", "float": "float", "double": "double",
    "bytes": "bytes", "string": "string", "enum": "string", "fixed": "bytes",
}  # fmt: skip


def describe_avro(schema: Any) -> dict[str, Any]:
    """Return an Avro schema of records as Connect's JSON converter would describe it.

    ``connect.name`` and ``connect.parameters`` are what Connect's Avro converter keeps of its own schema: see
    AvroData.java of confluentinc/schema-registry. ``ValueError`` for a schema of anything else.
    """
    described = _AvroWalk({}).describe(schema, "", ())
    if described["type"] != "struct":
        raise ValueError(f"it is of {described['type']}, expected a record")
    return described


@dataclass(frozen=True)
class _AvroWalk:
    """A walk through a schema; ``named`` are the types that it has named so far, each with its namespace."""

    named: dict[str, tuple[Mapping[str, Any], str]]

    def describe(self, kind: Any, space: str, inside: tuple[str, ...]) -> dict[str, Any]:
        """Return a type as Connect describes it. ``inside`` are the names of the records around it."""
        if isinstance(kind, list):
            # Of several types the values are read as text.
            branches = [self.describe(branch, space, inside) for branch in kind if branch not in _NULL]
            return branches[0] if len(branches) == 1 else {"type": "string"}
        if isinstance(kind, str):
            return {"type": _AVRO[kind]} if kind in _AVRO else self._refer(kind, space, inside)
        name = kind["type"]
        if isinstance(name, dict | list):
            return self.describe(name, space, inside)
        if "name" in kind and name in ("record", "error", "enum", "fixed"):
            full, space = _find_name(kind["name"], str(kind.get("namespace", space) or ""))
            self.named[full], inside = (kind, space), (*inside, full)
        if name in ("record", "error"):
            members = ((f["name"], self.describe(f["type"], space, inside)) for f in kind["fields"])
            return {"type": "struct", "fields": [inner | {"field": member} for member, inner in members]}
        if name in ("array", "map"):
            inner = "items" if name == "array" else "values"
            return {"type": name, inner: self.describe(kind[inner], space, inside)}
        return _describe_plain(name, kind) if name in _AVRO else self._refer(name, space, inside)

    def _refer(self, name: str, space: str, inside: tuple[str, ...]) -> dict[str, Any]:
        full = next((option for option in (_find_name(name, space)[0], name) if option in self.named), None)
        if full is None:
            raise ValueError(f"it has no type {name!r}")
        if full in inside:
            raise ValueError(f"its record {full!r} has itself inside")
        return self.describe(*self.named[full], inside)


_NULL: Final = ("null", {"type": "null"})


def _find_name(name: str, space: str) -> tuple[str, str]:
    """Return the full name of a type, and its namespace."""
    if "." in name:
        return name, name.rpartition(".")[0]
    return (f"{space}.{name}" if space else name), space


def _describe_plain(name: str, kind: Mapping[str, Any]) -> dict[str, Any]:
    logical = kind.get("connect.name") or kind.get("logicalType")
    described = {"type": _AVRO[name]} | ({"name": logical} if logical else {})
    if logical in (_DECIMAL, "decimal"):
        given = {"scale": kind.get("scale", 0), "connect.decimal.precision": kind.get("precision", 38)}
        described |= {"name": _DECIMAL, "parameters": given | dict(kind.get("connect.parameters") or {})}
    return described
