"""What Estuary's Apache Parquet in S3 means: a path and a counter for each binding, its codec, its fields."""

from collections.abc import Iterator, Sequence
from typing import Final

from lakewriter.dialects.common.dialect import CheckedFile
from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.form import FormField, Provided
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.estuary.paths import FILE, place_binding, refuse_twins, warn_of_nested
from lakewriter.dialects.estuary.settings import BindingEntry, EstuaryS3Parquet
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Encoding, IndexKind, Mode, Spec, TableSpec

CODECS: Final = {
    "snappy": Encoding(codec="snappy"),
    "gzip": Encoding(codec="gzip"),
    "lz4": Encoding(codec="lz4"),
    "zstd": Encoding(codec="zstd", level=3),
}


def translate(file: CheckedFile[EstuaryS3Parquet]) -> Spec:
    """The neutral Spec of a materialization."""
    destination = file.destination
    bindings = [_require_binding(number, entry) for number, entry in enumerate(file.tables)]
    specs = tuple(_translate_table(destination, number, entry, file.root) for number, entry in enumerate(bindings))
    refuse_twins(specs)
    return Spec(
        pipeline=file.pipeline,
        dialect=destination.type,
        access=destination.make_access(),
        catalog=NoCatalog(),
        tracking=(),
        tables=specs,
        roots=tuple(table.path for table in specs),
        interval_seconds=destination.uploadIntervalInSeconds,
        warnings=(
            *destination.warn_of_secrets(),
            *_warn_of_no_region(destination),
            *warn_of_nested(specs),
            *_warn_of_unused(bindings),
        ),
    )


def make_form_fields(destination: EstuaryS3Parquet) -> tuple[FormField, ...]:
    """What the vendor's form asks for; a field that stays blank is left out."""
    values: dict[str, str | Provided] = {
        "Access Key ID": Provided.ACCESS_KEY_ID,
        "Secret Access Key": Provided.SECRET_ACCESS_KEY,
        "Bucket": destination.bucket,
        "Region": destination.region,
        "Upload Interval in Seconds": str(destination.uploadIntervalInSeconds),
        "Endpoint": destination.advanced.endpoint or "",
    }
    return tuple(FormField(label, value) for label, value in values.items() if value)


def _require_binding(number: int, entry: TableEntry) -> BindingEntry:
    if not isinstance(entry, BindingEntry):
        raise FaultError(
            ("tables", number),
            f"table {entry.table!r} has no binding's keys.",
            remedy="Give it 'source' and 'resource.pathPrefix'.",
        )
    unknown = {"deleted": entry.deleted, "unique_key": entry.unique_key, "partition_by": entry.partition_by}
    for key, value in unknown.items():
        if value:
            raise FaultError(
                ("tables", number, key),
                f"binding {entry.source!r} has {key!r}; this destination writes documents as they are.",
                remedy=f"Leave {key} out.",
            )
    if entry.mode is not Mode.APPEND:
        raise FaultError(
            ("tables", number, "mode"),
            f"binding {entry.source!r} has mode {entry.mode.value!r}; this destination only appends delta updates.",
            remedy="Leave mode out.",
        )
    return entry


def _translate_table(destination: EstuaryS3Parquet, number: int, entry: BindingEntry, root: str) -> TableSpec:
    place = place_binding(number, entry)
    return TableSpec(
        **entry.make_source(root).model_dump(exclude={"read", "source_table", "index", "primary_key"}),
        source_table=entry.table or entry.source.rpartition("/")[2],
        read=entry.read.make_read(root),
        index=IndexKind.SPARSE,
        schema_name="",
        name=place.name,
        layout=Layout(place.path, FILE),
        path=place.path,
        collection=entry.make_collection(destination.flatten_separator),
        encoding=CODECS[entry.resource.compressionType or destination.compressionType],
    )


def _warn_of_no_region(destination: EstuaryS3Parquet) -> list[str]:
    return [] if destination.region else [f"region is not given; bucket {destination.bucket!r} is asked for it."]


def _warn_of_unused(bindings: Sequence[BindingEntry]) -> Iterator[str]:
    for binding in bindings:
        for what in binding.fields.unused:
            yield f"binding {binding.source!r}: fields.include.{what} has no effect; a column's type is the schema's."
        read = binding.collection.read
        for note in read.notes if read is not None else ():
            yield f"collection {binding.source!r}: {note}"
