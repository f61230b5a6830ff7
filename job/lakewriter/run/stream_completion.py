"""Decide from an input's messages how far each stream is loaded, and whether it is complete."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from lakewriter.commit.sync_records import SourceState
from lakewriter.source.messages.contents import Event
from lakewriter.source.messages.message_input import Messages
from lakewriter.source.messages.splits import FILE_BITS, Stretch
from lakewriter.spec.stream import MessageSource, StreamKey


@dataclass(frozen=True)
class Verdict:
    """``stretch`` is None where nothing may be loaded; ``error`` says why the stream is not complete."""

    stretch: Stretch | None
    source: SourceState | None
    complete: bool
    error: str = ""


Ended = Literal["unseen", "exit 0", "no statuses"]
"""What is known of an input's end: nothing, that the connector which the job ran exited with 0, or that the user says
its source never reports statuses."""

_UNTOLD: Final = (
    "the input ended without its status COMPLETE, and carries no status of any stream, as when its source died. "
    "Where the source never reports statuses, say so: statuses: none under source in lake.yaml, or --statuses none"
)


@dataclass(frozen=True)
class Input:
    """All events of an input in order; ``failure`` says why it ended early, blank where it did not.

    ``last_records`` is by stream the place of its last record; ``is_cut`` says that a file ends amid a line,
    ``sets_aside`` which streams do without records that cannot be read.
    """

    events: Sequence[Event]
    failure: str = ""
    last_records: Mapping[StreamKey, int] = field(default_factory=dict)
    ended: Ended = "unseen"
    is_cut: bool = False
    sets_aside: Collection[StreamKey] = ()

    @classmethod
    def of(cls, messages: Messages, source: MessageSource, sets_aside: Collection[StreamKey] = ()) -> "Input":
        """The input of a load from ``source``, of which some streams set bad records aside."""
        ended: Ended = "no statuses" if source.statuses == "none" else "unseen"
        if source.command and not messages.failure:
            ended = "exit 0"
        return cls(messages.events, messages.failure, messages.last_records, ended, messages.is_cut, sets_aside)

    def judge(
        self, stream: StreamKey, job_id: str, before: SourceState | None, given: SourceState | None = None
    ) -> Verdict:
        """Decide what is loaded of a stream; ``before`` is the state with which its last load ended.

        Records up to a state that an earlier attempt of this load committed are not loaded again. A connector that was
        ``given`` a state starts after it.
        """
        states = self._list_states(stream)
        error = self.error(stream)
        last = states[-1] if states else None
        start = _start(states, job_id, before, given)
        # A source with nothing new may say nothing of where it is: then it still is where it was.
        source = make_source_state(last, job_id) if last else before
        if not error:
            return Verdict(Stretch(stream, start), source, complete=True)
        if last is None or last.place < start:
            return Verdict(None, before, complete=False, error=error)
        return Verdict(Stretch(stream, start, last.place), source, complete=False, error=error)

    def _list_states(self, stream: StreamKey) -> list[Event]:
        """The stream's states with all records before them: none behind a line that cannot be read."""
        faults = self._list_faults(stream)
        end = faults[0].place if faults else 1 << 62
        return [
            each for each in self.events if each.kind == "state" and each.stream in (None, stream) and each.place < end
        ]

    def _list_faults(self, stream: StreamKey) -> list[Event]:
        sets_aside = stream in self.sets_aside
        return [
            event for event in self.events if event.is_fault(sets_aside=sets_aside) and event.stream in (None, stream)
        ]

    def error(self, stream: StreamKey) -> str:
        """Why a stream did not come to its end, blank where it did.

        It did where its status COMPLETE came after all its records, or where the connector exited with 0 and did not
        report it as INCOMPLETE. The end of an input without any status counts only where the user says so: a source
        that dies ends its output, too.
        """
        for fault in self._list_faults(stream):
            file, offset = divmod(fault.place, 1 << FILE_BITS)
            return f"a message at byte {offset} of input file {file + 1} cannot be read: {fault.text}"
        status = self._find_status(stream)
        errors = [event for event in self.events if event.kind == "error" and event.stream in (None, stream)]
        if status is not None and status.text == "COMPLETE":
            if self.last_records.get(stream, -1) > status.place:
                return "the source sent more of its records after its status COMPLETE"
            # An error of all streams is not this one's, which was complete before.
            errors = [event for event in errors if event.stream == stream and event.place > status.place]
            return f"the source reports: {errors[-1].text}" if errors else ""
        if errors:
            return f"the source reports: {errors[-1].text}"
        return self.failure or self._explain_end(status)

    def _find_status(self, stream: StreamKey) -> Event | None:
        """The last status of a stream. One that is INCOMPLETE remains so until the stream is started again."""
        last = None
        for event in self.events:
            if event.kind != "status" or event.stream != stream:
                continue
            if last is None or last.text != "INCOMPLETE" or event.text != "COMPLETE":
                last = event
        return last

    def _explain_end(self, status: Event | None) -> str:
        """Why the input's end is not the end of a stream without COMPLETE."""
        is_reported = any(event.kind == "status" for event in self.events)
        may_end = self.ended == "exit 0" or (self.ended == "no statuses" and not is_reported)
        if is_reported and (not may_end or (status is not None and status.text == "INCOMPLETE")):
            return "the source did not report it as COMPLETE"
        if not may_end:
            return _UNTOLD
        return "the input ends in the middle of a line" if self.is_cut else ""


def make_source_state(event: Event, job_id: str) -> SourceState:
    """The state to keep with the data before it."""
    kind: Literal["stream", "global", "legacy"] = "stream"
    if event.stream is None:
        kind = "global" if json.loads(event.text).get("type") == "GLOBAL" else "legacy"
    return SourceState(kind=kind, text=event.text, digest=event.digest, job_id=job_id, place=event.place)


def _start(states: Sequence[Event], job_id: str, before: SourceState | None, given: SourceState | None) -> int:
    """The place after the last committed record.

    A source may repeat a state after new records, so the state's text alone does not identify its place: in an input
    that is read again, the state is at the same place as before. A connector that was given an older state sends the
    later one again.
    """
    if before is None or before.job_id != job_id or (given is not None and given.digest == before.digest):
        return 0
    same = [each for each in states if each.digest == before.digest and (given or each.place == before.place)]
    return same[0].place + 1 if same else 0
