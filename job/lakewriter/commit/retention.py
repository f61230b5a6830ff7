"""Control objects of loads closed long ago, cleared away."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.state import Lost, TableState
from lakewriter.commit.store import Entry

EVERY: Final = timedelta(days=1)


def due(state: TableState, now: datetime) -> bool:
    """Whether a day has passed since the last sweep."""
    return state.swept is None or now - state.swept >= EVERY


def sweep(control: Control, states: Iterable[TableState], now: datetime, keep: timedelta) -> int:
    """Delete what loads and starters of loads left longer than ``keep`` ago, unless a state names it; how many."""
    named = {job for state in states for job in _unfinished(state)}
    by_job: dict[str, list[Entry]] = {}
    root = f"{control.keys.root}/loads/"
    for entry in control.store.entries(root):
        by_job.setdefault(entry.key.removeprefix(root).split("/")[0], []).append(entry)
    deleted = _sweep_runs(control, now - keep)
    for job, entries in by_job.items():
        if job not in named and max(entry.modified for entry in entries) < now - keep:
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


def _unfinished(state: TableState) -> set[str]:
    return set(state.running) | ({state.pending.job_id} if state.pending else set()) | state.sync.live_jobs


def _mark(control: Control, now: datetime) -> None:
    def change(state: TableState) -> TableState:
        if not due(state, now):
            raise Lost
        return state.changed(swept=now)

    try:
        control.state.move(change)
    except Lost:
        return
