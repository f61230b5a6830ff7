"""Tables without ``read``: a program gives their rows."""

from lakewriter.errors import SpecInvalidError
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec


def require_reads(spec: Spec) -> None:
    """Raise ``SPEC_INVALID`` where a table has no source that a load could read."""
    for table in spec.tables:
        require_read(table)


def require_read(table: TableSpec) -> None:
    """Raise ``SPEC_INVALID`` for a table whose rows only a program gives."""
    if table.is_given:
        raise SpecInvalidError(
            f"table {table.source_table!r} has no read: nothing says where its rows come from.",
            remedy="Write it with lakewriter.write, from a DataFrame; or give it a read.",
        )
