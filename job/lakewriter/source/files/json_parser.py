"""Parse one JSON document exactly by RFC 8259: numbers keep their text, and ambiguous documents are refused."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

MOST_LEVELS: Final = 512
"""The limit for nested arrays and objects: Python's parser recurses for each level."""

BLANK: Final = b" \t\r\n"
_SHOWN: Final = 40
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKETS: Final = re.compile(rb"[\[{]|[\]}]")
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
"""Escapes from left to right. The group is a lone half of a surrogate pair."""
_MESSAGES: Final = {
    "Expecting value": "no value",
    "Expecting property name enclosed in double quotes": "no key in double quotes",
    "Expecting ':' delimiter": "no ':'",
    "Expecting ',' delimiter": "neither ',' nor the end of the object or array",
    "Unterminated string starting at": "a text without its closing quote",
    "Invalid control character at": "a control character that is not written as an escape,",
}
"""The messages of Python's parser, and ours in their stead; a position follows."""


class DocumentError(ValueError):
    """A fault of a document, whose text completes "it is no document: "."""


class NumberText(str):
    """A number as it is written."""

    __slots__ = ()


def parse_document(raw: bytes, *, takes_nan: bool = False) -> Any:
    """Return the value of a JSON text: objects as dicts, numbers as their text. Raise ``DocumentError`` for other
    texts.

    With ``takes_nan`` ``NaN``, ``Infinity`` and ``-Infinity`` are numbers, as Spark's option defines it.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(f"byte {raw[error.start]:#04x} at its byte {error.start} is not UTF-8") from error
    if b"\\u" in raw and (half := next((match[1] for match in _ESCAPES.finditer(raw) if match[1]), None)):
        raise DocumentError(f"\\{half.decode()} is half of a surrogate pair, which is no character")
    if raw.count(b"[") + raw.count(b"{") > MOST_LEVELS and _count_levels(raw) > MOST_LEVELS:
        raise DocumentError(f"it has more than {MOST_LEVELS} arrays and objects inside each other")
    try:
        return (_LENIENT if takes_nan else _STRICT).decode(text)
    except json.JSONDecodeError as error:
        raise DocumentError(_describe(error, text)) from error
    except RecursionError as error:
        raise DocumentError("it has too many arrays and objects inside each other") from error


def describe_value(value: Any) -> str:
    """Return the kind of a value, in words for a user."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = write_text(value) if isinstance(value, (bool, NumberText)) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def write_text(value: Any) -> str:
    """Return the compact JSON text of a value, numbers with their digits and keys in their order."""
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: Any, parts: list[str]) -> None:
    if isinstance(value, dict):
        mark = "{"
        for key, member in value.items():
            parts.append(f"{mark}{json.dumps(key, ensure_ascii=False)}:")
            _write(member, parts)
            mark = ","
        parts.append("}" if value else "{}")
    elif isinstance(value, list):
        mark = "["
        for member in value:
            parts.append(mark)
            _write(member, parts)
            mark = ","
        parts.append("]" if value else "[]")
    else:
        parts.append(value if isinstance(value, NumberText) else json.dumps(value, ensure_ascii=False))


def _count_levels(raw: bytes) -> int:
    level = most = 0
    for bracket in _BRACKETS.finditer(_STRINGS.sub(b"", raw)):
        level += 1 if bracket[0] in b"[{" else -1
        most = max(most, level)
    return most


def _describe(error: json.JSONDecodeError, text: str) -> str:
    position = f"character {error.pos + 1}"
    if error.msg == "Extra data":
        behind = text[error.pos : error.pos + _SHOWN]
        return f"behind the document, at {position}, is {behind!r}"
    if error.pos >= len(text.rstrip()):
        return f"it breaks off at {position}"
    return f"there is {_MESSAGES.get(error.msg, error.msg)} at {position}"


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise DocumentError(f"the key {describe_value(twice)} is twice in one object")
    return made


def _refuse_constant(text: str) -> None:
    raise DocumentError(f"{text} is no number of JSON")


def _make_decoder(parse_constant: Any) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_make_object, parse_float=NumberText, parse_int=NumberText, parse_constant=parse_constant
    )


_STRICT: Final = _make_decoder(_refuse_constant)
_LENIENT: Final = _make_decoder(NumberText)

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
            self.offset + self.position, self.held[self.position : self.position + _SHOWN * 1024], f"there is {fault}"
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
