"""Check the batches of a continuous run against the table's state: each is loaded once, none is left out."""

from datetime import timedelta
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.named_loads import find_named_loads, read_states
from lakewriter.errors import CheckpointLostError, ConcurrentLoadError, SpecInvalidError
from lakewriter.receipt import Batch, make_batch_prefix
from lakewriter.records.state import ADOPTED, ANEW, TableState
from lakewriter.report import format_count
from lakewriter.spec.load_ids import COMPACT, EXPIRE

RECENT_BATCHES: Final = 20
"""How many batches, counted from the last, keep their control objects."""
UPKEEP_KEPT: Final = timedelta(days=1)
"""For how long the compactions and expiries of a table that a continuous run loads keep theirs: no process needs as
long between its commit and its report."""


def require_stream(state: TableState, table: str) -> None:
    """Raise ``CHECKPOINT_LOST`` where another load has committed since the stream's last batch, or before its first:
    the stream would load the same rows again."""
    last = state.last_batch
    if last is None:
        allowed = state.batch is not None and state.batch.number == state.changes
        if not state.changes or allowed:
            return
        why = f"it has {format_count(state.changes, 'load')} and no batch of a continuous run"
    # Rule stream-after-load
    elif state.last_job == last.job_id:
        return
    else:
        why = f"load {state.last_job!r} has committed after its last batch, {last.number} of query {last.query}"
    raise CheckpointLostError(
        f"table {table}: {why}. A continuous run reads its source from the checkpoint's place on, or from the "
        "beginning, and would load again what that load has.",
        remedy=f"Where its source brings only what is not there yet, let it go on: lakewriter reset LAKE {table} "
        f"--go-on --reason WHY. Or load everything again: lakewriter reset LAKE {table} --backfill --reason WHY.",
    )


def require_no_stream(state: TableState, table: str) -> None:
    """Raise ``SPEC_INVALID`` where a stream loads the table: a plain load would load the same rows again."""
    last = state.last_batch
    if last is not None:
        raise SpecInvalidError(
            f"table {table} is loaded by a continuous run, whose last batch is {last.number}: a load of its own would "
            "load again what the batches have.",
            remedy=f"Run it with --continuous. Or, where the source holds only what is not there yet, let loads follow "
            f"the batches: lakewriter reset LAKE {table} --go-on --reason WHY.",
        )


def is_due(state: TableState, batch: Batch, table: str, since: Batch | None) -> bool:
    """Return whether the batch is to be loaded into the table; raise as ``require_stream`` and ``is_next`` do."""
    require_stream(state, table)
    mark = state.batch
    if mark is not None and mark.query == ADOPTED:
        return True
    began = since is not None and since.query not in (ANEW, ADOPTED)
    return is_next(state.last_batch, batch, table, since if began else None)


def is_next(last: Batch | None, batch: Batch, table: str, since: Batch | None) -> bool:
    """Return whether the batch is the one after ``last``; False for ``last`` itself, which Spark runs again if the
    checkpoint does not record its end.

    ``CHECKPOINT_LOST`` where the table's batches came from another checkpoint, or this one is an older copy: a batch
    that it plans anew under an old number would count as done. ``since`` was the last batch when this process started
    the query; ``CONCURRENT_LOAD`` where another process has committed a batch after it.
    """
    if last is None or last.query != batch.query:
        if last is None and batch.number == 0:
            return True
        raise _make_lost_error(table, last, f"the checkpoint is at batch {batch.number} of query {batch.query}")
    if batch.number > last.number + 1:
        raise _make_lost_error(table, last, f"the checkpoint is at batch {batch.number}, beyond the next one")
    if batch.number < last.number:
        if since is None or since.number <= batch.number:
            raise ConcurrentLoadError(
                f"table {table}: another process has continued from batch {batch.number} to {last.number} meanwhile.",
                remedy="Run one continuous run of a pipeline at a time.",
            )
        raise _make_lost_error(table, last, f"the checkpoint is an older one, at batch {batch.number}")
    # States that were written before batches had digests have none.
    # Rule batch-digest
    if batch.number == last.number and last.offsets is not None and batch.offsets != last.offsets:
        raise _make_lost_error(table, last, "the checkpoint is an older one, which has planned that batch anew")
    return batch.number > last.number


def clear_batches(control: Control, batch: Batch) -> None:
    """Delete the control objects of batches before the ``RECENT_BATCHES`` last ones: the state says that they are done.
    Those of the table's compactions and expiries go ``UPKEEP_KEPT`` before the last batch.

    Loads that any state of the pipeline names keep theirs, such as live generations, whose receipts a full refresh
    reads to find the objects it replaces.
    """
    oldest = Batch(batch.query, max(0, batch.number - RECENT_BATCHES)).job_id
    loads = list(control.history.list_loads(make_batch_prefix(batch.query)))
    upkeep = [load for start in (COMPACT, EXPIRE) for load in control.history.list_loads(start)]
    named = find_named_loads(read_states(control))
    old = [load for load in loads if load.job_id < oldest]
    if loads:
        before = max(load.at for load in loads) - UPKEEP_KEPT
        old += [load for load in upkeep if load.at < before and load.list_tables() == {control.table_id}]
    gone = [load for load in old if load.job_id not in named]
    control.store.delete_all([item.entry.key for load in gone for item in load.items])


def _make_lost_error(table: str, last: Batch | None, why: str) -> CheckpointLostError:
    has = f"its last batch is {last.number} of query {last.query}" if last else "it has no batch yet"
    exact = f"as it was after batch {last.number} (an older copy will not do), or " if last else "that is its own, or "
    return CheckpointLostError(
        f"table {table}: {has}, and {why}.",
        remedy=f"Put back the checkpoint {exact}load everything again, under the next backfill number and with a new "
        f"checkpoint: lakewriter reset LAKE {table} --backfill --reason WHY.",
    )
