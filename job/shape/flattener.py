"""Batches of documents become batches of the file; pure: no Spark, no files."""

from collections.abc import Callable
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from job.collection import Kind
from job.errors import SourceFailedError, ValueUnrepresentableError
from job.receipt import Cursor
from job.shape.cursor import highest, highest_in
from job.shape.findings import Findings
from job.shape.flatten import FlattenPlan, kind_of
from job.shape.levels import Levels, Path, cut
from job.shape.reach import reached, values_at
from job.shape.selection import Field
from job.shape.structs import json_texts
from job.shape.typed import BadValueError, from_json, from_nested_texts, from_texts
from job.types import storable

V = TypeVar("V", list[bytes], pa.Array)

_KEPT: Final = (Kind.STRING, Kind.JSON, Kind.UNTYPED)
"""Kinds that take a source's text for a string, whatever is in it."""


class Flattener:
    """Shapes the batches of one task in order; ``changes`` counts timestamps cut to microseconds."""

    def __init__(self, plan: FlattenPlan) -> None:
        self.plan = plan
        self.rows = 0
        self.cursor: Cursor | None = None
        self.cursor_nulls = 0
        self.changes = 0

    def shape(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """``batch`` with exactly the plan's schema.

        ``VALUE_UNREPRESENTABLE`` for a document that is none, or that holds a value its column cannot.
        """
        expected = self.plan.source_schema
        if batch.schema.names != expected.names:
            raise SourceFailedError(
                f"a batch has the columns {batch.schema.names!r}, expected {expected.names!r}.",
                remedy="The source changed while it was read; run the load again.",
            )
        arrays = self._from_json(batch) if self.plan.documents is not None else self._from_columns(batch)
        for field, array in zip(self.plan.fields, arrays, strict=True):
            if field.key and array.null_count:
                raise self._bad(field, int(pc.index(array.is_null(), True).as_py()), "a key has a value always", "null")
        if self.plan.cursor is not None:
            self._follow(batch.column(self.plan.cursor), expected.field(self.plan.cursor))
        self.rows += batch.num_rows
        return pa.RecordBatch.from_arrays(arrays, schema=self.plan.schema)

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """The highest cursor and the number of null ones since the last call; both start anew."""
        taken = self.cursor, self.cursor_nulls
        self.cursor, self.cursor_nulls = None, 0
        return taken

    def take_findings(self) -> Findings:
        """Values cut since the last call."""
        taken, self.changes = Findings(changes=self.changes), 0
        return taken

    def _follow(self, values: pa.Array, field: pa.Field) -> None:
        stored = values.cast(storable(field.name, field.type))
        self.cursor = highest(self.cursor, highest_in(stored, field.name, self.rows))
        self.cursor_nulls += values.null_count

    def _from_json(self, batch: pa.RecordBatch) -> list[pa.Array]:
        levels = Levels(batch.column(self.plan.documents).to_pylist(), self.rows)
        return [self._converted(field, levels.raws(field.path), from_json) for field in self.plan.fields]

    def _from_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        opened: dict[Path, Levels] = {}
        return [self._from_column(batch, field, opened) for field in self.plan.fields]

    def _from_column(self, batch: pa.RecordBatch, field: Field, opened: dict[Path, Levels]) -> pa.Array:
        found = reached(self.plan.source_schema, field.path)
        if found.nothing:
            return pa.nulls(batch.num_rows, field.type)
        path = field.path[: len(field.path) - len(found.inside)]
        if found.inside:
            if path not in opened:
                opened[path] = Levels(values_at(batch, path).to_pylist(), self.rows, path)
            return self._converted(field, opened[path].raws(field.path), from_json)
        array = values_at(batch, path)
        if kind_of(array.type) is Kind.STRING and field.kind not in _KEPT:
            nested = not field.kind.scalar
            return self._converted(field, array.cast(pa.string()), from_nested_texts if nested else from_texts)
        if not field.kind.scalar:
            return json_texts(array)
        try:
            return array.cast(field.type)
        except pa.ArrowInvalid as error:
            raise ValueUnrepresentableError(
                f"field {'/'.join(field.path)!r}, rows from {self.rows}: {error}",
                remedy="Convert the value in the source, or declare its type.",
            ) from error

    def _converted(self, field: Field, values: V, convert: Callable[[Kind, V], tuple[pa.Array, int]]) -> pa.Array:
        try:
            found, shortened = convert(field.kind, values)
        except BadValueError as error:
            value = values[error.position]
            shown = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
            raise self._bad(field, error.position, error.reason, shown) from error
        self.changes += shortened
        return found

    def _bad(self, field: Field, position: int, reason: str, shown: str) -> ValueUnrepresentableError:
        return ValueUnrepresentableError(
            f"field {'/'.join(field.path)!r}, row {self.rows + position}: value {cut(shown)} cannot be written as"
            f" {field.kind.value}: {reason}.",
            remedy="Correct the document, or the collection's schema.",
        )
