"""A table's rows: the plan from the source's schema, the specification and the table's types; batches shaped by it."""

import difflib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.column_types import Rename, enter, is_void, rebuild_type, reconcile, to_stored_type
from lakewriter.errors import SchemaIncompatibleError, SourceFailedError, SpecInvalidError, ValueUnrepresentableError
from lakewriter.naming import DELETED, ORDINAL, ORDINAL_ID, UNCHANGED, UNCHANGED_ID, name_columns
from lakewriter.receipt import Cursor, Findings
from lakewriter.shape.conversion import Conversion, convert, normalise_names, plan_conversion
from lakewriter.shape.cursor import choose_higher, find_highest
from lakewriter.shape.text_shapes import find_shapes, join_shapes
from lakewriter.shape.tracking import TRACKING_TYPES, TrackingValues
from lakewriter.spec.specification import Spec, Tracking, TrackingColumn
from lakewriter.spec.table_spec import Mode, Partition, TableSpec

ORDINAL_FIELD: Final = pa.field(ORDINAL, pa.int64(), False, {"PARQUET:field_id": str(ORDINAL_ID)})
UNCHANGED_FIELD: Final = pa.field(UNCHANGED, pa.string(), True, {"PARQUET:field_id": str(UNCHANGED_ID)})

STEADY: Final = frozenset({Tracking.SYNCED, Tracking.JOB_ID})
"""These columns have one value in a whole load."""

Names = Sequence[tuple[str, str]]
"""Source and written names of columns, in order; the source may have one name several times."""


@dataclass(frozen=True)
class ColumnPlan:
    """One column: ``position`` is that in the source; ``casts`` says that more than names changes."""

    position: int
    source: str
    name: str
    source_type: pa.DataType
    type: pa.DataType
    conversion: Conversion
    casts: bool


