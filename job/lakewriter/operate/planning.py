"""Plan a load for ``lakewriter plan``: say what it would do, without doing it."""

import logging
import os
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TypedDict

import pyarrow as pa
from pydantic import Field

from lakewriter.aws import Clients
from lakewriter.commit.control import Control
from lakewriter.documents.schema import find_property_names
from lakewriter.errors import InternalError, LakeError
from lakewriter.expect.words import describe_expectation
from lakewriter.operate.column_changes import ColumnChange, list_changes, list_layout_changes
from lakewriter.operate.written_columns import Written, describe_columns, find_written
from lakewriter.records.state import TableState
from lakewriter.report import ErrorReport, format_count, join_first
from lakewriter.run.checks import check_next_load
from lakewriter.run.chosen_files import Chosen, choose_inputs, describe_ways
from lakewriter.run.earlier_columns import with_earlier_columns
from lakewriter.run.judging import plan_watched
from lakewriter.run.kinds import TablePart
from lakewriter.run.prepare import (
    Prepared,
    prepare,
    require_sorted_sample,
)
from lakewriter.run.sync import make_ownership, plan_sync
from lakewriter.source.files.file_source import has_reader
from lakewriter.source.first_rows import SAMPLE_ROWS
from lakewriter.source.request import SparkFactory
from lakewriter.source.text_types import propose_types, write_columns_line
from lakewriter.spec.encodings import TextEncoding
from lakewriter.spec.layout import ObjectNames
from lakewriter.spec.model import Model
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

LOG: Final = logging.getLogger(__name__)
_MOST_VIEWS: Final = 3


class PlannedColumn(Model):
    """A column of the plan: its name in the source, blank for one that the load adds, and how it is written."""

    source: str
    name: str
    type: str
    change: str


class PlannedTable(Model):
    """The plan of one table; ``error`` is set where a load would fail, and then other fields may be empty.

    loads          committed so far
    compared_with  where the columns of before were found, None for a first load and where they could not be
    changes        how the columns would differ from those
    breaks         what readers of the table would fail on
    deleted_bytes  of the objects in ``deletes``
    proposed       types for columns of text, as ``columns:`` takes them
    columns_line   the line of lake.yaml that declares these beside what the table declares
    expectations   what a load is expected to be, in words
    """

    table: str
    source: str
    key: str
    feed: str = ""
    reason: str = ""
    tasks: int = 0
    rows: int | None = None
    reads: str = ""
    columns: tuple[PlannedColumn, ...] = ()
    catalog: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: str | None = None
    loads: int = 0
    compared_with: str | None = None
    changes: tuple[ColumnChange, ...] = ()
    breaks: tuple[str, ...] = ()
    deleted_bytes: int = 0
    proposed: Mapping[str, str] = {}
    columns_line: str = ""
    expectations: tuple[str, ...] = ()
    failure: ErrorReport | None = Field(None, exclude=True)
    """The error with its code and remedy, which the command reports as its own."""


class _PlanFields(TypedDict, total=False):
    """The known fields of a table's plan."""

    key: str
    feed: str
    reason: str
    tasks: int
    rows: int | None
    reads: str
    columns: tuple[PlannedColumn, ...]
    catalog: tuple[str, ...]
    deletes: tuple[str, ...]
    warnings: tuple[str, ...]
    loads: int
    compared_with: str | None
    changes: tuple[ColumnChange, ...]
    breaks: tuple[str, ...]
    deleted_bytes: int
    proposed: Mapping[str, str]
    columns_line: str


class PlanReport(Model):
    """What ``lakewriter plan --json`` prints."""

    version: Literal[1] = 1
    pipeline: str
    tables: tuple[PlannedTable, ...]


