"""Find the columns that a table's expectations name among those that a load writes, before anything is written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.documents.types import ORIGINAL
from lakewriter.errors import SpecInvalidError
from lakewriter.expect.failing_rows import RowCheck, RowRule, make_rule
from lakewriter.expect.limits import parse_limit, parse_values
from lakewriter.shape.envelope import EnvelopePlan
from lakewriter.shape.shapers import AnyPlan
from lakewriter.shape.table import find_column
from lakewriter.shape.text_rows import TextRowsPlan
from lakewriter.spec.expectations import AcceptedValues, Expectation, Fresh, Range, Unique
from lakewriter.spec.table_spec import TableSpec

_OF_TIME: Final = (pt.is_date, pt.is_timestamp)
_ORDERED: Final = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_string, *_OF_TIME)
_COMPARED: Final = (pt.is_boolean, *_ORDERED)
_EXACT_IN_FOOTER: Final = (pt.is_integer, pt.is_decimal, pt.is_boolean, *_OF_TIME)
"""A Parquet footer has exact figures for these types only: floats may be NaN, the bounds of long text are cut, and
nested values are counted by their leaves.
"""

_ANSWERS: Final[Mapping[type, tuple[Sequence[object], str]]] = {
    Range: (_ORDERED, "a number, a date, a timestamp or text"),
    Fresh: (_OF_TIME, "a date or a timestamp"),
    AcceptedValues: (_COMPARED, "a number, a truth value, a date, a time or text"),
}
"""The types that a check compares, and what they are in words."""


@dataclass(frozen=True)
class Watch:
    """A column that is looked at while a load is staged.

    name       its written name
    type       its type before a text format turns it into text; null for one that has no values
    bounds     whether its lowest and its highest value are wanted
    in_footer  whether the footers of the files have its figures, so that no pass over the rows is needed
    """

    name: str
    type: pa.DataType
    bounds: bool = False
    in_footer: bool = False


@dataclass(frozen=True)
class ValueCheck:
    """The values that a column may have, by the check's name; ``column`` is its written name."""

    name: str
    column: str
    values: pa.Array


