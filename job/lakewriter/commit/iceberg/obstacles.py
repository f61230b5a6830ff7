"""Find what keeps a load from being appended to an Iceberg table that others have changed, before a byte is staged."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from io import BytesIO
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.types as pt
from pyiceberg.io import FileIO, InputFile, OutputFile, OutputStream
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestFile
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table import Table, TableProperties
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.update import update_table_metadata
from pyiceberg.typedef import Record
from pyiceberg.utils.properties import property_as_int

from lakewriter.commit.iceberg.catalog_errors import explain_limits
from lakewriter.commit.iceberg.file_io import split
from lakewriter.commit.iceberg.iceberg_columns import ManifestStatistics
from lakewriter.commit.iceberg.iceberg_tables import drop_history
from lakewriter.commit.iceberg.manifests import StreamedAppend
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.changes import Intent

_UNSET: Final = "ALTER TABLE {} UNSET TBLPROPERTIES ('{}')"
_RETRY_PROPERTIES: Final = (
    TableProperties.COMMIT_NUM_RETRIES,
    TableProperties.COMMIT_MIN_RETRY_WAIT_MS,
    TableProperties.COMMIT_MAX_RETRY_WAIT_MS,
    TableProperties.COMMIT_TOTAL_RETRY_TIME_MS,
)


def require_writable(
    table: Table, schema: pa.Schema, bucket: str, name: str, keys: Collection[str] = frozenset()
) -> None:
    """Raise ``SCHEMA_INCOMPATIBLE``, with what to do, where a load of these columns could not be committed. ``keys``,
    in lower case, are the columns that have a value in every row.

    What the specification leaves to a writer, such as the sort order, is no obstacle; nor are branches and tags.
    """
    for fact, mend in (*_find_table_obstacles(table, bucket, name), *_find_column_obstacles(table, schema, name, keys)):
        raise SchemaIncompatibleError(f"Iceberg table {name} {fact}.", remedy=f"{mend}, or load into another table.")
    with explain_limits(f"append to {name}"):
        _rehearse_append(table)


def require_changeable(table: Table, bucket: str, name: str) -> None:
    """Raise the same for a change that brings no columns, such as an undo or a compaction, before it is bound."""
    for fact, mend in _find_table_obstacles(table, bucket, name):
        raise SchemaIncompatibleError(f"Iceberg table {name} {fact}.", remedy=f"{mend}.")
    with explain_limits(f"change {name}"):
        _rehearse_append(table)


def require_committable(table: Table, intent: Intent, written: Schema, name: str) -> None:
    """Raise the same for a load whose files are staged; ``written`` is the schema that they were encoded with."""
    bucket = intent.bucket
    for fact, mend in (
        *_find_table_obstacles(table, bucket, name),
        *_find_changed_columns(table, intent, written, name),
    ):
        raise SchemaIncompatibleError(f"Iceberg table {name} {fact}.", remedy=f"{mend}.")


def _find_table_obstacles(table: Table, bucket: str, name: str) -> Iterator[tuple[str, str]]:
    properties, metadata = table.properties, table.metadata
    if isinstance(metadata, TableMetadataV3) and metadata.next_row_id is None:
        yield (
            f"has format version {metadata.format_version} without next-row-id, which gives new rows their ids",
            "Write its metadata again with an engine that sets it, such as Spark",
        )
    if key := properties.get("encryption.key-id"):
        yield (
            f"is encrypted with key {key!r} (encryption.key-id), which this writer does not support",
            _UNSET.format(name, "encryption.key-id"),
        )
    if provider := properties.get(TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL):
        yield (
            f"wants Python code, {provider!r}, to choose its locations, and no code that a table names is run",
            _UNSET.format(name, TableProperties.WRITE_PY_LOCATION_PROVIDER_IMPL),
        )
        return
    location = table.location_provider().new_metadata_location("")
    if not location.startswith(("s3://", "s3a://", "s3n://")) or split(location)[0] != bucket:
        yield (
            f"keeps its metadata in {location!r}, expected a location in bucket {bucket!r}",
            _UNSET.format(name, TableProperties.WRITE_METADATA_PATH),
        )


def _find_column_obstacles(
    table: Table, schema: pa.Schema, name: str, keys: Collection[str]
) -> Iterator[tuple[str, str]]:
    existing = table.schema()
    if identifiers := list_identifiers(existing).difference(keys):
        columns = ", ".join(sorted(identifiers))
        yield (
            f"has identifier fields ({columns}), which allow no null, and a load may bring nulls",
            f"ALTER TABLE {name} DROP IDENTIFIER FIELDS {columns}",
        )
    written = {path.lower() for field in schema for path in _list_paths(field.name, field.type)}
    for column in _list_required(existing):
        parent = column.rpartition(".")[0]
        if column not in written and (not parent or parent in written):
            yield (
                f"requires column {column!r}, which the load does not write",
                f"ALTER TABLE {name} ALTER COLUMN {column} DROP NOT NULL",
            )
    for field in existing.fields:
        if field.write_default != field.initial_default and field.name.lower() not in written:
            yield (
                f"has column {field.name!r}, which the load does not write: new rows must have its default "
                f"{field.write_default!r}, and readers would find {field.initial_default!r}",
                "Load that column as well",
            )
    with explain_limits(f"read {TableProperties.DEFAULT_NAME_MAPPING} of {name}"):
        table.name_mapping()


def list_identifiers(schema: Schema) -> frozenset[str]:
    """Return the columns that are the table's identifier fields, in lower case."""
    return frozenset(str(schema.find_column_name(field_id)).lower() for field_id in schema.identifier_field_ids)


