"""Read and write the keys that merges have deleted. For a while these keep older rows of the same keys out of the
table; readers do not see them."""

import io
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewriter.commit.iceberg.merge_keys import RowReader
from lakewriter.commit.iceberg.merge_winners import DELETED, FILE, IS_LOADED, NO_FILE, POSITION, PRECEDENCE

UNTIL: Final = "until"
"""The time until which a key keeps older rows out."""
UNTIL_TYPE: Final = pa.timestamp("us", "UTC")
_FIELDS: Final = b"lakewriter.fields"
"""The entry of the file's metadata with the ids of the table's fields that are the keys and orders."""


def write_deleted(rows: pa.Table, reader: RowReader) -> bytes:
    """Return a Parquet file with the keys and orders of these rows."""
    columns = rows.select([*reader.keys, *reader.orders, UNTIL])
    body = io.BytesIO()
    pq.write_table(
        columns.replace_schema_metadata({_FIELDS: reader.describe_fields().encode()}), body, compression="zstd"
    )
    return body.getvalue()


def read_end(body: bytes) -> datetime | None:
    """Return the time after which no key of such a file keeps rows out; None where it has no key."""
    until: datetime | None = pc.max(pq.read_table(io.BytesIO(body), columns=[UNTIL])[UNTIL]).as_py()
    return until


def read_deleted(body: bytes | None, reader: RowReader, at: datetime) -> pa.Table:
    """Return the keys of such a file that still keep rows out ``at`` a time, in the form of table rows without a file.

    Return none where the table is merged by other fields now: the orders cannot be compared with those of its rows.
    """
    numbered = ((PRECEDENCE, pa.int64()), (FILE, pa.int64()), (IS_LOADED, pa.bool_()), (UNTIL, UNTIL_TYPE))
    schema = pa.schema([*reader.schema, *numbered])
    rows = pq.read_table(io.BytesIO(body)) if body is not None else None
    if rows is None or (rows.schema.metadata or {}).get(_FIELDS) != reader.describe_fields().encode():
        return schema.empty_table()
    rows = rows.filter(pc.greater(rows[UNTIL], pa.scalar(at, UNTIL_TYPE)))
    rows = rows.append_column(DELETED, pa.repeat(True, len(rows)))
    rows = rows.append_column(POSITION, pa.array(range(len(rows)), pa.int64()))
    rows = rows.append_column(PRECEDENCE, pa.repeat(pa.scalar(0, pa.int64()), len(rows)))
    rows = rows.append_column(FILE, pa.repeat(pa.scalar(NO_FILE, pa.int64()), len(rows)))
    rows = rows.append_column(IS_LOADED, pa.repeat(False, len(rows)))
    return rows.select(schema.names).cast(schema)
