"""Parquet by pyarrow's encodings, with gzip by libraries that are several times as fast as its own.

No Arrow schema is stored in the file: only Parquet's own types describe its columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewriter.documents.types import LOGICAL_TYPE
from lakewriter.encode.deflate import make_gzip
from lakewriter.encode.encoder import Sink
from lakewriter.encode.parquet_encodings import SAMPLE_ROWS, choose_encodings, list_leaf_paths
from lakewriter.encode.parquet_pages import Column, PageWriter
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.encodings import ParquetEncoding


@dataclass(frozen=True)
class Codec:
    """A codec as pyarrow calls it; ``levels`` is None for one without levels."""

    name: str
    levels: range | None = None

    def check(self, level: int | None) -> None:
        """Raise ``SPEC_INVALID`` for a level that the codec does not have; a codec without levels ignores it."""
        if self.levels is not None and level is not None and level not in self.levels:
            raise SpecInvalidError(
                f"compression level {level!r} for {self.name}; expected {self.levels[0]} to {self.levels[-1]}.",
                remedy="Set encoding.level to one of these.",
            )


CODECS: Final = {
    "gzip": Codec("gzip", range(1, 10)),
    "snappy": Codec("snappy"),
    "zstd": Codec("zstd", range(1, 23)),
    # Both spellings give LZ4_RAW; the older LZ4 framing is deprecated by the format.
    "lz4": Codec("lz4"),
    "brotli": Codec("brotli", range(12)),
    "uncompressed": Codec("none"),
}


def find_codec(encoding: ParquetEncoding) -> Codec:
    """Return the codec of ``encoding``, its level checked; ``SPEC_INVALID`` lists the codecs there are."""
    codec = CODECS.get(encoding.codec.lower())
    if codec is None:
        raise SpecInvalidError(f"compression codec {encoding.codec!r} is not known; expected one of {list(CODECS)}.")
    codec.check(encoding.level)
    return codec


class ParquetEncoder:
    """See ``Encoder``. pyarrow encodes one column of a row group at a time, whose pages go to the sink as they come:
    what is held besides the row group itself is a page, or a column's data behind its dictionary.
    """

    name = "pyarrow"
    footer = True

    def __init__(self, encoding: ParquetEncoding) -> None:
        self._codec, self._encoding = find_codec(encoding), encoding
        self._is_gzip = self._codec.name == "gzip"

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: Sink, row_group_rows: int) -> None:
        """See ``Encoder``."""
        bare = schema.with_metadata(None)
        level = self._encoding.level
        way = None if level is None else make_gzip(level)
        empty = pa.BufferOutputStream()
        _encode([bare.empty_table()], {}, empty)
        logical_types = {
            field.name: field.metadata[LOGICAL_TYPE].decode()
            for field in bare
            if LOGICAL_TYPE in (field.metadata or {})
        }
        pages = PageWriter(sink, memoryview(empty.getvalue()), gzip=self._is_gzip, way=way, logical_types=logical_types)
        options: dict[str, Any] | None = None
        order = [(name, "ascending") for name in self._encoding.sort_by]
        for group in _gather_row_groups(batches, bare, row_group_rows):
            # Chosen by the rows in their original order: the first rows of a sorted group are alike.
            options = self._choose_options(group[0]) if options is None else options
            row_order = pc.sort_indices(group[0], sort_keys=order) if order else None
            pages.add(group[0].num_rows, _list_columns(group, options, row_order))
        pages.finish()

    def _choose_options(self, first: pa.Table) -> dict[str, Any]:
        """Choose the options of pyarrow's writer by the first row group, which has rows."""
        encoding = self._encoding
        options = _drop_unset(
            data_page_size=encoding.page_bytes,
            dictionary_pagesize_limit=encoding.dictionary_page_bytes,
            use_dictionary=None if encoding.dictionary else False,
        )
        if self._is_gzip:
            options["compression"] = "none"
        else:
            options |= {"compression": self._codec.name, "write_page_checksum": True}
            if self._codec.levels is not None:
                options["compression_level"] = encoding.level
        choice = choose_encodings(first.slice(0, SAMPLE_ROWS), encoding.value_encodings)
        if choice.encodings:
            options["column_encoding"] = dict(choice.encodings)
        if choice.without_dictionary and encoding.dictionary:
            paths = list_leaf_paths(first.schema)
            options["use_dictionary"] = [path for path in paths if path not in choice.without_dictionary] or False
        return options


def _list_columns(group: list[pa.Table], options: dict[str, Any], row_order: pa.Array | None) -> Iterator[Column]:
    """Yield the columns of a row group, taking the table out of ``group`` so that a column is freed once it is written.

    ``row_order`` holds the positions of the rows in their order: columns are sorted one at a time, since a row group
    held twice is more than a task has memory for.
    """
    table = group.pop()
    schema, columns = table.schema, table.columns
    del table
    for field in schema:
        column = columns.pop(0) if row_order is None else columns.pop(0).take(row_order)
        held = [pa.table([column], schema=pa.schema([field]))]
        del column
        # The format has no order of intervals, so that their bounds would be wrong.
        column_options = options if (field.metadata or {}).get(LOGICAL_TYPE) != b"interval" else options | _NO_BOUNDS
        yield Column(partial(_encode, held, column_options), pa.types.is_nested(field.type))


_NO_BOUNDS: Final = {"write_statistics": False}


def _encode(held: list[pa.Table], options: dict[str, Any], file: Any) -> None:
    """Write a Parquet file with one row group, or none where there are no rows. ``held`` gives up its table."""
    table = held.pop()
    with pq.ParquetWriter(
        file,
        table.schema,
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_index=True,
        # As both vendors' writers have it; Arrow's times have no zone of their own.
        write_time_adjusted_to_utc=True,
        **options,
    ) as writer:
        if table.num_rows:
            writer.write_table(table, row_group_size=table.num_rows)


def _drop_unset(**options: Any) -> dict[str, Any]:
    """Return the options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def _gather_row_groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema, rows: int) -> Iterator[list[pa.Table]]:
    """Yield row groups, each alone in a list, so that the caller that takes one out holds the only reference."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            table, held, count = [pa.Table.from_batches(held, schema=schema)], [], 0
            yield table
    if held:
        yield [pa.Table.from_batches(held, schema=schema)]
