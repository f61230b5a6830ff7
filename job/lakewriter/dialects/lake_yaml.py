"""lake.yaml: what every dialect's file has in common, and the way from the file to the Spec."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from lakewriter.dialects.common.catalog_keys import choose_format, place_catalog, project_partitions
from lakewriter.dialects.common.config_file import read_config_file
from lakewriter.dialects.common.destination import Destination
from lakewriter.dialects.common.dialect import CheckedFile
from lakewriter.dialects.common.expect_keys import SharedExpectEntry, apply_expectations
from lakewriter.dialects.common.faults import FaultError, locate_faults
from lakewriter.dialects.common.foreign_files import refuse_foreign
from lakewriter.dialects.common.form import FormField
from lakewriter.dialects.common.lineage_keys import LineageEntry
from lakewriter.dialects.common.maintenance_keys import MaintenanceEntry, make_maintenance
from lakewriter.dialects.common.named_readers import fit_readers, warn_of_merges
from lakewriter.dialects.common.problems import (
    describe_problems,
    describe_value,
    find_model,
    list_keys,
    list_models,
    list_words,
    suggest_nearest,
)
from lakewriter.dialects.common.read_keys import ReadEntry, list_option_notes, make_absolute
from lakewriter.dialects.common.row_rule_keys import (
    BadRowEntry,
    ContractEntry,
    refuse_shared_quarantines,
    refuse_unsupported,
)
from lakewriter.dialects.common.source_files import Location
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.common.yaml_text import Document, read
from lakewriter.dialects.registry import (
    BY_TYPE,
    DIALECTS,
    FOREIGN_FILES,
    MODELS,
    UNION_TAGS,
    VENDOR_POLICIES,
    find_dialect,
    find_tag,
    list_destinations_with,
    make_destination_type,
    make_source_type,
    make_table_type,
)
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import PIPELINE
from lakewriter.spec.catalogs import FormatVersion
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.expectations import OnViolation
from lakewriter.spec.lineage import Lineage
from lakewriter.spec.listed_files import Repetition
from lakewriter.spec.model import FileModel, Model, require_one
from lakewriter.spec.pairs import NEW_FILES, find_refusals
from lakewriter.spec.readers import WHO_NOTICES, ReaderName
from lakewriter.spec.repetition import REPEATED, Cell, Fail, find_way
from lakewriter.spec.specification import MIB, Limits, RefreshRules, Spec, UndoRules
from lakewriter.spec.streamable import list_refused, note_stream_options
from lakewriter.spec.table_spec import TableSpec

if TYPE_CHECKING:
    AnyDestination = Destination
    AnyTable = TableEntry
    AnySource = Model
else:
    AnyDestination, AnyTable, AnySource = make_destination_type(), make_table_type(), make_source_type()


class UndoEntry(FileModel):
    """What ``lakewriter undo`` may do in Glue."""

    drop_partitions: bool = False
    """Lets an undo drop a partition that holds nothing but the load, so that readers see all of the load go at once.
    The role of the loads is then allowed ``glue:DeletePartition``."""
    grace_minutes: int = Field(15, ge=0, le=1440)
    """Minutes that queries may go on that began before the partition was dropped: its files stay for so long."""


class RefreshEntry(FileModel):
    """What a full refresh keeps, of tables with ``mode: refresh``."""

    keep_days: int = Field(3, ge=0, le=365)
    """Days that the files of a full refresh are kept once another one has replaced them, and ``lakewriter undo`` can
    show them to readers again. With 0 the next load deletes them. Those of the last 100 refreshes are kept at most.
    Iceberg keeps them with its snapshots instead."""


class LimitsEntry(FileModel):
    """Sizes and counts that bound a load."""

    target_file_mb: int = Field(200, ge=1, le=10_000)
    """A new file begins near this compressed size, in megabytes."""
    row_group_mb: int = Field(80, ge=1, le=2_000)
    """Megabytes of uncompressed rows gathered for one row group. It decides the memory of a task."""
    parallel_tables: int | None = Field(None, ge=1, le=32)
    """Tables that are loaded at the same time. By default 2, and 32 more whose files have 16 MiB or less."""


class AdaptiveInterval(FileModel):
    """The bounds between which the interval of a continuous run moves."""

    least_seconds: int | None = Field(None, ge=1, le=86_400)
    """The shortest interval. By default ``interval_seconds``, or the destination's own key for it."""
    most_seconds: int | None = Field(None, ge=1, le=86_400)
    """The longest interval. By default ten times the shortest, and no more than an hour."""


