"""Find nanoseconds in INT96 timestamps of Parquet files: Spark and Arrow cut them to microseconds without a word."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import SparkSession

from lakewriter.errors import ValueUnrepresentableError
from lakewriter.source.failures import make_unreadable_error
from lakewriter.source.storage import find_store

_SPARK_VERSION: Final = b"org.apache.spark.version"
_ROWS: Final = 65_536
_TASKS_A_CORE: Final = 4


@dataclass(frozen=True)
class NanosecondCheck:
    """Files with INT96 columns, and the row groups of each."""

    files: tuple[tuple[str, int], ...]

    def require(self, spark: SparkSession, table: str) -> None:
        """``VALUE_UNREPRESENTABLE`` names the first timestamp with nanoseconds."""
        groups = [(uri, group) for uri, count in self.files for group in range(count)]
        if not groups:
            return
        context = spark.sparkContext
        tasks = min(len(groups), _TASKS_A_CORE * context.defaultParallelism)
        for error in context.parallelize(groups, tasks).map(_look).collect():
            if error is not None:
                raise ValueUnrepresentableError(f"table {table!r}: {error.message}", remedy=error.remedy)


def find_int96(footer: pq.FileMetaData) -> list[str]:
    """The paths of INT96 columns that may have nanoseconds: Spark itself writes microseconds."""
    if _SPARK_VERSION in (footer.metadata or {}):
        return []
    leaves = (footer.schema.column(index) for index in range(footer.num_columns))
    return [leaf.path for leaf in leaves if leaf.physical_type == "INT96"]


def _look(place: tuple[str, int]) -> ValueUnrepresentableError | None:
    uri, group = place
    store, path = find_store(uri)
    try:
        with store.open().open_input_file(path) as source:
            require_microseconds(source, pq.read_metadata(source), path, group)
    except ValueUnrepresentableError as error:
        return error
    except (OSError, pa.ArrowException) as error:
        raise make_unreadable_error(path, error) from error
    return None


def require_microseconds(source: fs.FileSystem, footer: pq.FileMetaData, path: str, group: int) -> None:
    """``VALUE_UNREPRESENTABLE`` for a timestamp of a row group that has nanoseconds."""
    columns = find_int96(footer)
    if not columns:
        return
    # Beyond the years 1677 to 2262 nanoseconds overflow 64 bits, and so do the microseconds times 1000: the difference
    # is what was cut all the same.
    files = [pq.ParquetFile(source, coerce_int96_timestamp_unit=unit, metadata=footer) for unit in ("ns", "us")]
    for nanos, micros in zip(*(_read(file, group, columns) for file in files), strict=True):
        for name in nanos.schema.names:
            for exact, cut in zip(_walk_timestamps(nanos[name]), _walk_timestamps(micros[name]), strict=True):
                rest = pc.subtract(exact.cast(pa.int64()), pc.multiply(cut.cast(pa.int64()), 1000))
                place = pc.index(pc.not_equal(rest, 0), value=True).as_py()
                if place >= 0:
                    raise _refuse(path, name, f"{cut.slice(place, 1).cast(pa.string())[0]}{rest[place].as_py():03d}")


def _read(file: pq.ParquetFile, group: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    found: Iterator[pa.RecordBatch] = file.iter_batches(_ROWS, row_groups=[group], columns=columns, use_threads=False)
    return found


def _walk_timestamps(array: pa.Array) -> Iterator[pa.Array]:
    """The timestamps in an array, at whatever depth."""
    if pa.types.is_struct(array.type):
        for field in array.flatten():
            yield from _walk_timestamps(field)
    elif pa.types.is_map(array.type):
        yield from _walk_timestamps(array.keys)
        yield from _walk_timestamps(array.items)
    elif pa.types.is_list(array.type):
        yield from _walk_timestamps(array.flatten())
    else:
        yield array


def _refuse(path: str, column: str, shown: str) -> ValueUnrepresentableError:
    return ValueUnrepresentableError(
        f"{path!r}: column {column!r} has the INT96 timestamp {shown}, whose nanoseconds would be cut.",
        remedy="Round it in the source, or have it cut: nanoseconds: truncate.",
    )