@dataclass(frozen=True)
class ShapePlan:
    """The plan by which every batch is shaped. ``keys`` and ``cursor`` are written names; ``left_out`` the source's.

    ``keys`` are the columns the row id is made of, ``deleted`` says that the source ends with the hidden column.
    ``partition`` has written names; so have ``merged_by``, key and order of a table that is merged, and ``orders``, the
    columns that say which of two rows of a key is newer, of one that is appended to as well. The values of
    ``discarded`` columns are counted, not written. With ``has_ordinals`` a file has the ordinals of its rows behind its
    columns, which ``schema`` does not have; with ``lacks_unchanged`` which of their values events leave out.
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
    sort_by: tuple[str, ...] = ()
    merged_by: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    orders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    discarded: tuple[ColumnPlan, ...] = ()
    has_ordinals: bool = False
    lacks_unchanged: bool = False
    ordinal: ClassVar[str | None] = None
    """The column of a batch with the ordinals of its rows, if a column has them."""

    def name_unchanged(self, texts: pa.Array) -> pa.Array:
        """Return ``naming.UNCHANGED`` of rows with the columns' written names, by that with the source's names."""
        names = {column.source: column.name for column in self.columns}
        encoded = texts.dictionary_encode()
        values = []
        for text in encoded.dictionary.to_pylist():
            is_moved, *columns = json.loads(text)
            written = [names[column] for column in columns if column in names]
            values.append(json.dumps([is_moved, *written]) if written else None)
        return pa.array(values, pa.string()).take(encoded.indices)

    @property
    def loses_order(self) -> bool:
        """True if the rows of a file are not in the order in which they were read."""
        return bool(self.partition or self.sort_by)


def plan_shape(
    source: pa.Schema,
    spec: Spec,
    table: TableSpec,
    existing: Mapping[str, pa.DataType] | None = None,
    rename: Rename = name_columns,
    discard: Collection[str] = (),
) -> ShapePlan:
    """Plan rows of ``source``; ``existing`` has the table's types by lower-case physical name, ``discard`` the written
    names of columns that are left out and counted.

    ``SchemaIncompatibleError`` for types that do not fit, ``SpecInvalidError`` for keys or cursors that are not there.
    """
    deleted = table.marks_deleted
    fields = list(source)
    if deleted:
        _require_deleted(source, table)
        fields.pop()
    every, left_out = _plan_columns(fields, spec, existing or {}, rename)
    columns = tuple(column for column in every if column.name not in discard)
    discarded = tuple(column for column in every if column.name in discard)
    if not columns:
        raise SchemaIncompatibleError(
            f"the source of {table.id!r} has no column with a type.", remedy="Select or declare at least one column."
        )
    names = [(column.source, column.name) for column in columns]
    untyped = [path for field in fields for path in list_untyped(field.name, field.type)]
    compared = _plan_compared(table, columns, names, left_out)
    keys = table.primary_key or table.unique_key
    where = "primary_key" if table.primary_key else "unique_key"
    return ShapePlan(
        source_schema=source,
        schema=pa.schema([*(pa.field(c.name, c.type) for c in columns), *_make_tracking_fields(spec, existing or {})]),
        columns=columns,
        tracking=spec.tracking,
        keys=_find_each(keys, names, f"{where} of {table.id!r}", left_out) or tuple(column.name for column in columns),
        cursor=_find_cursor(table, columns, names, left_out),
        left_out=left_out,
        deleted=deleted,
        partition=_plan_partition(spec, table, names, left_out),
        sort_by=_plan_order(table, columns, names, left_out),
        merged_by=compared if table.mode is Mode.MERGE else None,
        orders=compared[1],
        notes=(
            *(f"column {column.source!r} is not in the table: left out and counted" for column in discarded),
            *(f"column {name!r} has only null, [] and {{}}, and no type yet: left out and counted" for name in untyped),
        ),
        discarded=discarded,
        lacks_unchanged=table.fills_unchanged,
    )


def list_untyped(path: str, t: pa.DataType) -> Iterator[str]:
    """Yield the parts of a column whose values are all empty lists and objects: no file has a type for them."""
    if is_void(t):
        if not pt.is_null(t):
            yield path
    elif pt.is_struct(t):
        for field in t:
            yield from list_untyped(f"{path}.{field.name}", field.type)
    elif pt.is_list(t):
        yield from list_untyped(f"{path}.element", t.value_type)


def count_untyped(path: str, values: pa.Array) -> Iterator[tuple[str, int]]:
    """Yield the parts of ``list_untyped`` with the number of their values."""
    if is_void(values.type):
        if not pt.is_null(values.type):
            yield path, len(values) - values.null_count
    elif pt.is_struct(values.type):
        for index, field in enumerate(values.type):
            yield from count_untyped(f"{path}.{field.name}", pc.struct_field(values, [index]))
    elif pt.is_list(values.type):
        yield from count_untyped(f"{path}.element", values.flatten())


def _require_deleted(source: pa.Schema, table: TableSpec) -> None:
    if not source.names or source.names[-1] != DELETED or source.types[-1] != pa.bool_():
        raise SourceFailedError(
            f"the rows of {table.id!r} end with {source.names[-1:]!r}, expected the boolean {DELETED!r} of its"
            f" 'deleted' expression {table.deleted!r}."
        )


def _plan_columns(
    fields: list[pa.Field], spec: Spec, existing: Mapping[str, pa.DataType], rename: Rename
) -> tuple[tuple[ColumnPlan, ...], tuple[str, ...]]:
    # A void column takes a name too, and keeps it once it gets a type.
    reserved = spec.reserved_columns
    names = rename([*reserved, *(field.name for field in fields)])[len(reserved) :]
    columns, left_out = [], []
    for position, (field, name) in enumerate(zip(fields, names, strict=True)):
        if is_void(field.type):
            left_out.append(field.name)
            continue
        inner = enter(rename, field.name)
        plain = normalise_names(field.type, inner)
        stored = existing.get(name.lower())
        written = to_stored_type(field.name, plain) if stored is None else reconcile(field.name, plain, stored)
        way = plan_conversion(field.type, written, inner)
        columns.append(ColumnPlan(position, field.name, name, field.type, written, way, casts=plain != written))
    return tuple(columns), tuple(left_out)


def _make_tracking_fields(spec: Spec, existing: Mapping[str, pa.DataType]) -> list[pa.Field]:
    fields = []
    for column in spec.tracking:
        t = TRACKING_TYPES[column.holds]
        stored = existing.get(column.name.lower(), t)
        if stored != t and not (pt.is_timestamp(stored) and pt.is_timestamp(t)):
            raise SchemaIncompatibleError(
                f"tracking column {column.name!r} is {str(stored)!r} in the table, expected {str(t)!r}.",
                remedy="Load into a new table or under a new prefix.",
            )
        fields.append(pa.field(column.name, t, nullable=False))
    return fields


def _find_cursor(
    table: TableSpec, columns: tuple[ColumnPlan, ...], names: Names, left_out: Sequence[str]
) -> str | None:
    if table.cursor is None:
        return None
    name = find_column(table.cursor, names, f"cursor of {table.id!r}", left_out)
    t = next(column.type for column in columns if column.name == name)
    if not any(is_ordered(t) for is_ordered in _ORDERED):
        raise SpecInvalidError(
            f"cursor of {table.id!r}: column {table.cursor!r} has type {str(t)!r}.",
            remedy="Use a number, a date, a timestamp or a string.",
        )
    return name


_ORDERED: Final = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_date, pt.is_timestamp, pt.is_string)
_SORTED: Final = (*_ORDERED, pt.is_boolean)


def _plan_order(
    table: TableSpec, columns: tuple[ColumnPlan, ...], names: Names, left_out: Sequence[str]
) -> tuple[str, ...]:
    """Return the written names of the columns by which rows are sorted."""
    what = f"sort_by of {table.id!r}"
    sorted_by = _find_each(table.sort_by, names, what, left_out)
    types = {column.name: column.type for column in columns}
    for wanted, name in zip(table.sort_by, sorted_by, strict=True):
        if not any(is_sorted(types[name]) for is_sorted in _SORTED):
            raise SpecInvalidError(
                f"{what}: column {wanted!r} has type {str(types[name])!r}, by which no rows are sorted.",
                remedy="Use a column of numbers, text, booleans, dates or timestamps.",
            )
    return sorted_by


_COMPARED: Final = (
    pt.is_integer, pt.is_decimal, pt.is_date, pt.is_timestamp, pt.is_string, pt.is_boolean, pt.is_binary,
)  # fmt: skip
"""Types of which equal values are one value: a float may be NaN, or a zero with a sign."""


def _plan_compared(
    table: TableSpec, columns: tuple[ColumnPlan, ...], names: Names, left_out: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the written names of the key's and the order's columns of a table whose rows are compared."""
    if table.mode is not Mode.MERGE and not table.order_by:
        return (), ()
    types, written = {column.name: column.type for column in columns}, list[tuple[str, ...]]()
    for key, wanted in (("primary_key", table.merge_key), ("order_by", table.order_by)):
        what = f"{key} of {table.id!r}"
        written.append(_find_each(wanted, names, what, left_out))
        for column, name in zip(wanted, written[-1], strict=True):
            if not any(is_compared(types[name]) for is_compared in _COMPARED):
                raise SpecInvalidError(
                    f"{what}: column {column!r} has type {str(types[name])!r}, by which no rows are compared.",
                    remedy="Use columns of whole numbers, decimals, text, booleans, dates or timestamps.",
                )
    return written[0], written[1]


