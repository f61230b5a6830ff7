"""The destination's side of a sync: messages in, data committed as they come, each STATE handed back after its data.

A thread reads the input and puts records into the queues of their streams, on the local disk beyond a few megabytes.
The main thread starts Spark meanwhile, then runs loads: of a stream one after the other, of a few streams side by side.
A load's tasks shape, encode and upload records as they come, until the load ends at a STATE: when its files have their
size, when the STATE has waited for long, or when another stream needs the room. See ``StreamQueue``.

A staged load waits until it may be bound. See ``CommitRule``, which decides that and which STATEs go back.
"""

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final

from lakewriter.cli.airbyte.commit_rule import CommitRule
from lakewriter.cli.airbyte.protocol import Emit, make_log, make_state
from lakewriter.cli.airbyte.statistics import SyncStatistics
from lakewriter.cli.airbyte.stream_queue import StreamQueue
from lakewriter.errors import LakeError, SourceFailedError
from lakewriter.report import RunReport
from lakewriter.run.kinds import Ending, Sync, TablePart
from lakewriter.run.loader import BegunSync, Loader
from lakewriter.run.outcome_file import find_failure
from lakewriter.run.stream_completion import Input, InputEnd
from lakewriter.source.messages.arriving import ArrivingFeed
from lakewriter.source.messages.backlog import Backlog
from lakewriter.source.messages.chunks import Records, open_reader, parse_chunk, read_chunks
from lakewriter.source.messages.contents import Contents, Event, parse_event
from lakewriter.source.messages.expected_size import FileSizes
from lakewriter.source.messages.message_input import describe_messages
from lakewriter.source.request import SparkFactory
from lakewriter.source.session import count_slots
from lakewriter.spec.specification import MIB
from lakewriter.spec.stream import StreamKey

WAITING_BYTES: Final = 256 * MIB
"""The disk holds so many bytes of records that loads have not taken: while there are more, nothing is read."""
MEMORY_BYTES: Final = 64 * MIB
"""Memory holds so many bytes of records of all streams."""
ROOM_BYTES: Final = 64 * MIB
"""For a waiting stream with so many bytes of records, the load of another stream is ended."""
_LOOK_SECONDS: Final = 0.2