def plan(
    spec: Spec, *, job_id: str | None, clients: Clients, spark: SparkFactory, controls: Mapping[str, Control]
) -> tuple[PlannedTable, ...]:
    """Plan every table; a table that cannot be loaded has its error in the plan."""
    started = datetime.now(UTC)
    tables = []
    for table in spec.tables:
        names = table.layout.bind(job_id=job_id or str(uuid.uuid4()), attempt="plan", start=started)
        fields: _PlanFields = {"key": f"s3://{spec.access.bucket}/{names.object_key(0)}"}
        failure: LakeError | None = None
        try:
            for more in _plan_table(spec, table, names, clients, spark, controls[table.id]):
                fields |= more
        except LakeError as error:
            failure = error
        except Exception as error:
            LOG.exception("The plan of table %s met a fault of the program.", table.id)
            failure = InternalError.met(f"table {table.id}", error)
        planned = PlannedTable(
            table=table.id,
            expectations=tuple(map(describe_expectation, table.expect)),
            source=".".join(part for part in (table.source_schema, table.source_table) if part),
            error=None if failure is None else str(failure),
            failure=None if failure is None else ErrorReport.of(failure),
            **fields,
        )
        tables.append(planned)
    return tuple(tables)


_UNASKED: Final = "planned from the file alone: neither its sources, nor its bucket and catalog were asked (--offline)"


def plan_offline(spec: Spec, *, job_id: str | None) -> tuple[PlannedTable, ...]:
    """Plan every table from the file alone: no server is asked, no source is read, no secret is resolved."""
    started, tables = datetime.now(UTC), []
    for table in spec.tables:
        names = table.layout.bind(job_id=job_id or str(uuid.uuid4()), attempt="plan", start=started)
        declared = {source: column_type.type for source, column_type in table.columns.items()}
        if table.stream is not None:
            declared |= dict.fromkeys(find_property_names(table.stream.json_schema), "") | declared
        tables.append(
            PlannedTable(
                table=table.id,
                expectations=tuple(map(describe_expectation, table.expect)),
                source=".".join(part for part in (table.source_schema, table.source_table) if part),
                key=f"s3://{spec.access.bucket}/{names.object_key(0)}",
                reads=f"{_describe_source(table)}, {table.mode.value}",
                columns=tuple(
                    PlannedColumn(source=source, name=table.names.get(source, source), type=column_type, change="")
                    for source, column_type in declared.items()
                ),
                changes=tuple(
                    ColumnChange(name=source, change="added", after=column_type)
                    for source, column_type in declared.items()
                ),
                warnings=(_UNASKED,),
            )
        )
    return tuple(tables)


def _describe_source(table: TableSpec) -> str:
    if table.stream is not None:
        return f"messages of stream {table.stream.name!r}"
    read = table.read
    return " ".join(filter(None, (read.format or "sql", ", ".join(read.paths))))


def _plan_table(
    spec: Spec,
    table: TableSpec,
    names: ObjectNames,
    clients: Clients,
    spark: SparkFactory,
    control: Control,
) -> Iterator[_PlanFields]:
    """Yield the plan of one table part by part: where an error is raised, what is known before it is yielded."""
    target, begins = check_next_load(spec, table, control, control.state.read(), names, clients)
    state, names, entry = target.state, target.names, target.in_place
    begun = (f"the load begins backfill {state.backfill}: it reads everything again",) if begins else ()
    yield {"key": f"s3://{spec.access.bucket}/{names.object_key(0)}"}
    if table.is_given:
        yield {"warnings": ("it has no read: a program writes it from a DataFrame, and its columns are known then",)}
        return
    written = find_written(spec, table, control, state, entry, clients)
    state = with_earlier_columns(control, clients, table, state, names)
    inputs = choose_inputs(control, table, state, spark)
    prepared = prepare(spec, inputs.table, state, entry, spark)
    try:
        deletes = _list_deletes(spec, table, control)
        key, size = name_first_key(spec, prepared, names), _sum_sizes(control, spec, deletes)
        yield {"key": key, "deletes": deletes, "deleted_bytes": size, "loads": state.committed}
        described = _describe_plan(spec, inputs, prepared)
        yield described
        yield _compare(spec, table, prepared, written, key)
        rows = _read_sample(spec, table, prepared)
        if rows is not None:
            require_sorted_sample(table, prepared, rows, state)
        yield _propose_types(table, prepared, written, rows if _has_types(spec) else None)
        again = _warn_of_repetition(spec, inputs, control, state, described["rows"])
        warnings = (*_list_warnings(table, prepared, written), *_warn_of_streams(spec, table), *again)
        yield {"warnings": (*warnings, *begun)}
    finally:
        prepared.feed.close()


