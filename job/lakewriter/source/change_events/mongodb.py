"""Unfold the change events of Debezium's connector for MongoDB, whose documents are texts of extended JSON, into rows.

https://debezium.io/documentation/reference/3.2/connectors/mongodb.html#mongodb-events
https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md
"""

import base64
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.json_text import DocumentError, NumberText, describe_value, parse_document, write_text
from lakewriter.cast.sql_types import parse_type
from lakewriter.errors import SpecInvalidError
from lakewriter.source.change_events.debezium import (
    ORDER_FIELDS,
    PAYLOAD,
    Order,
    explain_op,
    find_skipped,
    order_by_log,
)
from lakewriter.source.change_events.floors import find_floors, name_sources
from lakewriter.source.change_events.members import Reasons, Unfolded, find_type, get_member, read_texts, read_whole
from lakewriter.spec.change_events import ChangeEvents
from lakewriter.spec.table_spec import TableSpec

MESSAGE_KEY: Final = "__lakewriter_message_key"
"""The column with the ``id`` in the key of an event's message, as extended JSON."""
_ID: Final = "_id"
_TEXT: Final = pa.string()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CLUSTER_CLOCK: Final = re.compile(r"(?:[0-2]\.\d+|3\.[0-3])\..*")
"""Versions whose ``source.ts_ms`` is the second of the oplog's timestamp. Since 3.4 (DBZ-9683) it is the primary's wall
clock instead, if MongoDB gives that: MongoDB 6.0 does."""
_EVENTS: Final = 10**10
"""More than a transaction has events."""
_WALL_CLOCK: Final = (
    "its order is not known: source.ts_ms is the server's wall clock, as it is since Debezium 3.4, which may stand "
    "still or go back. Set wall_clock: true under envelope to take it all the same"
)
_NO_PLACE: Final = (
    "its order is not known: all changes of its transaction, source.txnNumber, have one time. Set the connector's "
    "provide.transaction.metadata: true, which gives transaction.total_order"
)
_NO_AFTER: Final = (
    "it has no 'after': the connector's capture.mode gives none to updates, or the document was gone when it was "
    "looked up. Set capture.mode: change_streams_update_full and capture.mode.full.update.type: post_image"
)
_NO_KEY: Final = (
    "it deletes a document and has no 'before', and its message has no key with the document's _id alone, so that its "
    "key is not known"
)


def is_of_documents(schema: Mapping[str, pa.DataType] | pa.DataType | None) -> bool:
    """Return True for the members of events that are those of documents: only their source has an ``ord``."""
    return find_type(schema, "source", "ord") is not None


