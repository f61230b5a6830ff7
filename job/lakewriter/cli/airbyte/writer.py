"""The destination's side of a sync: messages in, data committed in steps, each STATE handed back after its data.

Messages go to files on disk as they come. When enough of them are there and a STATE has come, every stream is
loaded up to its last STATE; what follows it waits for the next step. So memory and disk stay bounded, and what a
source has been told is committed is committed.

A full refresh without generation ids is begun anew by whoever calls next. So its STATEs go back when it is whole: a
source that went on from an earlier one would leave out what the next refresh replaces.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from lakewriter.cli.airbyte.protocol import Emit, make_log, make_state
from lakewriter.cli.airbyte.statistics import SyncStatistics
from lakewriter.errors import LakeError, SourceFailedError
from lakewriter.run.kinds import Ending, Sync, TablePart
from lakewriter.run.loader import Loader
from lakewriter.run.outcome_file import find_failure
from lakewriter.run.prepare import SparkFactory
from lakewriter.run.stream_completion import Ended, Input
from lakewriter.source.messages.contents import Contents, Event
from lakewriter.source.messages.lines import Message
from lakewriter.source.messages.message_input import describe_messages
from lakewriter.source.messages.splits import FILE_BITS, MessageFiles, MessagesFeed, Stretch, pack_pieces
from lakewriter.source.packing import SourceFile
from lakewriter.source.storage import Store
from lakewriter.spec.specification import MIB, Mode, TableSpec
from lakewriter.spec.stream import StreamKey

STEP_BYTES: Final = 200 * MIB
STEP_SECONDS: Final = 900.0


@dataclass
class Segment:
    """A file of messages and what it holds; ``size`` is zero once it is gone."""

    path: Path
    number: int
    contents: Contents = field(default_factory=Contents)
    size: int = 0


class Writer:
    """One sync. ``ended`` is what is known of the input's end.

    ``clock`` is ``time.monotonic``, or what a test puts in its place.
    """

    def __init__(
        self,
        loader: Loader,
        spark: SparkFactory,
        emit: Emit,
        folder: Path,
        *,
        step_bytes: int = STEP_BYTES,
        ended: Ended = "unseen",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loader, self._spark, self._emit, self._folder = loader, spark, emit, folder
        self._step_bytes, self._ended, self._clock = step_bytes, ended, clock
        self._tables: dict[StreamKey, TableSpec] = {
            table.stream.key: table for table in loader.spec.tables if table.stream
        }
        self._starts: dict[StreamKey, int] = dict.fromkeys(self._tables, 0)
        self._begun: set[StreamKey] = set()
        self._silent = {key for key, table in self._tables.items() if _is_uncounted(table)}
        self._failure = ""
        self._segments: list[Segment] = []
        self._echoes: list[tuple[Event, int]] = []
        self._since: Counter[StreamKey | None] = Counter()
        self._steps = 0
        self.statistics = SyncStatistics()

    def write(self, messages: IO[bytes]) -> None:
        """All of the input; ``SOURCE_FAILED`` where a stream does not come to its end."""
        number = self._loader.begin(None)
        for error in self._loader.broken.values():
            # The platform that waits for this sync takes a stream's state as the end of all before it.
            raise error
        while self._read(messages):
            self._commit(number, self._find_last_states())
            self._forget()
        self._end(number)
        self._tell_of_odd_lines()

    def _read(self, messages: IO[bytes]) -> bool:
        with self._loader.stop.waiting():
            return self._gather(messages)

    def _gather(self, messages: IO[bytes]) -> bool:
        """One more segment; whether more may follow."""
        segment = Segment(self._folder / f"{len(self._segments)}.jsonl", len(self._segments))
        self._segments.append(segment)
        begun, stated = self._clock(), False
        with segment.path.open("wb") as file:
            for line in messages:
                place = (segment.number << FILE_BITS) + segment.size
                plain = line.rstrip(b"\n")
                stated |= self._take(segment, place, segment.contents.take(place, plain))
                file.write(plain + b"\n")
                segment.size += len(plain) + 1
                if self._failure:
                    return False
                if stated and (segment.size >= self._step_bytes or self._clock() - begun >= STEP_SECONDS):
                    return True
        return False

    def _take(self, segment: Segment, place: int, message: Message | None) -> bool:
        """Whether a step may end here: at a STATE."""
        if message is not None and message.record is not None:
            self._since[message.record.key] += 1
            self._since[None] += 1
            return False
        events = segment.contents.events
        if not events or events[-1].place != place:
            return False
        event = events[-1]
        if event.is_fault() and (event.stream is None or event.stream in self._tables):
            # No STATE behind it can be handed back, and what would follow would only fill the disk.
            self._failure = "the input was read no further than a message that cannot be read"
        if event.kind != "state":
            return False
        self._echoes.append((event, self._since[event.stream]))
        self._since[event.stream] = 0
        return True

    @property
    def _events(self) -> list[Event]:
        return [event for segment in self._segments for event in segment.contents.events]

    def _find_last_states(self) -> dict[StreamKey, int]:
        """For each stream the place of its last STATE, where records lie before it that are not loaded yet."""
        places = {}
        for key in self._tables:
            own = [event.place for event in self._events if event.kind == "state" and event.stream in (None, key)]
            if own and own[-1] >= self._starts[key]:
                places[key] = own[-1]
        return places

    def _end(self, number: int) -> None:
        """Streams that came to their end whole, the others up to their last STATE."""
        whole, last = self._sum_contents(), len(self._segments) << FILE_BITS
        seen = Input(self._events, self._failure, whole.last_records, self._ended, whole.is_cut)
        errors = {key: seen.error(key) for key in self._tables}
        done = {key for key, error in errors.items() if not error}
        self._commit(number, self._find_last_states() | dict.fromkeys(done, last), done)
        failed = [f"{self._tables[key].id} ({error})" for key, error in errors.items() if error]
        if failed:
            raise SourceFailedError(f"streams are not complete: {', '.join(failed)}.")

    def _commit(self, number: int, ends: Mapping[StreamKey, int], done: Collection[StreamKey] = frozenset()) -> None:
        """Load each stream up to a place, then hand back what is committed, whatever became of the others."""
        loaded = {key for key, end in ends.items() if key in done or self._has_records(key, end)}
        tables = {self._tables[key].id: self._plan_part(key, ends[key], complete=key in done) for key in loaded}
        committed, error = self._load(Sync(number, tables))
        mine = {key for key in loaded if self._tables[key].id in committed}
        self._begun |= mine
        self._silent -= mine.intersection(done)
        self._starts |= {key: end + 1 for key, end in ends.items() if key in mine or key not in loaded}
        self._hand_back()
        if error is not None:
            raise error
        self._loader.stop.check()

    def _has_records(self, key: StreamKey, end: int) -> bool:
        start = self._starts[key]
        return any(
            segment.contents.records[key]
            for segment in self._segments
            if (segment.number + 1) << FILE_BITS > start and segment.number << FILE_BITS < end
        )

    def _plan_part(self, key: StreamKey, end: int, *, complete: bool) -> TablePart:
        table = self._tables[key]
        files = tuple(SourceFile(str(segment.path), segment.size) for segment in self._segments)
        holding = {segment.number for segment in self._segments if segment.contents.records[key]}
        partitions = [
            tuple(piece for piece in own if piece.number in holding)
            for own in pack_pieces(self._spark(), MessageFiles(Store(), files))
        ]
        feed = MessagesFeed(self._spark(), Store(), Stretch(key, self._starts[key], end), partitions, table.id)
        return TablePart(Ending(complete, continues=key in self._begun), feed, self._loader.states[table.id])

    def _load(self, sync: Sync) -> tuple[set[str], LakeError | None]:
        """The tables that are committed, and the error of one that is not."""
        if not sync.tables:
            return set(), None
        self._steps += 1
        job_id = f"{self._loader.job_id}.{self._steps}"
        report = self._loader.run(sync, job_id=job_id)
        own = [table.id for table in self._loader.spec.tables if table.id in sync.tables]
        committed = set()
        for table_id, result in zip(own, report.tables, strict=True):
            key = next(key for key, table in self._tables.items() if table.id == table_id)
            self._emit(make_log("INFO", self.statistics.add(key, result)))
            if result.status in ("done", "already_done"):
                committed.add(table_id)
                self._loader.take_over(table_id, job_id)
        return committed, find_failure(report)

    def _hand_back(self) -> None:
        """Each STATE whose records are all committed, in order."""
        rest = []
        for event, records in self._echoes:
            own = self._starts.values() if event.stream is None else [self._starts.get(event.stream, 0)]
            if all(start > event.place for start in own) and event.stream not in self._silent:
                self._emit(make_state(event.text, records, self.statistics.take_counts(event.stream)))
            else:
                rest.append((event, records))
        self._echoes = rest

    def _forget(self) -> None:
        """Let go of segments that no stream needs any more."""
        lowest = min(self._starts.values(), default=0)
        for segment in self._segments:
            waiting = [
                key for key in segment.contents.records if segment.number >= self._starts.get(key, 1 << 62) >> FILE_BITS
            ]
            if segment.size and not waiting:
                segment.path.unlink()
                segment.size = 0
            segment.contents.events = [
                event for event in segment.contents.events if event.kind != "state" or event.place >= lowest
            ]

    def _sum_contents(self) -> Contents:
        whole = Contents()
        for segment in self._segments:
            whole.add(segment.contents)
        return whole

    def _tell_of_odd_lines(self) -> None:
        for note in describe_messages(self._sum_contents(), self._tables):
            self._emit(make_log("WARN", note))


def _is_uncounted(table: TableSpec) -> bool:
    return table.mode is Mode.OVERWRITE and table.stream is not None and table.stream.generation_id is None
