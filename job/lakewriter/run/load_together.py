"""Load the tables of a sync together: all are staged, then all are bound, or none is.

If the source has one state for all streams, no table may be committed up to that state alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event

from lakewriter.commit import attempt as attempts
from lakewriter.commit.decisions import Decision
from lakewriter.commit.together import PreparedTable, bind_together
from lakewriter.errors import LakeError
from lakewriter.receipt import Totals
from lakewriter.receipts.parts import Receipts
from lakewriter.records.changes import Intent
from lakewriter.records.state import TableState
from lakewriter.report import TableResult, format_count
from lakewriter.run.load import (
    NOTHING,
    Outcome,
    begin_table,
    guard_table,
    load_apart,
    report_done,
    stage_table,
    withdraw_on_error,
    withdraw_table,
)
from lakewriter.run.results import make_not_run
from lakewriter.run.staged_table import Load
from lakewriter.run.stop import Stop, Stopped
from lakewriter.run.table_lanes import run_tables
from lakewriter.spec.table_spec import TableSpec


@dataclass(frozen=True)
class _Staged:
    """A table whose files are staged, and that waits for the others; ``load`` has the table's own time."""

    load: Load
    began: TableState
    intent: Intent
    receipts: Receipts


def load_tables_together(load: Load, tables: Sequence[TableSpec], decision: Decision) -> tuple[Outcome, ...]:
    """Load all tables of the decision that are not done yet, or none of them; then the other tables, each for
    itself."""
    members = [table for table in tables if table.id in decision.tables]
    others = [table for table in tables if table.id not in decision.tables]
    outcomes = _load_group(load, members, decision)
    if any(result.status in ("failed", "not_run") for result, _, _ in outcomes):
        # The streams that the next sync continues are done before any other stream of this sync.
        apart: tuple[Outcome, ...] = tuple((make_not_run(table), None, NOTHING) for table in others)
    else:
        apart = load_apart(load, others)
    by_id = dict(zip((table.id for table in (*members, *others)), (*outcomes, *apart), strict=True))
    return tuple(by_id[table.id] for table in tables)


def _load_group(load: Load, tables: Sequence[TableSpec], decision: Decision) -> tuple[Outcome, ...]:
    group = _Group(load, decision)
    outcomes = run_tables(load, tables, lambda shared_load, table: guard_table(shared_load, table, group.stage))
    waiting = [table for table in tables if table.id in group.staged]
    failed = next((error for _, error, _ in outcomes if error is not None), None)
    stopped = any(result.status == "not_run" for result, _, _ in outcomes) or load.stop.is_asked
    if waiting and (failed is not None or stopped):
        outcomes = _replace(tables, outcomes, {table.id: group.withdraw(table, failed) for table in waiting})
    elif waiting:
        outcomes = _replace(tables, outcomes, group.commit(waiting))
    for result, error, _ in outcomes:
        load.follower.end(result, error)
    return outcomes


def _replace(
    tables: Sequence[TableSpec], outcomes: Sequence[Outcome], later: Mapping[str, Outcome]
) -> tuple[Outcome, ...]:
    """Replace the outcomes of tables by their later ones, with the seconds of both."""

    def choose(table: TableSpec, before: Outcome) -> Outcome:
        if table.id not in later:
            return before
        result, error, totals = later[table.id]
        seconds = round(before[0].seconds + result.seconds, 3)
        return result.model_copy(update={"seconds": seconds}), error, totals

    return tuple(choose(table, outcome) for table, outcome in zip(tables, outcomes, strict=True))


def _ignore_stops(load: Load) -> Load:
    """Return the load as it is after its point of no return: nothing ends it early."""
    return replace(load, stop=Stop(), stopped=Event())


class _Group:
    """The tables of one load that are bound together; ``staged`` has, by id, the tables that wait to be bound."""

    def __init__(self, load: Load, decision: Decision) -> None:
        self._load, self._decision = load, decision
        self.staged: dict[str, _Staged] = {}

    def stage(self, load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
        """Stage a table, so that it can be bound."""
        begun = begin_table(load, table)
        if isinstance(begun, TableResult):
            return begun, NOTHING
        with withdraw_on_error(begun.load, table) as uploads:
            intent = stage_table(begun.load, table, begun.state, begun.sync, uploads)
        receipts = uploads.receipts
        self.staged[table.id] = _Staged(begun.load, begun.state, intent, receipts)
        return TableResult(schema_name=table.schema_name, table=table.name, status="done"), receipts.totals

    def withdraw(self, table: TableSpec, error: LakeError | None) -> Outcome:
        """Withdraw a table that is staged, because of another one's ``error``, or a signal."""
        staged, why = self.staged[table.id], error or Stopped(self._load.stop.reason or "")
        try:
            withdraw_table(staged.load, table, staged.receipts.without_statistics(), why)
        except Stopped as stopped:
            return make_not_run(table, stopped), None, NOTHING
        note = "None of its rows are published: its source has one state for all streams, and another table failed."
        return make_not_run(table).model_copy(update={"notes": (note,)}), None, NOTHING

    def commit(self, tables: Sequence[TableSpec]) -> dict[str, Outcome]:
        """Bind the tables, then bring each to its end."""
        load = self._load
        try:
            load.stop.check()
            self._bind(tables)
        except Exception as error:  # noqa: BLE001 - what it is becomes of each table
            return {table.id: self._fail(table, error) for table in tables}
        settled = run_tables(
            _ignore_stops(load), tables, lambda shared_load, table: guard_table(shared_load, table, self._settle)
        )
        return {table.id: outcome for table, outcome in zip(tables, settled, strict=True)}

    def _bind(self, tables: Sequence[TableSpec]) -> None:
        load, members = self._load, []
        for table in tables:
            staged = self.staged[table.id]
            shown = f"{format_count(staged.intent.rows, 'row')} in {format_count(len(staged.receipts), 'file')}"
            load.progress(table, "committing", shown)
            members.append(PreparedTable(load.control(table), staged.intent, staged.began))
        bind_together(load.attempt, members, self._decision, load.pipeline.open_clients)

    def _fail(self, table: TableSpec, error: Exception) -> Outcome:
        """Withdraw a table that could not be bound; one that is bound or undecided stays as it is."""
        staged = self.staged[table.id]

        def withdraw(load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
            withdraw_table(staged.load, table, staged.receipts.without_statistics(), error)
            raise error

        return guard_table(_ignore_stops(self._load), table, withdraw)

    def _settle(self, load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
        staged = self.staged[table.id]
        attempts.settle(load.control(table), load.attempt, load.pipeline.open_clients)
        return report_done(staged.load, table, staged.receipts), staged.receipts.totals
