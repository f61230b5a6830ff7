"""Compare the rows that tasks have read with the server's figures for the same rows, before a load is bound."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.strict_cast import cast_text
from lakewriter.errors import SourceDisagreesError
from lakewriter.source.databases.database_connection import Connection
from lakewriter.source.databases.database_server import Column, Server
from lakewriter.source.databases.figures import (
    ColumnFigures,
    Depth,
    Figures,
    add_figures,
    is_ordered,
    is_same_total,
    write_value,
)

_REMEDY: Final = (
    "Run it again; if it remains, report it to the project with the column's type. read.jdbc: {reconcile: off} loads "
    "the rows as they were read."
)


@dataclass
class Reconciliation:
    """The query to the server. ``kinds`` are the types of the columns that are compared by value, by index.

    With ``is_fixed`` all answers are of one snapshot. Otherwise the server is asked before the read too, and changes
    during the read are not a difference.
    """

    table: str
    server: Server
    depth: Depth
    columns: Sequence[Column]
    kinds: Mapping[int, pa.DataType]
    source: str
    prepared: str
    connection: Connection
    is_fixed: bool
    read: Figures | None = None
    before: Figures | None = None

    def begin(self) -> None:
        """Ask before the read, if rows may change during it."""
        if not self.is_fixed:
            self.before = self.ask()

    def take(self, parts: Sequence[Figures]) -> None:
        """Add the figures of the tasks."""
        self.read = add_figures(parts) if parts else Figures(0, [ColumnFigures() for _ in self.columns])

    def count_rows_alone(self) -> "Reconciliation":
        """Return the query for rows alone, for tasks that do not get the source's values."""
        before = None if self.before is None else Figures(self.before.rows)
        return replace(self, columns=(), before=before)

    def compare(self) -> None:
        """Raise ``SOURCE_DISAGREES`` for the first figure that differs from the server's."""
        if self.read is None:
            return
        server = self.ask()
        earlier = server if self.before is None else self.before
        self._require("row count", "", self.read.rows, earlier.rows, server.rows)
        for column, ours, first, last in zip(
            self.columns, self.read.columns, earlier.columns, server.columns, strict=True
        ):
            self._require("count of values", column.name, ours.values, first.values, last.values)
            # A value that does not fit is null in the tasks.
            if first == last and not ours.missing:
                self._compare_values(column.name, ours, last)

    def _require(self, what: str, column: str, ours: int, first: int, last: int) -> None:
        if not min(first, last) <= ours <= max(first, last):
            self._refuse(what, column, str(ours), str(last))

    def _compare_values(self, column: str, ours: ColumnFigures, server: ColumnFigures) -> None:
        for what, value, theirs in (("minimum", ours.lower, server.lower), ("maximum", ours.upper, server.upper)):
            if theirs is not None and value != theirs:
                self._refuse(what, column, str(value), theirs)
        if server.total is not None and not is_same_total(ours, server.total):
            self._refuse("sum", column, str(ours.total), server.total)

    def _refuse(self, what: str, column: str, ours: str, theirs: str) -> None:
        of = f" of column {column!r}" if column else ""
        raise SourceDisagreesError(
            f"table {self.table!r}: the {what}{of} is {theirs!r} in {self.server.name}, and {ours!r} in the rows "
            "that were read.",
            remedy=_REMEDY,
        )

    def ask(self) -> Figures:
        """Return the server's figures."""
        asked, targets = self._list_questions()
        ((rows, *answers),) = self.connection.read_rows(
            f"{self.prepared} SELECT {', '.join(['COUNT(*)', *asked])} FROM {self.source}"
        )
        figures = Figures(int(rows or 0), [ColumnFigures() for _ in self.columns])
        for (index, name), answer in zip(targets, answers, strict=True):
            column = figures.columns[index]
            if name == "values":
                column.values = int(answer or 0)
            elif name == "total":
                column.total = answer
            elif answer is not None:
                setattr(column, name, self._write(answer, self.kinds[index]))
        return figures

    def _list_questions(self) -> tuple[list[str], list[tuple[int, str]]]:
        asked, targets = [], []
        for index, column in enumerate(self.columns):
            name = self.server.quote(column.name)
            asked.append(f"COUNT({name})")
            targets.append((index, "values"))
            order, kind = self.server.order(column, name), self.kinds.get(index)
            if self.depth == "counts" or kind is None or order is None or not is_ordered(kind):
                continue
            asked += (self.server.show_order(column, f"{end}({order})") for end in ("MIN", "MAX"))
            targets += ((index, "lower"), (index, "upper"))
            if pt.is_integer(kind) or pt.is_decimal(kind) or pt.is_floating(kind):
                asked.append(self.server.write_sum(column, order))
                targets.append((index, "total"))
        return asked, targets

    def _write(self, text: str, kind: pa.DataType) -> str | None:
        """Return a bound as tasks write theirs; None for a bound that is not a value of the type, such as NaN."""
        value = cast_text(pa.array([text]), kind).values[0].as_py()
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            return None
        return write_value(value)
