"""Make the state that a table has once its pending change is done."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from lakewriter.commit.intent import Intent, UndoneLoad
from lakewriter.commit.state import LOADED_AGAIN, Pending, Retiring, TableState, Undone
from lakewriter.commit.sync_records import advance_sync
from lakewriter.naming import make_next_job_id

KEPT_UNDONE: Final = 100
"""How many undone loads a state names; of an older one the undo's report tells."""


def close_state(state: TableState, pending: Pending, intent: Intent) -> TableState:
    """Return the state with the pending change counted as committed."""
    now = datetime.now(UTC)
    closed = state.replace(
        pending=None,
        committed=state.committed + 1,
        last_job=pending.job_id,
        last_commit=max(now, intent.started, state.last_commit or intent.started),
        running=state.list_running_except(pending.job_id),
        needs=tuple(sorted({*state.needs, *intent.lasting_needs})),
    )
    return closed.replace(**list_changes(state, intent, now))


def list_changes(state: TableState, intent: Intent, now: datetime) -> dict[str, Any]:
    """List the fields of the state that the intent changes by what it holds, with their values after it."""
    return _list_loaded(state, intent) if intent.undoes is None else _list_undone(state, intent, intent.undoes, now)


def _list_loaded(state: TableState, intent: Intent) -> dict[str, Any]:
    """List what a load changes in the state."""
    changes: dict[str, Any] = {
        "cursor": intent.cursor_after or state.cursor,
        "counter": max(state.counter, intent.counter_after or 0),
        "batch": intent.batch or state.batch,
        "inferred": state.inferred if intent.inferred is None else intent.inferred,
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


def _list_undone(state: TableState, intent: Intent, load: UndoneLoad, now: datetime) -> dict[str, Any]:
    """List what an undo changes in the state. Counters stay, since no key is used twice; so do columns."""
    undone = Undone(job_id=load.job_id, by=intent.job_id, at=now, next=load.next, reason=load.reason)
    live = tuple(other for other in state.sync.live if other.job_id != load.job_id)
    source = {"source": load.source, "unfinished": load.unfinished} if load.restores_source else {}
    changes: dict[str, Any] = {
        "undone": (*state.undone, undone)[-KEPT_UNDONE:],
        "sync": state.sync.model_copy(update={"live": live} | source),
    }
    if load.restores_cursor:
        changes["cursor"] = intent.cursor_after
    if load.grace_seconds and intent.removes:
        until = now + timedelta(seconds=load.grace_seconds)
        entry = Retiring(job_id=intent.job_id, attempt=intent.attempt, not_before=until)
        changes["retiring"] = (*state.retiring, entry)
    return changes
