"""Which encodings some readers have in common. The expectations are the table of docs/readers.md, whose sources are
in readers.md beside this file.
"""

from typing import get_args

import pytest

from lakewriter.spec.readers import READERS, ReaderName, ValueEncoding, list_common_encodings

D: ValueEncoding = "DELTA_BINARY_PACKED"
L: ValueEncoding = "DELTA_LENGTH_BYTE_ARRAY"
P: ValueEncoding = "DELTA_BYTE_ARRAY"
F: ValueEncoding = "BYTE_STREAM_SPLIT"

FILES: list[tuple[list[ReaderName], str, set[ValueEncoding]]] = [
    # readers of files, codec, encodings
    (["athena"], "gzip", {D, P}),
    (["bigquery"], "gzip", set()),
    (["duckdb"], "gzip", {D, L, P, F}),
    (["hive"], "gzip", set()),
    (["iceberg"], "gzip", set()),
    (["parquet-java"], "gzip", {D, L, P, F}),
    (["pyarrow"], "gzip", {D, L, P, F}),
    (["redshift"], "gzip", set()),
    (["snowflake"], "gzip", set()),
    (["spark3"], "gzip", {D, P}),
    (["spark4"], "gzip", {D, P}),
    (["trino"], "gzip", {D, L, P, F}),
    (["duckdb", "pyarrow", "trino"], "zstd", {D, L, P, F}),
    (["athena", "duckdb", "spark3", "spark4"], "zstd", {D, P}),
    (["athena", "snowflake"], "gzip", set()),
    # https://issues.apache.org/jira/browse/SPARK-60320
    (["spark3"], "uncompressed", {D}),
    (["spark4", "athena"], "uncompressed", {D}),
    (["athena"], "uncompressed", {D, P}),
]


@pytest.mark.parametrize(("readers", "codec", "encodings"), FILES)
def test_encodings_of_files(readers, codec, encodings):
    assert list_common_encodings(readers, codec, iceberg=False) == encodings


@pytest.mark.parametrize(
    ("readers", "encodings"), [(["spark4"], set()), (["spark3"], set()), (["trino"], {D, L, P, F})]
)
def test_encodings_of_iceberg_tables(readers, encodings):
    assert list_common_encodings(readers, "zstd", iceberg=True) == encodings


CODECS = {
    "athena": "gzip snappy uncompressed zstd", "bigquery": "gzip snappy uncompressed zstd",
    "duckdb": "brotli gzip lz4 snappy uncompressed zstd", "hive": "gzip snappy uncompressed",
    "iceberg": "gzip snappy uncompressed zstd", "parquet-java": "gzip lz4 snappy uncompressed zstd",
    "pyarrow": "brotli gzip lz4 snappy uncompressed zstd", "redshift": "gzip snappy uncompressed",
    "snowflake": "brotli gzip snappy uncompressed zstd", "spark3": "gzip snappy uncompressed zstd",
    "spark4": "gzip lz4 snappy uncompressed zstd", "trino": "gzip snappy uncompressed zstd",
}  # fmt: skip


def test_codecs():
    assert {name: " ".join(sorted(reader.codecs)) for name, reader in READERS.items()} == CODECS
    assert set(READERS) == set(get_args(ReaderName))
