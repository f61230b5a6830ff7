"""The plain text of a file in blocks, and a window over them that moves from one whole row to the next."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.source.failures import make_unreadable_error
from lakewriter.source.files.charsets import Charset, find_charset
from lakewriter.source.files.stored import StoredFile, decompress, find_compression

_MAGIC_BYTES: Final = 16
MOST_ROW_BYTES: Final = 128 * 1024 * 1024
"""Of a row whose quote is not closed: behind it the quote counts as open, however the file goes on."""


@dataclass(frozen=True)
class Head:
    """The first text of a file, without its byte order mark: as it is stored in a plain charset, else as UTF-8.
    ``is_whole`` says that nothing follows."""

    text: bytes
    compression: str | None
    charset: Charset
    is_whole: bool


def read_head(file: StoredFile, size: int, encoding: str | None, table: str) -> Head:
    """Return the first ``size`` bytes of plain text; ``SOURCE_FAILED`` for a file that cannot be read."""
    try:
        compression = find_compression(file, file.read_head(_MAGIC_BYTES))
        stream = file.stream(0, None if compression else size + 1)
        data = b""
        for block in decompress(stream, compression):
            data += block
            if len(data) > size:
                break
    except (OSError, BotoCoreError, ClientError, pa.ArrowException) as error:
        raise make_unreadable_error(file.path, error, table) from error
    is_whole = len(data) <= size
    charset = find_charset(file.path, data[:1024], encoding)
    text = data[charset.mark :] if charset.is_plain else b"".join(charset.decode(iter([data])))
    return Head(text, compression, charset, is_whole)


def open_text(file: StoredFile, start: int, end: int, compression: str | None, charset: Charset) -> Iterator[bytes]:
    """Yield a stretch of a file as plain text, without its byte order mark: in a plain charset as it is stored, else as
    UTF-8."""
    try:
        blocks = decompress(file.stream(start, end), compression)
        if not charset.is_plain:
            yield from charset.decode(blocks)
            return
        skipped = charset.mark if start == 0 else 0
        for block in blocks:
            taken = block[skipped:] if skipped else block
            skipped -= len(block) - len(taken)
            yield taken
    except (OSError, BotoCoreError, ClientError, pa.ArrowException) as error:
        raise make_unreadable_error(file.path, error) from error


class Window:
    """What of a stream of blocks is held at a time."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._held, self._is_whole = blocks, b"", False

    def fill(self, size: int) -> tuple[bytes, bool]:
        """Return at least ``size`` bytes from where the window begins, and whether nothing follows them."""
        parts, length = [self._held], len(self._held)
        while length < size and not self._is_whole:
            block = next(self._blocks, None)
            self._is_whole = block is None
            parts.append(block or b"")
            length += len(block or b"")
        self._held = b"".join(parts)
        return self._held, self._is_whole

    def drop(self, size: int) -> None:
        """Let the window begin ``size`` bytes further on."""
        self._held = self._held[size:]
