"""Convert text of any charset that Python supports to UTF-8, and map each byte to its offset in the file."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from lakewriter.errors import SourceFailedError, SpecInvalidError

UTF_8: Final = "utf-8"
_MARKS: Final = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NEEDS_MARK: Final = ("utf-16", "utf-32")
_UNITS: Final = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_BAD: Final = "lakewriter-bad-bytes"
_FIRST_STAND_IN: Final = 0xDC00
"""A byte that is not text is decoded as a lone half of a surrogate pair, which no text contains."""
_SHARE_OF_NULS: Final = 0.3


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    end = max(error.end, error.start + 1)
    return "".join(chr(_FIRST_STAND_IN + byte) for byte in error.object[error.start : end]), end


codecs.register_error(_BAD, _stand_in)


@dataclass(frozen=True)
class Charset:
    """The charset of a file; ``mark`` is the length of its byte order mark."""

    name: str = UTF_8
    mark: int = 0

    @property
    def is_plain(self) -> bool:
        """True if separators, quotes and line ends are the same bytes as in ASCII, and no other characters use
        these.
        """
        return self.name == UTF_8 or _has_single_bytes(self.name)

    @property
    def shown_name(self) -> str:
        """The name for messages."""
        return self.name.upper() if self.name.startswith("utf") else self.name

    @property
    def text_name(self) -> str:
        """The charset in which text is processed: this one if it is plain, else UTF-8."""
        return self.name if self.is_plain else UTF_8

    def decode(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield plain text as UTF-8 without its mark. A byte that is not text becomes invalid UTF-8."""
        decoder, skipped = codecs.getincrementaldecoder(self.name)(_BAD), self.mark
        for block in blocks:
            taken = block[skipped:]
            skipped -= len(block) - len(taken)
            if text := decoder.decode(taken):
                yield text.encode(errors="surrogatepass")
        if text := decoder.decode(b"", final=True):
            yield text.encode(errors="surrogatepass")

    def to_utf8(self, data: bytes) -> bytes:
        """Return text of a plain charset as UTF-8. A byte that is not text becomes invalid UTF-8."""
        return data if self.name == UTF_8 else data.decode(self.name, _BAD).encode(errors="surrogatepass")

    def measure(self, data: bytes, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of stored bytes before each of the ascending ``offsets`` in the UTF-8 text ``data``."""
        if self.is_plain:
            return offsets
        unit = _UNITS.get(self.name)
        if unit is None:
            cuts = zip([0, *offsets.tolist()], offsets.tolist(), strict=False)
            return np.cumsum([self._measure_text(data[start:end]) for start, end in cuts], dtype=np.int64)
        array = np.frombuffer(data, np.uint8)
        weights = ((array & 0xC0) != 0x80).astype(np.int64) * unit
        if unit == 2:
            weights += (array >= 0xF0) * unit
        bad = np.flatnonzero((array[:-1] == 0xED) & (array[1:] >= 0xB0))
        weights[bad] = 1
        return np.concatenate(([0], np.cumsum(weights)))[offsets]

    def _measure_text(self, data: bytes) -> int:
        text = data.decode(errors="surrogatepass")
        bad = sum(0xDC00 <= ord(char) <= 0xDCFF for char in text) if not text.isascii() else 0
        return len(text.encode(self.name, "ignore")) + bad


def find_charset(path: str, head: bytes, encoding: str | None) -> Charset:
    """Return the charset of a file that begins with ``head``: by its byte order mark, else the ``encoding`` given.

    Raise ``SOURCE_FAILED`` if a file with two bytes a character has neither.
    """
    for mark, name in _MARKS:
        if head.startswith(mark):
            return Charset(name, len(mark))
    name = look_up(encoding)
    if name in _NEEDS_MARK:
        raise SourceFailedError(
            f"{path!r} begins without a byte order mark, and {encoding} does not say in which order its bytes are.",
            remedy=f"Set options: {{encoding: {name.upper()}LE}}, or {name.upper()}BE.",
        )
    if encoding is None and (guess := _guess_order(head)):
        raise SourceFailedError(
            f"{path!r} is {guess} text without a byte order mark, read as UTF-8.",
            remedy=f"Set options: {{encoding: {guess}}}.",
        )
    return Charset(name)


def look_up(encoding: str | None) -> str:
    """Return Python's name of a charset, UTF-8 if none is given. Raise ``SPEC_INVALID`` if Python does not
    support it.
    """
    try:
        info = codecs.lookup(encoding or UTF_8)
        "".encode(info.name)
    except (LookupError, ValueError) as error:
        raise SpecInvalidError(
            f"options: encoding is {encoding!r}, expected a charset that Python knows, such as UTF-8, windows-1252 or "
            "UTF-16LE.",
            remedy="See the names in https://docs.python.org/3/library/codecs.html#standard-encodings.",
        ) from error
    return UTF_8 if info.name == "utf-8-sig" else info.name


def _guess_order(head: bytes) -> str | None:
    nuls = [head[first::2].count(0) for first in (0, 1)]
    if len(head) < 4 or max(nuls) < len(head) * _SHARE_OF_NULS or min(nuls):
        return None
    return "UTF-16BE" if nuls[0] else "UTF-16LE"


@lru_cache(maxsize=64)
def _has_single_bytes(name: str) -> bool:
    """Return True for a charset of one byte a character that includes ASCII."""
    undefined = [byte for byte in range(256) if _decode_length(name, bytes([byte])) != 1]
    ascii_text = bytes(range(128))
    if any(byte < 128 for byte in undefined) or ascii_text.decode(name) != ascii_text.decode("ascii"):
        return False
    # A byte that is not a character alone may be the first of several.
    return not any(_decode_length(name, bytes([byte, second])) for byte in undefined for second in range(0x30, 0x100))


def _decode_length(name: str, data: bytes) -> int:
    try:
        return len(data.decode(name))
    except UnicodeDecodeError:
        return 0


def explain_bad_text(data: bytes, charset: Charset) -> str | None:
    """Return the fault of a row's bytes that are not text of its charset; None if all are text."""
    try:
        data.decode(charset.text_name)
    except UnicodeDecodeError as error:
        end = max(error.end, error.start + 1)
        if charset.is_plain:
            return f"byte {_to_hex(data[error.start : end])} is not {charset.shown_name}"
        text = data.decode(errors="surrogatepass")
        bad = next(ord(char) for char in text if 0xDC00 <= ord(char) <= 0xDCFF)
        return f"byte {_to_hex(bytes([bad & 0xFF]))} is not {charset.shown_name}"
    return None


def show_text(row: bytes, charset: Charset) -> str:
    """Return a row as text, with bytes that are not text escaped."""
    return row.decode(charset.text_name, "backslashreplace")


def _to_hex(data: bytes) -> str:
    return " ".join(f"0x{byte:02x}" for byte in data[:4])