class LakeFile(FileModel):
    """One pipeline: where the data goes, which tables, and how they are deployed."""

    pipeline: str
    """The pipeline's name, which its records in the bucket lie under: lower-case letters, digits, ``-`` and ``_``.
    Never change it once a load has run."""
    destination: AnyDestination
    """Where the data goes, and in which layout. ``type`` decides which other keys there are."""
    tables: tuple[AnyTable, ...] = ()
    """The tables to load, each with its source."""
    source: AnySource | None = None
    """Messages of a connector in place of ``tables``, for the destinations that take them."""
    source_root: str | None = None
    """Where relative source paths start, such as ``s3://acme-landing/shop``. By default the folder of this file."""
    catalog_account: str | None = Field(None, pattern=r"^\d{12}$")
    """The account whose Glue Data Catalog the tables are in, in quotes. By default that of the role that loads."""
    projection: bool | Literal["only"] = False
    """Whether Athena computes the partitions of Hive tables in Glue by their dates. With ``only`` they have no entries
    in the catalog, and no other engine finds them."""
    format_version: FormatVersion | None = None
    """The format version of Iceberg tables that loads make, 2 by default. With 3 rows have ids, and merges write
    deletion vectors; Athena does not read it."""
    checkpoint: str | None = None
    """Where a continuous run remembers what it has read: a folder, or any URI that Spark can write."""
    interval_seconds: int | None = Field(None, ge=1, le=86_400)
    """Seconds between the loads of a continuous run, where the destination has no key of its own for it. By default
    300."""
    interval: Literal["adaptive"] | AdaptiveInterval | None = None
    """``adaptive``, or bounds in seconds: the interval of a continuous run grows while little arrives. Without it the
    interval is fixed."""
    put_metrics: bool = False
    """Sends the metrics of a continuous run to CloudWatch, besides the lines of its log."""
    on_failure: Literal["continue", "stop"] = "continue"
    """What happens to the other tables when one fails: ``continue`` loads them, ``stop`` begins no further table."""
    keep_loads_days: int = Field(30, ge=1, le=3650)
    """Days that the records of finished loads are kept, and so how long a job id is remembered."""
    shares_tables: bool = False
    """Lets this pipeline begin to write tables that another pipeline writes too. Without it a renamed pipeline is
    refused, since it would load everything again."""
    undo: UndoEntry = UndoEntry()
    """What ``lakewriter undo`` may do in Glue."""
    refresh: RefreshEntry = RefreshEntry()
    """What a full refresh keeps, of tables with ``mode: refresh``."""
    maintenance: MaintenanceEntry | None = None
    """Bounds what Iceberg tables keep: old snapshots, small files and orphan files. Without it all stay."""
    delta_encodings: bool = False
    """Writes Parquet's DELTA encodings where a column's values mostly differ. Files get smaller, but not every reader
    knows them."""
    readers: tuple[ReaderName, ...] = ()
    """The programs that will read the Parquet files. Columns get the smallest encodings that all of these are known to
    read. If none is named, they get the encodings that every reader has. A codec that one of them may not read is
    refused."""
    contract: ContractEntry = ContractEntry()
    """What happens when columns or types change in the sources. A table's own ``contract`` comes first."""
    on_bad_row: BadRowEntry | None = None
    """What happens to a row that cannot be loaded. A table's own ``on_bad_row`` comes first."""
    expect: tuple[SharedExpectEntry, ...] = ()
    """What each load of every table is expected to be, or of the tables and streams that an entry names."""
    on_violation: OnViolation | None = None
    """What happens where an expectation does not hold. A table's own ``on_violation`` comes first."""
    repeated: Repetition | None = None
    """What happens where a load would append rows of files that an earlier load has read: ``warn`` counts them,
    ``fail`` loads nothing, ``allow`` says nothing. A table's own ``repeated`` comes first. ``fail`` is refused if rows
    of a table without files may come again, and says nothing of tables to which none is appended again."""
    limits: LimitsEntry = LimitsEntry()
    """Sizes and counts that bound a load."""
    lineage: LineageEntry | None = None
    """Sends OpenLineage events when each table's load begins and ends. Without it none are sent."""
    deployment: Deployment = Deployment()
    """What the CDK stacks create: roles, schedule, alarms, the size of Spark. A load reads only its ``stages``."""

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
        return self

    @model_validator(mode="after")
    def _keys_of_the_destination(self) -> "LakeFile":
        dialect = find_dialect(self.destination)
        given = {"source": self.source is not None, "delta_encodings": self.delta_encodings}
        for key in (key for key, is_given in given.items() if is_given and key not in dialect.top_keys):
            raise ValueError(f"{key!r} is only for {list_destinations_with(key)}")
        if self.readers and self.delta_encodings:
            raise ValueError("'delta_encodings' and 'readers' both choose encodings; expected one of them")
        for key, name in self.destination.renamed_keys.items():
            if getattr(self, key) is not None:
                raise ValueError(f"{key!r} is called {name!r} here, under 'destination'")
        return self


