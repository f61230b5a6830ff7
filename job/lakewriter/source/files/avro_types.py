"""Map the fields of an Avro file to exact types by the schema in its header, or refuse them by name.

See: https://avro.apache.org/docs/1.12.0/specification/#logical-types
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.avro.container import Header
from lakewriter.column_types import UTC_MICROS, make_list
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.files.columnar import BY_SPARK, MOST_DIGITS, refuse_column
from lakewriter.source.files.file_reader import Fault
from lakewriter.source.files.julian_calendar import Calendar
from lakewriter.source.files.stored_values import (
    MICROS,
    Conversion,
    Convert,
    Converted,
    take_millis,
    take_nanos,
    take_text,
    write_intervals,
    write_times,
    write_uuids,
)

_PLAIN: Final = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "bytes": pa.binary(),
}  # fmt: skip
_WIDER: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
"""The branches of unions that Spark reads as one type."""
_TIMES: Final = {("int", "time-millis"): pa.time32("ms"), ("long", "time-micros"): pa.time64("us")}
_UNITS: Final = {"millis": "ms", "micros": "us", "nanos": "ns"}
_CATALYST: Final = "spark.sql.catalyst.type"
_UNKNOWN_SYMBOL: Final = "it is not the number of a symbol of its enum"
_NO_NUMBER: Final = "it has no byte, and is not a number"
_BEYOND_DIGITS: Final = "it has more digits than its type"
ROWS: Final = "rows"
"""The only field of the record as which a block's rows are decoded."""


@dataclass(frozen=True)
class AvroValue:
    """The schema by which values are decoded, the Arrow type that results, and the conversion to the column's type.

    ``decoded`` is a schema of the same bytes that loses nothing: texts are bytes, entries of maps records, and every
    branch of a union is a record of its own. ``meant`` is the type that the schema names, if the column has another.
    """

    decoded: Any
    raw: pa.DataType
    conversion: Conversion
    meant: pa.DataType | None = None


@dataclass(frozen=True)
class AvroColumns:
    """The names and the values of a file's columns."""

    names: tuple[str, ...]
    values: tuple[AvroValue, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns with their types."""
        kinds = (value.conversion.kind for value in self.values)
        return pa.schema([pa.field(name, kind) for name, kind in zip(self.names, kinds, strict=True)])

    @property
    def stored_schema(self) -> pa.Schema:
        """The columns with the types that the file names."""
        kinds = (value.meant or value.conversion.kind for value in self.values)
        return pa.schema([pa.field(name, kind) for name, kind in zip(self.names, kinds, strict=True)])

    def make_decoder(self) -> Any:
        """Return the schema by which an array of rows is decoded. Its fields are named by the columns' indexes."""
        row = {"type": "record", "name": "row", "fields": _number([value.decoded for value in self.values])}
        rows = {"name": ROWS, "type": {"type": "array", "items": row}}
        return fastavro.parse_schema({"type": "record", "name": ROWS, "fields": [rows]})


def _number(decoded: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"name": f"f{index}", "type": kind} for index, kind in enumerate(decoded)]


def read_columns(header: Header, path: str, *, truncates: bool) -> AvroColumns:
    """Return the columns of a file. Raise ``SCHEMA_INCOMPATIBLE`` for a column whose type is not read."""
    try:
        schema = json.loads(header.entries["avro.schema"])
    except (KeyError, ValueError) as error:
        raise SchemaIncompatibleError(f"{path!r}: its header has no schema: {error}.", remedy=BY_SPARK) from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise SchemaIncompatibleError(
            f"{path!r}: its rows are {_show(schema)}, expected records.", remedy="Write records with a field each."
        )
    calendar = Calendar.read({name.encode(): value for name, value in header.entries.items()})
    types = _Types(path, calendar, truncates)
    return types.read_record(schema)


def _show(kind: Any) -> str:
    return json.dumps(kind)[:100]


