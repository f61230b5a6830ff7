"""Parquet's own structures in Thrift's compact protocol: page headers, page indexes and the footer.

Every field that pyarrow's writer sets is declared, so what is decoded and encoded again loses nothing.
See: https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from thrift.protocol.TBase import TBase
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

Kind = tuple[int, Any]
"""A Thrift type, and the type of its parts."""

BOOL: Final[Kind] = (TType.BOOL, None)
BYTE: Final[Kind] = (TType.BYTE, None)
I16: Final[Kind] = (TType.I16, None)
I32: Final[Kind] = (TType.I32, None)
I64: Final[Kind] = (TType.I64, None)
TEXT: Final[Kind] = (TType.STRING, "UTF8")
BYTES: Final[Kind] = (TType.STRING, "BINARY")


class Structure(TBase):  # type: ignore[misc]
    """A Thrift structure; a field that was not set is None."""

    fields: ClassVar[Mapping[int, tuple[str, Kind]]] = {}
    """Name and type of each field by its number."""
    thrift_spec: ClassVar[tuple[Any, ...]] = ()

    def __init_subclass__(cls) -> None:
        spec = {number: (number, kind[0], name, kind[1], None) for number, (name, kind) in cls.fields.items()}
        cls.thrift_spec = tuple(spec.get(number) for number in range(max(spec, default=-1) + 1))
        # Thrift asks for every field, also for those that no value was given.
        for name, _ in cls.fields.values():
            setattr(cls, name, None)

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    @classmethod
    def decode(cls, data: bytes) -> tuple[Self, int]:
        """Return the structure at the start of ``data``, and its size in bytes; ``EOFError`` if data are missing."""
        transport = TMemoryBuffer(data)
        structure = cls()
        structure.read(TCompactProtocolAccelerated(transport, fallback=False))
        return structure, transport.cstringio_buf.tell()

    def encode(self) -> bytes:
        """Return the bytes of the structure."""
        transport = TMemoryBuffer()
        self.write(TCompactProtocolAccelerated(transport, fallback=False))
        return bytes(transport.getvalue())


def _of(structure: type[Structure]) -> Kind:
    return TType.STRUCT, [structure, structure.thrift_spec]


def _list(kind: Kind) -> Kind:
    return TType.LIST, (*kind, False)


class Empty(Structure):
    """A structure without fields, whose presence is all it says."""


class KeyValue(Structure):
    """Metadata of the file or of a column."""

    fields: ClassVar = {1: ("key", TEXT), 2: ("value", TEXT)}


class Statistics(Structure):
    """Bounds and nulls of a column chunk or a page."""

    fields: ClassVar = {
        1: ("max", BYTES),
        2: ("min", BYTES),
        3: ("null_count", I64),
        4: ("distinct_count", I64),
        5: ("max_value", BYTES),
        6: ("min_value", BYTES),
        7: ("is_max_value_exact", BOOL),
        8: ("is_min_value_exact", BOOL),
    }


class DataPageHeader(Structure):
    """The counts and encodings of the values in a page of version 1."""

    fields: ClassVar = {
        1: ("num_values", I32),
        2: ("encoding", I32),
        3: ("definition_level_encoding", I32),
        4: ("repetition_level_encoding", I32),
        5: ("statistics", _of(Statistics)),
    }


class DictionaryPageHeader(Structure):
    """The count and the encoding of the values in a dictionary page."""

    fields: ClassVar = {1: ("num_values", I32), 2: ("encoding", I32), 3: ("is_sorted", BOOL)}


class PageHeader(Structure):
    """The header before each page; sizes are in bytes, ``crc`` is the CRC-32 of the page as it is stored."""

    fields: ClassVar = {
        1: ("type", I32),
        2: ("uncompressed_page_size", I32),
        3: ("compressed_page_size", I32),
        4: ("crc", I32),
        5: ("data_page_header", _of(DataPageHeader)),
        7: ("dictionary_page_header", _of(DictionaryPageHeader)),
    }


class DecimalType(Structure):
    """Digits of a decimal."""

    fields: ClassVar = {1: ("scale", I32), 2: ("precision", I32)}


class TimeUnit(Structure):
    """One of three, each an empty structure."""

    fields: ClassVar = {1: ("MILLIS", _of(Empty)), 2: ("MICROS", _of(Empty)), 3: ("NANOS", _of(Empty))}


class TimeType(Structure):
    """The unit and the zone of times and of timestamps."""

    fields: ClassVar = {1: ("isAdjustedToUTC", BOOL), 2: ("unit", _of(TimeUnit))}


class IntType(Structure):
    """Width and sign of an integer."""

    fields: ClassVar = {1: ("bitWidth", BYTE), 2: ("isSigned", BOOL)}


class LogicalType(Structure):
    """A union: one field is set."""

    fields: ClassVar = {
        1: ("STRING", _of(Empty)),
        2: ("MAP", _of(Empty)),
        3: ("LIST", _of(Empty)),
        4: ("ENUM", _of(Empty)),
        5: ("DECIMAL", _of(DecimalType)),
        6: ("DATE", _of(Empty)),
        7: ("TIME", _of(TimeType)),
        8: ("TIMESTAMP", _of(TimeType)),
        10: ("INTEGER", _of(IntType)),
        11: ("UNKNOWN", _of(Empty)),
        12: ("JSON", _of(Empty)),
        13: ("BSON", _of(Empty)),
        14: ("UUID", _of(Empty)),
        15: ("FLOAT16", _of(Empty)),
    }


class SchemaElement(Structure):
    """A node of the schema, in depth-first order."""

    fields: ClassVar = {
        1: ("type", I32),
        2: ("type_length", I32),
        3: ("repetition_type", I32),
        4: ("name", TEXT),
        5: ("num_children", I32),
        6: ("converted_type", I32),
        7: ("scale", I32),
        8: ("precision", I32),
        9: ("field_id", I32),
        10: ("logicalType", _of(LogicalType)),
    }


class PageEncodingStats(Structure):
    """The number of pages of a kind that have an encoding."""

    fields: ClassVar = {1: ("page_type", I32), 2: ("encoding", I32), 3: ("count", I32)}


class SizeStatistics(Structure):
    """Sizes before encoding, and the number of values at each level."""

    fields: ClassVar = {
        1: ("unencoded_byte_array_data_bytes", I64),
        2: ("repetition_level_histogram", _list(I64)),
        3: ("definition_level_histogram", _list(I64)),
    }


class ColumnMetaData(Structure):
    """A column chunk; offsets are from the start of the file."""

    fields: ClassVar = {
        1: ("type", I32),
        2: ("encodings", _list(I32)),
        3: ("path_in_schema", _list(TEXT)),
        4: ("codec", I32),
        5: ("num_values", I64),
        6: ("total_uncompressed_size", I64),
        7: ("total_compressed_size", I64),
        8: ("key_value_metadata", _list(_of(KeyValue))),
        9: ("data_page_offset", I64),
        10: ("index_page_offset", I64),
        11: ("dictionary_page_offset", I64),
        12: ("statistics", _of(Statistics)),
        13: ("encoding_stats", _list(_of(PageEncodingStats))),
        14: ("bloom_filter_offset", I64),
        15: ("bloom_filter_length", I32),
        16: ("size_statistics", _of(SizeStatistics)),
    }


class ColumnChunk(Structure):
    """The offsets of a column chunk and its page indexes."""

    fields: ClassVar = {
        1: ("file_path", TEXT),
        2: ("file_offset", I64),
        3: ("meta_data", _of(ColumnMetaData)),
        4: ("offset_index_offset", I64),
        5: ("offset_index_length", I32),
        6: ("column_index_offset", I64),
        7: ("column_index_length", I32),
    }


class SortingColumn(Structure):
    """A column by which a row group is sorted."""

    fields: ClassVar = {1: ("column_idx", I32), 2: ("descending", BOOL), 3: ("nulls_first", BOOL)}


class RowGroup(Structure):
    """The column chunks of some rows."""

    fields: ClassVar = {
        1: ("columns", _list(_of(ColumnChunk))),
        2: ("total_byte_size", I64),
        3: ("num_rows", I64),
        4: ("sorting_columns", _list(_of(SortingColumn))),
        5: ("file_offset", I64),
        6: ("total_compressed_size", I64),
        7: ("ordinal", I16),
    }


class ColumnOrder(Structure):
    """The order in which bounds are compared."""

    fields: ClassVar = {1: ("TYPE_ORDER", _of(Empty)), 2: ("IEEE_754_TOTAL_ORDER", _of(Empty))}


class FileMetaData(Structure):
    """The footer."""

    fields: ClassVar = {
        1: ("version", I32),
        2: ("schema", _list(_of(SchemaElement))),
        3: ("num_rows", I64),
        4: ("row_groups", _list(_of(RowGroup))),
        5: ("key_value_metadata", _list(_of(KeyValue))),
        6: ("created_by", TEXT),
        7: ("column_orders", _list(_of(ColumnOrder))),
    }


class PageLocation(Structure):
    """The offset of a data page; its size includes the header."""

    fields: ClassVar = {1: ("offset", I64), 2: ("compressed_page_size", I32), 3: ("first_row_index", I64)}


class OffsetIndex(Structure):
    """The offsets of the data pages of a column chunk."""

    fields: ClassVar = {
        1: ("page_locations", _list(_of(PageLocation))),
        2: ("unencoded_byte_array_data_bytes", _list(I64)),
    }
