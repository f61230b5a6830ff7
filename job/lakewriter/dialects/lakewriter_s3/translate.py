"""Translate ``lakewriter-s3`` into the neutral Spec: folders, names, catalogs, tracking columns."""

from typing import Final

from lakewriter.dialects.common.dialect import CheckedFile
from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.form import FormField, Provided
from lakewriter.dialects.common.iceberg import find_roots, lay_out_iceberg, make_open_catalog
from lakewriter.dialects.common.places import require_fit_keys
from lakewriter.dialects.common.source_files import Location
from lakewriter.dialects.common.tables import choose_table_name, refuse_nested
from lakewriter.dialects.configured_catalog import list_streams, pin_names
from lakewriter.dialects.lakewriter_s3.file_formats import make_encoding, name_extension
from lakewriter.dialects.lakewriter_s3.rest_catalog import make_rest_service, require_s3_tables_names
from lakewriter.dialects.lakewriter_s3.settings import TRACKING, LakewriterS3
from lakewriter.naming import cut, join_key, name_schema, name_tables
from lakewriter.spec.catalogs import Catalog, GlueCatalog, GlueService, IcebergCatalog, NoCatalog, S3TablesService
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Limits, Spec, TrackingColumn
from lakewriter.spec.stream import Stream
from lakewriter.spec.table_spec import IndexKind, Mode, TableSource, TableSpec

PARTITIONS: Final = {
    "none": ("", ""),
    "day": ("load_date", "{date:%Y-%m-%d}"),
    "hour": ("load_hour", "{date:%Y-%m-%d-%H}"),
    "load": ("load_id", "{job_id}"),
}
"""Maps each strategy to the key and the value in its folders' names."""


MODES: Final = {
    "append": Mode.APPEND,
    "overwrite": Mode.APPEND,
    "append_dedup": Mode.MERGE,
    "overwrite_dedup": Mode.MERGE,
}
"""A load's effect on rows of its own generation, by the mode that Airbyte's platform asks for."""
STREAMS: Final[Location] = ("source", "catalog", "streams")


def translate(file: CheckedFile[LakewriterS3]) -> Spec:
    """Return the neutral Spec."""
    form, source = file.destination, file.source
    key, _ = _choose_partition(form)
    catalog = _make_catalog(form)
    return Spec(
        pipeline=file.pipeline,
        dialect=form.type,
        access=form.make_access(bucket=form.bucket, prefix=form.prefix),
        catalog=catalog,
        tracking=tuple(TrackingColumn(name=name, holds=TRACKING[word]) for word, name in form.tracking.items()),
        roots=find_roots(form, form.bucket),
        tables=_translate_streams(file) if source else _translate_tables(form, file),
        source=source and source.locate(file.root, file.folder),
        encoding=make_encoding(form.format, form.compression, form.compression_level),
        database_prefix=name_schema(form.database) if catalog.in_glue else "",
        folder_keys=(key,) if key else (),
        column_names=form.column_names,
    )


def adjust_limits(form: LakewriterS3, wanted: Limits) -> Limits:
    """Return ``wanted``, with smaller blocks for formats without row groups."""
    return wanted if form.format == "parquet" else wanted.without_row_groups()


def make_form_fields(form: LakewriterS3) -> tuple[FormField, ...]:
    """Make the fields that somebody needs who reads the lake, or writes to it from elsewhere."""
    return (
        FormField("Location", form.location),
        FormField("Region", form.region),
        FormField("Role ARN", Provided.ROLE_ARN),
    )


def _choose_partition(form: LakewriterS3) -> tuple[str, str]:
    """Return the key and the value of the folders that files lie in; blank for none."""
    return ("", "") if form.is_iceberg else PARTITIONS[form.partition_strategy]


def _make_catalog(form: LakewriterS3) -> Catalog:
    if form.catalog == "glue":
        return GlueCatalog(partition_key=_choose_partition(form)[0] or None, strategy=form.partition_strategy)
    if form.catalog == "iceberg":
        return IcebergCatalog(service=GlueService())
    if form.catalog == "open_catalog":
        return IcebergCatalog(service=make_open_catalog(form))
    if form.catalog == "rest":
        return IcebergCatalog(service=make_rest_service(form))
    if form.catalog == "s3_tables":
        return IcebergCatalog(service=_make_s3_tables(form))
    return NoCatalog()


def _make_s3_tables(form: LakewriterS3) -> S3TablesService:
    """Make the catalog of ``catalog: s3_tables``; ``uri`` is for an endpoint of a VPC's own."""
    arn = form.table_bucket_arn or ""
    partition, _, region = arn.split(":")[1:4]
    if region != form.region:
        raise FaultError(
            ("destination", "table_bucket_arn"), f"it is in {region!r}, and region is {form.region!r}.",
            remedy="Use a table bucket in the region of the bucket in 'location'.",
        )  # fmt: skip
    if form.uri:
        form.require_tls("uri")
    if form.endpoint:
        raise FaultError(
            ("destination", "endpoint"), "it is another store's, and the tables of 'catalog: s3_tables' are in AWS.",
            remedy="Leave it out.",
        )  # fmt: skip
    domain = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    return S3TablesService(uri=form.uri or f"https://s3tables.{region}.{domain}/iceberg", warehouse=arn)


