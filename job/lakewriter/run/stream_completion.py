"""Which records of each stream are loaded, and whether the stream came to its end: from the events of an input."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lakewriter.commit.generations import SourceState
from lakewriter.source.messages.contents import Event
from lakewriter.source.messages.splits import FILE_BITS, Stretch
from lakewriter.spec.stream import StreamKey


@dataclass(frozen=True)
class Verdict:
    """``stretch`` is None where nothing may be loaded; ``error`` says why the stream is not complete."""

    stretch: Stretch | None
    source: SourceState | None
    complete: bool
    error: str = ""


@dataclass(frozen=True)
class Input:
    """All events of an input in order; ``failure`` says why it ended early, blank where it did not."""

    events: Sequence[Event]
    failure: str = ""

    def verdict(
        self, stream: StreamKey, job_id: str, before: SourceState | None, given: SourceState | None = None
    ) -> Verdict:
        """What becomes of a stream; ``before`` is the state with which its last load ended.

        Records up to a state that this very load has committed already are not loaded again. A connector that was
        ``given`` a state begins behind it.
        """
        states = self._states(stream)
        error = self.error(stream)
        last = states[-1] if states else None
        start = _start(states, job_id, before, given)
        # A source with nothing new may say nothing of where it is: then it still is where it was.
        source = source_state(last, job_id) if last else before
        if not error:
            return Verdict(Stretch(stream, start), source, complete=True)
        if last is None or last.place < start:
            return Verdict(None, before, complete=False, error=error)
        return Verdict(Stretch(stream, start, last.place), source, complete=False, error=error)

    def _states(self, stream: StreamKey) -> list[Event]:
        """The stream's states with all records before them: none behind a line that cannot be read."""
        faults = self._faults(stream)
        end = faults[0].place if faults else 1 << 62
        return [
            each for each in self.events if each.kind == "state" and each.stream in (None, stream) and each.place < end
        ]

    def _faults(self, stream: StreamKey) -> list[Event]:
        return [event for event in self.events if event.kind == "unreadable" and event.stream in (None, stream)]

    def error(self, stream: StreamKey) -> str:
        """Why a stream did not come to its end, blank where it did.

        Sources that report statuses say COMPLETE of each stream; of others it is enough that the input ends well.
        """
        for fault in self._faults(stream):
            file, offset = divmod(fault.place, 1 << FILE_BITS)
            return f"a message at byte {offset} of input file {file + 1} cannot be read: {fault.text}"
        statuses = [event for event in self.events if event.kind == "status"]
        own = [event.text for event in statuses if event.stream == stream and event.text != "STARTED"]
        if "COMPLETE" in own and own[-1] != "INCOMPLETE":
            return ""
        errors = [event for event in self.events if event.kind == "error" and event.stream in (None, stream)]
        if errors:
            return f"the source reports: {errors[-1].text}"
        if self.failure:
            return self.failure
        return "the source did not report it as COMPLETE" if statuses else ""


def source_state(event: Event, job_id: str) -> SourceState:
    """The state to keep with the data before it."""
    kind: Literal["stream", "global", "legacy"] = "stream"
    if event.stream is None:
        kind = "global" if json.loads(event.text).get("type") == "GLOBAL" else "legacy"
    return SourceState(kind=kind, text=event.text, digest=event.digest, job_id=job_id, place=event.place)


def _start(states: Sequence[Event], job_id: str, before: SourceState | None, given: SourceState | None) -> int:
    """The place behind what is committed.

    A source may say the same state again after new records, so its text alone tells nothing: in an input that is the
    same again the state stands where it stood. A connector given an older state comes by the later one as by its first.
    """
    if before is None or before.job_id != job_id or (given is not None and given.digest == before.digest):
        return 0
    same = [each for each in states if each.digest == before.digest and (given or each.place == before.place)]
    return same[0].place + 1 if same else 0
