"""Parquet of random values by several writers: each value is read as it was written, or told."""

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import fastparquet
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest

from lakewriter.source.files.parquet_reader import ParquetReader
from tests.source.files.reading import read_with, store

Columns = dict[str, list[Any]]

TEXTS = ["", "a", "é\0", "\U0001f600" * 30, "NULL", " x "]
BEYOND = {
    # what a writer's timestamps cannot hold
    "pandas": (dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    "fastparquet": (dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    "duckdb": (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)),
    "spark": (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)),
}


def make_columns(chance: random.Random, writer: str, count: int) -> Columns:
    """Columns of every kind with nulls among them; the first tells the rows apart."""
    low, high = BEYOND[writer]

    def make(value: Any) -> list[Any]:
        return [None if chance.random() < 0.2 else value() for _ in range(count)]

    return {
        "k": list(range(count)),
        "i": make(lambda: chance.choice([0, -(2**63), 2**63 - 1, chance.randrange(10**6)])),
        "d": make(lambda: chance.choice([0.5, -1e300, 5e-324, float("inf"), chance.random()])),
        "s": make(lambda: chance.choice(TEXTS)),
        "y": make(lambda: chance.randbytes(chance.randint(0, 20))),
        "b": make(lambda: chance.random() < 0.5),
        "t": make(lambda: low + (high - low) * chance.random()),
        "a": make(lambda: low.date() + dt.timedelta(days=chance.randrange((high - low).days))),
        "n": make(lambda: Decimal(chance.randrange(-(10**30), 10**30)).scaleb(-5)),
    }


KINDS = {
    "k": pa.int64(), "i": pa.int64(), "d": pa.float64(), "s": pa.string(), "y": pa.binary(), "b": pa.bool_(),
    "t": pa.timestamp("us"), "a": pa.date32(), "n": pa.decimal128(38, 5),
}  # fmt: skip


def to_arrow(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values, KINDS[name]) for name, values in columns.items()})


def write_by_pandas(columns: Columns, path: Path, chance: random.Random) -> None:
    frame = to_arrow(columns).to_pandas(types_mapper=pd.ArrowDtype)
    frame["t"] = frame["t"].astype("datetime64[ns]")
    frame.to_parquet(path, compression=chance.choice(["snappy", "gzip", "zstd", None]), row_group_size=7)


def write_by_duckdb(columns: Columns, path: Path, chance: random.Random) -> None:
    arrow = to_arrow(columns)
    with duckdb.connect() as connection:
        connection.register("arrow_table", arrow)
        codec, version = chance.choice(["snappy", "zstd", "lz4_raw", "uncompressed"]), chance.choice(["V1", "V2"])
        connection.sql(f"COPY arrow_table TO '{path}' (FORMAT parquet, CODEC {codec}, PARQUET_VERSION {version})")


def write_by_fastparquet(columns: Columns, path: Path, chance: random.Random) -> None:
    # It has no decimals and no dates of its own, and nulls of whole numbers make doubles.
    kept = {name: columns[name] for name in ("k", "d", "s", "y", "t")}
    frame = pd.DataFrame({name: pd.Series(values) for name, values in kept.items()})
    frame["d"] = frame["d"].astype(float)
    frame["t"] = frame["t"].astype("datetime64[ns]")
    times = chance.choice(["int64", "int96"])
    encodings = {"s": "utf8", "y": "bytes"}
    fastparquet.write(str(path), frame, times=times, object_encoding=encodings, has_nulls=True, row_group_offsets=9)


WRITERS = {"pandas": write_by_pandas, "duckdb": write_by_duckdb, "fastparquet": write_by_fastparquet}


def same(value: Any) -> Any:
    """A value without what tells one writer's type from another's: a time zone, or NaN for a null."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return None if isinstance(value, float) and value != value else value


def require_same(columns: Columns, path: Path) -> None:
    outcome = read_with(ParquetReader(), [store(path, path.read_bytes())], 1)
    expected = [tuple(columns[name][row] for name in outcome.names) for row in range(len(columns["k"]))]
    assert outcome.bad == []
    assert [tuple(map(same, row)) for row in outcome.good] == expected


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("writer", WRITERS)
def test_values_of_other_writers(tmp_path: Path, writer: str, seed: int) -> None:
    chance = random.Random(f"{writer} {seed}")
    columns = make_columns(chance, writer, chance.choice([1, 20, 60]))
    WRITERS[writer](columns, tmp_path / "a.parquet", chance)
    require_same(columns, tmp_path / "a.parquet")


@pytest.mark.spark
def test_values_that_spark_wrote(spark: Any, tmp_path: Path) -> None:
    columns = make_columns(random.Random(1), "spark", 60)
    spark.createDataFrame(to_arrow(columns)).coalesce(1).write.parquet(str(tmp_path / "p"))
    [path] = (tmp_path / "p").glob("*.parquet")
    require_same(columns, path)
