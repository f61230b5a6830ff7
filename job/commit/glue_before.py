"""A Glue table before a load: what its columns are, and what the load would change of them."""

from collections.abc import Mapping

import pyarrow as pa

from job import aws, types
from job.commit.glue import GlueTables
from job.commit.glue_table import Columns, merge
from job.commit.intent import GlueAction
from job.commit.state import TableState
from job.spec import Partition


class GlueBefore:
    """The table that one load finds; it is changed when the load is published, not before."""

    def __init__(self, action: GlueAction, clients: aws.Clients) -> None:
        self._action = action
        self._existing = GlueTables(clients).existing(action)

    def location(self) -> str | None:
        """The layout decides; a table that lies elsewhere was refused when it was looked at."""
        return self._action.location

    def occupied(self) -> str | None:
        """Its path tells."""
        return None

    def types(self, wanted: Mapping[str, pa.DataType]) -> Mapping[str, pa.DataType]:
        """Those of the table that differ from ``wanted``, both by name in lower case."""
        return {
            name: types.arrow_type(kind)
            for name, kind in self._existing.items()
            if name in wanted and types.glue_type(wanted[name]) != kind
        }

    def changes(self, schema: pa.Schema, partition: Partition = ()) -> list[str]:
        """What publishing would change, in words; ``SCHEMA_INCOMPATIBLE`` where it could not."""
        action, columns = self._action, _columns(schema)
        changes = []
        if not self._existing:
            changes.append(f"create table {self._name} at {action.location} with {len(columns)} columns")
        else:
            changes += self._column_changes(columns)
        if action.partition is not None:
            changes.append(
                f"add partition {action.partition_key}={action.partition} to {self._name}, unless it is there"
            )
        return changes

    def ready(self, schema: pa.Schema, state: TableState, partition: Partition = ()) -> tuple[GlueAction, pa.Schema]:
        """The action with the load's columns; ``SCHEMA_INCOMPATIBLE`` where they do not fit the table."""
        columns = _columns(schema)
        merge(self._name, list(self._existing.items()), columns)
        return self._action.model_copy(update={"columns": columns}), schema

    @property
    def _name(self) -> str:
        return f"{self._action.database}.{self._action.table}"

    def _column_changes(self, columns: Columns) -> list[str]:
        changes = []
        for column, kind in merge(self._name, list(self._existing.items()), columns):
            before = self._existing.get(column)
            if before is None:
                changes.append(f"add column {column} {kind} to {self._name}")
            elif before != kind:
                changes.append(f"widen column {column} of {self._name} from {before} to {kind}")
        return changes


def _columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    return tuple((field.name.lower(), types.glue_type(field.type)) for field in schema)
