"""Decide from an input's messages how far each stream is loaded, and whether it is complete."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from lakewriter.records.sync_records import FirstMessage, SourceState
from lakewriter.source.messages.contents import Event
from lakewriter.source.messages.message_input import Messages
from lakewriter.source.messages.splits import END, FILE_BITS, Stretch
from lakewriter.spec.stream import MessageSource, StreamKey


@dataclass(frozen=True)
class StreamVerdict:
    """``stretch`` is None where nothing may be loaded. ``error`` says why the stream is not complete, ``remedy`` what
    to do, blank where the reason says it. ``reached`` is the place up to which this load has committed it before,
    ``END`` where that is not in the input.
    """

    stretch: Stretch | None
    source: SourceState | None
    complete: bool
    error: str = ""
    remedy: str = ""
    reached: int = -1


InputEnd = Literal["unseen", "exit 0", "no statuses"]
"""What is known of an input's end: nothing; the connector, run by the job, exited with 0; or, by the user's word, the
source never reports statuses."""

_UNTOLD: Final = (
    "the input ended without its status COMPLETE, and carries no status of any stream, as when its source died. "
    "Where the source never reports statuses, say so: statuses: none under source in lake.yaml, or --statuses none"
)
_WHOLE_OR_ANOTHER: Final = (
    "Run it again with that input, whole. What follows that STATE, as from a source that was given it, belongs to a "
    "load with another job id."
)
_SAME_AGAIN: Final = (
    "Run the load again: it goes on where the connector says that STATE. If the connector never does, take the records "
    "up to it out: lakewriter undo LAKE {job} --table TABLE --reason WHY. Where that load is undone already, and its "
    "state was kept, begin the stream anew: lakewriter reset LAKE TABLE --no-cursor --reason WHY"
)


@dataclass(frozen=True)
class Input:
    """All events of an input in order; ``failure`` says why it ended early, blank where it did not.

    ``first_records`` is by stream the place of its first record and a digest of its data, ``last_records`` the place of
    its last one; ``last_line`` is the place of the last line. ``is_cut`` says that a file ends amid a line,
    ``sets_aside`` which streams do without records that cannot be read.
    """

    events: Sequence[Event]
    failure: str = ""
    last_records: Mapping[StreamKey, int] = field(default_factory=dict)
    ended: InputEnd = "unseen"
    is_cut: bool = False
    sets_aside: Collection[StreamKey] = ()
    first_records: Mapping[StreamKey, tuple[int, str]] = field(default_factory=dict)
    last_line: int = -1

    @classmethod
    def of(cls, messages: Messages, source: MessageSource, sets_aside: Collection[StreamKey] = ()) -> "Input":
        """Return the input of a load from ``source``, of which some streams set bad records aside."""
        ended: InputEnd = "no statuses" if source.statuses == "none" else "unseen"
        if source.command and not messages.failure:
            ended = "exit 0"
        return cls(
            messages.events,
            messages.failure,
            messages.last_records,
            ended,
            messages.is_cut,
            sets_aside,
            messages.first_records,
            messages.last_line,
        )

    def judge(
        self,
        stream: StreamKey,
        job_id: str,
        before: SourceState | None,
        given: SourceState | None = None,
        *,
        stays: bool = True,
    ) -> StreamVerdict:
        """Decide what is loaded of a stream; ``before`` is the state with which its last load ended.

        Records up to a state that an earlier attempt of this load committed are not loaded again. A connector that was
        ``given`` a state starts after it; if the stream has gone beyond that state, records up to the stream's own
        state are not loaded again either. If committed rows stay (``stays``) and the input may hold them once more,
        nothing is loaded.
        """
        states = self.list_states(stream)
        error = self.error(stream)
        last = states[-1] if states else None
        start = 0
        is_behind = before is not None and given is not None and given.digest != before.digest
        if before is not None and (is_behind or (given is None and before.job_id == job_id)):
            start_position = self._find_start(stream, before, given, error)
            if start_position is None and given is not None:
                return StreamVerdict(
                    None,
                    before,
                    False,
                    error or _explain_passed_by(before.job_id),
                    _SAME_AGAIN.format(job=before.job_id),
                    END,
                )
            if start_position is None and stays:
                why = self._explain_missing(stream, before)
                return StreamVerdict(None, before, False, why, _WHOLE_OR_ANOTHER, END)
            start = start_position or 0
        if not error:
            # A source with nothing new may send no state: then it is still at its earlier one.
            return StreamVerdict(
                Stretch(stream, start), make_source_state(last, job_id) if last else before, complete=True
            )
        if last is None or last.position < start:
            return StreamVerdict(None, before, complete=False, error=error, reached=start - 1)
        source = make_source_state(last, job_id, self.find_first(stream))
        return StreamVerdict(
            Stretch(stream, start, last.position), source, complete=False, error=error, reached=start - 1
        )

    def _find_start(self, stream: StreamKey, part: SourceState, given: SourceState | None, error: str) -> int | None:
        """Return the place after the records that this load has committed, up to the state ``part``; 0 where the input
        holds none of them, None where it may hold some.

        A source may repeat a state after new records, so the state's text alone does not identify its place: in an
        input that is read again, the state is at the same place as before. A connector that was given an older state
        sends the later one again.
        """
        states = (event for event in self.events if event.kind == "state" and event.stream in (None, stream))
        for state in states:
            if state.digest == part.digest and (given is not None or state.position == part.place):
                return state.position + 1
        if given is not None:
            return 0 if not error and stream not in self.last_records else None
        # Rule committed-part
        return 0 if part.place is None or self._is_another(stream, part, part.place, error) else None

    def _is_another(self, stream: StreamKey, part: SourceState, position: int, error: str) -> bool:
        """Return whether this is another input than the one whose records before ``position`` were committed."""
        first = self.find_first(stream)
        if first is None:
            # The input has no record of the stream, so none can be loaded twice. If only the user's word says that the
            # input is whole, it may have been cut off.
            return bool(error) or self.ended != "no statuses" or self._find_status(stream) is not None
        if part.first is None:
            return self.last_line > position
        return part.first.place == position or part.first.digest != first.digest

    def find_first(self, stream: StreamKey) -> FirstMessage | None:
        """Return the stream's first record, or the first state where that comes before it."""
        states = ((e.position, e.digest) for e in self.events if e.kind == "state" and e.stream in (None, stream))
        records = (self.first_records[stream],) if stream in self.first_records else ()
        first = min((*records, *states), default=None)
        return None if first is None else FirstMessage(place=first[0], digest=first[1])

    def _explain_missing(self, stream: StreamKey, part: SourceState) -> str:
        position = part.place or 0
        committed = f"load {part.job_id!r} has committed its records up to the STATE at {describe_position(position)}"
        if self.last_line < 0:
            return f"{committed}, and the input is empty"
        if self.last_line < position:
            return f"{committed}, and the input ends before it, with the line at {describe_position(self.last_line)}"
        if self.find_first(stream) is None:
            return f"{committed}, and the input has no message of the stream"
        return f"{committed}, and the input, which has the same first message of the stream, has another line there"

    def list_states(self, stream: StreamKey) -> list[Event]:
        """Return the stream's states whose earlier records can all be read: none after a line that cannot be read."""
        faults = self.list_faults(stream)
        end = faults[0].position if faults else END
        return [
            event
            for event in self.events
            if event.kind == "state" and event.stream in (None, stream) and event.position < end
        ]

    def list_faults(self, stream: StreamKey) -> list[Event]:
        sets_aside = stream in self.sets_aside
        return [
            event for event in self.events if event.is_fault(sets_aside=sets_aside) and event.stream in (None, stream)
        ]

    def error(self, stream: StreamKey) -> str:
        """Say why a stream did not end, blank where it did.

        It did where its status COMPLETE came after all its records, or where the connector exited with 0 and did not
        report it as INCOMPLETE. The end of an input without any status counts only where the user says so: a source
        that dies ends its output, too.
        """
        status = self._find_status(stream)
        for fault in self._list_own_faults(stream, status):
            return f"a message at {describe_position(fault.position)} cannot be read: {fault.text}"
        errors = [event for event in self.events if event.kind == "error" and event.stream in (None, stream)]
        if status is not None and status.text == "COMPLETE":
            if self.last_records.get(stream, -1) > status.position:
                return "the source sent more of its records after its status COMPLETE"
            # An error for all streams does not concern this one, which was complete before it.
            errors = [event for event in errors if event.stream == stream and event.position > status.position]
            return f"the source reports: {errors[-1].text}" if errors else ""
        if errors:
            return f"the source reports: {errors[-1].text}"
        return self.failure or self._explain_end(status)

    def _list_own_faults(self, stream: StreamKey, status: Event | None) -> list[Event]:
        """List the faults that may be the stream's: one of an unknown stream is of none that was complete before it."""
        end = status.position if status is not None and status.text == "COMPLETE" else END
        return [fault for fault in self.list_faults(stream) if fault.stream is not None or fault.position < end]

    def _find_status(self, stream: StreamKey) -> Event | None:
        """Return the last status of a stream. One that is INCOMPLETE remains so until the stream is started again."""
        last = None
        for event in self.events:
            if event.kind != "status" or event.stream != stream:
                continue
            if last is None or last.text != "INCOMPLETE" or event.text != "COMPLETE":
                last = event
        return last

    def _explain_end(self, status: Event | None) -> str:
        """Say why the input's end is not the end of a stream without COMPLETE."""
        is_reported = any(event.kind == "status" for event in self.events)
        may_end = self.ended == "exit 0" or (self.ended == "no statuses" and not is_reported)
        if is_reported and (not may_end or (status is not None and status.text == "INCOMPLETE")):
            return "the source did not report it as COMPLETE"
        if not may_end:
            return _UNTOLD
        return "the input ends in the middle of a line" if self.is_cut else ""


def describe_position(position: int) -> str:
    """Describe where a line begins: its byte, and the number of its input file."""
    file, offset = divmod(position, 1 << FILE_BITS)
    return f"byte {offset} of input file {file + 1}"


def make_source_state(event: Event, job_id: str, first: FirstMessage | None = None) -> SourceState:
    """Return the state to keep with the data before it; ``first`` is that of an input that is to be read again."""
    kind: Literal["stream", "global", "legacy"] = "stream"
    if event.stream is None:
        kind = "global" if json.loads(event.text).get("type") == "GLOBAL" else "legacy"
    return SourceState(
        kind=kind, text=event.text, digest=event.digest, job_id=job_id, place=event.position, first=first
    )


def _explain_passed_by(job_id: str) -> str:
    return (
        f"load {job_id!r} has committed its records up to a later STATE than the one that the connector was given, and "
        "the connector has not reached that STATE again"
    )
