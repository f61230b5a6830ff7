"""What it costs to look at the bytes of CSV and JSON lines before Spark reads them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
from pyspark.sql import DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from bench.data import KEYS, sources
from bench.measure import medians, table, timed
from bench.sinks import null_sink
from bench.ways import lake_file_of, load_file
from lakewriter.source.byte_checks import plan_byte_check
from lakewriter.spec.table_spec import Read

_WRITTEN = {"csv": "FORMAT csv, HEADER true", "json": "FORMAT json"}


def looking(spark: Callable[[], SparkSession], folder: Path, copies: int, rounds: int) -> list[str]:
    """Plain reading into nothing, and the tasks that look at the files, apart."""
    rows = sources(folder / "flights", copies)
    lines = [f"{rows:,} rows of 21 columns on the local disk, read by Spark into nothing:"]
    for form, options in _WRITTEN.items():
        path = folder / f"flights.{form}"
        duckdb.sql(f"COPY (SELECT * FROM '{folder}/flights/*.parquet') TO '{path}' ({options})")
        read = Read(format=form, path=str(path), options={"header": "true"} if form == "csv" else {})
        schema = _reader(spark(), read).load(str(path)).schema
        size = path.stat().st_size
        ways = {
            f"Spark reads {form}": timed(lambda r=read, s=schema, n=size: _read(spark(), r, s, n)),  # type: ignore[misc]
            "the tasks look at it": timed(lambda r=read, s=schema, n=size: _look(spark(), r, s, n)),  # type: ignore[misc]
        }
        lines += ["", *table(medians(ways, rounds))]
    return [*lines, *_set_aside(spark, folder, rounds)]


def _set_aside(spark: Callable[[], SparkSession], folder: Path, rounds: int) -> list[str]:
    """Whole loads of the CSV file, in which no row is bad."""
    read = {"format": "csv", "path": str(folder / "flights.csv"), "options": {"header": True, "inferSchema": True}}
    with null_sink() as server:

        def load(action: str) -> int:
            flights = {"table": "flights", "read": read, "primary_key": list(KEYS), "on_bad_row": action}
            return load_file(spark(), lake_file_of(folder, server, flights)).tables[0].bytes

        ways = {f"`on_bad_row: {action}`": timed(partial(load, action)) for action in ("fail", "set_aside")}
        found = medians(ways, rounds)
    return ["", "Loads of the CSV file, in which no row is bad, to a server that discards the data:", "", *table(found)]


def _read(spark: SparkSession, read: Read, schema: StructType, size: int) -> int:
    frame = _reader(spark, read).option("mode", "FAILFAST").schema(schema).load(list(read.paths))
    frame.write.format("noop").mode("overwrite").save()
    return size


def _reader(spark: SparkSession, read: Read) -> DataFrameReader:
    return spark.read.format(str(read.format)).options(**{key: str(value) for key, value in read.options.items()})


def _look(spark: SparkSession, read: Read, schema: StructType, size: int) -> int:
    frame = spark.read.format(str(read.format)).schema(schema).load(list(read.paths))
    check, _ = plan_byte_check(frame.inputFiles(), read)
    assert check is not None
    check.require(spark, "bench")
    return size
