"""Draft a lake.yaml from the paths and URLs that a user gives."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from lakewriter.dialects.registry import BY_TYPE
from lakewriter.errors import SpecInvalidError
from lakewriter.init.databases import draft_database
from lakewriter.init.draft import (
    Draft,
    TableDraft,
    make_destination,
    make_relative,
    name_pipeline,
    require_plain_names,
)
from lakewriter.init.file_tables import FileTable, find_tables
from lakewriter.init.proposals import (
    CheckProposal,
    describe_columns,
    explain_texts,
    find_repeated_key,
    propose_checks,
    propose_cursor,
    propose_key,
    propose_types,
)
from lakewriter.init.samples import Sample, read_sample
from lakewriter.init.spellings import find_spellings
from lakewriter.init.vendor_files import (
    VendorFile,
    find_subject,
    holds_messages,
    make_catalog,
    make_discovered_catalog,
    read_vendor_file,
)
from lakewriter.report import format_count, format_size

CATALOG_FILE: Final = "configured_catalog.json"
_LAKEWRITER: Final = "lakewriter-s3"
_AIRBYTE: Final = "airbyte-s3"
_ESTUARY: Final = "estuary-s3-parquet"
_ROLES: Final = frozenset(
    {
        *("catalog", "config", "configuration", "configured-catalog", "configured_catalog", "connection"),
        *("destination", "discover", "discovered", "endpoint", "flow", "lake", "messages", "source", "spec"),
    }
)
"""Such a name says what a file is to a pipeline; the next pipeline's has it too."""
_NO_ROWS: Final = "--expect proposes checks from rows of files, and none were given: lakewriter docs expectations"


@dataclass(frozen=True)
class Wishes:
    """The user's answers: the destination's type, bucket and region, the pipeline's name, and where the file goes.

    ``spark`` starts Spark, which only a database needs; ``schemas`` are its schemas to read. ``expects`` has checks of
    each load proposed.
    """

    folder: Path
    kind: str | None = None
    bucket: str | None = None
    region: str = "us-east-1"
    pipeline: str | None = None
    schemas: tuple[str, ...] = ()
    spark: Callable[[], Any] | None = None
    expects: bool = False


@dataclass
class _Given:
    """The user's paths by what they are."""

    files: list[FileTable] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)
    vendor: dict[str, VendorFile] = field(default_factory=dict)


@dataclass(frozen=True)
class Drafted:
    """The draft, and the files to write beside it by their names."""

    draft: Draft
    beside: Mapping[str, Any] = field(default_factory=dict)


def make_draft(sources: Sequence[str], wishes: Wishes) -> Drafted:
    """Look at each place, and draft the file; ``SPEC_INVALID`` or ``SOURCE_FAILED`` where that cannot be."""
    given = _recognise(sources)
    name = wishes.pipeline or _propose_name(sources, given, wishes.folder)
    without_data = not given.files and not given.databases
    if {"catalog", "connection", "discovered"} & given.vendor.keys() or given.messages:
        return _draft_messages(given, name, wishes)
    if "airbyte destination" in given.vendor and without_data:
        return _draft_messages(given, name, wishes)
    tables = [draft_table(table, wishes.folder, expects=wishes.expects) for table in given.files]
    for url in given.databases:
        tables += draft_database(url, wishes.schemas, wishes.spark)
    destination, comments, kind = _choose_destination(given, wishes)
    notes = tuple(problem for table in given.files for problem in table.problems)
    if wishes.expects and not given.files:
        notes += (_NO_ROWS,)
    if "flow" in given.vendor:
        tables, unmatched = _draft_bindings(given.vendor["flow"], tables, is_own=kind == _ESTUARY)
        notes += unmatched
    elif "endpoint" in given.vendor and without_data:
        tables = [_make_first_binding()]
    elif BY_TYPE[kind].table_form is not None:
        tables = [_require_key(table) for table in tables]
    # Estuary's task never ends: its documents are read as they come.
    checkpoint = "checkpoint" if kind == _ESTUARY else ""
    draft = Draft(name, destination, require_plain_names(tables), comments=comments, notes=notes, checkpoint=checkpoint)
    return Drafted(draft)


