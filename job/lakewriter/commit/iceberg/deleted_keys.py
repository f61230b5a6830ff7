"""Read and write the keys that merges have deleted. For a while these keep older rows of the same keys out of the
table; readers do not see them.

They are a log of objects. A merge adds one with its own keys, and folds a few of the last ones into it.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewriter.commit.iceberg.merge_keys import KeySet, RowReader, number_keys
from lakewriter.commit.iceberg.merge_winners import DELETED, FILE, KEY, NO_FILE, POSITION
from lakewriter.receipt import DeletedKeys

UNTIL: Final = "until"
"""The time until which a key keeps older rows out."""
UNTIL_TYPE: Final = pa.timestamp("us", "UTC")
_FIELDS: Final = b"lakewriter.fields"
"""The entry of the file's metadata with the ids of the table's fields that are the keys and orders."""
_OBJECTS: Final = b"lakewriter.objects"
"""The entry with the file's own name and those of the earlier ones, as the table's state has them."""


ENTRIES: Final = 2**20
"""The entries of a file that are read at a time."""
_GROUP: Final = 2**13
"""The entries of a row group, of which a merge reads those that may have its keys. 200 random keys of 5,000,000 took a
third of the CPU of 2**20; of 2**12 the footer takes what is won."""


def write_deleted(parts: Iterable[pa.Table], reader: RowReader, objects: DeletedKeys) -> bytes:
    """Return a Parquet file with the entries of these parts, which are in the order of their keys."""
    body = io.BytesIO()
    metadata = {_FIELDS: reader.describe_fields().encode(), _OBJECTS: objects.model_dump_json().encode()}
    schema = _make_schema(reader).with_metadata(metadata)
    with pq.ParquetWriter(body, schema, compression="zstd") as writer:
        for entries in parts:
            writer.write_table(entries.cast(schema), row_group_size=_GROUP)
    return body.getvalue()


def read_objects(body: bytes) -> DeletedKeys:
    """Return the names of such a file and of the earlier ones."""
    return DeletedKeys.model_validate_json(pq.read_schema(io.BytesIO(body)).metadata[_OBJECTS])


def read_newest(objects: Sequence[bytes], reader: RowReader, keys: KeySet) -> pa.Table:
    """Read the newest entry of each of the ``keys``, with its number; ``objects`` are the newest first. An entry that
    is not ``deleted`` says that its key was brought back."""
    is_new, newest = np.full(len(keys), True), [keys.select_rows(_make_schema(reader).empty_table())]
    for body in objects:
        for some in read_entries(body, reader, keys):
            entries = keys.select_rows(some)
            entries = entries.filter(pa.array(is_new[entries[KEY].to_numpy()]))
            is_new[entries[KEY].to_numpy()] = False
            newest.append(entries)
    return pa.concat_tables(newest)


def fold(
    changed: pa.Table, objects: Iterable[pa.Table], reader: RowReader, at: datetime, after: DeletedKeys
) -> pa.Table:
    """Return entries of a merge's own object, by key: those that it has ``changed``, and of each other key the newest
    one of the ``objects`` that it folds, whose entries come the newest first. Keys that were brought back are left out
    where no earlier object may have them."""
    entries = changed.select(_make_schema(reader).names)
    for older in objects:
        # Rule deleted-keys-are-carried
        entries = pa.concat_tables([entries, number_keys(entries, reader.keys)[0].select_others(older)])
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


def read_entries(body: bytes, reader: RowReader, keys: KeySet | None = None) -> Iterator[pa.Table]:
    """Read the entries of a file, some at a time, of row groups that may have one of the ``keys``; none where the table
    is merged by other fields now: the orders cannot be compared with those of its rows."""
    schema = _make_schema(reader)
    with pq.ParquetFile(io.BytesIO(body)) as parquet:
        if parquet.schema_arrow.metadata[_FIELDS] == reader.describe_fields().encode():
            groups = (
                None if keys is None else keys.select_groups(parquet, dict(zip(reader.keys, reader.keys, strict=True)))
            )
            for batch in parquet.iter_batches(ENTRIES, groups, columns=schema.names):
                yield pa.table(batch).select(schema.names).replace_schema_metadata(None).cast(schema)
