"""The loads that a pipeline's states name, of whatever tables: their control objects stay."""

from collections.abc import Mapping

from lakewriter.commit.control import Control
from lakewriter.commit.state import TableState


def read_states(control: Control) -> dict[str, TableState]:
    """Every state that lies in the pipeline, by table: also of tables that its file no longer has, or not in this run.

    One that cannot be read is an error, since it may name any load.
    """
    root, end = f"{control.keys.root}/tables/", "/state.json"
    keys = [entry.key for entry in control.store.list_entries(root) if entry.key.endswith(end)]
    ids = [key.removeprefix(root).removesuffix(end) for key in keys]
    return {table_id: Control(control.store, control.keys, table_id).state.read() for table_id in ids}


def find_named_loads(states: Mapping[str, TableState]) -> set[str]:
    """Loads that run, are pending, or whose receipts a full refresh goes by."""
    return {job for state in states.values() for job in _list_loads(state)}


def _list_loads(state: TableState) -> set[str]:
    return set(state.running) | ({state.pending.job_id} if state.pending else set()) | state.sync.live_jobs
