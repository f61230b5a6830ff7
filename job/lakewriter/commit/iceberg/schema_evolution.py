"""Plan what a load changes in an Iceberg table's columns, and change them before files are encoded."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.types as pt
from pyiceberg.exceptions import ResolveError, ValidationError
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from lakewriter import aws
from lakewriter.commit.change_count import list_pipelines, read_count, require_counted
from lakewriter.commit.iceberg.glue_optimizers import Upkeep
from lakewriter.commit.iceberg.iceberg_columns import add_field_ids, to_arrow_types
from lakewriter.commit.iceberg.iceberg_tables import IcebergTable, drop_history
from lakewriter.commit.iceberg.merge import LOWEST, describe_read, require_mergeable
from lakewriter.commit.iceberg.obstacles import list_identifiers, require_changeable, require_writable
from lakewriter.commit.iceberg.partition_specs import check_partitioned, require_one_spec
from lakewriter.commit.iceberg.renaming import find_renamed, restore_names, view_renamed
from lakewriter.commit.iceberg.snapshot_presence import gives_up
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.actions import IcebergAction
from lakewriter.records.state import TableState
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.readers import WHO_NOTICES
from lakewriter.spec.table_spec import Mode, Partition

_DIFFER: Final = (ValidationError, ResolveError, ValueError)
"""PyIceberg's errors for columns that do not fit the table's."""


class IcebergTargetTable:
    """The Iceberg table that a load finds; ``load`` is ``{pipeline}/{job_id}/{attempt}``.

    ``maintenance`` is the upkeep that the load sets, ``mode`` its effect on existing rows; ``keys`` are the columns
    that have a value in every loaded row.
    """

    grows_decimals: ClassVar[bool] = True

    def __init__(
        self,
        action: IcebergAction,
        clients: aws.Clients,
        load: str,
        maintenance: Maintenance | None = None,
        mode: Mode = Mode.APPEND,
        keys: tuple[str, ...] = (),
    ) -> None:
        self._keys = frozenset(key.lower() for key in keys)
        self._mode = mode
        self._table = IcebergTable(action, clients, load)
        self._upkeep = Upkeep(maintenance, self._table, clients) if maintenance else None
        self._pipeline, self._job_id, _ = load.split("/")
        # The shape of the load is planned by it. ``prepare`` loads the table again: others may have changed it while
        # the source was opened, and nothing is staged for a table that takes no load any more.
        self._existing = self._table.load()
        self._renames: Mapping[str, str] = {}
        self._fit: tuple[str, pa.Schema, Partition] | None = None

    def find_location(self) -> str | None:
        """See ``CatalogTable``; None where the catalog chooses the location and has no such table yet."""
        location = self._existing.location().rstrip("/") if self._existing else self._table.action.location
        return location or None

    def explain_occupied(self) -> str | None:
        """See ``CatalogTable``: the table has snapshots, other than those that give a change up."""
        if self._existing is None or self._existing.current_snapshot() is None:
            return None
        number = sum(not gives_up(snapshot) for snapshot in self._existing.snapshots())
        return f"Iceberg table {self._table.name} has {number} snapshots in the catalog" if number else None

    def list_writers(self) -> tuple[str, ...]:
        """See ``CatalogTable``."""
        return list_pipelines(self._existing.properties) if self._existing is not None else ()

    def require_counted(self, began: TableState, latest: Callable[[], TableState]) -> None:
        """See ``CatalogTable``."""
        if self._existing is not None:
            require_all_counted(self._existing, self._pipeline, began, latest)

    @property
    def left(self) -> tuple[str, ...]:
        """See ``CatalogTable``."""
        return tuple(self._table.left)

    def fit_types(self, wanted: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """See ``CatalogTable``; Iceberg has no integer below 32 bits."""
        existing = self.read_columns() or {}
        types = {
            name: grow_decimals(existing[name], t) if name in existing else widen_integers(t)
            for name, t in wanted.items()
        }
        return {name: t for name, t in types.items() if t != wanted[name]}

    def read_columns(self) -> dict[str, pa.DataType] | None:
        """See ``CatalogTable``."""
        return to_arrow_types(self._view(self._existing).schema()) if self._existing else None

    def rename(self, renames: Mapping[str, str]) -> "IcebergTargetTable":
        """See ``CatalogTable``."""
        self._renames = renames
        return self

    def _view(self, table: Table) -> Table:
        """Return the table as it is once the load has renamed its columns."""
        return view_renamed(table, find_renamed(table, self._renames))

    def describe_changes(self, schema: pa.Schema, partition: Partition = ()) -> list[str]:
        """Say what ``prepare`` would do, a phrase for each; ``SCHEMA_INCOMPATIBLE`` where it cannot."""
        name, action = self._table.name, self._table.action
        if self._existing is None:
            version = f" of format version {action.format_version}" if action.format_version > LOWEST else ""
            where = version + (f" at {action.location}" if action.location else "")
            how = f", partitioned by {', '.join(map(str, partition))}" if partition else ""
            upkeep = self._upkeep.describe(None) if self._upkeep else []
            return [f"create Iceberg table {name}{where} with {len(schema)} columns{how}", *upkeep]
        self._table.require_version(self._existing)
        renamed, view = find_renamed(self._existing, self._renames), self._view(self._existing)
        self._require_fit(self._existing, view, schema, partition)
        before = {field.name: field for field in view.schema().fields}
        after = merge_schema(view, self._relax(view, schema), name)
        changes = [
            f"rename column {column.before} of {name} to {column.after} in the commit of the load: {WHO_NOTICES}"
            for column in renamed
        ]
        if self._mode is Mode.REPLACE_PARTITIONS:
            changes.append(f"replace the partitions of {name} that the load has rows for, and keep the others")
        if self._mode is Mode.MERGE:
            changes.append(
                f"merge rows into {name} by key: the newest row of a key stays; {describe_read(self._existing)}"
            )
        for field in after.fields:
            old = before.get(field.name)
            if old is None:
                changes.append(f"add column {field.name} {field.field_type} to {name}")
            elif old.field_type != field.field_type:
                changes.append(f"widen column {field.name} of {name} from {old.field_type} to {field.field_type}")
            elif old.required and field.optional:
                changes.append(f"make column {field.name} of {name} optional")
        return changes + (self._upkeep.describe(self._existing) if self._upkeep else [])

    def prepare(
        self,
        schema: pa.Schema,
        state: TableState,
        partition: Partition = (),
        latest: Callable[[], TableState] | None = None,
    ) -> tuple[IcebergAction, pa.Schema]:
        """Create and evolve the table; return its action, and ``schema`` with the table's field ids."""
        table = self._table.make(pa.schema([field.with_nullable(True) for field in schema]), partition)
        view = self._view(table)
        self._require_fit(table, view, schema, partition)
        optional = self._relax(view, schema)
        require_all_counted(table, self._pipeline, state, latest or (lambda: state))
        running = state.running.get(self._job_id)
        if running and running.first:
            table = self._table.clear_up_fenced(table, f"{self._pipeline}/{self._job_id}/", running.first)
        if self._upkeep:
            table = self._upkeep.keep(table)

        def fits(seen: Table) -> bool:
            view = self._view(seen)
            return merge_schema(view, optional, self._table.name).as_struct() == view.schema().as_struct()

        def evolve(seen: Table) -> None:
            with seen.update_schema(case_sensitive=False) as update:
                update.union_by_name(restore_names(optional, find_renamed(seen, self._renames)))

        table = self._table.change(table, fits, evolve)
        action = _describe(table, self._table.action).model_copy(update={"renamed": find_renamed(table, self._renames)})
        return action, add_field_ids(schema, self._view(table).schema())

    def _relax(self, table: Table, schema: pa.Schema) -> pa.Schema:
        """Return the schema with columns that allow null, but for the table's identifier fields, which never do."""
        identifiers = list_identifiers(table.schema())
        return pa.schema([field.with_nullable(field.name.lower() not in identifiers) for field in schema])

    def _require_fit(self, table: Table, view: Table, schema: pa.Schema, partition: Partition) -> None:
        """Raise ``SCHEMA_INCOMPATIBLE`` where the load could not be committed to the table, which the load sees as
        ``view``. A version that was found fit once is fit: no metadata file is ever replaced."""
        version, name = (table.metadata_location, schema, partition), self._table.name
        if version != self._fit:
            check_partitioned(view, partition, name)
            if self._mode is Mode.REPLACE_PARTITIONS:
                require_one_spec(view, name)
            require_writable(view, schema, self._table.find_bucket(view), name, self._keys)
            if self._mode is Mode.MERGE:
                require_mergeable(table)
            self._fit = version


