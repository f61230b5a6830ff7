"""Read the plain text of a file in blocks, through a window that moves from one whole row to the next."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lakewriter.aws import BotoCoreError, ClientError
from lakewriter.errors import SourceFailedError
from lakewriter.source.files.charsets import Charset, explain_bad_text, find_charset
from lakewriter.source.files.stored_files import StoredFile, decompress, find_compression, find_magic
from lakewriter.source.spark_failures import make_unreadable_error
from lakewriter.spec.source_formats import FORMATS

_MAGIC_BYTES: Final = 16
MOST_ROW_BYTES: Final = 128 * 1024 * 1024
"""The limit for a row whose quote is not closed: beyond it the quote counts as open, even if it is closed later."""

MAGIC: Final[tuple[tuple[bytes, str, str], ...]] = (
    # first bytes, Spark's format, what it is
    *((entry.magic, entry.name, entry.file_title) for entry in FORMATS.values() if entry.magic),
    (b"PK\x03\x04", "", "a ZIP archive, as Excel workbooks are"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", "an Excel or Word file of the old kind"),
    (b"SQLite format 3\x00", "", "an SQLite database"),
    (b"%PDF-", "", "a PDF"),
)
"""The first bytes of files that are not text."""
_TAR, _TAR_AT = b"ustar", 257
"""The magic of an archive by tar, and its offset. https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html"""
_NO_TEXT: Final = b"\0" * 64
"""No charset has so many NULs in a row: a block that was never written, or padding."""
UNKNOWN: Final = "Name the file that is meant: this one is of another format, encrypted or damaged."
EXPORT: Final = "Save its sheet or table as CSV or Parquet, and name that file."

EXTRACT: Final = "Extract its files, and name them or their folder."


@dataclass(frozen=True)
class Head:
    """The first text of a file, without its byte order mark: as it is stored in a plain charset, else as UTF-8.

    ``is_whole`` means that no bytes follow.
    """

    text: bytes
    compression: str | None
    charset: Charset
    is_whole: bool


def read_head(file: StoredFile, size: int, encoding: str | None, table: str) -> Head:
    """Return the first ``size`` bytes of plain text. Raise ``SOURCE_FAILED`` for a file that cannot be read."""
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
    try:
        charset = find_charset(file.path, data[:1024], encoding)
    except SourceFailedError as error:
        raise SourceFailedError(f"table {table!r}: {error.message}", remedy=error.remedy) from error
    text = data[charset.mark :] if charset.is_plain else b"".join(charset.decode(iter([data])))
    head = Head(text, compression, charset, is_whole)
    _require_text(head, file.path, table)
    return head


def _require_text(head: Head, path: str, table: str) -> None:
    """Raise ``SOURCE_FAILED`` for a file that is not text. A file whose bytes are text is accepted with any
    beginning.
    """
    inside = "" if head.compression is None else f", inside {head.compression}"
    if head.text[_TAR_AT : _TAR_AT + len(_TAR)] == _TAR:
        raise SourceFailedError(f"table {table!r}: {path!r} is a tar archive{inside}, expected text.", remedy=EXTRACT)
    if head.compression is not None and find_magic(head.text) is not None:
        raise SourceFailedError(f"table {table!r}: {path!r} is compressed twice, expected once.", remedy=EXTRACT)
    if _NO_TEXT in head.text:
        raise SourceFailedError(
            f"table {table!r}: {path!r} has {len(_NO_TEXT)} NUL bytes in a row{inside}, expected text.", remedy=EXPORT
        )
    kind = next((kind for kind in MAGIC if head.text.startswith(kind[0])), None)
    if kind is None or explain_bad_text(head.text[:-4] if not head.is_whole else head.text, head.charset) is None:
        return
    raise SourceFailedError(
        f"table {table!r}: {path!r} is {kind[2]}{inside}, expected text.",
        remedy=f"Set format: {kind[1]}." if kind[1] else EXPORT,
    )


def open_text(file: StoredFile, start: int, end: int, compression: str | None, charset: Charset) -> Iterator[bytes]:
    """Yield a part of a file as plain text, without its byte order mark: as it is stored in a plain charset, else as
    UTF-8.
    """
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
    """The part of a stream of blocks that is held at a time."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._held, self._is_whole = blocks, b"", False

    def fill(self, size: int) -> tuple[bytes, bool]:
        """Return at least ``size`` bytes from the start of the window, and True if no bytes follow them."""
        parts, length = [self._held], len(self._held)
        while length < size and not self._is_whole:
            block = next(self._blocks, None)
            self._is_whole = block is None
            parts.append(block or b"")
            length += len(block or b"")
        self._held = b"".join(parts)
        return self._held, self._is_whole

    def drop(self, size: int) -> None:
        """Move the start of the window by ``size`` bytes."""
        self._held = self._held[size:]
