"""Describe the formats of the files that a load writes."""

from typing import Literal

from lakewriter.spec.model import Model
from lakewriter.spec.readers import ValueEncoding


class ParquetEncoding(Model):
    """Parquet files. Without a ``level``, gzip is chosen for each column by its first rows.

    ``value_encodings`` are those that columns may have besides dictionary and plain encoding. ``sort_by`` are the
    written columns by which the rows of each row group are sorted.
    """

    kind: Literal["parquet"] = "parquet"
    codec: str = "gzip"
    level: int | None = None
    value_encodings: frozenset[ValueEncoding] = frozenset()
    sort_by: tuple[str, ...] = ()
    page_bytes: int | None = None
    dictionary_page_bytes: int | None = None
    dictionary: bool = True


class AvroEncoding(Model):
    """Avro object container files; ``level`` is None for a codec without levels."""

    kind: Literal["avro"] = "avro"
    codec: Literal["null", "deflate", "bzip2", "xz", "zstandard", "snappy"] = "null"
    level: int | None = None
    checksum: bool = False


class TextEncoding(Model):
    """CSV or JSON Lines."""

    kind: Literal["csv", "jsonl"]
    gzip: bool = True


FileEncoding = ParquetEncoding | AvroEncoding | TextEncoding
"""The file formats, each identified by its ``kind``."""
