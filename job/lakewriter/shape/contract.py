"""Apply a table's ``contract`` to columns that the table does not have, and to types that it would have to grow."""

from collections.abc import Mapping

import pyarrow as pa

from lakewriter.column_types import to_glue_type
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.shape.table import ShapePlan
from lakewriter.spec.table_spec import TableSpec

ExistingTypes = Mapping[str, pa.DataType] | None
"""The table's columns by name in lower case; None before there is a table."""


def find_columns_to_discard(table: TableSpec, plan: ShapePlan, existing: ExistingTypes) -> frozenset[str]:
    """Return the written names of columns that are left out; raise ``SCHEMA_INCOMPATIBLE`` if columns are frozen."""
    if table.contract is None or existing is None or table.contract.columns == "evolve":
        return frozenset()
    added = [column for column in plan.columns if column.name.lower() not in existing]
    if added and table.contract.columns == "freeze":
        names = ", ".join(repr(column.source) for column in added)
        raise SchemaIncompatibleError(
            f"the source of {table.id!r} has columns that the table does not have, and contract.columns is 'freeze': "
            f"{names}.",
            remedy="Take them out of the source; or set contract.columns to 'discard', which leaves them out and "
            "counts them, or to 'evolve', which adds them.",
        )
    return frozenset(column.name for column in added)


def require_types(table: TableSpec, plan: ShapePlan, existing: ExistingTypes) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` if types are frozen and the table would have to change one."""
    if table.contract is None or existing is None or table.contract.types == "evolve":
        return
    for column in plan.columns:
        there = existing.get(column.name.lower())
        if there is not None and to_glue_type(there) != to_glue_type(column.type):
            raise SchemaIncompatibleError(
                f"column {column.source!r} of {table.id!r} is {to_glue_type(column.type)!r} in the source and "
                f"{to_glue_type(there)!r} in the table, and contract.types is 'freeze'.",
                remedy=f'Declare the table\'s type, columns: {{{column.source}: "{to_glue_type(there)}"}}; or set '
                "contract.types to 'evolve', which widens the table's.",
            )
