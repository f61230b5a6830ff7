"""Read messages from a pipe as they come: whole lines at a time, decoded together where nothing is odd about them."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Final

import msgspec

from lakewriter.documents.nesting import LEVELS, is_too_deep
from lakewriter.source.messages.contents import Contents
from lakewriter.source.messages.lines import MESSAGE, Message, Record
from lakewriter.spec.stream import StreamKey

_BLOCK: Final = 1024 * 1024
_DEEP: Final = 2 * LEVELS
"""Bytes that a text has at least which is too deep."""


def open_reader(stream: IO[bytes]) -> Callable[[int], bytes | None]:
    """What reads from a pipe as much as has come.

    A buffered reader would wait until its buffer is full, and hold a lock where the process ends meanwhile.
    """
    raw = getattr(stream, "raw", stream)
    with suppress(OSError, AttributeError):
        # As much as an unprivileged process may have: a source goes on while what it said is decoded.
        fcntl.fcntl(raw.fileno(), fcntl.F_SETPIPE_SZ, _BLOCK)
    read: Callable[[int], bytes | None] = raw.read
    return read


def read_chunks(read: Callable[[int], bytes | None]) -> Iterator[tuple[int, bytes]]:
    """Whole lines as soon as they are there, with the place of the first; the last line may have no end.

    ``read`` gives what has come, of at most so many bytes, and nothing at the end.
    """
    place, rest = 0, list[bytes]()
    while block := read(_BLOCK):
        end = block.rfind(b"\n") + 1
        if not end:
            rest.append(block)
            continue
        chunk = b"".join([*rest, block[:end]])
        rest = [block[end:]]
        yield place, chunk
        place += len(chunk)
    if tail := b"".join(rest):
        yield place, tail


@dataclass(frozen=True)
class Records:
    """Records of one stream that follow one another, by columns: Python's cycle detector looks at no value of these."""

    key: StreamKey
    places: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    emitted_at: list[int | None] = field(default_factory=list)
    changes: list[bytes | None] = field(default_factory=list)

    def add(self, place: int, record: Record, data: bytes) -> None:
        """One more."""
        at, meta = record.emitted_at, record.meta
        self.places.append(place)
        self.data.append(data)
        self.emitted_at.append(at if at is None else int(at))
        self.changes.append(None if meta is None else bytes(meta.changes) or None)


@dataclass(frozen=True)
class Other:
    """A line that is no record; without a message it is none at all."""

    place: int
    message: Message | None


def parse_chunk(place: int, chunk: bytes, contents: Contents) -> Iterator[Records | Other]:
    """What the lines are, with places that grow.

    What is odd about lines is noted in ``contents``; records and events are not.
    """
    messages = _decode_together(chunk)
    parts = None if messages is None else _sort_messages(messages, place)
    if messages is None or parts is None:
        yield from _parse_lines(place, chunk, contents)
        return
    yield from parts
    # A line has a byte at least: these places lie before those of the next chunk.
    contents.last_line = place + len(messages) - 1


def _parse_lines(place: int, chunk: bytes, contents: Contents) -> Iterator[Records | Other]:
    for line in chunk.split(b"\n"):
        message = contents.parse(place, line)
        if message is not None and message.record is not None:
            one = Records(message.record.key)
            one.add(place, message.record, message.record.text)
            yield one
        else:
            yield Other(place, message)
        place += len(line) + 1


def _decode_together(chunk: bytes) -> list[Message] | None:
    """The messages of all lines, None where a line may not be one."""
    try:
        messages = MESSAGE.decode_lines(chunk)
        if not chunk.isascii():
            chunk.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    lines = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
    return messages if len(messages) == lines else None


def _sort_messages(messages: list[Message], place: int) -> list[Records | Other] | None:
    """The messages in order; None where one is not as it should be."""
    parts, records = list[Records | Other](), Records(("", ""))
    stream: str | None = None
    namespace: str | None = None
    for at, message in enumerate(messages, place):
        record = message.record
        if record is None:
            if message.type == "RECORD" or _is_deep(bytes(message.state)) or _is_deep(bytes(message.trace)):
                return None
            parts.append(Other(at, message))
            stream = None
            continue
        data = bytes(record.data) if record.file_reference is None else record.text
        if not data.startswith(b"{") or _is_deep(data):
            return None
        if record.stream != stream or record.namespace != namespace:
            stream, namespace = record.stream, record.namespace
            records = Records(record.key)
            parts.append(records)
        records.add(at, record, data)
    return parts


def _is_deep(text: bytes) -> bool:
    return len(text) > _DEEP and is_too_deep(text)
