"""What a table's state and an intent say of syncs: generations, the source's own state, what is to be retired."""

from typing import Final, Literal

from lakewriter.control_object import ControlObject

MOST_LIVE: Final = 500
"""Loads whose receipts are kept for the next full refresh; objects of older ones are asked for their generation."""


class SourceState(ControlObject):
    """The last state of the source that is committed with its data: its JSON text, and the load that brought it.

    ``place`` is where the state stood in that load's input.
    """

    kind: Literal["stream", "global", "legacy"]
    text: str
    digest: str
    job_id: str
    place: int | None = None


class Live(ControlObject):
    """A load whose objects are there."""

    job_id: str
    generation_id: int


class SyncState(ControlObject):
    """Of one table. ``unfinished`` says that the last sync ended before its source did."""

    sync_id: int = 0
    generation_id: int = 0
    live: tuple[Live, ...] = ()
    source: SourceState | None = None
    unfinished: bool = False

    @property
    def live_jobs(self) -> set[str]:
        """The loads whose receipts a full refresh goes by."""
        return {load.job_id for load in self.live}


class SyncIntent(ControlObject):
    """Of one load of one table. ``retire`` names objects by key and etag; ``minimum_generation_id`` is what stays."""

    sync_id: int
    generation_id: int
    minimum_generation_id: int = 0
    retire: tuple[tuple[str, str], ...] = ()
    source: SourceState | None = None
    unfinished: bool = False
    exclusive: bool = False


def advance_sync(state: SyncState, intent: SyncIntent, job_id: str, *, files: bool) -> SyncState:
    """The state when the intent is closed."""
    kept = [live for live in state.live if live.generation_id >= intent.minimum_generation_id or intent.unfinished]
    if files:
        kept.append(Live(job_id=job_id, generation_id=intent.generation_id))
    return state.model_copy(
        update={
            "sync_id": max(state.sync_id, intent.sync_id),
            "generation_id": max(state.generation_id, intent.generation_id),
            "live": tuple(kept[-MOST_LIVE:]),
            "source": intent.source,
            "unfinished": intent.unfinished,
        }
    )
