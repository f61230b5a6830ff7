"""Streams of rows: a ``readStream`` for every kind of source that Spark has, with a bound on what one batch takes."""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from job.access import SecretText
from job.errors import SpecInvalidError
from job.source.failures import SPARK_ERRORS, Origin
from job.source.frames import origin_of, plain_columns, secrets_of
from job.source.session import isolated
from job.source.spark_rows import RowsFeed, batch_rows
from job.spec import MIB, Read, TableSpec

_FILES: Final = ("avro", "csv", "json", "orc", "parquet", "text", "xml")
_TYPED: Final = ("text",)
"""File formats whose columns are always the same."""

BOUNDS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(_FILES, ("maxBytesPerTrigger", str(256 * MIB))),
    "kafka": ("maxOffsetsPerTrigger", "1000000"),
}
"""What bounds a batch of each format where the options name no bound: so a backlog is not one load."""


class TableStream:
    """The stream of one table and the feeds of its batches."""

    def __init__(self, spark: SparkSession, table: TableSpec) -> None:
        self._table = table
        secrets = secrets_of(table.read)
        self.origin: Origin = origin_of(table, secrets)
        try:
            self.frame = _load(isolated(spark), table.read, secrets)
        except SPARK_ERRORS as error:
            raise self.origin.failed(error) from error
        if not self.frame.isStreaming:
            raise SpecInvalidError(f"table {table.id!r}: the source of a continuous run is a stream; this one is not.")

    def feed(self, frame: DataFrame, tasks: int, *, deleted_column: str, twice: bool) -> RowsFeed:
        """The feed of one batch, in at most ``tasks`` partitions."""
        return batch_rows(
            frame, self._table, origin=self.origin, deleted_column=deleted_column, twice=twice, tasks=tasks
        )


def _load(session: SparkSession, read: Read, secrets: dict[SecretText, str]) -> DataFrame:
    if read.sql is not None:
        for name, view in read.views.items():
            _load(session, view, secrets).createOrReplaceTempView(name)
        return session.sql(read.sql)
    if len(read.paths) > 1:
        raise SpecInvalidError(
            f"a stream reads one path, got {', '.join(map(repr, read.paths))}.", remedy="Give a pattern, such as in/*."
        )
    path = read.paths[0] if read.paths else None
    kind = str(read.format)
    options = {key: secrets[value] if isinstance(value, SecretText) else value for key, value in read.options.items()}
    reader = session.readStream.format(kind).options(**_bounded(kind, options))
    schema = _columns(session, read, options, path)
    if schema is not None:
        reader = reader.schema(schema)
    return reader.load(path)


def _bounded(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    bound, size = BOUNDS.get(kind, ("", ""))
    given = {key.lower() for key in options}
    bounds = ("maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger", "minoffsetspertrigger")
    return {**options, **({} if not bound or given.intersection(bounds) else {bound: size})}


def _columns(
    session: SparkSession, read: Read, options: Mapping[str, str], path: str | None
) -> str | StructType | None:
    """The declared columns; else, of files, those that the ones that are there now have."""
    if read.columns is not None:
        return plain_columns(read.columns)
    if read.format not in _FILES or read.format in _TYPED:
        return None
    schema = session.read.format(str(read.format)).options(**options).load(path).schema
    if not schema.fields:
        raise SpecInvalidError(f"{path} tells no columns yet.", remedy="Declare them under read.columns.")
    return schema
