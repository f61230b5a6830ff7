"""Records in an envelope: the columns of the file, and the shaping of documents or typed rows into them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.column_types import ELEMENT, KEY, VALUE, Rename, enter, is_list_like, is_wrapped
from lakewriter.documents.compact_text import compact_texts
from lakewriter.documents.decoding import Documents
from lakewriter.documents.types import (
    CHANGES,
    DATA,
    EMITTED,
    JSON,
    KIND,
    ORIGINAL,
    RECORD,
    ROW,
    TEXT_MAP,
    UUID,
    Record,
    make_arrow_field,
)
from lakewriter.documents.value_changes import NO_FIT, NULLED, TRUNCATED
from lakewriter.documents.values_to_text import COMPACT, find_non_finite, render_json, render_objects
from lakewriter.naming import AS_TEXT, AVRO_SAFE, NameRule, name_avro_fields
from lakewriter.receipt import Cursor, Findings
from lakewriter.shape.digest import compute_digests
from lakewriter.shape.table import ColumnPlan, Shaped, ShapePlan, Shaper, plan_shape
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import Envelope
from lakewriter.spec.table_spec import Partition, TableSpec

CHANGE: Final = pa.struct([pa.field(name, pa.string(), nullable=False) for name in ("field", "change", "reason")])
META: Final = pa.struct(
    [
        pa.field("sync_id", pa.int64(), nullable=False),
        pa.field("changes", pa.list_(pa.field("element", CHANGE, nullable=False)), nullable=False),
    ]
)
MILLIS: Final = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True)
class EnvelopePlan:
    """The plan by which every batch is shaped into an envelope.

    ``rows`` shapes typed rows; without it documents come in. Their properties are ``record`` in typed files and
    ``properties`` in text; both are None where the whole document is one column. ``watched`` types those properties of
    documents in text that are looked at.
    """

    source_schema: pa.Schema
    schema: pa.Schema
    envelope: Envelope
    table_id: str
    rows: ShapePlan | None = None
    record: Record | None = None
    properties: tuple[str, ...] | None = None
    sync_id: int = 0
    generation_id: int = 0
    watched: Record | None = None
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[ColumnPlan, ...]:
        """Source columns and what becomes of them; documents have none before they are read."""
        return self.rows.columns if self.rows else ()

    @property
    def partition(self) -> Partition:
        """None: only Iceberg tables have partitions, and they have no envelope."""
        return ()

    @property
    def left_out(self) -> tuple[str, ...]:
        """Source columns that have no type."""
        return self.rows.left_out if self.rows else ()

    @property
    def watched_schema(self) -> pa.Schema:
        """The types of ``watched``."""
        fields = self.watched.fields if self.watched is not None else ()
        return pa.schema([make_arrow_field(name, kind, name_avro_fields, name) for name, kind in fields])

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The fields of the record without the envelope's columns."""
        fields = [field for field in self.schema if field.name not in self.envelope.names]
        return tuple(fields)


def choose_name_rule(envelope: Envelope) -> NameRule:
    """Return how a record's columns are named: in text they keep their names."""
    return AVRO_SAFE if envelope.typed else AS_TEXT


def plan_rows(
    source: pa.Schema, spec: Spec, table: TableSpec, envelope: Envelope, rename: Rename | None = None
) -> EnvelopePlan:
    """Plan typed rows."""
    rename = rename or choose_name_rule(envelope).name_all
    rows = plan_shape(source, spec, table, rename=rename)
    named = [
        _name_field(column.name, column.type, source.field(column.position), rename)
        if envelope.typed
        else _make_json_field(column.name)
        for column in rows.columns
    ]
    return EnvelopePlan(source, make_file_schema(envelope, table, named), envelope, table.id, rows=rows)


