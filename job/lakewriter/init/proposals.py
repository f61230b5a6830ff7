"""Propose a table's primary key and cursor from its rows, each with the evidence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.report import format_count
from lakewriter.source.text_types import propose_type

_KEY_WORDS: Final = ("id", "key", "uuid", "guid", "sku", "iata", "icao")
_NUMBERS: Final = ("code", "number", "no", "nr", "num")
"""Keys only alone or behind the table's own name: a phone_number is none."""
_CHANGES: Final = re.compile(
    r"(last_?)?(updated|modified|changed|edited)(_?(at|on|time|date|ts|timestamp))?|last_?(update|change|edit|modified)"
    r"(_?(time|date|ts))?|(update|modification|change)_?(time|date|ts|timestamp)|systemmodstamp|row_?version|synced_?at",
    re.IGNORECASE,
)
_MADE: Final = re.compile(
    r"(created|inserted|loaded|ingested|recorded|logged|occurred)(_?(at|on|time|date|ts))?|(event|creation|create)_?"
    r"(time|date|ts|timestamp)|timestamp|ts|time|date|datetime|\w+_(at|time|ts)",
    re.IGNORECASE,
)
_MOSTLY: Final = re.compile(r"[\d,]+ of [\d,]+ values? are ")
_OWN_KEY: Final = 3
"""The rank of a name that is the table's own key."""
_MOST_GROWTH: Final = 1.5
_MOST_KEY_COLUMNS: Final = 3
_MOST_CANDIDATES: Final = 8
_MOST_VALUES: Final = 8
"""A column of text with more distinct values is none of a few."""
_ROWS_A_VALUE: Final = 10
"""A distinct value needs so many rows, or the values may be few by chance."""


@dataclass(frozen=True)
class Column:
    """A column: its type as Spark's DDL has it, and the type to declare for one of text, with the reason."""

    name: str
    type: str
    declared: str | None = None
    reason: str = ""


@dataclass(frozen=True)
class Proposal:
    """Names of columns, none where there is no proposal; ``evidence`` says why. ``is_certain`` is False for what only a
    person can decide."""

    columns: tuple[str, ...]
    evidence: str
    is_certain: bool = True


@dataclass(frozen=True)
class CheckProposal:
    """An entry of ``expect``; ``evidence`` and ``is_certain`` are as in ``Proposal``."""

    check: Mapping[str, Any]
    evidence: str
    is_certain: bool = False


def describe_columns(rows: pa.Table) -> tuple[Column, ...]:
    """Describe the columns of a sample; those of text with the type that all their values have."""
    return tuple(_describe_column(name, rows[name]) for name in rows.column_names)


def _describe_column(name: str, values: pa.ChunkedArray) -> Column:
    if pt.is_string(values.type) or pt.is_large_string(values.type):
        proposal = propose_type(values)
        return Column(name, "string", proposal.type, proposal.reason)
    return Column(name, _name_type(values.type))


def _name_type(kind: pa.DataType) -> str:
    names: tuple[tuple[object, str], ...] = (
        (pt.is_boolean(kind), "boolean"),
        (pt.is_integer(kind), "bigint"),
        (pt.is_floating(kind), "double"),
        (pt.is_decimal(kind), str(kind)),
        (pt.is_timestamp(kind), "timestamp"),
        (pt.is_date(kind), "date"),
    )
    return next((name for holds, name in names if holds), str(kind))


def propose_key(table: str, rows: pa.Table, columns: Sequence[Column], *, is_whole: bool) -> Proposal:
    """Propose the fewest columns, named as keys are, whose values are never null and never the same in two rows."""
    count = rows.num_rows
    among = f"{'' if is_whole else 'the first '}{format_count(count, 'row')}"
    if count < 2:
        return Proposal((), f"{format_count(count, 'row')} cannot show which columns tell rows apart", is_certain=False)
    facts = {column.name: _count_values(rows[column.name]) for column in columns if _may_be_key(column)}
    complete = [name for name, (nulls, _) in facts.items() if nulls == 0]
    ranked = sorted(complete, key=lambda name: (-_rank_name(name, table), complete.index(name)))
    unique = [name for name in ranked if facts[name][1] == count]
    if unique and _rank_name(unique[0], table):
        left = "" if is_whole else "; the rest was not looked at"
        return Proposal((unique[0],), f"{count:,} distinct values in {among}, none null{left}", is_whole)
    several = _find_together(rows, ranked[:_MOST_CANDIDATES]) if not unique else None
    if several:
        return Proposal(several, f"together distinct in {among}; no column is by itself", is_certain=False)
    if unique:
        return Proposal((unique[0],), f"distinct in {among}, but not named as keys are", is_certain=False)
    return Proposal((), _explain_no_key(table, facts, count))


