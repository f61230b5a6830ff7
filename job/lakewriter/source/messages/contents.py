"""What a stretch of messages of the Airbyte protocol holds, and what those that are no records mean.

See: https://docs.airbyte.com/understanding-airbyte/airbyte-protocol
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import msgspec

from lakewriter.source.messages.lines import Descriptor, Message, StreamState, parse_line
from lakewriter.source.messages.masking import Mask
from lakewriter.source.messages.odd_lines import Odd, is_cut_off, parse_odd_line
from lakewriter.spec.stream import StreamKey

MOST_SAMPLES: Final = 5
SHOWN: Final = 200
"""Characters of a line that is no message that are shown."""


class _State(msgspec.Struct):
    type: str = "LEGACY"
    stream: StreamState | None = None


class _StreamStatus(msgspec.Struct):
    stream_descriptor: Descriptor
    status: str


class _TraceError(msgspec.Struct):
    message: str | None = None
    internal_message: str | None = None
    stream_descriptor: Descriptor | None = None


class _Trace(msgspec.Struct):
    type: str
    error: _TraceError | None = None
    stream_status: _StreamStatus | None = None


_STATE: Final = msgspec.json.Decoder(_State)
_TRACE: Final = msgspec.json.Decoder(_Trace)
_EXACT: Final = msgspec.json.Decoder(float_hook=str)
"""Takes every number, also those that no float holds."""


BAD_RECORD: Final = "bad record"
"""A RECORD that cannot be read. Where its line does not tell the stream, it may be any stream's."""
UNREADABLE: Final = "unreadable"
"""The same of a STATE, which nobody can do without."""


@dataclass(frozen=True)
class Event:
    """A message that is no record, where it matters; ``stream`` is None where it is about all of them.

    ``kind`` is ``state``, ``status``, ``error``, or what is said of a RECORD or a STATE that cannot be read; ``text``
    the state's JSON text, the status, the error's message, or what is wrong with the line.
    """

    place: int
    kind: str
    stream: StreamKey | None
    text: str
    digest: str = ""

    @property
    def is_shown(self) -> bool:
        """Whether its text is shown to people: that of a state goes back to the source as it is."""
        return self.kind not in ("state", "status")

    def is_fault(self, *, sets_aside: bool = False) -> bool:
        """Whether nothing behind it may be loaded, of a stream that sets bad records aside or not."""
        return self.kind == UNREADABLE or (self.kind == BAD_RECORD and not sets_aside)


