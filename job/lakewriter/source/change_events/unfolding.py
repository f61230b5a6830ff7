"""Make rows of a batch of events: columns of the row and its order, whether it deletes its key, and its mark."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.column_types import read_noted_type
from lakewriter.documents.values_to_text import WHOLE, render_members
from lakewriter.naming import DELETED
from lakewriter.source.bad_rows import BAD, FIELDS, FLOOR, SKIPPED, Marked, join_marks
from lakewriter.source.change_events.debezium import DebeziumPlan, plan_debezium
from lakewriter.source.change_events.dms import DmsPlan, plan_dms
from lakewriter.source.change_events.every_event import HistoryPlan
from lakewriter.source.change_events.members import find_type
from lakewriter.source.change_events.mongodb import DocumentPlan, is_of_documents, plan_documents
from lakewriter.spec.change_events import ChangeEvents
from lakewriter.spec.table_spec import TableSpec

AnyEventPlan = DebeziumPlan | DocumentPlan | DmsPlan | HistoryPlan

_TOMBSTONE = "null"
"""A line of JSON with nothing but this is the value of a Kafka message that has none."""


def plan_events(schema: pa.Schema, table: TableSpec, events: ChangeEvents) -> AnyEventPlan:
    """Plan the events of a source with these columns; raise ``SPEC_INVALID`` if they are of another form."""
    if events.form == "dms":
        return plan_dms(schema, events, table.id, table.order_by, table.primary_key)
    members = {field.name: field.type for field in schema}
    if is_of_documents(members) or is_of_documents(find_type(members, "payload")):
        documents = plan_documents(schema, table, events)
        return documents if table.history_of is None else HistoryPlan(documents)
    columns = {column.name: read_noted_type(column) for column in table.read.learnt.columns}
    declared = (*table.primary_key, *table.columns)
    plan = plan_debezium(schema, events, table.id, columns, declared, keeps_deleted=table.refuses_floors)
    if table.history_of is not None:
        # No value is filled: each event says what it left out.
        return HistoryPlan(replace(plan, whole=frozenset(name.lower() for name in table.primary_key)))
    return replace(plan, whole=table.whole_columns) if table.fills_unchanged else plan


def unfold_batch(plan: AnyEventPlan, marked: Marked) -> pa.RecordBatch:
    """Return the rows of a batch of events, with ``DELETED`` and their marks behind their columns."""
    marks = dict(zip(FIELDS, marked.marks.flatten(), strict=True))
    unfolded = plan.unfold(marked.rows, marks["file"])
    is_read = marks["reason"].is_null()
    is_tombstone = pc.and_(pc.fill_null(pc.equal(marks["value"], _TOMBSTONE), False), marks["column"].is_null())
    is_tombstone = pc.and_(pc.invert(is_read), is_tombstone)
    skipped = pc.if_else(is_tombstone, "tombstone", pc.if_else(is_read, unfolded.skipped, None))
    reasons = pc.if_else(is_read, unfolded.reasons, None)
    texts = _render_bad(marked.rows, reasons.is_valid())
    marks["value"], marks["row"] = pc.coalesce(texts, marks["value"]), pc.coalesce(texts, marks["row"])
    marks["reason"] = pc.coalesce(skipped, reasons, marks["reason"])
    marks["column"] = pc.if_else(skipped.is_valid(), SKIPPED, marks["column"])
    if unfolded.unchanged is not None:
        marks["column"] = pc.if_else(marks["reason"].is_null(), unfolded.unchanged, marks["column"])
    marks = {name: values.take(unfolded.events) for name, values in marks.items()}
    if unfolded.floors is not None:
        # An event that cannot be taken sets none; the end of a snapshot has a row of its own behind those of events.
        is_end = pc.greater_equal(pa.arange(0, len(unfolded.floors)), marked.rows.num_rows)
        is_floor = pc.and_(unfolded.floors.is_valid(), pc.or_(is_end, marks["reason"].is_null()))
        for name, values in (("value", unfolded.floors), ("column", FLOOR), ("reason", FLOOR)):
            marks[name] = pc.if_else(is_floor, values, marks[name])
    # A row that is not written has no values: none of them is cast or compared.
    is_good = marks["reason"].is_null()
    numbers = pc.if_else(is_good, pa.arange(0, len(is_good)), None)
    columns = [values.take(numbers) for values in (*unfolded.columns, unfolded.deleted)]
    taken = join_marks(marks)
    fields = [*plan.fields, pa.field(DELETED, pa.bool_())]
    names = [*(field.name for field in fields), BAD]
    return pa.RecordBatch.from_arrays([*columns, taken], names=names)


def _render_bad(events: pa.RecordBatch, is_bad: pa.Array) -> pa.Array:
    """Return the bad events as JSON; null for the others."""
    numbers = pc.indices_nonzero(is_bad)
    if not len(numbers):
        return pa.nulls(len(is_bad), pa.string())
    bad = events.take(numbers)
    texts = render_members(zip(bad.schema.names, bad.columns, strict=True), bad.num_rows, WHOLE)
    return pc.replace_with_mask(pa.nulls(len(is_bad), pa.string()), is_bad, texts)