@dataclass(frozen=True)
class UniqueCheck:
    """The columns that have no values twice together, and their positions in the source."""

    name: str
    columns: tuple[str, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Watched:
    """The columns and rows of a table that are looked at while it is staged; picklable.

    columns     by the column's name as expectations have it
    values      checked in the tasks
    conditions  the names of those in SQL, in the order in which Spark has looked at them
    keys        written names of the columns that identify one row, for messages
    unique      looked at by Spark in a second reading
    rules       the checks that keep rows out of the table
    counted     written names of a primary key whose repeats are counted in the tasks
    """

    columns: Mapping[str, Watch] = field(default_factory=dict)
    values: tuple[ValueCheck, ...] = ()
    conditions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    unique: tuple[UniqueCheck, ...] = ()
    rules: tuple[RowRule, ...] = ()
    counted: tuple[str, ...] = ()


NOTHING: Final = Watched()
Columns = tuple[pa.Schema, list[tuple[str, str]]]
"""The schema of the typed rows, and the names of columns in the source with the written ones."""


def find_watched(table: TableSpec, plan: AnyPlan, *, is_parquet: bool) -> Watched:
    """Return the columns and rows that the expectations ask about.

    ``SPEC_INVALID`` for a column that the load does not write, or whose type a check does not take.
    """
    if not table.expect and not _counts_keys(table):
        return NOTHING
    schema, names = columns = _list_columns(plan)
    watches: dict[str, Watch] = {}
    values: list[ValueCheck] = []
    unique: list[UniqueCheck] = []
    rules: list[RowRule] = []
    for expectation in table.expect:
        what = f"expectation {expectation.name!r} of {table.id!r}"
        if expectation.on_violation == "quarantine":
            rules.append(_plan_rule(expectation, table, _find_checked(expectation, plan, columns, what), what))
        elif isinstance(expectation, AcceptedValues):
            values += _plan_values(expectation, _find_column(expectation.column, plan, columns, what), what)
        elif isinstance(expectation, Unique):
            unique.append(_plan_unique(expectation, plan, columns, what))
        elif expectation.column is not None:
            watch = _find_watch(expectation, plan, columns, what)
            before = watches.get(expectation.column, watch)
            is_exact = is_parquet and "." not in watch.name and _is_any(watch.type, _EXACT_IN_FOOTER)
            watches[expectation.column] = replace(watch, bounds=watch.bounds or before.bounds, in_footer=is_exact)
    conditions, written = tuple(condition.name for condition in table.conditions), dict(names)
    keys = tuple(written[key] for key in table.primary_key or table.unique_key if key in written)
    counted = _find_counted(table, schema, written)
    return Watched(watches, tuple(values), conditions, keys, tuple(unique), tuple(rules), counted)


def _counts_keys(table: TableSpec) -> bool:
    """Return whether the rows of a load must have distinct primary keys.

    They must if the load brings the table whole, and no check asks for it already. A table of changes has a row for
    each change.
    """
    is_whole = not table.mode.brings_changes and table.stream is None
    asked = any(set(check.columns) <= set(table.primary_key) for check in table.unique_checks)
    return is_whole and bool(table.primary_key) and not asked


def _find_counted(table: TableSpec, schema: pa.Schema, written: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of the primary key if its repeats are counted; none if they cannot be compared."""
    names = [written.get(key) for key in table.primary_key] if _counts_keys(table) else []
    comparable = tuple(name for name in names if name is not None and _is_any(schema.field(name).type, _COMPARED))
    return comparable if len(comparable) == len(names) else ()


def _find_checked(expectation: Expectation, plan: AnyPlan, columns: Columns, what: str) -> pa.Field | None:
    """Return the written column of a check that keeps rows out; None for a condition."""
    if expectation.column is None:
        return None
    field = _find_column(expectation.column, plan, columns, what)
    if not pt.is_null(field.type):
        _require_comparable(expectation, field.type, what)
    return field


def _plan_rule(expectation: Expectation, table: TableSpec, column: pa.Field | None, what: str) -> RowRule:
    assert isinstance(expectation, RowCheck)
    position = [condition.name for condition in table.conditions].index(expectation.name) if column is None else 0
    return make_rule(expectation, column, position, what)


def _list_columns(plan: AnyPlan) -> Columns:
    schema = plan.rows.schema if isinstance(plan, TextRowsPlan) else plan.schema
    if not isinstance(plan, EnvelopePlan):
        # The catalog may have a column's name in another case.
        names = [(column.source, name) for column, name in zip(plan.columns, schema.names, strict=False)]
        return schema, [*names, *_list_others(schema, names)]
    if plan.rows is not None:
        return plan.rows.schema, [(column.source, column.name) for column in plan.columns]
    if plan.watched is not None:
        return plan.watched_schema, [(_read_original(field), field.name) for field in plan.watched_schema]
    return schema, [(_read_original(field), field.name) for field in plan.fields]


def _list_others(schema: pa.Schema, names: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the columns that the load itself adds."""
    sources, written = {source for source, _ in names}, {name for _, name in names}
    yield from ((name, name) for name in schema.names if name not in written and name not in sources)


def _read_original(field: pa.Field) -> str:
    original: bytes | None = (field.metadata or {}).get(ORIGINAL)
    return str(field.name) if original is None else original.decode()


def _find_column(column: str, plan: AnyPlan, columns: Columns, what: str) -> pa.Field:
    """Return the written column; of the type null if it has no values."""
    schema, names = columns
    if column in plan.left_out and column not in dict(names):
        return pa.field(column, pa.null())
    return schema.field(find_column(column, names, what, plan.left_out))


def _find_watch(expectation: Expectation, plan: AnyPlan, columns: Columns, what: str) -> Watch:
    column = expectation.column or ""
    field = _find_column(column, plan, columns, what)
    if pt.is_null(field.type):
        return Watch(column, field.type)
    _require_comparable(expectation, field.type, what)
    if isinstance(expectation, Range):
        for limit in (expectation.at_least, expectation.at_most):
            if limit is not None:
                parse_limit(field.type, limit, what)
    return Watch(field.name, field.type, bounds=isinstance(expectation, Range | Fresh))


def _plan_values(expectation: AcceptedValues, field: pa.Field, what: str) -> Iterator[ValueCheck]:
    """Yield the check on values, none for a column without values: null is not looked at."""
    if pt.is_null(field.type):
        return
    _require_comparable(expectation, field.type, what)
    yield ValueCheck(expectation.name, field.name, parse_values(field.type, expectation.values, what))


def _require_comparable(expectation: Expectation, t: pa.DataType, what: str) -> None:
    """Raise ``SPEC_INVALID`` for a type that the expectation does not take."""
    kinds, expected = _ANSWERS.get(type(expectation), ((), ""))
    if kinds and not _is_any(t, kinds):
        raise SpecInvalidError(
            f"{what}: column {expectation.column!r} has type {str(t)!r}, expected {expected}.",
            remedy="Declare its type under columns:, or name another column.",
        )


def _plan_unique(expectation: Unique, plan: AnyPlan, columns: Columns, what: str) -> UniqueCheck:
    source = plan.rows.source_schema if isinstance(plan, TextRowsPlan) else plan.source_schema
    positions = []
    for column in expectation.columns:
        field = _find_column(column, plan, columns, what)
        names = [name for name, written in columns[1] if written == field.name] or [column]
        if names[0] not in source.names or not _is_any(field.type, (*_COMPARED, pt.is_null)):
            raise SpecInvalidError(
                f"{what}: Spark cannot compare {column!r}, which is {str(field.type)!r} or lies inside another column.",
                remedy="Name columns of the source that hold numbers, dates, times or text.",
            )
        positions.append(source.names.index(names[0]))
    return UniqueCheck(expectation.name, expectation.columns, tuple(positions))


def _is_any(t: pa.DataType, kinds: Sequence[object]) -> bool:
    return any(is_kind(t) for is_kind in kinds)  # type: ignore[operator]
