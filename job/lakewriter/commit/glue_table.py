"""Define a Hive-style Parquet table in the Glue Data Catalog, and compare an existing one with it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lakewriter import column_types
from lakewriter.commit.mismatch import Kind, Mismatch
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.naming import parse_generation
from lakewriter.records.actions import GlueAction

STRATEGY: Final = "lakewriter.partition-strategy"
"""The table parameter that names the ``partition_strategy`` a table was made with; tables of others have none."""

GENERATION_FOLDER: Final = "g" + "#" * 10
"""A folder of one full refresh's files, for messages: ``g`` and ten digits."""

_PROJECTED: Final = "projection.enabled"
_TEMPLATE: Final = "storage.location.template"
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


def merge_columns(table: str, existing: Columns, new: Columns) -> list[tuple[str, str]]:
    """Merge ``new`` columns into existing ones: types are widened in place, columns added at the end, none removed.

    ``SCHEMA_INCOMPATIBLE`` where no type holds the values of both.
    """
    wanted = dict(new)
    merged = [(name, _widen(f"{table}.{name}", kind, wanted.pop(name, kind))) for name, kind in existing]
    return [*merged, *wanted.items()]


def _widen(column: str, existing: str, new: str) -> str:
    if existing == new:
        return existing
    return column_types.to_glue_type(
        column_types.reconcile(column, column_types.to_arrow_type(new), column_types.to_arrow_type(existing))
    )