def _plan_partition(spec: Spec, table: TableSpec, names: Names, left_out: Sequence[str]) -> Partition:
    """Return the fields by written names: of source columns, and of tracking columns that a load has one value for."""
    what = f"partition_by of {table.id!r}"
    steady = [(column.name, column.name) for column in spec.tracking if column.holds in STEADY]
    available = [*(pair for pair in names if (pair[0], pair[0]) not in steady), *steady]
    fields = tuple(
        field.model_copy(update={"column": find_column(field.column, available, what, left_out)})
        for field in table.partition_by
    )
    # The rule of Iceberg's own library: two units of time of one column are redundant.
    kinds = [(field.column, "time" if field.of_time else field.kind) for field in fields]
    columns = {name.lower() for _, name in names}
    for position, field in enumerate(fields):
        if kinds[position] in kinds[:position]:
            raise SpecInvalidError(
                f"{what}: {field} repeats {fields[kinds.index(kinds[position])]}.", remedy="Keep the finer of the two."
            )
        if field.name != field.column and field.name.lower() in columns:
            raise SpecInvalidError(
                f"{what}: the field of {field} is named {field.name!r}, and so is a column.",
                remedy=f"Rename column {field.name!r} with an sql: read.",
            )
    return fields


def _find_each(wanted: Sequence[str], names: Names, what: str, left_out: Sequence[str]) -> tuple[str, ...]:
    """Return the written names of several source columns, each another one."""
    written = [find_column(column, names, what, left_out) for column in wanted]
    for position, name in enumerate(written):
        if name in written[:position]:
            raise SpecInvalidError(
                f"{what}: {wanted[written.index(name)]!r} and {wanted[position]!r} are one column of the source.",
                remedy="Name it once.",
            )
    return tuple(written)


def find_column(wanted: str, names: Names, what: str, left_out: Sequence[str]) -> str:
    """Return the written name of a source column given exactly, or else in another case when only one is meant."""
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


_SHOWN = 80
"""A message shows so many characters of a value."""


class Shaped(NamedTuple):
    """A batch with exactly its plan's schema, and the same rows with the types that they have before a text format
    makes text of them."""

    rows: pa.RecordBatch
    typed: pa.RecordBatch