@dataclass(frozen=True)
class Lake:
    """A lake.yaml, read: what the job needs, what the stacks need, and what goes into the vendor's form.

    ``data`` is the file's content with the stage laid over it; secrets in it are still references. ``principal`` names
    the vendor in ``deployment.trust`` whose form it is, None for a destination without one.
    """

    spec: Spec
    deployment: Deployment
    form: tuple[FormField, ...]
    data: Mapping[str, Any]
    principal: str | None


def load_spec(path: Path, *, stage: str | None = None) -> Spec:
    """Return the Spec of the file at ``path``; ``SPEC_INVALID`` with every problem of the file at once."""
    return load(path, stage=stage).spec


def load(path: Path, *, stage: str | None = None) -> Lake:
    """Load the file at ``path``; raise ``SPEC_INVALID`` with every problem of the file at once."""
    document, file, of_files = _read_checked(path, stage)
    destination, dialect = file.destination, find_dialect(file.destination)
    with locate_faults(document):
        _refuse_pairs(file, document)
        translated = dialect.translate(_make_checked_file(file, str(document.folder)))
        spec = fit_readers(translated, file.readers, delta=file.delta_encodings)
        merged = tuple(warn_of_merges(spec, file.readers))
        form = dialect.form_fields(destination)
        refuse_unsupported(spec, document.data)
        refuse_shared_quarantines(spec, document.data)
        given = [(entry.expect, entry.on_violation) for entry in file.tables]
        spec = apply_expectations(spec, given, file.expect, file.on_violation)
        lineage = _make_lineage(file, str(document.folder))
        spec = place_catalog(file.catalog_account, _settle_repetition(spec, file), file.maintenance)
        spec = choose_format(file.format_version, spec, file.readers)
        spec = project_partitions(file.projection, spec, file.readers, drops_partitions=file.undo.drop_partitions)
        maintenance = make_maintenance(
            file.maintenance,
            spec,
            has_checkpoint=file.checkpoint is not None,
            keep_loads_days=file.keep_loads_days,
            uploads_days=file.deployment.abort_incomplete_uploads_days,
        )
        interval = _choose_interval(file, spec)
    principal = dialect.principals.get(spec.dialect)
    own_policy = {principal: dialect.policies[spec.dialect]} if principal and spec.dialect in dialect.policies else {}
    loaded = {
        "limits": dialect.limits(destination, _make_limits(file)),
        **interval,
        "put_metrics": file.put_metrics,
        "checkpoint": file.checkpoint and make_absolute(file.checkpoint, str(document.folder)),
        "vendor": principal,
        "vendor_policies": VENDOR_POLICIES | own_policy,
        "on_failure": file.on_failure,
        "keep_loads_days": file.keep_loads_days,
        "shares_tables": file.shares_tables,
        "undo": UndoRules(**file.undo.model_dump()),
        "refresh": RefreshRules(**file.refresh.model_dump()),
        "maintenance": maintenance,
        "lineage": lineage,
        "warnings": (
            *of_files,
            *_warn_of_secrets(file, document),
            *_warn_of_root(file, document),
            *spec.warnings,
            *_list_option_notes(spec, is_streamed=file.checkpoint is not None),
            *merged,
            *(f"{error.message} {error.remedy}" for error in list_refused(spec) if file.checkpoint is not None),
            *_warn_of_changed_keys(file, document),
            *_warn_of_renamed(file, document),
        ),
    }
    jars = tuple(make_absolute(jar, str(document.folder)) for jar in file.deployment.jars)
    deployment = file.deployment.model_copy(update={"jars": jars}) if jars else file.deployment
    return Lake(spec.model_copy(update=loaded), deployment, form, document.data, principal)