def _propose_name(sources: Sequence[str], given: _Given, folder: Path) -> str:
    """Name the pipeline: after the data, or what a vendor's file is about, or the folder that the lake.yaml is in."""
    of_vendor = {file.path for file in given.vendor.values()} | set(given.messages)
    said = [_name_place(source) for source in sources if source not in of_vendor]
    said += [name for file in given.vendor.values() if (name := find_subject(file))]
    said += [_name_place(source) for source in sources if source in of_vendor]
    names = [name_pipeline(text) for text in (*said, folder.resolve().name)]
    return next((name for name in names if name not in _ROLES), names[-1])


def _name_place(source: str) -> str:
    if source.startswith("jdbc:"):
        return source.partition("?")[0].partition(";")[0].rstrip("/").rpartition("/")[2].rpartition(":")[2]
    bare = source.rstrip("/")
    base = Path(bare).resolve().name if bare in (".", "..", "") else bare.rpartition("/")[2]
    return base.partition(".")[0] or base


def _recognise(sources: Sequence[str]) -> _Given:
    given = _Given()
    for source in sources:
        if source.startswith("jdbc:"):
            given.databases.append(source)
        elif (vendor := read_vendor_file(source)) is not None:
            if vendor.kind in given.vendor:
                raise SpecInvalidError(f"{given.vendor[vendor.kind].path} and {source} are both a {vendor.kind}.")
            given.vendor[vendor.kind] = vendor
        elif holds_messages(source):
            given.messages.append(source)
        else:
            given.files += find_tables(source)
    return given


def _choose_destination(given: _Given, wishes: Wishes) -> tuple[dict[str, Any], dict[str, str], str]:
    """Return the destination that a vendor's file describes, or a new one."""
    vendor_kinds: Mapping[str, str] = {"airbyte destination": _AIRBYTE, "flow": _ESTUARY, "endpoint": _ESTUARY}
    file = next((given.vendor[kind] for kind in vendor_kinds if kind in given.vendor), None)
    is_other = file is not None and file.kind == "flow" and wishes.kind not in (None, _ESTUARY)
    if file is None or is_other:
        kind = wishes.kind or _LAKEWRITER
        return (*make_destination(kind, wishes.bucket, wishes.region), kind)
    kind = wishes.kind or vendor_kinds[file.kind]
    path = make_relative(file.path, wishes.folder)
    if file.kind == "endpoint":
        keys, comments = _write_endpoint(file.content)
        return {"type": kind, **keys}, comments, kind
    keys = {"type": kind, "config_file": path}
    keys |= {key: f"${{env:{key.upper()}}}" for key in file.masked}
    comments = {"config_file": "taken as it is; keys beside it come first"}
    return keys, comments | dict.fromkeys(file.masked, "masked in the file: export the variable"), kind


