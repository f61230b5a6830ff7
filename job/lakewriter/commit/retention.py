"""Delete the control objects of loads that were closed long ago."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from lakewriter.commit.control import Control
from lakewriter.commit.history import PastLoad
from lakewriter.commit.named_loads import find_named_loads, read_states
from lakewriter.records.fold.steps import Sweep
from lakewriter.records.state import Lost, TableState


def sweep(control: Control, now: datetime, keep: timedelta) -> int:
    """Delete control objects older than ``keep``, of loads and of those who started them; return how many. ``now`` is
    the time by the store's clock, as is the age of its objects.

    Loads that any state of the pipeline names keep theirs, and so do loads of a table whose state is lost, since the
    state is rebuilt from them. Where a state cannot be read, nothing is deleted.
    """
    # Read before the listing too: a load that was bound for as long as loads are kept may be closed by now, and its
    # report is not listed.
    named = find_named_loads(read_states(control))
    old = _list_old_loads(control, now - keep)
    # Read after the listing: a load that began since then is in a state, or none of its objects were listed.
    states = read_states(control)
    # Rule states-after-listing
    named |= find_named_loads(states)
    deleted = _sweep_old(control, control.keys.runs, now - keep)
    # A claimed number above every table's may still be used by the load that claimed it.
    highest = max((state.sync.sync_id for state in states.values()), default=0)
    deleted += _sweep_old(control, control.keys.sync_numbers, now - keep, below=control.keys.sync_number(highest + 1))
    gone = _list_old_inputs(control, now - keep, states)
    for load in old:
        # Rule sweep-spares-named
        if load.job_id not in named and load.list_tables() <= states.keys():
            gone += [item.entry.key for item in load.items]
    control.store.delete_all(gone)
    _mark(control, now)
    return deleted + len(gone)


def _list_old_inputs(control: Control, before: datetime, states: Mapping[str, TableState]) -> list[str]:
    """List the records of read files that no state names any more: other records have their content by now.

    The records of a table with a pending load stay, since its intent may name them. A load that is bound later names
    younger records.
    """
    root = f"{control.keys.root}/tables/"
    old: dict[str, list[str]] = {}
    for entry in control.store.list_entries(root):
        table_id, _, name = entry.key.removeprefix(root).partition("/")
        if name.startswith("inputs/") and entry.modified < before:
            old.setdefault(table_id, []).append(entry.key)
    gone: list[str] = []
    for table_id, keys in old.items():
        state = states.get(table_id)
        if state is not None and state.pending is None:
            records = (state.inputs, *(generation.inputs for generation in state.generations))
            named = {part.key for inputs in records if inputs is not None for part in inputs.parts}
            gone += [key for key in keys if key not in named]
    return gone


def _list_old_loads(control: Control, before: datetime) -> list[PastLoad]:
    """List the loads that wrote their last object ``before`` a time. All kept loads of thousands of tables have
    millions of objects; the old ones are a small part of these."""
    return [load for load in control.history.list_loads() if load.at < before]


def _sweep_old(control: Control, prefix: str, before: datetime, below: str | None = None) -> int:
    """Delete objects under ``prefix`` written ``before``; with ``below``, only those whose keys sort before it."""
    entries = control.store.list_entries(prefix)
    old = [entry for entry in entries if entry.modified < before and (below is None or entry.key < below)]
    control.store.delete_all([entry.key for entry in old])
    return len(old)


def _mark(control: Control, now: datetime) -> None:
    try:
        control.state.move(Sweep(now))
    except Lost:
        return