def _list_required(schema: Schema) -> Iterator[str]:
    for field_id, field in index_by_id(schema).items():
        if field.required:
            yield str(schema.find_column_name(field_id)).lower()


def _list_paths(path: str, t: pa.DataType) -> Iterator[str]:
    """Names of a column and of all within it, as Iceberg spells them."""
    yield path
    if pt.is_struct(t):
        for field in t:
            yield from _list_paths(f"{path}.{field.name}", field.type)
    elif pt.is_map(t):
        yield from _list_paths(f"{path}.key", t.key_type)
        yield from _list_paths(f"{path}.value", t.item_type)
    elif pt.is_list(t):
        yield from _list_paths(f"{path}.element", t.value_type)


def _find_changed_columns(table: Table, intent: Intent, written: Schema, name: str) -> Iterator[tuple[str, str]]:
    """Yield changes of columns since the files were encoded, and what to do about each.

    A column that was dropped is no obstacle: its values are not read.
    """
    before, now = index_by_id(written), index_by_id(table.schema())
    ids = {str(table.schema().find_column_name(field_id)).lower(): field_id for field_id in now}
    for field_id in before:
        path = str(written.find_column_name(field_id)).lower()
        if ids.get(path, field_id) != field_id:
            yield (
                f"has another column of the name {path!r} (field id {ids[path]}) than load {intent.job_id!r} wrote "
                f"(field id {field_id}): what it wrote would not be read by this name",
                f"Rename that column, and field id {field_id} back if it is still there",
            )
    required = {field_id for field_id, field in now.items() if field.required}
    # This reads the statistics of all files, so it is done only where a column allows no null.
    nulls = _count_nulls(intent, written) if required else {}
    for field_id in required:
        column, count = table.schema().find_column_name(field_id), nulls.get(field_id, 0)
        if field_id not in before or count:
            what = f"has {count} nulls in it" if count else "did not write it"
            yield (
                f"requires column {column!r}, and load {intent.job_id!r} {what}",
                f"ALTER TABLE {name} ALTER COLUMN {column} DROP NOT NULL",
            )


def _count_nulls(intent: Intent, written: Schema) -> Mapping[int, int]:
    statistics, counts = ManifestStatistics(written), Counter[int]()
    for receipt in intent.files:
        counts.update(statistics.count_nulls(receipt.columns))
    return counts


def _rehearse_append(table: Table) -> None:
    """Do everything that the library does for an append except the commit, so that its errors are raised now."""
    properties = table.properties
    for setting in _RETRY_PROPERTIES:
        property_as_int(properties, setting)
    trial = drop_history(table, _Rehearsal(table.io))
    transaction = trial.transaction()
    _TrialAppend(transaction, trial.io, lambda: iter([_make_any_file(table)]), {}).commit()
    update_table_metadata(trial.metadata, transaction._updates, metadata_location=table.metadata_location)


def _make_any_file(table: Table) -> DataFile:
    spec = table.spec()
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{table.location().rstrip('/')}/data/rehearsal.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(*(None for _ in spec.fields)),
        record_count=1,
        file_size_in_bytes=1,
    )
    file.spec_id = spec.spec_id
    return file


class _TrialAppend(StreamedAppend):
    """An append that reads its settings, and not the manifests that it might merge."""

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        return manifests


class _Rehearsal(FileIO):
    """A ``FileIO`` that reads files and writes none."""

    def __init__(self, io: FileIO) -> None:
        super().__init__({})
        self._io = io

    def new_input(self, location: str) -> InputFile:
        return self._io.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        return _Nowhere(location, self._io)

    def delete(self, location: Any) -> None:
        """Do nothing: no file was written."""


class _Nowhere(OutputFile):
    def __init__(self, location: str, io: FileIO) -> None:
        super().__init__(location)
        self._io = io

    def __len__(self) -> int:
        return 0

    def exists(self) -> bool:
        return False

    def to_input_file(self) -> InputFile:
        return self._io.new_input(self.location)

    def create(self, overwrite: bool = False) -> OutputStream:
        return cast(OutputStream, BytesIO())
