"""Find the loads that the states of a pipeline's tables name: their control objects are not deleted."""

from collections.abc import Mapping

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.records.state import TableState


def list_state_etags(control: Control) -> dict[str, str]:
    """List the etags of the states of the pipeline, by table id, including tables that lake.yaml no longer names."""
    root, end = f"{control.keys.root}/tables/", "/state.json"
    entries = [entry for entry in control.store.list_entries(root) if entry.key.endswith(end)]
    return {entry.key.removeprefix(root).removesuffix(end): entry.etag for entry in entries}


def read_states(control: Control) -> dict[str, TableState]:
    """Read the state of every table of the pipeline, by table id, including tables that lake.yaml no longer names.

    A state that cannot be read is an error, since it may name any load.
    """
    ids = list(list_state_etags(control))
    states = call_all(lambda table_id: Control(control.store, control.keys, table_id).state.read(), ids)
    return dict(zip(ids, states, strict=True))


def find_named_loads(states: Mapping[str, TableState]) -> set[str]:
    """Return the job ids that are running or pending, whose receipts a full refresh reads, whose objects are still to
    be deleted, that an undo may show again, whose decision keeps the source's state, that note deleted keys, or that
    decide whether a dropped partition is there."""
    return {job for state in states.values() for job in _list_loads(state)}


def _list_loads(state: TableState) -> set[str]:
    pending = {state.pending.job_id} if state.pending else set()
    retiring = {entry.job_id for entry in state.retiring}
    generation_jobs = {generation.job_id for generation in state.generations}
    record = state.sync.source.record if state.sync.source is not None else None
    # Rule sweep-spares-decision
    synced = {record.split("/")[0]} if record is not None else set()
    # Rule sweep-spares-deleted-keys
    deleted = {keys.job_id for keys in state.deleted_keys.objects} if state.deleted_keys is not None else set()
    # Rule sweep-spares-partitions
    shown = generation_jobs | {entry.job_id for entry in state.partitions}
    return deleted | set(state.running) | pending | state.sync.live_jobs | retiring | shown | synced