def _warn_of_secrets(file: LakeFile, document: Document) -> Iterator[str]:
    """Yield a warning with the line of each secret that is written out."""
    name, lineage = file.destination.find_written_secret(), file.lineage
    locations: list[Location] = [("destination", *name.split("."))] if name else []
    if lineage is not None and lineage.api_key is not None and lineage.api_key.reference is None:
        locations.append(("lineage", "api_key"))
    for number, entry in enumerate(file.tables):
        values = entry.read.values if entry.read is not None else None
        if values is not None and values.password is not None and values.password.reference is None:
            locations.append(("tables", number, "read", "values", "password"))
    for location in locations:
        where = document.describe_position(location)
        yield f"{where} is written out; a reference such as ${{env:NAME}} keeps it out of the file."


def _warn_of_changed_keys(file: LakeFile, document: Document) -> Iterator[str]:
    """Yield a warning with the line of each table of changes that do not say which key a row had before."""
    for number, entry in enumerate(file.tables):
        if entry.envelope is not None and entry.envelope.leaves_old_keys:
            where = document.describe_position(("tables", number, "envelope"))
            yield (
                f"{where} has no 'before': a row whose key changes leaves its old row in the table. Add the columns "
                "with the keys before by a transformation rule of the task, add-before-image-columns with the prefix "
                "BI_, and set before: BI_."
            )


def _warn_of_renamed(file: LakeFile, document: Document) -> Iterator[str]:
    """Yield a warning with the line of each column that a load renames in its table."""
    for number, entry in enumerate(file.tables):
        for name, before in entry.renamed_from.items():
            where = document.describe_position(("tables", number, "columns", name))
            yield (
                f"{where} was {before!r} before: the next load renames the table's column where it has that name: "
                f"{WHO_NOTICES}."
            )


def _warn_of_root(file: LakeFile, document: Document) -> Iterator[str]:
    """Yield a warning of a folder that is not there: messages on what is read from there name paths alone."""
    root = make_absolute(file.source_root or "", str(document.folder))
    if file.source_root and "://" not in root and not Path(root).is_dir():
        where = document.describe_position(("source_root",))
        yield f"{where}: there is no folder {root!r} on this machine, where relative paths of sources start."


def load_destination(path: Path, *, stage: str | None = None) -> tuple[Destination, Callable[..., str]]:
    """Return the settings under ``destination``, and a function that says in which line of which file a key of them
    is."""
    document, file, _ = _read_checked(path, stage)
    return file.destination, lambda *keys: document.describe_position(("destination", *keys))


def _read_checked(path: Path, stage: str | None) -> tuple[Document, LakeFile, tuple[str, ...]]:
    """Return the document with the vendors' files that it names, its checked keys, and warnings about those files."""
    document = read(path, stage=stage)
    refuse_foreign(document, FOREIGN_FILES)
    document, of_files = _read_files(document)
    _refuse_foreign_entries(document)
    return document, _validate(document), of_files


