"""Take a committed load back: plan what leaves each table and where its cursor goes, and commit that as a change.

A pending change is finished before anything is planned: its catalog may have it already, and the state does not.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from lakewriter.commit import attempt as attempts
from lakewriter.commit.at_once import call_all
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.catalog import find_catalog
from lakewriter.commit.committed_loads import TableLoads, TableReports, read_table_loads
from lakewriter.commit.control import Control
from lakewriter.commit.decisions import Decision
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.commit.together import PreparedTable, bind_together
from lakewriter.errors import ConcurrentLoadError, SpecInvalidError
from lakewriter.operate.undo_plan import Choices, UndoPlan, UndoPlanner, make_refusal
from lakewriter.records.changes import Intent
from lakewriter.records.fold.steps import is_unchanged
from lakewriter.records.state import Pending, TableState
from lakewriter.report import ABANDONED_BLIND, TableReport
from lakewriter.spec.load_ids import find_job_ids, make_undo_job_id

TRIES: Final = 5
"""How often an undo is planned anew if loads of the table commit meanwhile."""
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Undoing:
    """The undo of one load in one table; without a ``plan`` there is nothing to do: the load is undone already.

    ``pending`` is the change that has to be finished before an undo can be planned; ``is_finished`` says that it was
    the undo of this load, which an earlier call has left.
    """

    table_id: str
    job_id: str
    plan: UndoPlan | None = None
    pending: Pending | None = None
    is_finished: bool = False


Planned = tuple[TableLoads, list[Undoing]]
"""A table, and what is undone in it, in its order."""


class Undo:
    """Undoes a load of a pipeline in every table that has it, or in the ``tables`` with these ids.

    With ``through``, later loads of these tables are undone first, the newest first.
    """

    def __init__(
        self, pipeline: Pipeline, job_id: str, choices: Choices, *, tables: Iterable[str] = (), through: bool = False
    ) -> None:
        self._pipeline, self._job_id, self._choices, self._through = pipeline, job_id, choices, through
        # A table is undone together with its history.
        wanted = pipeline.spec.add_groups(set(tables))
        self._controls = [control for name, control in pipeline.controls.items() if not wanted or name in wanted]
        self._is_partial = len(self._controls) < len(pipeline.controls)
        self._finished_jobs: dict[str, str] = {}
        """The job id of the change that was pending in a table and was finished, by table."""

    def plan(self) -> tuple[Undoing, ...]:
        """Say what the undo would do, in its order; ``SPEC_INVALID`` where it cannot. Nothing is changed. In a table
        with a pending change nothing is planned: the change is named."""
        return tuple(undoing for _, planned in self._plan_tables(names_pending=True) for undoing in planned)

    def run(self) -> tuple[Undoing, ...]:
        """Finish what is pending, then undo the load; every refusal comes before anything else is changed."""
        call_all(self._finish_pending, self._controls)
        groups = dict[str, list[Planned]]()
        names = {table.id: table.group for table in self._pipeline.spec.tables}
        for planned in self._plan_tables():
            table_id = planned[0].control.table_id
            groups.setdefault(names[table_id] or table_id, []).append(planned)
        done = call_all(lambda group: self._undo_group(*group), groups.items())
        return tuple(undoing for undoings in done for undoing in undoings)

    def _finish_pending(self, control: Control) -> None:
        pending = control.state.read().pending
        if pending is not None:
            recover(control, self._pipeline.open_clients)
            self._finished_jobs[control.table_id] = pending.job_id

    def _plan_tables(self, *, names_pending: bool = False) -> list[Planned]:
        tables = read_table_loads(self._controls)
        planned = call_all(lambda table: (table, self._plan_table(table, names_pending=names_pending)), tables)
        ids = find_job_ids(self._job_id)
        is_found = any(undoings for _, undoings in planned)
        # A load of an earlier release may have such an id.
        if not is_found and ids is not None and ids.why_not_undone:
            raise SpecInvalidError(
                f"{self._job_id!r} is {ids.one}, {ids.why_not_undone}.",
                remedy="Undo the load whose rows are to go: lakewriter history LAKE lists the loads.",
            )
        if not is_found:
            raise SpecInvalidError(
                f"load {self._job_id!r} is committed in no table of this pipeline.",
                remedy="lakewriter history LAKE lists its loads.",
            )
        return planned

    def _plan_table(self, table: TableLoads, *, names_pending: bool) -> list[Undoing]:
        table_id, pending, undo = table.control.table_id, table.state.pending, make_undo_job_id(self._job_id)
        position = table.find(self._job_id)
        if names_pending and pending is not None and (position is not None or pending.job_id in (self._job_id, undo)):
            return [Undoing(table_id, self._job_id, pending=pending)]
        if table.is_undone(self._job_id):
            return [Undoing(table_id, self._job_id, is_finished=self._finished_jobs.get(table_id) == undo)]
        if position is None:
            return []
        chosen = reversed(table.loads[position:]) if self._through else [table.loads[position]]
        undoings: list[Undoing] = []
        for load in chosen:
            if undoings:
                table = _leave(table, undoings[-1])
            plan = self._plan_load(table, load.job_id, tuple(undoing.job_id for undoing in undoings))
            undoings.append(Undoing(table_id, load.job_id, plan))
        return undoings

    def _plan_load(self, table: TableLoads, job_id: str, gone: tuple[str, ...] = ()) -> UndoPlan:
        position = table.find(job_id)
        if position is None:
            raise make_refusal(table.control, job_id, "its report is gone")
        load, before, after = table.loads[position], table.loads[:position], table.loads[position + 1 :]
        planner = UndoPlanner(
            table.control,
            self._pipeline,
            table.state,
            before,
            after,
            self._choices,
            table.is_whole,
            self._is_partial,
            gone,
            table.find_expiry,
        )
        return planner.plan(_read_intent(table.control, load))

    def _undo_group(self, group: str, members: Sequence[Planned]) -> list[Undoing]:
        """Undo the loads of one table; or of a table and its history, those of one job in both or in neither."""
        done, left = list[Undoing](), [(table, list(undoings)) for table, undoings in members]
        while any(undoings for _, undoings in left):
            first = next(undoings[0].job_id for _, undoings in left if undoings and _is_next(undoings[0], left))
            at_once = [(table, undoings.pop(0)) for table, undoings in left if undoings and undoings[0].job_id == first]
            done += [undoing for _, undoing in at_once if undoing.plan is None]
            planned = [(table, undoing) for table, undoing in at_once if undoing.plan is not None]
            done += self._undo(group, first, planned) if planned else []
        return done

    def _undo(self, group: str, job_id: str, members: Sequence[tuple[TableLoads, Undoing]]) -> list[Undoing]:
        for left in reversed(range(TRIES)):
            try:
                return self._try(group, job_id, members)
            except ConcurrentLoadError:
                if not left:
                    raise
        raise AssertionError("each try returns or raises")

    def _try(self, group: str, job_id: str, members: Sequence[tuple[TableLoads, Undoing]]) -> list[Undoing]:
        """Undo the load by the plans, or by new ones where a table has changed since they were made."""
        open_clients, controls = self._pipeline.open_clients, [table.control for table, _ in members]
        attempt = self._begin(controls[0], job_id)
        try:
            began = [attempts.register(control, attempt, open_clients) for control in controls]
            commits = [state.last_commit for state in began if state is not None and state.last_commit is not None]
            attempt = replace(attempt, started=max([attempt.started, *(commit + _TICK for commit in commits)]))
            due = [
                (table, undoing, state)
                for (table, undoing), state in zip(members, began, strict=True)
                if state is not None
            ]
            plans = [self._plan_again(table, undoing, state) for table, undoing, state in due]
            # Rule undone-as-a-pair
            together = group if len(due) > 1 else None
            prepared = [
                PreparedTable(table.control, plan.make_intent(attempt, state, together), state)
                for (table, _, state), plan in zip(due, plans, strict=True)
            ]
            if together is not None:
                bind_together(attempt, prepared, Decision(bound=True), open_clients)
            else:
                for member in prepared:
                    # Rule undo-binds-first
                    attempts.bind(member.control, attempt, member.intent, member.began, open_clients)
        except BaseException:
            for control in controls:
                attempts.leave(control, attempt)
            raise
        call_all(lambda member: attempts.settle(member.control, attempt, open_clients), prepared)
        done = {table.control.table_id: plan for (table, _, _), plan in zip(due, plans, strict=True)}
        return [Undoing(control.table_id, job_id, done.get(control.table_id)) for control in controls]

    def _plan_again(self, table: TableLoads, undoing: Undoing, began: TableState) -> UndoPlan:
        """Return the plan, or a new one where the table has changed since it was made."""
        plan, control, seen = undoing.plan, table.control, table.state
        is_kept = (seen.generations, seen.compactions) == (began.generations, began.compactions)
        # Rule undo-again
        if plan is None or not is_kept or not is_unchanged(seen, began, exclusive=True):
            (table,) = read_table_loads([control])
            plan = self._plan_load(replace(table, state=began), undoing.job_id)
        find_catalog(plan.intent.catalog).require_known(
            self._pipeline.clients, control.table_id, self._pipeline.spec.pipeline, began, control.state.read
        )
        return plan

    def _begin(self, control: Control, job_id: str) -> Attempt:
        spec = self._pipeline.spec
        keep = timedelta(days=spec.keep_loads_days)
        attempt = Attempt(spec.pipeline, make_undo_job_id(job_id), uuid.uuid4().hex[:12], datetime.now(UTC), keep)
        key = control.keys.begin(attempt.job_id, attempt.id)
        control.write_once(key, attempts.make_begin_record(attempt, {}))
        return attempt


def _is_next(undoing: Undoing, left: Iterable[Planned]) -> bool:
    """Return whether no table has another load to undo before this one's."""
    return not any(undoing.job_id in {later.job_id for later in undoings[1:]} for _, undoings in left)


def _leave(table: TableLoads, undoing: Undoing) -> TableLoads:
    """Return the table as an undo that is only planned leaves it: the next one is planned as if its load were gone."""
    assert undoing.plan is not None
    entries, job_id = table.reports.entries, undoing.job_id
    return replace(
        table,
        reports=TableReports(table.control, {**entries, make_undo_job_id(job_id): entries[job_id]}),
        state=undoing.plan.leave(table.state, table.control.find_time()),
        loads=tuple(load for load in table.loads if load.job_id != job_id),
    )


def _read_intent(control: Control, load: TableReport) -> Intent:
    """Read the intent, which names the load's files; ``SPEC_INVALID`` where it is gone."""
    if load.is_blind:
        raise make_refusal(control, load.job_id, f"it was {ABANDONED_BLIND}, so nothing shows which files it wrote")
    intent = control.find_intent(load.job_id, load.attempt)
    if intent is None:
        raise make_refusal(control, load.job_id, "its intent is gone, so nothing shows which files it wrote")
    intent.files.require_parts()
    return intent
