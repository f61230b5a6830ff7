"""Translate Supaflow's Amazon S3 and S3 Data Lake destinations: names, paths, tracking columns."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from lakewriter.dialects.common.dialect import CheckedFile
from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.form import FormField, Provided, list_fields
from lakewriter.dialects.common.iceberg import find_roots, lay_out_iceberg, make_open_catalog
from lakewriter.dialects.common.places import require_fit_keys
from lakewriter.dialects.common.tables import choose_table_name, refuse_nested
from lakewriter.dialects.supaflow.settings import (
    AnyDestination,
    ParquetDestination,
    S3DataLakeIceberg,
    S3Parquet,
    parse_file_name,
)
from lakewriter.errors import NameCollisionError
from lakewriter.naming import join_key, name_schema, name_tables
from lakewriter.spec.catalogs import Catalog, GlueCatalog, GlueService, IcebergCatalog, NoCatalog
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec, Tracking, TrackingColumn
from lakewriter.spec.table_spec import TableSource, TableSpec

TRACKING: Final = (
    TrackingColumn(name="_supa_synced", holds=Tracking.SYNCED),
    TrackingColumn(name="_supa_deleted", holds=Tracking.DELETED),
    TrackingColumn(name="_supa_index", holds=Tracking.INDEX),
    TrackingColumn(name="_supa_id", holds=Tracking.ID),
    TrackingColumn(name="_supa_job_id", holds=Tracking.JOB_ID),
)
PARTITION_KEY: Final = "_supa_partition"
EXTENSION: Final = ".gzip.parquet"
ICEBERG_ENCODING: Final = ParquetEncoding(codec="zstd", level=3)
PARTITIONS: Final = {"NONE": "", "DAY": "{date:%Y/%m/%d}", "HOUR": "{date:%Y/%m/%d/%H}", "SYNC_ID": "{job_id}"}


def translate(file: CheckedFile[AnyDestination]) -> Spec:
    """Return the neutral Spec of a Supaflow pipeline."""
    destination = file.destination
    tables, warnings = _translate_tables(destination, [entry.make_source(file.root) for entry in file.tables])
    return Spec(
        pipeline=file.pipeline,
        dialect=destination.type,
        access=destination.make_access(prefix=join_key(destination.s3_path_prefix)),
        catalog=_make_catalog(destination),
        tracking=TRACKING,
        tables=tables,
        roots=_find_roots(destination),
        database_prefix=name_schema(destination.glue_database_prefix) if destination.glue else "",
        encoding=ICEBERG_ENCODING if isinstance(destination, S3DataLakeIceberg) else ParquetEncoding(),
        warnings=tuple(warnings),
    )


def _make_catalog(destination: AnyDestination) -> Catalog:
    if isinstance(destination, S3DataLakeIceberg):
        return IcebergCatalog(service=GlueService() if destination.glue else make_open_catalog(destination))
    if not destination.glue:
        return NoCatalog(by_hand=True)
    strategy = destination.partition_strategy
    return GlueCatalog(partition_key=None if strategy == "NONE" else PARTITION_KEY, strategy=strategy)


def _find_roots(destination: AnyDestination) -> tuple[str, ...]:
    is_iceberg = isinstance(destination, S3DataLakeIceberg)
    return find_roots(destination, destination.s3_bucket_name) if is_iceberg else ()


def make_form_fields(destination: AnyDestination) -> tuple[FormField, ...]:
    """Make the fields of the connector's form, in its order; a field that stays blank is left out."""
    connection: dict[str, str | Provided] = {
        "S3 Bucket Name": destination.s3_bucket_name,
        "Bucket Region": destination.bucket_region,
        "S3 Path Prefix": destination.s3_path_prefix,
        "IAM Role ARN": Provided.ROLE_ARN,
        "External ID": Provided.EXTERNAL_ID,
    }
    endpoint = {"Custom S3 Endpoint": destination.custom_s3_endpoint or ""}
    prefix = {"Glue Database Prefix": destination.glue_database_prefix}
    if isinstance(destination, S3Parquet):
        switch = {"Sync Schema with AWS Glue Catalog": str(destination.glue).lower()}
        parallelism = {"Upload Parallelism": str(destination.upload_parallelism)}
        values = connection | switch | prefix | _make_parquet_fields(destination) | parallelism | endpoint
    elif isinstance(destination, S3DataLakeIceberg):
        values = connection | endpoint | _make_iceberg_fields(destination) | prefix
    else:
        form = {"Table Format": destination.table_format, "Update AWS Glue Catalog": str(destination.glue).lower()}
        values = connection | endpoint | form | _make_parquet_fields(destination) | prefix
    return list_fields(values, prefix="S3 Path Prefix")


def _make_parquet_fields(destination: ParquetDestination) -> dict[str, str]:
    return {
        "Partition Strategy": destination.partition_strategy,
        "File Name Pattern": destination.file_name_pattern,
    }