def find_repeated_key(table: str, rows: pa.Table, columns: Sequence[Column], files: int) -> str:
    """Say by which key the files of a table repeat each other's rows; blank if nothing shows that they do."""
    count = rows.num_rows
    named = sorted(
        (column.name for column in columns if _may_be_key(column)), key=lambda name: -_rank_name(name, table)
    )
    if files < 2 or not named or _rank_name(named[0], table) < _OWN_KEY:
        return ""
    nulls, distinct = _count_values(rows[named[0]])
    # Whole exports of a table that grows slowly have about as many keys as one file has rows.
    if nulls or distinct * files > count * _MOST_GROWTH:
        return ""
    return (
        f"{named[0]} has {format_count(distinct, 'distinct value')} in {format_count(count, 'row')} of {files:,} files"
    )


def _explain_no_key(table: str, facts: Mapping[str, tuple[int, int]], count: int) -> str:
    named = sorted(facts, key=lambda name: -_rank_name(name, table))
    if not named or not _rank_name(named[0], table):
        return "no column, and no few together, tell all rows apart"
    nulls, distinct = facts[named[0]]
    if nulls:
        return f"{named[0]} is null in {format_count(nulls, 'row')}"
    return f"{named[0]} has {format_count(distinct, 'distinct value')} in {format_count(count, 'row')}"


def _may_be_key(column: Column) -> bool:
    kind = column.declared or column.type
    return kind in ("string", "bigint", "date", "timestamp") or kind.startswith("decimal")


def _count_values(values: pa.ChunkedArray) -> tuple[int, int]:
    return values.null_count, pc.count_distinct(values, mode="only_valid").as_py()


def _rank_name(name: str, table: str) -> int:
    """Rank how much a column's name is that of a key: ``_OWN_KEY`` for the table's own, 0 for none."""
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().strip("_").replace("-", "_").replace(" ", "_")
    table_name = re.sub(r"\W+", "_", table.lower())
    singular = _get_singular(table_name)
    if words in ("id", "uuid", f"{table_name}_id", f"{singular}_id", f"{singular}id"):
        return _OWN_KEY
    start, _, last = words.rpartition("_")
    if last in ("id", "uuid", "key"):
        return 2
    is_numbered = last in _NUMBERS and start in ("", table_name, singular)
    return int(is_numbered or last in _KEY_WORDS or words in (table_name, singular))


def _get_singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word.removesuffix('ies')}y"
    return word.removesuffix("es") if word.endswith(("ses", "xes", "ches")) else word.removesuffix("s")


