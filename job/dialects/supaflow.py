"""What Supaflow's Amazon S3 and S3 Data Lake destinations mean: names, paths, tracking columns."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from job.dialects.form import FormField, Provided
from job.dialects.supaflow_form import (
    LOOPBACK,
    ParquetDestination,
    S3DataLakeParquet,
    SupaflowDestination,
    file_template,
)
from job.dialects.tables import TableSource
from job.errors import NameCollisionError, SpecInvalidError, TlsRequiredError
from job.layout import Layout, Template
from job.naming import CONTROL_DIRECTORY, join_key, schema_name, table_names
from job.spec import Access, Catalog, GlueCatalog, Mode, NoCatalog, Spec, TableSpec, Tracking, TrackingColumn

TRACKING: Final = (
    TrackingColumn(name="_supa_synced", holds=Tracking.SYNCED),
    TrackingColumn(name="_supa_deleted", holds=Tracking.DELETED),
    TrackingColumn(name="_supa_index", holds=Tracking.INDEX),
    TrackingColumn(name="_supa_id", holds=Tracking.ID),
    TrackingColumn(name="_supa_job_id", holds=Tracking.JOB_ID),
)
PARTITION_KEY: Final = "_supa_partition"
EXTENSION: Final = ".gzip.parquet"
PARTITIONS: Final = {"NONE": "", "DAY": "{date:%Y/%m/%d}", "HOUR": "{date:%Y/%m/%d/%H}", "SYNC_ID": "{job_id}"}


def translate(pipeline: str, destination: ParquetDestination, sources: Sequence[TableSource]) -> Spec:
    """The neutral Spec of a Supaflow pipeline."""
    partitioned = destination.partition_strategy != "NONE"
    catalog: Catalog = GlueCatalog(partition_key=PARTITION_KEY if partitioned else None)
    tables, warnings = _tables(destination, sources)
    key = destination.secret_access_key
    if key is not None and key.reference is None:
        warnings += ("secret_access_key is written out; a reference such as ${env:NAME} keeps it out of the file.",)
    return Spec(
        pipeline=pipeline,
        dialect=destination.type,
        access=_access(destination),
        catalog=catalog if destination.glue else NoCatalog(),
        tracking=TRACKING,
        tables=tables,
        database_prefix=schema_name(destination.glue_database_prefix) if destination.glue else "",
        warnings=warnings,
    )


def form_fields(destination: ParquetDestination) -> tuple[FormField, ...]:
    """What Supaflow's form asks for; a field that stays blank is left out."""
    switch = str(destination.glue).lower()
    lake = isinstance(destination, S3DataLakeParquet)
    values: dict[str, str | Provided] = {
        "S3 Bucket Name": destination.s3_bucket_name,
        "Bucket Region": destination.bucket_region,
        "S3 Path Prefix": destination.s3_path_prefix,
        "IAM Role ARN": Provided.ROLE_ARN,
        "External ID": Provided.EXTERNAL_ID,
        "Custom S3 Endpoint": destination.custom_s3_endpoint or "",
        **({"Table Format": destination.table_format} if isinstance(destination, S3DataLakeParquet) else {}),
        "Update AWS Glue Catalog" if lake else "Sync Schema with AWS Glue Catalog": switch,
        "Partition Strategy": destination.partition_strategy,
        "File Name Pattern": destination.file_name_pattern,
        "Glue Database Prefix": destination.glue_database_prefix,
    }
    return tuple(FormField(label, value) for label, value in values.items() if value)


def _access(destination: SupaflowDestination) -> Access:
    endpoint = destination.custom_s3_endpoint
    if endpoint and urlsplit(endpoint).scheme == "http" and urlsplit(endpoint).hostname not in LOOPBACK:
        message = f"custom_s3_endpoint {endpoint!r} has no TLS and is not on this machine."
        if not destination.allow_insecure:
            raise TlsRequiredError(message, remedy="Use https://, or set allow_insecure: true.")
    return Access(
        bucket=destination.s3_bucket_name,
        region=destination.bucket_region,
        prefix=join_key(destination.s3_path_prefix),
        endpoint=endpoint,
        role_arn=destination.iam_role_arn,
        external_id=destination.external_id,
        access_key_id=destination.access_key_id,
        secret_access_key=destination.secret_access_key,
        single_writer=destination.single_writer,
        role_wait_seconds=destination.role_wait_seconds,
    )


def _tables(
    destination: ParquetDestination, sources: Sequence[TableSource]
) -> tuple[tuple[TableSpec, ...], tuple[str, ...]]:
    _refuse_twins(sources)
    schemas = [_schema(destination, source) for source in sources]
    names = [""] * len(sources)
    warnings = []
    for schema in dict.fromkeys(schemas):
        members = [number for number, own in enumerate(schemas) if own == schema]
        wanted = [sources[number].source_table for number in members]
        for number, name in zip(members, table_names(wanted), strict=True):
            names[number] = name
            alone = table_names([sources[number].source_table])[0]
            if name != alone:
                source = sources[number].source_table
                warnings.append(f"table {source!r} becomes {name!r}: {alone!r} is taken in {schema!r}.")
    tables = tuple(_table(destination, *place) for place in zip(sources, schemas, names, strict=True))
    _refuse_nested(tables, join_key(destination.s3_path_prefix, CONTROL_DIRECTORY))
    return tables, tuple(warnings)


def _schema(destination: ParquetDestination, source: TableSource) -> str:
    prefix = destination.glue_database_prefix if destination.glue else ""
    schema = schema_name(prefix, destination.destination_prefix, source.source_schema)
    if destination.glue and not schema:
        raise SpecInvalidError(
            f"table {source.source_table!r} has no schema, and Glue needs a database.",
            remedy="Give glue_database_prefix, destination_prefix, or the table's schema.",
        )
    return schema


def _table(destination: ParquetDestination, source: TableSource, schema: str, name: str) -> TableSpec:
    if source.mode is not Mode.APPEND:
        raise SpecInvalidError(
            f"table {source.source_table!r} has mode {source.mode.value!r}; this destination only appends.",
            remedy="Leave mode out.",
        )
    path = join_key(destination.s3_path_prefix, schema, name)
    layout = Layout(
        directory=path,
        partition=Template.parse(PARTITIONS[destination.partition_strategy]),
        file=file_template(destination.file_name_pattern),
        extension=EXTENSION,
    )
    return TableSpec(
        **source.model_dump(exclude={"read", "mode"}),
        read=source.read,
        schema_name=schema,
        name=name,
        layout=layout,
        path=path,
        must_be_empty=destination.destination_table_handling == "FAIL",
    )


def _refuse_twins(sources: Sequence[TableSource]) -> None:
    seen = set()
    for source in sources:
        identity = (source.source_schema, source.source_table)
        if identity in seen:
            raise NameCollisionError(
                f"table {source.source_table!r} of schema {source.source_schema!r} is given twice.",
                remedy="Give each table once, or give the two different names.",
            )
        seen.add(identity)


def _refuse_nested(tables: Sequence[TableSpec], control: str) -> None:
    """A table under another's path would be read as its rows, and one under the control prefix not at all."""
    for table in tables:
        for other in (control, *(each.path for each in tables if each is not table)):
            if f"{table.path}/".startswith(f"{other}/"):
                raise NameCollisionError(
                    f"table {table.source_table!r} would lie at {table.path!r}, under {other!r}, which is taken.",
                    remedy="Give the table a schema, or another destination_prefix.",
                )