def _compare(spec: Spec, table: TableSpec, prepared: Prepared, written: Written | str | None, uri: str) -> _PlanFields:
    """Return the changes of columns and files for their readers."""
    if isinstance(written, str):
        return {}
    if written is None:
        columns = describe_columns(prepared.shape.schema, "table" if spec.iceberg else spec.encoding.kind)
        return {"changes": tuple(ColumnChange(name=name, change="added", after=t) for name, t in columns.items())}
    schema, kind = prepared.shape.schema, "table" if written.kind == "table" else spec.encoding.kind
    now, is_replaced = describe_columns(schema, kind), table.latest is not None
    changes = list_changes(written, now, kind, is_replaced=is_replaced, renames=prepared.renames)
    breaks = [f"{change.text.removeprefix('! ')}: {change.effect}" for change in changes if change.breaks]
    if written.kind != "table":
        is_known = table.layout.matcher().fullmatch(written.key) is not None
        key = uri.removeprefix(f"s3://{spec.access.bucket}/")
        breaks += list_layout_changes(written, key, kind, is_known=is_known)
    return {"compared_with": written.origin, "changes": changes, "breaks": tuple(breaks)}


def _read_sample(spec: Spec, table: TableSpec, prepared: Prepared) -> pa.Table | None:
    """Return the first rows of a source whose columns of text may get types; None for files without types, unless the
    order of a cursor's texts matters."""
    is_asked = table.collection is None and bool(_has_types(spec) or table.cursor is not None or table.order_by)
    return prepared.feed.read_first(SAMPLE_ROWS) if is_asked else None


def _has_types(spec: Spec) -> bool:
    return not isinstance(spec.encoding, TextEncoding) or spec.encoding.kind != "csv"


def _propose_types(
    table: TableSpec, prepared: Prepared, written: Written | str | None, rows: pa.Table | None
) -> _PlanFields:
    """Return the types that the first rows of text columns allow, and the line that declares them.

    A column that was loaded as text keeps its type: another one would break its readers.
    """
    if rows is None or isinstance(written, str):
        return {}
    before = set() if written is None else {name.lower() for name in written.columns}
    loaded = [column.source for column in prepared.shape.columns if column.name.lower() in before]
    proposals = propose_types(rows, [*table.columns, *loaded])
    proposed = {name: proposal.type for name, proposal in proposals.items() if proposal.type}
    if not proposed:
        return {}
    return {"proposed": proposed, "columns_line": write_columns_line(table.columns, proposed)}


def _warn_of_repetition(
    spec: Spec, inputs: Chosen, control: Control, state: TableState, rows: int | None
) -> tuple[str, ...]:
    """Return the warning that every load appends the same rows again, with their number and the remedies."""
    # A pipeline with a checkpoint is run continuously, and reads nothing twice.
    again = None if spec.checkpoint else inputs.describe(state.committed)
    if again is None:
        return ()
    ways = () if inputs.table.read.new_files else (describe_ways(inputs.table),)
    if rows is not None:
        return (f"{again} ({format_count(rows, 'row')})", *ways)
    report = control.read_report(state.last_job) if state.last_job is not None else None
    if report is None:
        return (again, *ways)
    return (f"{again} (the last one had {format_count(report.rows, 'row')})", *ways)


