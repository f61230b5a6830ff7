"""One table of types, values, Parquet types and statistics.

The Parquet types are those of the format's LogicalTypes.md.
"""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.encode.parquet import CODECS, ParquetEncoder
from lakewriter.encode.parquet_footer import read_column_statistics
from lakewriter.receipt import ColumnStatistics
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.readers import DELTA
from tests.encode.files import MemorySink, numbers, opened, written

UTC = dt.UTC
# (Arrow type, three values, Parquet's physical type, its logical type, lower and upper bound as a receipt has them)
TYPES: dict[str, tuple[pa.DataType, list[Any], str, str, str | None, str | None]] = {
    "tiny": (pa.int8(), [1, None, -128], "INT32", "Int(bitWidth=8, isSigned=true)", "-128", "1"),
    "short": (pa.int16(), [1, None, -9], "INT32", "Int(bitWidth=16, isSigned=true)", "-9", "1"),
    "int": (pa.int32(), [7, None, -7], "INT32", "None", "-7", "7"),
    "long": (pa.int64(), [2**63 - 1, None, 0], "INT64", "None", "0", "9223372036854775807"),
    "float": (pa.float32(), [1.5, None, -2.0], "FLOAT", "None", "-2.0", "1.5"),
    "double": (pa.float64(), [0.1, None, 1e300], "DOUBLE", "None", "0.1", "1e+300"),
    "bool": (pa.bool_(), [True, None, False], "BOOLEAN", "None", "False", "True"),
    "text": (pa.string(), ["é", None, "a"], "BYTE_ARRAY", "String", "a", "é"),
    "long_text": (pa.string(), ["a" * 70, None, "b"], "BYTE_ARRAY", "String", None, "b"),
    "binary": (pa.binary(), [b"\x00\xff", None, b"\x01"], "BYTE_ARRAY", "None", "00ff", "01"),
    "day": (pa.date32(), [dt.date(2024, 2, 29), None, dt.date(1, 1, 1)], "INT32", "Date", "0001-01-01", "2024-02-29"),
    "money9": (
        pa.decimal128(9, 2),
        [Decimal("1.50"), None, Decimal("-0.01")],
        "INT32",
        "Decimal(precision=9, scale=2)",
        "-0.01",
        "1.50",
    ),
    "money18": (
        pa.decimal128(18, 0),
        [Decimal(7), None, Decimal(-7)],
        "INT64",
        "Decimal(precision=18, scale=0)",
        "-7",
        "7",
    ),
    "money38": (
        pa.decimal128(38, 1),
        [Decimal("1.5"), None, Decimal("-1.5")],
        "FIXED_LEN_BYTE_ARRAY",
        "Decimal(precision=38, scale=1)",
        "-1.5",
        "1.5",
    ),
    "instant": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, 1, 12, 30, 0, 1, UTC), None, dt.datetime(1969, 12, 31, tzinfo=UTC)],
        "INT64",
        "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false)",  # noqa: E501
        "1969-12-31T00:00:00+00:00",
        "2024-01-01T12:30:00.000001+00:00",
    ),
    "wall_clock": (
        pa.timestamp("us"),
        [dt.datetime(2024, 1, 1), None, dt.datetime(2023, 1, 1)],
        "INT64",
        "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false)",  # noqa: E501
        "2023-01-01T00:00:00",
        "2024-01-01T00:00:00",
    ),
}
FLAT = pa.schema(
    [pa.field(name, case[0], metadata={"PARQUET:field_id": str(i)}) for i, (name, case) in enumerate(TYPES.items(), 1)]
)
FLAT_BATCH = pa.RecordBatch.from_arrays([pa.array(case[1], case[0]) for case in TYPES.values()], schema=FLAT)

