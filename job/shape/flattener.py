"""Batches of documents become batches of the file; pure: no Spark, no files."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from job.collection import Kind
from job.errors import SourceFailedError, ValueUnrepresentableError
from job.receipt import Cursor
from job.shape.cursor import highest, highest_in
from job.shape.findings import Findings
from job.shape.flatten import FlattenPlan, kind_of, type_at
from job.shape.selection import Field
from job.shape.structs import json_texts
from job.shape.typed import NULL, BadValueError, from_json, from_texts
from job.types import storable

Objects = Sequence[Mapping[str, msgspec.Raw] | None]

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NESTED: Final = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_SHOWN: Final = 80


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
        arrays = self._from_json(batch) if self.plan.documents is not None else self._from_structs(batch)
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
        texts = batch.column(self.plan.documents).to_pylist()
        levels: dict[tuple[str, ...], Objects] = {(): [self._document(row, text) for row, text in enumerate(texts)]}
        arrays = []
        for field in self.plan.fields:
            objects = self._level(levels, field.path[:-1])
            name = field.path[-1]
            raws = [NULL if each is None or name not in each else bytes(each[name]) for each in objects]
            try:
                array, cut = from_json(field.kind, raws)
            except BadValueError as error:
                shown = raws[error.position].decode(errors="replace")
                raise self._bad(field, error.position, error.reason, shown) from error
            self.changes += cut
            arrays.append(array)
        return arrays

    def _document(self, row: int, text: str | bytes | None) -> Mapping[str, msgspec.Raw]:
        try:
            return _OBJECT.decode(text or b"null")
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ValueUnrepresentableError(
                f"row {self.rows + row}: {_cut(repr(text))} is no JSON object ({error}).",
                remedy="Leave such rows out with an sql: read.",
            ) from error

    def _level(self, levels: dict[tuple[str, ...], Objects], path: tuple[str, ...]) -> Objects:
        """The objects at a path, one for each row."""
        if path not in levels:
            above, name = self._level(levels, path[:-1]), path[-1]
            levels[path] = [
                None if each is None or name not in each else self._nested(row, path, bytes(each[name]))
                for row, each in enumerate(above)
            ]
        return levels[path]

    def _nested(self, row: int, path: tuple[str, ...], raw: bytes) -> Mapping[str, msgspec.Raw] | None:
        try:
            found: Mapping[str, msgspec.Raw] | None = _NESTED.decode(raw)
        except msgspec.MsgspecError as error:
            raise ValueUnrepresentableError(
                f"row {self.rows + row}: {'/'.join(path)!r} holds {_cut(raw.decode())}, expected an object.",
                remedy=f"Include the field {'/'.join(path)!r}, which makes it a JSON string.",
            ) from error
        return found

    def _from_structs(self, batch: pa.RecordBatch) -> list[pa.Array]:
        return [self._from_column(batch, field) for field in self.plan.fields]

    def _from_column(self, batch: pa.RecordBatch, field: Field) -> pa.Array:
        source = type_at(self.plan.source_schema, field.path)
        if source is None or pa.types.is_null(source):
            return pa.nulls(batch.num_rows, field.type)
        array = batch.column(field.path[0])
        for name in field.path[1:]:
            array = pc.struct_field(array, [name])
        if not field.kind.scalar:
            return json_texts(array)
        try:
            if kind_of(array.type) is Kind.STRING and field.kind is not Kind.STRING:
                found, cut = from_texts(field.kind, array.cast(pa.string()))
                self.changes += cut
                return found
            return array.cast(field.type)
        except BadValueError as error:
            raise self._bad(field, error.position, error.reason, str(array[error.position])) from error
        except pa.ArrowInvalid as error:
            raise ValueUnrepresentableError(
                f"field {'/'.join(field.path)!r}, rows from {self.rows}: {error}",
                remedy="Convert the value in the source, or declare its type.",
            ) from error

    def _bad(self, field: Field, position: int, reason: str, shown: str) -> ValueUnrepresentableError:
        return ValueUnrepresentableError(
            f"field {'/'.join(field.path)!r}, row {self.rows + position}: value {_cut(shown)} cannot be written as"
            f" {field.kind.value}: {reason}.",
            remedy="Correct the document, or the collection's schema.",
        )


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