def _write_endpoint(content: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return an endpoint's keys, its secrets by reference."""
    secrets = {"awsAccessKeyId": "AWS_ACCESS_KEY_ID", "awsSecretAccessKey": "AWS_SECRET_ACCESS_KEY"}
    keys = {key: f"${{env:{secrets[key]}}}" if key in secrets else value for key, value in content.items()}
    return keys, dict.fromkeys(secrets.keys() & keys.keys(), "kept out of the file: export the variable")


def _choose_catalog(given: _Given, wishes: Wishes) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Return the configured catalog's path, the file to write if there is none yet, and notes."""
    if "catalog" in given.vendor:
        return make_relative(given.vendor["catalog"].path, wishes.folder), {}, ()
    for kind, make in (("connection", make_catalog), ("discovered", make_discovered_catalog)):
        if kind in given.vendor:
            content, notes = make(given.vendor[kind].content)
            return CATALOG_FILE, {CATALOG_FILE: content}, notes
    if given.messages:
        raise SpecInvalidError(
            f"{given.messages[0]} holds messages of Airbyte's protocol, and no catalog says which streams they are.",
            remedy="Name the configured catalog as well: lakewriter init messages.jsonl configured_catalog.json.",
        )
    return CATALOG_FILE, {}, (f"put the connection's configured catalog into {CATALOG_FILE}, or name where it is",)


def _draft_messages(given: _Given, name: str, wishes: Wishes) -> Drafted:
    """Return a pipeline of Airbyte's messages, whose configured catalog gives the tables."""
    if given.files or given.databases:
        raise SpecInvalidError(
            "messages of Airbyte's and other sources do not go into one pipeline.",
            remedy="Draft a lake.yaml for each, with --output.",
        )
    catalog, beside, notes = _choose_catalog(given, wishes)
    destination, comments, kind = _choose_destination(given, replace(wishes, kind=wishes.kind or _AIRBYTE))
    if "source" not in BY_TYPE[kind].top_keys:
        raise SpecInvalidError(f"--type {kind!r} takes no messages; expected {_AIRBYTE!r} or 'heropixel-s3'.")
    paths = [make_relative(path, wishes.folder) for path in given.messages]
    if paths:
        messages: tuple[Any, str] = (paths[0] if len(paths) == 1 else paths, "files, folders or s3:// paths; - is "
                                     "standard input")  # fmt: skip
    else:
        messages = ("-", "standard input; or files that hold the messages. Or in place of this key, a connector that "
                    "the job runs: command: [source-faker, read, --config, c.json, --catalog, k.json]")  # fmt: skip
    if wishes.expects:
        notes += (_NO_ROWS,)
    source = {"messages": messages, "catalog": (catalog, "the streams, and what is to be done with each")}
    return Drafted(Draft(name, destination, source=source, comments=comments, notes=notes), beside)


def draft_table(table: FileTable, folder: Path, *, expects: bool = False) -> TableDraft:
    """Draft the entry of a table of files, with what a look at its rows proposes."""
    sample = read_sample(table.paths, table.head)
    columns = describe_columns(sample.rows)
    types = propose_types(columns)
    key = propose_key(table.name, sample.rows, columns, is_whole=sample.is_whole) if columns else None
    cursor = propose_cursor(sample.rows, columns)
    spellings = find_spellings(sample.rows, columns)
    repeats = find_repeated_key(table.name, sample.rows, columns, len(table.files)) if table.growth else ""
    paths = [make_relative(path, folder) for path in table.paths]
    read: dict[str, Any] = {"format": table.head.format, "path": paths[0] if len(paths) == 1 else paths}
    if sample.options:
        read["options"] = dict(sample.options)
    checks: tuple[CheckProposal, ...] = ()
    if expects and key:
        reads_new = bool(table.growth) or (cursor is not None and cursor.is_certain)
        checks = propose_checks(sample.rows, columns, key, cursor, is_whole=sample.is_whole, reads_new=reads_new)
    return TableDraft(
        name=table.name,
        read=read,
        seen=_describe_sample(table, sample),
        key=(key.columns, key.evidence, key.is_certain) if key else ((), "", False),
        cursor=(cursor.columns[0], cursor.evidence, cursor.is_certain) if cursor else None,
        columns={name: (kind, reason) for name, (kind, reason) in types.items()},
        notes=sample.notes,
        growth=table.growth,
        repeats=repeats,
        is_small=sample.is_whole,
        texts=explain_texts([column for column in columns if column.name not in {s.column for s in spellings}]),
        spellings=spellings,
        retyped=sample.retyped,
        expect=checks,
    )


def _describe_sample(table: FileTable, sample: Sample) -> str:
    size = format_size(sum(file.length for file in table.files))
    rows = format_count(sample.rows.num_rows, "row")
    looked = f"all {rows}" if sample.is_whole else f"the first {rows}"
    files = format_count(len(table.files), "file")
    return f"{files}, {size}; looked at {looked}, {format_count(len(sample.rows.column_names), 'column')}"


def _require_key(table: TableDraft) -> TableDraft:
    """Require a key: a destination of collections has no table without one."""
    columns, evidence, is_certain = table.key
    if columns and is_certain:
        return table
    if columns:
        return replace(table, key=(columns, evidence, True))
    return replace(table, key=(("CHANGE-ME",), f"this destination needs a key; {evidence}", True))


def choose_region() -> str:
    """Return the region of this machine's AWS configuration, else N. Virginia's."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


_MISSING: Final = "put the path of this collection's documents here"


def _draft_bindings(
    flow: VendorFile, files: Sequence[TableDraft], *, is_own: bool
) -> tuple[list[TableDraft], tuple[str, ...]]:
    """Draft an entry for each binding that is not disabled, with the files whose name is the collection's; and notes on
    files that no collection has the name of. ``is_own`` is true for the destination that takes the specification."""
    drafts, left = [], {table.name.lower(): table for table in files}
    for source in _list_sources(flow):
        table = left.pop(source.rpartition("/")[2].lower(), None)
        if table is None:
            read = {"format": "text", "path": f"{source.rpartition('/')[2]}.jsonl"}
            drafts.append(TableDraft(source, read, _MISSING, more={"documents": "value"}))
        elif table.read["format"] == "json":
            # A line is a document, whose columns the collection's own schema has.
            read = {"format": "text", "path": table.read["path"]}
            drafts.append(TableDraft(source, read, table.seen, more={"documents": "value"}))
        else:
            drafts.append(replace(table, name=source))
    notes = tuple(f"table {name!r} was left out: no binding has a collection of this name" for name in left)
    return [_fit_binding(draft, _find_key(flow, draft.name), is_own=is_own) for draft in drafts], notes


def _fit_binding(draft: TableDraft, key: tuple[str, ...], *, is_own: bool) -> TableDraft:
    """Leave key, fields and path to the specification, or take its key where the destination reads none."""
    if is_own:
        seen = f"{draft.seen}; its key is the collection's: {', '.join(key)}" if key else draft.seen
        bare = replace(draft, names={"source": draft.name}, key=((), "", False), cursor=None, columns={}, growth="")
        return replace(bare, seen=seen)
    columns = tuple(pointer.removeprefix("/") for pointer in key)
    evidence = ("the collection's own key", "/" not in "".join(columns)) if columns else draft.key[1:]
    return replace(draft, name=draft.name.rpartition("/")[2], key=(columns or draft.key[0], *evidence))


def _find_key(flow: VendorFile, source: str) -> tuple[str, ...]:
    collections = flow.content.get("collections")
    collection = collections.get(source) if isinstance(collections, dict) else None
    key = collection.get("key") if isinstance(collection, dict) else None
    return tuple(map(str, key)) if isinstance(key, list) else ()


def _make_first_binding() -> TableDraft:
    """Make an entry to begin with, for an endpoint whose bindings nobody has given."""
    more = {"documents": "value", "collection": {"key": ["/id"]}}
    return TableDraft(
        "acmeCo/documents",
        {"format": "text", "path": "documents.jsonl"},
        "put your collection, the path of its documents and its key here",
        more=more,
    )


def _list_sources(flow: VendorFile) -> list[str]:
    materializations = flow.content.get("materializations")
    if not isinstance(materializations, dict) or len(materializations) != 1:
        count = len(materializations) if isinstance(materializations, dict) else 0
        raise SpecInvalidError(
            f"{flow.path} has {count} materializations, expected one.",
            remedy="Draft the file from one with a single materialization; destination.materialization names it later.",
        )
    (materialization,) = materializations.values()
    bindings = materialization.get("bindings") if isinstance(materialization, dict) else None
    sources = [_get_source(entry) for entry in bindings or () if isinstance(entry, dict) and not entry.get("disable")]
    if not sources or not all(isinstance(source, str) for source in sources):
        raise SpecInvalidError(f"{flow.path} has no bindings with a 'source'.", remedy="Give each collection one.")
    return [str(source) for source in sources]


def _get_source(binding: dict[str, Any]) -> Any:
    source = binding.get("source")
    return source.get("name") if isinstance(source, dict) else source
