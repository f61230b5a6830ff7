"""Print a plan for people: first what would change; columns that stay are only counted."""

import textwrap
from collections.abc import Container, Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from lakewriter.operate.column_changes import ColumnChange
from lakewriter.operate.planning import PlannedColumn, PlannedTable
from lakewriter.report import format_count, format_size, join_first

_MOST_NAMED: Final = 5
_MOST_NEW: Final = 30
_MOST_RETYPED: Final = 12
_TOGETHER: Final = "\u2060"
_STYLES: Final = {"added": "green", "gone": "yellow", "renamed": "yellow", "type": "yellow", "order": "red"}


def show_plan(out: Console, tables: Sequence[PlannedTable], *, columns: bool = False, deletes: bool = False) -> None:
    """Print one block per table, and under them what is true of several; ``columns`` shows those that stay too,
    ``deletes`` every object that would go."""
    shared = _list_shared(tables)
    for number, table in enumerate(tables):
        if number:
            out.print()
        out.print(f"[bold]{escape(table.table)}[/]  from {escape(table.source)}")
        out.print(f"  first key  {escape(table.key)}", soft_wrap=True)
        if table.error:
            out.print(f"  [red]{escape(table.error)}[/]", soft_wrap=True)
            continue
        if table.reason:
            tasks = format_count(table.tasks, "task")
            out.print(f"  how        {escape(table.reason)} ({tasks})", soft_wrap=True)
        rows = "" if table.rows is None else f" ({format_count(table.rows, 'row')})"
        out.print(f"  reads      {escape(table.reads)}{rows}", soft_wrap=True)
        for change in table.catalog:
            out.print(f"  catalog    {escape(change)}", soft_wrap=True)
        _show_columns(out, table, every=columns)
        if not columns:
            _show_retyped(out, table)
        _show_deletes(out, table, every=deletes)
        _show_remarks(out, table, shared)
    for warning, names in shared.items():
        out.print()
        out.print(
            f"[yellow]warning, for {escape(join_first(names, _MOST_NAMED))}: {escape(warning)}[/]", soft_wrap=True
        )


def _list_shared(tables: Sequence[PlannedTable]) -> dict[str, list[str]]:
    """List the warnings that several tables have, with the names of these."""
    named: dict[str, list[str]] = {}
    for table in tables:
        for warning in () if table.error else table.warnings:
            named.setdefault(warning, []).append(table.table)
    return {warning: names for warning, names in named.items() if len(names) > 1}


def _show_remarks(out: Console, table: PlannedTable, shared: Container[str]) -> None:
    # Breaks of columns are shown beside the columns.
    for what in table.breaks[sum(change.breaks for change in table.changes) :]:
        out.print(f"  [red]breaks     {escape(what)}[/]", soft_wrap=True)
    for expectation in table.expectations:
        out.print(f"  expects    {escape(expectation)}", soft_wrap=True)
    for warning in (text for text in table.warnings if text not in shared):
        out.print(f"  [yellow]warning    {escape(warning)}[/]", soft_wrap=True)
    if table.proposed:
        out.print(f"  [yellow]text       {escape(_describe_proposals(table))}[/]", soft_wrap=True)


def _describe_proposals(table: PlannedTable) -> str:
    count = len(table.proposed)
    columns = "1 column of text could have a type" if count == 1 else f"{count:,} columns of text could have types"
    return f"{columns}: {table.columns_line}"


def _show_columns(out: Console, table: PlannedTable, *, every: bool) -> None:
    if every:
        out.print(_make_grid(table))
    if not table.loads:
        if not every:
            _show_new_columns(out, table)
        return
    if table.compared_with is None:
        out.print(f"  columns    {format_count(len(table.columns), 'column')}; --all-columns shows them")
    else:
        out.print(f"  columns    {escape(_summarise(table))}", soft_wrap=True)
    width = max((len(change.text) for change in table.changes), default=0)
    for change in table.changes:
        style = "red" if change.breaks else _STYLES[change.change]
        effect = f"breaks readers: {change.effect}" if change.breaks else change.effect
        line = f"{change.text:<{width}}  {effect}".rstrip()
        out.print(f"             [{style}]{escape(line)}[/]", soft_wrap=True)


def _show_new_columns(out: Console, table: PlannedTable) -> None:
    # A column and its type stay on one line.
    names = [f"{change.name}{_TOGETHER}{change.after}".rstrip(_TOGETHER) for change in table.changes[:_MOST_NEW]]
    more = len(table.changes) - _MOST_NEW
    text = f"{len(table.changes):,} new: {', '.join(names)}" + (f" and {more:,} more" if more > 0 else "")
    indent = " " * len("  columns    ")
    lines = textwrap.wrap(text, out.width, initial_indent="  columns    ", subsequent_indent=indent)
    out.print("\n".join(lines).replace(_TOGETHER, " "), markup=False, soft_wrap=True)


def _show_retyped(out: Console, table: PlannedTable) -> None:
    """Show the columns whose name or type is another one than in the source."""
    named = [column for column in table.columns if column.source]
    texts = [_describe_retyped(column) for column in named if column.change or column.source != column.name]
    if texts:
        more = f" and {len(texts) - _MOST_RETYPED:,} more" if len(texts) > _MOST_RETYPED else ""
        out.print(f"  becomes    {escape('; '.join(texts[:_MOST_RETYPED]))}{more}", soft_wrap=True)


def _describe_retyped(column: PlannedColumn) -> str:
    before = " ".join(filter(None, (column.source, column.change.removeprefix("cast from "))))
    after = " ".join(
        filter(None, (column.name if column.name != column.source else "", column.type if column.change else ""))
    )
    return f"{before} -> {after}"


def _summarise(table: PlannedTable) -> str:
    """Return the number of columns that change in each way, and of those that do not."""
    counts = list(_count_changes(table.changes))
    touched = sum(change.change in ("added", "renamed", "type") for change in table.changes)
    same = f"{len(table.columns) - touched:,} as before"
    return ", ".join([*counts, same])


def _count_changes(changes: Sequence[ColumnChange]) -> Iterator[str]:
    words = {
        "added": "new",
        "gone": "gone",
        "renamed": "renamed",
        "type": "of another type",
        "order": "in another place",
    }
    for kind, word in words.items():
        count = sum(change.change == kind for change in changes)
        if count:
            yield f"{count:,} {word}"


def _show_deletes(out: Console, table: PlannedTable, *, every: bool) -> None:
    if not table.deletes:
        return
    count = format_count(len(table.deletes), "object")
    shown = "" if every else "; --all lists them"
    out.print(f"  deletes    {count}, {format_size(table.deleted_bytes)}{shown}")
    for key in table.deletes if every else ():
        out.print(f"             {escape(key)}", soft_wrap=True)


def _make_grid(table: PlannedTable) -> Padding:
    grid = Table("column", "type", "from", box=None, pad_edge=False)
    for column in table.columns:
        origin = column.source if not column.change else f"{column.source} ({column.change})".strip()
        grid.add_row(escape(column.name), escape(column.type), escape(origin))
    return Padding(grid, (0, 0, 1, 2))
