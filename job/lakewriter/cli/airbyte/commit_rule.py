"""Decide up to where each stream of a sync may be committed, and which of the source's STATEs go back.

The platform gives the last STATEs that came back to its next sync, and the source sends what follows them. So

- a STATE goes back once all streams that it covers are committed up to it, and are to go on behind it. The next sync
  begins a full refresh without generation ids anew, so no STATE that covers one goes back before it is whole.
- a stream is committed up to a STATE only together with the others that the STATE covers: all are staged up to it, and
  the STATE goes back then.
- what no STATE covers is committed when all streams are complete and staged. Only a full refresh without generation ids
  need not wait: the next sync replaces it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from lakewriter.cli.airbyte.stream_queue import StreamQueue
from lakewriter.run.resumption import list_covered
from lakewriter.source.messages.contents import Event
from lakewriter.spec.stream import StreamKey
from lakewriter.spec.table_spec import TableSpec


@dataclass(frozen=True)
class Said:
    """A STATE that has not gone back: the streams that it covers, and how many records came since the one before it."""

    event: Event
    covers: frozenset[StreamKey]
    records: int


class CommitRule:
    """The streams of a sync by key. Its caller holds a lock around each call."""

    def __init__(self, queues: Mapping[StreamKey, StreamQueue]) -> None:
        self._queues = queues
        self._begins_anew = {key for key, queue in queues.items() if _begins_anew(queue.table)}
        self._silencing = set(self._begins_anew)
        self._read_whole = {key for key, queue in queues.items() if not _goes_on(queue.table)}
        self._said: dict[int, Said] = {}
        self._since: Counter[StreamKey | None] = Counter()
        self._is_whole = False
        self.is_finished = False

    def count_records(self, key: StreamKey, count: int) -> None:
        """Count records that came before the next STATE."""
        self._since[key] += count
        self._since[None] += count

    def take_state(self, event: Event, now: float, find_step_bytes: Callable[[StreamQueue], int]) -> None:
        """Take a STATE of the source. Loads that have their size end there."""
        if self.is_finished:
            return
        said = Said(event, self._find_covered(event), self._since[event.stream])
        self._since[event.stream] = 0
        self._said[event.position] = said
        is_silent = not self._silencing.isdisjoint(said.covers)
        queues = [self._queues[key] for key in said.covers if key in self._queues]
        is_full = [
            queue.take_state(
                event.position, find_step_bytes(queue), is_silent=is_silent and queue.key not in self._begins_anew
            )
            for queue in queues
        ]
        if any(is_full):
            for queue in queues:
                queue.cut(now)

    def _find_covered(self, event: Event) -> frozenset[StreamKey]:
        if event.stream is not None:
            return frozenset((event.stream,))
        return list_covered(event.text, self._queues, self._read_whole)

    def cut(self, queue: StreamQueue, now: float) -> None:
        """End the stream's load at its last STATE, and those of the streams that are committed with it."""
        said = self._said.get(queue.last_state)
        for key in said.covers if said is not None else ():
            self._queues[key].cut(now)
            self._queues[key].advance()

    def finish(self, ended: Collection[StreamKey], now: float) -> None:
        """Take the end of the input; ``ended`` are the streams that are complete."""
        self.is_finished = True
        self._is_whole = len(ended) == len(self._queues)
        for key, queue in self._queues.items():
            takes_rest = self._is_whole or key in self._begins_anew
            queue.finish(is_whole=key in ended, takes_rest=takes_rest, now=now)
            queue.advance()

    def fail(self) -> None:
        """Take a load's failure: the sync is not whole any more."""
        self._is_whole = False

    def close(self, queue: StreamQueue, *, committed: bool) -> None:
        """Take the end of a stream's load."""
        if committed and queue.completes:
            self._silencing.discard(queue.key)
        queue.close(committed=committed)

    def list_bindable(self) -> list[StreamQueue]:
        """Return the streams whose staged loads may be bound now: each of them only together with the others."""
        together = {key for key, queue in self._queues.items() if queue.is_staged}
        while refused := {key for key in together if not self._may_bind(self._queues[key], together)}:
            together -= refused
        return [self._queues[key] for key in together]

    def _may_bind(self, queue: StreamQueue, together: Collection[StreamKey]) -> bool:
        """Return whether a load may be bound if those of the streams in ``together`` are."""
        if queue.key in self._begins_anew:
            return True
        end = queue.end
        if end is None or (end.is_rest and not (self._is_whole and self._holds_only_rest(together))):
            return False
        said = self._said.get(end.state)
        if said is None:
            return True
        return all(self._reaches(self._queues[key], said.event.position, together) for key in said.covers)

    def _holds_only_rest(self, together: Collection[StreamKey]) -> bool:
        return all(
            queue.holds_only_rest and (queue.feed is None or key in together or not queue.is_staged)
            for key, queue in self._queues.items()
        )

    def _reaches(self, queue: StreamQueue, position: int, together: Collection[StreamKey]) -> bool:
        """Return whether a stream is committed up to a STATE, and goes on behind it, once the loads are bound."""
        is_bound = queue.key in together and queue.end is not None
        if queue.key in self._silencing:
            return is_bound and queue.completes
        return queue.start > position or (is_bound and queue.end is not None and queue.end.position > position)

    def take_answered(self) -> list[Said]:
        """Return the STATEs whose records are all committed, in order: they go back."""
        answered = [said for said in self._said.values() if self._is_committed(said)]
        for said in answered:
            del self._said[said.event.position]
        return answered

    def _is_committed(self, said: Said) -> bool:
        if any(key not in self._queues for key in said.covers) or not self._silencing.isdisjoint(said.covers):
            return False
        # A STATE that covers no stream has nothing to wait for but the end of all.
        keys = said.covers or self._queues
        return all(self._queues[key].start > said.event.position for key in keys)

    def list_withheld(self) -> list[StreamQueue]:
        """Return the streams of which records came that are not committed."""
        return [queue for queue in self._queues.values() if queue.last_record >= queue.start]


def _begins_anew(table: TableSpec) -> bool:
    """Return whether each sync replaces what the one before it has loaded: a full refresh without generation ids."""
    return table.overwrites and table.stream is not None and table.stream.generation_id is None


def _goes_on(table: TableSpec) -> bool:
    return table.stream is not None and table.stream.sync_mode == "incremental"