def require_all_counted(table: Table, pipeline: str, began: TableState, latest: Callable[[], TableState]) -> None:
    """Raise ``STATE_LOST`` where the table has more changes of this pipeline than the state knows."""
    name = ".".join(table.name())
    require_counted(f"table {name}", pipeline, count_loads(table, pipeline), began, latest)


def open_changeable(
    action: IcebergAction, clients: aws.Clients, load: str, read_state: Callable[[], TableState]
) -> tuple[Table, IcebergAction] | None:
    """Open a table for a change that brings no columns, with the action of its present location, schema and partition
    spec; None where there is no table. ``load`` is the value of the load metadata of what this writes.

    ``STATE_LOST`` where the table has more changes of the pipeline than its state.
    """
    state = read_state()
    in_catalog = IcebergTable(action, clients, load)
    table = in_catalog.load()
    if table is None:
        return None
    require_all_counted(table, load.partition("/")[0], state, read_state)
    require_changeable(table, in_catalog.find_bucket(table), f"{action.namespace}.{action.table}")
    return table, _describe(table, action)


def _describe(table: Table, action: IcebergAction) -> IcebergAction:
    """Return the action with what the table is now."""
    made = {
        "location": table.location().rstrip("/"),
        "uuid": str(table.metadata.table_uuid),
        "schema_id": table.schema().schema_id,
        "spec_id": table.spec().spec_id,
        "sequence": table.metadata.next_sequence_number(),
    }
    return action.model_copy(update=made)


