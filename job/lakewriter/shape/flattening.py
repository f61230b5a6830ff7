"""Shape a collection's documents, JSON text or structs, as a plan has it."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.column_types import to_stored_type
from lakewriter.documents.nesting import NULL, Levels, Path, cut, write_json_pointer
from lakewriter.documents.value_changes import KEY_TWICE, NULLED, TRUNCATED
from lakewriter.documents.values import COLLECTION, Decoded, decode_nested_texts, decode_texts, decode_values
from lakewriter.documents.values_to_text import COMPACT, render_json
from lakewriter.errors import SourceFailedError, ValueUnrepresentableError
from lakewriter.receipt import Cursor, Findings
from lakewriter.shape.cursor import choose_higher, find_highest
from lakewriter.shape.flatten_plan import FlattenPlan, find_kind
from lakewriter.shape.locations import find_location, read_values
from lakewriter.shape.selection import Field
from lakewriter.shape.table import Shaped
from lakewriter.spec.collection import Kind

MOST_NAMED: Final = 1000
"""A file's receipt names at most so many properties without a column: documents may have ever new names, as maps do."""
OTHERS: Final = "(others)"
_EXACT_DIGITS: Final = 15
"""Any double holds a whole number of so many digits."""
_TEXT_KINDS: Final = (Kind.STRING, Kind.JSON, Kind.UNTYPED, Kind.TEXT)
"""Columns of these kinds take any text of a source for a string."""


