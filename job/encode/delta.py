"""Which columns take a DELTA encoding in place of a dictionary, judged by a file's first batch."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

INTEGERS = "DELTA_BINARY_PACKED"
TEXT = "DELTA_LENGTH_BYTE_ARRAY"


def delta_encodings(first: pa.RecordBatch) -> dict[str, str]:
    """Encoding by top-level column, where more than half of the values differ; a dictionary serves the others better.

    BYTE_STREAM_SPLIT is never chosen: Spark's vectorised reader fails on it.
    """
    chosen = {}
    for field, column in zip(first.schema, first.columns, strict=True):
        encoding = _encoding(field.type)
        if encoding and pc.count_distinct(column).as_py() * 2 > len(column) - column.null_count:
            chosen[field.name] = encoding
    return chosen


def leaf_paths(schema: pa.Schema) -> list[str]:
    """Dotted paths of all leaf columns, as pyarrow's writer names them."""
    return [path for field in schema for path in _leaves(field.name, field.type)]


def _encoding(kind: pa.DataType) -> str | None:
    types = pa.types
    if types.is_integer(kind) or types.is_temporal(kind):
        return INTEGERS
    if types.is_decimal128(kind):
        # Wider decimals are fixed length byte arrays.
        return INTEGERS if kind.precision <= 18 else None
    return TEXT if types.is_string(kind) or types.is_binary(kind) else None


def _leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path