def count_loads(table: Table, pipeline: str) -> int:
    """Return the number of the pipeline's last load in the table; ``SCHEMA_INCOMPATIBLE`` where it is not a number."""
    return read_count(table.properties, pipeline, f"Iceberg table {'.'.join(table.name())}")


def merge_schema(table: Table, schema: pa.Schema, name: str) -> Schema:
    """Merge ``schema`` into the table's schema by Iceberg's ``union_by_name``; ``SCHEMA_INCOMPATIBLE`` names the first
    column that does not fit."""
    trial = drop_history(table)
    try:
        return _merge_schema(trial, schema)
    except _DIFFER:
        _refuse_column(trial, schema, name)
        raise


def _refuse_column(table: Table, schema: pa.Schema, name: str) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` for the first column that by itself does not fit."""
    columns = {field.name.lower(): field for field in table.schema().fields}
    for field in schema:
        try:
            _merge_schema(table, pa.schema([field]))
        except _DIFFER as error:
            old = columns[field.name.lower()].field_type
            raise SchemaIncompatibleError(
                f"column {field.name!r} of {name} is {str(old)!r}, the source's is {str(field.type)!r}, "
                f"and Iceberg does not make one of the other ({error}).",
                remedy=f"Declare a type that fits, columns: {{{field.name}: ...}}, or load into a new table.",
            ) from error


def _merge_schema(table: Table, schema: pa.Schema) -> Schema:
    transaction = table.transaction()
    update: Any = transaction.update_schema(case_sensitive=False)
    update.union_by_name(schema)
    update.commit()
    evolved: Schema = transaction.table_metadata.schema()
    return evolved


def grow_decimals(existing: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """Return ``existing`` with the precision of a decimal of ``wanted`` where it is higher at the same scale, at any
    depth."""
    if pt.is_decimal(existing) and pt.is_decimal(wanted):
        grows = wanted.scale == existing.scale and wanted.precision > existing.precision
        return wanted if grows else existing
    if pt.is_struct(existing) and pt.is_struct(wanted):
        wanted_types = {field.name.lower(): field.type for field in wanted}
        return pa.struct(
            [
                field.with_type(grow_decimals(field.type, wanted_types.get(field.name.lower(), field.type)))
                for field in existing
            ]
        )
    if pt.is_map(existing) and pt.is_map(wanted):
        return pa.map_(existing.key_type, grow_decimals(existing.item_type, wanted.item_type))
    if pt.is_list(existing) and pt.is_list(wanted):
        return pa.list_(existing.value_field.with_type(grow_decimals(existing.value_type, wanted.value_type)))
    return existing


def widen_integers(t: pa.DataType) -> pa.DataType:
    """Return ``t`` with 32-bit integers for shorter ones, at any depth."""
    if pt.is_int8(t) or pt.is_int16(t):
        return pa.int32()
    if pt.is_struct(t):
        return pa.struct([field.with_type(widen_integers(field.type)) for field in t])
    if pt.is_map(t):
        return pa.map_(widen_integers(t.key_type), widen_integers(t.item_type))
    return pa.list_(t.value_field.with_type(widen_integers(t.value_type))) if pt.is_list(t) else t
