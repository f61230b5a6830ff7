"""Hive-style Parquet tables in the Glue Data Catalog: looked at before a load, published after it, read back."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from job import aws, types
from job.commit.intent import GlueAction, Intent
from job.errors import CommitUnknownError, SchemaIncompatibleError

TRIES: Final = 8

_PARQUET_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_FORMAT: Final = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {
        "SerializationLibrary": _PARQUET_SERDE,
        "Parameters": {"serialization.format": "1"},
    },
}
_KEPT: Final = (
    "Name", "Description", "Owner", "Retention", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters",
)  # fmt: skip
"""What UpdateTable takes of what GetTable gives."""

Columns = Sequence[tuple[str, str]]


class GlueTables:
    """Glue, called with the destination's credentials; every call may be repeated."""

    def __init__(self, clients: aws.Clients) -> None:
        self._clients = clients

    def existing(self, action: GlueAction) -> dict[str, str]:
        """Glue types by column name, empty for a table that is not there; ``SCHEMA_INCOMPATIBLE`` for one that
        is laid out in another way."""
        table = self._table(action)
        if table is None:
            return {}
        _check_layout(table, action)
        return dict(_columns(table))

    def publish(self, intent: Intent, number: int) -> None:
        """Database, table, partition, in this order: a partition appears when all of its files are there."""
        action = _glue(intent)
        self._ensure_database(action)
        columns = self._ensure_table(action)
        if action.partition is not None:
            self._ensure_partition(action, columns)

    def read_back(self, intent: Intent) -> None:
        """Columns, types, location and partition as a query will see them."""
        action = _glue(intent)
        table = self._table(action)
        differences = ["the table is not there"] if table is None else _differences(table, action)
        if action.partition is not None and not differences:
            differences = self._partition_differences(action)
        if differences:
            raise CommitUnknownError(
                f"Glue does not show {action.database}.{action.table} as it was written: {'; '.join(differences)}.",
                remedy="Run the same job id again; look for another writer of this table.",
            )

    def clear_up(self, intent: Intent) -> None:
        """Glue keeps no files of its own."""

    def partition_location(self, action: GlueAction) -> str | None:
        """Where Glue says the partition lies, None when it has none."""
        found = self._ask(
            "GetPartition",
            action,
            absent=("EntityNotFoundException",),
            DatabaseName=action.database,
            TableName=action.table,
            PartitionValues=[action.partition],
        )
        return found["Partition"]["StorageDescriptor"]["Location"] if found else None

    def _partition_differences(self, action: GlueAction) -> list[str]:
        location = self.partition_location(action)
        if location is None:
            return [f"partition {action.partition!r} is not there"]
        if location.rstrip("/") != str(action.partition_location).rstrip("/"):
            return [f"partition {action.partition!r} lies at {location}, expected {action.partition_location}"]
        return []

    def _table(self, action: GlueAction) -> dict[str, Any] | None:
        absent = ("EntityNotFoundException",)
        found = self._ask("GetTable", action, absent=absent, DatabaseName=action.database, Name=action.table)
        return found["Table"] if found else None

    def _ensure_database(self, action: GlueAction) -> None:
        if self._ask("GetDatabase", action, absent=("EntityNotFoundException",), Name=action.database) is None:
            database = {"Name": action.database, "LocationUri": action.database_location}
            self._ask("CreateDatabase", action, absent=("AlreadyExistsException",), DatabaseInput=database)

    def _ensure_table(self, action: GlueAction) -> Columns:
        for number in range(TRIES):
            table = self._table(action)
            if table is None:
                created = self._ask(
                    "CreateTable",
                    action,
                    absent=("AlreadyExistsException",),
                    DatabaseName=action.database,
                    TableInput=_table_input(action),
                )
                if created is not None:
                    return action.columns
                continue
            _check_layout(table, action)
            merged = merge(f"{action.database}.{action.table}", _columns(table), action.columns)
            if merged == _columns(table) or self._update(action, table, merged):
                return merged
            time.sleep(0.1 * 2**number)
        raise CommitUnknownError(
            f"Glue table {action.database}.{action.table} was changed by others {TRIES} times in a row.",
            remedy="Run the same job id again.",
        )

    def _update(self, action: GlueAction, table: Mapping[str, Any], columns: Columns) -> bool:
        """False when another writer came first."""
        kept = {key: table[key] for key in _KEPT if key in table}
        kept["StorageDescriptor"] = kept["StorageDescriptor"] | {"Columns": _named(columns)}
        answer = self._ask(
            "UpdateTable",
            action,
            absent=("ConcurrentModificationException", "VersionMismatchException"),
            DatabaseName=action.database,
            TableInput=kept,
            **({"VersionId": table["VersionId"]} if "VersionId" in table else {}),
        )
        return answer is not None

    def _ensure_partition(self, action: GlueAction, columns: Columns) -> None:
        if self.partition_location(action) is not None:
            return
        storage = _FORMAT | {"Columns": _named(columns), "Location": action.partition_location}
        answer = self._ask(
            "BatchCreatePartition",
            action,
            DatabaseName=action.database,
            TableName=action.table,
            PartitionInputList=[{"Values": [action.partition], "StorageDescriptor": storage}],
        )
        for failed in answer.get("Errors", ()):
            detail = failed["ErrorDetail"]
            if detail["ErrorCode"] != "AlreadyExistsException":
                raise CommitUnknownError(
                    f"Glue did not add partition {action.partition!r} to {action.database}.{action.table} "
                    f"({detail['ErrorCode']}: {detail.get('ErrorMessage', '')}).",
                    remedy="Run the same job id again.",
                )

    def _ask(self, action: str, on: GlueAction, *, absent: tuple[str, ...] = (), **arguments: Any) -> Any:
        """The answer, or None when Glue answers with one of ``absent``."""
        method = "".join("_" + c.lower() if c.isupper() else c for c in action).lstrip("_")
        try:
            return getattr(self._clients.glue, method)(**arguments)
        except aws.ClientError as error:
            if aws.code_of(error) in absent:
                return None
            doing = f"glue:{action} on {on.database}.{on.table}"
            raise aws.explain(error, doing=doing, access=self._clients.access) from error
        except aws.BotoCoreError as error:
            doing = f"glue:{action} on {on.database}.{on.table}"
            raise aws.explain(error, doing=doing, access=self._clients.access) from error


