"""lake.yaml: what every dialect's file has in common, and the way from the file to the Spec."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, field_validator

from job.deployment import Deployment
from job.dialects.form import FormField
from job.dialects.problems import keys_of, model_at, nearest, problems
from job.dialects.supaflow import form_fields, translate
from job.dialects.supaflow_form import S3DataLakeParquet, S3Parquet
from job.dialects.tables import ReadEntry, TableEntry, absolute
from job.dialects.text import Document, Location, read
from job.errors import SpecInvalidError
from job.naming import PIPELINE
from job.spec import MIB, Limits, Model, Spec

DESTINATIONS: dict[str, type[Model]] = {"supaflow-s3": S3Parquet, "supaflow-s3-data-lake": S3DataLakeParquet}


def _tag(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return kind if isinstance(kind, str) and kind in DESTINATIONS else None


Destination = Annotated[
    Annotated[S3Parquet, Tag("supaflow-s3")] | Annotated[S3DataLakeParquet, Tag("supaflow-s3-data-lake")],
    Discriminator(_tag),
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
    tables: tuple[TableEntry, ...]
    source_root: str | None = None
    """Where relative source paths start, such as ``s3://acme-landing``; by default the folder of lake.yaml."""
    on_failure: Literal["continue", "stop"] = "continue"
    """Whether the other tables go on when one fails."""
    keep_loads_days: int = Field(30, ge=1, le=3650)
    """Control objects of closed loads are kept this long."""
    delta_encodings: bool = False
    """Parquet's DELTA encodings where a column's values mostly differ: smaller and faster, if all readers know them."""
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
    file = _validated(document)
    root = absolute(file.source_root or "", str(document.folder))
    limits = Limits(
        upload_parallelism=file.destination.upload_parallelism,
        target_file_bytes=file.limits.target_file_mb * MIB,
        row_group_bytes=file.limits.row_group_mb * MIB,
        parallel_tables=file.limits.parallel_tables,
    )
    spec = translate(file.pipeline, file.destination, tuple(entry.at(root) for entry in file.tables))
    encoding = spec.encoding.model_copy(update={"delta": file.delta_encodings})
    loaded = {"encoding": encoding, "limits": limits}
    loaded |= {"on_failure": file.on_failure, "keep_loads_days": file.keep_loads_days}
    return Lake(spec.model_copy(update=loaded), file.deployment, form_fields(file.destination), document.data)


def _validated(document: Document) -> LakeFile:
    kind = _tag(document.data.get("destination"))

    def known_keys(parent: Location) -> list[str]:
        last = next((step for step in reversed(parent) if isinstance(step, str)), None)
        if last == "destination" and kind:
            return keys_of(DESTINATIONS[kind])
        if parent[:1] == ("deployment",):
            return keys_of(model_at(Deployment, parent[1:]))
        below: dict[str, type[Model]] = {"tables": TableEntry, "read": ReadEntry, "limits": LimitsEntry}
        model: type[Model] = ReadEntry if "views" in parent else below.get(str(last), LakeFile)
        return keys_of(model)

    try:
        return LakeFile.model_validate(document.data)
    except ValidationError as error:
        found = problems(error, document, known_keys, tuple(DESTINATIONS))
        if "destination" in document.data and not kind:
            found = [_unknown_type(document), *(line for line in found if "using discriminator" not in line)]
        count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
        raise SpecInvalidError(f"{document.name} has {count}:", problems=found) from error


def _unknown_type(document: Document) -> str:
    destination, known = document.data["destination"], ", ".join(map(repr, DESTINATIONS))
    if not isinstance(destination, dict):
        return f"{document.where(('destination',))}: expected a mapping with the key 'type'."
    where, kind = document.where(("destination", "type")), destination.get("type")
    if kind is None:
        return f"{where}: is required; expected {known}."
    return f"{where}: {kind!r} is no known destination; expected {known}{nearest(str(kind), DESTINATIONS) or '.'}"
