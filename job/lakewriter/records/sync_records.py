"""Define what a table's state and an intent record of syncs: generations, the source's state, objects to delete."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from lakewriter.control_object import ControlObject, sparse
from lakewriter.receipt import Batch, make_batch_prefix

MOST_LIVE: Final = 500
"""The number of loads whose receipts are kept for the next full refresh. For older loads it reads the objects'
metadata."""

BATCHES_LIVE: Final = 20
"""The same for batches of a continuous run, which commits as many in an hour as other pipelines have loads in a
month."""


class FirstMessage(ControlObject):
    """The first record of a stream in an input, or the first STATE where that comes before it.

    ``digest`` is that of the record's data, or of the STATE: a source that begins anew sends the same again, with other
    times around it.
    """

    place: int
    digest: str


class SourceState(ControlObject):
    """The source's last STATE message whose data are committed: its JSON text, and the load that brought it.

    ``place`` is the position of the message in that load's input. ``first`` identifies the input, for the same load to
    continue after ``place``; None where the stream was complete, and in states of releases that did not note it. A
    state for all streams is kept once, in the decision of the load and attempt that ``record`` names; ``text`` is blank
    here then. Earlier releases kept it in each table.
    """

    kind: Literal["stream", "global", "legacy"]
    text: str
    digest: str
    job_id: str
    place: int | None = None
    first: FirstMessage | None = sparse(None)
    record: str | None = sparse(None)

    @property
    def is_shared(self) -> bool:
        """Return whether it is the state of all streams."""
        return self.kind != "stream"

    def is_brought_by(self, job_id: str) -> bool:
        """Return whether a load of this job id brought the state: the sync itself, or a part of the sync."""
        part = rf"{re.escape(make_partial_prefix(self.job_id))}[0-9a-f]{{16}}"
        return job_id == self.job_id or re.fullmatch(part, job_id) is not None

    def kept_in(self, record: str) -> "SourceState":
        """Return the same state for a table, whose text is stored in the decision of ``record``."""
        return self.model_copy(update={"text": "", "record": record})


def make_partial_prefix(job_id: str) -> str:
    """Return the prefix of the job ids of the parts of a load; 16 hexadecimal digits follow."""
    return f"{job_id[:60]}.s"


class Live(ControlObject):
    """A load whose objects no full refresh has replaced."""

    job_id: str
    generation_id: int


class SyncState(ControlObject):
    """The syncs of one table. ``unfinished`` is true where the last sync ended before its source did; ``begins_anew``
    where an operator has ordered that the next one reads the stream from its beginning."""

    sync_id: int = 0
    generation_id: int = 0
    live: tuple[Live, ...] = ()
    source: SourceState | None = None
    unfinished: bool = False
    begins_anew: bool = sparse(False)

    @property
    def shown_generation(self) -> int:
        """The generation of the rows that readers see, 0 without rows: an undo takes the last one back."""
        return max((load.generation_id for load in self.live), default=0)

    @property
    def live_jobs(self) -> set[str]:
        """The job ids whose receipts a full refresh reads."""
        return {load.job_id for load in self.live}


class SyncIntent(ControlObject):
    """The sync of one load of one table.

    ``retire`` are key and etag of the objects to delete; generations from ``minimum_generation_id`` on stay.
    """

    sync_id: int
    generation_id: int
    minimum_generation_id: int = 0
    retire: tuple[tuple[str, str], ...] = ()
    source: SourceState | None = None
    unfinished: bool = False
    exclusive: bool = False


def advance_sync(
    sync: SyncState, intent: SyncIntent, job_id: str, *, files: bool, batch: Batch | None = None
) -> SyncState:
    """Return the sync state after the intent is closed; ``files`` says whether the load wrote any, ``batch`` which one
    of a continuous run it was."""
    live_loads = [live for live in sync.live if live.generation_id >= intent.minimum_generation_id or intent.unfinished]
    if files:
        live_loads.append(Live(job_id=job_id, generation_id=intent.generation_id))
    return sync.model_copy(
        update={
            "sync_id": max(sync.sync_id, intent.sync_id),
            "generation_id": max(sync.generation_id, intent.generation_id),
            "live": tuple(_drop_old_batches(live_loads, batch)[-MOST_LIVE:]),
            "source": intent.source,
            "unfinished": intent.unfinished,
            "begins_anew": False,
        }
    )


def _drop_old_batches(live: Sequence[Live], batch: Batch | None) -> Sequence[Live]:
    """Leave out all but the stream's last batches, so that their control objects can be cleared away as others are.

    A full refresh finds their objects by the listing, and their generation in the objects' metadata.
    """
    if batch is None:
        return live
    prefix = make_batch_prefix(batch.query)
    batches = [load for load in live if load.job_id.startswith(prefix)]
    dropped = {load.job_id for load in batches[:-BATCHES_LIVE]}
    return [load for load in live if load.job_id not in dropped]
