"""The batches of a continuous run against what the table has: each once, none left out, and few control objects."""

from typing import Final

from job.commit.control import Control
from job.errors import CheckpointLostError
from job.receipt import Batch, batch_prefix

KEPT: Final = 20
"""Batches whose control objects stay."""


def is_next(last: Batch | None, batch: Batch, table: str) -> bool:
    """Whether the batch is the one after the last; False for one that is done. ``CHECKPOINT_LOST`` where the
    checkpoint is not the one that the table's batches came from."""
    if last is not None and last.query != batch.query:
        raise _lost(
            table, f"its last batch is {last.number} of query {last.query}, and the checkpoint is of {batch.query}"
        )
    expected = 0 if last is None else last.number + 1
    if batch.number > expected:
        raise _lost(table, f"the checkpoint is at batch {batch.number}, and batch {expected} was never loaded here")
    return batch.number == expected


def clear_batches(control: Control, batch: Batch) -> None:
    """Delete the control objects of batches long before this one: the state tells that they are done."""
    root = f"{control.keys.root}/loads/"
    oldest = Batch(batch.query, max(0, batch.number - KEPT)).job_id
    for entry in control.store.entries(root + batch_prefix(batch.query)):
        if entry.key.removeprefix(root).split("/")[0] >= oldest:
            return
        control.store.delete(entry.key)


def _lost(table: str, why: str) -> CheckpointLostError:
    return CheckpointLostError(
        f"table {table}: {why}.",
        remedy="Restore the checkpoint; or load everything again, under the next backfill number and with a new "
        f"checkpoint: lakewriter reset LAKE {table} --backfill --reason WHY.",
    )
