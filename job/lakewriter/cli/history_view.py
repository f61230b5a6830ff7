"""The work of ``lakewriter history`` and ``lakewriter show``."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from lakewriter.cli.endings import list_given
from lakewriter.cli.fitting import GAP, Column, fit_columns, lay_out
from lakewriter.cli.printed import HistoryReport, LoadSummary, ShownLoad
from lakewriter.cli.shared import OUT, open_context, print_json, warn
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.loads import LEFT_OUT, Loads
from lakewriter.pages.load_page import describe_cost, list_next_steps
from lakewriter.pages.load_record import LoadedTable, LoadRecord
from lakewriter.pages.render import format_moment, format_seconds, show_text
from lakewriter.report import format_count, format_size, join_first

_STYLES: Final = {
    "done": "green",
    "already done": "green",
    "failed": "red",
    "stopped": "yellow",
    "unfinished": "yellow",
    "not run": "yellow",
    "undone": "yellow",
}


def print_history(lake: Path, stage: str | None, table: str | None, limit: int, *, as_json: bool) -> int:
    """Print the last loads of the file at ``lake``."""
    context = open_context(lake, stage)
    if table is not None:
        context.require_table(table)
    records = Loads(context.controls()).read_last(limit, table)
    if table is not None:
        records = [narrow(record, table) for record in records]
    summaries = tuple(LoadSummary.of(record) for record in records)
    if as_json:
        print_json(HistoryReport(pipeline=context.spec.pipeline, loads=summaries))
    else:
        show_history(OUT, summaries)
        for note in (note for record in records for note in record.notes if note.endswith(LEFT_OUT)):
            warn(note)
    return EXIT_OK


def print_load(lake: Path, stage: str | None, job_id: str | None, *, as_json: bool) -> int:
    """Print one load of the file at ``lake``."""
    record = Loads(open_context(lake, stage).controls()).read_one(job_id)
    if as_json:
        print_json(ShownLoad(load=record))
    else:
        show_load(OUT, record)
    return EXIT_OK


def narrow(record: LoadRecord, table_id: str) -> LoadRecord:
    """Return the load as if it had only this table."""
    tables = tuple(table for table in record.tables if table.id == table_id)
    return record.model_copy(update={"tables": tables, "seconds": next(table.seconds for table in tables)})


def show_history(out: Console, loads: Sequence[LoadSummary]) -> None:
    """Show a row for each load; a pipe gets every column in full."""
    if not loads:
        out.print("no load has records that are kept")
        return
    names = Column("load", tuple(load.job_id for load in loads))
    columns = [
        Column("status", tuple(load.status for load in loads)),
        Column("ended (UTC)", tuple(format_moment(load.finished) for load in loads), weight=1),
        Column("rows", tuple(f"{load.rows:,}" for load in loads), right=True),
        Column("tables", tuple(f"{load.tables:,}" for load in loads), weight=4, right=True),
        Column("files", tuple(f"{load.files:,}" for load in loads), weight=3, right=True),
        Column("size", tuple(format_size(load.bytes) for load in loads), weight=2, right=True),
        Column("time", tuple(format_seconds(load.seconds) for load in loads), weight=2, right=True),
        Column("set aside", tuple(f"{n:,}" if (n := load.rows_set_aside) else "" for load in loads), weight=5,
               right=True),
        Column("tries", tuple(f"{load.attempts:,}" if load.attempts > 1 else "" for load in loads), weight=5,
               right=True),
        Column("code", tuple(load.code or "" for load in loads), weight=6),
        Column("again", tuple(load.repeated or "" for load in loads), weight=7),
    ]  # fmt: skip
    _print_grid(out, names, columns)


def show_load(out: Console, record: LoadRecord) -> None:
    """Print a load's end, a row for each table, what did not go as wanted, its cost and what to do next."""
    ended = f", ended {format_moment(record.finished)} UTC" if record.finished else ""
    lasted = f" after {format_seconds(record.seconds)}" if record.seconds is not None else ""
    out.print(
        f"load {record.job_id} of {record.pipeline}: {record.status}{ended}{lasted}", markup=False, soft_wrap=True
    )
    if record.tables:
        _print_grid(
            out, Column("table", tuple(_show(table.id) for table in record.tables)), _list_columns(record.tables)
        )
    for line in (*_describe_earlier(record), *_describe_remarks(record)):
        out.print(line, markup=False, soft_wrap=True)


