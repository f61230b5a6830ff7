"""Scan messages of the Airbyte protocol: count their records, and read the messages that are not records.

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
from lakewriter.source.messages.mended_lines import Odd, is_cut_off, parse_odd_line
from lakewriter.spec.stream import StreamKey

MOST_SAMPLES: Final = 5
SHOWN: Final = 200
"""The number of characters shown of a line that is not a message."""


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
"""Decodes every number, even if no float holds it."""


BAD_RECORD: Final = "bad record"
"""A RECORD that cannot be read. If its line does not name the stream, it may be any stream's."""
UNREADABLE: Final = "unreadable"
"""A STATE that cannot be read. No load can go past it."""


@dataclass(frozen=True)
class Event:
    """A message that is not a record and matters; ``stream`` is None if it concerns all streams.

    ``position`` is that of its line. ``kind`` is ``state``, ``status``, ``error``, or the kind of fault of a RECORD or
    a STATE that cannot be read. ``text`` is the state's JSON text, the status, the error's message, or the fault of the
    line.
    """

    position: int
    kind: str
    stream: StreamKey | None
    text: str
    digest: str = ""

    @property
    def is_shown(self) -> bool:
        """True if people see its text. A state's text goes back to the source unchanged."""
        return self.kind not in ("state", "status")

    def is_fault(self, *, sets_aside: bool = False) -> bool:
        """Return True if no record behind it may be loaded, for a stream that sets bad records aside or not."""
        return self.kind == UNREADABLE or (self.kind == BAD_RECORD and not sets_aside)


@dataclass
class Contents:
    """The contents of lines: records by stream, the size of their data in bytes, and events in order.

    ``mended`` counts records with replaced values, ``replaced`` names some of those. ``first_records`` maps a stream to
    the position of its first record and a digest of its data, ``last_records`` to the position of its last one.
    ``last_line`` is the position of the last line that is not blank, ``last_cut`` that of the last line that is cut
    off.
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
        """True if the last line is cut off because its writer died."""
        return self.last_line >= 0 and self.last_cut == self.last_line

    @property
    def has_shown_texts(self) -> bool:
        """True if people see a part of the lines."""
        return bool(self.samples or self.replaced) or any(event.is_shown for event in self.events)

    def masked(self, mask: Mask) -> "Contents":
        """Return the same without secrets in the texts that people see."""
        events = [replace(event, text=mask.mask_cut(event.text)) if event.is_shown else event for event in self.events]
        samples, replaced = ([mask.mask_cut(text) for text in texts] for texts in (self.samples, self.replaced))
        return replace(self, events=events, samples=samples, replaced=replaced)

    def may_have(self, stream: StreamKey) -> bool:
        """Return True if a record of the stream is among the lines, or a bad record that may be the stream's."""
        bad = (event for event in self.events if event.kind == BAD_RECORD and event.stream in (None, stream))
        return self.records[stream] > 0 or any(bad)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object that ``from_json`` parses."""
        # ``asdict`` turns a Counter into one that counts its items.
        return asdict(self) | {
            "records": [[*key, count] for key, count in self.records.items()],
            "sizes": [[*key, size] for key, size in self.sizes.items()],
            "first_records": [[*key, *first] for key, first in self.first_records.items()],
            "last_records": [[*key, position] for key, position in self.last_records.items()],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Contents":
        """Parse the contents in ``data``."""
        events = [Event(**item | {"stream": item["stream"] and tuple(item["stream"])}) for item in data["events"]]
        records = Counter({(namespace, name): count for namespace, name, count in data["records"]})
        sizes = Counter({(namespace, name): size for namespace, name, size in data["sizes"]})
        first_records = {
            (namespace, name): (position, digest) for namespace, name, position, digest in data["first_records"]
        }
        last_records = {(namespace, name): position for namespace, name, position in data["last_records"]}
        positions = {"first_records": first_records, "last_records": last_records}
        return cls(**data | {"records": records, "sizes": sizes, "events": events} | positions)

    def add(self, other: "Contents") -> None:
        """Add the contents of the lines that follow."""
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

    def take(self, position: int, line: bytes) -> None:
        """Add one more line."""
        message = self.parse(position, line)
        if message is None:
            return
        if message.record is not None:
            key = message.record.key
            if key not in self.first_records:
                self.first_records[key] = (position, hashlib.sha256(message.record.data).hexdigest())
            self.take_record(position, key)
            self.sizes[key] += len(memoryview(message.record.data))
        elif (event := parse_event(position, message)) is not None:
            self.events.append(event)

    def parse(self, position: int, line: bytes) -> Message | None:
        """Return the message of one more line. Return None if the line is not a message, and record its faults."""
        message = parse_line(line)
        if message is not None:
            self.last_line = position
        elif line.strip():
            self.last_line = position
            message = self._take_odd(position, line, parse_odd_line(line))
        return message

    def take_record(self, position: int, key: StreamKey) -> None:
        """Add a record of a stream."""
        self.records[key] += 1
        self.last_records[key] = position

    def _take_odd(self, position: int, line: bytes, odd: Odd) -> Message | None:
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
            self.events.append(Event(position, kind, odd.stream, f"{odd.fault}: {shown!r}"))
        self.malformed += 1
        if is_cut_off(line):
            self.last_cut = position
        if len(self.samples) < MOST_SAMPLES:
            self.samples.append(shown)
        return None


def scan(lines: Iterable[tuple[int, bytes]]) -> Contents:
    """Return the contents of lines with their positions."""
    contents = Contents()
    for position, line in lines:
        contents.take(position, line)
    return contents


def parse_event(position: int, message: Message) -> Event | None:
    """Return the event of a message that is not a record; None if the message does not matter here."""
    try:
        if message.type == "STATE" and bytes(message.state):
            return _parse_state(position, bytes(message.state))
        if message.type == "TRACE" and bytes(message.trace):
            return _parse_trace(position, _TRACE.decode(message.trace))
    except msgspec.MsgspecError:
        return None
    return None


def _parse_state(position: int, text: bytes) -> Event:
    state = _STATE.decode(text)
    descriptor = state.stream.stream_descriptor if state.type == "STREAM" and state.stream else None
    digest = hashlib.sha256(msgspec.json.encode(_EXACT.decode(text), order="sorted")).hexdigest()
    return Event(position, "state", _to_key(descriptor), text.decode(), digest)


def _parse_trace(position: int, trace: _Trace) -> Event | None:
    if trace.type == "STREAM_STATUS" and trace.stream_status is not None:
        status = trace.stream_status
        return Event(position, "status", _to_key(status.stream_descriptor), status.status)
    if trace.type == "ERROR" and trace.error is not None:
        error = trace.error
        reason = error.message or error.internal_message or "no reason given"
        return Event(position, "error", _to_key(error.stream_descriptor), reason)
    return None


def _to_key(descriptor: Descriptor | None) -> StreamKey | None:
    return None if descriptor is None else descriptor.key


def count_unknown_streams(contents: Contents, streams: Iterable[StreamKey]) -> Counter[StreamKey]:
    """Count the records of streams that no catalog names."""
    named = set(streams)
    return Counter({key: count for key, count in contents.records.items() if key not in named})
