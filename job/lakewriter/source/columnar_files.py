"""Parquet and ORC files that Spark reads: the schema of all of them, found from their footers."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.types import StructType

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.source.failures import make_unreadable_error
from lakewriter.source.file_listing import list_load_paths
from lakewriter.source.int96 import NanosecondCheck, find_int96
from lakewriter.source.merged_schema import MergedSchema, find_variants, merge
from lakewriter.source.storage import NotListable, detect_table_format, find_store, to_path
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
        kind = detect_table_format(path)
        if kind is not None:
            raise SpecInvalidError(
                f"table {table!r}: {path!r} is the folder of a table in the {kind} format; read as "
                f"{read.format}, rows that it has deleted or replaced would come back.",
                remedy=f"Read it with format: {kind}, with its package in spark.jars.packages.",
            )


def load_merged(
    session: SparkSession, reader: DataFrameReader, read: Read, table: str
) -> tuple[DataFrame, tuple[str, ...], NanosecondCheck | None]:
    """What ``reader`` gives of the paths, with every column of every file; notes on what files differ in, and the check
    of those that may have nanoseconds. Each footer is read once."""
    paths, kind = list_load_paths(read), str(read.format).lower()
    frame = reader.load(paths)
    if read.columns is not None:
        return frame, (), None
    files = sorted(frame.inputFiles())
    is_merged = len(files) > 1 and _MERGE not in map(str.lower, read.options)
    if not is_merged and kind != "parquet":
        return frame, (), None
    footers = _read_footers(files, kind)
    check, notes = _plan_check(footers) if kind == "parquet" else (None, ())
    if not is_merged:
        return frame, notes, check
    try:
        merged = _merge_schemas(footers, table, lambda file: session.read.format(kind).load(file))
    except NotListable as reason:
        differences = f"{reason}: Spark merges the schemas of the files, and widens no type"
        return reader.option("mergeSchema", "true").load(paths), (differences, *notes), check
    if merged is None:
        return frame, notes, check
    if merged.folds_case:
        session.conf.set("spark.sql.caseSensitive", "false")
    return reader.schema(merged.schema).load(paths), (*merged.notes, *notes), check


@dataclass(frozen=True)
class _Footer:
    """What a file's footer says: its columns as text, blank for a file without bytes, and the row groups that may have
    nanoseconds; or why it cannot be read."""

    uri: str
    columns: str = ""
    groups: int = 0
    error: NotListable | LakeError | None = None


def _plan_check(footers: Sequence[_Footer]) -> tuple[NanosecondCheck | None, tuple[str, ...]]:
    """The check of files with INT96, None where there are none, and a note on files that only Spark can open."""
    hidden = [footer.uri for footer in footers if isinstance(footer.error, NotListable)]
    notes = (f"INT96 timestamps are not looked at for nanoseconds in files such as {hidden[0]!r}",) if hidden else ()
    files = tuple((to_path(footer.uri), footer.groups) for footer in footers if footer.groups)
    return (NanosecondCheck(files) if files else None), notes


def _merge_schemas(footers: Sequence[_Footer], table: str, load: Callable[[str], DataFrame]) -> MergedSchema | None:
    """None where all files have one schema. Spark tells the types, asked once for each kind of footer."""
    groups: dict[str, list[str]] = {}
    for footer in footers:
        if footer.error is not None:
            raise footer.error
        if footer.columns:
            groups.setdefault(footer.columns, []).append(footer.uri)
    if len(groups) < 2:
        return None
    schemas: dict[str, StructType] = {}
    for group in groups.values():
        schemas |= dict.fromkeys(group, load(group[0]).schema)
    variants = find_variants(schemas)
    return merge(table, variants) if len(variants) > 1 else None


def _read_footers(files: Sequence[str], kind: str) -> list[_Footer]:
    tell = _read_parquet_footer if kind == "parquet" else _read_orc_footer

    def read(file: str) -> _Footer:
        try:
            store, path = find_store(to_path(file))
        except NotListable as error:
            return _Footer(file, error=error)
        try:
            with store.open().open_input_file(path) as source:
                return tell(file, source) if source.size() else _Footer(file)
        except (OSError, BotoCoreError, ClientError) as error:
            # Spark may have an endpoint and credentials of its own.
            return _Footer(file, error=NotListable(f"{path!r} cannot be opened outside Spark ({error})"))
        except pa.ArrowException as error:
            # Where nothing is merged Spark says what is wrong with it.
            return _Footer(file, error=make_unreadable_error(path, error))

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(read, files))


def _read_parquet_footer(file: str, source: fs.FileSystem) -> _Footer:
    footer = pq.read_metadata(source)
    columns = f"{footer.schema}{(footer.metadata or {}).get(_SPARK_SCHEMA, b'')!r}"
    return _Footer(file, columns, footer.num_row_groups if find_int96(footer) else 0)


def _read_orc_footer(file: str, source: fs.FileSystem) -> _Footer:
    return _Footer(file, str(pa.orc.ORCFile(source).schema))