def _list_columns(tables: Sequence[LoadedTable]) -> list[Column]:
    return [
        Column("status", tuple(table.status.replace("_", " ") for table in tables)),
        Column("rows", tuple(f"{table.rows:,}" for table in tables), right=True),
        Column("files", tuple(f"{table.files:,}" for table in tables), weight=1, right=True),
        Column("size", tuple(format_size(t.bytes) if t.files else "" for t in tables), weight=2, right=True),
        Column("median file", tuple(format_size(t.sizes.median) if t.sizes else "" for t in tables), weight=5,
               right=True),
        Column("time", tuple(format_seconds(table.seconds) for table in tables), weight=3, right=True),
        Column("cursor", tuple(_show(t.cursor_after.text) if t.cursor_after else "" for t in tables), weight=4),
    ]  # fmt: skip


def _describe_earlier(record: LoadRecord) -> Iterator[str]:
    for attempt in record.earlier:
        ended = f" at {format_moment(attempt.finished)} UTC" if attempt.finished else ""
        lasted = f" after {format_seconds(attempt.seconds)}" if attempt.seconds is not None else ""
        why = ": ".join(filter(None, (attempt.code, _show(attempt.message or ""))))
        yield f"earlier attempt {attempt.attempt}: {attempt.status}{ended}{lasted}{f': {why}' if why else ''}"


def _describe_remarks(record: LoadRecord) -> Iterator[str]:
    for table in record.tables:
        if table.message:
            yield f"{_show(table.id)}: {table.code}: {_show(table.message)}"
        if table.changes:
            yield f"{_show(table.id)}: {format_count(table.changes, 'value')} changed"
            yield from (f"  {_show(sample)}" for sample in table.change_samples)
        if table.set_aside is not None:
            yield f"{_show(table.id)}: {format_count(table.set_aside.rows, 'row')} set aside"
            yield from (f"  {_show(sample)}" for sample in table.set_aside.samples)
            yield f"  in {join_first([_show(key) for key in table.set_aside.keys], 3)}"
        yield from (f"{_show(table.id)}: {_show(note)}" for note in table.notes)
    yield from [record.repeated] if record.repeated else []
    if record.message and not any(table.message for table in record.tables):
        yield f"{record.code}: {_show(record.message)}" if record.code else str(_show(record.message))
    cost = describe_cost(record)
    if cost is not None:
        calls = ", ".join(f"{count:,} {method}" for method, count in cost.calls)
        yield f"requests: {calls}; {cost.requests} by the list prices of {cost.region} as of {cost.as_of}"
    for text, command in list_next_steps(record, list_given()):
        yield f"next: {_show(text)}"
        yield from (f"      {line}" for line in command.splitlines())


def _print_grid(out: Console, names: Column, others: Sequence[Column]) -> None:
    width = out.width if out.is_terminal else None
    columns, shown = fit_columns(names, [column for column in others if any(column.cells)], width)
    for row in zip(shown, *map(lay_out, columns), strict=True):
        line = Text(GAP.join(row).rstrip())
        for status, style in _STYLES.items():
            line.highlight_regex(rf"(?<=  ){status}\b", style)
        out.print(line, soft_wrap=True)


def _show(text: str) -> str:
    """Return text of a source for a terminal: without characters that would change what else is shown."""
    return str(show_text(text)).replace("\n", "\\n")
