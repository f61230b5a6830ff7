"""Read messages from a pipe as they come: whole lines at a time, decoded together if all of them are valid."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Final

import msgspec

from lakewriter.cast.json_text import LEVELS, is_too_deep
from lakewriter.source.messages.contents import Contents
from lakewriter.source.messages.lines import MESSAGE, Message, Record
from lakewriter.spec.stream import StreamKey

_BLOCK: Final = 1024 * 1024
_DEEP: Final = 2 * LEVELS
"""The least length in bytes of a text that is too deep."""


def open_reader(stream: IO[bytes]) -> Callable[[int], bytes | None]:
    """Return a function that reads from a pipe as much as has come.

    A buffered reader would wait until its buffer is full, and hold a lock if the process ends meanwhile.
    """
    raw = getattr(stream, "raw", stream)
    with suppress(OSError, AttributeError):
        # The limit of an unprivileged process: the source writes on while its messages are decoded.
        fcntl.fcntl(raw.fileno(), fcntl.F_SETPIPE_SZ, _BLOCK)
    read: Callable[[int], bytes | None] = raw.read
    return read


def read_chunks(read: Callable[[int], bytes | None]) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines as soon as they have come, with the position of the first. The last line may have no end.

    ``read`` returns what has come, up to a number of bytes, and nothing at the end.
    """
    position, rest = 0, list[bytes]()
    while block := read(_BLOCK):
        end = block.rfind(b"\n") + 1
        if not end:
            rest.append(block)
            continue
        chunk = b"".join([*rest, block[:end]])
        rest = [block[end:]]
        yield position, chunk
        position += len(chunk)
    if tail := b"".join(rest):
        yield position, tail


@dataclass(frozen=True)
class Records:
    """Consecutive records of one stream, by columns: Python's cycle detector does not inspect these values."""

    key: StreamKey
    positions: list[int] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    emitted_at: list[int | None] = field(default_factory=list)
    changes: list[bytes | None] = field(default_factory=list)

    def add(self, position: int, record: Record, data: bytes) -> None:
        """Add one record."""
        at, meta = record.emitted_at, record.meta
        self.positions.append(position)
        self.data.append(data)
        self.emitted_at.append(at if at is None else int(at))
        self.changes.append(None if meta is None else bytes(meta.changes) or None)


@dataclass(frozen=True)
class Other:
    """A line that is not a record. Without a message the line is not a message at all."""

    position: int
    message: Message | None


def parse_chunk(position: int, chunk: bytes, contents: Contents) -> Iterator[Records | Other]:
    """Yield the parts of the lines, with ascending positions.

    Faults of lines are recorded in ``contents``; records and events are not.
    """
    messages = _decode_together(chunk)
    parts = None if messages is None else _sort_messages(messages, position)
    if messages is None or parts is None:
        yield from _parse_lines(position, chunk, contents)
        return
    yield from parts
    # A line has at least one byte: these positions lie before those of the next chunk.
    contents.last_line = position + len(messages) - 1


def _parse_lines(position: int, chunk: bytes, contents: Contents) -> Iterator[Records | Other]:
    for line in chunk.split(b"\n"):
        message = contents.parse(position, line)
        if message is not None and message.record is not None:
            one = Records(message.record.key)
            one.add(position, message.record, message.record.text)
            yield one
        else:
            yield Other(position, message)
        position += len(line) + 1


def _decode_together(chunk: bytes) -> list[Message] | None:
    """Return the messages of all lines; None if a line may be no message."""
    try:
        messages = MESSAGE.decode_lines(chunk)
        if not chunk.isascii():
            chunk.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    lines = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
    return messages if len(messages) == lines else None


def _sort_messages(messages: list[Message], position: int) -> list[Records | Other] | None:
    """Return the messages in order; None if one is not valid."""
    parts, records = list[Records | Other](), Records(("", ""))
    stream: str | None = None
    namespace: str | None = None
    for at, message in enumerate(messages, position):
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
