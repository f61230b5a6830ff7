"""Select rows of files above a cursor and mark deleted ones, by conditions that tasks evaluate in Arrow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.naming import DELETED
from lakewriter.source.arrow_conditions import Expression, translate
from lakewriter.source.bad_rows import Marked
from lakewriter.source.files.file_reader import Piece
from lakewriter.source.files.file_source import FilesSource
from lakewriter.source.request import RowsRequest
from lakewriter.source.session import isolate


@dataclass(frozen=True)
class JudgedRows:
    """A source with the bad rows and the rows for which ``condition`` is true; picklable.

    If ``cursor`` is given, the condition also applies to bad rows whose column at that index has a value: earlier loads
    have set aside the others. Their last column is ``DELETED``, if there is an expression for it.
    """

    source: FilesSource
    condition: Expression | None = None
    cursor: int | None = None
    deleted: Expression | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches, without their marks."""
        added = [] if self.deleted is None else [pa.field(DELETED, pa.bool_())]
        return pa.schema([*self.source.schema, *added])

    @property
    def aside(self) -> bool:
        """True if the batches have marks behind their columns."""
        return self.source.aside

    @property
    def has_all_rows(self) -> bool:
        """True if no row of a file is left out."""
        return self.condition is None

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a piece."""
        for batch in self.source.read(piece):
            chosen = batch if self.condition is None else batch.filter(self._choose(batch, self.condition))
            yield self._add_deleted(chosen) if self.deleted is not None else chosen

    def read_all(self, pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of several pieces."""
        for piece in pieces:
            yield from self.read(piece)

    def count_all(self, pieces: Sequence[Piece]) -> int:
        """Return how many rows several pieces have."""
        if self.condition is None:
            return self.source.count_all(pieces)
        return sum(batch.num_rows for batch in self.read_all(pieces))

    def _choose(self, batch: pa.RecordBatch, condition: Expression) -> pa.Array:
        is_above = condition.find_true(batch)
        if not self.aside:
            return is_above
        is_bad = Marked(batch).is_bad
        if self.cursor is not None:
            is_bad = pc.and_(is_bad, batch.column(self.cursor).is_null())
        return pc.or_(is_above, is_bad)

    def _add_deleted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        assert self.deleted is not None
        is_deleted = self.deleted.find_true(batch)
        return batch.add_column(len(self.source.schema), pa.field(DELETED, pa.bool_()), is_deleted)


AnySource = FilesSource | JudgedRows


def judge_rows(request: RowsRequest, source: FilesSource) -> AnySource | None:
    """Return the source with the request's conditions on its rows; None if only Spark can evaluate them."""
    table, condition = request.table, request.condition
    if condition is None and table.deleted is None:
        return source
    session = isolate(request.spark())
    if len({name.lower() for name in source.schema.names}) < len(source.schema):
        session.conf.set("spark.sql.caseSensitive", "true")
    above = None if condition is None else translate(session, condition, source.schema)
    deleted = None if table.deleted is None else translate(session, table.deleted, source.schema)
    if (condition is not None and above is None) or (table.deleted is not None and deleted is None):
        return None
    cursor = None
    if condition is not None and table.quarantine is not None and table.cursor is not None:
        names = source.schema.names
        cursor = next(index for index, name in enumerate(names) if name.lower() == table.cursor.lower())
    return JudgedRows(source, above, cursor, deleted)