def _translate_tables(form: LakewriterS3, file: CheckedFile[LakewriterS3]) -> tuple[TableSpec, ...]:
    sources = [entry.make_source(file.root) for entry in file.tables]
    tables = tuple(_translate_table(form, ("tables", number), source) for number, source in enumerate(sources))
    # Behind all others: a table has the number of its entry.
    numbers = [*range(len(tables)), *(number for number, source in enumerate(sources) if source.history)]
    histories = tuple(_translate_history(form, number, tables[number]) for number in numbers[len(tables) :])
    refuse_nested((*tables, *histories), "Give the table another name, or another schema.", numbers=numbers)
    return (*tables, *histories)


def _translate_history(form: LakewriterS3, number: int, table: TableSpec) -> TableSpec:
    """Return the table that keeps each change of a merged table's rows: a row of each key for each order, and rows that
    delete."""
    changed = {"written_as": cut(f"{table.name}_history"), "history": False, "keep_deleted": True}
    source = TableSource(**{name: getattr(table, name) for name in TableSource.model_fields} | changed)
    history = _translate_table(form, ("tables", number), source)
    return history.model_copy(update={"history_of": table.id})


def _translate_streams(file: CheckedFile[LakewriterS3]) -> tuple[TableSpec, ...]:
    form, catalog = file.destination, file.source.catalog
    if not form.is_iceberg:
        raise FaultError(
            ("source",),
            "streams of records are loaded into Iceberg tables here, and the destination has none.",
            remedy="Set catalog: iceberg; or write files by a destination of type airbyte-s3.",
        )
    catalog.require_modes(MODES, {})
    rules = {"contract": file.contract.contract, "on_bad_row": file.on_bad_row and file.on_bad_row.bad_rows}
    tables = []
    for number, (side, stream) in enumerate(list_streams(file.source, MODES)):
        _require_mergeable(form, number, side, stream)
        one = stream.model_copy(update={"at_once": True})
        tables.append(_translate_table(form, (*STREAMS, number), side.model_copy(update=rules), one))
    refuse_nested(tables, "Give one of them another name, with 'prefix' or 'namespace_format' for example.", STREAMS)
    return tuple(pin_names(tables, file.source.names))


def _require_mergeable(form: LakewriterS3, number: int, source: TableSource, stream: Stream) -> None:
    """Raise a fault for a stream whose records could not be loaded as its mode has it."""
    name, location = f"stream {source.source_table!r}", (*STREAMS, number)
    if stream.file_path is not None:
        raise FaultError(
            (*location, "include_files"),
            f"{name} includes files, and this destination has no place for them.",
            remedy="Turn include_files off; or use a destination of type airbyte-s3.",
        )
    if source.mode is Mode.MERGE and not source.primary_key:
        raise FaultError(
            (*location, "primary_key"),
            f"{name} is deduplicated, and has no primary_key: nothing says which records are one row.",
            remedy="Choose a primary key in the connection, or a mode without deduplication.",
        )
    if stream.deleted_at is not None and "deleted" not in form.tracking:
        raise FaultError(
            location,
            f"{name} has {stream.deleted_at!r}, which deletes rows, and no column that says so.",
            remedy="Add 'deleted' to destination.tracking.",
        )


def _translate_table(
    form: LakewriterS3, location: Location, source: TableSource, stream: Stream | None = None
) -> TableSpec:
    schema = name_schema(form.database, source.source_schema)
    if form.catalog != "none" and not schema:
        raise FaultError(
            location,
            f"table {source.source_table!r} has no schema, and the catalog needs a database.",
            remedy="Give destination.database, or the table's schema."
            if stream is None
            else "Give destination.database, or the stream's namespace.",
        )
    name = choose_table_name(source, location) or name_tables([source.source_table])[0]
    path = join_key(form.prefix, schema, name)
    # Rows are counted before a load only where their numbers are asked for.
    is_numbered = "row_number" in form.tracking and stream is None
    table = source.make_table(
        index=source.index if is_numbered else IndexKind.SPARSE,
        schema_name=schema,
        name=name,
        layout=_make_layout(form, path, source.mode, len(source.partition_by)),
        path=path,
        stream=stream,
    )
    require_fit_keys(table, location)
    if form.catalog == "s3_tables":
        require_s3_tables_names(table, location)
    return table


def _make_layout(form: LakewriterS3, path: str, mode: Mode, depth: int) -> Layout:
    """Make the layout; no other function knows how a key is made up."""
    end = name_extension(form.format, form.compression)
    if form.is_iceberg:
        return lay_out_iceberg(path, depth, end, is_named_alone=form.catalog == "s3_tables")
    key, value = _choose_partition(form)
    folder = f"{key}={value}/" if key else ""
    if mode is Mode.REFRESH:
        # All of the table's files are one load's: its folder takes the place of those by time.
        folder = "g{generation}/"
    return Layout(path, Template.parse(f"{folder}part-{{job_id}}-{{seq}}{end}"))
