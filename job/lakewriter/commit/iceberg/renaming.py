"""Rename columns of an Iceberg table in the commit of the load that first brings them under their new names.

The load's files have the new names and the ids of the columns. The table has the old names until the commit.
"""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction

from lakewriter.commit.iceberg.iceberg_tables import drop_history
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.actions import RenamedColumn


def find_renamed(table: Table, renames: Mapping[str, str]) -> tuple[RenamedColumn, ...]:
    """Return the columns that still have the names before, by ``renames`` of names before to those after.

    Raises:
        SchemaIncompatibleError: The table has both columns of a pair, or neither.
    """
    return tuple(_walk_renamed(table, renames))


def _walk_renamed(table: Table, renames: Mapping[str, str]) -> Iterator[RenamedColumn]:
    name, fields = ".".join(table.name()[-2:]), {field.name.lower(): field for field in table.schema().fields}
    for before, after in renames.items():
        old, new = fields.get(before.lower()), fields.get(after.lower())
        if old is not None and new is not None:
            raise SchemaIncompatibleError(
                f"Iceberg table {name} has columns {old.name!r} and {new.name!r}, and renamed_from says that these are "
                "one.",
                remedy=f"Leave renamed_from out of {after!r}: both stay as they are. Or drop {new.name!r}, if nobody "
                f"needs its values: ALTER TABLE {name} DROP COLUMN {new.name}.",
            )
        if old is None and new is None:
            raise SchemaIncompatibleError(
                f"Iceberg table {name} has no column {before!r} to rename to {after!r}, nor {after!r}; it has "
                f"{', '.join(map(repr, fields))}.",
                remedy="Give renamed_from the column's name in the table, or leave it out: the column is then added.",
            )
        if old is not None:
            yield RenamedColumn(field_id=old.field_id, before=old.name, after=after)


def rename_fields(schema: Schema, renamed: Sequence[RenamedColumn]) -> Schema:
    """Return a schema with the names after."""
    if not renamed:
        return schema
    names = {column.field_id: column.after for column in renamed}
    fields = (field.model_copy(update={"name": names.get(field.field_id, field.name)}) for field in schema.fields)
    return Schema(*fields, schema_id=schema.schema_id, identifier_field_ids=schema.identifier_field_ids)


def view_renamed(table: Table, renamed: Sequence[RenamedColumn]) -> Table:
    """Return the table as its catalog has it, but for the names of its columns, to be read and not changed."""
    if not renamed:
        return table
    transaction = drop_history(table).transaction()
    try:
        rename_columns(transaction, renamed)
    except ValueError as error:
        names = " and ".join(f"{column.before!r} to {column.after!r}" for column in renamed)
        raise SchemaIncompatibleError(
            f"Iceberg table {'.'.join(table.name()[-2:])} does not take the renaming of {names}: {error}.",
            remedy="Give the column another name under names:, or leave renamed_from out: the column is then added.",
        ) from error
    made = transaction.table_metadata
    metadata = table.metadata.model_copy(update={"schemas": made.schemas, "current_schema_id": made.current_schema_id})
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def restore_names(schema: pa.Schema, renamed: Sequence[RenamedColumn]) -> pa.Schema:
    """Return a load's columns under the names that the table has before the commit."""
    names = {column.after.lower(): column.before for column in renamed}
    return pa.schema([field.with_name(names.get(field.name.lower(), field.name)) for field in schema])


def rename_columns(transaction: Transaction, renamed: Sequence[RenamedColumn]) -> None:
    """Rename the columns that still have their names before; one that another writer has dropped or named otherwise
    stays as it is, and the load's values are found by its id."""
    schema = transaction.table_metadata.schema()
    due = [column for column in renamed if schema.find_column_name(column.field_id) == column.before]
    if due:
        with transaction.update_schema() as update:
            for column in due:
                update.rename_column((column.before,), column.after)
