"""One stream of a sync: where its loads end, and which of its records the running load may have.

A load ends at a STATE, or at the end of the input. It takes records that no STATE covers only until its first STATE
comes: from then on what follows the last STATE waits, so that the load can end there at any time, whatever becomes of
the source. What waits is bounded: where it grows too large, the load ends at its last STATE and the next one takes it.

A STATE is silent while it may not go back to the source. No load ends there before the input does.
"""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from lakewriter.source.messages.arriving import ArrivingFeed
from lakewriter.source.messages.backlog import Backlog
from lakewriter.source.messages.chunks import Records
from lakewriter.source.messages.splits import END
from lakewriter.spec.specification import MIB
from lakewriter.spec.stream import StreamKey
from lakewriter.spec.table_spec import TableSpec

HELD_BYTES: Final = 128 * MIB
"""A load holds at most so many bytes of records that follow its last STATE."""


@dataclass(frozen=True)
class Cut:
    """The end of a load: behind its last record.

    state     the position of its last STATE, -1 where the load has records of none
    is_rest   whether the load has records that no STATE covers
    is_whole  whether the load completes the stream
    """

    position: int
    state: int = -1
    is_rest: bool = False
    is_whole: bool = False


class StreamQueue:
    """The waiting records of a stream. All before the position ``start`` is committed. ``feed`` is the feed of the
    running load, ``end`` where that load ends; ``is_staged`` says that its files are, and that it waits to be bound.
    """

    def __init__(self, key: StreamKey, table: TableSpec, backlog: Backlog) -> None:
        self.key, self.table, self.backlog = key, table, backlog
        self.start = 0
        self.records, self.last_record = 0, -1
        self.feed: ArrivingFeed | None = None
        self.end: Cut | None = None
        self.completes = self.given_up = self.is_staged = self.has_failed = self._is_finished = False
        self._cuts: deque[Cut] = deque()
        self._state = self._loud = -1
        self._size = self._behind_state = self._behind_loud = 0
        self._since: float | None = None

    def add(self, records: Records, now: float) -> None:
        """Add records."""
        size = self.backlog.add(records)
        self.records += len(records.positions)
        self.last_record = records.positions[-1]
        self._size += size
        self._behind_state += size
        self._behind_loud += size
        if self._since is None:
            self._since = now

    def take_state(self, position: int, step_bytes: int, *, is_silent: bool = False) -> bool:
        """Take a STATE that covers all records so far, and return whether a load of so many bytes is to end here."""
        if self.has_failed:
            return False
        if not self._size:
            # Nothing lies between it and the cut before it.
            if self._cuts:
                self._cuts[-1] = replace(self._cuts[-1], position=position + 1)
            elif self.feed is None:
                self.start = position + 1
            elif self.end is not None:
                self.end = replace(self.end, position=max(self.end.position, position + 1))
            return False
        self._state, self._behind_state = position, 0
        if is_silent:
            return False
        self._loud, self._behind_loud = position, 0
        return self._size >= step_bytes

    def cut(self, now: float) -> None:
        """End the load at the last STATE that is not silent, where records lie before it."""
        if self._loud < 0:
            return
        self._cuts.append(Cut(self._loud + 1, self._loud))
        self._size = self._behind_loud
        self._state = self._state if self._state > self._loud else -1
        self._loud = -1
        self._since = now if self._size else None

    def finish(self, *, is_whole: bool, takes_rest: bool, now: float) -> None:
        """Load what the last STATEs cover: no more messages come. A stream that ``is_whole`` is completed, if it has no
        rest behind them, or ``takes_rest``.
        """
        self._is_finished = True
        is_running = self.feed is not None and self.end is None and not self._cuts
        if is_whole and (takes_rest or not self._has_rest):
            self._complete(now, is_running=is_running)
            return
        self.cut(now)
        if self._state >= 0:
            self._cuts.append(Cut(self._state + 1, self._state))
        elif is_running and not self._cuts and self.feed is not None:
            self.given_up = True
            self.feed.give_up()

    @property
    def _has_rest(self) -> bool:
        return (self._behind_state if self._state >= 0 else self._size) > 0

    def _complete(self, now: float, *, is_running: bool) -> None:
        if self._loud < self._state:
            # Whether the last STATE ever goes back is open; the one before it does.
            is_running = is_running and self._loud < 0
            self.cut(now)
        last = Cut(END, self._state, self._has_rest, is_whole=True)
        if is_running:
            # The running load began without knowing that the stream would end.
            self._cuts.append(replace(last, position=END - 1, is_whole=False))
            last = Cut(END, is_whole=True)
        self._cuts.append(last)
        # No load ends at a STATE behind this one.
        self._state = self._loud = -1

    def is_due(self, now: float, seconds: float) -> bool:
        """Return whether the last STATE has waited for so long, or too much waits behind it."""
        late = self._since is not None and now - self._since >= seconds
        return self._loud >= 0 and (late or self._behind_loud >= HELD_BYTES)

    def pass_silent_state(self) -> None:
        """Let the load go beyond a silent STATE where too much waits behind it: it ends at a later one."""
        if self._loud < 0 <= self._state and self._behind_state >= HELD_BYTES:
            self._state = -1

    @property
    def last_state(self) -> int:
        """The position of the STATE at which ``cut`` ends the load; -1 where there is none."""
        return self._loud

    @property
    def may_be_cut(self) -> bool:
        """True if its load could end now."""
        return self.feed is not None and self.end is None and self._loud >= 0

    @property
    def wants_load(self) -> bool:
        """True if a load is to begin."""
        more = not self._is_finished and self.backlog.has_file(self._limit)
        return self.feed is None and not self.has_failed and (bool(self._cuts) or more)

    @property
    def holds_only_rest(self) -> bool:
        """True if all that any STATE covers is committed or staged, and what follows is staged, too."""
        if self.has_failed or any(cut.state >= 0 or cut.is_rest for cut in self._cuts):
            return False
        if self.feed is None or self.is_staged:
            return True
        return self.end is not None and self.end.state < 0 and not self.end.is_rest

    def begin(self, feed: ArrivingFeed) -> bool:
        """Start a load; return whether it completes the stream."""
        self.feed, self.completes = feed, bool(self._cuts) and self._cuts[0].is_whole
        self.advance()
        return self.completes

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
        """End the load. After one that is not committed no other may follow: its records would be left out."""
        if committed and self.end is not None:
            self.start = self.end.position
        else:
            self.has_failed = True
            self._cuts.clear()
        self.feed = self.end = None
        self.is_staged = False

    @property
    def _limit(self) -> int:
        if self._cuts:
            return self._cuts[0].position
        state = self._loud if self._loud >= 0 else self._state
        return END if state < 0 else state + 1
