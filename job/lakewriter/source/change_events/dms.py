"""Unfold the rows of AWS DMS's files into changes, each with the order that DMS gives it.

https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.S3.html
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.cast.typed_cast import cast_values, is_castable
from lakewriter.errors import SpecInvalidError
from lakewriter.source.change_events.members import WHOLE, Reasons, Unfolded, any_of, read_texts, read_whole
from lakewriter.spec.change_events import ChangeEvents

_OPS: Final = ("I", "U", "D")
_NO_OP: Final = "it has no operation in {op!r}, and its file is none of a full load{named}"


@dataclass(frozen=True)
class DmsPlan:
    """The plan of a table's files; picklable. ``rows`` are the columns of the source's table, ``order`` is one of them.

    ``before`` has for each column of the key the one with its value before an update; none where none is asked for.
    """

    events: ChangeEvents
    op: str | None
    order: str
    rows: tuple[pa.Field, ...]
    before: tuple[tuple[str, str], ...] = ()

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns of the rows."""
        return self.rows

    def unfold(self, batch: pa.RecordBatch, files: pa.Array) -> Unfolded:
        """Return the rows of a batch: one for each change, and one more that deletes the old key of an update."""
        count = batch.num_rows
        op = read_texts(batch.column(self.op) if self.op else None, count)
        op = pc.if_else(pc.equal(op, ""), pa.scalar(None, pa.string()), op)
        position = read_whole(batch.column(self.order), count)
        may_be_full = pc.or_(op.is_null(), pc.fill_null(pc.equal(op, "I"), False))
        has_order = pc.invert(_is_blank(batch.column(self.order), count))
        is_full = pc.and_(self._is_of_full_load(files), pc.and_(may_be_full, pc.invert(has_order)))
        reasons = Reasons(count)
        named = f", which {self.events.full_load!r} names" if self.events.full_load else ": full_load names none"
        reasons.add(pc.and_(op.is_null(), pc.invert(is_full)), _NO_OP.format(op=self.events.op, named=named))
        is_known = pc.is_in(op, value_set=pa.array(_OPS))
        said = pc.binary_join_element_wise("its operation is '", op, "', expected I, U or D", "")
        reasons.add(pc.and_(op.is_valid(), pc.invert(is_known)), said)
        reasons.add(
            pc.and_(position.is_null(), pc.invert(is_full)),
            f"its order is not known: expected the digits of AR_H_CHANGE_SEQ in {self.order!r}",
        )
        is_delete = pc.fill_null(pc.equal(op, "D"), False)
        columns = {f.name: position if f.name == self.order else batch.column(f.name) for f in self.rows}
        if not self.before:
            return self._make(pa.arange(0, count), columns, is_delete, reasons.texts)
        old = {key: self._read_before(batch, key, name, reasons) for key, name in self.before}
        changes = any_of([pc.not_equal(old[key], batch.column(key)) for key in old if old[key] is not None], count)
        moved = pc.indices_nonzero(pc.and_(pc.and_(changes, pc.equal(op, "U")), reasons.texts.is_null()))
        # The old key's row goes first, so that a load's rows are in the order of their changes.
        events = pa.concat_arrays([moved.cast(pa.int64()), pa.arange(0, count)])
        gone = {name: self._take_old(name, old, values, moved) for name, values in columns.items()}
        joined = {name: pa.concat_arrays([gone[name], columns[name]]) for name in columns}
        deleted = pa.concat_arrays([pa.repeat(True, len(moved)), is_delete])
        sorting = pc.sort_indices(events)
        taken = {name: values.take(sorting) for name, values in joined.items()}
        return self._make(events.take(sorting), taken, deleted.take(sorting), reasons.texts)

    def _make(self, events: pa.Array, columns: dict[str, pa.Array], deleted: pa.Array, reasons: pa.Array) -> Unfolded:
        values = [columns[field.name] for field in self.rows]
        return Unfolded(events, values, deleted, reasons, pa.nulls(len(reasons), pa.string()))

    def _is_of_full_load(self, files: pa.Array) -> pa.Array:
        pattern = self.events.full_load
        if pattern is None:
            return pa.repeat(False, len(files))
        named = [name for name in files.unique().to_pylist() if name and fnmatchcase(name.rpartition("/")[2], pattern)]
        return pc.is_in(files, value_set=pa.array(named, pa.string()))

    def _read_before(self, batch: pa.RecordBatch, key: str, name: str, reasons: Reasons) -> pa.Array:
        """Return the values that a column of the key had before: that of now where an update does not say."""
        values, given = batch.column(key), batch.column(name)
        is_given = pc.invert(_is_blank(given, batch.num_rows))
        cast = cast_values(given, values.type)
        if cast.misfits is not None:
            reasons.add(pc.and_(is_given, cast.misfits), f"{name!r} is no value of column {key!r}")
        return pc.if_else(pc.and_(is_given, cast.values.is_valid()), cast.values, values)

    def _take_old(self, name: str, old: dict[str, pa.Array], values: pa.Array, moved: pa.Array) -> pa.Array:
        """Return a column of the rows that delete old keys: their key and their order are known."""
        if name in old:
            return old[name].take(moved)
        return values.take(moved) if name == self.order else pa.nulls(len(moved), values.type)


def _is_blank(values: pa.Array, count: int) -> pa.Array:
    texts = read_texts(values, count)
    return pc.or_(values.is_null(), pc.fill_null(pc.equal(texts, ""), False))


def plan_dms(
    schema: pa.Schema, events: ChangeEvents, table: str, order_by: Sequence[str], primary_key: Sequence[str]
) -> DmsPlan:
    """Plan files with these columns; raise ``SPEC_INVALID`` if one is missing that the table names."""
    names = {str(name).lower(): str(name) for name in schema.names}

    def find(wanted: str, what: str, remedy: str) -> str:
        if wanted.lower() not in names:
            raise SpecInvalidError(
                f"table {table!r}: {what} {wanted!r} is no column of its source, which has {', '.join(schema.names)}.",
                remedy=remedy,
            )
        return names[wanted.lower()]

    order = find(
        order_by[0], "order_by", "Add it by a transformation rule of the task: add-column with $AR_H_CHANGE_SEQ."
    )
    op = names.get(events.op.lower())
    if op is None and events.full_load is None:
        find(events.op, "envelope.op", "Name the files of the full load, which have none: full_load: LOAD*.")
    remedy = "Add it by a transformation rule of the task, add-before-image-columns; or leave envelope.before out."
    prefix = events.before
    keys = [names.get(key.lower(), key) for key in primary_key] if prefix is not None else []
    before = tuple((key, find(f"{prefix}{key}", "envelope.before", remedy)) for key in keys)
    for key, name in before:
        if key not in schema.names or not is_castable(schema.field(name).type, schema.field(key).type):
            raise SpecInvalidError(f"table {table!r}: {name!r} is no earlier value of {key!r}.", remedy=remedy)
    hidden = {op, *(name for name in schema.names if prefix is not None and _is_before(name, prefix, names))}
    kinds = {order: WHOLE}
    rows = tuple(pa.field(f.name, kinds.get(f.name, f.type)) for f in schema if f.name not in hidden)
    return DmsPlan(events, op, order, rows, before)


def _is_before(name: str, prefix: str, names: dict[str, str]) -> bool:
    return name.startswith(prefix) and name[len(prefix) :].lower() in names