def plan_documents(
    source: pa.Schema,
    table: TableSpec,
    envelope: Envelope,
    record: Record,
    properties: Sequence[str],
    rename: Rename | None = None,
) -> EnvelopePlan:
    """Plan documents; ``record`` types them for files that have types."""
    rename, reserved = rename or choose_name_rule(envelope).name_all, len(envelope.names)
    if not envelope.typed:
        lifted = None if envelope.data else tuple(properties)
        names = rename([*envelope.names, *lifted])[reserved:] if lifted else []
        fields = [_make_json_field(name) for name in names]
        return EnvelopePlan(source, make_file_schema(envelope, table, fields), envelope, table.id, properties=lifted)
    names = rename([*envelope.names, *(name for name, _ in record.fields)])[reserved:]
    typed = zip(names, record.fields, strict=True)
    fields = [make_arrow_field(name, t, enter(rename, original), original) for name, (original, t) in typed]
    return EnvelopePlan(source, make_file_schema(envelope, table, fields), envelope, table.id, record=record)


def make_file_schema(envelope: Envelope, table: TableSpec, fields: Sequence[pa.Field]) -> pa.Schema:
    """Return the envelope's columns, then the record's columns, then the record's other values."""
    typed = envelope.typed
    raw_id = pa.field(envelope.raw_id, pa.string(), nullable=False, metadata={KIND: UUID} if typed else None)
    columns = [raw_id, pa.field(envelope.extracted_at, MILLIS if typed else pa.int64(), nullable=False)]
    if envelope.meta:
        columns.append(pa.field(envelope.meta, META, nullable=False) if typed else _make_json_field(envelope.meta))
    if envelope.generation:
        columns.append(pa.field(envelope.generation, pa.int64(), nullable=False))
    columns += [_make_json_field(envelope.data)] if envelope.data else fields
    if envelope.additional:
        columns.append(pa.field(envelope.additional, TEXT_MAP))
    return pa.schema(columns, metadata={RECORD: name_avro_fields([table.source_table])[0].encode()})


def _name_field(name: str, t: pa.DataType, source: pa.Field, rename: Rename) -> pa.Field:
    """Return a column or field with its name in the source, where the written name differs, and so those inside it."""
    metadata = {ORIGINAL: source.name.encode()} if source.name != name else None
    return pa.field(name, _rename_nested(t, source.type, enter(rename, source.name)), metadata=metadata)


def _rename_nested(t: pa.DataType, source: pa.DataType, rename: Rename) -> pa.DataType:
    """Return ``t``, which is written for ``source``, with the names that its structs have there."""
    if is_wrapped(source):
        return _rename_nested(t, source.value_type, rename)
    if is_list_like(source):
        element = _rename_nested(t.value_type, source.value_type, enter(rename, ELEMENT))
        return pa.list_(t.value_field.with_type(element))
    if pt.is_map(source):
        key = _rename_nested(t.key_type, source.key_type, enter(rename, KEY))
        item = _rename_nested(t.item_type, source.item_type, enter(rename, VALUE))
        return pa.map_(t.key_field.with_type(key), t.item_field.with_type(item))
    if pt.is_struct(source):
        origins = dict(zip(rename([field.name for field in source]), source, strict=True))
        return pa.struct([_name_field(field.name, field.type, origins[field.name], rename) for field in t])
    return t


def _make_json_field(name: str) -> pa.Field:
    return pa.field(name, pa.string(), metadata={KIND: JSON})


MOST_SAMPLES: Final = 100
"""A file's receipt lists at most so many changes, besides their number."""

MOST_FIELDS: Final = 200
"""The changes of at most so many fields are counted apart in a file."""
OTHER_FIELDS: Final = "other fields"

