"""The plan of records in an envelope: what the file's columns are, whether documents or typed rows come in."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from job.document import JSON, KIND, ORIGINAL, RECORD, UUID, Record, arrow_field
from job.naming import avro_names, distinct
from job.shape.plan import ColumnPlan, ShapePlan, plan_shape
from job.spec import Partition, Spec, TableSpec
from job.stream import Envelope
from job.types import is_list_like, is_wrapped

CHANGE: Final = pa.struct([pa.field(name, pa.string()) for name in ("field", "change", "reason")])
META: Final = pa.struct(
    [
        pa.field("sync_id", pa.int64()),
        pa.field("changes", pa.list_(pa.field("element", CHANGE, nullable=False)), nullable=False),
    ]
)
MILLIS: Final = pa.timestamp("ms", tz="UTC")
TEXT_MAP: Final = pa.map_(pa.string(), pa.string())


@dataclass(frozen=True)
class EnvelopePlan:
    """What is done to every batch.

    ``rows`` shapes typed rows; without it documents come in. Their properties are ``record`` in typed files and
    ``properties`` in text; both are None where the whole document is one column.
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
    def fields(self) -> tuple[pa.Field, ...]:
        """The record's own columns."""
        own = [field for field in self.schema if field.name not in self.envelope.names]
        return tuple(own)


def plan_rows(source: pa.Schema, spec: Spec, table: TableSpec, envelope: Envelope) -> EnvelopePlan:
    """The plan for typed rows; in text a column keeps its name."""
    rows = plan_shape(source, spec, table, rename=avro_names if envelope.typed else distinct)
    named = [
        _named(column.name, column.type, source.field(column.position)) if envelope.typed else _json(column.name)
        for column in rows.columns
    ]
    return EnvelopePlan(source, file_schema(envelope, table, named), envelope, table.id, rows=rows)


def plan_documents(
    source: pa.Schema, table: TableSpec, envelope: Envelope, record: Record, properties: Sequence[str]
) -> EnvelopePlan:
    """The plan for documents; ``record`` types them for files that have types."""
    if not envelope.typed:
        kept = None if envelope.data else tuple(properties)
        fields = [_json(name) for name in distinct(kept or (), reserved=envelope.names)]
        return EnvelopePlan(source, file_schema(envelope, table, fields), envelope, table.id, properties=kept)
    rename = partial(avro_names, reserved=envelope.names)
    names = rename([name for name, _ in record.fields])
    typed = zip(names, record.fields, strict=True)
    fields = [arrow_field(name, own, avro_names, original) for name, (original, own) in typed]
    return EnvelopePlan(source, file_schema(envelope, table, fields), envelope, table.id, record=record)


def file_schema(envelope: Envelope, table: TableSpec, fields: Sequence[pa.Field]) -> pa.Schema:
    """The envelope's columns, then the record's own, then what the record has besides."""
    typed = envelope.typed
    raw_id = pa.field(envelope.raw_id, pa.string(), nullable=False, metadata={KIND: UUID} if typed else None)
    found = [raw_id, pa.field(envelope.extracted_at, MILLIS if typed else pa.int64(), nullable=False)]
    if envelope.meta:
        found.append(pa.field(envelope.meta, META, nullable=False) if typed else _json(envelope.meta))
    if envelope.generation:
        found.append(pa.field(envelope.generation, pa.int64(), nullable=False))
    found += [_json(envelope.data)] if envelope.data else fields
    if envelope.additional:
        found.append(pa.field(envelope.additional, TEXT_MAP))
    return pa.schema(found, metadata={RECORD: avro_names([table.source_table])[0].encode()})


def _named(name: str, t: pa.DataType, source: pa.Field) -> pa.Field:
    """A column or field with its name in the source, where the written one is another, and so those inside it."""
    metadata = {ORIGINAL: source.name.encode()} if source.name != name else None
    return pa.field(name, _renamed(t, source.type), metadata=metadata)


def _renamed(t: pa.DataType, source: pa.DataType) -> pa.DataType:
    """``t``, which is written for ``source``, with the names that its structs have there."""
    if is_wrapped(source):
        return _renamed(t, source.value_type)
    if is_list_like(source):
        return pa.list_(t.value_field.with_type(_renamed(t.value_type, source.value_type)))
    if pt.is_map(source):
        key, item = _renamed(t.key_type, source.key_type), _renamed(t.item_type, source.item_type)
        return pa.map_(t.key_field.with_type(key), t.item_field.with_type(item))
    if pt.is_struct(source):
        origins = dict(zip(avro_names([field.name for field in source]), source, strict=True))
        return pa.struct([_named(field.name, field.type, origins[field.name]) for field in t])
    return t


def _json(name: str) -> pa.Field:
    return pa.field(name, pa.string(), metadata={KIND: JSON})
