"""Files with every set of encodings, read by programs that did not write them: all types, nulls, extremes whose
differences overflow, values out of order, row groups of nulls, files without rows.
"""

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import chain, combinations
from pathlib import Path
from typing import get_args

import duckdb
import fastparquet
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datafusion import SessionConfig, SessionContext
from pyspark.sql import DataFrame, SparkSession

from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.readers import READERS, ValueEncoding, list_common_encodings
from tests.encode.files import opened, written
from tests.encode.test_parquet_pages import footer_of, pages_of

ALL: tuple[ValueEncoding, ...] = get_args(ValueEncoding)
SETS = [frozenset(some) for some in chain.from_iterable(combinations(ALL, size) for size in range(len(ALL) + 1))]
ROWS = 10_000
"""More than two batches of Spark's vectorised reader, which takes 4,096 rows at a time."""
_DRAW = random.Random(20)


def _scatter(lowest: int, highest: int) -> list[int]:
    """The bounds in turns, then values anywhere between."""
    return [lowest, highest, lowest, highest, 0, *(_DRAW.randint(lowest, highest) for _ in range(ROWS - 5))]


def _scatter_time(kind: pa.DataType, lowest: int, highest: int) -> pa.Array:
    storage = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(_scatter(lowest, highest), storage).cast(kind)


_MICROSECONDS = 253_402_300_799_999_999
"""The last of the year 9999: Python's own times end there."""
TEXTS = [f"{'shared/' * (n % 7)}{_DRAW.getrandbits(40 * (n % 4)):x}{'é' * (n % 3)}" + f"#{n}" for n in range(ROWS)]
WHOLE: dict[str, tuple[pa.Array, ValueEncoding | None]] = {
    # values, the encoding that the column has where all are known
    "small": (pa.array(_scatter(-(2**15), 2**15 - 1), pa.int16()), "DELTA_BINARY_PACKED"),
    "int": (pa.array(_scatter(-(2**31), 2**31 - 1), pa.int32()), "DELTA_BINARY_PACKED"),
    "long": (pa.array(_scatter(-(2**63), 2**63 - 1), pa.int64()), "DELTA_BINARY_PACKED"),
    "counter": (pa.array(range(ROWS), pa.int64()), "DELTA_BINARY_PACKED"),
    "falling": (pa.array(range(2**40, 2**40 - 7 * ROWS, -7), pa.int64()), "DELTA_BINARY_PACKED"),
    "day": (_scatter_time(pa.date32(), -719_162, 2_932_896), "DELTA_BINARY_PACKED"),
    "instant": (
        _scatter_time(pa.timestamp("us", "UTC"), -62_135_596_800_000_000, _MICROSECONDS),
        "DELTA_BINARY_PACKED",
    ),
    "money9": (
        pa.array([Decimal(n).scaleb(-2) for n in _scatter(-(10**9) + 1, 10**9 - 1)], pa.decimal128(9, 2)),
        "DELTA_BINARY_PACKED",
    ),
    "money18": (
        pa.array([Decimal(n) for n in _scatter(-(10**18) + 1, 10**18 - 1)], pa.decimal128(18, 0)),
        "DELTA_BINARY_PACKED",
    ),
    "money38": (pa.array([Decimal(n) for n in _scatter(-(10**30), 10**30)], pa.decimal128(38, 0)), None),
    "float": (pa.array([float(n) for n in _scatter(-(2**24), 2**24)], pa.float32()), "BYTE_STREAM_SPLIT"),
    "double": (
        pa.array([1.7e308, -1.7e308, 5e-324, float("inf"), *(_DRAW.gauss(0, 1e9) for _ in range(ROWS - 4))]),
        "BYTE_STREAM_SPLIT",
    ),
    "text": (pa.array(TEXTS), "DELTA_LENGTH_BYTE_ARRAY"),
    "sorted": (pa.array(sorted(TEXTS)), "DELTA_LENGTH_BYTE_ARRAY"),
    "bytes": (pa.array([_DRAW.randbytes(n % 40) + n.to_bytes(3) for n in range(ROWS)]), "DELTA_LENGTH_BYTE_ARRAY"),
    "flag": (pa.array([n % 3 == 0 for n in range(ROWS)]), None),
}


def _thin(column: pa.Array) -> pa.Array:
    """The same with nulls: single ones, and many in a row, as many as a page has."""
    mask = pa.array([n % 5 == 3 or 4500 <= n < 7000 for n in range(ROWS)])
    return pc.if_else(mask, pa.scalar(None, column.type), column)


TABLE = pa.table({name: column for name, (column, _) in WHOLE.items()}).append_column(
    "list", pa.array([[n, None] if n % 2 else [] for n in range(ROWS)], pa.list_(pa.int64()))
)
for _name, (_column, _) in WHOLE.items():
    TABLE = TABLE.append_column(f"{_name}_or_null", _thin(_column))
