"""Translate Airbyte's S3 destination and Hero Pixel's: keys, formats, the columns around a record."""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from lakewriter.dialects.airbyte.file_formats import (
    EXTENSIONS,
    Avro,
    Bzip2,
    Csv,
    Deflate,
    JsonLines,
    NoCodec,
    Parquet,
    Snappy,
    Xz,
    Zstandard,
)
from lakewriter.dialects.airbyte.paths import (
    find_constant_prefix,
    find_stream_directory,
    make_layout,
    make_s3_safe,
)
from lakewriter.dialects.airbyte.settings import AirbyteS3, HeroPixelS3
from lakewriter.dialects.common.dialect import CheckedFile
from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.form import FormField, Provided, list_fields
from lakewriter.dialects.common.places import require_fit_keys
from lakewriter.dialects.common.source_files import Location
from lakewriter.dialects.configured_catalog import list_streams, pin_names
from lakewriter.errors import NameCollisionError
from lakewriter.spec.access import Access, SecretText
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.encodings import AvroEncoding, FileEncoding, ParquetEncoding, TextEncoding
from lakewriter.spec.specification import MIB, Limits, Spec
from lakewriter.spec.stream import Envelope, Stream
from lakewriter.spec.table_spec import IndexKind, Mode, TableSource, TableSpec

AirbyteForm = AirbyteS3 | HeroPixelS3

_MODES: Final = {"append": Mode.APPEND, "overwrite": Mode.OVERWRITE}
_ADVICE: Final = {
    "append_dedup": (
        "files on S3 are only added, so no row is replaced. Ask for 'append', which keeps every version of a row: a "
        "connection's 'Incremental | Append', or write_strategy='append' in PyAirbyte, whose 'auto' asks for "
        "append_dedup where a stream has a primary key; or load into Iceberg tables by type: lakewriter-s3."
    ),
    "overwrite_dedup": (
        "files on S3 are replaced whole, so no row is looked at. Ask for 'overwrite': a connection's 'Full refresh | "
        "Overwrite', or write_strategy='replace' in PyAirbyte; or load into Iceberg tables by type: lakewriter-s3."
    ),
}
"""Keys are modes that other destinations have; values say why this one has not, and what to ask for."""
EXTERNAL_ID: Final = "AWS_ASSUME_ROLE_EXTERNAL_ID"
_AVRO: Final = {
    NoCodec: "null",
    Deflate: "deflate",
    Bzip2: "bzip2",
    Xz: "xz",
    Zstandard: "zstandard",
    Snappy: "snappy",
}
_ZSTD_LEVEL, _BROTLI_LEVEL = 3, 5
_ID: Final = re.compile(r"[^A-Za-z0-9_-]")
"""No dot either: it parts the namespace from the name in a table's id."""


def translate(file: CheckedFile[AirbyteForm]) -> Spec:
    """Return the neutral Spec; the streams of a catalog have no entries of their own for what the pipeline decides."""
    form, source = file.destination, file.source
    tables = [_translate_table(form, entry.make_source(file.root), None) for entry in file.tables]
    locations: list[Location] = [("tables", number) for number in range(len(tables))]
    rules = {"contract": file.contract.contract, "on_bad_row": file.on_bad_row and file.on_bad_row.bad_rows}
    if source:
        source.catalog.require_modes(_MODES, _ADVICE)
    for number, (side, stream) in enumerate(list_streams(source, _MODES) if source else ()):
        tables.append(_translate_table(form, side.model_copy(update=rules), stream))
        locations.append(("source", "catalog", "streams", number))
    for table, location in zip(tables, locations, strict=True):
        _require_names(form, table, location)
        _require_near_files(form, source, table, location)
    _refuse_shared(tables, locations)
    tables = pin_names(tables, source.names if source else {})
    return Spec(
        pipeline=file.pipeline,
        dialect=form.type,
        access=_make_access(form),
        catalog=NoCatalog(),
        tracking=(),
        tables=tuple(tables),
        encoding=make_encoding(form),
        envelope=make_envelope(form),
        source=source and source.locate(file.root, file.folder),
        purge_first=isinstance(form, HeroPixelS3) and form.purge_first,
        warnings=tuple(_list_warnings(form)),
    )


