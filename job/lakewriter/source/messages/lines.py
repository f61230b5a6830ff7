"""Parse one valid line of the Airbyte protocol.

See: https://docs.airbyte.com/understanding-airbyte/airbyte-protocol
"""

from typing import Final

import msgspec

from lakewriter.cast.json_text import MESSAGE_LEVELS, is_too_deep
from lakewriter.documents.types import FILE
from lakewriter.spec.stream import StreamKey, stream_key

NOTHING: Final = msgspec.Raw(b"")


# None of these can be part of a cycle: without Python's cycle detector an object costs a third of the time.
class Descriptor(msgspec.Struct, gc=False):
    """A stream's identity."""

    name: str
    namespace: str | None = None

    @property
    def key(self) -> StreamKey:
        """The key of its stream."""
        return stream_key(self.namespace, self.name)


class StreamState(msgspec.Struct, gc=False):
    """The state of one stream, reduced to the stream's identity."""

    stream_descriptor: Descriptor


class Meta(msgspec.Struct, gc=False):
    """The source's remarks on a record; ``changes`` is JSON text."""

    changes: msgspec.Raw = NOTHING


class FileReference(msgspec.Struct, gc=False):
    """A file that belongs to a record: the URL to which the source has copied it, its path there, and its size in
    bytes.
    """

    staging_file_url: str | None = None
    source_file_relative_path: str | None = None
    file_size_bytes: int | None = None


class Record(msgspec.Struct, gc=False):
    """A record; ``data`` is its JSON text as in the line, ``emitted_at`` milliseconds since 1970."""

    stream: str
    data: msgspec.Raw
    emitted_at: int | float | None = None
    namespace: str | None = None
    meta: Meta | None = None
    file_reference: FileReference | None = None

    @property
    def text(self) -> bytes:
        """The JSON text, with the reference to its file as the last property."""
        data = bytes(self.data)
        if self.file_reference is None:
            return data
        head = data[:-1].rstrip()
        comma = b"" if head == b"{" else b","
        return b'%b%b"%b":%b}' % (head, comma, FILE.encode(), msgspec.json.encode(self.file_reference))

    @property
    def key(self) -> StreamKey:
        """The key of its stream."""
        return stream_key(self.namespace, self.stream)


class Message(msgspec.Struct, gc=False):
    """A line; messages of other kinds keep their text."""

    type: str
    record: Record | None = None
    state: msgspec.Raw = NOTHING
    trace: msgspec.Raw = NOTHING


MESSAGE: Final = msgspec.json.Decoder(Message)


def parse_line(line: bytes) -> Message | None:
    """Return the message of a line; None for a line that is not a message, or an odd one: see ``parse_odd_line``."""
    if is_too_deep(line, MESSAGE_LEVELS):
        return None
    try:
        message = MESSAGE.decode(line)
        if not line.isascii():
            line.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    record = message.record
    whole = record is not None and is_object(record.data)
    return None if message.type == "RECORD" and not whole else message


def is_object(text: msgspec.Raw) -> bool:
    """Return True if JSON text is an object."""
    return bytes(memoryview(text)[:1]) == b"{"
