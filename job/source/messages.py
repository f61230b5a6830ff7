"""Messages of the Airbyte protocol, one a line: read one by one, and what a stretch of them holds.

See: https://docs.airbyte.com/understanding-airbyte/airbyte-protocol
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import msgspec

MOST_SAMPLES: Final = 5
SHOWN: Final = 200
"""Characters of a line that is no message that are shown."""

_NOTHING: Final = msgspec.Raw(b"")
StreamKey = tuple[str | None, str]
"""Namespace and name."""


class Meta(msgspec.Struct):
    """What the source says of a record; ``changes`` is JSON text."""

    changes: msgspec.Raw = _NOTHING


class Record(msgspec.Struct):
    """A record; ``data`` is its JSON text as it stands in the line, ``emitted_at`` milliseconds since 1970."""

    stream: str
    data: msgspec.Raw
    emitted_at: int | float | None = None
    namespace: str | None = None
    meta: Meta | None = None


class Message(msgspec.Struct):
    """A line; of the other kinds of message the text is kept."""

    type: str
    record: Record | None = None
    state: msgspec.Raw = _NOTHING
    trace: msgspec.Raw = _NOTHING
    log: msgspec.Raw = _NOTHING


class Descriptor(msgspec.Struct):
    """A stream's identity."""

    name: str
    namespace: str | None = None


class _StreamState(msgspec.Struct):
    stream_descriptor: Descriptor


class _State(msgspec.Struct):
    type: str = "LEGACY"
    stream: _StreamState | None = None


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


_MESSAGE: Final = msgspec.json.Decoder(Message)
_STATE: Final = msgspec.json.Decoder(_State)
_TRACE: Final = msgspec.json.Decoder(_Trace)


@dataclass(frozen=True)
class Event:
    """A message that is no record, where it matters; ``stream`` is None where it is about all of them.

    ``kind`` is ``state``, ``status`` or ``error``; ``text`` the state's JSON text, the status, or the error's message.
    """

    place: int
    kind: str
    stream: StreamKey | None
    text: str
    digest: str = ""


@dataclass
class Contents:
    """What a stretch of lines holds: records by stream, events in order, other lines by their kind."""

    records: Counter[StreamKey] = field(default_factory=Counter)
    events: list[Event] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    malformed: int = 0
    samples: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that ``from_json`` takes back."""
        return asdict(self) | {"records": [[*key, count] for key, count in self.records.items()]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Contents":
        """The contents in ``data``."""
        events = [Event(**each | {"stream": each["stream"] and tuple(each["stream"])}) for each in data["events"]]
        records = Counter({(namespace, name): count for namespace, name, count in data["records"]})
        return cls(records, events, Counter(data["others"]), data["malformed"], data["samples"])

    def add(self, other: "Contents") -> None:
        """The contents of what follows."""
        self.records += other.records
        self.events += other.events
        self.others += other.others
        self.malformed += other.malformed
        self.samples = [*self.samples, *other.samples][:MOST_SAMPLES]

    def take(self, place: int, line: bytes) -> Message | None:
        """One more line; its message, unless it is none."""
        message = parsed(line)
        if message is None:
            self.malformed += bool(line.strip())
            if line.strip() and len(self.samples) < MOST_SAMPLES:
                self.samples.append(line[:SHOWN].decode(errors="replace"))
        elif message.record is not None:
            self.records[message.record.namespace, message.record.stream] += 1
        else:
            event = event_of(place, message)
            if event is None:
                self.others[message.type] += 1
            else:
                self.events.append(event)
        return message


def scan(lines: Iterable[tuple[int, bytes]]) -> Contents:
    """The contents of lines with their places."""
    found = Contents()
    for place, line in lines:
        found.take(place, line)
    return found


def parsed(line: bytes) -> Message | None:
    """The message of a line, None for a line that is none."""
    try:
        message = _MESSAGE.decode(line)
        if not line.isascii():
            line.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    record = message.record
    whole = record is not None and bytes(memoryview(record.data)[:1]) == b"{"
    return None if message.type == "RECORD" and not whole else message


def event_of(place: int, message: Message) -> Event | None:
    """What a message that is no record means; None for one that means nothing here."""
    try:
        if message.type == "STATE" and bytes(message.state):
            return _state(place, bytes(message.state))
        if message.type == "TRACE" and bytes(message.trace):
            return _trace(place, _TRACE.decode(message.trace))
    except msgspec.MsgspecError:
        return None
    return None


def _state(place: int, text: bytes) -> Event:
    found = _STATE.decode(text)
    own = found.stream.stream_descriptor if found.type == "STREAM" and found.stream else None
    digest = hashlib.sha256(msgspec.json.encode(msgspec.json.decode(text), order="sorted")).hexdigest()
    return Event(place, "state", _key(own), text.decode(), digest)


def _trace(place: int, trace: _Trace) -> Event | None:
    if trace.type == "STREAM_STATUS" and trace.stream_status is not None:
        status = trace.stream_status
        return Event(place, "status", _key(status.stream_descriptor), status.status)
    if trace.type == "ERROR" and trace.error is not None:
        error = trace.error
        said = error.message or error.internal_message or "no reason given"
        return Event(place, "error", _key(error.stream_descriptor), said)
    return None


def _key(descriptor: Descriptor | None) -> StreamKey | None:
    return None if descriptor is None else (descriptor.namespace, descriptor.name)


def unknown_streams(contents: Contents, known: Iterable[StreamKey]) -> Counter[StreamKey]:
    """Records of streams that no catalog names."""
    return Counter({key: count for key, count in contents.records.items() if key not in set(known)})
