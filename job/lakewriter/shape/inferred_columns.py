"""The columns of documents without a schema: what a table has kept, and what a load's documents have besides; pure.

What a value becomes depends only on its path and on the value, never on other documents. Each string, number and
boolean is JSON text in the column of its path, objects are opened, and arrays left out, whatever else is at that path.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from lakewriter.documents.inference import Seen, require_few
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.receipt import InferredColumn
from lakewriter.shape.selection import Chosen, Field
from lakewriter.spec.collection import Kind, Location
from lakewriter.spec.table_spec import TableSpec

INCLUDED: Final = "included"
_KINDS: Final = (Kind.VALUE, Kind.OBJECT, Kind.ARRAY, Kind.MAP)
"""The kinds in order of precedence: a path with several of them counts as the first, which has a column or is left
out."""

InferredColumns = Sequence[InferredColumn]


def list_locations(table: str, seen: Seen, inferred: InferredColumns) -> tuple[Location, ...]:
    """Return the table's locations, each with the kind that it has there, then those that are new."""
    kinds_by_path = {column.path: Kind(column.kind) for column in inferred if column.path and column.kind != INCLUDED}
    # Objects inside a value that is kept whole are part of its text.
    whole = [path for path, kind in kinds_by_path.items() if kind is Kind.JSON]
    new = {
        path: next(kind for kind in _KINDS if kind in kinds)
        for path, kinds in seen.items()
        if path not in kinds_by_path and not any(path[: len(above)] == above for above in whole)
    }
    require_few(table, len(kinds_by_path) + len(new))
    return tuple(Location(path, kind) for path, kind in (kinds_by_path | new).items())


def add_paths(inferred: InferredColumns, seen: Seen, separator: str) -> tuple[InferredColumn, ...]:
    """Return the columns, those of unknown path with the path that yields their name.

    Only the table's files name such a column.
    """
    unknown = {column.name: column for column in inferred if not column.path}
    claimed: dict[str, InferredColumn] = {}
    taken = {column.path for column in inferred}
    for path in seen:
        name = separator.join(path)
        if path not in taken and name in unknown and name not in claimed:
            claimed[name] = unknown[name].model_copy(update={"path": path})
    return tuple(claimed.get(column.name, column) if not column.path else column for column in inferred)


def find_pinned_name(inferred: InferredColumns, path: tuple[str, ...], name: str) -> str | None:
    """Return the name in the table of the column that wants ``name``: the same, or with the number it got beside
    another.
    """
    form = re.compile(re.escape(name) + r"(_\d+)?")
    return next((column.name for column in inferred if column.path == path and form.fullmatch(column.name)), None)


def apply_contract(
    table: TableSpec, chosen: Chosen, inferred: InferredColumns
) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Return the fields to write, and those that the contract leaves out: the new ones of a table that has columns."""
    columns = table.contract.columns if table.contract is not None else "evolve"
    paths = {column.path for column in inferred}
    asked = paths | chosen.named
    new = [f for f in chosen.fields if f.path not in asked and not f.key and f.kind is not Kind.PUBLISHED]
    if columns == "evolve" or not inferred or not new:
        return chosen.fields, ()
    if columns == "freeze":
        names = ", ".join(repr(field.name) for field in new)
        raise SchemaIncompatibleError(
            f"documents of {table.id!r} have {names}, which the table has no column for; contract.columns is 'freeze'.",
            remedy="Leave them out with contract.columns: discard, or add them with evolve.",
        )
    return tuple(field for field in chosen.fields if field not in new), tuple(new)


def add_columns(
    inferred: InferredColumns, fields: Iterable[Field], named: frozenset[tuple[str, ...]]
) -> tuple[InferredColumn, ...]:
    """Return the table's columns: those it had, then the new ones."""
    had = {(column.path, column.name) for column in inferred}
    kinds = {column.path: column.kind for column in inferred if column.kind != INCLUDED}
    new = [
        InferredColumn(
            name=field.name,
            path=field.path,
            kind=_name_kind(field, is_included=field.path in named and field.path not in kinds),
        )
        for field in fields
        if (field.path, field.name) not in had
    ]
    return (*inferred, *new)


def _name_kind(field: Field, *, is_included: bool) -> str:
    # The time in a UUID has a column beside the UUID's own, whose kind is the path's.
    return INCLUDED if is_included or field.kind is Kind.PUBLISHED else field.kind.value
