"""Decide which rows a merge keeps: one row of each key, of all rows that the load and the table have of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.report import MergeCounts

KEY: Final = "key"
"""The number of the row's key, from 0, as ``KeySet`` gives it."""
FILE: Final = "file"
"""The number of the row's file: those of the load are numbered first, in the order in which they were written."""
POSITION: Final = "position"
PRECEDENCE: Final = "precedence"
"""Which of a load's rows with the same key and order is the last one, before file and position decide."""
NO_FILE: Final = -1
"""The file number of a deleted key, which is in no file and keeps older rows out."""
DELETED: Final = "deleted"
REPLACED: Final = "replaced_"
"""The prefix of file and position of the row that another one replaces."""
_RANK, _ORDER, _LOADED_ORDER, _IS_LOADED = "rank", "order", "loaded_order", "is_loaded"
_WEIGHT, _NUMBER = "weight", "number"

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Judged:
    """What becomes of rows.

    gone      file and position of each row that readers do not see after the merge
    replaced  file and position of each row of the load that stays and takes the place of a row of the table, with that
              row's as ``replaced_file`` and ``replaced_position``; of several rows of the table the first one counts
    newest    whether each row of the load is the newest one of its key, which it is too where it deletes
    """

    gone: pa.Table
    replaced: pa.Table
    newest: Mask
    counts: MergeCounts


@dataclass(frozen=True)
class _Newest:
    """Which rows are the newest ones of their keys, and whether the other rows have the highest order that the load has
    of their key."""

    loaded: Mask
    others: Mask
    is_equal: Mask


def judge(
    loaded: pa.Table, others: pa.Table, orders: Sequence[str], *, keeps_deleted: bool, wins_ties: bool = False
) -> Judged:
    """Judge the rows of a load, and the ``others`` of the same keys: the table's, by file and position, and deleted
    keys.

    The row with the highest order stays; null is the lowest. Among the load's rows of the same order the last one
    stays, whether it deletes or not. Against the table's row of the same order a delete wins, then the table's row, so
    that the same load again changes nothing. With ``wins_ties`` the load's row wins.
    """
    newest = _find_newest(loaded, others, orders, wins_ties=wins_ties)
    keys, other_keys = _take(loaded, KEY), _take(others, KEY)
    deletes, has_file = _take(loaded, DELETED), _take(others, FILE) != NO_FILE
    count = _count_keys(loaded)
    # Rule deletes-stay
    stays = newest.loaded if keeps_deleted else newest.loaded & ~deletes
    first = np.full(count, -1)
    [numbers] = np.nonzero(has_file)
    # Of several rows of the table the first one is set last.
    first[other_keys[numbers[::-1]]] = numbers[::-1]
    replaces = stays & (first[keys] >= 0)
    winners = newest.loaded
    in_table, deleting, equal = first[keys[winners]] >= 0, deletes[winners], newest.is_equal[newest.others]
    counts = MergeCounts(
        inserted=int(np.sum(~deleting & ~in_table)),
        updated=int(np.sum(~deleting & in_table)),
        deleted=int(np.sum(deleting & in_table)),
        unchanged=int(np.sum(equal)) + int(np.sum(deleting & ~in_table)),
        late=int(np.sum(~equal)),
        superseded=len(loaded) - count,
    )
    columns = [FILE, POSITION]
    goes = [loaded.select(columns).filter(pa.array(~stays)), others.select(columns).filter(~newest.others & has_file)]
    before = (
        others.select(columns).take(first[keys[replaces]]).rename_columns([f"{REPLACED}{name}" for name in columns])
    )
    replaced = loaded.select(columns).filter(pa.array(replaces))
    for name in before.column_names:
        replaced = replaced.append_column(name, before[name])
    return Judged(pa.concat_tables(goes), replaced, newest.loaded, counts)


def _take(rows: pa.Table, name: str) -> Any:
    return rows[name].to_numpy()


