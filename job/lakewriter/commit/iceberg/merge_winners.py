"""Decide which rows a merge keeps: one row of each key, of all rows that the load and the table have of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.report import MergeCounts

FILE: Final = "file"
"""The number of the row's file: those of the load are numbered first, in the order in which they were written."""
POSITION: Final = "position"
PRECEDENCE: Final = "precedence"
"""Which of a load's rows with the same key and order is the last one, before file and position decide."""
NO_FILE: Final = -1
"""The file number of a deleted key, which is in no file and keeps older rows out."""
IS_LOADED: Final = "is_loaded"
"""Whether it is a row of the load, and not of the table."""
DELETED: Final = "deleted"
_RANK, _ORDER, _LOADED_ORDER, _IN_TABLE = "rank", "order", "loaded_order", "is_in_table"
_WEIGHT, _NUMBER = "weight", "number"


@dataclass(frozen=True)
class Judged:
    """``gone`` has file and position of each row that readers do not see after the merge."""

    gone: pa.Table
    counts: MergeCounts


def judge(
    rows: pa.Table, keys: Sequence[str], orders: Sequence[str], *, keeps_deleted: bool, wins_ties: bool = False
) -> Judged:
    """Judge the rows of a load and the table's rows of the same keys; no key has a null.

    The row with the highest order stays; null is the lowest. Among the load's rows of the same order the last one
    stays, whether it deletes or not. Against the table's row of the same order a delete wins, then the table's row, so
    that the same load again changes nothing. With ``wins_ties`` the load's row wins.
    """
    ranked = _rank(rows, keys, orders, wins_ties=wins_ties)
    is_loaded, order = ranked[IS_LOADED], ranked[_ORDER]
    ranked = ranked.append_column(_LOADED_ORDER, pc.if_else(is_loaded, order, pa.scalar(None, order.type)))
    has_file = pc.not_equal(ranked[FILE], NO_FILE)
    ranked = ranked.append_column(_IN_TABLE, pc.and_(pc.invert(is_loaded), has_file))
    highest = ranked.group_by(list(keys)).aggregate([(_RANK, "max"), (_LOADED_ORDER, "max"), (_IN_TABLE, "max")])
    highest = highest.sort_by(f"{_RANK}_max")
    staying = ranked.take(highest[f"{_RANK}_max"])
    deletes = pc.and_(staying[IS_LOADED], staying[DELETED])
    if not keeps_deleted:
        # Rule deletes-stay
        staying = staying.filter(pc.invert(deletes))
    stays = pc.is_in(ranked[_RANK], value_set=staying[_RANK].combine_chunks())
    gone = ranked.filter(pc.and_(has_file, pc.invert(stays)))
    return Judged(gone.select([FILE, POSITION]), _count(ranked, ranked.take(highest[f"{_RANK}_max"]), highest))


