"""An Iceberg table before a load: what its columns are, what the load would change of them, and the change itself."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from job import aws
from job.commit.iceberg.columns import arrow_types, with_ids
from job.commit.iceberg.tables import IcebergTable
from job.commit.intent import IcebergAction
from job.errors import SchemaIncompatibleError, SpecInvalidError


class IcebergBefore:
    """The table that one load finds; ``pipeline`` names the property that counts its loads."""

    def __init__(self, action: IcebergAction, clients: aws.Clients, pipeline: str) -> None:
        self._own = IcebergTable(action, clients)
        self._pipeline = pipeline
        self._found = self._own.load()

    def location(self) -> str | None:
        """The table's own; where the catalog will decide, None until there is one."""
        found = self._found.location().rstrip("/") if self._found else self._own.action.location
        return found or None

    def types(self, wanted: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """What each column of ``wanted`` has to become, by name in lower case: Iceberg has no integer below 32 bits."""
        known = arrow_types(self._found.schema()) if self._found else {}
        types = {name: known.get(name, widened(t)) for name, t in wanted.items()}
        return {name: t for name, t in types.items() if t != wanted[name]}

    def changes(self, schema: pa.Schema) -> list[str]:
        """What ``ready`` would do, in words; ``SCHEMA_INCOMPATIBLE`` where it could not."""
        name, action = self._own.name, self._own.action
        if self._found is None:
            where = f" at {action.location}" if action.location else ""
            return [f"create Iceberg table {name}{where} with {len(schema)} columns"]
        before = {field.name: field for field in self._found.schema().fields}
        after = union(self._found, schema, name)
        told = []
        for field in after.fields:
            old = before.get(field.name)
            if old is None:
                told.append(f"add column {field.name} {field.field_type} to {name}")
            elif old.field_type != field.field_type:
                told.append(f"widen column {field.name} of {name} from {old.field_type} to {field.field_type}")
            elif old.required and field.optional:
                told.append(f"make column {field.name} of {name} optional")
        return told

    def ready(self, schema: pa.Schema, committed: int) -> tuple[IcebergAction, pa.Schema]:
        """The table made and evolved: its action, and ``schema`` with the table's field ids.

        ``committed`` is how many loads of this pipeline the state counts.
        """
        optional = pa.schema([field.with_nullable(True) for field in schema])
        table = self._own.make(optional)
        self._check_count(table, committed)

        def fits(seen: Table) -> bool:
            return union(seen, optional, self._own.name).as_struct() == seen.schema().as_struct()

        def evolve(seen: Table) -> None:
            with seen.update_schema(case_sensitive=False) as update:
                update.union_by_name(optional)

        table = self._own.change(table, fits, evolve)
        made = {
            "location": table.location().rstrip("/"),
            "uuid": str(table.metadata.table_uuid),
            "schema_id": table.schema().schema_id,
        }
        return self._own.action.model_copy(update=made), with_ids(schema, table.schema())

    def _check_count(self, table: Table, committed: int) -> None:
        key = counter(self._pipeline)
        counted = int(table.properties.get(key, 0))
        if counted > committed:
            raise SpecInvalidError(
                f"table {self._own.name} has {counted} loads of pipeline {self._pipeline!r} by its property {key!r}, "
                f"and the state knows of {committed}.",
                remedy="Restore the control objects, or give the pipeline another name: two cannot share one.",
            )


def counter(pipeline: str) -> str:
    """The table property that holds the number of the pipeline's last load in the table."""
    return f"lakewriter.{pipeline}"


def union(table: Table, schema: pa.Schema, name: str) -> Schema:
    """The table's schema with ``schema`` in it, by Iceberg's rules; ``SCHEMA_INCOMPATIBLE`` names the column."""
    columns = {field.name.lower(): field for field in table.schema().fields}
    for field in schema:
        try:
            _union(table, pa.schema([field]))
        except (ValidationError, ResolveError, ValueError) as error:
            old = columns[field.name.lower()].field_type
            raise SchemaIncompatibleError(
                f"column {field.name!r} of {name} is {str(old)!r}, the source's is {str(field.type)!r}, "
                f"and Iceberg does not make one of the other ({error}).",
                remedy=f"Declare a type that fits, columns: {{{field.name}: ...}}, or load into a new table.",
            ) from error
    return _union(table, schema)


def _union(table: Table, schema: pa.Schema) -> Schema:
    transaction = table.transaction()
    update: Any = transaction.update_schema(case_sensitive=False)
    update.union_by_name(schema)
    update.commit()
    evolved: Schema = transaction.table_metadata.schema()
    return evolved


def widened(t: pa.DataType) -> pa.DataType:
    """``t`` with 32-bit integers for shorter ones, at any depth."""
    if pt.is_int8(t) or pt.is_int16(t):
        return pa.int32()
    if pt.is_struct(t):
        return pa.struct([field.with_type(widened(field.type)) for field in t])
    if pt.is_map(t):
        return pa.map_(widened(t.key_type), widened(t.item_type))
    return pa.list_(t.value_field.with_type(widened(t.value_type))) if pt.is_list(t) else t
