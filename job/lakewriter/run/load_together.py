"""Load tables together: all are staged, then all are bound, or none is.

If the source of a sync has one state for all streams, no table may be committed up to that state alone. A merged table
and the history of its rows have the same changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event, Lock

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
    load_guarded,
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
    group = _Group(load, tables, decision, why="its source has one state for all streams")
    run_tables(load, tables, group.load_table)
    return tuple(group.outcomes[table.id] for table in tables)


def load_groups(load: Load, tables: Sequence[TableSpec]) -> tuple[Outcome, ...]:
    """Load each table for itself, several at a time, but a merged table together with its history."""
    members = dict[str, list[TableSpec]]()
    for table in tables:
        members.setdefault(table.group or table.id, []).append(table)
    why = "a table and its history are loaded together"
    # Rule bound-as-a-pair
    groups = {
        name: _Group(load, of_group, Decision(bound=True), name, why=why)
        for name, of_group in members.items()
        if len(of_group) > 1
    }

    def load_one(shared_load: Load, table: TableSpec) -> Outcome:
        group = groups.get(table.group or table.id)
        return load_guarded(shared_load, table) if group is None else group.load_table(shared_load, table)

    outcomes = run_tables(load, tables, load_one)
    ended = {table_id: outcome for group in groups.values() for table_id, outcome in group.outcomes.items()}
    return tuple(ended.get(table.id, outcome) for table, outcome in zip(tables, outcomes, strict=True))


def _ignore_stops(load: Load) -> Load:
    """Return the load as it is after its point of no return: nothing ends it early."""
    return replace(load, stop=Stop(), stopped=Event())


class _Group:
    """The tables of one load that are bound together: the group ``name`` of the load, or blank for those of a sync.
    ``outcomes`` has those of the tables by id; ``why`` says in words why they are bound together."""

    def __init__(
        self, load: Load, tables: Sequence[TableSpec], decision: Decision, name: str = "", *, why: str
    ) -> None:
        self._load, self._tables, self._decision, self._why = replace(load, group=name), tables, decision, why
        self._staged: dict[str, _Staged] = {}
        self._lock = Lock()
        self.outcomes: dict[str, Outcome] = {}

    def load_table(self, load: Load, table: TableSpec) -> Outcome:
        """Stage a table; the one that is the last to be staged brings all of them to their end."""
        staged = guard_table(replace(load, group=self._load.group), table, self._stage)
        with self._lock:
            self.outcomes[table.id] = staged
            is_last = len(self.outcomes) == len(self._tables)
        if is_last:
            self._end()
        return self.outcomes[table.id]

    def _end(self) -> None:
        waiting = [table for table in self._tables if table.id in self._staged]
        failed = next((error for _, error, _ in self.outcomes.values() if error is not None), None)
        stopped = any(result.status == "not_run" for result, _, _ in self.outcomes.values())
        if waiting and (failed is not None or stopped or self._load.stop.is_asked):
            ended = {table.id: self._withdraw(table, failed) for table in waiting}
        else:
            ended = self._commit(waiting) if waiting else {}
        for table_id, (result, error, totals) in ended.items():
            # The seconds of both halves.
            seconds = round(self.outcomes[table_id][0].seconds + result.seconds, 3)
            self.outcomes[table_id] = result.model_copy(update={"seconds": seconds}), error, totals
        for result, error, _ in self.outcomes.values():
            self._load.follower.end(result, error)

    def _stage(self, load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
        """Stage a table, so that it can be bound."""
        begun = begin_table(load, table)
        if isinstance(begun, TableResult):
            return begun, NOTHING
        with withdraw_on_error(begun.load, table) as uploads:
            intent = stage_table(begun.load, table, begun.state, begun.sync, uploads)
        receipts = uploads.receipts
        self._staged[table.id] = _Staged(begun.load, begun.state, intent, receipts)
        return TableResult(schema_name=table.schema_name, table=table.name, status="done"), receipts.totals

    def _withdraw(self, table: TableSpec, error: LakeError | None) -> Outcome:
        """Withdraw a table that is staged, because of another one's ``error``, or a signal."""
        staged, why = self._staged[table.id], error or Stopped(self._load.stop.reason or "")
        try:
            withdraw_table(staged.load, table, staged.receipts.without_statistics(), why)
        except Stopped as stopped:
            return make_not_run(table, stopped), None, NOTHING
        note = f"None of its rows are published: {self._why}, and another table failed."
        return make_not_run(table).model_copy(update={"notes": (note,)}), None, NOTHING

    def _commit(self, tables: Sequence[TableSpec]) -> dict[str, Outcome]:
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
            staged = self._staged[table.id]
            shown = f"{format_count(staged.intent.rows, 'row')} in {format_count(len(staged.receipts), 'file')}"
            load.progress(table, "committing", shown)
            members.append(PreparedTable(load.control(table), staged.intent, staged.began))
        bind_together(load.attempt, members, self._decision, load.pipeline.open_clients)

    def _fail(self, table: TableSpec, error: Exception) -> Outcome:
        """Withdraw a table that could not be bound; one that is bound or undecided stays as it is."""
        staged = self._staged[table.id]

        def withdraw(load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
            withdraw_table(staged.load, table, staged.receipts.without_statistics(), error)
            raise error

        return guard_table(_ignore_stops(self._load), table, withdraw)

    def _settle(self, load: Load, table: TableSpec) -> tuple[TableResult, Totals]:
        staged = self._staged[table.id]
        attempts.settle(load.control(table), load.attempt, load.pipeline.open_clients)
        return report_done(staged.load, table, staged.receipts), staged.receipts.totals
