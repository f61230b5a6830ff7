"""Unfold the change events of Debezium's connectors into rows, each with its order in the database's log.

https://debezium.io/documentation/reference/3.2/connectors/
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.log_positions import read_server_lsn
from lakewriter.column_types import name_type
from lakewriter.errors import SpecInvalidError
from lakewriter.source.change_events.floors import find_floors, name_sources
from lakewriter.source.change_events.members import (
    WHOLE,
    Reasons,
    Unfolded,
    any_of,
    convert_member,
    find_placeholder,
    find_type,
    get_member,
    is_placeholder,
    is_present,
    join_types,
    read_texts,
    read_whole,
)
from lakewriter.spec.change_events import (
    CHANGE_OP,
    CHANGE_ORDER,
    CHANGE_SOURCE,
    CHANGE_TIME,
    CHANGE_UNCHANGED,
    ChangeEvents,
)

ORDER_FIELDS: Final = (
    *(pa.field(name, kind) for name, kind in zip(CHANGE_ORDER, (pa.int64(), pa.int64(), WHOLE, WHOLE), strict=True)),
    pa.field(CHANGE_SOURCE, pa.string()),
)
PAYLOAD: Final = "payload"
_SCHEMA: Final = "schema"
_READS, _STREAMED = 0, 1
"""The parts of a log: what a snapshot has read lies below all that was streamed, whenever it was read."""
_RECORD_SET: Final = re.compile(r"\s*(?:0x)?([0-9a-f]{6,})\.([0-9a-f]{8})\.([0-9a-f]{4})\s*", re.IGNORECASE)
_SERIALS: Final = 10**10
"""Oracle's ``ssn`` is a number of 32 bits."""


class Order(NamedTuple):
    """The order of events, and what is expected of ``source`` where an event has none."""

    log: pa.Array
    position: pa.Array
    row: pa.Array
    expected: str


def order_by_log(source: pa.Array, is_read: pa.Array, position: pa.Array, row: pa.Array, expected: str) -> Order:
    """Return the order of a connector whose snapshots read below its log, by the time of the read.

    A transaction that was open while the snapshot read has changes that are lower in the log than the snapshot, and
    are newer than its rows. Snapshot reads need no position: an incremental snapshot of PostgreSQL gives none.
    """
    count = len(source)
    # Rule reads-below-the-log
    log = pc.if_else(is_read, _READS, _STREAMED).cast(pa.int64())
    read_at = read_whole(get_member(source, "ts_ms"), count)
    nothing = pa.repeat(pa.scalar(0, pa.int64()), count).cast(WHOLE)
    return Order(log, pc.if_else(is_read, read_at, position), pc.if_else(is_read, nothing, row), expected)


def _order_postgresql(source: pa.Array, is_read: pa.Array) -> Order:
    # A key's row locks put its changes in the order of their LSNs, whatever the order of the commits is.
    count = len(source)
    lsn, none = read_whole(get_member(source, "lsn"), count), pa.repeat(pa.scalar(0, pa.int64()), count).cast(WHOLE)
    return order_by_log(source, is_read, lsn, none, "a number in source.lsn (in source.ts_ms of a snapshot's read)")


def _order_binlog(source: pa.Array, is_read: pa.Array) -> Order:
    del is_read
    count = len(source)
    numbers = pc.extract_regex(read_texts(get_member(source, "file"), count), r"\.(?P<number>[0-9]{1,18})$")
    log = pc.struct_field(numbers, [0]).cast(pa.int64())
    position, row = (read_whole(get_member(source, name), count) for name in ("pos", "row"))
    position = pc.if_else(log.is_valid(), position, pa.scalar(None, WHOLE))
    return Order(log, position, row, "a binlog file such as 'binlog.000003' in source.file, numbers in pos and row")


def _order_sqlserver(source: pa.Array, is_read: pa.Array) -> Order:
    count = len(source)
    texts = read_texts(get_member(source, "change_lsn"), count)
    position = pa.array([read_server_lsn(text or "") for text in texts.to_pylist()], WHOLE)
    serial = read_whole(get_member(source, "event_serial_no"), count)
    expected = "change_lsn and event_serial_no in source (source.ts_ms of a snapshot's read)"
    return order_by_log(source, is_read, position, serial, expected)


def _order_oracle(source: pa.Array, is_read: pa.Array) -> Order:
    count = len(source)
    sets, serials = (read_texts(get_member(source, name), count).to_pylist() for name in ("rs_id", "ssn"))
    row = pa.array([_read_record_set(*pair) for pair in zip(sets, serials, strict=True)], WHOLE)
    expected = "a number in source.scn, a record set or nothing in source.rs_id (source.ts_ms of a snapshot's read)"
    return order_by_log(source, is_read, read_whole(get_member(source, "scn"), count), row, expected)


