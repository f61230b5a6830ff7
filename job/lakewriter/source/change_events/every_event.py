"""Make rows of every event for the history of a table: with the operation, its time, and what the event leaves out.

An event that takes rows out of the whole table, whose keys it does not name, is a row without a key.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.source.change_events.debezium import PAYLOAD, DebeziumPlan
from lakewriter.source.change_events.members import Unfolded, get_member, read_texts, read_whole
from lakewriter.source.change_events.mongodb import DocumentPlan
from lakewriter.spec.change_events import (
    CHANGE_OP,
    CHANGE_ORDER,
    CHANGE_SOURCE,
    CHANGE_TIME,
    CHANGE_UNCHANGED,
    SNAPSHOT_END,
)

HISTORY_FIELDS: Final = (
    pa.field(CHANGE_OP, pa.string()),
    pa.field(CHANGE_TIME, pa.timestamp("us", "UTC")),
    pa.field(CHANGE_UNCHANGED, pa.string()),
)
_MOVED: Final = r"^\[(true|false),"
"""The beginning of a list of columns in ``naming.UNCHANGED``: whether the event gives the row another key."""


@dataclass(frozen=True)
class HistoryPlan:
    """The plan of the events of a table's history; picklable. ``plan`` is that of the table."""

    plan: DebeziumPlan | DocumentPlan

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns of the rows."""
        return (*self.plan.fields, *HISTORY_FIELDS)

    def unfold(self, batch: pa.RecordBatch, files: pa.Array) -> Unfolded:
        """Return the rows of a batch: one for each event, and one more for each that ends a snapshot."""
        unfolded = self.plan.unfold(batch, files)
        event = batch.column(PAYLOAD) if self.plan.has_payload else batch.to_struct_array()
        op = read_texts(get_member(event, "op"), batch.num_rows)
        unchanged = unfolded.unchanged
        listed = pa.nulls(len(op), pa.string())
        if unchanged is not None:
            listed = pc.replace_substring_regex(unchanged, _MOVED, "[")
        of_history = [values.take(unfolded.events) for values in (op, _read_times(event, len(op)), listed)]
        columns = [*unfolded.columns, *of_history]
        if unfolded.floors is None:
            return replace(unfolded, columns=columns, unchanged=None)
        is_floor = unfolded.floors.is_valid()
        is_end = pc.and_(is_floor, pc.equal(of_history[0], "r"))
        return replace(
            unfolded,
            columns=self._empty_floors(columns, is_floor, is_end),
            deleted=pc.or_(unfolded.deleted, is_floor),
            floors=None,
            unchanged=None,
        )

    def _empty_floors(self, columns: Sequence[pa.Array], is_floor: pa.Array, is_end: pa.Array) -> list[pa.Array]:
        """Return the columns without the values of rows that stand for a floor."""
        position = frozenset(CHANGE_ORDER[1:])
        stays = {*CHANGE_ORDER, CHANGE_SOURCE, CHANGE_OP, CHANGE_TIME}
        written = list[pa.Array]()
        for field, values in zip(self.fields, columns, strict=True):
            if field.name in position:
                # What a snapshot does not bring is older than the first event of its epoch.
                values = pc.if_else(is_end, pa.scalar(0, pa.int64()).cast(field.type), values)
            elif field.name == CHANGE_OP:
                values = pc.if_else(is_end, SNAPSHOT_END, values)
            elif field.name not in stays:
                values = pc.if_else(is_floor, pa.scalar(None, field.type), values)
            written.append(values)
        return written


def _read_times(event: pa.Array, count: int) -> pa.Array:
    """Return when the database made each change, by the source's clock."""
    source = get_member(event, "source")
    micros, millis = (read_whole(get_member(source, name), count) for name in ("ts_us", "ts_ms"))
    thousand = pa.scalar(1000, pa.int64())
    of_millis = pc.multiply(pc.if_else(_is_time(millis, 10**15), millis, None).cast(pa.int64()), thousand)
    of_micros = pc.if_else(_is_time(micros, 10**18), micros, None).cast(pa.int64())
    return pc.coalesce(of_micros, of_millis).cast(pa.timestamp("us", "UTC"))


def _is_time(values: pa.Array, limit: int) -> pa.Array:
    """Return which numbers are times that a timestamp holds."""
    return pc.less(values, pa.scalar(limit, pa.int64()).cast(values.type))
