"""Sources with rows that a table keeps out, and the quarantine as a source: what stands in for Spark's reading of both.

A row that does not fit has a level: tables are corrected step by step, and one that is at this level takes the row.
"""

import io
import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from lakewriter.source.bad_rows import BAD_FIELD
from lakewriter.source.request import RowsRequest
from lakewriter.spec.expectations import Range
from lakewriter.spec.table_spec import TableSpec
from tests.simulation.books import GRADE
from tests.simulation.source import SCHEMA, Feed, Reading, Session

KINDS: Final = ("check", "misfit", "line")
NEVER: Final = 3
"""The level of rows that fit no correction."""
KEPT: Final = pa.schema([*SCHEMA, (GRADE, pa.int64())])
_MISFIT: Final = "it does not convert to bigint"
_NO_ROW: Final = "it is no row"
_PLACE: Final = 100
"""Bytes from one line of a source to the next."""


@dataclass(frozen=True)
class Defect:
    """Why a row is kept out of tables below the level: a check, a value that does not convert, or a line that is
    none."""

    kind: str
    level: int


@dataclass
class Marks:
    """What is wrong with the rows of all sources, by their number; ``lines`` are the readings that stand for lines."""

    rng: random.Random
    rows: dict[str, list[Defect | None]] = field(default_factory=dict)
    lines: dict[tuple[str, int], int] = field(default_factory=dict)

    def open(self, session: Session, table: TableSpec, first: int, count: int, *, single: bool) -> "MarkedFeed":
        """The rows from ``first`` on, of ``count`` that are there, and every line of them that cannot be read yet: one
        without a cursor is beyond none."""
        place, level, sources = f"{session.pipeline}/{table.id}", level_of(table), session.sources
        found = {number: self._of(place, number) for number in range(count)}
        lines = {n: own for n, own in found.items() if own and own.kind == "line" and own.level > level}
        ids = tuple(number for number in range(first, count) if number not in lines)
        reading = sources.read(session.pipeline, table.id, session.job, session.process, ids, tuple(lines))
        rows = [_make_row(number, reading.nonce, found[number], level) for number in ids]
        rows += [self._make_line(session, table.id, number, own) for number, own in lines.items()]
        return MarkedFeed(reading, 1 if single else sources.rng.choice([1, 1, 2]), session, rows)

    def _of(self, place: str, number: int) -> Defect | None:
        """What is wrong with a row, if anything is."""
        known = self.rows.setdefault(place, [])
        while len(known) <= number:
            (kind,) = self.rng.choices([None, *KINDS], [5, 2, 2, 1])
            known.append(Defect(kind, self.rng.randint(1, NEVER)) if kind is not None else None)
        return known[number]

    def _make_line(self, session: Session, table: str, number: int, defect: Defect) -> dict[str, Any]:
        place = (f"{session.pipeline}/{table}", number)
        if place not in self.lines:
            self.lines[place] = session.sources.read(session.pipeline, table, "", "its file", (number,)).nonce
        text = json.dumps({"id": number, "nonce": self.lines[place], GRADE: f"level {defect.level}"})
        mark = {"file": f"{table}.csv", "offset": number * _PLACE, "value": text, "reason": _NO_ROW}
        return {BAD_FIELD.name: mark}


def level_of(table: TableSpec) -> int:
    """How far the table is corrected: the bound of its check says it."""
    (bound,) = (each.at_most for each in table.expect if isinstance(each, Range))
    return int(str(bound))


class MarkedFeed(Feed):
    """Rows of which some are marked as bad."""

    def __init__(self, reading: Reading, partitions: int, session: Session, rows: Sequence[dict[str, Any]]) -> None:
        super().__init__(reading, partitions, session)
        self.schema = KEPT
        self.rows = rows
        self.counts = tuple(len(rows[number::partitions]) for number in range(partitions))

    def batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """The same each time they are asked for."""
        if rows := self.rows[partition :: self.partitions]:
            schema = pa.schema([*KEPT, BAD_FIELD])
            # A mark is there for every row, good ones included.
            whole = [dict.fromkeys(schema.names) | {BAD_FIELD.name: {}} | row for row in rows]
            yield pa.RecordBatch.from_pylist(whole, schema=schema)


def _make_row(number: int, nonce: int, defect: Defect | None, level: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": number, "nonce": nonce, "name": f"row {number}", GRADE: 0}
    if defect is not None and defect.kind == "check":
        row[GRADE] = defect.level
    if defect is not None and defect.kind == "misfit" and defect.level > level:
        text = f"level {defect.level}"
        row |= {GRADE: None, BAD_FIELD.name: {"column": GRADE, "value": text, "reason": _MISFIT}}
    return row


@dataclass(frozen=True)
class Kept:
    """The rows of a quarantine's files, not read yet."""

    session: Session
    table: TableSpec
    read: Callable[[str], bytes]
    keys: tuple[str, ...]

    def list_rows(self) -> list[dict[str, Any]]:
        """By the table's present level, each line once."""
        files = [pq.read_table(io.BytesIO(self.read(key))).to_pylist() for key in self.keys]
        kept = [row for rows in files for row in rows]
        lines = {(row["_lake_source"], row["_lake_offset"], row["_lake_line"]): row for row in kept}
        whole = [row for row in kept if row["_lake_line"] is None]
        own = [row for (_, _, line), row in lines.items() if line is not None]
        return [_parse(row, level_of(self.table)) for row in (*whole, *own)]


def _parse(kept: dict[str, Any], level: int) -> dict[str, Any]:
    """A row as it was kept, in the present columns."""
    text = kept["_lake_row"] if kept["_lake_line"] is None else kept["_lake_line"]
    row: dict[str, Any] = json.loads(text)
    place = {"file": kept["_lake_source"], "offset": kept["_lake_offset"]}
    mark: dict[str, Any] = {BAD_FIELD.name: place}
    if not isinstance(row[GRADE], str):
        return row | mark
    if int(row[GRADE].split()[1]) <= level:
        return row | mark | {GRADE: 0}
    if kept["_lake_line"] is not None:
        return {BAD_FIELD.name: place | {"value": text, "reason": _NO_ROW}}
    return row | {GRADE: None, BAD_FIELD.name: place | {"reason": _MISFIT, "row": text}}


def read_quarantined(session: Session, table: TableSpec, read: Callable[[str], bytes], keys: Sequence[str]) -> Kept:
    """Stands in for the product's, which Spark plans and reads later."""
    return Kept(session, table, read, tuple(keys))


class ReplayFeed(MarkedFeed):
    """Reads the files when its rows are asked for first."""

    def __init__(self, kept: Kept, partitions: int) -> None:
        nothing = Reading(0, kept.session.pipeline, kept.table.id, kept.session.job, kept.session.process, ())
        super().__init__(nothing, partitions, kept.session, ())
        self.counts = None
        self._kept: Kept | None = kept

    def count(self) -> None:
        """Read them now, since their rows are numbered."""
        self._read()
        self.counts = tuple(len(self.rows[number :: self.partitions]) for number in range(self.partitions))

    def batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """The same each time they are asked for."""
        self._read()
        return super().batches(partition)

    def _read(self) -> None:
        if self._kept is not None:
            self.rows, self._kept = self._kept.list_rows(), None


def open_frame(kept: Kept, request: RowsRequest) -> ReplayFeed:
    """Stands in for the product's; what a table counts is read before it is numbered."""
    feed = ReplayFeed(kept, 1 if request.single else kept.session.sources.rng.choice([1, 1, 2]))
    if request.table.index == "contiguous" and feed.partitions > 1:
        feed.count()
    return feed
