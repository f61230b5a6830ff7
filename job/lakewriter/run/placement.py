"""Decide where a table's files go and what the catalog registers."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from lakewriter.aws import Clients
from lakewriter.column_types import to_glue_type
from lakewriter.commit.catalog import CatalogTable, find_catalog
from lakewriter.commit.control import Control
from lakewriter.commit.store import Store
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import (
    describe_unfit_segment,
    join_key,
    name_generation,
    normalise,
    parse_generation,
)
from lakewriter.receipts.parts import Receipts
from lakewriter.records.actions import CatalogAction, FilesAction, GlueAction, IcebergAction, Projection
from lakewriter.records.state import TableState
from lakewriter.run.prepare import Prepared
from lakewriter.shape.shapers import AnyPlan
from lakewriter.spec.access import Access, KeyNames
from lakewriter.spec.catalogs import GlueCatalog, IcebergCatalog
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Mode, TableSpec
from lakewriter.staging.quarantine import CODEC, QUARANTINE_SCHEMA
from lakewriter.staging.upload import ApartBucket

S3_SCHEMES: Final = frozenset({"s3", "s3a", "s3n"})


def number_objects(store: Store, names: ObjectNames, state: TableState) -> ObjectNames:
    """Give the names the table's backfill, counter and next generation, or the first part number that no object there
    has."""
    generation = _find_next_generation(store, names, state) if names.has_generations else 0
    names = names.number(state.backfill, state.counter, generation)
    if names.varies or "part" not in names.template.variables:
        return names
    return names.after(entry.key for entry in store.list_entries(names.prefix))


def _find_next_generation(store: Store, names: ObjectNames, state: TableState) -> int:
    """Return a number above the last full refresh's and above those of all folders: readers of the refresh would also
    see whatever already lies in its folder."""
    root = f"{join_key(names.directory)}/"
    numbers = (parse_generation(folder.removeprefix(root).rstrip("/")) for folder in store.list_folders(f"{root}g"))
    # Rule folder-of-its-own
    return max(state.generation, *(number for number in numbers if number is not None), 0) + 1


def make_ready(
    prepared: Prepared, access: Access, names: ObjectNames, state: TableState, latest: Callable[[], TableState]
) -> tuple[CatalogAction, AnyPlan, ObjectNames]:
    """Make the catalog's table ready for files. Return what to commit, how to shape, and where the files go."""
    action, schema = prepared.table.prepare(prepared.shape.schema, state, prepared.shape.partition, latest)
    if (location := action.find_data_location()) is not None:
        bucket = action.find_bucket(access.bucket)
        names = replace(names, directory=find_data_directory(location, bucket, access.key_names, names.directory))
    return action, replace(prepared.shape, schema=schema), names


def find_data_directory(location: str, expected: str, key_names: KeyNames, planned: str) -> str:
    """Find the folder of an Iceberg table's data files in the ``expected`` bucket; ``planned`` is the folder in the
    file."""
    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in S3_SCHEMES or bucket != expected:
        raise SpecInvalidError(
            f"the catalog keeps the table at {location!r}, which is not in bucket {expected!r}.",
            remedy=f"Set {key_names.bucket} to the bucket of the catalog's storage, or use another catalog.",
        )
    # The canary's table lies among the control objects.
    if join_key(key) != planned and (fault := describe_unfit_segment(key)):
        raise SpecInvalidError(
            f"the catalog keeps the table at {location!r}: the path {fault}.",
            remedy="Give the table a location of its own in the catalog.",
        )
    return join_key(key, "data")


def plan_apart(action: CatalogAction, control: Control, job_id: str, attempt: str) -> ApartBucket | None:
    """Return the bucket that the table has of its own, and where an attempt notes its uploads there."""
    if action.abilities.lists_uploads:
        return None
    notes = control.keys.uploads(job_id, attempt, control.table_id)
    return ApartBucket(action.find_bucket(""), notes)


def find_in_catalog(spec: Spec, table: TableSpec, names: ObjectNames, load: str, clients: Clients) -> CatalogTable:
    """Return the table as the catalog has it; ``load`` is the value of the objects' load metadata."""
    keys = table.merge_key if table.mode is Mode.MERGE else ()
    names_of_keys = tuple(dict.fromkeys([*keys, *map(normalise, keys)]))
    catalog = find_catalog(plan_catalog_action(spec, table, names))
    return catalog.open_table(clients, load, spec.maintenance, table.mode, names_of_keys)


