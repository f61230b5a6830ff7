"""Control objects of loads closed long ago, cleared away."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.named_loads import named_loads, read_states
from lakewriter.commit.state import Lost, TableState
from lakewriter.commit.store import Entry
from lakewriter.commit.traces import trace_of

EVERY: Final = timedelta(days=1)


def due(state: TableState, now: datetime) -> bool:
    """Whether a day has passed since the last sweep."""
    return state.swept is None or now - state.swept >= EVERY


def sweep(control: Control, now: datetime, keep: timedelta) -> int:
    """Delete what loads and starters of loads left longer than ``keep`` ago; how many objects.

    Loads that any state of the pipeline names stay, and so do those of a table whose state is gone, which is concluded
    from them. Where a state cannot be read nothing is deleted.
    """
    by_job: dict[str, list[Entry]] = {}
    root = f"{control.keys.root}/loads/"
    for entry in control.store.entries(root):
        by_job.setdefault(entry.key.removeprefix(root).split("/")[0], []).append(entry)
    # Read after the loads were listed: one that has begun since is named, or nothing of it was listed.
    states = read_states(control)
    named = named_loads(states)
    deleted = _sweep_runs(control, now - keep)
    for job, entries in by_job.items():
        if job in named or _is_of_lost_state(control, entries, states):
            continue
        if max(entry.modified for entry in entries) < now - keep:
            for entry in entries:
                control.store.delete(entry.key)
            deleted += len(entries)
    _mark(control, now)
    return deleted


def _sweep_runs(control: Control, before: datetime) -> int:
    old = [entry for entry in control.store.entries(control.keys.runs) if entry.modified < before]
    for entry in old:
        control.store.delete(entry.key)
    return len(old)


def _is_of_lost_state(control: Control, entries: Iterable[Entry], states: Collection[str]) -> bool:
    found = (trace_of(control.keys, entry) for entry in entries)
    return any(trace is not None and trace.table_id not in states for trace in found)


def _mark(control: Control, now: datetime) -> None:
    def change(state: TableState) -> TableState:
        if not due(state, now):
            raise Lost
        return state.changed(swept=now)

    try:
        control.state.move(change)
    except Lost:
        return
