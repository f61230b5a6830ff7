"""lake.yaml: what every dialect's file has in common, and the way from the file to the Spec."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from lakewriter.dialects.airbyte import translate as airbyte
from lakewriter.dialects.airbyte.configured_catalog import SourceEntry
from lakewriter.dialects.airbyte.file_formats import FORMAT_TAGS, FORMATS, part_of
from lakewriter.dialects.airbyte.settings import AirbyteS3, HeroPixelS3
from lakewriter.dialects.airbyte.vendor_file import expanded
from lakewriter.dialects.common.faults import located
from lakewriter.dialects.common.foreign_files import refuse_foreign
from lakewriter.dialects.common.form import FormField
from lakewriter.dialects.common.problems import keys_of, listed, model_at, nearest, problems, shown
from lakewriter.dialects.common.row_rule_keys import BadRowEntry, ContractEntry, refuse_unsupported
from lakewriter.dialects.common.source_files import Location
from lakewriter.dialects.common.tables import TableEntry, absolute, option_notes
from lakewriter.dialects.common.yaml_text import Document, read
from lakewriter.dialects.estuary import translate as estuary
from lakewriter.dialects.estuary.flow_file import with_flow
from lakewriter.dialects.estuary.settings import BindingEntry, EstuaryS3Parquet
from lakewriter.dialects.supaflow.settings import S3DataLakeIceberg, S3DataLakeParquet, S3Parquet
from lakewriter.dialects.supaflow.translate import form_fields, translate
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import PIPELINE
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.model import Model, require_one
from lakewriter.spec.specification import MIB, Limits, Spec

ICEBERG: Final = "supaflow-s3-data-lake, ICEBERG"
DESTINATIONS: dict[str, type[Model]] = {
    "supaflow-s3": S3Parquet,
    "supaflow-s3-data-lake": S3DataLakeParquet,
    "airbyte-s3": AirbyteS3,
    "heropixel-s3": HeroPixelS3,
    "estuary-s3-parquet": EstuaryS3Parquet,
}
MODELS: dict[str, type[Model]] = DESTINATIONS | {ICEBERG: S3DataLakeIceberg}
BINDING: Final = "a binding"
PLAIN: Final = "a plain table"
TAGS: Final = {"": (*MODELS, BINDING, PLAIN), **FORMAT_TAGS}
"""What pydantic puts into the place of a problem for the members of its unions."""


def _tag(value: Any) -> str | None:
    kind, form = (
        value.get(key) if isinstance(value, dict) else getattr(value, key, None) for key in ("type", "table_format")
    )
    if kind == "supaflow-s3-data-lake" and form == "ICEBERG":
        return ICEBERG
    return kind if isinstance(kind, str) and kind in DESTINATIONS else None


Destination = Annotated[
    Annotated[S3Parquet, Tag("supaflow-s3")]
    | Annotated[S3DataLakeParquet, Tag("supaflow-s3-data-lake")]
    | Annotated[S3DataLakeIceberg, Tag(ICEBERG)]
    | Annotated[AirbyteS3, Tag("airbyte-s3")]
    | Annotated[HeroPixelS3, Tag("heropixel-s3")]
    | Annotated[EstuaryS3Parquet, Tag("estuary-s3-parquet")],
    Discriminator(_tag),
]


def _table_tag(value: Any) -> str:
    binding = isinstance(value, BindingEntry) or (
        isinstance(value, dict) and ("source" in value or "resource" in value)
    )
    return BINDING if binding else PLAIN


AnyTable = Annotated[
    Annotated[TableEntry, Tag(PLAIN)] | Annotated[BindingEntry, Tag(BINDING)], Discriminator(_table_tag)
]


class LimitsEntry(Model):
    """Sizes and counts that bound a load."""

    target_file_mb: int = Field(200, ge=1, le=10_000)
    """Files roll near this compressed size."""
    row_group_mb: int = Field(192, ge=1, le=2_000)
    """Arrow data that a task gathers for one row group."""
    parallel_tables: int = Field(2, ge=1, le=32)
    """Tables loaded side by side."""


class LakeFile(Model):
    """One pipeline: where the data goes, which tables, and how they are deployed."""

    pipeline: str
    destination: Destination
    tables: tuple[AnyTable, ...] = ()
    source: SourceEntry | None = None
    """Airbyte messages in place of ``tables``, for the destinations that take them."""
    source_root: str | None = None
    """Where relative source paths start, such as ``s3://acme-landing``; by default the folder of lake.yaml."""
    checkpoint: str | None = None
    """Where a continuous run remembers what it has read: a folder, or any URI that Spark can write."""
    interval_seconds: int | None = Field(None, ge=1, le=86_400)
    """Seconds between the loads of a continuous run, where the destination has no key for it; 300 by default."""
    on_failure: Literal["continue", "stop"] = "continue"
    """Whether the other tables go on when one fails."""
    keep_loads_days: int = Field(30, ge=1, le=3650)
    """Control objects of closed loads are kept this long."""
    delta_encodings: bool = False
    """Parquet's DELTA encodings where a column's values mostly differ: smaller and faster, if all readers know them."""
    contract: ContractEntry = ContractEntry()
    """For tables that have none of their own."""
    on_bad_row: BadRowEntry | None = None
    """For tables that have none of their own."""
    limits: LimitsEntry = LimitsEntry()
    deployment: Deployment = Deployment()
    """Read by the stacks only."""

    @field_validator("pipeline")
    @classmethod
    def _pipeline_name(cls, value: str) -> str:
        if not PIPELINE.fullmatch(value):
            raise ValueError("expected lower-case letters, digits, '-' and '_', at most 63, a letter or digit first")
        return value

    @field_validator("tables", mode="before")
    @classmethod
    def _some_tables(cls, value: Any) -> Any:
        if value in ([], None):
            raise ValueError("expected at least one table")
        return value

    @model_validator(mode="after")
    def _one_source(self) -> "LakeFile":
        require_one(tables=bool(self.tables), source=self.source is not None)
        if self.source is not None and not isinstance(self.destination, AirbyteS3 | HeroPixelS3):
            raise ValueError("'source' is only for the destinations 'airbyte-s3' and 'heropixel-s3'")
        return self

    @model_validator(mode="after")
    def _encodings_of_the_destination(self) -> "LakeFile":
        if self.delta_encodings and isinstance(self.destination, AirbyteS3 | HeroPixelS3 | EstuaryS3Parquet):
            raise ValueError("'delta_encodings' is only for the destinations 'supaflow-s3' and 'supaflow-s3-data-lake'")
        return self

    @model_validator(mode="after")
    def _interval_of_the_destination(self) -> "LakeFile":
        if isinstance(self.destination, EstuaryS3Parquet) and self.interval_seconds is not None:
            raise ValueError("'interval_seconds' is called 'uploadIntervalInSeconds' here, under 'destination'")
        return self


