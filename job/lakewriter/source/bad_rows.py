"""Mark rows that are to be set aside: a feed puts the mark into a last column, which is not written."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.receipt import Absent, Floor

BAD: Final = "__lakewriter_bad"
"""The last column of a batch that may have bad rows. It holds the offset at which a row begins, if the reader gives it,
and the reason, which is null for good rows. ``row`` is the whole row as JSON if it was read from JSON. If a ``column``
is named and several values do not fit, ``row`` holds the texts of all of them by column. A good row of a change event
has in ``column`` which of its values are left out, as ``naming.UNCHANGED`` says."""
SKIPPED: Final = "__lakewriter_skipped"
"""The ``column`` of a mark whose row is not a row of the table: its ``reason`` says what it is, and it is counted."""
FLOOR: Final = "__lakewriter_floor"
"""The ``column`` of a mark that is no row either: its ``value`` is a floor of the table's rows, as JSON."""
KEEP_APART: Final = "on_bad_row: {action: quarantine, at_most: 0.01}"
"""The advice to keep bad rows apart: without ``at_most`` the load still fails above one row in a thousand."""
CHECKS: Final = "__lakewriter_checks"
"""The column before it, for a table with expectations in SQL: a struct of their results for the row."""
FIELDS: Final = ("file", "offset", "column", "value", "reason", "row")
BAD_FIELD: Final = pa.field(
    BAD, pa.struct([pa.field(name, pa.int64() if name == "offset" else pa.string()) for name in FIELDS])
)
_MARKS: Final = list(BAD_FIELD.type)
_CUT: Final = b"lakewriter.cut"
_BLANK_LINES: Final = b"lakewriter.blank-lines"
_ABSENT: Final = b"lakewriter.absent"


def mark_schema(schema: Sequence[pa.Field] | pa.Schema) -> pa.Schema:
    """Return the schema of marked rows: that of the rows, and their marks."""
    return pa.schema([*schema, BAD_FIELD])


def join_marks(values: Mapping[str, pa.Array]) -> pa.StructArray:
    """Return marks of the arrays of their parts."""
    return pa.StructArray.from_arrays([values[field.name] for field in _MARKS], fields=_MARKS)


@dataclass(frozen=True)
class Marked:
    """A batch of marked rows."""

    batch: pa.RecordBatch

    @classmethod
    def find(cls, batch: pa.RecordBatch) -> "Marked | None":
        """Return the batch if its rows are marked, else None."""
        is_marked = batch.num_columns > 0 and batch.schema.field(batch.num_columns - 1).equals(BAD_FIELD)
        return cls(batch) if is_marked else None

    @property
    def marks(self) -> pa.StructArray:
        """The marks of the rows."""
        return self.batch.column(self.batch.num_columns - 1)

    @property
    def rows(self) -> pa.RecordBatch:
        """The rows without their marks."""
        return self.batch.select(range(self.batch.num_columns - 1))

    @property
    def is_bad(self) -> pa.BooleanArray:
        """True for each bad row."""
        return self.marks.field("reason").is_valid()

    @property
    def good(self) -> pa.RecordBatch:
        """The good rows without marks."""
        return self.rows.filter(self.marks.field("reason").is_null())

    def list_bad(self) -> Iterator[Mapping[str, Any]]:
        """Yield the marks of the bad rows."""
        if (reasons := self.marks.field("reason")).null_count < len(reasons):
            yield from (mark.as_py() for mark in self.marks.filter(reasons.is_valid()))

    def replace_rows(self, columns: Sequence[pa.Array], fields: Sequence[pa.Field] | pa.Schema) -> pa.RecordBatch:
        """Return a batch with other columns for the same rows, with the marks and notes of this one."""
        schema = pa.schema([*fields, BAD_FIELD], metadata=self.batch.schema.metadata)
        return pa.RecordBatch.from_arrays([*columns, self.marks], schema=schema)


def keep_floors(batches: Iterator[pa.RecordBatch], floors: list[Floor]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and keep the highest floor of each source table in ``floors``."""
    for batch in batches:
        if BAD in batch.schema.names:
            column, value = (pc.struct_field(batch.column(BAD), name) for name in ("column", "value"))
            texts = value.filter(pc.fill_null(pc.equal(column, FLOOR), False)).to_pylist()
            floors[:] = Floor.join([*floors, *map(Floor.model_validate_json, texts)])
        yield batch


def note_cut(schema: pa.Schema, cut: Mapping[str, int]) -> pa.Schema:
    """Return the schema of a batch with a note: how many times per column were cut to microseconds."""
    counts = {name: count for name, count in cut.items() if count}
    return schema.with_metadata((schema.metadata or {}) | {_CUT: json.dumps(counts).encode()}) if counts else schema


def read_cut(schema: pa.Schema) -> dict[str, int]:
    """Return the counts of ``note_cut``, by column."""
    return dict(json.loads((schema.metadata or {}).get(_CUT, b"{}")))


def note_blank_lines(batch: pa.RecordBatch, count: int) -> pa.RecordBatch:
    """Return a batch with a note: how many blank lines of its source were skipped."""
    return batch.replace_schema_metadata((batch.schema.metadata or {}) | {_BLANK_LINES: str(count)})


def read_blank_lines(schema: pa.Schema) -> int:
    """Return the count of ``note_blank_lines``."""
    return int((schema.metadata or {}).get(_BLANK_LINES, b"0"))


def note_absent(batch: pa.RecordBatch, columns: Iterable[str]) -> pa.RecordBatch:
    """Return a batch of documents with a note: how many good rows it has, and declared columns that none of them has.

    Its last column has the marks of bad rows.
    """
    documents = Marked(batch).marks.field("reason").null_count
    absent = Absent(documents=documents, columns=tuple(columns)).model_dump_json()
    return batch.replace_schema_metadata((batch.schema.metadata or {}) | {_ABSENT: absent})


def read_absent(schema: pa.Schema) -> Absent | None:
    """Return the note of ``note_absent``."""
    note = (schema.metadata or {}).get(_ABSENT)
    return None if note is None else Absent.model_validate_json(note)
