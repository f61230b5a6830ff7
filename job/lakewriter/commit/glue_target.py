"""Check a Hive-style Parquet table in the Glue Data Catalog before a load; nothing is changed in it."""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

import pyarrow as pa

from lakewriter import aws, column_types
from lakewriter.commit.change_count import require_counted
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.glue import GlueTables
from lakewriter.commit.glue_table import Columns, merge_columns
from lakewriter.commit.table_objects import is_hidden
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.actions import GlueAction
from lakewriter.records.state import TableState
from lakewriter.spec.table_spec import Partition

MOST_TYPE_TEXT: Final = 131_072
"""https://docs.aws.amazon.com/glue/latest/dg/aws-glue-api-catalog-tables.html#aws-glue-api-catalog-tables-Column"""


class GlueTargetTable:
    """The Glue table that a load finds; it is changed when the load is published, not before."""

    grows_decimals: ClassVar[bool] = False

    def __init__(self, action: GlueAction, clients: aws.Clients, pipeline: str) -> None:
        self._action, self._pipeline, tables = action, pipeline, GlueTables(clients)
        self._store, self._bucket = S3Store(clients), clients.access.bucket
        self._existing = tables.read_columns(action)
        self._is_replaced = action.root is not None
        self._number = tables.find_last_switch(action, pipeline).number if self._is_replaced else 0

    def find_location(self) -> str | None:
        """Return the layout's location: a table at another one was refused when it was read."""
        return self._action.location

    def explain_occupied(self) -> str | None:
        """See ``CatalogTable``: an object lies where queries look for the table's files."""
        if not self._existing:
            return None
        bucket, _, path = (self._action.root or self._action.location).removeprefix("s3://").partition("/")
        listed = self._store.list_entries(f"{path}/") if bucket == self._bucket else ()
        shown = (entry.key for entry in listed if not is_hidden(entry.key.removeprefix(f"{path}/")))
        key = next(shown, None)
        return f"Glue table {self._name} has files in the catalog's location, such as {key!r}" if key else None

    def list_writers(self) -> tuple[str, ...]:
        """Return no pipelines: the objects under the table's path show them."""
        return ()

    def require_counted(self, began: TableState, latest: Callable[[], TableState]) -> None:
        """See ``CatalogTable``: tables that are refreshed count their changes."""
        require_counted(f"Glue table {self._name}", self._pipeline, self._number, began, latest)

    @property
    def left(self) -> tuple[str, ...]:
        """See ``CatalogTable``."""
        return ()

    def fit_types(self, wanted: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """Return the table's types that differ from ``wanted``, both by name in lower case; none where a refresh
        replaces all files."""
        if self._is_replaced:
            return {}
        return {
            name: column_types.to_arrow_type(kind)
            for name, kind in self._existing.items()
            if name in wanted and column_types.to_glue_type(wanted[name]) != kind
        }

    def read_columns(self) -> Mapping[str, pa.DataType] | None:
        """See ``CatalogTable``."""
        return {name: column_types.to_arrow_type(kind) for name, kind in self._existing.items()} or None

    def rename(self, renames: Mapping[str, str]) -> "GlueTargetTable":
        """See ``CatalogTable``: files have their columns by name, and ``renamed_from`` is refused for them."""
        assert not renames
        return self

    def describe_changes(self, schema: pa.Schema, partition: Partition = ()) -> list[str]:
        """Say what publishing would change, a phrase for each; ``SCHEMA_INCOMPATIBLE`` where it cannot."""
        action, columns = self._action, _to_glue_columns(schema)
        changes = []
        if not self._existing:
            changes.append(f"create table {self._name} at {action.location} with {len(columns)} columns")
        elif self._is_replaced:
            changes.append(f"set the location of {self._name} to {action.location}, instead of its files before")
            changes += self._describe_replaced_columns(columns)
        else:
            changes += self._describe_column_changes(columns)
        if action.partition is not None:
            changes.append(
                f"add partition {action.partition_key}={action.partition} to {self._name}, unless it is there"
            )
        if action.projection is not None:
            changes.append(f"let Athena compute the partitions of {self._name} by {action.partition_key}")
        return changes

    def prepare(
        self,
        schema: pa.Schema,
        state: TableState,
        partition: Partition = (),
        latest: Callable[[], TableState] | None = None,
    ) -> tuple[GlueAction, pa.Schema]:
        """Return the action with the load's columns; ``SCHEMA_INCOMPATIBLE`` where they do not fit the table,
        ``STATE_LOST`` where the table counts refreshes that the state does not know."""
        columns = _to_glue_columns(schema)
        self.require_counted(state, latest or (lambda: state))
        if not self._is_replaced:
            merge_columns(self._name, list(self._existing.items()), columns)
        return self._action.model_copy(update={"columns": columns}), schema

    @property
    def _name(self) -> str:
        return f"{self._action.database}.{self._action.table}"

    def _describe_replaced_columns(self, columns: Columns) -> list[str]:
        new = dict(columns)
        dropped = [f"drop column {column} of {self._name}" for column in self._existing if column not in new]
        changed = [
            f"make column {column} of {self._name} {kind} instead of {self._existing[column]}"
            for column, kind in columns
            if self._existing.get(column, kind) != kind
        ]
        added = [
            f"add column {column} {kind} to {self._name}" for column, kind in columns if column not in self._existing
        ]
        return [*dropped, *changed, *added]

    def _describe_column_changes(self, columns: Columns) -> list[str]:
        changes = []
        for column, kind in merge_columns(self._name, list(self._existing.items()), columns):
            before = self._existing.get(column)
            if before is None:
                changes.append(f"add column {column} {kind} to {self._name}")
            elif before != kind:
                changes.append(f"widen column {column} of {self._name} from {before} to {kind}")
        return changes


def _to_glue_columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    columns = tuple((field.name.lower(), column_types.to_glue_type(field.type)) for field in schema)
    for name, kind in columns:
        if len(kind) > MOST_TYPE_TEXT:
            raise SchemaIncompatibleError(
                f"column {name!r} has a type of {len(kind):,} characters in Glue's words, and Glue takes up to "
                f"{MOST_TYPE_TEXT:,}.",
                remedy=f"Declare the column as text, which then holds JSON: columns: {{{name}: string}}.",
            )
    return columns
