"""Check before a row is read that a table's ``cursor_lag`` can be subtracted from its cursor."""

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.errors import SpecInvalidError
from lakewriter.spec.table_spec import TableSpec


def check_lag(table: TableSpec, schema: pa.Schema) -> None:
    """Raise ``SPEC_INVALID`` if the cursor is text, or if one of cursor and lag is a number and the other a time.

    ``schema`` has the source's columns. Whether it has the cursor at all is checked where columns are shaped.
    """
    kind = _find_cursor_type(table, schema)
    if table.cursor_lag is None or kind is None or pt.is_null(kind):
        # Without a row, or a value in any, there is no type yet.
        return
    of_time = " " in table.cursor_lag
    is_time, is_number = pt.is_date(kind) or pt.is_timestamp(kind), pt.is_integer(kind) or pt.is_floating(kind)
    if is_time if of_time else is_number or pt.is_decimal(kind):
        return
    fitting = "a date or a timestamp" if of_time else "a number"
    raise SpecInvalidError(
        f"tables.{table.id}.cursor_lag is {table.cursor_lag!r}, which goes with {fitting}; cursor {table.cursor!r} "
        f"has type {str(kind)!r}.",
        remedy="Declare the cursor's type, such as "
        f"columns: {{{table.cursor}: {'timestamp' if of_time else 'bigint'}}}, or leave out cursor_lag.",
    )


def _find_cursor_type(table: TableSpec, schema: pa.Schema) -> pa.DataType | None:
    wanted = table.cursor or ""
    types = [field.type for field in schema if field.name == wanted]
    types += [field.type for field in schema if field.name.lower() == wanted.lower()]
    return types[0] if types else None