@dataclass(frozen=True)
class Lake:
    """A lake.yaml, read: what the job needs, what the stacks need, and what goes into the vendor's form.

    ``data`` is the file's content with the stage laid over it; secrets in it are still references.
    """

    spec: Spec
    deployment: Deployment
    form: tuple[FormField, ...]
    data: Mapping[str, Any]


def load_spec(path: Path, *, stage: str | None = None) -> Spec:
    """The Spec of the file at ``path``; ``SPEC_INVALID`` with every problem of the file at once."""
    return load(path, stage=stage).spec


def load(path: Path, *, stage: str | None = None) -> Lake:
    """All of the file at ``path``; ``SPEC_INVALID`` with every problem of the file at once."""
    document = read(path, stage=stage)
    refuse_foreign(document)
    document, of_flow = with_flow(document)
    document, of_vendor = expanded(document, DESTINATIONS)
    _refuse_bindings(document)
    file = _validated(document)
    root = absolute(file.source_root or "", str(document.folder))
    with located(document):
        spec, form = _translated(file, root, str(document.folder))
        refuse_unsupported(spec, document.data)
    loaded = {
        "encoding": spec.encoding.model_copy(update={"delta": True}) if file.delta_encodings else spec.encoding,
        "limits": _limits(file),
        "interval_seconds": file.interval_seconds or spec.interval_seconds,
        "checkpoint": file.checkpoint and absolute(file.checkpoint, str(document.folder)),
        "on_failure": file.on_failure,
        "keep_loads_days": file.keep_loads_days,
        "warnings": (*of_flow, *of_vendor, *spec.warnings, *_option_notes(spec)),
    }
    return Lake(spec.model_copy(update=loaded), file.deployment, form, document.data)


def _option_notes(spec: Spec) -> Iterator[str]:
    for table in spec.tables:
        yield from option_notes(table.id, table.read)


def _limits(file: LakeFile) -> Limits:
    limits = Limits(
        upload_parallelism=file.destination.upload_parallelism,
        target_file_bytes=file.limits.target_file_mb * MIB,
        row_group_bytes=file.limits.row_group_mb * MIB,
        parallel_tables=file.limits.parallel_tables,
    )
    return airbyte.limits(file.destination, limits) if isinstance(file.destination, AirbyteS3 | HeroPixelS3) else limits