_ELEMENT: Final = re.compile(r"\[\d+\]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Changes = dict[int, list[dict[str, str]]]


class ChangeNotes:
    """The findings on the documents of one task: changes of their values, and what their schema does not declare."""

    def __init__(self) -> None:
        self._findings = Findings()
        self._cut = set[str]()

    def take(self) -> Findings:
        """Return the findings since the last call."""
        taken, self._findings, self._cut = self._findings, Findings(), set()
        return taken

    def note_documents(self, documents: Documents, numbers: pa.Array) -> Changes:
        """Note cuts and undeclared properties of a batch whose rows have these numbers; return its other changes."""
        self._findings.undeclared += documents.undeclared
        self._note_cuts(documents.cuts, numbers)
        return {
            row: [{"field": path, "change": fault.change, "reason": fault.reason} for path, fault in entries]
            for row, entries in documents.changes.items()
        }

    def note(self, changes: Changes, numbers: pa.Array) -> None:
        """Note changes of rows that have these numbers."""
        self._findings.changes += sum(map(len, changes.values()))
        for row, entries in changes.items():
            for entry in entries:
                self._count(entry["field"], entry["change"], entry["reason"])
            for entry in entries[: MOST_SAMPLES - len(self._findings.samples)]:
                location = f"row {numbers[row].as_py()}, {entry['field']}"
                self._findings.samples.append(f"{location}: {entry['change']} ({entry['reason']})")

    def _note_cuts(self, cuts: Sequence[tuple[int, str, str]], numbers: pa.Array) -> None:
        """Note the times that were cut off to the microsecond or to the day.

        Every cut is counted; of each field the first one in a file is a sample. A source that gives nanoseconds gives
        them in every row.
        """
        self._findings.changes += len(cuts)
        for row, path, extent in cuts:
            self._count(path, TRUNCATED, extent)
            if path not in self._cut and len(self._findings.samples) < MOST_SAMPLES:
                self._cut.add(path)
                location = f"row {numbers[row].as_py()} and others of this file, {path}"
                self._findings.samples.append(f"{location}: {TRUNCATED} ({extent})")

    def _count(self, path: str, change: str, reason: str) -> None:
        """Count a change of one field.

        Fields beyond ``MOST_FIELDS`` are counted together: the path may hold a record's own keys.
        """
        counted, field = self._findings.changed, _ELEMENT.sub("[]", path)
        is_counted = (field, change, reason) in counted or len(counted) < MOST_FIELDS
        counted[field if is_counted else OTHER_FIELDS, change, reason] += 1


class EnvelopeShaper:
    """Shaper of the batches of one task in order; ``first_index`` numbers rows that bring no number."""

    def __init__(self, plan: EnvelopePlan, *, job_id: str, start: datetime, first_index: int) -> None:
        self.plan = plan
        self.rows = 0
        self._first_index = first_index
        self._id_head = f"{job_id}/{plan.table_id}/"
        self._started = (start - _EPOCH) // timedelta(milliseconds=1)
        self._notes = ChangeNotes()
        self._rows = plan.rows and Shaper(plan.rows, job_id=job_id, start=start, first_index=first_index)

    def shape(self, batch: pa.RecordBatch) -> Shaped:
        """Return ``batch`` with exactly the plan's schema."""
        index = self._first_index + self.rows
        numbers = pa.arange(index, index + batch.num_rows) if self._rows else batch.column(ROW)
        typed = self._rows.shape(batch).typed if self._rows else None
        data, changes = self._decode_documents(batch) if typed is None else self._render_rows(typed)
        self._notes.note(changes, numbers)
        if not self._rows:
            _put_first(changes, batch.column(CHANGES))
        columns = [make_raw_ids(self._id_head, numbers), self._make_extracted_at(batch)]
        envelope = self.plan.envelope
        if envelope.meta:
            columns.append(self._make_meta(changes, batch.num_rows))
        if envelope.generation:
            columns.append(pa.repeat(pa.scalar(self.plan.generation_id, pa.int64()), batch.num_rows))
        self.rows += batch.num_rows
        shaped = pa.RecordBatch.from_arrays([*columns, *data], schema=self.plan.schema)
        return Shaped(shaped, self._type_documents(batch, shaped) if typed is None else typed)

    def _type_documents(self, batch: pa.RecordBatch, shaped: pa.RecordBatch) -> pa.RecordBatch:
        """Return the checked part of documents, with types also where the file has text."""
        if self.plan.watched is None:
            return shaped
        schema = self.plan.watched_schema
        documents = Documents(batch.column(DATA))
        columns = documents.build_columns(self.plan.watched, list(schema))
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """See ``Shaper``; documents have no cursor column."""
        return self._rows.take_cursor() if self._rows else (None, 0)

    def read_cursor(self, batch: pa.RecordBatch) -> Cursor | None:
        """See ``AnyShaper``."""
        return self._rows.read_cursor(batch) if self._rows else None

    def take_findings(self) -> Findings:
        """Return the findings since the last call."""
        taken = self._notes.take()
        if self._rows:
            taken.undeclared += self._rows.take_findings().undeclared
        return taken

    def _render_rows(self, shaped: pa.RecordBatch) -> tuple[list[pa.Array], Changes]:
        envelope, changes = self.plan.envelope, Changes()
        if envelope.typed:
            extra = [pa.nulls(shaped.num_rows, TEXT_MAP)] if envelope.additional else []
            return [*shaped.columns, *extra], changes
        texts = []
        for name, column in zip(shaped.schema.names, shaped.columns, strict=True):
            texts.append(render_json(column, COMPACT))
            for row in find_non_finite(column):
                changes.setdefault(row, []).append({"field": name, "change": NULLED, "reason": NO_FIT})
        if envelope.data:
            texts = [render_objects(zip(shaped.schema.names, texts, strict=True), shaped.num_rows)]
        return texts, changes

    def _decode_documents(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], Changes]:
        plan = self.plan
        if plan.envelope.data:
            return [compact_texts(batch.column(DATA))], Changes()
        documents = Documents(
            batch.column(DATA),
            lifted=plan.envelope.lifted,
            keeps_local=plan.envelope.additional is None,
        )
        if plan.record is None:
            columns = documents.build_texts(plan.properties or ())
        else:
            columns = documents.build_columns(plan.record, plan.fields)
        changes = self._notes.note_documents(documents, batch.column(ROW))
        if plan.envelope.record_undeclared:
            for row, path in documents.dropped:
                changes.setdefault(row, []).append({"field": path, "change": NULLED, "reason": NO_FIT})
        return columns, changes

    def _make_extracted_at(self, batch: pa.RecordBatch) -> pa.Array:
        started = pa.scalar(self._started, pa.int64())
        times = pa.repeat(started, batch.num_rows) if self._rows else pc.fill_null(batch.column(EMITTED), started)
        return times.cast(MILLIS) if self.plan.envelope.typed else times

    def _make_meta(self, changes: Changes, rows: int) -> pa.Array:
        typed, sync_id = self.plan.envelope.typed, self.plan.sync_id

        def make_value(entries: list[dict[str, str]]) -> Any:
            whole = {"sync_id": sync_id, "changes": entries}
            return whole if typed else json.dumps(whole, separators=(",", ":"), ensure_ascii=False)

        kind = META if typed else pa.string()
        if not changes:
            return pa.repeat(pa.scalar(make_value([]), kind), rows)
        return pa.array([make_value(changes.get(row, [])) for row in range(rows)], kind)