@dataclass(frozen=True)
class DocumentPlan:
    """The plan of a table's events; picklable.

    ``rows`` are the declared columns as texts, ``kinds`` their types, ``keys`` the columns of the table's key.
    """

    events: ChangeEvents
    rows: tuple[pa.Field, ...]
    kinds: tuple[pa.DataType, ...]
    has_payload: bool
    keys: tuple[str, ...]
    keeps_deleted: bool = False

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns of the rows."""
        return (*self.rows, *ORDER_FIELDS)

    def unfold(self, batch: pa.RecordBatch, files: pa.Array) -> Unfolded:
        """Return the rows of a batch: one for each event, and one more for each that ends a snapshot."""
        del files
        count, names = batch.num_rows, [name for name in batch.schema.names if name != MESSAGE_KEY]
        event = batch.column(PAYLOAD) if self.has_payload else batch.select(names).to_struct_array()
        key = read_texts(batch.column(MESSAGE_KEY) if MESSAGE_KEY in batch.schema.names else None, count)
        reasons, op = Reasons(count), read_texts(get_member(event, "op"), count)
        skipped = find_skipped(event, op)
        reasons.add(pc.and_(op.is_null(), skipped.is_null()), "it has no 'op', and is no change event")
        reasons.add(*explain_op(op, ("c", "r", "u", "d")))
        connector = read_texts(get_member(get_member(event, "source"), "connector"), count)
        of_another = pc.fill_null(pc.not_equal(connector, "mongodb"), True)
        reasons.add(
            of_another, "its order is not known: expected 'mongodb' in source.connector, as its source has an ord"
        )
        is_delete = pc.fill_null(pc.equal(op, "d"), False)
        after, before = (read_texts(get_member(event, name), count) for name in ("after", "before"))
        reasons.add(pc.and_(pc.invert(is_delete), after.is_null()), _NO_AFTER)
        texts = pc.if_else(is_delete, before, after)
        # Only the document's own key is in a message's key.
        keys = key if self.keys == (_ID,) else pa.nulls(count, _TEXT)
        reasons.add(pc.and_(is_delete, pc.and_(before.is_null(), keys.is_null())), _NO_KEY)
        order = self._find_order(event, op, reasons)
        floors = find_floors(get_member(event, "source"), op, order, reasons, keeps_deleted=self.keeps_deleted)
        is_read = pc.and_(skipped.is_null(), reasons.texts.is_null())
        columns = self._read_documents(pc.if_else(is_read, texts, None), pc.if_else(is_read, keys, None), reasons)
        left = pc.if_else(skipped.is_valid(), pa.scalar(None, _TEXT), reasons.texts)
        return Unfolded(pa.arange(0, count), [*columns, *order], is_delete, left, skipped).add_floors(floors, op)

    def _read_documents(self, texts: pa.Array, keys: pa.Array, reasons: Reasons) -> list[pa.Array]:
        columns: list[list[str | None]] = [[] for _ in self.rows]
        faults: list[str | None] = []
        for text, key in zip(texts.to_pylist(), keys.to_pylist(), strict=True):
            document: Mapping[str, Any] = {}
            fault = None
            try:
                document = {_ID: _parse(key)} if text is None and key is not None else _parse_object(text)
            except DocumentError as error:
                fault = f"its document cannot be read: {error}"
            values = {f.name: write_value(document.get(f.name), k) for f, k in zip(self.rows, self.kinds, strict=True)}
            if document and (missing := next((name for name in self.keys if values[name] is None), None)):
                fault = f"its document has no {missing!r}, which is of the table's key"
            faults.append(fault)
            for column, value in zip(columns, values.values(), strict=True):
                column.append(value)
        reasons.add(pa.array(faults, _TEXT).is_valid(), pa.array(faults, _TEXT))
        return [pa.array(column, _TEXT) for column in columns]

    def _find_order(self, event: pa.Array, op: pa.Array, reasons: Reasons) -> list[pa.Array]:
        source, count = get_member(event, "source"), len(event)
        is_read = pc.fill_null(pc.equal(op, "r"), False)
        millis, wall = (read_whole(get_member(source, name), count) for name in ("ts_ms", "wallTime"))
        version = read_texts(get_member(source, "version"), count)
        is_old = pc.fill_null(pc.match_substring_regex(version, f"^(?:{_CLUSTER_CLOCK.pattern})$"), False)
        is_whole = pc.fill_null(pc.match_substring_regex(millis.cast(_TEXT), "000$|^0$"), False)
        is_cluster = pc.and_(is_whole, pc.or_(is_old, pc.invert(pc.fill_null(pc.equal(millis, wall), False))))
        streamed = pc.and_(pc.is_in(op, value_set=pa.array(["c", "u", "d"])), millis.is_valid())
        if not self.events.wall_clock:
            reasons.add(pc.and_(streamed, pc.invert(is_cluster)), _WALL_CLOCK)
        turn = read_whole(get_member(get_member(event, "transaction"), "total_order"), count)
        in_transaction = read_texts(get_member(source, "txnNumber"), count).is_valid()
        reasons.add(pc.and_(pc.and_(streamed, in_transaction), turn.is_null()), _NO_PLACE)
        number = read_whole(get_member(source, "ord"), count)
        row = _join_numbers(number, pc.if_else(in_transaction, turn, None))
        order: Order = order_by_log(source, is_read, millis, row, "numbers in source.ts_ms and source.ord")
        lacks = pc.or_(order.position.is_null(), order.row.is_null())
        reasons.add(lacks, f"its order is not known: expected {order.expected}")
        epoch = pa.repeat(pa.scalar(self.events.epoch, pa.int64()), count)
        return [epoch, order.log, order.position, order.row, name_sources(source, count)]


def _join_numbers(number: pa.Array, turn: pa.Array) -> pa.Array:
    """Return the place of an event within its second: its number there, then its place in a transaction."""
    pairs = zip(number.to_pylist(), turn.to_pylist(), strict=True)
    return pa.array(
        [None if one is None else int(one) * _EVENTS + int(other or 0) for one, other in pairs], number.type
    )


def _parse(text: str) -> Any:
    # The connector's strict mode writes Double.toString.
    return parse_document(text.encode(), takes_nan=True)


def _parse_object(text: str | None) -> Mapping[str, Any]:
    document = {} if text is None else _parse(text)
    if not isinstance(document, dict):
        raise DocumentError(f"it is {describe_value(document)}, expected an object")
    return document


def write_value(value: Any, kind: pa.DataType) -> str | None:
    """Return a value of a document as the text that becomes a value of ``kind``; null for null.

    Objects and arrays are JSON, in which numbers are written plainly: so the texts of one value are the same in each
    mode of the connector, and in keys of messages.
    """
    plain = _relax(value)
    if plain is None or isinstance(plain, bool):
        return None if plain is None else str(plain).lower()
    if isinstance(plain, dict) and len(plain) == 1:
        ((name, inner),) = plain.items()
        if name == "$date":
            return _write_date(inner, kind)
        if name in ("$oid", "$numberDecimal", "$numberDouble", "$symbol", "$uuid") and isinstance(inner, str):
            return inner
        if name == "$binary":
            return _write_binary(inner, kind)
    if isinstance(plain, (dict, list)):
        return write_text(plain)
    return str(plain).removesuffix(".0") if isinstance(plain, NumberText) and pt.is_integer(kind) else str(plain)


def _relax(value: Any) -> Any:
    """Return a value in extended JSON's relaxed form, from that or from its canonical or its old strict form."""
    if isinstance(value, list):
        return [_relax(item) for item in value]
    if isinstance(value, NumberText) and value in ("NaN", "Infinity", "-Infinity"):
        return {"$numberDouble": str(value)}
    if not isinstance(value, dict):
        return value
    names = tuple(value)
    if names in (("$binary", "$type"), ("$type", "$binary")) and isinstance(value["$binary"], str):
        return {"$binary": {"base64": value["$binary"], "subType": value["$type"]}}
    if len(names) == 1 and (relax := _RELAXED.get(names[0])) is not None:
        return relax(value[names[0]])
    return {name: _relax(inner) for name, inner in value.items()}


