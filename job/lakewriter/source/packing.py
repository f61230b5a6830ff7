"""Which bytes of which files each partition reads: Spark's own rules, so that both feeds give the same partitions.

See: org.apache.spark.sql.execution.datasources.FilePartition.
"""

import re
from collections.abc import Callable, Iterable, Sequence
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
    """Spark's settings for scans, in bytes; ``most_partitions`` is None where Spark has no limit."""

    partition_bytes: int
    open_cost: int
    least_partitions: int
    most_partitions: int | None = None


def read_sizes(spark: SparkSession) -> Sizes:
    """The settings of a session."""
    least = spark.conf.get("spark.sql.files.minPartitionNum") or spark.conf.get("spark.sql.leafNodeDefaultParallelism")
    most = spark.conf.get("spark.sql.files.maxPartitionNum")
    return Sizes(
        partition_bytes=parse_size(str(spark.conf.get("spark.sql.files.maxPartitionBytes"))),
        open_cost=parse_size(str(spark.conf.get("spark.sql.files.openCostInBytes"))),
        least_partitions=int(least or spark.sparkContext.defaultParallelism),
        most_partitions=int(most) if most else None,
    )


def parse_size(text: str) -> int:
    """Spark's size text in bytes: ``134217728b``, ``128MB``, ``64m``; a bare number is bytes."""
    found = re.fullmatch(r"(\d+)\s*([kmgtp]?)b?", text.strip().lower())
    if found is None:
        raise ValueError(f"size {text!r}, expected a number with b, k, m, g, t or p")
    return int(found[1]) << 10 * " kmgtp".index(found[2] or " ")


def pack(files: Iterable[SourceFile], sizes: Sizes) -> list[tuple[Chunk, ...]]:
    """Partitions of files, which come in the order of their listing."""
    kept = [file for file in files if file.length]
    total = sum(file.length + sizes.open_cost for file in kept)
    split = min(sizes.partition_bytes, max(sizes.open_cost, total // sizes.least_partitions))
    chunks = [
        Chunk(file.path, start, min(split, file.length - start))
        for file in kept
        for start in range(0, file.length, split)
    ]
    chunks.sort(key=lambda chunk: -chunk.length)
    partitions = _pack_next_fit(chunks, split, sizes.open_cost)
    if sizes.most_partitions is not None and len(partitions) > sizes.most_partitions:
        wanted = sum(chunk.length + sizes.open_cost for chunk in chunks)
        return _pack_next_fit(chunks, -(-wanted // sizes.most_partitions), sizes.open_cost)
    return partitions


def pack_texts(
    files: Iterable[SourceFile], sizes: Sizes, is_whole: Callable[[SourceFile], bool]
) -> list[tuple[Chunk, ...]]:
    """Partitions of files of lines; each that ``is_whole``, since no line in its middle can be found, is one."""
    apart: dict[bool, list[SourceFile]] = {True: [], False: []}
    for file in files:
        apart[is_whole(file)].append(file)
    return [*pack(apart[False], sizes), *((Chunk(file.path, 0, file.length),) for file in apart[True] if file.length)]


def _pack_next_fit(chunks: Sequence[Chunk], limit: int, open_cost: int) -> list[tuple[Chunk, ...]]:
    partitions: list[tuple[Chunk, ...]] = []
    current: list[Chunk] = []
    size = 0
    for chunk in chunks:
        if current and size + chunk.length > limit:
            partitions.append(tuple(current))
            current, size = [], 0
        current.append(chunk)
        size += chunk.length + open_cost
    return [*partitions, tuple(current)] if current else partitions
