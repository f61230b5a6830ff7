"""The rows of a quarantine as the source would give them today: parsed by the table's present columns."""

import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from lakewriter.aws import get_shared_clients
from lakewriter.source.bad_rows import BAD
from lakewriter.source.failures import SPARK_ERRORS
from lakewriter.source.frames import (
    apply_declared_types,
    load_source,
    make_origin,
    make_reader_options,
    resolve_secrets,
)
from lakewriter.source.marked_lines import parse_lines
from lakewriter.source.marks import mark
from lakewriter.source.session import isolate
from lakewriter.spec.access import Access
from lakewriter.spec.row_rules import LINES
from lakewriter.spec.specification import TableSpec

_CORRUPT: Final = "__lakewriter_corrupt"
_READ: Final = ["_lake_source", "_lake_offset", "_lake_row", "_lake_line"]
_RAW: Final = "file string, offset bigint, row string, line string"
_NO_LINES: Final = "it is a line, and the source has none"
_MISFIT: Final = "a value is not of its column's type"


def read_quarantined(
    spark_factory: Callable[[], SparkSession], table: TableSpec, access: Access, keys: Sequence[str]
) -> DataFrame:
    """The rows of the files ``keys``, marked behind their columns: one that does not fit these is bad, and goes back
    into the quarantine as it was kept."""
    session = isolate(spark_factory())
    secrets = resolve_secrets(table.read)
    try:
        source = load_source(session, table.read, secrets, table.id, cursor=table.cursor).frame
        count = max(1, len(keys))
        files = session.range(0, count, 1, count).mapInArrow(partial(_read_files, access, tuple(keys)), _RAW)
        rows = _parse_rows(files.where("row IS NOT NULL"), apply_declared_types(source, table).schema)
        # A line without a cursor is kept by each load that reads it.
        lines = files.where("row IS NULL").dropDuplicates(["file", "offset", "line"])
        form = str(table.read.format).lower()
        if form in LINES:
            options = {key.lower(): value for key, value in make_reader_options(table.read, secrets).items()}
            faultless = lines.select("file", "offset", "line", F.lit(None).cast("string").alias("fault"))
            rows = rows.union(apply_declared_types(parse_lines(faultless, source.schema, form, options), table))
        else:
            # The source has no lines any more: they stay what they are, since their files are deleted.
            kept = mark(file=F.col("file"), offset=F.col("offset"), value=F.col("line"), reason=F.lit(_NO_LINES))
            nothing = [F.lit(None).cast(field.dataType) for field in rows.schema.fields[:-1]]
            rows = rows.union(lines.select(*nothing, kept))
    except SPARK_ERRORS as error:
        raise make_origin(table, secrets).make_error(error) from error
    return rows


def _parse_rows(rows: DataFrame, declared: StructType) -> DataFrame:
    """Rows of JSON in the columns of the source as the table declares them, then their marks."""
    whole = StructType([*declared.fields, StructField(_CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    parsed = rows.withColumn("parsed", F.from_json("row", whole, options))
    is_bad = F.col("parsed").isNull() | F.col("parsed").getField(_CORRUPT).isNotNull()
    place = {"file": F.col("file"), "offset": F.col("offset")}
    # The row stays as it was kept: what is null in it may be what does not fit.
    marks = mark(**place, reason=F.when(is_bad, F.lit(_MISFIT)), row=F.when(is_bad, F.col("row")))
    columns = [F.col("parsed").getField(name) for name in declared.names]
    return parsed.select(*columns, marks).toDF(*declared.names, BAD)


def _read_files(access: Access, keys: Sequence[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    clients = get_shared_clients(access)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for key in keys[number : number + 1]:
                body = clients.s3.get_object(Bucket=access.bucket, Key=key)["Body"].read()
                read = pq.read_table(io.BytesIO(body), columns=_READ)
                yield from read.rename_columns(["file", "offset", "row", "line"]).to_batches()
