"""Parquet by parquet-rs, and by pyarrow where parquet-rs has no wheel: the same values, schema and statistics.

Neither stores an Arrow schema in the file: what it says of its columns is Parquet's own types and nothing else.
The engines differ in one name that readers have to ignore, that of the repeated group inside a map.
"""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lakewriter.encode.encoder import Encoder, Sink
from lakewriter.encode.guard import Guard
from lakewriter.encode.parquet_columns import SAMPLE_ROWS, choose, leaf_paths, quick_columns, sampled
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.specification import Encoding


@dataclass(frozen=True)
class Codec:
    """``levels`` are those both engines take, none for a codec without levels; ``quick`` are the lowest ones that still
    make Huffman codes of the data's own, of parquet-rs and of pyarrow."""

    arro3: str
    pyarrow: str
    levels: range | None = None
    quick: tuple[int, int] | None = None

    def check(self, level: int) -> None:
        """``SPEC_INVALID`` for a level the codec does not have; a codec without levels ignores it."""
        if self.levels is not None and level not in self.levels:
            raise SpecInvalidError(
                f"compression level {level!r} for {self.pyarrow}; expected {self.levels[0]} to {self.levels[-1]}.",
                remedy="Set encoding.level to one of these.",
            )

    def arro3_text(self, level: int) -> str:
        """The codec with its level, ``gzip(4)``."""
        return self.arro3 if self.levels is None else f"{self.arro3}({level})"

    def pyarrow_level(self, level: int) -> int | None:
        """The level, None for a codec without levels."""
        return None if self.levels is None else level


CODECS: Final = {
    "gzip": Codec("gzip", "gzip", range(1, 10), quick=(2, 1)),
    "snappy": Codec("snappy", "snappy"),
    "zstd": Codec("zstd", "zstd", range(1, 23)),
    # Both spellings give LZ4_RAW; the older LZ4 framing is deprecated by the format.
    "lz4": Codec("lz4_raw", "lz4"),
    "brotli": Codec("brotli", "brotli", range(12)),
    "uncompressed": Codec("uncompressed", "none"),
}


def codec(encoding: Encoding) -> Codec:
    """The codec of ``encoding``, its level checked; ``SPEC_INVALID`` lists the known ones."""
    found = CODECS.get(encoding.codec.lower())
    if found is None:
        raise SpecInvalidError(f"compression codec {encoding.codec!r} is not known; expected one of {list(CODECS)}.")
    found.check(encoding.level)
    return found


def _arro3_installed() -> bool:
    try:
        return importlib.util.find_spec("arro3.io") is not None
    except ModuleNotFoundError:
        return False


ARRO3_INSTALLED: Final = _arro3_installed()


def encoder(encoding: Encoding, *, arro3: bool = ARRO3_INSTALLED) -> Encoder:
    """The engine that ``encoding`` asks for; ``arro3`` says whether parquet-rs can be had here."""
    if encoding.engine == "pyarrow" or (encoding.engine == "auto" and not arro3):
        return PyarrowEncoder(encoding)
    if not arro3:
        raise SpecInvalidError(
            "encoding.engine is 'arro3', but arro3-io is not installed here.",
            remedy="Install arro3-io, or set encoding.engine to 'auto' or 'pyarrow'.",
        )
    return Arro3Encoder(encoding)