def _settle_repetition(spec: Spec, file: LakeFile) -> Spec:
    """Return the spec whose tables say what happens to rows that are read again; ``SPEC_INVALID`` for a ``fail`` that
    no load would keep."""
    table_keys = [entry.repeated for entry in file.tables]
    tables = []
    for number, table in enumerate(spec.tables):
        in_table = table_keys[number] if number < len(table_keys) else None
        repeated = in_table or file.repeated or ("fail" if table.read.new_files else "warn")
        if repeated == "fail":
            cell = REPEATED[table.mode][find_way(table, spec.source, has_checkpoint=file.checkpoint is not None)]
            _require_fail(cell, table, None if in_table is None else number)
            is_compared = cell.fail is Fail.COMPARED or (cell.fail is Fail.ASKED and in_table is not None)
            repeated = "fail" if is_compared else "warn"
        tables.append(table.model_copy(update={"repeated": repeated}))
    return spec.model_copy(update={"tables": tuple(tables)})


def _require_fail(cell: Cell, table: TableSpec, number: int | None) -> None:
    """Raise ``SPEC_INVALID`` if loads cannot keep ``repeated: fail``: the key of the table with the ``number``, or else
    of the whole file."""
    location: Location = ("repeated",) if number is None else ("tables", number, "repeated")
    name = f"table {table.source_table!r}"
    if cell.fail is Fail.UNKNOWN:
        ways = [] if table.stream is not None else [f"give {name} a cursor, or a mode that replaces rows"]
        ways += [f"set repeated: warn for {name}"] if number is None and table.stream is None else []
        remedy = "; or ".join([*ways, "leave repeated out"])
        raise FaultError(
            location,
            f"repeated: fail cannot be kept for {name}: {cell.why}.",
            remedy=f"{remedy[0].upper()}{remedy[1:]}.",
        )
    if number is not None and cell.fail is Fail.NONE_AGAIN:
        raise FaultError(
            location, f"{name} has repeated: fail, and {cell.why}: it would refuse no load.", remedy="Leave it out."
        )


def _read_files(document: Document) -> tuple[Document, tuple[str, ...]]:
    """Return the document with the content of the files that it names, and warnings about them."""
    warnings: tuple[str, ...] = ()
    for dialect in DIALECTS:
        if dialect.read_files is not None:
            document, more = dialect.read_files(document, FOREIGN_FILES)
            warnings += more
    return read_config_file(document), warnings


def _list_option_notes(spec: Spec, *, is_streamed: bool) -> Iterator[str]:
    for table in spec.tables:
        yield from list_option_notes(table.id, table.read)
        if not is_streamed:
            yield from note_stream_options(table.id, table.read)


def _choose_interval(file: LakeFile, spec: Spec) -> dict[str, int | None]:
    """Return the seconds between loads, and how far they may grow."""
    seconds = file.interval_seconds or spec.interval_seconds
    if file.interval is None:
        return {"interval_seconds": seconds}
    bounds = AdaptiveInterval() if file.interval == "adaptive" else file.interval
    least = bounds.least_seconds or seconds
    most = bounds.most_seconds or max(least, min(10 * least, 3600))
    if most < least:
        raise FaultError(
            ("interval", "most_seconds"),
            f"it is {most}, and the least interval is {least}.",
            remedy="Give at least as much, or a smaller least_seconds.",
        )
    return {"interval_seconds": least, "most_interval_seconds": most}


def _make_lineage(file: LakeFile, folder: str) -> Lineage | None:
    return None if file.lineage is None else file.lineage.make_lineage(folder)


def _make_limits(file: LakeFile) -> Limits:
    return Limits(
        upload_parallelism=file.destination.upload_parallelism,
        target_file_bytes=file.limits.target_file_mb * MIB,
        row_group_bytes=file.limits.row_group_mb * MIB,
        parallel_tables=file.limits.parallel_tables,
    )


def _refuse_pairs(file: LakeFile, document: Document) -> None:
    """Raise ``SPEC_INVALID`` for tables with settings that their destination, or other settings, refuse."""
    refused = find_dialect(file.destination).find_refused(file.destination)
    problems: list[tuple[Location, str, str]] = []
    for number, entry in enumerate(file.tables):
        for setting, refusal in find_refusals(entry, refused).items():
            key: Location = ("read", "files") if setting == NEW_FILES else (setting.partition(": ")[0],)
            problems.append((("tables", number, *key), refusal.says.format(table=entry.title), refusal.remedy))
    if len(problems) > 1:
        lines = [f"{document.describe_position(at)}: {says} {remedy}" for at, says, remedy in problems]
        raise SpecInvalidError(f"{document.name} has {len(lines)} problems:", problems=lines)
    for at, says, remedy in problems:
        raise FaultError(at, says, remedy=remedy)


