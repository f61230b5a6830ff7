"""Types that Parquet has and Arrow has not, as readers see them.

What is expected: https://github.com/apache/parquet-format/blob/master/LogicalTypes.md
"""

import struct
from datetime import time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.documents.types import LOGICAL_TYPE
from lakewriter.encode.parquet_footer import read_column_statistics
from lakewriter.spec.encodings import ParquetEncoding
from tests.encode.files import written

SCHEMA = pa.schema(
    [
        # A property inside another column has the name of one that has a type.
        pa.field("n", pa.struct([pa.field("i", pa.int64()), pa.field("j", pa.string())])),
        pa.field("i", pa.binary(12), metadata={LOGICAL_TYPE: b"interval"}),
        pa.field("j", pa.string(), nullable=False, metadata={LOGICAL_TYPE: b"json"}),
        pa.field("t", pa.time64("us")),
        pa.field("s", pa.string()),
    ]
)
SPANS = [struct.pack("<III", 14, 3, 14_706_789), struct.pack("<III", 0, 0, 0), None]
ROWS = [
    {"n": {"i": 1, "j": "x"}, "i": span, "j": text, "t": time(1, 2, 3, 4), "s": "a"}
    for span, text in zip(SPANS, ['{"a":1}', "[1]", "null"], strict=True)
]
BATCH = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)


@pytest.mark.parametrize("codec", ["gzip", "snappy"])
def test_types_in_the_file(codec, tmp_path):
    file = tmp_path / "f.parquet"
    file.write_bytes(written(ParquetEncoding(codec=codec), SCHEMA, [BATCH, BATCH]))
    found = duckdb.sql(
        f"SELECT name, converted_type, logical_type IS NOT NULL FROM parquet_schema('{file}')"
    ).fetchall()
    assert found[1:] == [
        ("n", None, False),
        ("i", None, False),
        ("j", "UTF8", True),
        ("i", "INTERVAL", False),
        ("j", "JSON", True),
        ("t", "TIME_MICROS", True),
        ("s", "UTF8", True),
    ]
    assert "Time(isAdjustedToUTC=true, timeUnit=microseconds)" in str(pq.ParquetFile(file).schema)
    assert pq.read_table(file).to_pylist() == ROWS * 2


def test_intervals_and_json_by_duckdb(tmp_path):
    file = tmp_path / "f.parquet"
    file.write_bytes(written(ParquetEncoding(), SCHEMA, [BATCH]))
    rows = duckdb.sql(f"SELECT i::VARCHAR, j ->> 'a', typeof(i), typeof(j) FROM '{file}'").fetchall()
    assert rows == [
        ("1 year 2 months 3 days 04:05:06.789", "1", "INTERVAL", "JSON"),
        ("00:00:00", None, "INTERVAL", "JSON"),
        (None, None, "INTERVAL", "JSON"),
    ]


def test_intervals_have_no_bounds(tmp_path):
    """The format gives them no order."""
    file = tmp_path / "f.parquet"
    file.write_bytes(written(ParquetEncoding(), SCHEMA, [BATCH]))
    found = read_column_statistics(pq.read_metadata(file))["i"]
    assert (found.values, found.nulls, found.lower, found.upper) == (3, None, None, None)
    assert read_column_statistics(pq.read_metadata(file))["s"].lower == "a"
