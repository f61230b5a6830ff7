"""One stream of a sync: where its loads end, and which of its records the running load may have.

A load ends at a STATE, or at the end of the input. It takes records that no STATE covers only until its first STATE
comes: from then on what follows the last STATE waits, so that the load can end there at any time, whatever becomes of
the source. What waits is bounded: where it grows too large, the load ends at its last STATE and the next one takes it.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from lakewriter.source.messages.arriving import ArrivingFeed
from lakewriter.source.messages.backlog import Backlog
from lakewriter.source.messages.chunks import Records
from lakewriter.spec.specification import MIB
from lakewriter.spec.stream import StreamKey
from lakewriter.spec.table_spec import TableSpec

HELD_BYTES: Final = 128 * MIB
"""A load holds at most so many bytes of records that follow its last STATE."""
END: Final = 1 << 62
"""A position behind all records."""


@dataclass(frozen=True)
class Cut:
    """The end of a load: behind its last record. A load that ends ``whole`` completes the stream."""

    position: int
    whole: bool = False


class StreamQueue:
    """The waiting records of a stream. All before the position ``start`` is committed. ``feed`` is the feed of the
    running load, ``end`` where that load ends."""

    def __init__(self, key: StreamKey, table: TableSpec, backlog: Backlog) -> None:
        self.key, self.table, self.backlog = key, table, backlog
        self.start = 0
        self.records, self.last_record = 0, -1
        self.feed: ArrivingFeed | None = None
        self.end: Cut | None = None
        self.whole = self.given_up = self._is_finished = False
        self._cuts: deque[Cut] = deque()
        self._state = -1
        self._size = self._beyond = 0
        self._since: float | None = None

    def add(self, records: Records, now: float) -> None:
        """Add records."""
        size = self.backlog.add(records)
        self.records += len(records.positions)
        self.last_record = records.positions[-1]
        self._size += size
        self._beyond += size
        if self._since is None:
            self._since = now

    def take_state(self, position: int, step_bytes: int) -> bool:
        """Take a STATE that covers all records so far, and return whether a load of so many bytes is to end here."""
        if not self._size:
            # Nothing lies between it and the cut before it.
            if self._cuts:
                self._cuts[-1] = Cut(position + 1)
            elif self.feed is None:
                self.start = position + 1
            elif self.end is not None:
                self.end = Cut(max(self.end.position, position + 1), self.end.whole)
            return False
        self._state, self._beyond = position, 0
        return self._size >= step_bytes

    def cut(self, now: float) -> None:
        """End the load at the last STATE, where records lie before it."""
        if self._state < 0:
            return
        self._cuts.append(Cut(self._state + 1))
        self._state, self._size = -1, self._beyond
        self._since = now if self._size else None

    def finish(self, *, whole: bool, now: float) -> None:
        """Load the rest if the stream is complete, else what its last STATE covers: no more messages come."""
        self._is_finished = True
        if whole:
            if self.feed is not None and self.end is None and not self._cuts:
                # The running load began without knowing that the stream would end.
                self._cuts.append(Cut(END - 1))
            self._cuts.append(Cut(END, whole=True))
            return
        self.cut(now)
        if self.feed is not None and self.end is None and not self._cuts:
            self.given_up = True
            self.feed.give_up()

    def is_due(self, now: float, seconds: float) -> bool:
        """Return whether the last STATE has waited for so long, or too much waits behind it."""
        late = self._since is not None and now - self._since >= seconds
        return self._state >= 0 and (late or self._beyond >= HELD_BYTES)

    @property
    def may_be_cut(self) -> bool:
        """True if its load could end now."""
        return self.feed is not None and self.end is None and self._state >= 0

    @property
    def wants_load(self) -> bool:
        """True if a load is to begin."""
        more = not self._is_finished and self.backlog.has_file(self._limit)
        return self.feed is None and (bool(self._cuts) or more)

    def begin(self, feed: ArrivingFeed) -> bool:
        """Start a load; return whether it completes the stream."""
        self.feed, self.whole = feed, bool(self._cuts) and self._cuts[0].whole
        self.advance()
        return self.whole

    def advance(self, *, flush: bool = False) -> None:
        """Give the running load what it may have; with ``flush`` nothing stays in memory."""
        if flush:
            self.backlog.flush()
        if self.feed is None or self.end is not None:
            return
        if not self._cuts:
            for piece in self.backlog.take(self._limit):
                self.feed.hand(piece)
            return
        self.end = self._cuts.popleft()
        for piece in self.backlog.take_all(self.end.position):
            self.feed.hand(piece)
        self.feed.end()

    def close(self, *, committed: bool) -> None:
        """End the load."""
        if committed and self.end is not None:
            self.start = self.end.position
        self.feed = self.end = None

    @property
    def _limit(self) -> int:
        if self._cuts:
            return self._cuts[0].position
        return END if self._state < 0 else self._state + 1
