"""Make partition specs of Iceberg tables, check them, and make the partitions of a load's files."""

from typing import cast

from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType, StructType

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.receipt import Receipt
from lakewriter.shape.partitions import to_manifest_value
from lakewriter.spec.table_spec import Partition


def make_partition_spec(schema: Schema, partition: Partition) -> PartitionSpec:
    """Make the partition spec of a table with these columns."""
    return PartitionSpec(
        *(
            PartitionField(
                source_id=schema.find_field(field.column, case_sensitive=False).field_id,
                field_id=PARTITION_FIELD_ID_START + index,
                transform=parse_transform(field.transform),
                name=field.name,
            )
            for index, field in enumerate(partition)
        )
    )


def check_partitioned(table: Table, partition: Partition, name: str) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` for a table with other partition fields; their names may differ."""
    schema = table.schema()
    fields = [(schema.find_column_name(field.source_id), str(field.transform)) for field in table.spec().fields]
    wanted = [(field.column, field.transform) for field in partition]
    if [(str(column).lower(), how) for column, how in fields] != [(column.lower(), how) for column, how in wanted]:
        existing = ", ".join(f"{how} of {column}" for column, how in fields) or "nothing"
        raise SchemaIncompatibleError(
            f"table {name} is partitioned by {existing}, and partition_by is [{', '.join(map(str, partition))}].",
            remedy="Give partition_by as the table has it, change the table's partition fields (ALTER TABLE ... ADD or "
            "DROP PARTITION FIELD), or load another table.",
        )


def require_one_spec(table: Table, name: str) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE`` for a table with files of earlier partition fields: one of these may have rows of
    several of today's partitions."""
    snapshot = table.current_snapshot()
    manifests = snapshot.manifests(table.io) if snapshot else []
    live = [manifest for manifest in manifests if manifest.has_added_files() or manifest.has_existing_files()]
    earlier = {manifest.partition_spec_id for manifest in live} - {table.spec().spec_id}
    if earlier:
        raise SchemaIncompatibleError(
            f"table {name} has files that were partitioned in another way (by {table.specs()[min(earlier)]}): which of "
            "today's partitions their rows are in cannot be known.",
            remedy="Rewrite them (Spark: CALL system.rewrite_data_files), or use mode: refresh once.",
        )


def make_partition(receipt: Receipt, partition_type: StructType) -> Record:
    """Make the file's partition as a manifest has it, with dates and timestamps as numbers."""
    return Record(
        *(
            to_manifest_value(value, cast(PrimitiveType, field.field_type))
            for field, value in zip(partition_type.fields, receipt.partition_values, strict=True)
        )
    )
