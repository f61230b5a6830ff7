"""Which records of each stream are loaded, and whether the stream came to its end: from the events of an input."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from job.commit.syncing import SourceState
from job.source.airbyte_messages import Stretch
from job.source.messages import Event, StreamKey


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

    def verdict(self, stream: StreamKey, job_id: str, before: SourceState | None) -> Verdict:
        """What becomes of a stream; ``before`` is the state with which its last load ended.

        Records up to a state that this very load has committed already are not loaded again.
        """
        states = [event for event in self.events if event.kind == "state" and event.stream in (None, stream)]
        error = self.error(stream)
        last = states[-1] if states else None
        start = 0
        if before is not None and before.job_id == job_id:
            start = max((event.place + 1 for event in states if event.digest == before.digest), default=0)
        # A source with nothing new may say nothing of where it is: then it still is where it was.
        source = source_state(last, job_id) if last else before
        if not error:
            return Verdict(Stretch(stream, start), source, complete=True)
        if last is None or last.place < start:
            return Verdict(None, before, complete=False, error=error)
        return Verdict(Stretch(stream, start, last.place), source, complete=False, error=error)

    def error(self, stream: StreamKey) -> str:
        """Why a stream did not come to its end, blank where it did.

        Sources that report statuses say COMPLETE of each stream; of others it is enough that the input ends well.
        """
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
    return SourceState(kind=kind, text=event.text, digest=event.digest, job_id=job_id)


def handed_back(states: Sequence[tuple[int, SourceState]]) -> str | None:
    """The file that a source takes as its state, None where there is none.

    ``states`` are those of the tables with the numbers of their syncs. Of a state for all streams the oldest goes
    back, since only up to there every stream has its records.
    """
    whole = [(number, state) for number, state in states if state.kind != "stream"]
    if whole:
        oldest = min(whole, key=lambda each: each[0])[1]
        content = json.loads(oldest.text)
        return json.dumps(content.get("data", content) if oldest.kind == "legacy" else [content])
    return json.dumps([json.loads(state.text) for _, state in states]) if states else None