NESTED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "1"}),
        pa.field("tags", pa.list_(pa.field("item", pa.string(), metadata={"PARQUET:field_id": "3"}))),
        pa.field("props", pa.map_(pa.string(), pa.list_(pa.int32()))),
        pa.field(
            "place", pa.struct([pa.field("lat", pa.float64(), nullable=False), pa.field("more", pa.list_(pa.int8()))])
        ),
    ]
)
NESTED_ROWS = [
    {"id": 1, "tags": ["a", None], "props": [("k", [1, None])], "place": {"lat": 1.5, "more": [1]}},
    {"id": 2, "tags": None, "props": None, "place": None},
    {"id": 3, "tags": [], "props": [], "place": {"lat": 0.0, "more": None}},
]
NESTED_BATCH = pa.RecordBatch.from_pylist(NESTED_ROWS, schema=NESTED)


def _read_by_duckdb(data: bytes, directory: Path) -> list[Any]:
    (directory / "file.parquet").write_bytes(data)
    return duckdb.read_parquet(str(directory / "file.parquet")).fetchall()


@pytest.mark.parametrize("delta", [False, True])
def test_write_flat_types(delta: bool) -> None:
    file = opened(written(ParquetEncoding(value_encodings=DELTA if delta else frozenset()), FLAT, [FLAT_BATCH]))
    assert file.read().to_pydict() == FLAT_BATCH.to_pydict()
    assert file.schema_arrow.equals(FLAT, check_metadata=True)
    columns = [file.schema.column(i) for i in range(len(TYPES))]
    assert {c.name: (c.physical_type, str(c.logical_type)) for c in columns} == {k: v[2:4] for k, v in TYPES.items()}


def test_write_flat_statistics() -> None:
    found = read_column_statistics(opened(written(ParquetEncoding(), FLAT, [FLAT_BATCH])).metadata)
    assert {name: (s.values, s.nulls, s.lower, s.upper) for name, s in found.items()} == {
        name: (3, 1, *case[4:6]) for name, case in TYPES.items()
    }


def test_write_nested_types(tmp_path: Path) -> None:
    data = written(ParquetEncoding(value_encodings=DELTA), NESTED, [NESTED_BATCH])
    file = opened(data)
    assert file.read().to_pylist() == NESTED_ROWS
    assert duckdb.from_arrow(file.read()).fetchall() == _read_by_duckdb(data, tmp_path)
    assert str(file.schema_arrow.remove_metadata()) == (
        "id: int64 not null\n  -- field metadata --\n  PARQUET:field_id: '1'\n"
        "tags: list<element: string>\n  child 0, element: string\n    -- field metadata --\n    PARQUET:field_id: '3'\n"
        "props: map<string, list<element: int32> ('props')>\n"
        "  child 0, props: struct<key: string not null, value: list<element: int32>> not null\n"
        "      child 0, key: string not null\n"
        "      child 1, value: list<element: int32>\n          child 0, element: int32\n"
        "place: struct<lat: double not null, more: list<element: int8>>\n"
        "  child 0, lat: double not null\n  child 1, more: list<element: int8>\n      child 0, element: int8"
    )


