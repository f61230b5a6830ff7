"""Parquet and ORC files that Spark reads: the schema of all of them, found from their footers."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import SpecInvalidError
from lakewriter.source.failures import unreadable
from lakewriter.source.merged_schema import MergedSchema, merge, variants_of
from lakewriter.source.storage import NotListable, store_of, table_format_at, to_path
from lakewriter.spec.specification import Read

COLUMNAR: Final = ("parquet", "orc")
_MERGE: Final = "mergeschema"
_THREADS: Final = 16
_SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"


def refuse_table_folders(read: Read, table: str) -> None:
    """``SPEC_INVALID`` for files of a table format: which of them are read, its own metadata decides."""
    for view in read.views.values():
        refuse_table_folders(view, table)
    if str(read.format).lower() not in COLUMNAR:
        return
    for path in read.paths:
        kind = table_format_at(path)
        if kind is not None:
            raise SpecInvalidError(
                f"table {table!r}: {path!r} is the folder of a table in the {kind} format; read as "
                f"{read.format}, rows that it has deleted or replaced would come back.",
                remedy=f"Read it with format: {kind}, with its package in spark.jars.packages.",
            )


def load_merged(
    session: SparkSession, reader: DataFrameReader, read: Read, table: str
) -> tuple[DataFrame, tuple[str, ...]]:
    """What ``reader`` gives of the paths, with every column of every file; notes on what files differ in."""
    paths = list(read.paths)
    frame = reader.load(paths)
    files = sorted(frame.inputFiles())
    if len(files) < 2 or read.columns is not None or _MERGE in map(str.lower, read.options):
        return frame, ()
    kind = str(read.format).lower()
    try:
        merged = _merged(files, kind, table, lambda file: session.read.format(kind).load(file))
    except NotListable as reason:
        notes = (f"{reason}: Spark merges the schemas of the files, and widens no type",)
        return reader.option("mergeSchema", "true").load(paths), notes
    if merged is None:
        return frame, ()
    if merged.folds_case:
        session.conf.set("spark.sql.caseSensitive", "false")
    return reader.schema(merged.schema).load(paths), merged.notes


def _merged(files: Sequence[str], kind: str, table: str, load: Callable[[str], DataFrame]) -> MergedSchema | None:
    """None where all files have one schema. Spark tells the types, asked once for each kind of footer."""
    groups: dict[str, list[str]] = {}
    for file, footer in zip(files, _footers(files, kind), strict=True):
        if footer:
            groups.setdefault(footer, []).append(file)
    if len(groups) < 2:
        return None
    schemas: dict[str, StructType] = {}
    for group in groups.values():
        schemas |= dict.fromkeys(group, load(group[0]).schema)
    variants = variants_of(schemas)
    return merge(table, variants) if len(variants) > 1 else None


def _footers(files: Sequence[str], kind: str) -> list[str]:
    """For each file what its footer says of columns, as text; blank for a file without bytes."""
    tell = _parquet if kind == "parquet" else _orc

    def told(uri: str) -> str:
        store, path = store_of(uri)
        try:
            with store.open().open_input_file(path) as source:
                return tell(source) if source.size() else ""
        except (OSError, BotoCoreError, ClientError) as error:
            # Spark may have an endpoint and credentials of its own.
            raise NotListable(f"{path!r} cannot be opened outside Spark ({error})") from error
        except pa.ArrowException as error:
            raise unreadable(path, error) from error

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(told, map(to_path, files)))


def _parquet(source: fs.FileSystem) -> str:
    footer = pq.read_metadata(source)
    return f"{footer.schema}{(footer.metadata or {}).get(_SPARK_SCHEMA, b'')!r}"


def _orc(source: fs.FileSystem) -> str:
    return str(pa.orc.ORCFile(source).schema)
