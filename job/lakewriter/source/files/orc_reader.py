"""Read ORC: pieces are stripes, types and the calendar are those of the footer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.types as pt

from lakewriter.column_types import UTC_MICROS, make_list
from lakewriter.errors import SchemaIncompatibleError, ValueUnrepresentableError
from lakewriter.source.files.columnar import (
    MOST_DIGITS,
    ColumnIndexes,
    PartsLayout,
    PartsReader,
    open_ranges,
    refuse_column,
)
from lakewriter.source.files.file_reader import Piece
from lakewriter.source.files.julian_calendar import rebase_dates
from lakewriter.source.files.orc_footer import OrcFooter, UnknownFooterError, read_orc_footer
from lakewriter.source.files.orc_timestamps import make_conversion, read_seconds
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.files.stored_values import (
    MICROS,
    Conversion,
    Converted,
    convert_column,
    take_nanos,
    take_text,
    unwrap,
)

_BATCH_ROWS: Final = 65_536
_SPARK_TYPE: Final = b"spark.sql.catalyst.type"
_PLAIN: Final = frozenset(
    {pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.binary(), pa.null()}
)
_BEYOND: Final = "out of range for nanosecond resolution"


class OrcReader(PartsReader):
    """The settings of a source of ORC."""

    form = "orc"

    def _describe(self, file: StoredFile) -> tuple[pa.Schema, PartsLayout]:
        with open_ranges(file, is_small=False) as source:
            footer = _read_footer(source, file.path)
            columns = self._list_columns(po.ORCFile(source).schema, footer, file.path)
        return pa.schema([pa.field(name, how.kind) for name, how in columns]), PartsLayout(footer.stripes)

    def _list_columns(self, schema: pa.Schema, footer: OrcFooter, path: str) -> list[tuple[str, Conversion]]:
        types = _Types(path, footer.counts_by_julian, self.truncates)
        return [(field.name, types.convert(field, field.name)) for field in schema]

    def read_stored_types(self, file: StoredFile) -> pa.Schema:
        """Return the columns with the types of the file."""
        with open_ranges(file, is_small=False) as source:
            return po.ORCFile(source).schema

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See ``FileReader``."""
        layout, path = piece.layout, piece.file.path
        with open_ranges(piece.file) as source:
            file = po.ORCFile(source)
            footer = _read_footer(source, path)
            columns = self._list_columns(file.schema, footer, path)
            beyond = make_conversion(is_julian=footer.counts_by_julian, truncates=self.truncates)
            indexes = ColumnIndexes.find(schema, [name for name, _ in columns], is_exact=layout.is_exact)
            row = layout.first_row
            for number, stripe in enumerate(layout.parts, layout.first):
                arrays = _read_stripe(_Opened(file, source, footer, path), number, indexes)
                if any(len(array) != stripe.rows for array in arrays.values()):
                    raise OSError(f"a column of stripe {number} has other rows than the {stripe.rows} of its footer")
                for start in range(0, stripe.rows, _BATCH_ROWS):
                    count = min(_BATCH_ROWS, stripe.rows - start)
                    converted = {
                        index: convert_column(
                            beyond
                            if pt.is_struct(array.type) and pt.is_timestamp(file.schema.field(index).type)
                            else columns[index][1],
                            columns[index][0],
                            [array.slice(start, count)],
                        )
                        for index, array in arrays.items()
                    }
                    yield indexes.make_batch(path, row + start, count, converted)
                row += stripe.rows


def _read_footer(source: pa.NativeFile, path: str) -> OrcFooter:
    try:
        return read_orc_footer(source)
    except UnknownFooterError as error:
        # Arrow raises its error for a file that is not ORC.
        po.ORCFile(source)
        raise SchemaIncompatibleError(
            f"{path!r}: its footer has no calendar and stripes: {error}.", remedy="Let Spark read it: engine: spark."
        ) from error


@dataclass(frozen=True)
class _Opened:
    """A file opened by Arrow, and its footer."""

    file: po.ORCFile
    source: pa.NativeFile
    footer: OrcFooter
    path: str


