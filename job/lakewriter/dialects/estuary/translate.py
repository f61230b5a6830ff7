"""Translate Estuary's Apache Parquet in S3: a path and a counter for each binding, its codec, its fields."""

from collections.abc import Iterator, Sequence
from typing import Final

from lakewriter.dialects.common.dialect import CheckedFile
from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.form import FormField, Provided, list_fields
from lakewriter.dialects.common.places import require_fit_keys
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.estuary.current_settings import EstuaryConnector
from lakewriter.dialects.estuary.paths import BindingPlace, place_binding, refuse_twins, warn_of_nested
from lakewriter.dialects.estuary.settings import BindingEntry, EstuaryDestination
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.specification import Limits, Spec
from lakewriter.spec.table_spec import IndexKind, TableSpec

CODECS: Final = {
    "snappy": ParquetEncoding(codec="snappy"),
    "gzip": ParquetEncoding(codec="gzip"),
    "lz4": ParquetEncoding(codec="lz4"),
    "zstd": ParquetEncoding(codec="zstd", level=3),
}


def translate(file: CheckedFile[EstuaryDestination]) -> Spec:
    """Return the neutral Spec of a materialization."""
    destination = file.destination
    bindings = [_require_binding(number, entry) for number, entry in enumerate(file.tables)]
    bound = [place_binding(entry, destination.common_prefix) for entry in bindings]
    specs = tuple(
        _translate_table(destination, entry, at, file.root) for entry, at in zip(bindings, bound, strict=True)
    )
    for number, (spec, binding) in enumerate(zip(specs, bindings, strict=True)):
        require_fit_keys(spec, ("tables", number, "resource", binding.resource.key))
    refuse_twins(specs, bindings)
    return Spec(
        pipeline=file.pipeline,
        dialect=destination.type,
        access=destination.make_access(),
        catalog=NoCatalog(),
        tracking=(),
        tables=specs,
        roots=tuple(at.root for at in bound),
        interval_seconds=destination.interval_seconds,
        warnings=(
            *destination.list_warnings(),
            *_warn_of_no_region(destination),
            *warn_of_nested(specs),
            *_list_notes(bindings),
        ),
    )


def choose_limits(destination: EstuaryDestination, limits: Limits) -> Limits:
    """Return the pipeline's limits with the sizes that the connector's configuration has."""
    if not isinstance(destination, EstuaryConnector):
        return limits
    sizes = {
        "target_file_bytes": destination.fileSizeLimit,
        "row_group_bytes": destination.parquetConfig.rowGroupByteLimit,
        "row_group_rows": destination.parquetConfig.rowGroupRowLimit,
    }
    return limits.model_copy(update={name: size for name, size in sizes.items() if size})


def make_form_fields(destination: EstuaryDestination) -> tuple[FormField, ...]:
    """Make the fields of the vendor's form; a field that stays blank is left out."""
    keys: dict[str, str | Provided] = {
        "Access Key ID": Provided.ACCESS_KEY_ID,
        "Secret Access Key": Provided.SECRET_ACCESS_KEY,
    }
    region = destination.read_key(destination.key_names.region)
    fields: dict[str, str | Provided] = {"Bucket": destination.bucket, "Region": region}
    endpoint = destination.read_key(destination.key_names.endpoint) or ""
    if isinstance(destination, EstuaryConnector):
        keys = {f"AWS {label}": value for label, value in keys.items()}
        last = {"Upload Interval": destination.uploadInterval, "Prefix": destination.prefix}
        values = fields | keys | last | {"Custom S3 Endpoint": endpoint}
    else:
        last = {"Upload Interval in Seconds": str(destination.interval_seconds), "Endpoint": endpoint}
        values = keys | fields | last
    return list_fields(values, prefix="Prefix")


def _require_binding(number: int, entry: TableEntry) -> BindingEntry:
    if not isinstance(entry, BindingEntry):
        raise FaultError(
            ("tables", number),
            f"table {entry.table!r} has no binding's keys.",
            remedy="Give it 'source' and 'resource.pathPrefix'.",
        )
    return entry


def _translate_table(destination: EstuaryDestination, entry: BindingEntry, at: BindingPlace, root: str) -> TableSpec:
    return entry.make_source(root).make_table(
        source_table=entry.table or entry.source.rpartition("/")[2],
        primary_key=(),
        index=IndexKind.SPARSE,
        schema_name="",
        name=at.name,
        layout=at.layout,
        path=at.path,
        collection=entry.make_collection(destination.flatten_separator, destination.logical_types),
        backfill=entry.backfill or None,
        encoding=CODECS[entry.resource.compressionType or destination.compressionType],
    )


def _warn_of_no_region(destination: EstuaryDestination) -> list[str]:
    region = destination.read_key(destination.key_names.region)
    return [] if region else [f"region is not given; bucket {destination.bucket!r} is asked for it."]


def _list_notes(bindings: Sequence[BindingEntry]) -> Iterator[str]:
    for binding in bindings:
        read = binding.collection.read
        for note in read.notes if read is not None else ():
            yield f"collection {binding.source!r}: {note}"