def make_raw_ids(head: str, numbers: pa.Array) -> pa.Array:
    """Return a version 8 UUID for each row of a load: the same row of the same load always gets the same."""
    texts = pc.binary_join_element_wise(head, numbers.cast(pa.string()), "")
    digests = compute_digests(texts)

    def cut(start: int, end: int) -> pa.Array:
        return pc.utf8_slice_codeunits(digests, start, end)

    pieces = [cut(0, 8), "-", cut(8, 12), "-8", cut(13, 16), "-8", cut(17, 20), "-", cut(20, 32)]
    return pc.binary_join_element_wise(*pieces, "")


def _put_first(changes: Changes, supplied: pa.Array) -> None:
    """Put the changes that the source reports before those that were made here."""
    if supplied.null_count == len(supplied):
        return
    for row, text in enumerate(supplied.to_pylist()):
        entries = _decode_or(text or "null", list[msgspec.Raw], [])
        if entries:
            changes[row] = [_read_change(entry) for entry in entries] + changes.get(row, [])


def _read_change(entry: msgspec.Raw) -> dict[str, str]:
    """Read one change in the source's words; an entry that is not an object names no field, and counts as a reason.

    No part of a change may be null in the files, so what the source leaves out is blank.
    """
    members = _decode_or(entry, dict[str, msgspec.Raw], {"reason": entry})
    return {
        key: (_decode_or(members[key], str | None, bytes(members[key]).decode()) if key in members else None) or ""
        for key in ("field", "change", "reason")
    }


def _decode_or(text: str | msgspec.Raw, kind: Any, otherwise: Any) -> Any:
    """Decode JSON text as ``kind``; return the given default if it is something else."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return otherwise