def _read_record_set(text: str | None, serial: str | None) -> int | None:
    """Return where a change lies among those of one SCN; 0 for the adapters that do not say."""
    if not (text or "").strip():
        return int(serial) if serial and serial.isdecimal() else 0
    match = _RECORD_SET.fullmatch(str(text))
    if match is None or not (serial is None or serial.isdecimal()):
        return None
    return int("".join(match.groups()), 16) * _SERIALS + int(serial or 0)


_CONNECTORS: Final[Mapping[str, Callable[[pa.Array, pa.Array], Order]]] = {
    "postgresql": _order_postgresql,
    "mysql": _order_binlog,
    "mariadb": _order_binlog,
    "sqlserver": _order_sqlserver,
    "oracle": _order_oracle,
}


@dataclass(frozen=True)
class DebeziumPlan:
    """The plan of a table's events; picklable. ``rows`` are the columns of the source's table, before their order."""

    events: ChangeEvents
    rows: tuple[pa.Field, ...]
    has_payload: bool
    has_schema: bool = False
    """True if a column ``schema`` beside the payload says what the types of its rows are."""
    keeps_deleted: bool = False
    """True if the table keeps its deleted rows, so that no event takes all of them out."""
    whole: frozenset[str] | None = None
    """The columns whose values no event may leave out, in lower case; None for all."""

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns of the rows."""
        return (*self.rows, *ORDER_FIELDS)

    def unfold(self, batch: pa.RecordBatch, files: pa.Array) -> Unfolded:
        """Return the rows of a batch: one for each event, and one more for each that ends a snapshot."""
        del files
        event = batch.column(PAYLOAD) if self.has_payload else batch.to_struct_array()
        count = batch.num_rows
        reasons, op = Reasons(count), read_texts(get_member(event, "op"), count)
        after, before = get_member(event, "after"), get_member(event, "before")
        is_delete = pc.fill_null(pc.equal(op, "d"), False)
        skipped = find_skipped(event, op)
        reasons.add(pc.and_(op.is_null(), skipped.is_null()), "it has no 'op', and is no change event")
        reasons.add(*explain_op(op, ("c", "r", "u", "d", "t", "m")))
        no_before = "it deletes a row and has no 'before', so that its key is not known"
        reasons.add(pc.and_(is_delete, pc.invert(is_present(before, count))), no_before)
        has_row = any_of([is_present(after, count), is_delete, pc.equal(op, "t")], count)
        reasons.add(pc.invert(has_row), "it has no 'after'")
        order = self._find_order(event, op, reasons)
        floors = find_floors(get_member(event, "source"), op, order, reasons, keeps_deleted=self.keeps_deleted)
        columns = [self._choose(field, after, before, is_delete, reasons) for field in self.rows]
        columns, unchanged = self._leave_unchanged_out(event, op, columns, reasons)
        left = pc.if_else(skipped.is_valid(), pa.scalar(None, pa.string()), reasons.texts)
        unfolded = Unfolded(pa.arange(0, count), [*columns, *order], is_delete, left, skipped, unchanged=unchanged)
        return unfolded.add_floors(floors, op)

    def _leave_unchanged_out(
        self, event: pa.Array, op: pa.Array, columns: list[pa.Array], reasons: Reasons
    ) -> tuple[list[pa.Array], pa.Array]:
        """Return the columns with null where an event leaves an unchanged value out, and which these are.

        Only PostgreSQL's connector leaves out nothing but what is unchanged: Oracle's leaves out changed values as well
        unless ``lob.enabled`` is set. A ``c`` that lacks values gives a row another key, as an insert has all of them:
        https://debezium.io/documentation/reference/3.2/connectors/postgresql.html#postgresql-primary-key-updates
        """
        count, text, nothing = len(event), self.events.unavailable, pa.scalar(None, pa.string())
        is_written = pc.fill_null(pc.not_equal(op, "d"), True)
        connector = read_texts(get_member(get_member(event, "source"), "connector"), count)
        may_lack = pc.and_(pc.equal(connector, "postgresql"), pc.is_in(op, value_set=pa.array(["c", "u"])))
        whole, written, names = self.whole, list[pa.Array](), list[pa.Array]()
        for field, values in zip(self.rows, columns, strict=True):
            is_bad, may_fill = pc.and_(find_placeholder(values, text), is_written), pa.repeat(False, count)
            if pc.any(is_bad).as_py() and whole is not None and field.name.lower() not in whole:
                may_fill = pc.fill_null(pc.and_(is_placeholder(values, text), may_lack), False)
                names.append(pc.if_else(may_fill, json.dumps(field.name), nothing))
                values = pc.if_else(may_fill, pa.scalar(None, field.type), values)
            reasons.add(pc.and_(is_bad, pc.invert(may_fill)), self._explain_unavailable(field.name))
            written.append(values)
        if not names:
            return written, pa.nulls(count, pa.string())
        lacks = any_of([name.is_valid() for name in names], count)
        is_moved = pc.if_else(pc.fill_null(pc.equal(op, "c"), False), "true", "false")
        listed = pc.binary_join_element_wise(is_moved, *names, ",", null_handling="skip")
        return written, pc.if_else(lacks, pc.binary_join_element_wise("[", listed, "]", ""), nothing)

    def _explain_unavailable(self, name: str) -> str:
        why = (
            "the source is not one topic or one path of files, or the table has a quarantine or an SQL check"
            if self.whole is None
            else "it is of a key, of partition_by, checked, inside another value, or not PostgreSQL's"
        )
        return (
            f"column {name!r} has {self.events.unavailable!r}: the database left an unchanged value out, which no "
            f"earlier row can give for certain: {why}. Have the connector send whole rows: REPLICA IDENTITY FULL for "
            "PostgreSQL, lob.enabled: true for Oracle"
        )

    def _choose(
        self,
        field: pa.Field,
        after: pa.Array | None,
        before: pa.Array | None,
        is_delete: pa.Array,
        reasons: Reasons,
    ) -> pa.Array:
        """Return a column: its values in ``before`` where a row is deleted, else those in ``after``."""
        count = len(is_delete)
        given = [get_member(row, field.name) for row in (after, before)]
        new, old = (convert_member(values, field.type, count) for values in given)
        numbers = pa.arange(0, count)
        chosen = pa.concat_arrays([new, old]).take(pc.if_else(is_delete, pc.add(numbers, count), numbers))
        has_value = pc.if_else(is_delete, is_present(given[1], count), is_present(given[0], count))
        lost = pc.and_(has_value, chosen.is_null())
        reasons.add(lost, f"its value of column {field.name!r} has more digits than {name_type(field.type)}")
        return chosen

    def _find_order(self, event: pa.Array, op: pa.Array, reasons: Reasons) -> list[pa.Array]:
        source, count = get_member(event, "source"), len(event)
        connector = read_texts(get_member(source, "connector"), count)
        log, position, row = pa.nulls(count, pa.int64()), pa.nulls(count, WHOLE), pa.nulls(count, WHOLE)
        is_known = pc.is_in(connector, value_set=pa.array(list(_CONNECTORS)))
        expected = f"', expected one of {', '.join(_CONNECTORS)}"
        said = pc.binary_join_element_wise("its order is not known: of connector '", connector, expected, "")
        reasons.add(connector.is_null(), "its order is not known: expected the connector's name in source.connector")
        reasons.add(pc.invert(is_known), said)
        is_read = pc.fill_null(pc.equal(op, "r"), False)
        for name in set(connector.unique().to_pylist()) & _CONNECTORS.keys():
            order, is_of = _CONNECTORS[name](source, is_read), pc.fill_null(pc.equal(connector, name), False)
            log = pc.if_else(is_of, order.log, log)
            position, row = pc.if_else(is_of, order.position, position), pc.if_else(is_of, order.row, row)
            lacks = any_of([part.is_null() for part in (order.log, order.position, order.row)], count)
            reasons.add(pc.and_(is_of, lacks), f"its order is not known: expected {order.expected}")
        # Rule epoch-outranks
        epoch = pa.repeat(pa.scalar(self.events.epoch, pa.int64()), count)
        return [epoch, log, position, row, name_sources(source, count)]


def explain_op(op: pa.Array, expected: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """Return which events have another operation than the expected ones, and what is wrong with each."""
    said = pc.binary_join_element_wise("its op is '", op, f"', expected one of {', '.join(expected)}", "")
    return pc.and_(op.is_valid(), pc.invert(pc.is_in(op, value_set=pa.array(expected)))), said


def find_skipped(event: pa.Array, op: pa.Array) -> pa.Array:
    """Return what each event is that changes no row of the table; null for others."""
    count, names = len(event), [field.name for field in event.type]
    present = {name: is_present(get_member(event, name), count) for name in names}
    given = any_of(list(present.values()), count)
    nothing = pa.repeat(False, count)

    def has(name: str) -> pa.Array:
        return present.get(name, nothing)

    status = read_texts(get_member(event, "status"), count)
    is_end = pc.fill_null(pc.is_in(status, value_set=pa.array(["BEGIN", "END"])), False)
    only_time = pc.and_(has("ts_ms"), pc.invert(any_of([p for n, p in present.items() if n not in _TIMES], count)))
    kinds = {
        "tombstone": pc.invert(given),
        "heartbeat": only_time,
        "transaction": pc.and_(is_end, has("id")),
        "schema change": pc.and_(has("databaseName"), pc.or_(has("ddl"), has("tableChanges"))),
    }
    no_op = op.is_null()
    kind = pc.if_else(pc.fill_null(pc.equal(op, "m"), False), "message", pa.scalar(None, pa.string()))
    for name, applies in kinds.items():
        kind = pc.if_else(pc.and_(pc.and_(no_op, applies), kind.is_null()), name, kind)
    return kind


_TIMES: Final = frozenset({"ts_ms", "ts_us", "ts_ns"})


_WITHOUT_ROWS: Final = _TIMES | {
    "op", "source", "before", "after", "transaction", "status", "id", "event_count", "data_collections",
    "databaseName", "schemaName", "ddl", "tableChanges", "message",
}  # fmt: skip
"""The members of events that change no row."""


def plan_debezium(
    schema: pa.Schema,
    events: ChangeEvents,
    table: str,
    columns: Mapping[str, pa.DataType] | None = None,
    declared: Sequence[str] = (),
    *,
    keeps_deleted: bool = False,
) -> DebeziumPlan:
    """Plan events with these columns; raise ``SPEC_INVALID`` if they are no change events.

    ``columns`` are those that the table has learnt: they are those of the rows if no event has one. If none has a row
    after its change, which has every column, the ``declared`` columns and those of the key are added, without a type.
    """
    types = {field.name: field.type for field in schema}
    has_payload = pt.is_struct(types.get(PAYLOAD, pa.null())) and types.keys() <= {PAYLOAD, _SCHEMA}
    event = types[PAYLOAD] if has_payload else types
    has_schema = has_payload and find_type(types, _SCHEMA, "fields") is not None
    images = {name: find_type(event, name) for name in ("after", "before")}
    for name, kind in images.items():
        if kind is not None and not pt.is_struct(kind):
            raise SpecInvalidError(
                f"table {table!r}: {name!r} of its change events is {kind}, expected an object with the row's columns.",
                remedy="Events of MongoDB's connector, whose documents are texts, have an 'ord' in 'source'.",
            )
    members = {field.name for field in event} if has_payload else set(types)
    has_none = members <= _WITHOUT_ROWS and not members.isdisjoint({"op", "ts_ms"})
    if not any(images.values()) and (columns or has_none):
        of_order = {field.name for field in ORDER_FIELDS} | {CHANGE_OP, CHANGE_TIME, CHANGE_UNCHANGED}
        fields = [pa.field(name, kind) for name, kind in (columns or {}).items() if name not in of_order]
        return DebeziumPlan(events, _add_declared(fields, declared), has_payload, keeps_deleted=keeps_deleted)
    if find_type(event, "op") is None or not any(images.values()):
        raise SpecInvalidError(
            f"table {table!r} has envelope: debezium, and its source has the columns {', '.join(types)}: expected "
            "'op', 'before', 'after' and 'source', as they are or in 'payload'.",
            remedy="Events that ExtractNewRecordState has flattened are rows: take envelope out, and set deleted: "
            "\"__deleted = 'true'\" and order_by. Or correct read.",
        )
    rows = dict[str, pa.DataType]()
    try:
        for kind in images.values():
            for field in kind or ():
                rows[field.name] = join_types(field.name, rows.get(field.name, field.type), field.type)
    except ValueError as error:
        raise SpecInvalidError(
            f"table {table!r}: column {error}.", remedy="Declare its type under columns:, such as {amount: double}."
        ) from error
    fields = [pa.field(name, kind) for name, kind in rows.items()]
    added = () if images["after"] is not None else declared
    return DebeziumPlan(events, _add_declared(fields, added), has_payload, has_schema, keeps_deleted)


def _add_declared(fields: Sequence[pa.Field], declared: Sequence[str]) -> tuple[pa.Field, ...]:
    added = {name.lower(): pa.field(name, pa.null()) for name in declared}
    names = {field.name.lower() for field in fields}
    return (*fields, *(field for name, field in added.items() if name not in names))