def _count_keys(loaded: pa.Table) -> int:
    return pc.max(loaded[KEY]).as_py() + 1 if len(loaded) else 0


def _find_newest(loaded: pa.Table, others: pa.Table, orders: Sequence[str], *, wins_ties: bool) -> _Newest:
    """Find the newest row of each key. Most keys have one row in the load and at most one in the table: these are
    compared as they are, the rows of the other keys are sorted."""
    keys, other_keys, count = _take(loaded, KEY), _take(others, KEY), _count_keys(loaded)
    is_pair = (np.bincount(keys, minlength=count) == 1) & (np.bincount(other_keys, minlength=count) <= 1)
    is_pair[other_keys[_take(others, FILE) == NO_FILE]] = False
    newest = _Newest(np.ones(len(loaded), np.bool_), np.zeros(len(others), np.bool_), np.zeros(len(others), np.bool_))
    at = np.full(count, -1)
    [numbers] = np.nonzero(is_pair[other_keys])
    at[other_keys[numbers]] = numbers
    [paired] = np.nonzero(at[keys] >= 0)
    against = at[keys[paired]]
    if len(paired):
        wins, is_equal = _compare(loaded.take(paired), others.take(against), orders, wins_ties=wins_ties)
        newest.loaded[paired], newest.others[against], newest.is_equal[against] = wins, ~wins, is_equal
    [rest], [other_rest] = np.nonzero(~is_pair[keys]), np.nonzero(~is_pair[other_keys])
    if len(rest):
        newest.loaded[rest] = False
        _sort_groups(loaded, others, rest, other_rest, orders, newest, wins_ties=wins_ties)
    return newest


def _compare(loaded: pa.Table, others: pa.Table, orders: Sequence[str], *, wins_ties: bool) -> tuple[Mask, Mask]:
    """Return whether each row of the load wins against the other one of its key, and whether both have one order."""
    is_greater: Any = pa.repeat(False, len(loaded))
    is_equal: Any = pa.repeat(True, len(loaded))
    for name in orders:
        one, other = loaded[name], others[name]
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        # A null is the lowest.
        above = pc.and_not(pc.is_null(other), pc.is_null(one))
        is_greater = pc.or_(is_greater, pc.and_(is_equal, pc.or_(above, pc.fill_null(pc.greater(one, other), False))))
        is_equal = pc.and_(is_equal, pc.or_(both_null, pc.fill_null(pc.equal(one, other), False)))
    equal = np.asarray(is_equal)
    weighs_more = _weigh_loaded(_take(loaded, DELETED), wins_ties=wins_ties) > _weigh_others(_take(others, DELETED))
    # Rule order-against-the-table
    return np.asarray(is_greater) | (equal & weighs_more), equal


def _weigh_loaded(deletes: Mask, *, wins_ties: bool) -> Any:
    """Return the weight that the load's last row has among the rows of its key and order: 1, 3 if it deletes; 5 and 7
    where it wins ties. A row that another one supersedes weighs 0."""
    return np.where(deletes, 3, 1) + (4 if wins_ties else 0)


def _weigh_others(deleted: Mask) -> Any:
    """Return the weight of other rows: 2 of the table's, 4 of those that it has as deleted, and of deleted keys."""
    # Rule same-order-changes-nothing
    return np.where(deleted, 4, 2)


