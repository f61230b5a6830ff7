"""The plan of a table's rows: from the source's schema, the specification and the table's types; pure and picklable."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from job.errors import SchemaIncompatibleError, SourceFailedError, SpecInvalidError
from job.naming import column_names
from job.shape.conversion import Conversion, Rename, conversion, normalised
from job.spec import Partition, Spec, TableSpec, Tracking, TrackingColumn
from job.types import UTC_MICROS, is_void, reconcile, storable

DELETED: Final = "__lakewriter_deleted"
"""The boolean column that a feed adds last when the table has a ``deleted`` expression; it is not written."""

TRACKING_TYPES: Final = {
    Tracking.SYNCED: UTC_MICROS,
    Tracking.DELETED: pa.bool_(),
    Tracking.INDEX: pa.int64(),
    Tracking.ID: pa.string(),
    Tracking.JOB_ID: pa.string(),
}

STEADY: Final = frozenset({Tracking.SYNCED, Tracking.JOB_ID})
"""What has one value in a whole load."""

Names = Sequence[tuple[str, str]]
"""Source and written names of columns, in order; the source may have one name several times."""


@dataclass(frozen=True)
class ColumnPlan:
    """One column: ``position`` is its place in the source; ``casts`` says that more than names changes."""

    position: int
    source: str
    name: str
    source_type: pa.DataType
    type: pa.DataType
    conversion: Conversion
    casts: bool


@dataclass(frozen=True)
class ShapePlan:
    """What is done to every batch. ``keys`` and ``cursor`` are written names; ``left_out`` the source's.

    ``keys`` are the columns the row id is made of, ``deleted`` says that the source ends with the hidden column.
    ``partition`` has written names.
    """

    source_schema: pa.Schema
    schema: pa.Schema
    columns: tuple[ColumnPlan, ...]
    tracking: tuple[TrackingColumn, ...]
    keys: tuple[str, ...]
    cursor: str | None
    left_out: tuple[str, ...]
    deleted: bool
    partition: Partition = ()
    notes: tuple[str, ...] = ()


def plan_shape(
    source: pa.Schema,
    spec: Spec,
    table: TableSpec,
    existing: Mapping[str, pa.DataType] | None = None,
    rename: Rename = column_names,
) -> ShapePlan:
    """The plan for rows of ``source``; ``existing`` has the table's types by lower-case physical name.

    ``SchemaIncompatibleError`` for types that do not fit, ``SpecInvalidError`` for keys or cursors that are not there.
    """
    deleted = table.deleted is not None
    fields = list(source)
    if deleted:
        _require_deleted(source, table)
        fields.pop()
    columns, left_out = _columns(fields, spec, existing or {}, rename)
    if not columns:
        raise SchemaIncompatibleError(
            f"the source of {table.id!r} has no column with a type.", remedy="Select or declare at least one column."
        )
    names = [(column.source, column.name) for column in columns]
    keys = table.primary_key or table.unique_key
    where = "primary_key" if table.primary_key else "unique_key"
    return ShapePlan(
        source_schema=source,
        schema=pa.schema([*(pa.field(c.name, c.type) for c in columns), *_tracking_fields(spec, existing or {})]),
        columns=columns,
        tracking=spec.tracking,
        keys=tuple(_find(key, names, f"{where} of {table.id!r}", left_out) for key in keys)
        or tuple(column.name for column in columns),
        cursor=_cursor(table, columns, names, left_out),
        left_out=left_out,
        deleted=deleted,
        partition=_partition(spec, table, names, left_out),
    )


def _require_deleted(source: pa.Schema, table: TableSpec) -> None:
    if not source.names or source.names[-1] != DELETED or source.types[-1] != pa.bool_():
        raise SourceFailedError(
            f"the rows of {table.id!r} end with {source.names[-1:]!r}, expected the boolean {DELETED!r} of its"
            f" 'deleted' expression {table.deleted!r}."
        )


def _columns(
    fields: list[pa.Field], spec: Spec, existing: Mapping[str, pa.DataType], rename: Rename
) -> tuple[tuple[ColumnPlan, ...], tuple[str, ...]]:
    # A void column takes its name too: it keeps it on the day it gets a type.
    reserved = spec.reserved_columns
    names = rename([*reserved, *(field.name for field in fields)])[len(reserved) :]
    columns, left_out = [], []
    for position, (field, name) in enumerate(zip(fields, names, strict=True)):
        if is_void(field.type):
            left_out.append(field.name)
            continue
        plain = normalised(field.type, rename)
        known = existing.get(name.lower())
        written = storable(field.name, plain) if known is None else reconcile(field.name, plain, known)
        way = conversion(field.type, written, rename)
        columns.append(ColumnPlan(position, field.name, name, field.type, written, way, casts=plain != written))
    return tuple(columns), tuple(left_out)


def _tracking_fields(spec: Spec, existing: Mapping[str, pa.DataType]) -> list[pa.Field]:
    fields = []
    for column in spec.tracking:
        t = TRACKING_TYPES[column.holds]
        known = existing.get(column.name.lower(), t)
        if known != t and not (pt.is_timestamp(known) and pt.is_timestamp(t)):
            raise SchemaIncompatibleError(
                f"tracking column {column.name!r} is {str(known)!r} in the table, expected {str(t)!r}.",
                remedy="Load into a new table or under a new prefix.",
            )
        fields.append(pa.field(column.name, t, nullable=False))
    return fields


def _cursor(table: TableSpec, columns: tuple[ColumnPlan, ...], names: Names, left_out: Sequence[str]) -> str | None:
    if table.cursor is None:
        return None
    name = _find(table.cursor, names, f"cursor of {table.id!r}", left_out)
    t = next(column.type for column in columns if column.name == name)
    ordered = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_date, pt.is_timestamp, pt.is_string)
    if not any(check(t) for check in ordered):
        raise SpecInvalidError(
            f"cursor of {table.id!r}: column {table.cursor!r} has type {str(t)!r}.",
            remedy="Use a number, a date, a timestamp or a string.",
        )
    return name


def _partition(spec: Spec, table: TableSpec, names: Names, left_out: Sequence[str]) -> Partition:
    """The fields by written names: of source columns, and of tracking columns that a load has one value for."""
    what = f"partition_by of {table.id!r}"
    steady = [(column.name, column.name) for column in spec.tracking if column.holds in STEADY]
    known = [*(pair for pair in names if (pair[0], pair[0]) not in steady), *steady]
    found = tuple(
        field.model_copy(update={"column": _find(field.column, known, what, left_out)}) for field in table.partition_by
    )
    # As Iceberg's own library has it: of one column an hour within a day tells nothing new.
    kinds = [(field.column, "time" if field.of_time else field.kind) for field in found]
    columns = {name.lower() for _, name in names}
    for place, field in enumerate(found):
        if kinds[place] in kinds[:place]:
            raise SpecInvalidError(
                f"{what}: {field} repeats {found[kinds.index(kinds[place])]}.", remedy="Keep the finer of the two."
            )
        if field.name != field.column and field.name.lower() in columns:
            raise SpecInvalidError(
                f"{what}: the field of {field} is named {field.name!r}, and so is a column.",
                remedy=f"Rename column {field.name!r} with an sql: read.",
            )
    return found


def _find(wanted: str, names: Names, what: str, left_out: Sequence[str]) -> str:
    """The written name of a source column given exactly, or else in another case when only one is meant."""
    matches = [pair for pair in names if pair[0] == wanted] or [
        pair for pair in names if pair[0].lower() == wanted.lower()
    ]
    if len(dict(matches)) == 1:
        source, name = matches[0]
        times = len(matches) + left_out.count(source)
        if times > 1:
            raise SpecInvalidError(
                f"{what}: the source has {times} columns {source!r}, expected one.",
                remedy="Give each a name of its own where they come from, for example with AS in an sql: read.",
            )
        return name
    if wanted in left_out:
        raise SpecInvalidError(
            f"{what}: column {wanted!r} has no type, so it is not written.",
            remedy=f"Declare one, for example columns: {{{wanted}: string}}.",
        )
    near = difflib.get_close_matches(wanted, [source for source, _ in names], n=1, cutoff=0.0)
    raise SpecInvalidError(f"{what}: the source has no column {wanted!r}.", remedy=f"Did you mean {near[0]!r}?")