def find_replaced(rows: pa.Table, gone: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return file and position of each row of the load that stays and takes the place of a row of the table, with that
    row's as ``replaced_file`` and ``replaced_position``; of several rows of the table the first one counts."""
    columns = [FILE, POSITION]
    rows = rows.select([*keys, *columns, IS_LOADED])
    staying = rows.filter(rows[IS_LOADED]).join(gone, columns, join_type="left anti").select([*keys, *columns])
    lost = rows.filter(pc.invert(rows[IS_LOADED])).join(gone, columns, join_type="left semi")
    lost = lost.sort_by([(name, "ascending") for name in columns])
    lost = lost.group_by(list(keys), use_threads=False).aggregate([(name, "first") for name in columns])
    lost = lost.select([*keys, *(f"{name}_first" for name in columns)])
    lost = lost.rename_columns([*keys, *(f"replaced_{name}" for name in columns)])
    return staying.join(lost, list(keys), join_type="inner").sort_by([(name, "ascending") for name in columns])


def find_newest(rows: pa.Table, keys: Sequence[str], orders: Sequence[str], *, wins_ties: bool) -> pa.Table:
    """Return the row of each key that stays, by the same order as ``judge``."""
    ranked = _rank(rows, keys, orders, wins_ties=wins_ties)
    highest = ranked.group_by(list(keys)).aggregate([(_RANK, "max")])
    return ranked.take(highest.sort_by(f"{_RANK}_max")[f"{_RANK}_max"])


def _rank(rows: pa.Table, keys: Sequence[str], orders: Sequence[str], *, wins_ties: bool) -> pa.Table:
    """Return the rows sorted, each with its rank and with the rank of its order's value."""
    by = []
    for name in orders:
        # This column sorts nulls first: releases of Arrow spell the option for it in different ways.
        rows = rows.append_column(f"{name} is valid", pc.is_valid(rows[name]).cast(pa.int8()))
        by += [f"{name} is valid", name]
    rows = rows.append_column(_WEIGHT, _weigh(rows, keys, by, wins_ties=wins_ties))
    # Rule order-against-the-table
    sort_keys = [(name, "ascending") for name in (*by, _WEIGHT, PRECEDENCE, FILE, POSITION)]
    rows = rows.take(pc.sort_indices(rows, sort_keys=sort_keys)).combine_chunks()
    alike = pa.repeat(False, len(rows))
    differs = reduce(pc.or_, (_differ_from_previous(rows[name]) for name in orders), alike)
    rows = rows.append_column(_ORDER, pc.cumulative_sum(differs.cast(pa.int64())))
    return rows.append_column(_RANK, pa.arange(0, len(rows)))


def _weigh(rows: pa.Table, keys: Sequence[str], by: Sequence[str], *, wins_ties: bool) -> pa.Array:
    """Return the weight of each row among those of its key and order.

    0 a row of the load that another one supersedes, 1 the load's last row, 2 a row of the table, 3 the load's last row
    if it deletes, 4 a row that the table has as deleted; 5 the load's last row where it wins ties, 7 if it deletes
    """
    numbered = rows.append_column(_NUMBER, pa.arange(0, len(rows)))
    loaded = numbered.filter(numbered[IS_LOADED])
    loaded = loaded.take(
        pc.sort_indices(loaded, sort_keys=[(name, "ascending") for name in (PRECEDENCE, FILE, POSITION)])
    )
    # Groups of one key and one order; a null is equal to a null here.
    last = loaded.group_by([*keys, *by], use_threads=False).aggregate([(_NUMBER, "last")])[f"{_NUMBER}_last"]
    is_last = pc.is_in(numbered[_NUMBER], value_set=last.combine_chunks())
    # Rule same-order-changes-nothing
    of_table = pc.multiply(pc.invert(rows[IS_LOADED]).cast(pa.int8()), 2)
    last_weight = 5 if wins_ties else 1
    # Rule last-row-of-the-load
    deletes = pc.multiply(pc.and_(rows[DELETED], pc.or_(is_last, pc.invert(rows[IS_LOADED]))).cast(pa.int8()), 2)
    return pc.add(pc.add(pc.multiply(is_last.cast(pa.int8()), last_weight), of_table), deletes).cast(pa.int8())


def _differ_from_previous(column: pa.ChunkedArray) -> pa.Array:
    """Return whether each value differs from that before it, null being equal to null; the first one does not."""
    values = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
    if not len(values):
        return pa.array([], pa.bool_())
    before, after = values[:-1], values[1:]
    same_null = pc.equal(pc.is_null(before), pc.is_null(after))
    equal = pc.and_(same_null, pc.fill_null(pc.equal(before, after), True))
    return pa.concat_arrays([pa.array([False]), pc.invert(equal)])


def _count(ranked: pa.Table, staying: pa.Table, highest: pa.Table) -> MergeCounts:
    is_loaded, deletes, in_table = staying[IS_LOADED], staying[DELETED], highest[f"{_IN_TABLE}_max"]
    loaded_order = highest[f"{_LOADED_ORDER}_max"]
    has_loaded = pc.is_valid(loaded_order)
    is_equal = pc.fill_null(pc.equal(loaded_order, staying[_ORDER]), False)

    def count(*conditions: Any) -> int:
        return int(pc.sum(reduce(pc.and_, conditions)).as_py() or 0)

    keeps_table = pc.and_(has_loaded, pc.invert(is_loaded))
    return MergeCounts(
        inserted=count(is_loaded, pc.invert(deletes), pc.invert(in_table)),
        updated=count(is_loaded, pc.invert(deletes), in_table),
        deleted=count(is_loaded, deletes, in_table),
        unchanged=count(keeps_table, is_equal) + count(is_loaded, deletes, pc.invert(in_table)),
        late=count(keeps_table, pc.invert(is_equal)),
        superseded=count(ranked[IS_LOADED]) - count(has_loaded),
    )
