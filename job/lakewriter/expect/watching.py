"""Find the columns that a table's expectations name among those that a load writes, before anything is written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.documents.types import ORIGINAL
from lakewriter.errors import SpecInvalidError
from lakewriter.expect.limits import parse_limit
from lakewriter.shape.envelope import EnvelopePlan
from lakewriter.shape.shapers import AnyPlan
from lakewriter.shape.table import find_column
from lakewriter.shape.text_rows import TextRowsPlan
from lakewriter.spec.expectations import Expectation, Fresh, Range
from lakewriter.spec.specification import TableSpec

_OF_TIME: Final = (pt.is_date, pt.is_timestamp)
_ORDERED: Final = (pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_string, *_OF_TIME)
_EXACT_IN_FOOTER: Final = (pt.is_integer, pt.is_decimal, pt.is_boolean, *_OF_TIME)
"""Types of which a Parquet footer tells all there is to know: floats may be NaN, the bounds of long text are cut, and
of a nested value it counts the leaves."""


@dataclass(frozen=True)
class Watch:
    """A column that is looked at while a load is staged.

    name       its written name
    type       its type before a text format makes text of it; null for one that has no values
    bounds     whether its lowest and its highest value are wanted
    in_footer  whether the footers of the files tell of it, so that no pass over the rows is needed
    """

    name: str
    type: pa.DataType
    bounds: bool = False
    in_footer: bool = False


Watches = Mapping[str, Watch]
"""By the column's name as the expectation has it."""


def find_watches(table: TableSpec, plan: AnyPlan, *, is_parquet: bool) -> Watches:
    """The columns that the expectations name; ``SPEC_INVALID`` for one that the load does not write, or whose type has
    no answer to what is asked."""
    if not table.expect:
        return {}
    schema, names = _list_columns(plan)
    watches: dict[str, Watch] = {}
    for expectation in table.expect:
        if expectation.column is not None:
            watch = _find_watch(table, expectation, plan, schema, names)
            before = watches.get(expectation.column, watch)
            watches[expectation.column] = Watch(
                watch.name,
                watch.type,
                bounds=watch.bounds or before.bounds,
                in_footer=is_parquet and "." not in watch.name and _is_any(watch.type, _EXACT_IN_FOOTER),
            )
    return watches


def _list_columns(plan: AnyPlan) -> tuple[pa.Schema, list[tuple[str, str]]]:
    """The schema of the typed rows, and the names in the source with the written ones."""
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
    """Columns that the load itself adds."""
    sources, written = {source for source, _ in names}, {name for _, name in names}
    yield from ((name, name) for name in schema.names if name not in written and name not in sources)


def _read_original(field: pa.Field) -> str:
    original: bytes | None = (field.metadata or {}).get(ORIGINAL)
    return str(field.name) if original is None else original.decode()


def _find_watch(
    table: TableSpec, expectation: Expectation, plan: AnyPlan, schema: pa.Schema, names: list[tuple[str, str]]
) -> Watch:
    what, column = f"expectation {expectation.name!r} of {table.id!r}", expectation.column or ""
    if column in plan.left_out and column not in dict(names):
        return Watch(column, pa.null())
    name = find_column(column, names, what, plan.left_out)
    t = schema.field(name).type
    if isinstance(expectation, Range):
        if not _is_any(t, _ORDERED):
            raise _make_type_error(what, column, t, "a number, a date, a timestamp or text")
        for limit in (expectation.at_least, expectation.at_most):
            if limit is not None:
                parse_limit(t, limit, what)
    if isinstance(expectation, Fresh) and not _is_any(t, _OF_TIME):
        raise _make_type_error(what, column, t, "a date or a timestamp")
    return Watch(name, t, bounds=isinstance(expectation, Range | Fresh))


def _is_any(t: pa.DataType, kinds: Sequence[object]) -> bool:
    return any(is_kind(t) for is_kind in kinds)  # type: ignore[operator]


def _make_type_error(what: str, column: str, t: pa.DataType, expected: str) -> SpecInvalidError:
    return SpecInvalidError(
        f"{what}: column {column!r} has type {str(t)!r}, expected {expected}.",
        remedy="Declare its type under columns:, or name another column.",
    )
