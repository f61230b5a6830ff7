"""Find the rows that lie below the floors of a merge: those of the load, which are late, and those of the table, which
go.

Orders are compared column by column, and a null is the lowest, as in ``merge_winners``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyiceberg.expressions import And, BooleanExpression, EqualTo, IsNull, LessThan, LessThanOrEqual, Or
from pyiceberg.expressions.visitors import _InclusiveMetricsEvaluator, _StrictMetricsEvaluator
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lakewriter.commit.iceberg.deletion_vectors import LiveFile, plan_files
from lakewriter.commit.iceberg.merge_keys import AppliedDeletes, RowReader
from lakewriter.commit.iceberg.merge_winners import POSITION
from lakewriter.receipt import Floor
from lakewriter.records.facets import MergeIntent

_SOURCE = "key0"
"""The label under which a reader has the column with the source table: it takes the place of the key."""


@dataclass(frozen=True)
class Cleared:
    """The rows of a table below the floors that a load brings. Data files of the ``whole`` ones have no other row, or
    none that readers see; in those of ``parts`` some positions are below. ``deletes`` are the locations of files with
    deletes of the whole ones alone. ``rows`` counts what readers saw of all."""

    whole: tuple[LiveFile, ...] = ()
    parts: tuple[tuple[LiveFile, pa.Array], ...] = ()
    deletes: frozenset[str] = frozenset()
    rows: int = 0

    @cached_property
    def paths(self) -> frozenset[str]:
        """The locations of the whole files."""
        return frozenset(live.file.file_path for live in self.whole)

    @cached_property
    def positions(self) -> dict[str, pa.Array]:
        """The positions that go, by the location of their file."""
        return {live.file.file_path: positions for live, positions in self.parts}


class Floors:
    """The floors of one merge. A file is read once, whatever versions of the table the merge is tried on."""

    def __init__(self, merge: MergeIntent) -> None:
        self._brought, self._every = merge.floors, (*merge.floors, *merge.floors_before)
        self._read: dict[str, pa.Array] = {}
        self._columns = None
        if merge.source is not None:
            self._columns = MergeIntent(keys=(merge.source,), order_by=merge.order_by)

    def find_loaded(self, table: Table, schema: Schema, files: Sequence[DataFile]) -> dict[int, pa.Array]:
        """Return the positions of the load's rows below a floor, by the number of their file."""
        if self._columns is None:
            return {}
        # Rule floors-keep-out
        reader = _FloorReader(table, schema, self._columns, self._every)
        below = {number: reader.find_below(file) for number, file in enumerate(files) if reader.may_be_below(file)}
        return {number: positions for number, positions in below.items() if len(positions)}

    def clear(self, table: Table, schema: Schema, gone: AppliedDeletes) -> Cleared:
        """Return the table's rows that go; ``gone`` reads the deletes that apply to its files."""
        if self._columns is None or not self._brought:
            return Cleared()
        reader = _FloorReader(table, schema, self._columns, self._brought)
        whole, parts, rows = list[LiveFile](), list[tuple[LiveFile, pa.Array]](), 0
        # Rule floors-of-the-snapshot
        for live in plan_files(table, reader.condition):
            deleted = pc.unique(gone.find(table.io, live))
            left = live.file.record_count - len(deleted)
            # Rule whole-files-below
            if not reader.is_below(live.file):
                below = self._find_below(reader, live.file)
                below = below.filter(pc.invert(pc.is_in(below, value_set=deleted)))
                if len(below) < left:
                    parts += [(live, below)] if len(below) else []
                    rows += len(below)
                    continue
            whole.append(live)
            rows += left
        paths, applied = {live.file.file_path for live in whole}, {file for live in whole for file in live.deletes}
        deletes = frozenset(file.file_path for file in applied if gone.is_of(file, paths))
        return Cleared(tuple(whole), tuple(parts), deletes, rows)

    def _find_below(self, reader: "_FloorReader", file: DataFile) -> pa.Array:
        if file.file_path not in self._read:
            self._read[file.file_path] = reader.find_below(file)
        return self._read[file.file_path]