def read_columns(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return name (in lower case) and Glue type of each column of a GetTable answer."""
    return [
        (column["Name"].lower(), column.get("Type", ""))
        for column in table.get("StorageDescriptor", {}).get("Columns", ())
    ]


def to_column_inputs(columns: Columns) -> list[dict[str, str]]:
    """Return the columns as Glue's API takes them."""
    return [{"Name": name, "Type": kind} for name, kind in columns]


def keep_descriptions(table: Mapping[str, Any], columns: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the columns with what people have added to existing columns of the same name, such as comments."""
    described = {column["Name"].lower(): column for column in table.get("StorageDescriptor", {}).get("Columns", ())}
    return [{**described.get(column["Name"], {}), **column} for column in columns]


def make_table_input(action: GlueAction) -> dict[str, Any]:
    """Make the TableInput of CreateTable."""
    keys = [{"Name": action.partition_key, "Type": "string"}] if action.partition_key else []
    strategy = {STRATEGY: action.strategy} if action.strategy else {}
    return {
        "Name": action.table,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", "classification": "parquet", "compressionType": action.compression or "gzip"}
        | strategy
        | make_projection(action, action.projection.value if action.projection else ""),
        "PartitionKeys": keys,
        "StorageDescriptor": FORMAT | {"Columns": to_column_inputs(action.columns), "Location": action.location},
    }


def make_projection(action: GlueAction, start: str) -> dict[str, str]:
    """Make the parameters by which Athena computes the partitions from ``start`` to this moment, in UTC.

    https://docs.aws.amazon.com/athena/latest/ug/partition-projection-setting-up.html
    """
    projection, key = action.projection, f"projection.{action.partition_key}"
    if projection is None:
        return {}
    return {
        _PROJECTED: "true",
        f"{key}.type": "date",
        f"{key}.format": projection.format,
        f"{key}.range": f"{start},NOW",
        f"{key}.interval": "1",
        f"{key}.interval.unit": projection.unit,
        _TEMPLATE: projection.template,
    }


def read_projected_start(table: Mapping[str, Any], key: str | None) -> str | None:
    """Return the first partition that Athena computes by date; None where it computes none, or up to another moment."""
    parameters = table.get("Parameters", {})
    is_by_date = is_projected(table) and parameters.get(f"projection.{key}.type", "").strip().lower() == "date"
    start, _, end = str(parameters.get(f"projection.{key}.range", "")).partition(",")
    return start.strip() if is_by_date and end.strip() == "NOW" else None


def is_projected(table: Mapping[str, Any]) -> bool:
    """Return whether Athena computes the table's partitions."""
    return str(table.get("Parameters", {}).get(_PROJECTED, "")).lower() == "true"


def _compare_projection(table: Mapping[str, Any], action: GlueAction) -> list[Mismatch]:
    """Check that Athena, where it computes the partitions, finds that of the load at its location."""
    key, projection = action.partition_key, action.projection
    if projection is None and not is_projected(table):
        return []
    value = projection.value if projection else action.partition
    location = projection.template.replace(f"${{{key}}}", value) if projection and value else action.partition_location
    start = read_projected_start(table, key)
    template = str(table.get("Parameters", {}).get(_TEMPLATE, ""))
    computed = template.replace(f"${{{key}}}", value or "").rstrip("/") if start and value and start <= value else None
    if computed is not None and computed == str(location).rstrip("/"):
        return []
    if not is_projected(table):
        said = f"its parameter {_PROJECTED!r} is not 'true', so Athena does not compute the partitions"
    else:
        said = (
            f"its parameter {_PROJECTED!r} is 'true', so Athena computes the partitions and does not look at those "
            f"that loads add, and partition {value!r} at {location} is none of what it computes"
        )
    return [Mismatch(Kind.TABLE_CHANGED, said)]


def check_layout(table: Mapping[str, Any], action: GlueAction) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` for a table with other partition keys, location, strategy or file format."""
    if not table.get("StorageDescriptor"):
        kind = "a resource link" if table.get("TargetTable") else "a table without a StorageDescriptor, such as a view"
        raise SchemaIncompatibleError(
            f"Glue table {action.database}.{action.table} is {kind}, expected a table of Parquet files.",
            remedy="Load into another schema, or drop it from Glue if nobody needs it.",
        )
    keys = [(key["Name"], key.get("Type", "")) for key in table.get("PartitionKeys", ())]
    expected = [(action.partition_key, "string")] if action.partition_key else []
    name = f"Glue table {action.database}.{action.table}"
    if keys != expected:
        raise SchemaIncompatibleError(
            f"{name} has partition keys {keys}, expected {expected}.",
            remedy="Keep partition_strategy as it was for this table, or load into another schema.",
        )
    location = table["StorageDescriptor"].get("Location", "").rstrip("/")
    expected_location = action.location if action.root is None else f"{action.root}/{GENERATION_FOLDER}"
    if location != action.location and not _is_of_generation(location, action):
        raise SchemaIncompatibleError(
            f"{name} lies at {location!r}, expected {expected_location!r}.",
            remedy="Load into another schema, or drop the table from Glue if nobody needs it.",
        )
    # A day's location contains the locations of its hours, and may itself lie in the location of a job id such as 2024.
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


def _is_of_generation(location: str, action: GlueAction) -> bool:
    """Return whether the location is the folder of a full refresh of the table."""
    root, _, folder = location.rpartition("/")
    return root == action.root and parse_generation(folder) is not None


def describe_differences(table: Mapping[str, Any], action: GlueAction) -> list[str]:
    """List the columns, and the location, that keep a query from seeing what the load wrote."""
    mismatches = [*compare_columns(table, action), *_compare_location(table, action)]
    if action.projection is not None:
        mismatches += _compare_projection(table, action)
    return [mismatch.message for mismatch in mismatches]


def compare_table(table: Mapping[str, Any], action: GlueAction) -> list[Mismatch]:
    """List everything in the table's definition that keeps a query from seeing the load as it was written."""
    keys = [(key.get("Name"), key.get("Type")) for key in table.get("PartitionKeys", ())]
    expected = [(action.partition_key, "string")] if action.partition_key else []
    mismatches = [*compare_columns(table, action), *_compare_location(table, action)]
    mismatches += _compare_format(table.get("StorageDescriptor", {}), Kind.TABLE_CHANGED, "the table")
    if keys != expected:
        mismatches.append(Mismatch(Kind.TABLE_CHANGED, f"it has partition keys {keys}, expected {expected}"))
    return mismatches + _compare_projection(table, action)


def compare_partition(partition: Mapping[str, Any], action: GlueAction) -> list[Mismatch]:
    """List everything in the partition's definition that keeps a query from seeing its files."""
    storage = partition.get("StorageDescriptor", {})
    mismatches, location = [], storage.get("Location", "")
    if location.rstrip("/") != str(action.partition_location).rstrip("/"):
        lies = f"partition {action.partition!r} lies at {location}, expected {action.partition_location}"
        mismatches.append(Mismatch(Kind.PARTITION_CHANGED, lies))
    return mismatches + _compare_format(storage, Kind.PARTITION_CHANGED, f"partition {action.partition!r}")


def compare_columns(table: Mapping[str, Any], action: GlueAction) -> list[Mismatch]:
    """List columns of the load that the table lacks, or has with a type that does not hold their values."""
    names = [column["Name"].lower() for column in table.get("StorageDescriptor", {}).get("Columns", ())]
    shown = dict(read_columns(table)) if names else {}
    written = {name for name, _ in action.columns}
    mismatches = []
    for index, (name, kind) in enumerate(action.columns):
        if name not in shown:
            other = names[index] if index < len(names) and names[index] not in written else None
            stands = f"; {other!r} is in its place" if other else ""
            mismatches.append(Mismatch(Kind.COLUMN_GONE, f"column {name!r} is not there{stands}"))
        elif not _can_hold(shown[name], kind):
            mismatches.append(Mismatch(Kind.COLUMN_RETYPED, f"column {name!r} is {shown[name]!r}, expected {kind!r}"))
    return mismatches


def _can_hold(shown: str, kind: str) -> bool:
    """Return whether a column of Glue type ``shown`` holds values of type ``kind``."""
    try:
        return shown == _widen("", shown, kind)
    except SchemaIncompatibleError:
        return False


def _compare_location(table: Mapping[str, Any], action: GlueAction) -> list[Mismatch]:
    location = table.get("StorageDescriptor", {}).get("Location", "").rstrip("/")
    if location == action.location:
        return []
    return [Mismatch(Kind.TABLE_CHANGED, f"it lies at {location!r}, expected {action.location!r}")]


def _compare_format(storage: Mapping[str, Any], kind: Kind, what: str) -> list[Mismatch]:
    """Check that SerDe and input format are for Parquet: whichever tool made the table, their names contain it."""
    serde = storage.get("SerdeInfo", {}).get("SerializationLibrary", "")
    given = storage.get("InputFormat", "")
    read = (("SerDe", serde, _PARQUET_SERDE), ("input format", given, FORMAT["InputFormat"]))
    return [
        Mismatch(kind, f"{what} is read by {part} {name!r}, expected {expected!r}")
        for part, name, expected in read
        if "parquet" not in name.lower()
    ]