def _sort_groups(
    loaded: pa.Table,
    others: pa.Table,
    rest: Any,
    other_rest: Any,
    orders: Sequence[str],
    newest: _Newest,
    *,
    wins_ties: bool,
) -> None:
    """Find the newest of these rows by sorting all of them, and note them."""
    columns = [KEY, *orders, DELETED, FILE, POSITION]
    some = loaded.select([*columns, PRECEDENCE]).take(rest).append_column(_NUMBER, pa.array(rest))
    some = some.append_column(_IS_LOADED, pa.repeat(True, len(rest)))
    stored = others.select(columns).take(other_rest)
    stored = stored.append_column(PRECEDENCE, pa.repeat(pa.scalar(0, pa.int64()), len(other_rest)))
    stored = stored.append_column(_NUMBER, pa.array(other_rest)).append_column(
        _IS_LOADED, pa.repeat(False, len(other_rest))
    )
    ranked = _rank(pa.concat_tables([some, stored]), orders, wins_ties=wins_ties)
    order = ranked[_ORDER]
    ranked = ranked.append_column(_LOADED_ORDER, pc.if_else(ranked[_IS_LOADED], order, pa.scalar(None, order.type)))
    highest = ranked.group_by([KEY]).aggregate([(_RANK, "max"), (_LOADED_ORDER, "max")])
    staying = ranked.take(highest[f"{_RANK}_max"])
    is_loaded, numbers = _take(staying, _IS_LOADED), _take(staying, _NUMBER)
    is_equal = np.asarray(pc.equal(highest[f"{_LOADED_ORDER}_max"], staying[_ORDER]))
    newest.loaded[numbers[is_loaded]] = True
    newest.others[numbers[~is_loaded]] = True
    newest.is_equal[numbers[~is_loaded]] = is_equal[~is_loaded]


def _rank(rows: pa.Table, orders: Sequence[str], *, wins_ties: bool) -> pa.Table:
    """Return the rows sorted, each with its rank and with the rank of its order's value."""
    by = []
    for name in orders:
        # This column sorts nulls first: releases of Arrow spell the option for it in different ways.
        rows = rows.append_column(f"{name} is valid", pc.is_valid(rows[name]).cast(pa.int8()))
        by += [f"{name} is valid", name]
    rows = rows.append_column(_WEIGHT, _weigh(rows, by, wins_ties=wins_ties))
    # Rule order-against-the-table/2
    sort_keys = [(name, "ascending") for name in (*by, _WEIGHT, PRECEDENCE, FILE, POSITION)]
    rows = rows.take(pc.sort_indices(rows, sort_keys=sort_keys)).combine_chunks()
    alike = pa.repeat(False, len(rows))
    differs = reduce(pc.or_, (differ_from_previous(rows[name]) for name in orders), alike)
    rows = rows.append_column(_ORDER, pc.cumulative_sum(differs.cast(pa.int64())))
    return rows.append_column(_RANK, pa.arange(0, len(rows)))


def _weigh(rows: pa.Table, by: Sequence[str], *, wins_ties: bool) -> pa.Array:
    """Return the weight of each row among those of its key and order."""
    numbered = rows.set_column(rows.schema.get_field_index(_NUMBER), _NUMBER, pa.arange(0, len(rows)))
    loaded = numbered.filter(numbered[_IS_LOADED])
    loaded = loaded.take(
        pc.sort_indices(loaded, sort_keys=[(name, "ascending") for name in (PRECEDENCE, FILE, POSITION)])
    )
    # Groups of one key and one order; a null is equal to a null here.
    last = loaded.group_by([KEY, *by], use_threads=False).aggregate([(_NUMBER, "last")])[f"{_NUMBER}_last"]
    deleted, is_last = _take(rows, DELETED), np.zeros(len(rows), np.bool_)
    is_last[last.to_numpy()] = True
    # Rule last-row-of-the-load
    of_load = np.where(is_last, _weigh_loaded(deleted, wins_ties=wins_ties), 0)
    return pa.array(np.where(_take(rows, _IS_LOADED), of_load, _weigh_others(deleted)), pa.int8())


def differ_from_previous(column: pa.ChunkedArray) -> pa.Array:
    """Return whether each value differs from that before it, null being equal to null; the first one does not."""
    values = pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)
    before, after = values[:-1], values[1:]
    same_null = pc.equal(pc.is_null(before), pc.is_null(after))
    equal = pc.and_(same_null, pc.fill_null(pc.equal(before, after), True))
    return pa.concat_arrays([pa.array([False]), pc.invert(equal)])
