"""Describe the columns of a table's source, those that the file names and the source lacks, and what looks odd."""

import difflib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter import column_types
from lakewriter.doctor.probe import Finding, SeenColumn, SeenSource
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.naming import DELETED
from lakewriter.report import format_count, format_size, join_first
from lakewriter.run.prepare import Prepared, require_sorted_sample
from lakewriter.shape.cursor import describe_future, find_highest
from lakewriter.source.databases.database_rows import is_jdbc
from lakewriter.source.file_look import FileLook
from lakewriter.source.files.csv_headers import find_separator, make_separator_remedy
from lakewriter.source.files.file_reader import Hint
from lakewriter.source.text_types import Proposal, propose_types, write_columns_line
from lakewriter.spec.table_spec import TableSpec

_MOST_COLUMNS: Final = 12
_MOST_REASONS: Final = 6
_MOST_NOTES: Final = 20


def describe_seen(
    table: TableSpec, look: FileLook, looked_at: int | None, prepared: Prepared, rows: pa.Table | None
) -> SeenSource:
    """Describe what the look has shown, for people and programs."""
    counts = prepared.feed.counts if prepared.feed.kind == "splits" else None
    is_whole = look.files is not None and looked_at == len(look.files)
    fields = [field for field in prepared.feed.schema if field.name != DELETED]
    proposals = _propose_types(table, rows)
    return SeenSource(
        table=table.id,
        format="sql" if table.read.sql is not None else str(table.read.format),
        files=None if look.files is None else len(look.files),
        looked_at=looked_at,
        bytes=look.bytes,
        rows=sum(counts) if counts is not None and is_whole else None,
        sampled=None if rows is None else len(rows),
        columns=tuple(SeenColumn(name=field.name, type=name_type(field.type)) for field in fields),
        server=prepared.feed.version,
        proposed={name: str(proposal.type) for name, proposal in proposals.items() if proposal.type},
    )


def list_column_findings(
    name: str, table: TableSpec, prepared: Prepared, rows: pa.Table | None, seen: SeenSource
) -> Iterator[Finding]:
    """Yield the columns that were seen, the differences between the files, and the faults of the cursor."""
    yield Finding(name, "ok", _summarise(seen), source=seen)
    notes = [f"column {column!r} has no type yet and is left out" for column in prepared.shape.left_out]
    plain_notes = (note for note in prepared.feed.notes if not isinstance(note, Hint))
    for note in (*notes, *plain_notes)[:_MOST_NOTES]:
        yield Finding(name, "warning", f"table {table.id!r}: {note}.", "Nothing, if that is meant.")
    yield from _list_late_rows(name, table, prepared)
    if rows is not None and table.cursor is not None:
        try:
            require_sorted_sample(table, prepared, rows)
        except SpecInvalidError as error:
            yield Finding(name, "failed", error.message, error.remedy, error.code)
        column = next((c for c in rows.column_names if c.lower() == str(table.cursor).lower()), "")
        if rows.column_names.count(column) == 1:
            yield from _list_cursor_values(name, table, column, rows.column(column))


def _list_cursor_values(name: str, table: TableSpec, column: str, values: pa.ChunkedArray) -> Iterator[Finding]:
    """Yield the values of a cursor that leave rows out: nulls, and times that are still to come."""
    if values.null_count:
        message = (
            f"cursor {column!r} of {table.id!r} is null in {values.null_count:,} of {len(values):,} rows looked at."
        )
        yield Finding(name, "warning", message, "Only the first load reads such rows: null is above no cursor.")
    if pt.is_date(values.type) or pt.is_timestamp(values.type) or pt.is_string(values.type):
        stored = values.combine_chunks().cast(column_types.to_stored_type(column, values.type), safe=False)
        future = describe_future(find_highest(stored, column, 0), column, datetime.now(UTC))
        if future is not None:
            yield Finding(name, "warning", f"{future}.", "Leave such rows out with sql:, or correct the source.")