def _find_together(rows: pa.Table, names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the first two, or else three, of the columns that together tell all rows apart."""
    for size in range(2, _MOST_KEY_COLUMNS + 1):
        for chosen in combinations(names, size):
            if rows.select(list(chosen)).group_by(list(chosen)).aggregate([]).num_rows == rows.num_rows:
                return chosen
    return None


def propose_cursor(rows: pa.Table, columns: Sequence[Column]) -> Proposal | None:
    """Propose the column by which later loads read only what is new; None where no column is named like one."""
    return next(_list_cursors(rows, columns), None)


def _list_cursors(rows: pa.Table, columns: Sequence[Column]) -> Iterator[Proposal]:
    times = [column for column in columns if (column.declared or column.type) in ("timestamp", "date")]
    for column in times:
        if _CHANGES.fullmatch(column.name):
            nulls = rows[column.name].null_count
            if nulls:
                evidence = f"{column.name} is null in {format_count(nulls, 'row')}, which no later load would read"
                yield Proposal((column.name,), evidence, is_certain=False)
            elif (column.declared or column.type) == "date":
                evidence = "a date: rows of a day already loaded are read again only with cursor_lag: 1 day"
                yield Proposal((column.name,), evidence, is_certain=False)
            else:
                yield Proposal((column.name,), f"never null, {_describe_range(column, rows)}")
    for column in times:
        if _MADE.fullmatch(column.name) and not rows[column.name].null_count:
            evidence = f"{_describe_range(column, rows)}: right only if no row changes after it is written"
            yield Proposal((column.name,), evidence, is_certain=False)


def _describe_range(column: Column, rows: pa.Table) -> str:
    values = rows[column.name]
    if values.num_chunks == 0 or len(values) == values.null_count:
        return "no value yet"
    ends = pc.min_max(values).as_py()
    return f"from {ends['min']} to {ends['max']}"


def propose_types(columns: Sequence[Column]) -> dict[str, tuple[str, str]]:
    """Return the entries of ``columns:`` with their evidence, for columns of text that hold something else."""
    return {column.name: (column.declared, column.reason) for column in columns if column.declared is not None}


def explain_texts(columns: Sequence[Column]) -> tuple[str, ...]:
    """Say of each column of text that mostly holds something else which value keeps it text."""
    return tuple(
        f"{column.name} stays text: {column.reason}"
        for column in columns
        if column.declared is None and _MOSTLY.match(column.reason)
    )


def is_named_for_changes(name: str) -> bool:
    """Return True if a column's name is that of the time at which a row was last changed."""
    return _CHANGES.fullmatch(name) is not None


def propose_checks(
    rows: pa.Table,
    columns: Sequence[Column],
    key: Proposal,
    cursor: Proposal | None,
    *,
    is_whole: bool,
    reads_new: bool,
) -> tuple[CheckProposal, ...]:
    """Propose what each load is expected to be. What the rows cannot promise of later ones is not certain.

    ``reads_new`` is True if later loads read only what is new.
    """
    among = f"{'all' if is_whole else 'the first'} {format_count(rows.num_rows, 'row')}"
    why = "a load of what is new may find nothing" if reads_new else "a load without rows fails"
    proposed = [CheckProposal({"rows": {"at_least": 1}}, why, is_certain=not reads_new)]
    keys = list(key.columns)
    if keys:
        proposed.append(CheckProposal({"not_null": keys}, f"the primary key; {key.evidence}", key.is_certain))
        unique = keys[0] if len(keys) == 1 else keys
        proposed.append(CheckProposal({"unique": unique}, "Spark looks at the rows for it, which takes longer"))
    full = [column.name for column in columns if column.name not in keys and not rows[column.name].null_count]
    if full and rows.num_rows:
        proposed.append(CheckProposal({"not_null": full}, f"none is null in {among}; keep those that never may be"))
    proposed += _list_accepted_values(rows, columns, among)
    if cursor is not None and _is_time(columns, cursor.columns[0]):
        fresh = {"column": cursor.columns[0], "within": "26 hours"}
        proposed.append(CheckProposal({"fresh": fresh}, f"for a load each day; {cursor.evidence}"))
    return tuple(proposed)


def _list_accepted_values(rows: pa.Table, columns: Sequence[Column], among: str) -> Iterator[CheckProposal]:
    for column in columns:
        values = rows[column.name]
        if not pt.is_string(values.type) or column.declared is not None:
            continue
        distinct = sorted(value for value in values.unique().to_pylist() if value is not None)
        if 2 <= len(distinct) <= _MOST_VALUES and rows.num_rows >= _ROWS_A_VALUE * len(distinct):
            accepted = {"column": column.name, "values": distinct}
            yield CheckProposal({"accepted_values": accepted}, f"{len(distinct)} distinct values in {among}")


def _is_time(columns: Sequence[Column], name: str) -> bool:
    kind = next((column.declared or column.type for column in columns if column.name == name), "")
    return kind in ("date", "timestamp")
