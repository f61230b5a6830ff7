"""Split text into the documents that follow one another in it, and those in arrays one by one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

BLANK: Final = b" \t\r\n"
_SHOWN_BYTES: Final = 40 * 1024

_TO_BRACKET: Final = re.compile(rb'[^"{}\[\]]*+(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[^"{}\[\]]*+)*+', re.DOTALL)
"""The bytes from inside an object or array to the next bracket outside texts, or to a text that is not closed."""
_OPEN_LINE: Final = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+\n', re.DOTALL)
"""A text whose line ends before it does, which no JSON text may."""
_SCALAR: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^"{}\[\],\s]++', re.DOTALL)


@dataclass(frozen=True)
class Part:
    """A document, or an element of an array of documents: its offset, and its bytes.

    ``fault`` is the reason if the bytes are neither.
    """

    offset: int
    raw: bytes
    fault: str | None = None


def split_documents(blocks: Iterator[bytes], offset: int = 0, *, most: int) -> Iterator[Part]:
    """Yield the consecutive documents in ``blocks``, and those in arrays one by one.

    ``most`` is the limit for a document in bytes. After the first fault the rest is one part.
    """
    return _Splitter(blocks, offset, most).split()


class _Splitter:
    """A splitter of bytes into documents; ``position`` is the index in ``held`` of the next byte, ``offset`` that of
    ``held`` in the file.
    """

    def __init__(self, blocks: Iterator[bytes], offset: int, most: int) -> None:
        self.blocks, self.offset, self.most = blocks, offset, most
        self.held, self.position = b"", 0

    def split(self) -> Iterator[Part]:
        end = -1
        while self._skip_blank():
            if self.offset + self.position == end:
                yield self._take_rest(f"{self._peek().decode(errors='replace')!r} right behind a document")
            elif self._peek() == b"[":
                yield from self._split_array()
            else:
                yield self._take_value()
            end = self.offset + self.position

    def _split_array(self) -> Iterator[Part]:
        start = self.offset + self.position
        self.position += 1
        if self._skip_blank() and self._peek() == b"]":
            self.position += 1
            return
        while self._skip_blank():
            if self._peek() in (b",", b"]", b"}"):
                yield self._take_rest("no value")
                return
            part = self._take_value()
            yield part
            if part.fault is not None:
                return
            if not self._skip_blank():
                break
            behind = self._peek()
            if behind not in (b",", b"]"):
                yield self._take_rest("neither ',' nor the end of the array")
                return
            self.position += 1
            if behind == b"]":
                return
        yield Part(self.offset + self.position, b"", f"the array that begins at byte {start} breaks off")

    def _take_value(self) -> Part:
        first = self._peek()
        if first in (b"{", b"["):
            return self._take_nested()
        while True:
            scalar = _SCALAR.match(self.held, self.position)
            if scalar is not None and scalar.end() < len(self.held):
                return self._take(scalar.end())
            if not self._read():
                break
        if scalar is None:
            return self._take_rest("a text without its closing quote" if first == b'"' else "no value")
        return self._take(scalar.end())

    def _take_nested(self) -> Part:
        level, end = 0, self.position
        while True:
            match = _TO_BRACKET.match(self.held, end)
            assert match is not None
            end = match.end()
            bracket = self.held[end : end + 1]
            if not bracket or bracket == b'"':
                # The bytes held end within it, maybe within a text.
                if bracket and _OPEN_LINE.match(self.held, end):
                    return self._take_rest("a text without its closing quote")
                if self.most < len(self.held) - self.position:
                    return self._take_rest(f"a document of more than {self.most} bytes")
                dropped = self.position
                if not self._read():
                    return self._take_rest("a document that breaks off")
                end -= dropped - self.position
                continue
            end += 1
            level += 1 if bracket in b"{[" else -1
            if level == 0:
                return self._take(end)

    def _take(self, end: int) -> Part:
        part = Part(self.offset + self.position, self.held[self.position : end])
        self.position = end
        return part

    def _take_rest(self, fault: str) -> Part:
        """Return the rest as one part, with only as many bytes as can be shown."""
        part = Part(
            self.offset + self.position, self.held[self.position : self.position + _SHOWN_BYTES], f"there is {fault}"
        )
        self.position = len(self.held)
        while self._read():
            self.position = len(self.held)
        return part

    def _skip_blank(self) -> bool:
        """Move to the next byte that is not white space; return False if there is none."""
        while True:
            rest = self.held[self.position : self.position + 64].lstrip(BLANK)
            if rest:
                self.position += min(64, len(self.held) - self.position) - len(rest)
                return True
            self.position = min(self.position + 64, len(self.held))
            if self.position == len(self.held) and not self._read():
                return False

    def _peek(self) -> bytes:
        return self.held[self.position : self.position + 1]

    def _read(self) -> bool:
        """Append the next block to the held bytes; return False at the end."""
        block = next(self.blocks, b"")
        self.held = self.held[self.position :] + block
        self.offset += self.position
        self.position = 0
        return bool(block)
