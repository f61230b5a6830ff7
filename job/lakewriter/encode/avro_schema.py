"""The Avro schema of a file's Arrow schema; names are safe already."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.documents.types import KIND, ORIGINAL, RECORD, UNION, UUID

_PLAIN: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}
_LOGICAL: Final = {
    pa.date32(): ("int", "date"),
    pa.time64("us"): ("long", "time-micros"),
    pa.timestamp("ms", tz="UTC"): ("long", "timestamp-millis"),
    pa.timestamp("us", tz="UTC"): ("long", "timestamp-micros"),
    pa.timestamp("us"): ("long", "local-timestamp-micros"),
}


def make_avro_schema(schema: pa.Schema) -> dict[str, Any]:
    """Return the record of a row; a nullable field is a union with null first, and null is its default."""
    name = (schema.metadata or {}).get(RECORD, b"record").decode()
    return {"type": "record", "name": name, "fields": [_make_field(field, name) for field in schema]}


def _make_field(field: pa.Field, namespace: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": field.name, "type": make_field_type(field, namespace)}
    original = (field.metadata or {}).get(ORIGINAL)
    if original is not None:
        entry["doc"] = f"_airbyte_original_name:{original.decode()}"
    return entry | ({"default": None} if field.nullable else {})


def make_field_type(field: pa.Field, namespace: str) -> Any:
    """Return the type of a field's values, with null if the field is nullable."""
    if read_kind(field) == UNION:
        # The branches of all unions have the same names: the field's own keeps those of two unions apart.
        inner = f"{namespace}.{field.name}"
        return ["null", *(_make_type(branch.type, branch, inner) for branch in list(field.type)[1:])]
    kind = _make_type(field.type, field, namespace)
    return ["null", kind] if field.nullable else kind


def read_kind(field: pa.Field) -> bytes | None:
    """Return the kind in a field's metadata, which its type does not say."""
    return (field.metadata or {}).get(KIND)


def _make_type(t: pa.DataType, field: pa.Field, namespace: str) -> Any:
    if read_kind(field) == UUID:
        return {"type": "string", "logicalType": "uuid"}
    if t in _PLAIN:
        return _PLAIN[t]
    if t in _LOGICAL:
        base, logical = _LOGICAL[t]
        return {"type": base, "logicalType": logical}
    if pt.is_decimal(t):
        return {"type": "bytes", "logicalType": "decimal", "precision": t.precision, "scale": t.scale}
    return _make_nested_type(t, field.name, namespace)


def _make_nested_type(t: pa.DataType, name: str, namespace: str) -> Any:
    if pt.is_struct(t):
        inner = f"{namespace}.{name}"
        fields = [_make_field(child, inner) for child in t]
        return {"type": "record", "name": name, "namespace": namespace, "fields": fields}
    if pt.is_map(t):
        if pt.is_string(t.key_type):
            return {"type": "map", "values": make_field_type(t.item_field, f"{namespace}.{name}")}
        return {"type": "array", "items": _make_entry(t, name, namespace)}
    return {"type": "array", "items": make_field_type(t.value_field, f"{namespace}.{name}")}


def _make_entry(t: pa.DataType, name: str, namespace: str) -> Any:
    """Return the type of a map's entry: Avro's maps have strings for keys, another map is an array of its entries."""
    fields = [
        _make_field(t.key_field, f"{namespace}.{name}.entry"),
        _make_field(t.item_field, f"{namespace}.{name}.entry"),
    ]
    return {"type": "record", "name": "entry", "namespace": f"{namespace}.{name}", "fields": fields}