def _translated(file: LakeFile, root: str, folder: str) -> tuple[Spec, tuple[FormField, ...]]:
    """Relative source paths start at ``root``, a connector's own at ``folder``."""
    destination = file.destination
    tables = [entry.with_defaults(file.contract, file.on_bad_row) for entry in file.tables]
    if isinstance(destination, EstuaryS3Parquet):
        return estuary.translate(file.pipeline, destination, tables, root), estuary.form_fields(destination)
    sources = tuple(entry.at(root) for entry in tables)
    if isinstance(destination, AirbyteS3 | HeroPixelS3):
        messages = file.source and file.source.message_source(_absolute(file.source.paths, root), folder)
        spec = airbyte.translate(file.pipeline, destination, sources, file.source, messages)
        if file.source is not None:
            spec = _with_defaults(spec, file)
        return spec, airbyte.form_fields(destination)
    return translate(file.pipeline, destination, sources), form_fields(destination)


def _with_defaults(spec: Spec, file: LakeFile) -> Spec:
    """The streams of a catalog have no entries of their own for what the pipeline decides."""
    rules = {"contract": file.contract.contract, "on_bad_row": file.on_bad_row and file.on_bad_row.bad_rows}
    return spec.model_copy(update={"tables": tuple(table.model_copy(update=rules) for table in spec.tables)})


def _absolute(paths: Sequence[str], root: str) -> list[str]:
    return [path if path == "-" else absolute(path, root) for path in paths]


def _validated(document: Document) -> LakeFile:
    kind = _tag(document.data.get("destination"))

    def known_keys(parent: Location) -> list[str]:
        if parent[:1] == ("destination",) and kind:
            return _keys_at(MODELS[kind], parent[1:], document.data["destination"])
        if parent[:1] == ("tables",):
            return keys_of(model_at(BindingEntry if kind == "estuary-s3-parquet" else TableEntry, parent[2:]))
        return keys_of(model_at(LakeFile, parent))

    try:
        return LakeFile.model_validate(document.data)
    except ValidationError as error:
        found = problems(error, document, known_keys, TAGS, _homes(kind))
        if "destination" in document.data and not kind:
            found = [_unknown_type(document), *found]
        count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
        raise SpecInvalidError(f"{document.name} has {count}:", problems=found) from error


def _homes(kind: str | None) -> dict[str, str]:
    """Where keys belong that stand at the top of a file by mistake."""
    parts: dict[str, type[Model]] = {"deployment": Deployment, "limits": LimitsEntry}
    if kind:
        parts["destination"] = MODELS[kind]
    return {key: part for part, model in parts.items() for key in keys_of(model)}


def _refuse_bindings(document: Document) -> None:
    """``SPEC_INVALID`` for a table in the words of another destination."""
    kind, tables = _tag(document.data.get("destination")), document.data.get("tables")
    if kind is None or kind == "estuary-s3-parquet" or not isinstance(tables, list):
        return
    for number, entry in enumerate(tables):
        for key in ("source", "resource"):
            if isinstance(entry, dict) and key in entry:
                raise SpecInvalidError(
                    f"{document.where(('tables', number, key))}: {key!r} is only for the destination "
                    f"'estuary-s3-parquet', and this one is {document.data['destination']['type']!r}.",
                    remedy="Name the table with 'table', and its namespace with 'schema'.",
                )


def _keys_at(model: type[Model], steps: Location, destination: Mapping[str, Any]) -> list[str]:
    """The keys of the destination, or of the object inside it at which a problem lies."""
    if steps[:1] != ("format",):
        return keys_of(model_at(model, steps))
    form = destination.get("format", {})
    found = FORMATS.get(str(form.get("format_type")))
    if steps[1:]:
        found = part_of(form.get(steps[1], {}))
    return keys_of(found) if found else []


def _unknown_type(document: Document) -> str:
    destination, known = document.data["destination"], listed(list(DESTINATIONS))
    if not isinstance(destination, dict):
        where = document.where(("destination",))
        return f"{where}: {shown(destination, ('destination',))}: expected a mapping with the key 'type'."
    where, kind = document.where(("destination", "type")), destination.get("type")
    if kind is None:
        return f"{where}: is required; expected {known}."
    guess = nearest(kind, DESTINATIONS) if isinstance(kind, str) else ""
    return f"{where}: {shown(kind, ())} is no known destination; expected {known}{guess or '.'}"
