"""The batches of a continuous run against what the table has: each once, none left out, and few control objects."""

from typing import Final

from lakewriter.commit.control import Control
from lakewriter.errors import CheckpointLostError, ConcurrentLoadError
from lakewriter.receipt import Batch, batch_prefix

KEPT: Final = 20
"""Batches whose control objects stay."""


def is_next(last: Batch | None, batch: Batch, table: str, since: Batch | None) -> bool:
    """Whether the batch is the one after the last; False for the last one, which Spark calls again where it did not
    note its end. ``CHECKPOINT_LOST`` where the checkpoint is not the one that the table's batches came from, or not as
    it was then: what it plans anew under an old number would be taken for done.

    ``since`` was the last batch when this process started the query: what has been done after that one another process
    has done, which is ``CONCURRENT_LOAD``.
    """
    if last is None or last.query != batch.query:
        if last is None and batch.number == 0:
            return True
        raise _lost(table, last, f"the checkpoint is at batch {batch.number} of query {batch.query}")
    if batch.number > last.number + 1:
        raise _lost(table, last, f"the checkpoint is at batch {batch.number}, beyond the next one")
    if batch.number < last.number:
        if since is None or since.number <= batch.number:
            raise ConcurrentLoadError(
                f"table {table}: another process has gone on from batch {batch.number} to {last.number} meanwhile.",
                remedy="Run one continuous run of a pipeline at a time.",
            )
        raise _lost(table, last, f"the checkpoint is an older one, at batch {batch.number}")
    # States that were written before batches had digests have none.
    if batch.number == last.number and last.offsets is not None and batch.offsets != last.offsets:
        raise _lost(table, last, "the checkpoint is an older one, which has planned that batch anew")
    return batch.number > last.number


def clear_batches(control: Control, batch: Batch) -> None:
    """Delete the control objects of batches long before this one, since the state tells that they are done; not the
    receipts of live generations, by which a full refresh knows what to retire."""
    root = f"{control.keys.root}/loads/"
    oldest = Batch(batch.query, max(0, batch.number - KEPT)).job_id
    live = control.state.read().sync.live_jobs
    for entry in control.store.entries(root + batch_prefix(batch.query)):
        job = entry.key.removeprefix(root).split("/")[0]
        if job >= oldest:
            return
        if job not in live:
            control.store.delete(entry.key)


def _lost(table: str, last: Batch | None, why: str) -> CheckpointLostError:
    has = f"its last batch is {last.number} of query {last.query}" if last else "it has no batch yet"
    exact = f"as it was after batch {last.number} (an older copy will not do), or " if last else "that is its own, or "
    return CheckpointLostError(
        f"table {table}: {has}, and {why}.",
        remedy=f"Put back the checkpoint {exact}load everything again, under the next backfill number and with a new "
        f"checkpoint: lakewriter reset LAKE {table} --backfill --reason WHY.",
    )