def adjust_limits(form: AirbyteForm, wanted: Limits) -> Limits:
    """Return ``wanted``, with the row groups that the format asks for."""
    if isinstance(form.format, Parquet):
        return wanted.model_copy(update={"row_group_bytes": form.format.block_size_mb * MIB})
    return wanted.without_row_groups()


def make_encoding(form: AirbyteForm) -> FileEncoding:
    """Return the file format with its settings."""
    file_format = form.format
    if isinstance(file_format, Parquet):
        return ParquetEncoding(
            codec=file_format.compression_codec.lower(),
            level={"ZSTD": _ZSTD_LEVEL, "BROTLI": _BROTLI_LEVEL}.get(file_format.compression_codec),
            page_bytes=file_format.page_size_kb * 1024,
            dictionary_page_bytes=file_format.dictionary_page_size_kb * 1024,
            dictionary=file_format.dictionary_encoding,
        )
    if isinstance(file_format, Avro):
        codec = file_format.compression_codec
        return AvroEncoding.model_validate(
            {
                "codec": _AVRO[type(codec)],
                "level": getattr(codec, "compression_level", None),
                "checksum": isinstance(codec, Zstandard) and codec.include_checksum,
            }
        )
    return TextEncoding(kind="csv" if isinstance(file_format, Csv) else "jsonl", gzip=file_format.gzip)


def name_extension(form: AirbyteForm) -> str:
    """Return the text for ``{format_extension}``."""
    return EXTENSIONS[form.format.format_type][isinstance(form.format, Csv | JsonLines) and form.format.gzip]


_ADDITIONAL: Final = "_airbyte_additional_properties"


def make_envelope(form: AirbyteForm) -> Envelope:
    """Return the columns around a record; formats with a schema are always flattened."""
    typed = isinstance(form.format, Avro | Parquet)
    whole = isinstance(form.format, Csv | JsonLines) and form.format.flattening == "No flattening"
    data = "_airbyte_data" if whole else None
    if isinstance(form, HeroPixelS3):
        return Envelope(
            raw_id="_airbyte_ab_id",
            extracted_at="_airbyte_emitted_at",
            data=data,
            additional=_ADDITIONAL if typed else None,
            lifted=("_ab_additional_properties", _ADDITIONAL) if typed else (),
            typed=typed,
        )
    return Envelope(
        raw_id="_airbyte_raw_id",
        extracted_at="_airbyte_extracted_at",
        meta="_airbyte_meta",
        generation="_airbyte_generation_id",
        data=data,
        typed=typed,
        record_undeclared=form.record_undeclared,
    )


def make_form_fields(form: AirbyteForm) -> tuple[FormField, ...]:
    """Make the fields of the vendor's form, a role or a key in it; a field that stays blank is left out."""
    values: dict[str, str | Provided] = {
        "Access Key Id": Provided.ACCESS_KEY_ID,
        "Secret Access Key": Provided.SECRET_ACCESS_KEY,
        "Role ARN": Provided.ROLE_ARN,
        "S3 Bucket Name": form.s3_bucket_name,
        "S3 Bucket Path": form.s3_bucket_path,
        "S3 Bucket Region": form.s3_bucket_region,
        "S3 Path Format": form.s3_path_format,
        "S3 Endpoint": form.s3_endpoint or "",
        "S3 Filename pattern": form.file_name_pattern,
    }
    return list_fields(values, prefix="S3 Bucket Path")


def _make_access(form: AirbyteForm) -> Access:
    access = form.make_access(prefix=find_constant_prefix(form.s3_bucket_path))
    if access.access_key_id:
        # "If the Access Key and Secret Access Key are not provided, the authentication will rely either on the Role ARN
        # using STS Assume Role or on the instanceprofile", both documents have it.
        return access.model_copy(update={"role_arn": None, "external_id": None})
    if access.role_arn and access.external_id is None and os.environ.get(EXTERNAL_ID):
        return access.model_copy(update={"external_id": SecretText(f"${{env:{EXTERNAL_ID}}}")})
    return access