def _relax_number(inner: Any) -> Any:
    return _relax(NumberText(inner)) if isinstance(inner, str) else inner


def _relax_date(inner: Any) -> Any:
    millis = inner.get("$numberLong") if isinstance(inner, dict) else inner
    try:
        if isinstance(millis, NumberText) or (isinstance(inner, dict) and isinstance(millis, str)):
            moment = _EPOCH + timedelta(milliseconds=int(millis))
        else:
            moment = datetime.fromisoformat(str(inner)).astimezone(UTC)
    except (OverflowError, ValueError):
        return {"$date": inner}
    return {"$date": f"{moment:%Y-%m-%dT%H:%M:%S}{f'.{moment.microsecond // 1000:03}' * bool(moment.microsecond)}Z"}


_RELAXED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "$numberInt": _relax_number,
    "$numberLong": _relax_number,
    "$numberDouble": _relax_number,
    "$date": _relax_date,
    "$undefined": lambda _: None,
}


def _write_date(inner: Any, kind: pa.DataType) -> str:
    """Return a moment as the text of a timestamp; as that of a date, or of a time without a zone, if it is one."""
    text = inner if isinstance(inner, str) else write_text(inner)
    if pt.is_date(kind):
        return text.removesuffix("T00:00:00Z")
    is_local = pt.is_timestamp(kind) and kind.tz is None
    return text.removesuffix("Z") if is_local else text


def _write_binary(inner: Any, kind: pa.DataType) -> str:
    """Return bytes as base64; those of a UUID as such, if text is asked for."""
    if not isinstance(inner, dict) or not isinstance(inner.get("base64"), str):
        return write_text({"$binary": inner})
    text: str = inner["base64"]
    if inner.get("subType") == "04" and pt.is_string(kind):
        try:
            return str(uuid.UUID(bytes=base64.b64decode(text)))
        except ValueError:
            return text
    return text


def plan_documents(schema: pa.Schema, table: TableSpec, events: ChangeEvents) -> DocumentPlan:
    """Plan events with these columns; raise ``SPEC_INVALID`` if the table does not say what its columns are."""
    kinds = {name: parse_type(column.type) for name, column in table.columns.items()}
    if missing := [name for name in table.primary_key if name not in kinds]:
        raise SpecInvalidError(
            f"tables.{table.id}.columns does not declare {', '.join(map(repr, missing))}: of MongoDB's documents, "
            "which are texts, the declared columns are read.",
            remedy=f'Declare each column, such as columns: {{{missing[0]}: string, amount: "decimal(12,2)"}}.',
        )
    if nested := [name for name, kind in kinds.items() if pt.is_nested(kind)]:
        raise SpecInvalidError(
            f"tables.{table.id}.columns declares {nested[0]!r} as {table.columns[nested[0]].type}: the objects and "
            "arrays of MongoDB's documents are read as texts of JSON.",
            remedy=f"Declare columns: {{{nested[0]}: string}}.",
        )
    has_payload = is_of_documents(find_type({field.name: field.type for field in schema}, PAYLOAD))
    rows = tuple(pa.field(name, _TEXT) for name in kinds)
    types = tuple(kinds.values())
    return DocumentPlan(events, rows, types, has_payload, tuple(table.primary_key), table.refuses_floors)