@dataclass
class _Types:
    """A walk through the types of a schema; ``named`` are the types with names, by their full names."""

    path: str
    calendar: Calendar
    truncates: bool
    column: str = ""
    named: dict[str, tuple[Mapping[str, Any], str]] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def read_record(self, schema: Mapping[str, Any]) -> AvroColumns:
        """Return the columns of the top-level records."""
        space = self._enter(schema, "")
        names, values = [], []
        for member in self._list_fields(schema):
            self.column = member["name"]
            names.append(self.column)
            values.append(self._read(member["type"], space))
        return AvroColumns(tuple(names), tuple(values))

    def _list_fields(self, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(
            isinstance(item, dict) and isinstance(item.get("name"), str) and "type" in item for item in fields
        ):
            raise self._refuse("a record whose fields have no names or types")
        return fields

    def _enter(self, kind: Mapping[str, Any], space: str) -> str:
        """Record a type with a name, and return its namespace."""
        name = str(kind.get("name", ""))
        space = name.rpartition(".")[0] if "." in name else str(kind.get("namespace", space) or "")
        full = name if "." in name or not space else f"{space}.{name}"
        self.named[full] = (kind, space)
        self.open.append(full)
        return space

    def _refuse(self, what: str, remedy: str = BY_SPARK) -> SchemaIncompatibleError:
        return refuse_column(self.path, self.column, what, remedy)

    def _read(self, kind: Any, space: str) -> AvroValue:
        if isinstance(kind, list):
            return self._read_union(kind, space)
        if isinstance(kind, str):
            return self._read_plain(kind, {}) if kind in _PLAIN or kind == "string" else self._refer(kind, space)
        name = kind.get("type") if isinstance(kind, dict) else None
        if isinstance(name, dict | list):
            return self._read(name, space)
        if str(kind.get(_CATALYST, "") if name else "").startswith(("interval", "variant", "geometry", "geography")):
            raise self._refuse(f"Spark's {kind[_CATALYST]}")
        if name in _PLAIN or name == "string":
            return self._read_plain(name, kind)
        read = {
            "record": self._read_struct, "array": self._read_list, "map": self._read_map, "enum": self._read_enum,
            "fixed": self._read_fixed,
        }.get(str(name))  # fmt: skip
        if read is None:
            return self._refer(str(name), space) if isinstance(name, str) else self._fail(kind)
        return read(kind, space)

    def _fail(self, kind: Any) -> AvroValue:
        raise self._refuse(f"of the type {_show(kind)}")

    def _refer(self, name: str, space: str) -> AvroValue:
        """Return the values of a type that the schema has described before."""
        full = next(
            (option for option in ([f"{space}.{name}", name] if space else [name]) if option in self.named), None
        )
        if full is None:
            raise self._refuse(f"of the type {name!r}, which its schema does not have")
        if full in self.open:
            raise self._refuse(f"a record {full!r} that has itself inside")
        return self._read(*self.named[full])

    def _read_union(self, kinds: Sequence[Any], space: str) -> AvroValue:
        """Return the values of a union. With one type and null they are of that type; with several they are structs
        with a member for each.
        """
        branches = [kind for kind in kinds if kind not in ("null", {"type": "null"})]
        wider = _WIDER.get(frozenset(kind if isinstance(kind, str) else "" for kind in branches))
        if len(branches) < 2 or (wider and len(branches) == 2):
            values = [self._read(kind, space) for kind in branches] or [self._read_plain("null", {})]
            decoded = iter([value.decoded for value in values])
            shown = self._read_plain(wider, {}) if wider and len(branches) == 2 else values[0]
            union = [next(decoded) if kind in branches else "null" for kind in kinds]
            return AvroValue(union if branches else kinds, shown.raw, shown.conversion, shown.meant)
        members, raw, inside = list[pa.Field](), list[pa.Field](), list[Conversion]()
        union = list[Any]()
        for kind in kinds:
            if kind not in branches:
                union.append("null")
                continue
            name, value = f"member{len(members)}", self._read(kind, space)
            members.append(pa.field(name, value.conversion.kind))
            union.append(self._make_record([{"name": name, "type": value.decoded}]))
            raw.append(pa.field(name, value.raw))
            inside.append(value.conversion)
        return AvroValue(union, pa.struct(raw), Conversion(pa.struct(members), inside=tuple(inside)))

    def _make_record(self, fields: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {"type": "record", "name": f"r{next(self.numbers)}", "fields": list(fields)}

    def _read_struct(self, kind: Mapping[str, Any], space: str) -> AvroValue:
        inner, fields = self._enter(kind, space), self._list_fields(kind)
        names = [member["name"] for member in fields]
        if len(set(names)) < len(names):
            raise self._refuse("a record with two fields of one name")
        values = [self._read(member["type"], inner) for member in fields]
        self.open.pop()
        named = list(zip(names, values, strict=True))
        members = [{"name": name, "type": value.decoded} for name, value in named]
        raw = pa.struct([pa.field(name, value.raw) for name, value in named])
        shown = pa.struct([pa.field(name, value.conversion.kind) for name, value in named])
        inside = tuple(value.conversion for value in values)
        return AvroValue(self._make_record(members), raw, Conversion(shown, inside=inside))

    def _read_list(self, kind: Mapping[str, Any], space: str) -> AvroValue:
        item = self._read(kind.get("items"), space)
        decoded = {"type": "array", "items": item.decoded}
        whole = Conversion(make_list(item.conversion.kind), inside=(item.conversion,))
        return AvroValue(decoded, pa.list_(item.raw), whole)

    def _read_map(self, kind: Mapping[str, Any], space: str) -> AvroValue:
        item = self._read(kind.get("values"), space)
        entry = self._make_record(_number(["bytes", item.decoded]))
        raw = pa.list_(pa.struct([pa.field("f0", pa.binary()), pa.field("f1", item.raw)]))
        whole = pa.map_(pa.string(), pa.field("value", item.conversion.kind))
        inside = (Conversion(pa.string(), _take_keys), item.conversion)
        return AvroValue({"type": "array", "items": entry}, raw, Conversion(whole, inside=inside))

    def _read_enum(self, kind: Mapping[str, Any], space: str) -> AvroValue:
        self._enter(kind, space)
        self.open.pop()
        symbols = tuple(map(str, kind.get("symbols", ())))
        return AvroValue("int", pa.int32(), Conversion(pa.string(), partial(_take_symbols, symbols)))

    def _read_fixed(self, kind: Mapping[str, Any], space: str) -> AvroValue:
        self._enter(kind, space)
        self.open.pop()
        size, logical = kind.get("size"), kind.get("logicalType")
        if not isinstance(size, int) or size < 0:
            raise self._refuse("fixed, without a size")
        decoded = {"type": "fixed", "name": f"r{next(self.numbers)}", "size": size}
        if logical == "decimal":
            return AvroValue(decoded, pa.binary(), self._read_decimal(kind))
        if logical == "uuid" and size == 16:
            return AvroValue(decoded, pa.binary(16), Conversion(pa.string(), write_uuids), pa.binary(16))
        if logical == "duration" and size == 12:
            return AvroValue(decoded, pa.binary(), Conversion(pa.string(), write_intervals), pa.binary(12))
        return AvroValue(decoded, pa.binary(), Conversion(pa.binary()))

    def _read_plain(self, name: str, kind: Mapping[str, Any]) -> AvroValue:
        if name == "string":
            return AvroValue("bytes", pa.binary(), Conversion(pa.string(), take_text))
        raw, logical = _PLAIN[name], str(kind.get("logicalType", ""))
        if name == "bytes" and logical == "decimal":
            return AvroValue(name, raw, self._read_decimal(kind))
        if name == "bytes" and logical == "big-decimal":
            raise self._refuse("a decimal whose scale differs from value to value", "Write it as text, or as decimal.")
        if time := _TIMES.get((name, logical)):
            return AvroValue(name, raw, Conversion(pa.string(), partial(_view_and, time, write_times)), time)
        conversion = self._read_date(name, logical) if name in ("int", "long") else None
        return AvroValue(name, raw, conversion or Conversion(raw))

    def _read_decimal(self, kind: Mapping[str, Any]) -> Conversion:
        precision, scale = kind.get("precision"), kind.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision != 0:
            raise self._refuse(f"a decimal of {precision!r} digits, {scale!r} of them behind the point")
        if precision > MOST_DIGITS:
            raise self._refuse(
                f"decimal({precision},{scale}), beyond {MOST_DIGITS} digits",
                f"Write it with {MOST_DIGITS} digits at most, or as text.",
            )
        return Conversion(pa.decimal128(precision, scale), partial(_take_decimals, precision, scale))

    def _read_date(self, name: str, logical: str) -> Conversion | None:
        """Return the conversion of numbers to dates or timestamps; None if they are numbers."""
        if name == "int":
            dates = partial(_view, pa.date32())
            return Conversion(pa.date32(), self.calendar.take_dates(dates)) if logical == "date" else None
        prefix, _, unit = logical.removeprefix("local-").rpartition("-")
        if prefix != "timestamp" or unit not in _UNITS:
            return None
        is_local = logical.startswith("local-")
        stored = pa.timestamp(_UNITS[unit], None if is_local else "UTC")
        nanos: Convert = partial(take_nanos, truncates=self.truncates)
        convert: Convert = partial(_view, stored)
        if unit != "micros":
            convert = partial(_view_and, stored, take_millis if unit == "millis" else nanos)
        return Conversion(MICROS, convert) if is_local else Conversion(UTC_MICROS, self.calendar.take_times(convert))


def _view(kind: pa.DataType, values: pa.Array) -> Converted:
    return Converted(values.view(kind))


def _view_and(kind: pa.DataType, convert: Callable[[pa.Array], Converted], values: pa.Array) -> Converted:
    return convert(values.view(kind))


def _take_keys(values: pa.Array) -> Converted:
    try:
        return Converted(values.cast(pa.string()))
    except pa.ArrowInvalid:
        return take_text(values)


def _take_symbols(symbols: Sequence[str], values: pa.Array) -> Converted:
    is_other = pc.fill_null(pc.or_(pc.less(values, 0), pc.greater_equal(values, len(symbols))), False)
    rows = pc.indices_nonzero(is_other).to_pylist()
    faults = {row: Fault(_UNKNOWN_SYMBOL, str(values[row].as_py())) for row in rows}
    numbers = pc.if_else(is_other, None, values) if faults else values
    return Converted(pa.array(symbols, pa.string()).take(numbers), faults)


def _take_decimals(precision: int, scale: int, values: pa.Array) -> Converted:
    """Convert big-endian integers to the digits of decimals."""
    faults, digits, most = dict[int, Fault](), list[bytes](), 10**precision
    for index, value in enumerate(values.to_pylist()):
        number = int.from_bytes(value or b"", "big", signed=True)
        if value is not None and (not value or abs(number) >= most):
            faults[index] = Fault(_BEYOND_DIGITS if value else _NO_NUMBER, f"{number}E-{scale}" if value else "")
            number = 0
        digits.append(number.to_bytes(16, "little", signed=True))
    is_valid = None if not values.null_count else pa.array(values.is_valid()).buffers()[1]
    kind = pa.decimal128(precision, scale)
    return Converted(pa.Array.from_buffers(kind, len(values), [is_valid, pa.py_buffer(b"".join(digits))]), faults)
