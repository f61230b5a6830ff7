"""Make the state that a table has once its pending change is done."""

from datetime import datetime, timedelta
from typing import Any, Final

from lakewriter.commit.input_records import Inputs, follow_load, follow_other, follow_undo
from lakewriter.commit.intent import IcebergAction, Intent, Switch, UndoneLoad
from lakewriter.commit.state import LOADED_AGAIN, Generation, Pending, Retiring, TableState, Undone
from lakewriter.commit.sync_records import advance_sync
from lakewriter.naming import REPLAY, make_next_job_id
from lakewriter.receipt import Batch

KEPT_UNDONE: Final = 100
"""How many undone loads a state names; of an older one the undo's report tells."""

KEPT_GENERATIONS: Final = 100
"""How many full refreshes of a table keep their files, however often it is refreshed: a state names each."""


def close_state(
    state: TableState, pending: Pending, intent: Intent, now: datetime, *, abandoned: bool = False
) -> TableState:
    """Return the state with the pending change counted as committed at ``now``; ``abandoned`` is one that its catalog
    may lack."""
    closed = state.replace(
        pending=None,
        committed=state.committed + 1,
        last_job=choose_last_job(state, pending.job_id),
        last_commit=max(now, intent.started, state.last_commit or intent.started),
        running=state.list_running_except(pending.job_id),
        needs=tuple(sorted({*state.needs, *intent.lasting_needs})),
    )
    return closed.replace(**list_changes(state, intent, now, abandoned=abandoned))


def choose_last_job(state: TableState, job_id: str) -> str | None:
    """Return the last job of a table that load ``job_id`` was committed to. A continuous run goes on from its own last
    batch alone: a replay, which has read nothing of the run's source, does not come between."""
    is_between = job_id.startswith(REPLAY) and state.last_batch is not None
    return state.last_job if is_between else job_id


def list_changes(state: TableState, intent: Intent, now: datetime, *, abandoned: bool = False) -> dict[str, Any]:
    """List the fields of the state that the intent changes by what it holds, with their values after it."""
    if intent.undoes is not None:
        return _list_undone(state, intent, intent.undoes, now)
    changes = _list_loaded(state, intent)
    if intent.switch is None:
        return changes
    return changes | _list_refreshed(state, intent, intent.switch, now, abandoned=abandoned)


def _list_refreshed(
    state: TableState, intent: Intent, switch: Switch, now: datetime, *, abandoned: bool
) -> dict[str, Any]:
    """List what a full refresh changes beside: the files of the one before it are kept for a while, so that it can be
    taken back. Iceberg keeps them with its snapshots.

    Of one that was abandoned nobody knows which files readers see: those of both stay until the next one."""
    generation = Generation(number=switch.after, job_id=intent.job_id, attempt=intent.attempt, started=intent.started)
    generations = (*state.generations, generation)
    changes: dict[str, Any] = {"generation": max(state.generation, switch.after)}
    if isinstance(intent.catalog, IcebergAction):
        return changes if abandoned else changes | {"generations": generations[-KEPT_GENERATIONS:]}
    changes["generations"] = generations
    if abandoned:
        return changes
    retiring, until = state.retiring, now + timedelta(seconds=switch.keep_seconds)
    waiting = {entry.generation for entry in retiring}
    retiring = (*retiring, *(_make_retiring(each, until) for each in state.generations if each.number not in waiting))
    due = {each.number for each in generations[:-KEPT_GENERATIONS]}
    retiring = tuple(
        entry.model_copy(update={"not_before": min(now, entry.not_before)}) if entry.generation in due else entry
        for entry in retiring
    )
    return changes | {"retiring": retiring}


def _make_retiring(generation: Generation, not_before: datetime) -> Retiring:
    return Retiring(
        job_id=generation.job_id, attempt=generation.attempt, not_before=not_before, generation=generation.number
    )


def _list_loaded(state: TableState, intent: Intent) -> dict[str, Any]:
    """List what a load changes in the state."""
    changes: dict[str, Any] = {
        "cursor": intent.cursor_after or state.cursor,
        "counter": max(state.counter, intent.counter_after or 0),
        "batch": intent.batch or _follow_replay(state, intent),
        "inferred": state.inferred if intent.inferred is None else intent.inferred,
        "inputs": _follow_inputs(state, intent),
        "names": state.add_names(intent.names),
        "origin": intent.origin or state.origin,
    }
    if intent.sync is not None:
        changes["sync"] = advance_sync(
            state.sync, intent.sync, intent.job_id, files=bool(intent.files), batch=intent.batch
        )
    if intent.repeats:
        # A slow attempt at a load that this one repeats is refused by these.
        burnt = [
            Undone(job_id=job, by=intent.job_id, at=intent.started, next=make_next_job_id(job), reason=LOADED_AGAIN)
            for job in intent.repeats
            if state.find_undone(job) is None
        ]
        changes["undone"] = (*state.undone, *burnt)[-KEPT_UNDONE:]
    return changes


def _follow_inputs(state: TableState, intent: Intent) -> Inputs | None:
    """Return the record of the files that loads have read; a full refresh, which replaces them all, ends it."""
    if intent.kind == "refresh":
        return None
    if intent.taken:
        return follow_other(state.inputs, state.committed)
    return follow_load(state.inputs, intent.inputs, state.committed)


def _follow_replay(state: TableState, intent: Intent) -> Batch | None:
    """Return the state's batch; where a continuous run may begin on top of so many loads, it may after a replay too."""
    mark = state.batch
    may_begin = mark is not None and state.last_batch is None and mark.number == state.committed
    return mark.model_copy(update={"number": mark.number + 1}) if mark and may_begin and intent.taken else mark


def _list_undone(state: TableState, intent: Intent, load: UndoneLoad, now: datetime) -> dict[str, Any]:
    """List what an undo changes in the state. Counters stay, since no key is used twice; so do columns."""
    undone = Undone(job_id=load.job_id, by=intent.job_id, at=now, next=load.next, reason=load.reason)
    live = tuple(other for other in state.sync.live if other.job_id != load.job_id)
    source = {"source": load.source, "unfinished": load.unfinished} if load.restores_source else {}
    changes: dict[str, Any] = {
        "undone": (*state.undone, undone)[-KEPT_UNDONE:],
        "sync": state.sync.model_copy(update={"live": live} | source),
        "inputs": follow_undo(state.inputs, load.job_id, state.committed),
    }
    if load.restores_cursor:
        changes["cursor"] = intent.cursor_after
    if load.grace_seconds and intent.removes:
        until = now + timedelta(seconds=load.grace_seconds)
        entry = Retiring(job_id=intent.job_id, attempt=intent.attempt, not_before=until)
        changes["retiring"] = (*state.retiring, entry)
    if intent.switch is not None:
        changes |= _list_switched_back(state, intent, intent.switch, now + timedelta(seconds=load.grace_seconds))
    return changes


def _list_switched_back(state: TableState, intent: Intent, switch: Switch, until: datetime) -> dict[str, Any]:
    """List what the undo of a full refresh changes beside: the files of the one before it stay, its own go."""
    gone = state.find_generation(switch.before)
    generations = tuple(each for each in state.generations if each.number != switch.before)
    retiring = tuple(entry for entry in state.retiring if entry.generation != switch.after)
    if gone is not None and not isinstance(intent.catalog, IcebergAction):
        retiring = (*retiring, _make_retiring(gone, until))
    return {"generations": generations, "retiring": retiring}