def _sum_sizes(control: Control, spec: Spec, uris: tuple[str, ...]) -> int:
    """Return the bytes of objects, from one listing of what their keys have in common."""
    if not uris:
        return 0
    keys = {uri.removeprefix(f"s3://{spec.access.bucket}/") for uri in uris}
    entries = control.store.list_entries(os.path.commonpath(keys))
    return sum(entry.size for entry in entries if entry.key in keys)


def name_first_key(spec: Spec, prepared: Prepared, names: ObjectNames) -> str:
    """Name the first object's URI, as far as it is known: a catalog may choose a new table's location later."""
    if not spec.iceberg:
        return f"s3://{spec.access.bucket}/{names.object_key(0)}"
    location = prepared.table.find_location() or "(the catalog's choice)"
    partition = "".join(f"{field.name}=*/" for field in prepared.shape.partition)
    return f"{location}/data/{partition}{names.object_key(0).rpartition('/')[2]}"


def _describe_reads(inputs: Chosen, prepared: Prepared) -> str:
    """Say which rows a load reads."""
    if inputs.table.read.new_files and inputs.listed is not None:
        return f"{len(inputs.files):,} of {format_count(len(inputs.listed), 'file')}: those that are new"
    return f"rows where {prepared.condition}" if prepared.condition else "all rows"


def _describe_plan(spec: Spec, inputs: Chosen, prepared: Prepared) -> _PlanFields:
    feed, shape = prepared.feed, prepared.shape
    plan_watched(spec, inputs.table, shape)
    stored = feed.read_stored_types()
    columns = [
        PlannedColumn(
            source=c.source,
            name=c.name,
            type=str(c.type),
            change=_describe_change(stored.get(c.source), c.source_type, c.type),
        )
        for c in shape.columns
    ]
    named = {column.name for column in columns}
    added = [name for name in shape.schema.names if name not in named]
    columns += [
        PlannedColumn(source="", name=name, type=str(shape.schema.field(name).type), change="added") for name in added
    ]
    return {
        "feed": feed.kind,
        "reason": feed.reason,
        "tasks": feed.partitions,
        "rows": sum(feed.counts) if feed.counts is not None else None,
        "reads": _describe_reads(inputs, prepared),
        "columns": tuple(columns),
        "catalog": prepared.changes,
    }


def _list_deletes(spec: Spec, table: TableSpec, control: Control) -> tuple[str, ...]:
    """List the objects that a full refresh would delete; ``NAME_COLLISION`` where it may not refresh the directory."""
    if spec.envelope is None:
        return ()
    planned = plan_sync(spec, table, control, control.state.read(), 0, TablePart())
    make_ownership(spec, table, control).check(refreshes=planned.refreshes)
    return tuple(f"s3://{spec.access.bucket}/{key}" for key, _ in (*planned.intent.retire, *planned.purge))


def _describe_change(stored: str | None, read: pa.DataType, written: pa.DataType) -> str:
    """Say from which type a column is cast: what the source stores, or else what it is read as."""
    if stored is not None:
        return f"cast from {stored}"
    return "" if read == written else f"cast from {read}"


def _warn_of_streams(spec: Spec, table: TableSpec) -> tuple[str, ...]:
    """Return the warning that a continuous run reads files with other readers than a single load."""
    names = [name for name, view in table.read.views.items() if has_reader(view)]
    if spec.checkpoint is None or not names:
        return ()
    return (
        f"below sql: a continuous run reads the files of {join_first(names, _MOST_VIEWS)} with Spark's own readers, "
        "and a single load does not",
    )


def _list_warnings(table: TableSpec, prepared: Prepared, written: Written | str | None) -> list[str]:
    warnings = [f"column {name!r} has no type yet and is left out" for name in prepared.shape.left_out]
    warnings += prepared.shape.notes
    if table.cursor is not None and table.cursor_lag is None:
        warnings.append(
            f"rows that arrive late, with {table.cursor} at or below the highest one loaded, are not read; "
            "cursor_lag reads them again"
        )
    if isinstance(written, str):
        warnings.append(f"columns are not compared with those of before: {written}")
    return warnings