class _FloorReader:
    """Tells which rows of files are below one of ``floors``, by the files' bounds where these are certain."""

    def __init__(self, table: Table, schema: Schema, columns: MergeIntent, floors: Sequence[Floor]) -> None:
        self._reader, self._floors = RowReader(table, schema, columns), floors
        self._schema = table.schema()
        ids = [schema.find_field(name, case_sensitive=False).field_id for name in (*columns.keys, *columns.order_by)]
        self._source, *self._orders = (str(self._schema.find_column_name(field_id)) for field_id in ids)
        self._source_id = ids[0]

    @cached_property
    def _all_match(self) -> _StrictMetricsEvaluator:
        return _StrictMetricsEvaluator(self._schema, self.condition)

    @cached_property
    def _any_matches(self) -> _InclusiveMetricsEvaluator:
        return _InclusiveMetricsEvaluator(self._schema, self.condition)

    @cached_property
    def condition(self) -> BooleanExpression:
        """The condition that rows meet which are below a floor."""
        return reduce(Or, map(self._make_condition, self._floors))

    def _make_condition(self, floor: Floor) -> BooleanExpression:
        """Return that a part is lower while none of those before it is higher."""
        ways, before = list[BooleanExpression](), list[BooleanExpression]()
        for name, number in zip(self._orders, floor.numbers, strict=True):
            value = self._type_value(name, number)
            lower = Or(LessThan(term=name, value=value), IsNull(term=name))
            ways.append(reduce(And, [*before, lower]))
            before.append(Or(LessThanOrEqual(term=name, value=value), IsNull(term=name)))
        return And(EqualTo(term=self._source, value=floor.source), reduce(Or, ways))

    def _type_value(self, name: str, number: int) -> int | Decimal:
        return Decimal(number) if "decimal" in str(self._schema.find_type(name)) else number

    def is_below(self, file: DataFile) -> bool:
        """Return whether all rows of the file are below a floor, by its bounds; false where they do not tell."""
        # The library takes a column whose nulls were not counted for one without any.
        return (file.null_value_counts or {}).get(self._source_id) == 0 and bool(self._all_match.eval(file))

    def may_be_below(self, file: DataFile) -> bool:
        """Return whether a row of the file may be below a floor."""
        return bool(self._any_matches.eval(file))

    def find_below(self, file: DataFile) -> pa.Array:
        """Return the positions of the file's rows that are below a floor."""
        positions = [pa.array([], pa.int64())]
        for rows in self._reader.read(file):
            is_below = reduce(pc.or_, (self._compare(rows, floor) for floor in self._floors))
            positions += rows[POSITION].filter(is_below).chunks
        return pa.concat_arrays(positions)

    def _compare(self, rows: pa.Table, floor: Floor) -> pa.ChunkedArray:
        is_below = pa.chunked_array([pa.repeat(False, len(rows))])
        for name, number in reversed(list(zip(self._reader.orders, floor.numbers, strict=True))):
            values = rows[name]
            limit = pa.scalar(Decimal(number) if pt.is_decimal(values.type) else number, values.type)
            is_lower = pc.or_(pc.fill_null(pc.less(values, limit), True), values.is_null())
            is_below = pc.or_(is_lower, pc.and_(pc.fill_null(pc.equal(values, limit), False), is_below))
        return pc.and_(pc.fill_null(pc.equal(rows[_SOURCE], floor.source), False), is_below)


def drop_positions(rows: pa.Table, positions: pa.Array | None) -> pa.Table:
    """Return the rows of a file without those at these positions."""
    return rows if positions is None else rows.filter(pc.invert(pc.is_in(rows[POSITION], value_set=positions)))


def join_gone(
    gone: Iterable[tuple[LiveFile, pa.Array]], more: Sequence[tuple[LiveFile, pa.Array]]
) -> list[tuple[LiveFile, pa.Array]]:
    """Return the positions that go in each data file, once for each file."""
    by_path: dict[str, tuple[LiveFile, pa.Array]] = {}
    for live, positions in (*gone, *more):
        path = live.file.file_path
        before = [by_path[path][1]] if path in by_path else []
        by_path[path] = (live, pa.concat_arrays([*before, positions]))
    return list(by_path.values())