NULLS = pa.table({field.name: pa.nulls(300, field.type) for field in TABLE.schema})
FILES: dict[str, list[pa.Table]] = {
    # The batches of a file, each a row group of its own.
    "rows": [TABLE],
    "rows, then nulls, then rows": [TABLE.slice(0, 5000), NULLS, TABLE.slice(5000)],
    "no rows": [],
    "one row": [TABLE.slice(0, 1)],
}


def _write(known: frozenset[ValueEncoding], tables: list[pa.Table], codec: str = "gzip") -> bytes:
    batches: Iterator[pa.RecordBatch] = (batch for table in tables for batch in table.combine_chunks().to_batches())
    return written(ParquetEncoding(codec=codec, value_encodings=known, page_bytes=16_384), TABLE.schema, batches, 1)


def _read_by_datafusion(file: str) -> pa.Table:
    # Several partitions would read row groups in any order.
    frame = SessionContext(SessionConfig().with_target_partitions(1)).read_parquet(file)
    return pa.Table.from_batches(frame.collect(), frame.schema())


def _read_by_spark(frame: DataFrame) -> pa.Table:
    return frame.coalesce(1).toArrow()


PROGRAMS: dict[str, Callable[[str], pa.Table]] = {
    "pyarrow": lambda file: pq.read_table(file, page_checksum_verification=True),
    "DuckDB": lambda file: duckdb.read_parquet(file).to_arrow_table(),
    "DataFusion": _read_by_datafusion,
}


def _is_equal(found: pa.Table, tables: list[pa.Table]) -> bool:
    expected = pa.concat_tables([TABLE.schema.empty_table(), *tables])
    return bool(found.cast(expected.schema).equals(expected))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("known", SETS, ids=lambda known: "+".join(sorted(known)) or "none")
def test_every_set_as_others_read_it(tmp_path: Path, known: frozenset[ValueEncoding]) -> None:
    file = tmp_path / "file.parquet"
    for name, tables in FILES.items():
        file.write_bytes(_write(known, tables))
        for program, read in PROGRAMS.items():
            assert _is_equal(read(str(file)), tables), (program, name)


def test_encodings_that_the_file_has() -> None:
    group = opened(_write(frozenset(ALL), [TABLE])).metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    found = {chunk.path_in_schema: set(chunk.encodings) & set(ALL) for chunk in chunks}
    expected = {name: {encoding} if encoding else set() for name, (_, encoding) in WHOLE.items()}
    assert {name: found[name] for name in WHOLE} == expected
    assert {name: found[f"{name}_or_null"] for name in WHOLE} == expected


def test_columns_without_these_encodings_as_fastparquet_reads_them(tmp_path: Path) -> None:
    """It knows none of these encodings whole: values of 64 bits that differ much end its process."""
    file, columns = tmp_path / "file.parquet", ["int", "long", "counter", "falling", "double"]
    file.write_bytes(_write(frozenset(), [TABLE]))
    found = fastparquet.ParquetFile(str(file)).to_pandas(columns=columns)
    assert found.to_dict("list") == TABLE.select(columns).to_pydict()


@pytest.mark.one_in(3)
@pytest.mark.spark
@pytest.mark.parametrize("vectorized", ["true", "false"])
@pytest.mark.parametrize("codec", ["gzip", "zstd", "uncompressed"])
def test_what_spark_is_said_to_read(tmp_path: Path, spark: SparkSession, codec: str, vectorized: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    known = list_common_encodings(["spark3", "spark4"], codec, iceberg=False)
    for name, tables in FILES.items():
        file = tmp_path / f"{len(name)}.parquet"
        file.write_bytes(_write(known, tables, codec))
        assert _is_equal(_read_by_spark(session.read.parquet(str(file))), tables), name


@pytest.mark.spark
def test_what_parquet_java_is_said_to_read(tmp_path: Path, spark: SparkSession) -> None:
    """Without its vectorised reader Spark reads by parquet-java."""
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.enableVectorizedReader", "false")
    file = tmp_path / "file.parquet"
    file.write_bytes(_write(READERS["parquet-java"].encodings, [TABLE]))
    assert _is_equal(_read_by_spark(session.read.parquet(str(file))), [TABLE])


def test_data_pages_are_of_the_first_version() -> None:
    """The second version is another format of pages, which Snowflake's own page says it does not load."""
    data = _write(frozenset(ALL), [TABLE])
    chunks = footer_of(data).row_groups[0].columns
    # By parquet.thrift of the format: 0 is DATA_PAGE, 2 DICTIONARY_PAGE.
    assert {header.type for chunk in chunks for _, _, header, _ in pages_of(data, chunk)} <= {0, 2}
