"""List the encodings that programs read in Parquet, besides plain and dictionary encoding. docs/readers.md has the
sources; an encoding without a source is left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

ValueEncoding = Literal["DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"]
"""The encodings of values that a dictionary would only make larger."""

ReaderName = Literal[
    "athena",
    "bigquery",
    "duckdb",
    "hive",
    "iceberg",
    "parquet-java",
    "pyarrow",
    "redshift",
    "snowflake",
    "spark3",
    "spark4",
    "trino",
]

WHO_NOTICES: Final = (
    "readers find its values by its number; queries, views and table properties that have the old name need the new one"
)
"""What it means to readers that an Iceberg table's column has another name."""
DELTA: Final[frozenset[ValueEncoding]] = frozenset({"DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"})
"""The encodings that ``delta_encodings`` allows, for every reader."""

_ALL: Final[frozenset[ValueEncoding]] = DELTA | {"DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"}
# Spark 3.3 to 4.0 fail on DELTA_LENGTH_BYTE_ARRAY, or read a page's later rows by the lengths of its first.
_PREFIXES: Final[frozenset[ValueEncoding]] = frozenset({"DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY"})
_COMMON_CODECS: Final = frozenset({"gzip", "snappy", "uncompressed"})
_ZSTD: Final = _COMMON_CODECS | {"zstd"}


@dataclass(frozen=True)
class Reader:
    """One program: encodings of values and codecs, as ``ParquetEncoding`` names them."""

    encodings: frozenset[ValueEncoding]
    codecs: frozenset[str]
    misread_uncompressed: frozenset[ValueEncoding] = frozenset()
    """Encodings that it reads in compressed pages only."""
    reads_tables: bool = True
    """False for what reads Parquet files by themselves, and so sees rows that a table's deletes have taken out."""


# Spark's vectorised reader gives wrong values of DELTA_BYTE_ARRAY in pages without compression.
_MISREAD: Final[frozenset[ValueEncoding]] = frozenset({"DELTA_BYTE_ARRAY"})

READERS: Final[Mapping[ReaderName, Reader]] = {
    "athena": Reader(_PREFIXES, _ZSTD),
    "bigquery": Reader(frozenset(), _ZSTD),
    "duckdb": Reader(_ALL, _ZSTD | {"brotli", "lz4"}),
    "hive": Reader(frozenset(), _COMMON_CODECS),
    "iceberg": Reader(frozenset(), _ZSTD),
    "parquet-java": Reader(_ALL, _ZSTD | {"lz4"}, reads_tables=False),
    "pyarrow": Reader(_ALL, _ZSTD | {"brotli", "lz4"}, reads_tables=False),
    "redshift": Reader(frozenset(), _COMMON_CODECS),
    "snowflake": Reader(frozenset(), _ZSTD | {"brotli"}),
    "spark3": Reader(_PREFIXES, _ZSTD, _MISREAD),
    "spark4": Reader(_PREFIXES, _ZSTD | {"lz4"}, _MISREAD),
    "trino": Reader(_ALL, _ZSTD),
}


def list_common_encodings(readers: Iterable[ReaderName], codec: str, *, iceberg: bool) -> frozenset[ValueEncoding]:
    """Return the encodings that all of ``readers`` read, in files of ``codec``. Spark reads tables of Iceberg by
    Iceberg's own reader.
    """
    common = _ALL
    for name in readers:
        reader = READERS["iceberg" if iceberg and name in ("spark3", "spark4") else name]
        common &= reader.encodings
        if codec == "uncompressed":
            common -= reader.misread_uncompressed
    return common