def _translate_table(form: AirbyteForm, source: TableSource, stream: Stream | None) -> TableSpec:
    names = source.source_schema, source.source_table
    has_files = stream is not None and stream.file_path is not None
    path, end = (form.s3_bucket_path, form.s3_path_format, form.file_name_pattern), name_extension(form)
    layout = make_layout(*path, names, end, has_files=has_files)
    if isinstance(form, HeroPixelS3):
        layout = replace(layout, purged=find_stream_directory(form.s3_bucket_path, form.s3_path_format, names))
    if layout.single_file and not layout.varies:
        raise FaultError(
            ("destination", "file_name_pattern"),
            f"{form.file_name_pattern!r} gives every file of {names[1]!r} one name.",
            remedy="Add {part_number} to it.",
        )
    return source.make_table(
        index=IndexKind.SPARSE,
        schema_name=_make_identifier(names[0]),
        name=_make_identifier(names[1]),
        layout=layout,
        path=layout.prefix.strip("/"),
        stream=stream,
    )


def _require_names(form: AirbyteForm, table: TableSpec, location: Location) -> None:
    """Raise ``SPEC_INVALID`` for a stream whose names give no folder, or a folder outside that of the path format."""
    names = {"${NAMESPACE}": table.source_schema, "${STREAM_NAME}": table.source_table}
    for variable, name in names.items():
        is_used = variable in form.s3_bucket_path + form.s3_path_format
        if is_used and name and not make_s3_safe(name).strip("/"):
            raise FaultError(
                location,
                f"nothing is left of {name!r} for {variable} in a key: slashes collapse, and accents are dropped.",
                remedy="Give it another one, with 'prefix' or 'namespace_format' for example.",
            )
    require_fit_keys(table, location)


def _require_near_files(form: AirbyteForm, source: Any, table: TableSpec, location: Location) -> None:
    """Raise ``SPEC_INVALID`` for a stream whose records have files that no load could copy."""
    if table.stream is None or table.stream.file_path is None:
        return
    why = "this destination's documents have no files" if isinstance(form, HeroPixelS3) else ""
    if any("://" in path.removeprefix("file://") for path in source.paths):
        why = "its messages are read from elsewhere than where its source has put the files"
    if why:
        raise FaultError(
            (*location, "include_files"),
            f"stream {table.source_table!r} includes files, and {why}.",
            remedy="Run the load where the source runs, by 'command' or standard input; or turn include_files off.",
        )


def _make_identifier(name: str) -> str:
    """Return a name for control objects, which tells apart what only its odd characters do."""
    plain = _ID.sub("_", name)
    return plain if plain == name else f"{plain}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _refuse_shared(tables: Sequence[TableSpec], locations: Sequence[Location]) -> None:
    """Refuse two streams in one folder, which could not be told apart when one is overwritten or numbered, and two with
    one state."""
    tables_by_path: dict[str, TableSpec] = {}
    names: dict[str, TableSpec] = {}
    for table, location in zip(tables, locations, strict=True):
        other = tables_by_path.setdefault(table.layout.key_pattern, table)
        if other is not table:
            raise FaultError(
                location,
                f"streams {other.source_table!r} and {table.source_table!r} would lie at the same keys.",
                remedy="Put ${NAMESPACE} and ${STREAM_NAME} into s3_path_format, or give the streams different names.",
                kind=NameCollisionError,
            )
        other = names.setdefault(table.id, table)
        if other is not table:
            raise FaultError(
                location,
                f"streams {other.source_table!r} and {table.source_table!r} would both be known as {table.id!r}.",
                remedy="Give one of them another name, with 'prefix' or 'namespace_format' for example.",
                kind=NameCollisionError,
            )


def _list_warnings(form: AirbyteForm) -> Iterator[str]:
    if form.access_key_id and form.role_arn:
        yield (
            "role_arn has no effect beside access_key_id, as the vendor's document has it; leave the keys out to "
            "assume the role with the credentials of the load."
        )
    if isinstance(form.format, Parquet) and "max_padding_size_mb" in form.format.model_fields_set:
        yield "max_padding_size_mb has no effect on S3, where row groups need no alignment."
