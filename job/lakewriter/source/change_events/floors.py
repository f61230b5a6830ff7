"""Find the events that take rows out of a whole table: truncates, and the ends of snapshots in a higher epoch.

Each gives a floor, the order below which the table has none of its source's rows.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.receipt import Floor
from lakewriter.source.change_events.members import Reasons, any_of, get_member, read_texts

_ENDS: Final = ("last", "last_in_data_collection")
"""The values of ``source.snapshot`` in the last read of a table. One of an incremental snapshot has ``incremental``.

https://github.com/debezium/debezium/blob/v3.2.0.Final/debezium-core/src/main/java/io/debezium/connector/SnapshotRecord.java
"""
_FLAGGED: Final = (
    "it truncates the table, whose deleted rows stay by keep_deleted: true. Take keep_deleted out, or flag the rows by "
    "a statement of your own"
)
_NO_SOURCE: Final = "it takes rows out of the table, and which is not known: expected the table's name in source.table"


def name_sources(source: pa.Array | None, count: int) -> pa.Array:
    """Return the table that each event is of, such as ``inventory.public.customers``; null if it is not known."""
    names = ("db", "schema", "table", "collection")
    *within, table, collection = (read_texts(get_member(source, name), count) for name in names)
    given = (pc.if_else(pc.equal(one, ""), None, one) for one in within)
    prefixes = (pc.coalesce(pc.binary_join_element_wise(one, "", "."), "") for one in given)
    table = pc.coalesce(table, collection)
    return pc.if_else(pc.equal(table, ""), None, pc.binary_join_element_wise(*prefixes, table, ""))


def find_floors(
    source: pa.Array | None, op: pa.Array, order: Sequence[pa.Array], reasons: Reasons, *, keeps_deleted: bool
) -> pa.Array:
    """Return the floor that each event gives, as JSON; null for one that gives none. ``order`` are the columns of the
    order, and the source table."""
    count, (epoch, log, position, row, name) = len(op), order
    is_truncate = pc.fill_null(pc.equal(op, "t"), False)
    is_end = pc.is_in(read_texts(get_member(source, "snapshot"), count), value_set=pa.array(_ENDS))
    # Nothing is below the first epoch: its snapshot is the table's first.
    ends = pc.and_(pc.and_(is_end, pc.greater(epoch, 0)), pc.fill_null(pc.equal(op, "r"), False))
    if keeps_deleted:
        reasons.add(is_truncate, _FLAGGED)
        return pa.nulls(count, pa.string())
    reasons.add(pc.and_(pc.or_(is_truncate, ends), name.is_null()), _NO_SOURCE)
    is_known = pc.and_(
        any_of([name.is_valid()], count), pc.and_(log.is_valid(), pc.and_(position.is_valid(), row.is_valid()))
    )
    floors: list[str | None] = [None] * count
    for number in pc.indices_nonzero(pc.and_(pc.or_(is_truncate, ends), is_known)).to_pylist():
        parts = [part[number].as_py() for part in (epoch, log, position, row)]
        # What a snapshot does not bring is older than the first event of its epoch.
        parts = parts if is_truncate[number].as_py() else [parts[0], 0, 0, 0]
        floor = Floor(source=name[number].as_py(), order=tuple(str(int(part)) for part in parts))
        floors[number] = floor.model_dump_json()
    return pa.array(floors, pa.string())
