"""Files with pages compressed apart, read by others: pyarrow, DuckDB, DataFusion (parquet-rs), fastparquet, and Spark,
whose reader is parquet-java, with and without its vectorised one. Those that can verify the pages' checksums do.
"""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import fastparquet
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from pyspark.sql import SparkSession

from lakewriter.encode.parquet import ParquetEncoder
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.readers import DELTA
from tests.encode.files import numbers, written
from tests.encode.test_parquet import FLAT, FLAT_BATCH, NESTED, NESTED_BATCH
from tests.encode.test_parquet_pages import MIXED

Rows = list[dict[str, Any]]

FILES: dict[str, tuple[pa.Schema, list[pa.RecordBatch], int]] = {
    # the schema, the batches, rows of a row group
    "every type": (FLAT, [FLAT_BATCH], 8192),
    "nested": (NESTED, [NESTED_BATCH], 8192),
    "no rows": (FLAT, [], 8192),
    "one row": (FLAT, [FLAT_BATCH.slice(0, 1)], 8192),
    "rows of nulls": (FLAT, [FLAT_BATCH.slice(1, 1)] * 3, 8192),
    "many row groups": (numbers(1).schema, [numbers(100, 100 * n) for n in range(60)], 100),
    "many pages": (MIXED.schema, [MIXED] * 3, 5000),
}
ENCODINGS = {
    "by column": ParquetEncoding(page_bytes=4096),
    "level 1": ParquetEncoding(level=1),
    "level 6": ParquetEncoding(level=6, page_bytes=4096),
    "delta": ParquetEncoding(value_encodings=DELTA, page_bytes=4096),
    "snappy": ParquetEncoding(codec="snappy", page_bytes=4096),
    "zstd": ParquetEncoding(codec="zstd", level=3),
}


def by_pyarrow(file: Path) -> Rows:
    found: Rows = pq.read_table(file, page_checksum_verification=True).to_pylist()
    return found


def by_duckdb(file: Path) -> Rows:
    found: Rows = duckdb.read_parquet(str(file)).to_arrow_table().to_pylist()
    return found


def by_datafusion(file: Path) -> Rows:
    frame = SessionContext().read_parquet(str(file))
    found: Rows = pa.Table.from_batches(frame.collect(), frame.schema()).to_pylist()
    return found


READERS: dict[str, Callable[[Path], Rows]] = {"pyarrow": by_pyarrow, "DuckDB": by_duckdb, "DataFusion": by_datafusion}


def expected_of(name: str) -> Rows:
    schema, batches, _ = FILES[name]
    rows: Rows = pa.Table.from_batches(batches, schema).to_pylist()
    return rows


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    folder, found = tmp_path_factory.mktemp("files"), {}
    for name, (schema, batches, rows) in FILES.items():
        for number, (how, encoding) in enumerate(ENCODINGS.items()):
            found[name, how] = folder / f"{name.replace(' ', '-')}-{number}.parquet"
            found[name, how].write_bytes(written(encoding, schema, batches, rows))
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("reader", READERS)
def test_rows_as_others_read_them(files: dict[tuple[str, str], Path], reader: str, name: str) -> None:
    expected = expected_of(name)
    for how in ENCODINGS:
        assert READERS[reader](files[name, how]) == expected, how


@pytest.mark.parametrize("name", ["many row groups", "many pages"])
def test_rows_as_fastparquet_reads_them(files: dict[tuple[str, str], Path], name: str) -> None:
    """It reads neither lists nor, where a page is encoded so, DELTA_LENGTH_BYTE_ARRAY."""
    for how in ("by column", "level 1", "level 6", "snappy", "zstd"):
        columns = ["id", "few" if name == "many pages" else "name"]
        found = fastparquet.ParquetFile(str(files[name, how])).to_pandas(columns=columns)
        expected = [{column: row[column] for column in columns} for row in expected_of(name)]
        assert found.to_dict("records") == expected, how


@pytest.mark.one_in(2)
@pytest.mark.spark
@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_rows_as_spark_reads_them(files: dict[tuple[str, str], Path], spark: SparkSession, vectorized: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    verified = session.read.option("parquet.page.verify-checksum.enabled", "true")
    for (name, how), file in files.items():
        if how in ("by column", "level 6", "delta"):
            assert verified.parquet(str(file)).coalesce(1).toArrow().to_pylist() == expected_of(name), (name, how)


@pytest.mark.spark
def test_flipped_byte_as_spark_reads_it(
    files: dict[tuple[str, str], Path], spark: SparkSession, tmp_path: Path
) -> None:
    data = bytearray(files["many pages", "by column"].read_bytes())
    data[2000] ^= 1
    file = tmp_path / "flipped.parquet"
    file.write_bytes(data)
    verified = spark.read.option("parquet.page.verify-checksum.enabled", "true")
    with pytest.raises(Exception, match=r"CRC checksum|verification failed|could not verify"):
        verified.parquet(str(file)).toArrow()


@pytest.mark.spark
@pytest.mark.exhaustive
def test_file_of_200_megabytes(spark: SparkSession, tmp_path: Path) -> None:
    """Six million rows in many row groups; what readers make of all of them, compared by sums and minimums."""
    file = tmp_path / "large.parquet"
    rows, groups = 1_000_000, 6
    draw = random.Random(7)
    offsets = pa.array(range(0, 32 * rows + 1, 32), pa.int32()).buffers()[1]

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(groups):
            digits = pa.py_buffer(draw.randbytes(16 * rows).hex().encode())
            texts = pa.Array.from_buffers(pa.string(), rows, [None, offsets, digits])
            ids = pa.array(range(number * rows, (number + 1) * rows), pa.int64())
            yield pa.RecordBatch.from_arrays([ids, texts], ["id", "text"])

    with file.open("wb") as sink:
        ParquetEncoder(ParquetEncoding()).write(
            pa.schema([("id", pa.int64()), ("text", pa.string())]), batches(), sink, rows
        )
    assert file.stat().st_size > 100 * 2**20
    total = rows * groups
    query = "SELECT count(*), sum(id), min(text), max(text), count(DISTINCT text) FROM {}"
    by_pyarrow = pq.read_table(file, page_checksum_verification=True)
    lowest = pc.min_max(by_pyarrow.column("text")).as_py()
    expected = (total, total * (total - 1) // 2, lowest["min"], lowest["max"], total)
    assert by_pyarrow.column("id").equals(pa.chunked_array([pa.array(range(total), pa.int64())]))
    assert duckdb.sql(query.format(f"'{file}'")).fetchone() == expected
    spark.read.option("parquet.page.verify-checksum.enabled", "true").parquet(str(file)).createOrReplaceTempView(
        "large"
    )
    assert tuple(spark.sql(query.format("large")).first() or ()) == expected
    context = SessionContext()
    context.register_parquet("large", str(file))
    assert tuple(context.sql(query.format("large")).to_arrow_table().to_pylist()[0].values()) == expected