class Flattener:
    """Shaper of the batches of one task in order; ``changes`` counts timestamps cut to microseconds."""

    def __init__(self, plan: FlattenPlan) -> None:
        self.plan = plan
        self.rows = 0
        self.cursor: Cursor | None = None
        self.cursor_nulls = 0
        self.changes = 0
        self.undeclared = Counter[str]()
        self.repeated = Counter[str]()
        self._texts: list[Any] = []

    def shape(self, batch: pa.RecordBatch) -> Shaped:
        """Return ``batch`` with exactly the plan's schema.

        ``VALUE_UNREPRESENTABLE`` for text that is no document, or for a value that its column cannot hold.
        """
        expected = self.plan.source_schema
        if batch.schema.names != expected.names:
            raise SourceFailedError(
                f"a batch has the columns {batch.schema.names!r}, expected {expected.names!r}.",
                remedy="The source changed while it was read; run the load again.",
            )
        before = self.changes, self.undeclared.copy(), self.repeated.copy()
        try:
            arrays = self._make_arrays(batch)
        except ValueUnrepresentableError:
            # Its rows may come again without the one that is bad.
            self.changes, self.undeclared, self.repeated = before
            raise
        self.rows += batch.num_rows
        shaped = pa.RecordBatch.from_arrays(arrays, schema=self.plan.schema)
        return Shaped(shaped, shaped)

    def _make_arrays(self, batch: pa.RecordBatch) -> list[pa.Array]:
        arrays = self._read_json(batch) if self.plan.documents is not None else self._read_columns(batch)
        for field, array in zip(self.plan.fields, arrays, strict=True):
            if field.key and array.null_count:
                raise self._make_error(
                    field, int(pc.index(array.is_null(), True).as_py()), "a key has a value always", "null"
                )
        if self.plan.cursor is not None:
            self.cursor = choose_higher(self.cursor, self._find_highest(batch))
            self.cursor_nulls += batch.column(self.plan.cursor).null_count
        return arrays

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """Return the highest cursor and the number of null ones since the last call; both start anew."""
        taken = self.cursor, self.cursor_nulls
        self.cursor, self.cursor_nulls = None, 0
        return taken

    def read_cursor(self, batch: pa.RecordBatch) -> Cursor | None:
        """See ``AnyShaper``."""
        if self.plan.cursor is None:
            return None
        try:
            return self._find_highest(batch)
        except (pa.ArrowInvalid, ValueUnrepresentableError):
            # The cursor's value may be what keeps the row out.
            return None

    def take_findings(self) -> Findings:
        """Return the values cut, those that a key has beside its last, and those of documents without a schema that
        have no column, since the last call.
        """
        changed = Counter({(path, TRUNCATED, KEY_TWICE): count for path, count in self.repeated.items()})
        changes = self.changes + self.repeated.total()
        taken = Findings(changes=changes, undeclared=self.undeclared, changed=changed)
        self.changes, self.undeclared, self.repeated = 0, Counter(), Counter()
        return taken

    def _find_highest(self, batch: pa.RecordBatch) -> Cursor | None:
        field = self.plan.source_schema.field(self.plan.cursor)
        stored = batch.column(self.plan.cursor).cast(to_stored_type(field.name, field.type))
        return find_highest(stored, field.name, self.rows)

    def _read_json(self, batch: pa.RecordBatch) -> list[pa.Array]:
        self._texts = texts = batch.column(self.plan.documents).to_pylist()
        if self.plan.inferred is None:
            levels = Levels(texts, self.rows)
            raws = [levels.read_raws(field.path) for field in self.plan.fields]
            for path, count in levels.count_others(self.plan.declared or {}).items():
                is_named = path in self.undeclared or len(self.undeclared) < MOST_NAMED
                self.undeclared[path if is_named else OTHERS] += count
            self._count_repeated(levels)
            return [self._decode(field, values) for field, values in zip(self.plan.fields, raws, strict=True)]
        levels = Levels(texts, self.rows, any_value=True)
        for field in self.plan.discarded:
            self._leave_out(field, sum(raw != NULL and raw[:1] != b"{" for raw in levels.read_raws(field.path)))
        raws = [levels.read_raws(field.path) for field in self.plan.fields]
        self._count_repeated(levels)
        return [self._decode_inferred(field, values) for field, values in zip(self.plan.fields, raws, strict=True)]

    def _count_repeated(self, levels: Levels) -> None:
        for path, count in levels.repeated.items():
            self.repeated[path if path in self.repeated or len(self.repeated) < MOST_NAMED else OTHERS] += count

    def _decode_inferred(self, field: Field, raws: list[bytes]) -> pa.Array:
        """Return the column of a path that may hold anything: objects have other columns, arrays are left out."""
        if not field.kind.scalar:
            return self._decode(field, raws)
        self._leave_out(field, sum(raw[:1] == b"[" for raw in raws))
        leaves = [NULL if raw[:1] in (b"{", b"[") else raw for raw in raws]
        if field.kind is Kind.NUMBER:
            for position, raw in enumerate(leaves):
                if len(raw) > _EXACT_DIGITS and raw.lstrip(b"-").isdigit() and float(raw) != Decimal(raw.decode()):
                    raise self._make_error(field, position, "a double does not hold all of its digits", raw.decode())
        return self._decode(field, leaves)

    def _leave_out(self, field: Field, count: int) -> None:
        if count:
            self.undeclared["/".join(field.path)] += count

    def _read_columns(self, batch: pa.RecordBatch) -> list[pa.Array]:
        opened: dict[Path, Levels] = {}
        arrays = [self._read_column(batch, field, opened) for field in self.plan.fields]
        for levels in opened.values():
            self._count_repeated(levels)
        return arrays

    def _read_column(self, batch: pa.RecordBatch, field: Field, opened: dict[Path, Levels]) -> pa.Array:
        location = find_location(self.plan.source_schema, field.path)
        if location.nothing:
            return pa.nulls(batch.num_rows, field.type)
        path = field.path[: len(field.path) - len(location.inside)]
        if location.inside:
            if path not in opened:
                opened[path] = Levels(read_values(batch, path).to_pylist(), self.rows, path)
            return self._decode(field, opened[path].read_raws(field.path))
        array = read_values(batch, path)
        if find_kind(array.type) is Kind.STRING and field.kind not in _TEXT_KINDS:
            texts = array.cast(pa.string())
            if field.kind.scalar:
                return self._require_whole(field, texts, decode_texts(field.kind, texts, COLLECTION.spelling))
            return self._require_whole(field, texts, decode_nested_texts(field.kind, texts, COLLECTION))
        if not field.kind.scalar:
            return self._render(field, array)
        try:
            return array.cast(field.type)
        except pa.ArrowInvalid as error:
            raise ValueUnrepresentableError(
                f"field {'/'.join(field.path)!r}, rows from {self.rows}: {error}",
                remedy="Convert the value in the source, or declare its type.",
                column=write_json_pointer(field.path),
            ) from error

    def _render(self, field: Field, array: pa.Array) -> pa.Array:
        rendered = render_json(array, COMPACT)
        if field.kind is not Kind.TEXT:
            return rendered
        return self._decode(field, [NULL if text is None else text.encode() for text in rendered.to_pylist()])

    def _decode(self, field: Field, raws: list[bytes]) -> pa.Array:
        return self._require_whole(field, raws, decode_values(field.kind, raws, COLLECTION))

    def _require_whole(self, field: Field, values: Sequence[bytes] | pa.Array, decoded: Decoded) -> pa.Array:
        """Return the column after a check that no value is left out."""
        for fault in decoded.faults:
            if fault.change == NULLED:
                value = values[fault.position]
                shown = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
                raise self._make_error(field, fault.position, fault.message, shown)
        self.changes += len(decoded.faults)
        return decoded.array

    def _make_error(self, field: Field, position: int, reason: str, shown: str) -> ValueUnrepresentableError:
        text = self._texts[position] if self._texts else ""
        return ValueUnrepresentableError(
            f"field {'/'.join(field.path)!r}, row {self.rows + position}: value {cut(shown)} cannot be written as"
            f" {field.kind.value}: {reason}.",
            remedy="Correct the document, or the collection's schema.",
            column=write_json_pointer(field.path),
            # Enough of the text to find the document in the source.
            document=cut(text.decode(errors="replace") if isinstance(text, bytes) else text or "", 300),
        )
