"""One table of edges through every format and codec that Airbyte's form has, read by what did not write it."""

import csv
import gzip
import io
import itertools
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pytest

from lakewriter.dialects.airbyte.settings import AirbyteS3
from lakewriter.dialects.airbyte.translate import make_encoding
from lakewriter.documents.types import JSON, KIND
from lakewriter.encode.formats import make_encoder

PARTS = ["\n", "\r\n", "\r", '"', ",", "\\", "ü", "日", "🎉", "\u2028", "\t", "'", " "]
TEXTS = [None, "", "null", *(f"{a}{part}{b}" for part, (a, b) in itertools.product(PARTS, itertools.product(["", "x"], repeat=2)))]  # fmt: skip # noqa: E501
INTEGERS = [2**63 - 1, -(2**63), 2**53 + 1, 0, None]
DECIMALS = [Decimal("99999999999999999999999999999.999999999"), Decimal("-0.000000001"), Decimal("1.10"), None]
ROWS = list(zip(itertools.cycle(INTEGERS), itertools.cycle(DECIMALS), TEXTS))
TYPED = pa.table(
    [list(column) for column in zip(*ROWS, strict=True)],
    schema=pa.schema([("n", pa.int64()), ("d", pa.decimal128(38, 9)), ("t", pa.string())]),
)


def fragment(value: Any) -> str | None:
    """A value's JSON text."""
    return None if value is None else json.dumps(value) if isinstance(value, str) else str(value)


TEXT = pa.table(
    [[fragment(row[place]) for row in ROWS] for place in range(3)],
    schema=pa.schema([pa.field(name, pa.string(), metadata={KIND: JSON}) for name in "ndt"]),
)


def written(form: dict[str, Any], table: pa.Table) -> bytes:
    bucket = {"s3_bucket_name": "acme", "s3_bucket_path": "p", "s3_bucket_region": "us-east-1"}
    own = AirbyteS3.model_validate({"type": "airbyte-s3", "format": form} | bucket)
    sink = io.BytesIO()
    make_encoder(make_encoding(own)).write(table.schema, iter(table.to_batches()), sink, 7)
    return sink.getvalue()


@pytest.mark.parametrize("codec", ["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "LZ4", "ZSTD"])
def test_parquet_by_duckdb(tmp_path: Path, codec: str) -> None:
    (tmp_path / "a.parquet").write_bytes(written({"format_type": "Parquet", "compression_codec": codec}, TYPED))
    assert duckdb.sql(f"SELECT n, d, t FROM '{tmp_path}/a.parquet'").fetchall() == ROWS


@pytest.mark.parametrize("codec", ["no compression", "Deflate", "bzip2", "xz", "zstandard", "snappy"])
def test_avro_by_fastavro(codec: str) -> None:
    data = written({"format_type": "Avro", "compression_codec": {"codec": codec}}, TYPED)
    read: list[Any] = list(fastavro.reader(io.BytesIO(data)))
    assert [tuple(row.values()) for row in read] == ROWS


def packed(kind: str, compression: str) -> tuple[bytes, bytes]:
    """A file, and what is in it."""
    form = {"flattening": "Root level flattening", "compression": {"compression_type": compression}}
    data = written({"format_type": kind} | form, TEXT)
    return data, gzip.decompress(data) if compression == "GZIP" else data


NUMBERS = [(fragment(row[0]) or "", fragment(row[1]) or "") for row in ROWS]


@pytest.mark.parametrize("compression", ["GZIP", "No Compression"])
def test_csv(tmp_path: Path, compression: str) -> None:
    data, plain = packed("CSV", compression)
    rows = list(csv.reader(io.StringIO(plain.decode(), newline="")))[1:]
    assert rows == [[*numbers, text or ""] for numbers, text in zip(NUMBERS, TEXTS, strict=True)]
    path = tmp_path / ("a.csv.gz" if compression == "GZIP" else "a.csv")
    path.write_bytes(data)
    options = "header=true, quote='\"', escape='\"', allow_quoted_nulls=false, all_varchar=true, new_line='\\r\\n'"
    found = duckdb.sql(f"SELECT n, d, t FROM read_csv('{path}', {options})").fetchall()
    assert found == [(n or None, d or None, text) for (n, d), text in zip(NUMBERS, TEXTS, strict=True)]


@pytest.mark.parametrize("compression", ["GZIP", "No Compression"])
def test_jsonl(tmp_path: Path, compression: str) -> None:
    data, plain = packed("JSONL", compression)
    lines = [json.loads(line, parse_float=Decimal) for line in plain.decode().split("\n")[:-1]]
    assert [tuple(line.values()) for line in lines] == ROWS
    path = tmp_path / ("a.jsonl.gz" if compression == "GZIP" else "a.jsonl")
    path.write_bytes(data)
    columns = "columns={n: 'BIGINT', t: 'VARCHAR'}"
    found = duckdb.sql(f"SELECT n, t FROM read_json('{path}', format='newline_delimited', {columns})").fetchall()
    assert found == [(n, t) for n, _, t in ROWS]