def merge(table: str, existing: Columns, new: Columns) -> list[tuple[str, str]]:
    """The table's columns with ``new`` in them: widened in place, added at the end, never removed or narrowed."""
    wanted = dict(new)
    merged = [(name, _wider(f"{table}.{name}", kind, wanted.pop(name, kind))) for name, kind in existing]
    return [*merged, *wanted.items()]


def _wider(column: str, existing: str, new: str) -> str:
    if existing == new:
        return existing
    return types.glue_type(types.reconcile(column, types.arrow_type(new), types.arrow_type(existing)))


def _glue(intent: Intent) -> GlueAction:
    assert isinstance(intent.catalog, GlueAction)
    return intent.catalog


def _columns(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(column["Name"].lower(), column["Type"]) for column in table["StorageDescriptor"]["Columns"]]


def _named(columns: Columns) -> list[dict[str, str]]:
    return [{"Name": name, "Type": kind} for name, kind in columns]


def _table_input(action: GlueAction) -> dict[str, Any]:
    keys = [{"Name": action.partition_key, "Type": "string"}] if action.partition_key else []
    return {
        "Name": action.table,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", "classification": "parquet", "compressionType": "gzip"},
        "PartitionKeys": keys,
        "StorageDescriptor": _FORMAT | {"Columns": _named(action.columns), "Location": action.location},
    }


def _check_layout(table: Mapping[str, Any], action: GlueAction) -> None:
    keys = [(key["Name"], key["Type"]) for key in table.get("PartitionKeys", ())]
    expected = [(action.partition_key, "string")] if action.partition_key else []
    name = f"Glue table {action.database}.{action.table}"
    if keys != expected:
        raise SchemaIncompatibleError(
            f"{name} has partition keys {keys}, expected {expected}.",
            remedy="Keep partition_strategy as it was for this table, or load into another schema.",
        )
    location = table["StorageDescriptor"].get("Location", "").rstrip("/")
    if location != action.location:
        raise SchemaIncompatibleError(
            f"{name} lies at {location!r}, expected {action.location!r}.",
            remedy="Load into another schema, or drop the table from Glue if nobody needs it.",
        )
    serde = table["StorageDescriptor"].get("SerdeInfo", {}).get("SerializationLibrary", "")
    if "parquet" not in serde.lower():
        raise SchemaIncompatibleError(
            f"{name} is read by SerDe {serde!r}, expected {_PARQUET_SERDE!r}.",
            remedy="Load into another schema, or drop the table from Glue if nobody needs it.",
        )


def _differences(table: Mapping[str, Any], action: GlueAction) -> list[str]:
    shown = dict(_columns(table))
    differences = []
    for name, kind in action.columns:
        if name not in shown:
            differences.append(f"column {name!r} is not there")
        elif shown[name] != _wider(name, shown[name], kind):
            differences.append(f"column {name!r} is {shown[name]!r}, expected {kind!r}")
    location = table["StorageDescriptor"].get("Location", "").rstrip("/")
    if location != action.location:
        differences.append(f"it lies at {location!r}, expected {action.location!r}")
    return differences