class Arro3Encoder:
    """parquet-rs; it holds the interpreter while it encodes, so other threads run only between batches."""

    name = "arro3"
    footer = True

    def __init__(self, encoding: Encoding) -> None:
        self._codec, self._level, self._delta = codec(encoding), encoding.level, encoding.delta
        self._pages = _given(
            data_page_size_limit=encoding.page_bytes,
            dictionary_page_size_limit=encoding.dictionary_page_bytes,
            dictionary_enabled=None if encoding.dictionary else False,
        )

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: Sink, row_group_rows: int) -> None:
        """See ``Encoder``."""
        # Imported here because there is no wheel for ARM64 Linux with glibc.
        from arro3.io import write_parquet

        with Guard(sink) as guard:
            options, feed = self._options(guard.batches(batches), row_group_rows)
            write_parquet(
                pa.RecordBatchReader.from_batches(standard_schema(schema), feed),
                guard,  # type: ignore[arg-type]
                compression=self._codec.arro3_text(self._level),
                max_row_group_size=row_group_rows,
                skip_arrow_metadata=True,
                **self._pages,
                **options,
            )

    def _options(
        self, batches: Iterator[pa.RecordBatch], row_group_rows: int
    ) -> tuple[dict[str, Any], Iterator[pa.RecordBatch]]:
        sample, feed = sampled(batches, row_group_rows)
        if sample is None:
            return {}, feed
        choice = choose(sample, delta=self._delta)
        options = {
            "column_encoding": {(name,): encoding.lower() for name, encoding in choice.delta.items()},
            "column_dictionary_enabled": {(name,): False for name in choice.without_dictionary},
        }
        if self._codec.quick is not None:
            quick = self._codec.arro3_text(min(self._level, self._codec.quick[0]))
            names = quick_columns(sample, choice.without_dictionary)
            options["column_compression"] = {(name,): quick for name in names}
        return options, feed


class PyarrowEncoder:
    """pyarrow's own writer; it is given a whole row group at a time, as its batches would each become one."""

    name = "pyarrow"
    footer = True

    def __init__(self, encoding: Encoding) -> None:
        self._codec, self._level, self._delta = codec(encoding), encoding.level, encoding.delta
        self._pages = _given(
            data_page_size=encoding.page_bytes,
            dictionary_pagesize_limit=encoding.dictionary_page_bytes,
            use_dictionary=None if encoding.dictionary else False,
        )

    def write(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], sink: Sink, row_group_rows: int) -> None:
        """See ``Encoder``."""
        with Guard(sink) as guard:
            bare = schema.with_metadata(None)
            groups = _row_groups(guard.batches(batches), bare, row_group_rows)
            first = next(groups, bare.empty_table())
            with pq.ParquetWriter(
                guard,
                bare,
                compression=self._codec.pyarrow,
                store_schema=False,
                store_decimal_as_integer=True,
                write_page_index=True,
                **({"compression_level": self._codec.pyarrow_level(self._level)} | self._options(first) | self._pages),
            ) as writer:
                for group in chain([first] if first.num_rows else [], groups):
                    writer.write_table(group, row_group_size=row_group_rows)

    def _options(self, first: pa.Table) -> dict[str, Any]:
        if not first.num_rows:
            return {}
        sample = first.slice(0, SAMPLE_ROWS)
        choice = choose(sample, delta=self._delta)
        paths = leaf_paths(first.schema)
        options: dict[str, Any] = {"column_encoding": choice.delta} if choice.delta else {}
        if choice.without_dictionary:
            options["use_dictionary"] = [path for path in paths if path not in choice.without_dictionary] or False
        if self._codec.quick is not None and (names := quick_columns(sample, choice.without_dictionary)):
            quick = min(self._level, self._codec.quick[1])
            options["compression_level"] = dict.fromkeys(paths, self._level) | dict.fromkeys(names, quick)
        return options


def _given(**options: Any) -> dict[str, Any]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value is not None}


def _row_groups(batches: Iterator[pa.RecordBatch], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            yield pa.Table.from_batches(held, schema=schema)
            held, count = [], 0
    if held:
        yield pa.Table.from_batches(held, schema=schema)


def standard_schema(schema: pa.Schema) -> pa.Schema:
    """``schema`` with list elements named ``element``, as the format asks; parquet-rs takes names as they are.

    Arrow arrays carry no names of their own, so batches need no cast.
    """
    return pa.schema([field.with_type(_standard(field.type)) for field in schema])


def _standard(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_standard(field.type)) for field in kind])
    if pa.types.is_map(kind):
        key, item = (field.with_type(_standard(field.type)) for field in (kind.key_field, kind.item_field))
        return pa.map_(key, item, keys_sorted=kind.keys_sorted)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = kind.value_field.with_type(_standard(kind.value_type)).with_name("element")
        return pa.large_list(element) if pa.types.is_large_list(kind) else pa.list_(element)
    return kind
