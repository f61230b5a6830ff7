"""Say which columns a table has, and which of its source's fields each comes from, by the plan of its rows."""

from collections.abc import Iterable, Iterator

from lakewriter.column_types import name_type
from lakewriter.lineage.facts import Column
from lakewriter.naming import DELETED
from lakewriter.shape.envelope import EnvelopePlan
from lakewriter.shape.flatten_plan import FlattenPlan
from lakewriter.shape.shapers import AnyPlan
from lakewriter.shape.table import ColumnPlan
from lakewriter.shape.text_rows import TextRowsPlan

Origin = tuple[str, tuple[str, ...], bool]
"""A column, the source's fields that its values come from, and whether they are their values as they are."""


def describe_columns(plan: AnyPlan, *, in_catalog: bool) -> tuple[Column, ...]:
    """Return the columns that are written. Columns that the load adds have no source."""
    origins = {name: (fields, is_identity) for name, fields, is_identity in _list_origins(plan)}
    columns = []
    for field in plan.schema:
        sources, is_identity = origins.get(field.name, ((), True))
        columns.append(Column(field.name, name_type(field.type, is_exact=not in_catalog), sources, is_identity))
    return tuple(columns)


def describe_source(plan: AnyPlan) -> tuple[Column, ...]:
    """Return the source's fields; of documents, the fields that have columns."""
    if isinstance(plan, EnvelopePlan) and plan.rows is None:
        return tuple(Column(name, None) for name in _list_properties(plan))
    rows = plan.rows if isinstance(plan, EnvelopePlan | TextRowsPlan) else plan
    assert rows is not None
    fields = (field for field in rows.source_schema if field.name != DELETED)
    return tuple(Column(field.name, name_type(field.type)) for field in fields)


def _list_origins(plan: AnyPlan) -> Iterable[Origin]:
    if isinstance(plan, FlattenPlan):
        return _list_document_origins(plan)
    if isinstance(plan, EnvelopePlan):
        return _list_record_origins(plan)
    return _list_row_origins(plan.columns)


def _list_row_origins(columns: Iterable[ColumnPlan]) -> Iterator[Origin]:
    for column in columns:
        yield column.name, (column.source,), not column.casts


def _list_record_origins(plan: EnvelopePlan) -> Iterable[Origin]:
    if plan.envelope.data is not None:
        # One column holds the whole record, as JSON text.
        names = tuple(column.source for column in plan.columns)
        return [(plan.envelope.data, names, False)]
    if plan.rows is not None:
        return _list_row_origins(plan.columns)
    named = zip(plan.fields, _list_properties(plan), strict=True)
    return [(field.name, (name,), True) for field, name in named]


def _list_properties(plan: EnvelopePlan) -> tuple[str, ...]:
    """Return the properties of a record that have columns, in the order of the columns."""
    return plan.properties or () if plan.record is None else tuple(name for name, _ in plan.record.fields)


def _list_document_origins(plan: FlattenPlan) -> Iterator[Origin]:
    for field in plan.fields:
        # Documents may be JSON text in one column, out of which their values are taken.
        inside = () if plan.documents is None else (plan.source_schema.field(plan.documents).name,)
        yield field.name, (".".join((*inside, *field.path)),), not inside