@pytest.mark.parametrize("codec", CODECS)
def test_write_codecs(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    path.write_bytes(written(ParquetEncoding(codec=codec), numbers(1).schema, [numbers(1000)]))
    # pyarrow shows LZ4_RAW as LZ4.
    assert pq.read_metadata(path).row_group(0).column(0).compression == codec.upper()
    assert duckdb.sql(f"select count(*), sum(id), max(name) from '{path}'").fetchall() == [(1000, 499500, "n4")]
    compression = duckdb.sql(f"select distinct compression from parquet_metadata('{path}')").fetchall()
    assert compression == [("LZ4_RAW" if codec == "lz4" else codec.upper(),)]


def test_write_gzip_level() -> None:
    rows = pa.RecordBatch.from_pydict({"text": [f"row {i * i % 977} of {i}" for i in range(5000)]})
    sizes = [len(written(ParquetEncoding(level=level), rows.schema, [rows])) for level in (1, 9)]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(
    ("delta", "encodings"),
    [
        (False, {"id": {"PLAIN", "RLE"}, "name": {"PLAIN", "RLE", "RLE_DICTIONARY"}}),
        (True, {"id": {"RLE", "DELTA_BINARY_PACKED"}, "name": {"PLAIN", "RLE", "RLE_DICTIONARY"}}),
    ],
)
def test_write_encodings(delta: bool, encodings: dict[str, set[str]]) -> None:
    file = opened(
        written(ParquetEncoding(value_encodings=DELTA if delta else frozenset()), numbers(1).schema, [numbers(1000)])
    )
    columns = [file.metadata.row_group(0).column(i) for i in range(2)]
    assert {c.path_in_schema: set(c.encodings) for c in columns} == encodings
    assert file.read().equals(pa.Table.from_batches([numbers(1000)]))


def test_write_row_groups_are_in_the_sink_at_their_edge() -> None:
    sink = MemorySink()
    positions = []

    def batches() -> Any:
        for number in range(5):
            positions.append(sink.tell())
            yield numbers(500, number * 500)

    ParquetEncoder(ParquetEncoding(codec="uncompressed")).write(numbers(1).schema, batches(), sink, 1000)
    metadata = opened(sink.getvalue()).metadata
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [1000, 1000, 500]
    # 1000 ids of 8 bytes in each of the first two.
    assert positions[1] < 8000 < positions[2] == positions[3] < 16000 < positions[4]


def test_write_sorted_row_groups() -> None:
    """Nulls are last, rows with equal values stay in their order, and no row leaves its row group."""
    rows = [("b", 2, 0), ("a", None, 1), (None, 1, 2), ("a", 3, 3), ("b", 2, 4), ("a", 1, 5), ("c", 9, 6), ("a", 0, 7)]
    fields = [("word", pa.string()), ("number", pa.int32()), ("place", pa.int64())]
    columns = zip(fields, zip(*rows, strict=True), strict=True)
    batch = pa.record_batch({name: pa.array(values, kind) for (name, kind), values in columns})
    # Batches that are cut elsewhere than row groups are.
    batches = [batch.slice(0, 2), batch.slice(2, 4), batch.slice(6)]
    file = opened(written(ParquetEncoding(sort_by=("word", "number")), batch.schema, batches, 6))
    assert [file.read_row_group(number)["place"].to_pylist() for number in (0, 1)] == [[5, 3, 1, 0, 4, 2], [7, 6]]
    assert file.read_row_group(0).to_pylist() == [
        {"word": rows[place][0], "number": rows[place][1], "place": place} for place in (5, 3, 1, 0, 4, 2)
    ]


@pytest.mark.parametrize("name", TYPES)
def test_write_sorted_by_every_type(name: str) -> None:
    values = TYPES[name][1]
    file = opened(written(ParquetEncoding(sort_by=(name,)), FLAT, [FLAT_BATCH]))
    present = sorted(value for value in values if value is not None)
    assert file.read()[name].to_pylist() == [*present, None]


def test_write_no_rows() -> None:
    file = opened(written(ParquetEncoding(value_encodings=DELTA), FLAT, []))
    assert (file.metadata.num_rows, file.schema_arrow.names) == (0, FLAT.names)
    assert read_column_statistics(file.metadata) == {}


def test_statistics_over_row_groups() -> None:
    batches = [
        pa.RecordBatch.from_pydict({"n": pa.array(values, pa.int64())}) for values in ([5, 3], [None, None], [10, None])
    ]
    found = read_column_statistics(opened(written(ParquetEncoding(), batches[0].schema, batches, 2)).metadata)
    assert found == {"n": ColumnStatistics(6, 3, found["n"].compressed_bytes, "3", "10")}


def test_statistics_that_python_has_no_value_for() -> None:
    # The year 33658, not a number, and text that a writer may have cut.
    far = pa.array([10**18, 1], pa.timestamp("us", "UTC"))
    rows = pa.RecordBatch.from_pydict({"far": far, "nan": [float("nan")] * 2, "text": ["a", "x" * 61]})
    found = read_column_statistics(opened(written(ParquetEncoding(), rows.schema, [rows])).metadata)
    bounds = {name: (column.lower, column.upper) for name, column in found.items()}
    assert bounds == {"far": (None, None), "nan": (None, None), "text": ("a", None)}