def _make_iceberg_fields(destination: S3DataLakeIceberg) -> dict[str, str]:
    secret = destination.client_secret
    return {
        "Table Format": destination.table_format,
        "Iceberg Catalog": destination.iceberg_catalog,
        "Catalog Endpoint": destination.catalog_endpoint or "",
        "Catalog Name": destination.catalog_name or "",
        "Client ID": destination.client_id.text if destination.client_id else "",
        "Client Secret": secret.text if secret else "",
        "Principal Role": "" if destination.glue else destination.principal_role,
    }


def _translate_tables(
    destination: AnyDestination, sources: Sequence[TableSource]
) -> tuple[tuple[TableSpec, ...], tuple[str, ...]]:
    _refuse_twins(sources)
    schemas = [_name_schema(destination, number, source) for number, source in enumerate(sources)]
    names = _name_tables(sources, schemas)
    wanted_tables = zip(sources, schemas, names, strict=True)
    tables = [_translate_table(destination, number, *table) for number, table in enumerate(wanted_tables)]
    refuse_nested(tables, "Give the table a schema, or another destination_prefix.")
    plain = [name_tables([source.source_table])[0] for source in sources]
    warnings = [
        f"table {source.source_table!r} becomes {name!r}: {alone!r} is taken in {schema!r}."
        for source, name, alone, schema in zip(sources, names, plain, schemas, strict=True)
        if name != alone and source.written_as is None
    ]
    groups = defaultdict[tuple[str, str], set[int]](set)
    for number, table in enumerate(tables):
        groups[table.schema_name, table.name].add(number)
        groups[table.schema_name, plain[number]].add(number)
    alike = [
        sorted(groups[table.schema_name, table.name] | groups[table.schema_name, plain[number]])
        for number, table in enumerate(tables)
    ]
    return tuple(
        table.model_copy(update={"alike": tuple(tables[other].id for other in alike[number] if other != number)})
        for number, table in enumerate(tables)
    ), tuple(warnings)


def _name_tables(sources: Sequence[TableSource], schemas: Sequence[str]) -> list[str]:
    """Name each table: as lake.yaml says, or, of those that have one name in a schema, by a number in their order."""
    names = [choose_table_name(source, ("tables", number)) or "" for number, source in enumerate(sources)]
    for schema in dict.fromkeys(schemas):
        members = [number for number, other in enumerate(schemas) if other == schema]
        given = [names[number] for number in members if names[number]]
        rest = [number for number in members if not names[number]]
        wanted = [sources[number].source_table for number in rest]
        for number, name in zip(rest, name_tables(wanted, reserved=given), strict=True):
            names[number] = name
    return names


def _name_schema(destination: AnyDestination, number: int, source: TableSource) -> str:
    iceberg = isinstance(destination, S3DataLakeIceberg)
    glue = destination.glue
    # Without Glue the default prefix says nothing; one that is written down is meant.
    counts = glue or (iceberg and "glue_database_prefix" in destination.model_fields_set)
    prefix = destination.glue_database_prefix if counts else ""
    schema = name_schema(prefix, destination.destination_prefix, source.source_schema)
    if (glue or iceberg) and not schema:
        raise FaultError(
            ("tables", number),
            f"table {source.source_table!r} has no schema, and "
            f"{'Glue needs a database' if glue else 'the catalog needs a namespace'}.",
            remedy="Give glue_database_prefix, destination_prefix, or the table's schema.",
        )
    return schema


def _translate_table(
    destination: AnyDestination, number: int, source: TableSource, schema: str, name: str
) -> TableSpec:
    path = join_key(destination.s3_path_prefix, schema, name)
    table = source.make_table(
        schema_name=schema,
        name=name,
        layout=_make_layout(destination, path, len(source.partition_by)),
        path=path,
        must_be_empty=destination.destination_table_handling == "FAIL",
    )
    require_fit_keys(table, ("tables", number))
    return table


def _make_layout(destination: AnyDestination, path: str, depth: int) -> Layout:
    if isinstance(destination, ParquetDestination):
        folders = Template.parse(f"{PARTITIONS[destination.partition_strategy]}/")
        parts = (*folders.parts, *parse_file_name(destination.file_name_pattern).parts, EXTENSION)
        return Layout(path, Template.of(*parts))
    return lay_out_iceberg(path, depth, ".parquet")


def _refuse_twins(sources: Sequence[TableSource]) -> None:
    seen = set()
    for number, source in enumerate(sources):
        identity = (source.source_schema, source.source_table)
        if identity in seen:
            raise FaultError(
                ("tables", number),
                f"table {source.source_table!r} of schema {source.source_schema!r} is given twice.",
                remedy="Give each table once, or give the two different names.",
                kind=NameCollisionError,
            )
        seen.add(identity)