def _list_late_rows(name: str, table: TableSpec, prepared: Prepared) -> Iterator[Finding]:
    """Say that a database's rows with a time or a number as cursor may be missed, unless they are read again."""
    if not is_jdbc(table.read) or table.cursor is None or table.cursor_lag is not None:
        return
    kinds = [field.type for field in prepared.feed.schema if field.name.lower() == table.cursor.lower()]
    is_time = bool(kinds) and (pt.is_timestamp(kinds[0]) or pt.is_date(kinds[0]))
    if not kinds or not (is_time or pt.is_integer(kinds[0])):
        return
    kind, lag = ("time", "10 minutes") if is_time else ("number", "1000")
    yield Finding(
        name,
        "warning",
        f"cursor {table.cursor!r} of {table.id!r} is a {kind}: rows that a transaction commits late, with a {kind} "
        "below the highest one loaded, are not read.",
        f"cursor_lag: {lag} reads them again, and appends them again.",
    )


def list_type_findings(name: str, table: TableSpec, rows: pa.Table | None, seen: SeenSource) -> Iterator[Finding]:
    """Yield the types that columns of text could be declared with."""
    fitting = {column: proposal for column, proposal in _propose_types(table, rows).items() if proposal.type}
    if not fitting:
        return
    said = "; ".join(f"{column}: {proposal.reason}" for column, proposal in list(fitting.items())[:_MOST_REASONS])
    line = write_columns_line(table.columns, {column: str(proposal.type) for column, proposal in fitting.items()})
    one = "1 column of text could have a type"
    columns = one if len(fitting) == 1 else f"{len(fitting):,} columns of text could have types"
    message = f"table {table.id!r}: {columns}. {said}."
    yield Finding(name, "warning", message, f"To have them, set {line}.", source=seen)


def _propose_types(table: TableSpec, rows: pa.Table | None) -> dict[str, Proposal]:
    return {} if rows is None or table.collection is not None else propose_types(rows, table.columns)


def list_missing_columns(name: str, table: TableSpec, present: Sequence[str]) -> list[Finding]:
    """List each column that a key of the table names and the source does not have; the case of letters does not
    matter."""
    keys = {
        "primary_key": table.primary_key,
        "unique_key": table.unique_key,
        "cursor": (table.cursor,) if table.cursor else (),
        "partition_by": tuple(field.column for field in table.partition_by),
        "columns": tuple(table.columns),
    }
    folded = {column.lower() for column in present}
    findings = []
    for key, columns in keys.items():
        for column in columns:
            if column.lower() not in folded:
                message = f"{key} of {table.id!r}: the source has no column {column!r}."
                findings.append(Finding(name, "failed", message, _suggest(column, present), SpecInvalidError.code))
    separator = find_separator(table.read, present)
    if findings and separator is not None:
        message = f"{table.id!r}: the source has one column, {present[0]!r}, with {separator!r} in its name."
        return [Finding(name, "failed", message, make_separator_remedy(separator), SpecInvalidError.code)]
    return findings


def name_type(t: pa.DataType) -> str:
    """Return a type in SQL's words; in Arrow's where a file could not hold it."""
    try:
        return column_types.name_type(column_types.to_stored_type("", t))
    except LakeError:
        return str(t)


def _suggest(column: str, columns: Sequence[str]) -> str:
    near = difflib.get_close_matches(column.lower(), [name.lower() for name in columns], 1, 0.6)
    if near:
        return f"Did you mean {next(name for name in columns if name.lower() == near[0])!r}?"
    return f"It has: {join_first(columns, _MOST_COLUMNS)}."


def _summarise(seen: SeenSource) -> str:
    files = [] if seen.files is None else [format_count(seen.files, "file")]
    size = [] if seen.bytes is None else [format_size(seen.bytes)]
    rows = [] if seen.rows is None else [format_count(seen.rows, "row")]
    server = [seen.server] if seen.server else []
    facts = ", ".join([seen.format, *server, *files, *size, *rows, format_count(len(seen.columns), "column")])
    columns = join_first([f"{column.name} {column.type}" for column in seen.columns], _MOST_COLUMNS)
    looks = []
    if seen.looked_at is not None and seen.files is not None and seen.looked_at < seen.files:
        looks.append(f"columns of {format_count(seen.looked_at, 'file')} looked at")
    if seen.sampled is not None and seen.rows is None:
        looks.append(f"{format_count(seen.sampled, 'row')} looked at")
    shown = f" ({', '.join(looks)})" if looks else ""
    return f"{facts}: {columns}{shown}."
