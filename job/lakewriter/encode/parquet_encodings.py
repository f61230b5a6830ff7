"""The storage of each column of a file, chosen from the file's first rows."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.spec.readers import ValueEncoding

SAMPLE_ROWS: Final = 65_536
UNIQUE: Final = 0.9
"""If this share of the sampled values is distinct, a column has more distinct values than a dictionary of a megabyte
holds."""

_SAMPLE_BYTES: Final = 4_194_304
"""The bytes of a column that decide, which fill the dictionary several times over: wide values are sampled in fewer
rows."""
_FIRST_ROWS: Final = 4096


@dataclass(frozen=True)
class Choice:
    """Top-level columns by name. ``plain`` are those of plain values, which a dictionary would only make larger."""

    encodings: Mapping[str, ValueEncoding]
    plain: Collection[str]

    @property
    def without_dictionary(self) -> list[str]:
        """The columns that have none."""
        return [*self.encodings, *self.plain]


def choose_encodings(sample: pa.Table, supported: Collection[ValueEncoding]) -> Choice:
    """Choose the encodings that suit ``sample``; mostly null columns keep a dictionary, as few values show little.

    Columns of which more than half of the values differ get the first of the ``supported`` encodings for their type.
    """
    encodings, plain = {}, []
    for field, whole in zip(sample.schema, sample.columns, strict=True):
        if not _is_counted(field.type):
            continue
        column = _limit_bytes(whole)
        values = len(column) - column.null_count
        if values * 2 <= len(column) or _repeats_at_once(column):
            continue
        distinct = pc.count_distinct(column).as_py()
        encoding = next((name for name in _list_encodings(field.type) if name in supported), None)
        if encoding is not None and distinct * 2 > values:
            encodings[field.name] = encoding
        elif distinct >= UNIQUE * values:
            plain.append(field.name)
    return Choice(encodings, plain)


def list_leaf_paths(schema: pa.Schema) -> list[str]:
    """List the dotted paths of all leaf columns, as pyarrow's writer names them."""
    return [path for field in schema for path in _iterate_leaves(field.name, field.type)]


def _list_encodings(kind: pa.DataType) -> tuple[ValueEncoding, ...]:
    """List the encodings for a type, the smallest first."""
    types = pa.types
    # Wider decimals are fixed length byte arrays.
    if types.is_integer(kind) or types.is_temporal(kind) or (types.is_decimal128(kind) and kind.precision <= 18):
        return ("DELTA_BINARY_PACKED",)
    if types.is_float32(kind) or types.is_float64(kind):
        return ("BYTE_STREAM_SPLIT",)
    return ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY") if _is_text(kind) else ()


def _iterate_leaves(path: str, kind: pa.DataType) -> Iterator[str]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _iterate_leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_map(kind):
        yield from _iterate_leaves(f"{path}.key_value.key", kind.key_type)
        yield from _iterate_leaves(f"{path}.key_value.value", kind.item_type)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _iterate_leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path


def _is_counted(kind: pa.DataType) -> bool:
    types = pa.types
    number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return number or types.is_temporal(kind) or _is_text(kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _limit_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return as many of the column's first values as have so many bytes on average."""
    width = column.nbytes / max(len(column), 1)
    return column.slice(0, max(_FIRST_ROWS, int(_SAMPLE_BYTES / max(width, 1))))


def _repeats_at_once(column: pa.ChunkedArray) -> bool:
    first = column.slice(0, _FIRST_ROWS)
    return bool(pc.count_distinct(first).as_py() * 2 <= len(first) - first.null_count)
