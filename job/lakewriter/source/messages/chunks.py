"""Read messages from a pipe as they come: whole lines at a time, decoded together where nothing is odd about them."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from lakewriter.documents.nesting import LEVELS, is_too_deep
from lakewriter.source.messages.contents import Contents
from lakewriter.source.messages.lines import MESSAGE, Message, is_object

_BLOCK: Final = 1024 * 1024
_DEEP: Final = 2 * LEVELS
"""Bytes that a text has at least which is too deep."""


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


def parse_chunk(place: int, chunk: bytes, contents: Contents) -> Iterator[tuple[int, Message | None]]:
    """The message of each line, and None for a line that is none, with places that grow.

    What is odd about lines is noted in ``contents``; records and events are not.
    """
    messages = _decode_together(chunk)
    if messages is None:
        for line in chunk.split(b"\n"):
            yield place, contents.parse(place, line)
            place += len(line) + 1
        return
    # A line has a byte at least: these places lie before those of the next chunk.
    yield from enumerate(messages, place)
    contents.last_line = place + len(messages) - 1


def _decode_together(chunk: bytes) -> list[Message] | None:
    """The messages of lines that are all sound, None where a line may not be."""
    try:
        messages = MESSAGE.decode_lines(chunk)
        if not chunk.isascii():
            chunk.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    lines = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
    if len(messages) != lines or not all(map(_is_sound, messages)):
        return None
    return messages


def _is_sound(message: Message) -> bool:
    record = message.record
    if record is None:
        return message.type != "RECORD" and not any(map(_may_be_deep, (message.state, message.trace)))
    if message.type != "RECORD":
        return not _may_be_deep(record.data)
    return is_object(record.data) and not _may_be_deep(record.data)


def _may_be_deep(text: msgspec.Raw) -> bool:
    return len(memoryview(text)) > _DEEP and is_too_deep(bytes(text))
