"""CSV and JSON Lines, a batch at a time: Arrow joins the cells of every row, no row passes through Python.

A column of field kind ``json`` holds JSON text of any value; other columns are strings and integers.
"""

import json
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.documents.types import JSON, KIND
from lakewriter.documents.values_to_text import join, quote_json, render_objects, replace_masked
from lakewriter.encode.deflate import open_gzip
from lakewriter.encode.encoder import Sink
from lakewriter.spec.encodings import TextEncoding

GZIP_LEVEL: Final = 6


class TextEncoder:
    """See ``Encoder``."""

    footer = False

    def __init__(self, encoding: TextEncoding) -> None:
        self.name = encoding.kind
        self._encoding = encoding

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: Sink, row_group_rows: int) -> None:
        """Write the lines; CSV begins with its header, in a file without rows too."""
        packer = open_gzip(GZIP_LEVEL) if self._encoding.gzip else None

        def send(data: bytes) -> None:
            packed = packer.compress(data) if packer else data
            if packed:
                sink.write(packed)

        lines = make_json_lines if self._encoding.kind == "jsonl" else make_csv_lines
        if self._encoding.kind == "csv":
            send(make_csv_header(schema))
        for batch in batches:
            send(join_texts(lines(batch)))
        if packer:
            sink.write(packer.flush())


def join_texts(lines: pa.Array) -> bytes:
    """Return the texts of an array, one right behind the other; none is null."""
    offsets = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, lines.buffers()[1]], offset=lines.offset)
    data = lines.buffers()[2]
    return data.to_pybytes()[offsets[0].as_py() : offsets[-1].as_py()] if data is not None else b""


def make_csv_header(schema: pa.Schema) -> bytes:
    """Return the names, quoted."""
    names = ('"' + name.replace('"', '""') + '"' for name in schema.names)
    return (",".join(names) + "\r\n").encode()


def make_csv_lines(batch: pa.RecordBatch) -> pa.Array:
    """Return lines of RFC 4180: numbers bare, all else quoted; null is an empty field, an empty string ``""``."""
    cells = [_make_csv_cell(column, field) for column, field in zip(batch.columns, batch.schema, strict=True)]
    return join([join(cells, ",", null_as_empty=True), "\r\n"])


def make_json_lines(batch: pa.RecordBatch) -> pa.Array:
    """Return one object a line, every key in each."""
    columns = zip(batch.columns, batch.schema, strict=True)
    texts = render_objects([(field.name, _make_json_value(column, field)) for column, field in columns], batch.num_rows)
    return join([texts, "\n"])


def _make_json_value(column: pa.Array, field: pa.Field) -> pa.Array:
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return column if _is_json(field) else quote_json(column)


def _make_csv_cell(column: pa.Array, field: pa.Field) -> pa.Array:
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    return _from_json(column) if _is_json(field) else _quote_csv(column)


def _quote_csv(texts: pa.Array) -> pa.Array:
    return join(['"', pc.replace_substring(texts, '"', '""'), '"'])


def _from_json(fragments: pa.Array) -> pa.Array:
    """Return a JSON number as it is, the content of a JSON string, and everything else as JSON text, quoted for CSV."""
    strings = pc.fill_null(pc.starts_with(fragments, '"'), False)
    texts = fragments
    if pc.any(strings).as_py():
        inner = pc.utf8_slice_codeunits(fragments, 1, -1)
        texts = pc.if_else(strings, inner, fragments)
        escaped = pc.and_(strings, pc.match_substring(fragments, "\\"))
        texts = replace_masked(
            texts, pc.fill_null(escaped, False), map(json.loads, fragments.filter(escaped).to_pylist())
        )
    numbers = pc.match_substring_regex(fragments, "^[-0-9]")
    cells = pc.if_else(numbers, fragments, _quote_csv(texts))
    return pc.if_else(pc.equal(fragments, "null"), pa.scalar(None, pa.string()), cells)


def _is_json(field: pa.Field) -> bool:
    return bool(field.metadata and field.metadata.get(KIND) == JSON)
