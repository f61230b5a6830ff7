"""A Hive-style Parquet table in the Glue Data Catalog: what it is made of, and whether one that is there fits."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lakewriter import column_types
from lakewriter.commit.intent import GlueAction
from lakewriter.errors import SchemaIncompatibleError

STRATEGY: Final = "lakewriter.partition-strategy"
"""The table parameter that names the ``partition_strategy`` a table was made with; tables of others have none."""

_PARQUET_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
FORMAT: Final = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {
        "SerializationLibrary": _PARQUET_SERDE,
        "Parameters": {"serialization.format": "1"},
    },
}

Columns = Sequence[tuple[str, str]]


def merge(table: str, existing: Columns, new: Columns) -> list[tuple[str, str]]:
    """The table's columns with ``new`` in them: widened in place, added at the end, never removed or narrowed."""
    wanted = dict(new)
    merged = [(name, _wider(f"{table}.{name}", kind, wanted.pop(name, kind))) for name, kind in existing]
    return [*merged, *wanted.items()]


def _wider(column: str, existing: str, new: str) -> str:
    if existing == new:
        return existing
    return column_types.glue_type(
        column_types.reconcile(column, column_types.arrow_type(new), column_types.arrow_type(existing))
    )


def columns_of(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and type of each, names in lower case."""
    return [(column["Name"].lower(), column["Type"]) for column in table["StorageDescriptor"]["Columns"]]


def named(columns: Columns) -> list[dict[str, str]]:
    """As Glue takes them."""
    return [{"Name": name, "Type": kind} for name, kind in columns]


def table_input(action: GlueAction) -> dict[str, Any]:
    """What CreateTable takes."""
    keys = [{"Name": action.partition_key, "Type": "string"}] if action.partition_key else []
    own = {STRATEGY: action.strategy} if action.strategy else {}
    return {
        "Name": action.table,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", "classification": "parquet", "compressionType": "gzip"} | own,
        "PartitionKeys": keys,
        "StorageDescriptor": FORMAT | {"Columns": named(action.columns), "Location": action.location},
    }


def check_layout(table: Mapping[str, Any], action: GlueAction) -> None:
    """``SCHEMA_INCOMPATIBLE`` for a table that is laid out in another way."""
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
    # A day's location holds those of its hours, and may lie in that of a job id such as 2024.
    strategy = table.get("Parameters", {}).get(STRATEGY, "")
    if strategy != action.strategy and strategy and action.strategy:
        raise SchemaIncompatibleError(
            f"{name} has partition_strategy {strategy!r}, expected {action.strategy!r}: a partition of one may lie in "
            "a partition of the other, and queries would count its rows twice.",
            remedy=f"Set partition_strategy: {strategy} again, or load into another schema.",
        )
    serde = table["StorageDescriptor"].get("SerdeInfo", {}).get("SerializationLibrary", "")
    if "parquet" not in serde.lower():
        raise SchemaIncompatibleError(
            f"{name} is read by SerDe {serde!r}, expected {_PARQUET_SERDE!r}.",
            remedy="Load into another schema, or drop the table from Glue if nobody needs it.",
        )


def differences(table: Mapping[str, Any], action: GlueAction) -> list[str]:
    """What a query would not see as the load wrote it, in words."""
    shown = dict(columns_of(table))
    found = []
    for name, kind in action.columns:
        if name not in shown:
            found.append(f"column {name!r} is not there")
        elif shown[name] != _wider(name, shown[name], kind):
            found.append(f"column {name!r} is {shown[name]!r}, expected {kind!r}")
    location = table["StorageDescriptor"].get("Location", "").rstrip("/")
    if location != action.location:
        found.append(f"it lies at {location!r}, expected {action.location!r}")
    return found