def _make_checked_file(file: LakeFile, folder: str) -> CheckedFile[Any]:
    return CheckedFile(
        pipeline=file.pipeline,
        destination=file.destination,
        tables=tuple(entry.apply_defaults(file.contract, file.on_bad_row) for entry in file.tables),
        source=file.source,
        contract=file.contract,
        on_bad_row=file.on_bad_row,
        root=make_absolute(file.source_root or "", folder),
        folder=folder,
    )


def _validate(document: Document) -> LakeFile:
    tag = find_tag(document.data.get("destination"))
    dialect = BY_TYPE[document.data["destination"]["type"]] if tag else None

    def list_known_keys(parent: Location) -> list[str]:
        if parent[:1] == ("destination",) and dialect and tag:
            return dialect.keys_at(MODELS[tag], parent[1:], document.data["destination"])
        if parent[:1] == ("tables",):
            form = dialect.table_form if dialect else None
            return list_keys(find_model(form.model if form else TableEntry, parent[2:]))
        return list_keys(find_model(LakeFile, parent))

    try:
        return LakeFile.model_validate(document.data)
    except ValidationError as error:
        lines = describe_problems(error, document, list_known_keys, UNION_TAGS, _find_homes(tag))
        if "destination" in document.data and not tag:
            lines = [_describe_unknown_type(document), *lines]
        count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
        raise SpecInvalidError(f"{document.name} has {count}:", problems=lines) from error


def _find_homes(tag: str | None) -> dict[str, str]:
    """Return the place of each key that one or two places have: for those that stand elsewhere by mistake."""
    parts: dict[str, type[BaseModel]] = {
        "the top of the file": LakeFile,
        "the entry of the table": TableEntry,
        "the table's 'read'": ReadEntry,
        "'limits'": LimitsEntry,
        "'deployment'": Deployment,
    }
    if tag:
        parts["'destination'"] = MODELS[tag]
    parts |= {f"'deployment.{name}'": model for name, model in _list_parts(Deployment)}
    homes: dict[str, list[str]] = {}
    for part, model in parts.items():
        for key in list_keys(model):
            homes.setdefault(key, []).append(part)
    return {key: " or ".join(parts_of_key) for key, parts_of_key in homes.items() if len(parts_of_key) <= 2}


def _list_parts(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """List the keys of a model whose values are mappings with keys of their own."""
    for name, field in model.model_fields.items():
        models = list(list_models(field.annotation))
        if len(models) == 1:
            yield field.alias or name, models[0]


def _refuse_foreign_entries(document: Document) -> None:
    """Raise ``SPEC_INVALID`` for a table in the words of another destination."""
    tag, tables = find_tag(document.data.get("destination")), document.data.get("tables")
    if tag is None or not isinstance(tables, list):
        return
    kind = document.data["destination"]["type"]
    others = [dialect for dialect in DIALECTS if dialect is not BY_TYPE[kind]]
    wrong = {key: other for other in others if other.table_form for key in other.table_form.keys}
    for number, entry in enumerate(tables):
        for key in wrong:
            if isinstance(entry, dict) and key in entry:
                raise SpecInvalidError(
                    f"{document.describe_position(('tables', number, key))}: {key!r} is only for the destination "
                    f"{list_words(list(wrong[key].types))}, and this one is {kind!r}.",
                    remedy="Name the table with 'table', and its namespace with 'schema'.",
                )


def _describe_unknown_type(document: Document) -> str:
    destination, types = document.data["destination"], list_words(list(BY_TYPE))
    if not isinstance(destination, dict):
        where = document.describe_position(("destination",))
        return f"{where}: {describe_value(destination, ('destination',))}: expected a mapping with the key 'type'."
    where, kind = document.describe_position(("destination", "type")), destination.get("type")
    if kind is None:
        return f"{where}: is required; expected {types}."
    guess = suggest_nearest(kind, BY_TYPE) if isinstance(kind, str) else ""
    return f"{where}: {describe_value(kind, ())} is not a known destination; expected {types}{guess or '.'}"