def plan_catalog_action(spec: Spec, table: TableSpec, names: ObjectNames) -> CatalogAction:
    """Return the catalog action of the load, without columns: those are known once the source is open."""
    if spec.iceberg:
        return plan_iceberg_action(spec, table)
    return plan_glue_action(spec, table, names) if spec.in_glue else FilesAction()


def plan_iceberg_action(spec: Spec, table: TableSpec) -> IcebergAction:
    """Return the action of a table in an Iceberg catalog."""
    catalog = spec.catalog
    assert isinstance(catalog, IcebergCatalog)
    return IcebergAction(
        service=catalog.service,
        namespace=table.schema_name,
        table=table.name,
        location="" if catalog.service.chooses_location else spec.table_location(table),
        format_version=catalog.format_version,
    )


def plan_glue_action(spec: Spec, table: TableSpec, names: ObjectNames) -> GlueAction:
    """Return the action of a Hive table in the Glue Data Catalog."""
    location = spec.table_location(table)
    if table.layout.has_generations:
        return _plan_refreshed(spec, table, names, location)
    key, projection = spec.catalog.partition_key, _plan_projection(spec, table, names)
    adds_entry = key is not None and spec.catalog.has_entries
    return GlueAction(
        database=table.schema_name,
        database_location=location.rpartition("/")[0],
        table=table.name,
        location=location,
        columns=(),
        partition_key=key,
        strategy=spec.catalog.strategy,
        compression=_codec_beside_gzip(spec),
        # A folder may be named key=value, as Hive does.
        partition=names.folders.removeprefix(f"{key}=") if adds_entry else None,
        partition_location=f"s3://{spec.access.bucket}/{names.location}" if adds_entry else None,
        projection=projection,
    )


def _plan_projection(spec: Spec, table: TableSpec, names: ObjectNames) -> Projection | None:
    """Return how Athena computes the partitions, whose folders have a date; None where it looks them up."""
    catalog = spec.catalog
    if not isinstance(catalog, GlueCatalog) or catalog.projection is None:
        return None
    name, date_format = table.layout.template.first_variable
    assert name == "date"
    prefix = f"{catalog.partition_key}=" if names.folders.startswith(f"{catalog.partition_key}=") else ""
    return Projection(
        value=names.folders.removeprefix(prefix),
        format=re.sub("%.", lambda match: _JAVA[match[0]], date_format),
        unit="HOURS" if "%H" in date_format else "DAYS",
        template=f"{spec.table_location(table)}/{prefix}${{{catalog.partition_key}}}/",
    )


def _plan_refreshed(spec: Spec, table: TableSpec, names: ObjectNames, root: str) -> GlueAction:
    """Return the table of one full refresh: its folder is the partition, so the table has no other."""
    return GlueAction(
        database=table.schema_name,
        database_location=root.rpartition("/")[0],
        table=table.name,
        location=f"{root}/{name_generation(names.generation)}",
        columns=(),
        partition_key=None,
        compression=_codec_beside_gzip(spec),
        partition=None,
        partition_location=None,
        root=root,
    )


_JAVA: Final = {"%Y": "yyyy", "%m": "MM", "%d": "dd", "%H": "HH"}
"""Letters of dates in Java: https://docs.oracle.com/javase/8/docs/api/java/time/format/DateTimeFormatter.html"""


def plan_quarantine_action(spec: Spec, table: TableSpec) -> FilesAction | GlueAction:
    """Return the action for the table of the rows that are kept out of ``table``: in Glue if the pipeline's tables,
    Iceberg tables included, are in Glue, else files alone. Its files are plain Parquet, so that a load commits one
    Iceberg table at most."""
    if not spec.in_glue:
        return FilesAction()
    location = f"s3://{join_key(spec.access.bucket, table.quarantine or '')}"
    columns = tuple((field.name, to_glue_type(field.type)) for field in QUARANTINE_SCHEMA)
    return GlueAction(
        database=table.schema_name,
        database_location=location.rpartition("/")[0],
        table=table.names_in_catalog[-1],
        location=location,
        columns=columns,
        partition_key=None,
        compression=CODEC,
        partition=None,
        partition_location=None,
    )


def find_next_counter(names: ObjectNames, receipts: Receipts) -> int | None:
    """Return the first counter that no file of a load has, None where keys carry none."""
    if not names.counts or not receipts:
        return None
    return names.first + 1 + receipts.totals.last_seq


def _codec_beside_gzip(spec: Spec) -> str | None:
    """Return the codec of Parquet files; None for gzip, which an intent does not say."""
    codec = spec.encoding.codec if isinstance(spec.encoding, ParquetEncoding) else "gzip"
    return None if codec == "gzip" else codec
