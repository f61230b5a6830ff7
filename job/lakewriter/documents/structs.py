"""Values of a source's own types as JSON text: compact, members in their order; those without a value are left out.

Numbers keep their digits, dates and times are ISO text, binary is base64; NaN and infinities have no JSON: null.
"""

import json
import math
from base64 import b64encode
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt


def json_texts(array: pa.Array) -> pa.Array:
    """One text per value, null for null."""
    t = array.type
    return pa.array([None if value is None else _text(value, t) for value in array.to_pylist()], pa.string())


def _text(value: Any, t: pa.DataType) -> str:
    if value is None:
        return "null"
    if pt.is_struct(t):
        members = [(field.name, value[field.name], field.type) for field in t if value[field.name] is not None]
        return "{" + ",".join(f"{_quoted(name)}:{_text(own, kind)}" for name, own, kind in members) + "}"
    if pt.is_map(t):
        return "{" + ",".join(f"{_quoted(_name(key))}:{_text(own, t.item_type)}" for key, own in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_text(own, t.value_type) for own in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "null"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return f'"{b64encode(value).decode()}"'
    return _quoted(_name(value))


def _name(value: Any) -> str:
    if isinstance(value, datetime):
        zoned = value.tzinfo is not None
        return value.replace(tzinfo=None).isoformat() + ("Z" if zoned and value.utcoffset() == timedelta(0) else "")
    return value if isinstance(value, str) else value.isoformat() if hasattr(value, "isoformat") else _plain(value)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
