"""Measure files and parts of them, and read how large Spark's settings want a task's share to be."""

import re
from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class SourceFile:
    """A file and its length in bytes."""

    path: str
    length: int


@dataclass(frozen=True)
class Chunk:
    """The bytes ``start`` to ``start + length`` of a file."""

    path: str
    start: int
    length: int


@dataclass(frozen=True)
class Sizes:
    """Spark's settings for scans, in bytes."""

    partition_bytes: int
    open_cost: int
    least_partitions: int


def read_sizes(spark: SparkSession) -> Sizes:
    """Return the settings of a session."""
    least = spark.conf.get("spark.sql.files.minPartitionNum") or spark.conf.get("spark.sql.leafNodeDefaultParallelism")
    return Sizes(
        partition_bytes=parse_size(str(spark.conf.get("spark.sql.files.maxPartitionBytes"))),
        open_cost=parse_size(str(spark.conf.get("spark.sql.files.openCostInBytes"))),
        least_partitions=int(least or spark.sparkContext.defaultParallelism),
    )


def parse_size(text: str) -> int:
    """Parse Spark's text of a size into bytes: ``134217728b``, ``128MB``, ``64m``. A bare number is bytes."""
    match = re.fullmatch(r"(\d+)\s*([kmgtp]?)b?", text.strip().lower())
    if match is None:
        raise ValueError(f"size {text!r}, expected a number with b, k, m, g, t or p")
    return int(match[1]) << 10 * " kmgtp".index(match[2] or " ")