def _read_stripe(opened: _Opened, number: int, indexes: ColumnIndexes) -> Mapping[int, pa.Array]:
    """Return the requested columns of a stripe, by their indexes in the file.

    Timestamps that Arrow cannot hold are structs of seconds and nanoseconds.
    """
    names = opened.file.schema.names
    asked = sorted({index for index in indexes.indexes if index is not None})
    is_all = len(asked) == len(names) or len(set(names)) < len(names)
    if not asked:
        return {}
    try:
        batch = opened.file.read_stripe(number, None if is_all else [names[index] for index in asked])
    except pa.ArrowInvalid as error:
        if _BEYOND not in str(error) or len(set(names)) < len(names):
            raise
        return {index: _read_beyond(opened, number, index) for index in asked}
    return {index: batch.column(index if is_all else batch.schema.get_field_index(names[index])) for index in asked}


def _read_beyond(opened: _Opened, number: int, index: int) -> pa.Array:
    """Return one column of a stripe that has a timestamp which Arrow cannot hold, in this column or another."""
    name = opened.file.schema.names[index]
    try:
        return opened.file.read_stripe(number, [name]).column(0)
    except pa.ArrowInvalid as error:
        if _BEYOND not in str(error):
            raise
        seconds = read_seconds(opened.source, opened.footer, number, index)
        if seconds is None:
            raise ValueUnrepresentableError(
                f"{opened.path!r}, stripe {number}, column {name!r}: a timestamp is beyond the years 1677 to 2262, "
                f"which are read of nested columns and of other clocks than UTC's: {error}.",
                remedy="Let Spark read the file: read: {engine: spark}. It reads no timestamps with a time zone.",
                column=name,
            ) from error
        return seconds


@dataclass(frozen=True)
class _Types:
    """A walk through the types of a file's columns."""

    path: str
    counts_by_julian: bool
    truncates: bool

    def convert(self, field: pa.Field, column: str) -> Conversion:
        """Return the conversion of a column's values. Raise ``SCHEMA_INCOMPATIBLE`` for a type that is not read."""
        kind, noted = field.type, (field.metadata or {}).get(_SPARK_TYPE, b"").decode()
        if noted.startswith(("interval", "variant", "geometry", "geography")):
            raise refuse_column(self.path, column, f"Spark's {noted}")
        if noted == "timestamp_ntz" and pt.is_int64(kind):
            return Conversion(MICROS, _take_micros)
        if pt.is_struct(kind):
            names = [member.name for member in kind]
            if len(set(names)) < len(names):
                raise refuse_column(self.path, column, "a struct with two fields of one name")
            inside = tuple(self.convert(member, column) for member in kind)
            members = [pa.field(name, how.kind) for name, how in zip(names, inside, strict=True)]
            return Conversion(pa.struct(members), inside=inside)
        if pt.is_map(kind):
            key, item = self.convert(kind.key_field, column), self.convert(kind.item_field, column)
            return Conversion(pa.map_(key.kind, pa.field("value", item.kind)), inside=(key, item))
        if pt.is_list(kind):
            item = self.convert(kind.value_field, column)
            return Conversion(make_list(item.kind), inside=(item,))
        return self._convert_leaf(kind, column)

    def _convert_leaf(self, kind: pa.DataType, column: str) -> Conversion:
        if pt.is_timestamp(kind):
            # A time without a zone is read as UTC.
            return Conversion(UTC_MICROS, partial(_take_utc, truncates=self.truncates))
        if pt.is_date32(kind):
            return Conversion(kind, rebase_dates if self.counts_by_julian else None)
        if pt.is_string(kind):
            return Conversion(kind, take_text)
        if kind in _PLAIN or (pt.is_decimal128(kind) and 0 <= kind.scale <= kind.precision <= MOST_DIGITS):
            return Conversion(kind)
        raise refuse_column(self.path, column, "a union" if pt.is_union(kind) else f"of the type {kind}")


def _take_micros(values: pa.Array) -> Converted:
    return Converted(unwrap(values).view(MICROS))


def _take_utc(values: pa.Array, *, truncates: bool) -> Converted:
    return take_nanos(values.view(pa.timestamp("ns", "UTC")), truncates=truncates)