@dataclass(frozen=True)
class Step:
    """How much a load takes before it ends at a STATE: ``size`` bytes of messages, None for what fills its files; and
    how many ``seconds`` a STATE waits."""

    size: int | None = None
    seconds: float = 900.0


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
        step: Step = Step(),
        ended: InputEnd = "unseen",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loader, self._spark, self._emit, self._folder = loader, spark, emit, folder
        self._step, self._ended, self._clock = step, ended, clock
        numbers = itertools.count()
        self._queues: dict[StreamKey, StreamQueue] = {
            table.stream.key: StreamQueue(table.stream.key, table, Backlog(folder, numbers))
            for table in loader.spec.tables
            if table.stream
        }
        self._sizes = {key: FileSizes(loader.spec.encoding, loader.spec.limits) for key in self._queues}
        self._rule = CommitRule(self._queues)
        self._begun: set[StreamKey] = set()
        self._allowed: set[StreamKey] = set()
        self._contents = Contents()
        self._changed = threading.Condition()
        self._is_read = self._is_over = False
        self._failure = ""
        self._fault: BaseException | None = None
        self._errors: list[LakeError] = []
        self._loads: dict[StreamKey, Future[RunReport]] = {}
        self._steps = itertools.count(1)
        self.statistics = SyncStatistics()
        self._slots, self._tasks = 0, 1

    def write(self, messages: IO[bytes]) -> None:
        """Write the whole input; raise ``SOURCE_FAILED`` if a stream does not end."""
        read = open_reader(messages)
        threading.Thread(target=self._read, args=(read,), name="input", daemon=True).start()
        try:
            begun = self._loader.begin(None)
            for error in begun.broken.values():
                # The platform that waits for this sync takes a stream's state as the end of all before it.
                raise error
            self._find_slots()
            # A staged load that waits to be bound holds a thread, and no slot.
            pool = ThreadPoolExecutor(len(self._queues) or 1, thread_name_prefix="load")
            try:
                self._work(pool, begun)
            finally:
                self._give_up_loads()
                pool.shutdown()
                # One that was past the point of no return is committed.
                self._end_loads(begun)
                self._hand_back()
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _find_slots(self) -> None:
        """Set the number of loads that run side by side, and the tasks of each: no load waits for another one's
        tasks."""
        cores = count_slots(self._spark())
        with self._changed:
            self._slots = min(self._loader.spec.limits.tables_at_once, cores)
            self._tasks = cores // self._slots

    # The thread that reads.

    def _read(self, read: Callable[[int], bytes | None]) -> None:
        try:
            for position, chunk in read_chunks(read):
                with self._changed:
                    self._take_chunk(position, chunk)
                    self._changed.notify_all()
                    while not self._is_over and not self._failure and self._is_behind():
                        self._changed.wait(_LOOK_SECONDS)
                    if self._is_over or self._failure:
                        break
        except Exception as error:  # noqa: BLE001 - raised by the main thread
            self._fault = error
        with self._changed:
            self._is_read = True
            self._changed.notify_all()

    def _take_chunk(self, position: int, chunk: bytes) -> None:
        now, events = self._clock(), self._contents.events
        for part in parse_chunk(position, chunk, self._contents):
            if isinstance(part, Records):
                self._take_records(part, now)
            elif part.message is not None:
                self._take_event(parse_event(part.position, part.message), now)
            elif events and events[-1].position == part.position and self._concerns(events[-1]):
                # No STATE behind it can be handed back, and what would follow would only fill the disk.
                self._failure = "the input was read no further than a message that cannot be read"
                return
        is_much = sum(queue.backlog.in_memory for queue in self._queues.values()) > MEMORY_BYTES
        for queue in self._queues.values():
            queue.advance(flush=is_much)

    def _take_records(self, records: Records, now: float) -> None:
        queue = self._queues.get(records.key)
        if queue is not None:
            queue.add(records, now)
        else:
            for position in records.positions:
                self._contents.take_record(position, records.key)
        self._rule.count_records(records.key, len(records.positions))

    def _concerns(self, event: Event) -> bool:
        return event.is_fault() and (event.stream is None or event.stream in self._queues)

    def _take_event(self, event: Event | None, now: float) -> None:
        if event is None:
            return
        if event.kind != "state":
            self._contents.events.append(event)
            return
        self._rule.take_state(event, now, self._find_step_bytes)

    def _find_step_bytes(self, queue: StreamQueue) -> int:
        return self._step.size or self._sizes[queue.key].bytes_for(self._tasks)

    def _is_behind(self) -> bool:
        """Return whether more waits on the disk than loads can take at once."""
        queues = [queue for queue in self._queues.values() if queue.feed is not None or not self._slots]
        waiting = sum(queue.backlog.size + (queue.feed.waiting_bytes if queue.feed else 0) for queue in queues)
        return waiting > WAITING_BYTES

    # The main thread.

    def _work(self, pool: ThreadPoolExecutor, begun: BegunSync) -> None:
        """Load what comes, to the end of the input or to the first failure."""
        failed = list[str]()
        while True:
            self._loader.stop.check()
            with self._changed:
                if not self._rule.is_finished and (self._is_read or self._errors):
                    failed = self._finish()
                self._cut_what_is_due()
                self._begin_loads(pool, begun)
                self._open_gates()
                if self._rule.is_finished and not self._loads:
                    break
                with self._loader.stop.waiting():
                    self._changed.wait(_LOOK_SECONDS)
            self._end_loads(begun)
            self._hand_back()
        self._raise_failure(failed)

    def _finish(self) -> list[str]:
        """End each stream with what can be loaded of it; return why some are not complete."""
        whole = self._sum_contents()
        seen = Input(whole.events, self._failure, whole.last_records, self._ended, whole.is_cut)
        errors = {key: seen.error(key) for key in self._queues}
        if self._errors or self._fault:
            # What a load failed with is raised; what is not read says nothing about the streams.
            errors = dict.fromkeys(self._queues, "another stream's load has failed")
        self._rule.finish([key for key, error in errors.items() if not error], self._clock())
        return [f"{self._queues[key].table.id} ({error})" for key, error in errors.items() if error]

    def _raise_failure(self, failed: list[str]) -> None:
        self._tell_of_odd_lines()
        self._tell_of_withheld()
        if self._errors:
            raise self._errors[0]
        if self._fault is not None:
            raise self._fault
        if failed:
            raise SourceFailedError(f"streams are not complete: {', '.join(failed)}.")
        if left := [queue.table.id for queue in self._rule.list_withheld()]:
            # The platform would take exit code 0 for all of them.
            raise SourceFailedError(
                f"all streams are complete, and records of {', '.join(left)} were not committed.",
                remedy="Run the sync again: it goes on from the last STATE that came back.",
            )

    def _tell_of_withheld(self) -> None:
        for queue in self._rule.list_withheld():
            text = "what it sent behind the last STATE that came back is not committed; the next sync sends it again"
            self._emit(make_log("WARN", f"{queue.table.id}: {text}"))

    def _cut_what_is_due(self) -> None:
        now = self._clock()
        for queue in self._queues.values():
            if queue.is_due(now, self._step.seconds):
                self._rule.cut(queue, now)
            queue.pass_silent_state()
            queue.advance()
        needs_room = any(queue.wants_load and queue.backlog.size >= ROOM_BYTES for queue in self._queues.values())
        if needs_room and not self._count_free_slots():
            oldest = next((self._queues[key] for key in self._loads if self._queues[key].may_be_cut), None)
            if oldest is not None:
                self._rule.cut(oldest, now)

    def _count_free_slots(self) -> int:
        return max(0, self._slots - sum(not self._queues[key].is_staged for key in self._loads))

    def _begin_loads(self, pool: ThreadPoolExecutor, begun: BegunSync) -> None:
        waiting = sorted((queue for queue in self._queues.values() if queue.wants_load), key=lambda queue: queue.start)
        for queue in waiting[: self._count_free_slots()]:
            step, table = next(self._steps), queue.table
            sizes = self._sizes[queue.key]
            folder = self._folder / f"load-{step}"
            feed = ArrivingFeed(self._spark(), folder, table.id, most=self._tasks, worth=sizes.bytes_for_another_task)
            ending = Ending(queue.begin(feed), continues=queue.key in self._begun)
            gate = partial(self._wait_at_gate, queue)
            sync = Sync(begun.number, {table.id: TablePart(ending, feed, begun.states[table.id], gate=gate)})
            future = pool.submit(self._loader.run, sync, job_id=f"{self._loader.job_id}.{step}")
            future.add_done_callback(lambda _: self._wake())
            self._loads[queue.key] = future

    def _wait_at_gate(self, queue: StreamQueue) -> None:
        """Wait until a staged load may be bound; raise ``SOURCE_FAILED`` where it never may be."""
        with self._changed:
            queue.is_staged = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: queue.key in self._allowed or queue.given_up)
            if queue.key not in self._allowed:
                raise SourceFailedError("the input ended before a STATE that covers these records could go back.")

    def _open_gates(self) -> None:
        """Let the staged loads be bound that may be; give up the others once nothing else can change that."""
        self._allowed |= {queue.key for queue in self._rule.list_bindable()}
        waiting = [self._queues[key] for key in self._loads if key not in self._allowed]
        if self._rule.is_finished and len(waiting) == len(self._loads) and all(queue.is_staged for queue in waiting):
            for queue in waiting:
                queue.given_up = True
        self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _end_loads(self, begun: BegunSync) -> None:
        """Take the reports of loads that have ended."""
        for key, future in [(key, future) for key, future in self._loads.items() if future.done()]:
            queue, report = self._queues[key], None
            try:
                report = future.result()
            except LakeError as error:
                self._errors.append(error)
            finally:
                del self._loads[key]
            committed = report is not None and self._take_report(queue, report, begun)
            with self._changed:
                self._allowed.discard(key)
                if self._errors:
                    self._rule.fail()
                self._rule.close(queue, committed=committed)

    def _take_report(self, queue: StreamQueue, report: RunReport, begun: BegunSync) -> bool:
        """Take a load's report, and return whether the load is committed."""
        (result,) = report.tables
        is_committed = result.status in ("done", "already_done")
        if queue.given_up and not is_committed:
            return False
        self._emit(make_log("INFO", self.statistics.add(queue.key, result)))
        if not is_committed:
            error = find_failure(report)
            self._errors += [error] if error is not None else []
            return False
        begun.take_over(queue.table.id, report.job_id)
        self._begun.add(queue.key)
        if queue.feed is not None:
            self._sizes[queue.key].learn(queue.feed.handed, result.bytes)
        return True

    def _hand_back(self) -> None:
        """Print each STATE whose records are all committed, in order."""
        with self._changed:
            answered = self._rule.take_answered()
        for said in answered:
            counts = self.statistics.take_counts(said.event.stream)
            self._emit(make_state(said.event.text, said.records, counts))

    def _give_up_loads(self) -> None:
        """Withdraw running loads, except those past the point of no return."""
        with self._changed:
            for key in self._loads.keys() - self._allowed:
                queue = self._queues[key]
                if queue.feed is not None:
                    queue.given_up = True
                    queue.feed.give_up()
            self._changed.notify_all()

    def _sum_contents(self) -> Contents:
        whole = Contents()
        whole.add(self._contents)
        for key, queue in self._queues.items():
            if queue.records:
                whole.records[key] = queue.records
                whole.last_records[key] = queue.last_record
        return whole

    def _tell_of_odd_lines(self) -> None:
        for note in describe_messages(self._sum_contents(), self._queues):
            self._emit(make_log("WARN", note))
