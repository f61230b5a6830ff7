"""Apache's parquet-testing, https://github.com/apache/parquet-testing, Apache 2.0: each file and what comes of it.

``LAKEWRITER_SUITES`` names the folder that has it. The second reader is DuckDB; what it does not read is literal here.
"""

import os
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lakewriter.errors import LakeError
from lakewriter.source.files.parquet_reader import ParquetReader
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.storage import pin_local
from tests.source.files.reading import in_turn

FOLDER = Path(os.environ.get("LAKEWRITER_SUITES", "none")) / "parquet-testing"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="LAKEWRITER_SUITES names no folder with parquet-testing")

CHECKSUM = "CRC checksum verification failed"
GEOMETRY = ("crs-arbitrary-value", "crs-default", "crs-projjson", "crs-srid", "geospatial-with-nan", "geospatial")
REFUSED = {
    **{f"data/geospatial/{name}.parquet": "column 'geometry' is a geometry, which is not read" for name in GEOMETRY},
    "data/geospatial/crs-geography.parquet": "column 'geography' is a geography, which is not read",
    "data/geospatial/geography-lines.parquet": "column 'geometry' is a geography, which is not read",
    "data/geospatial/geography-points.parquet": "column 'geometry' is a geography, which is not read",
    "data/geospatial/geography-polygons.parquet": "column 'geometry' is a geography, which is not read",
    "data/unknown-logical-type.parquet": "column 'column with unknown type' is of a logical type that is not known",
    "data/datapage_v1-corrupt-checksum.parquet": CHECKSUM,
    "data/rle-dict-uncompressed-corrupt-checksum.parquet": CHECKSUM,
    "data/incorrect_map_schema.parquet": "Map keys must be annotated as required",
    "bad_data/ARROW-GH-41317.parquet": "has -3 rows than its footer says",
    "bad_data/ARROW-GH-41321.parquet": "Invalid or corrupted bit_width 254",
    "bad_data/ARROW-GH-45185.parquet": "repetition level at the start of a record must be 0",
    "bad_data/ARROW-GH-47662.parquet": "Unexpected end of stream",
    "bad_data/ARROW-RS-GH-6229-DICTHEADER.parquet": "Invalid column metadata",
    "bad_data/ARROW-RS-GH-6229-LEVELS.parquet": "do not match num_values in page header",
    "bad_data/PARQUET-1481.parquet": "Invalid physical column type",
}
"""Files that are refused, and a part of the message."""
LZ4 = [
    {"c0": 1593604800, "c1": b"abc", "v11": 42.0},
    {"c0": 1593604800, "c1": b"def", "v11": 7.7},
    {"c0": 1593604801, "c1": b"abc", "v11": 42.125},
    {"c0": 1593604801, "c1": b"def", "v11": 7.7},
]
"""What lz4_raw_compressed.parquet, which DuckDB reads, has too."""
KEYS = [
    {"my_map": [(number, None) for number in numbers], "my_map_no_v": list(numbers), "my_list": list(numbers)}
    for numbers in (range(1, 4), range(4, 7), range(7, 10))
]
FIRST: dict[str, tuple[int, Any]] = {
    # rows, and the first ones
    "data/hadoop_lz4_compressed.parquet": (4, LZ4),
    "data/hadoop_lz4_compressed_larger.parquet": (10000, [{"a": "c7ce6bef-d5b0-4863-b199-8ea8c7fb117b"}]),
    "data/non_hadoop_lz4_compressed.parquet": (4, LZ4),
    "data/map_no_value.parquet": (3, KEYS),
    "data/byte_stream_split_extended.gzip.parquet": (200, []),
    # The one that pyarrow and DuckDB read too.
    "bad_data/ARROW-GH-43605.parquet": (21186, []),
}
HUGE = "data/large_string_map.brotli.parquet"
"""It has two texts of a gigabyte."""
NAMES = sorted(
    name
    for folder in ("data", "bad_data")
    for file in (FOLDER / folder).rglob("*.parquet")
    if (name := str(file.relative_to(FOLDER))) != HUGE
)


def read(name):
    path = FOLDER / name
    size, version = pin_local(path)
    reader = ParquetReader()
    look = reader.look([StoredFile(str(path), size, version)], "s.t", in_turn)
    pieces = reader.cut(look, 1 << 30, in_turn)
    batches = [batch for piece in pieces for batch in reader.read(piece, look.schema)]
    marks = [mark for batch in batches for mark in batch.columns[-1].to_pylist() if mark["reason"]]
    return pa.Table.from_batches([batch.select(range(len(look.schema))) for batch in batches], look.schema), marks


@pytest.mark.parametrize("name", [name for name in NAMES if name not in REFUSED])
def test_values(name):
    table, marks = read(name)
    if name in FIRST:
        count, rows = FIRST[name]
        assert (table.num_rows, table.slice(0, len(rows)).to_pylist(), marks) == (count, rows, [])
        return
    beyond = ["361746257437964 s since 1970"] if name == "data/int96_from_spark.parquet" else []
    assert [mark["value"] for mark in marks] == beyond
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("found", table)
        of_file = f"FROM read_parquet('{FOLDER / name}')"
        where = "WHERE year(a) < 10000 OR a IS NULL" if beyond else ""
        types = connection.execute("DESCRIBE FROM found").fetchall()
        # Times of INT96 have no zone to DuckDB.
        casts = ", ".join(f"CAST(#{place} AS {kind})" for place, (_, kind, *_) in enumerate(types, 1))
        both = connection.execute(
            f"SELECT * FROM (SELECT {casts} FROM found) EXCEPT ALL SELECT {casts} {of_file} {where}"
        ).fetchall()
        [count] = connection.execute(f"SELECT count(*) {of_file}").fetchone() or [0]
    assert (len(both), count) == (len(beyond), table.num_rows)


@pytest.mark.parametrize("name", [name for name in NAMES if name in REFUSED])
def test_what_is_refused(name):
    with pytest.raises(LakeError) as raised:
        read(name)
    assert Path(name).name in raised.value.message
    assert REFUSED[name] in raised.value.message


@pytest.mark.exhaustive
def test_texts_of_gigabytes_inside_a_map_are_refused():
    with pytest.raises(LakeError, match=r"large_string_map\.brotli\.parquet' cannot be read: Nested data conversions"):
        read(HUGE)


def test_encodings_of_the_same_numbers_agree():
    table, _ = read("data/byte_stream_split_extended.gzip.parquet")
    for plain, split in zip(table.columns[::2], table.columns[1::2], strict=True):
        assert plain.equals(split)


@pytest.mark.parametrize("path", sorted((FOLDER / "shredded_variant").glob("case-*.parquet")))
def test_variants_are_refused_by_name(path):
    with pytest.raises(LakeError, match=r"column 'var' is a variant, which is not read"):
        read(f"shredded_variant/{path.name}")
