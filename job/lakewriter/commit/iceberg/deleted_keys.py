"""Read and write the keys that merges have deleted. For a while these keep older rows of the same keys out of the
table; readers do not see them.

They are a log of objects. A merge adds one with its own keys, and folds a few of the last ones into it.
"""

import io
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewriter.commit.iceberg.merge_keys import KeySet, RowReader
from lakewriter.commit.iceberg.merge_winners import DELETED, FILE, KEY, NO_FILE, POSITION
from lakewriter.receipt import DeletedKeys

UNTIL: Final = "until"
"""The time until which a key keeps older rows out."""
UNTIL_TYPE: Final = pa.timestamp("us", "UTC")
_FIELDS: Final = b"lakewriter.fields"
"""The entry of the file's metadata with the ids of the table's fields that are the keys and orders."""
_OBJECTS: Final = b"lakewriter.objects"
"""The entry with the file's own name and those of the earlier ones, as the table's state has them."""


def write_deleted(entries: pa.Table, reader: RowReader, objects: DeletedKeys) -> bytes:
    """Return a Parquet file with these entries."""
    body = io.BytesIO()
    metadata = {_FIELDS: reader.describe_fields().encode(), _OBJECTS: objects.model_dump_json().encode()}
    pq.write_table(entries.replace_schema_metadata(metadata), body, compression="zstd")
    return body.getvalue()


def read_objects(body: bytes) -> DeletedKeys:
    """Return the names of such a file and of the earlier ones."""
    return DeletedKeys.model_validate_json(pq.read_schema(io.BytesIO(body)).metadata[_OBJECTS])


def read_newest(objects: Sequence[bytes], reader: RowReader, keys: KeySet) -> pa.Table:
    """Read the newest entry of each of the ``keys``, with its number; ``objects`` are the newest first. An entry that
    is not ``deleted`` says that its key was brought back."""
    is_new, newest = np.full(len(keys), True), [keys.select_rows(_make_schema(reader).empty_table())]
    for body in objects:
        entries = keys.select_rows(_read_entries(body, reader))
        entries = entries.filter(pa.array(is_new[entries[KEY].to_numpy()]))
        is_new[entries[KEY].to_numpy()] = False
        newest.append(entries)
    return pa.concat_tables(newest)


def fold(changed: pa.Table, objects: Sequence[bytes], reader: RowReader, at: datetime, after: DeletedKeys) -> pa.Table:
    """Return the entries of a merge's own object, by key: those that it has ``changed``, and of each other key the
    newest one of the ``objects`` that it folds. Keys that were brought back are left out where no earlier object may
    have them."""
    entries = changed.select(_make_schema(reader).names)
    for body in objects:
        # Rule deleted-keys-are-carried
        entries = _add_older(entries, _read_entries(body, reader), reader)
    entries = entries.filter(pc.greater(entries[UNTIL], pa.scalar(at, UNTIL_TYPE)))
    if not after.earlier:
        entries = entries.filter(entries[DELETED])
    return entries.sort_by([(key, "ascending") for key in reader.keys])


def to_rows(entries: pa.Table, schema: pa.Schema, at: datetime) -> pa.Table:
    """Return those of these entries that still keep rows out ``at`` a time as rows without a file."""
    entries = entries.filter(pc.and_(entries[DELETED], pc.greater(entries[UNTIL], pa.scalar(at, UNTIL_TYPE))))
    entries = entries.append_column(POSITION, pa.arange(0, len(entries)))
    entries = entries.append_column(FILE, pa.repeat(pa.scalar(NO_FILE, pa.int32()), len(entries)))
    return entries.select(schema.names)


def _make_schema(reader: RowReader) -> pa.Schema:
    types = [field for field in reader.schema if field.name != POSITION]
    return pa.schema([*types, pa.field(UNTIL, UNTIL_TYPE)])


def _read_entries(body: bytes, reader: RowReader) -> pa.Table:
    """Read the entries of a file; none where the table is merged by other fields now: the orders cannot be compared
    with those of its rows."""
    schema, entries = _make_schema(reader), pq.read_table(io.BytesIO(body))
    if entries.schema.metadata[_FIELDS] != reader.describe_fields().encode():
        return schema.empty_table()
    return entries.select(schema.names).replace_schema_metadata(None).cast(schema)


def _add_older(entries: pa.Table, older: pa.Table, reader: RowReader) -> pa.Table:
    """Add the entries of keys that have none yet."""
    if len(entries) and len(older):
        keys = list(reader.keys)
        older = older.join(entries.select(keys), keys, join_type="left anti").select(entries.column_names)
    return pa.concat_tables([entries, older])
