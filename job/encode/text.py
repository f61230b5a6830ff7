"""CSV and JSON Lines, a batch at a time: Arrow joins the cells of every row, no row passes through Python.

A column of field kind ``json`` holds JSON text of any value; other columns are strings and integers.
"""

import json
import zlib
from collections.abc import Iterator
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from job.document import JSON, KIND
from job.encode.encoder import Sink
from job.stream import TextEncoding

GZIP_LEVEL: Final = 6
_GZIP_WINDOW: Final = 31
"""zlib's way to ask for gzip's frame; the time in it stays zero, so that equal rows give equal files."""
_SPECIAL: Final = r'["\\\x00-\x1f]'


class TextEncoder:
    """See ``Encoder``."""

    footer = False

    def __init__(self, encoding: TextEncoding) -> None:
        self.name = encoding.kind
        self._encoding = encoding

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: Sink, row_group_rows: int) -> None:
        """CSV begins with its header, in a file without rows too."""
        packer = zlib.compressobj(GZIP_LEVEL, wbits=_GZIP_WINDOW) if self._encoding.gzip else None

        def send(data: bytes) -> None:
            packed = packer.compress(data) if packer else data
            if packed:
                sink.write(packed)

        lines = json_lines if self._encoding.kind == "jsonl" else csv_lines
        if self._encoding.kind == "csv":
            send(csv_header(schema))
        for batch in batches:
            send(text_of(lines(batch)))
        if packer:
            sink.write(packer.flush())


def text_of(lines: pa.Array) -> bytes:
    """The texts of an array, one right behind the other; none is null."""
    offsets = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, lines.buffers()[1]], offset=lines.offset)
    data = lines.buffers()[2]
    return data.to_pybytes()[offsets[0].as_py() : offsets[-1].as_py()] if data is not None else b""


def csv_header(schema: pa.Schema) -> bytes:
    """The names, quoted."""
    names = ('"' + name.replace('"', '""') + '"' for name in schema.names)
    return (",".join(names) + "\r\n").encode()


def csv_lines(batch: pa.RecordBatch) -> pa.Array:
    """RFC 4180: numbers bare, everything else quoted; null is an empty field, an empty string ``""``."""
    cells = [_csv_cell(column, field) for column, field in zip(batch.columns, batch.schema, strict=True)]
    rows = _joined(cells, ",")
    return _joined([rows, "\r\n"], "")


def json_lines(batch: pa.RecordBatch) -> pa.Array:
    """One object a line, every key in each."""
    pieces: list[Any] = []
    for position, (column, field) in enumerate(zip(batch.columns, batch.schema, strict=True)):
        pieces.append(("," if position else "{") + json.dumps(field.name, ensure_ascii=False) + ":")
        pieces.append(pc.fill_null(_json_value(column, field), "null"))
    return _joined([*pieces, "}\n"], "")


def quoted_json(texts: pa.Array) -> pa.Array:
    """Strings as JSON strings; null stays null."""
    plain = _joined_nulls(['"', texts, '"'])
    special = pc.fill_null(pc.match_substring_regex(texts, _SPECIAL), False)
    return _replaced(plain, special, [json.dumps(text, ensure_ascii=False) for text in _list(texts.filter(special))])


def _json_value(column: pa.Array, field: pa.Field) -> pa.Array:
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return column if _is_json(field) else quoted_json(column)


def _csv_cell(column: pa.Array, field: pa.Field) -> pa.Array:
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return _from_json(column) if _is_json(field) else _csv_quoted(column)


def _csv_quoted(texts: pa.Array) -> pa.Array:
    return _joined_nulls(['"', pc.replace_substring(texts, '"', '""'), '"'])


def _from_json(fragments: pa.Array) -> pa.Array:
    """A JSON number as it is, a JSON string's own text, and everything else as JSON text."""
    strings = pc.fill_null(pc.starts_with(fragments, '"'), False)
    texts = fragments
    if pc.any(strings).as_py():
        inner = pc.utf8_slice_codeunits(fragments, 1, -1)
        texts = pc.if_else(strings, inner, fragments)
        escaped = pc.and_(strings, pc.match_substring(fragments, "\\"))
        texts = _replaced(texts, pc.fill_null(escaped, False), map(json.loads, _list(fragments.filter(escaped))))
    numbers = pc.match_substring_regex(fragments, "^[-0-9]")
    cells = pc.if_else(numbers, fragments, _csv_quoted(texts))
    return pc.if_else(pc.equal(fragments, "null"), pa.scalar(None, pa.string()), cells)


def _replaced(texts: pa.Array, mask: pa.Array, by: Any) -> pa.Array:
    if not pc.any(mask).as_py():
        return texts
    return pc.replace_with_mask(texts, mask, pa.array(list(by), pa.string()))


def _joined(pieces: list[Any], separator: str) -> pa.Array:
    """Nulls count as empty."""
    return pc.binary_join_element_wise(*pieces, separator, null_handling="replace", null_replacement="")


def _joined_nulls(pieces: list[Any]) -> pa.Array:
    return reduce(lambda left, right: pc.binary_join_element_wise(left, right, ""), pieces)


def _is_json(field: pa.Field) -> bool:
    return bool(field.metadata and field.metadata.get(KIND) == JSON)


def _list(array: pa.Array) -> list[Any]:
    found: list[Any] = array.to_pylist()
    return found