@dataclass
class Contents:
    """What a stretch of lines holds: records by stream, the bytes of their data, and events in order.

    ``mended`` counts records of which values were replaced, ``replaced`` names some of those. ``first_records`` is by
    stream the place of its first record and a digest of its data, ``last_records`` the place of its last one.
    ``last_line`` is the place of the last line that is not blank, ``last_cut`` that of the last one that is cut off.
    """

    records: Counter[StreamKey] = field(default_factory=Counter)
    sizes: Counter[StreamKey] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    malformed: int = 0
    samples: list[str] = field(default_factory=list)
    mended: int = 0
    replaced: list[str] = field(default_factory=list)
    first_records: dict[StreamKey, tuple[int, str]] = field(default_factory=dict)
    last_records: dict[StreamKey, int] = field(default_factory=dict)
    last_line: int = -1
    last_cut: int = -1

    @property
    def is_cut(self) -> bool:
        """Whether the last line is cut off, as whoever wrote it died."""
        return self.last_line >= 0 and self.last_cut == self.last_line

    @property
    def says_something(self) -> bool:
        """Whether anything of the lines is shown to people."""
        return bool(self.samples or self.replaced) or any(event.is_shown for event in self.events)

    def masked(self, mask: Mask) -> "Contents":
        """The same without secrets in what is shown."""
        events = [replace(event, text=mask.mask_cut(event.text)) if event.is_shown else event for event in self.events]
        samples, replaced = ([mask.mask_cut(text) for text in texts] for texts in (self.samples, self.replaced))
        return replace(self, events=events, samples=samples, replaced=replaced)

    def has(self, stream: StreamKey) -> bool:
        """Whether a record of the stream is among the lines, or a bad one that may be."""
        bad = (event for event in self.events if event.kind == BAD_RECORD and event.stream in (None, stream))
        return self.records[stream] > 0 or any(bad)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that ``from_json`` takes back."""
        # Of a Counter ``asdict`` makes another one, which counts its items.
        return asdict(self) | {
            "records": [[*key, count] for key, count in self.records.items()],
            "sizes": [[*key, size] for key, size in self.sizes.items()],
            "first_records": [[*key, *first] for key, first in self.first_records.items()],
            "last_records": [[*key, place] for key, place in self.last_records.items()],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Contents":
        """The contents in ``data``."""
        events = [Event(**each | {"stream": each["stream"] and tuple(each["stream"])}) for each in data["events"]]
        records = Counter({(namespace, name): count for namespace, name, count in data["records"]})
        sizes = Counter({(namespace, name): size for namespace, name, size in data["sizes"]})
        first_records = {(namespace, name): (place, digest) for namespace, name, place, digest in data["first_records"]}
        last_records = {(namespace, name): place for namespace, name, place in data["last_records"]}
        places = {"first_records": first_records, "last_records": last_records}
        return cls(**data | {"records": records, "sizes": sizes, "events": events} | places)

    def add(self, other: "Contents") -> None:
        """The contents of what follows."""
        self.records += other.records
        self.sizes += other.sizes
        self.events += other.events
        self.malformed += other.malformed
        self.samples = [*self.samples, *other.samples][:MOST_SAMPLES]
        self.mended += other.mended
        self.replaced = [*self.replaced, *other.replaced][:MOST_SAMPLES]
        self.first_records = other.first_records | self.first_records
        self.last_records |= other.last_records
        self.last_line = max(self.last_line, other.last_line)
        self.last_cut = max(self.last_cut, other.last_cut)

    def take(self, place: int, line: bytes) -> None:
        """One more line."""
        message = self.parse(place, line)
        if message is None:
            return
        if message.record is not None:
            key = message.record.key
            if key not in self.first_records:
                self.first_records[key] = (place, hashlib.sha256(message.record.data).hexdigest())
            self.take_record(place, key)
            self.sizes[key] += len(memoryview(message.record.data))
        elif (event := parse_event(place, message)) is not None:
            self.events.append(event)

    def parse(self, place: int, line: bytes) -> Message | None:
        """The message of one more line; None for a line that is none, of which all is noted."""
        message = parse_line(line)
        if message is not None:
            self.last_line = place
        elif line.strip():
            self.last_line = place
            message = self._take_odd(place, line, parse_odd_line(line))
        return message

    def take_record(self, place: int, key: StreamKey) -> None:
        """A record of a stream."""
        self.records[key] += 1
        self.last_records[key] = place

    def _take_odd(self, place: int, line: bytes, odd: Odd) -> Message | None:
        if odd.mended:
            self.mended += 1
            if len(self.replaced) < MOST_SAMPLES:
                name = odd.message.record.stream if odd.message and odd.message.record else ""
                self.replaced.append(f"{name}: {', '.join(odd.mended)}"[:SHOWN])
        if odd.message is not None:
            return odd.message
        shown = line[:SHOWN].decode(errors="replace")
        if odd.fault:
            kind = BAD_RECORD if odd.is_record else UNREADABLE
            self.events.append(Event(place, kind, odd.stream, f"{odd.fault}: {shown!r}"))
        self.malformed += 1
        if is_cut_off(line):
            self.last_cut = place
        if len(self.samples) < MOST_SAMPLES:
            self.samples.append(shown)
        return None


def scan(lines: Iterable[tuple[int, bytes]]) -> Contents:
    """The contents of lines with their places."""
    found = Contents()
    for place, line in lines:
        found.take(place, line)
    return found


def parse_event(place: int, message: Message) -> Event | None:
    """What a message that is no record means; None for one that means nothing here."""
    try:
        if message.type == "STATE" and bytes(message.state):
            return _parse_state(place, bytes(message.state))
        if message.type == "TRACE" and bytes(message.trace):
            return _parse_trace(place, _TRACE.decode(message.trace))
    except msgspec.MsgspecError:
        return None
    return None


def _parse_state(place: int, text: bytes) -> Event:
    found = _STATE.decode(text)
    own = found.stream.stream_descriptor if found.type == "STREAM" and found.stream else None
    digest = hashlib.sha256(msgspec.json.encode(_EXACT.decode(text), order="sorted")).hexdigest()
    return Event(place, "state", _to_key(own), text.decode(), digest)


def _parse_trace(place: int, trace: _Trace) -> Event | None:
    if trace.type == "STREAM_STATUS" and trace.stream_status is not None:
        status = trace.stream_status
        return Event(place, "status", _to_key(status.stream_descriptor), status.status)
    if trace.type == "ERROR" and trace.error is not None:
        error = trace.error
        said = error.message or error.internal_message or "no reason given"
        return Event(place, "error", _to_key(error.stream_descriptor), said)
    return None


def _to_key(descriptor: Descriptor | None) -> StreamKey | None:
    return None if descriptor is None else descriptor.key


def count_unknown_streams(contents: Contents, known: Iterable[StreamKey]) -> Counter[StreamKey]:
    """Records of streams that no catalog names."""
    named = set(known)
    return Counter({key: count for key, count in contents.records.items() if key not in named})
