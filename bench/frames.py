"""DataFrames: the rows feed of a load, which goes through ``mapInArrow``, beside the ways that a program has."""

import uuid
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import lakewriter
from bench.data import KEYS, sources
from bench.measure import Timed, medians, table, timed
from bench.sinks import null_sink
from bench.ways import lake_file_of, load_file
from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.dialects.lake_yaml import load_spec

TABLE = {"table": "flights", "primary_key": list(KEYS), "index": "sparse"}


def writing(spark: Callable[[], SparkSession], folder: Path, copies: int, rounds: int) -> list[str]:
    """Of one DataFrame, to a server that discards the data."""
    rows = sources(folder / "flights", copies)
    head = f"{rows:,} rows of 21 columns and the five tracking columns, as gzip Parquet, to a server that discards:"
    with null_sink() as server:
        return [head, "", *table(medians(_ways(spark(), folder, server), rounds))]


def _ways(spark: SparkSession, folder: Path, server: str) -> dict[str, Timed]:
    lakewriter.register(spark)
    source = str(folder / "flights")
    # A reader option that keeps the load from reading the files itself.
    read = {"format": "parquet", "path": source, "options": {"mergeSchema": "false"}}

    def load() -> int:
        return load_file(spark, lake_file_of(folder, server, TABLE | {"read": read})).tables[0].bytes

    def write() -> int:
        lake = lake_file_of(folder, server, TABLE)
        return lakewriter.write(spark.read.parquet(source), lake=lake, table="flights").tables[0].bytes

    def save() -> int:
        lake, job_id = lake_file_of(folder, server, TABLE), str(uuid.uuid4())
        options = {"lake": str(lake), "table": "flights", "job_id": job_id}
        spark.read.parquet(source).write.format("lakewriter").mode("append").options(**options).save()
        spec = load_spec(lake)
        report = Pipeline.open(spec, Clients(spec.access)).first_control.read_report(job_id)
        return report.bytes if report is not None else 0

    return {
        "a load by `mapInArrow`": timed(load),
        "`lakewriter.write(df, ...)`": timed(write),
        '`df.write.format("lakewriter")`': timed(save),
    }