class Shaper:
    """Shaper of the batches of one task in order; ``first_index`` is the tracking index of its first row."""

    def __init__(self, plan: ShapePlan, *, job_id: str, start: datetime, first_index: int) -> None:
        self.plan = plan
        self.rows = 0
        self.cursor: Cursor | None = None
        self.cursor_nulls = 0
        self._first_index = first_index
        self._tracking = TrackingValues(job_id=job_id, start=start)
        self._checked: pa.Schema | None = None
        self._findings = Findings()
        self._orders = [(c.source, c.name) for c in plan.columns if c.name in plan.orders and pt.is_string(c.type)]
        fields = list(plan.source_schema)
        self._untyped = [(n, f.name) for n, f in enumerate(fields) if any(list_untyped(f.name, f.type))]

    def shape(self, batch: pa.RecordBatch) -> Shaped:
        """Return ``batch`` with exactly the plan's schema.

        ``SOURCE_FAILED`` when it is not of the plan's source schema, ``VALUE_UNREPRESENTABLE`` for a value that
        does not fit its column.
        """
        self._check(batch.schema)
        index = self._first_index + self.rows
        data = {
            column.name: _convert_column(column, batch.column(column.position), index) for column in self.plan.columns
        }
        keys = [data[name] for name in self.plan.keys]
        deleted = batch.column(batch.num_columns - 1) if self.plan.deleted else None
        tracking = [
            self._tracking.make_column(column.holds, index, batch.num_rows, keys, deleted)
            for column in self.plan.tracking
        ]
        shaped = pa.RecordBatch.from_arrays([*data.values(), *tracking], schema=self.plan.schema)
        if self.plan.cursor is not None:
            self._follow(self.plan.cursor, data[self.plan.cursor], index)
        for source, name in self._orders:
            shapes = find_shapes(data[name])
            self._findings.orders[source] = join_shapes(self._findings.orders.get(source), shapes) or shapes
        for column in self.plan.discarded:
            values = batch.column(column.position)
            self._findings.undeclared[column.source] += len(values) - values.null_count
        for position, name in self._untyped:
            self._findings.undeclared.update(dict(count_untyped(name, batch.column(position))))
        self.rows += batch.num_rows
        return Shaped(shaped, shaped)

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """Return the highest cursor and the number of null ones since the last call; both start anew."""
        taken = self.cursor, self.cursor_nulls
        self.cursor, self.cursor_nulls = None, 0
        return taken

    def read_cursor(self, batch: pa.RecordBatch) -> Cursor | None:
        """See ``AnyShaper``."""
        column = next((planned for planned in self.plan.columns if planned.name == self.plan.cursor), None)
        if column is None:
            return None
        try:
            return find_highest(convert(batch.column(column.position), column.conversion), column.name, 0)
        except (pa.ArrowInvalid, ValueUnrepresentableError):
            # The cursor's value may be what keeps the row out.
            return None

    def take_findings(self) -> Findings:
        """Return the number of values of discarded columns, and the shapes of texts by which rows are merged, since the
        last call; a misfit fails the load."""
        taken, self._findings = self._findings, Findings()
        return taken

    def _follow(self, column: str, values: pa.Array, index: int) -> None:
        self.cursor = choose_higher(self.cursor, find_highest(values, column, index))
        self.cursor_nulls += values.null_count

    def _check(self, schema: pa.Schema) -> None:
        if self._checked is not None and schema.equals(self._checked):
            return
        expected = self.plan.source_schema
        if schema.names != expected.names:
            raise SourceFailedError(
                f"a batch has the columns {schema.names!r}, expected {expected.names!r}.",
                remedy="The source changed while it was read; run the load again.",
            )
        for field, planned in zip(schema, expected, strict=True):
            if _strip_encodings(field.type) != _strip_encodings(planned.type):
                raise SourceFailedError(
                    f"column {field.name!r} of a batch is {str(field.type)!r}, expected {str(planned.type)!r}.",
                    remedy="The source changed while it was read; run the load again, or declare the type under"
                    " columns:.",
                )
        self._checked = schema


def _strip_encodings(t: pa.DataType) -> pa.DataType:
    """Return a type without the details that vary between batches: nullability and metadata inside, dictionaries."""
    return rebuild_type(t, list)


def _convert_column(column: ColumnPlan, array: pa.Array, index: int) -> pa.Array:
    try:
        return convert(array, column.conversion)
    except pa.ArrowInvalid as exc:
        position = _find_first_bad(column, array)
        shown = _describe_value(array.slice(position, 1))
        raise ValueUnrepresentableError(
            f"column {column.source!r}, row {index + position}: value {shown!r} of type {str(array.type)!r} cannot be"
            f" written as {str(column.type)!r} without loss.",
            remedy=f"Convert it in the source, or declare its type, for example columns: {{{column.source}: string}}.",
            column=column.source,
        ) from exc


def _describe_value(value: pa.Array) -> str:
    # Arrow's own text: Python's datetime has neither nanoseconds nor the years that overflow.
    text = " ".join(value.to_string().split()).removeprefix("[ ").removesuffix(" ]")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _find_first_bad(column: ColumnPlan, array: pa.Array) -> int:
    """Return the index of the first value that fails; halve the range that must contain it."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(array.slice(low, middle - low), column.conversion)
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low
